"""The stages that check: tests, cases, compute-sanitizer, replays of graphs."""

import json
import re

from gpu_check_lib import program
from gpu_check_lib.place import assay_run

THOUSAND = "*AThousandStepsInAGraph*"


def gtest(place, report, name, what, filter_, limit):
    """One GoogleTest program as a check. A skip passes and is told; no test at all fails."""
    result = place.out / "logs" / f"{name}.json"
    result.parent.mkdir(parents=True, exist_ok=True)
    result.unlink(missing_ok=True)
    command = [place.test(name), f"--gtest_filter={filter_}", f"--gtest_output=json:{result}"]
    done = program.run(command, place, name, limit)
    shown = program.shown(command[:2], place)
    try:
        tests = [test for suite in json.loads(result.read_text())["testsuites"] for test in suite["testsuite"]]
    except (OSError, ValueError, KeyError):
        report.check(what, False, done.trouble() or "no results were written", shown)
        return done
    bad = [f"{test['classname']}.{test['name']}" for test in tests if test.get("failures")]
    skipped = [test for test in tests if test.get("result") == "SKIPPED"]
    ran = len(tests) - len(skipped)
    detail = f"{ran - len(bad)} of {ran} tests pass, {done.seconds:.0f} s"
    reasons = sorted(set(re.findall(r": Skipped\n(.+)", done.output)))
    if skipped:
        detail += f"; {len(skipped)} skipped: {'; '.join(reasons)[:200] or 'no reason told'}"
    blind = any(reason.startswith("no CUDA device") for reason in reasons)  # the tests do not see what nvidia-smi sees
    if bad:
        detail += f"; failed: {', '.join(bad[:5])}{' …' if len(bad) > 5 else ''}"
    report.check(
        what,
        done.code == 0 and ran > 0 and not bad and not blind,
        detail if done.code == 0 or bad else f"{detail}; {done.trouble()}",
        shown,
    )
    return done


def gpu_programs(place, report):
    """Names of the test programs with the label gpu, as the build wrote them down."""
    path = place.bin / "gpu_tests.txt"
    try:
        names = path.read_text().split()
    except OSError:
        names = []
    if not names:
        report.check(
            "test programs with label gpu",
            False,
            f"{path.name} is not there or empty: was the folder built with tests?",
            str(path.name),
        )
    return names


def stage_tests(place, report):
    """all test programs with the label gpu: kernels against the reference, vectors, L1 to L3, gold models"""
    for name in gpu_programs(place, report):
        done = gtest(place, report, name, f"tests: {name}", f"-{THOUSAND}", 400)
        deltas = [float(word) for word in re.findall(r"max \|delta\| (\S+) over", done.output)]
        if deltas:
            report.value(
                "vectors_delta", max(deltas), program.shown([place.test(name)], place), f"{len(deltas)} models"
            )


def stage_cases(place, report):
    """assay run testcases --backend cuda: gold cases and the metamorphic suite"""
    # The case of the self-test has a golden of the processor alone.
    words = ["testcases", "--filter", "not *self_test*"]
    assay_run(place, report, "cases: gold models and metamorphic relations", words, 400, "cases")


# racecheck does not follow mbarriers: it calls every reuse of shared memory that bulk copies fill a hazard, so kernels of
# that kind are left to memcheck and to the bit-for-bit tests. And of attention it would take minutes.
RACE_FILTER = "-AttentionBf16*:*EveryVersion*:*Wgmma*:*MlpsTogether*"
FAST_FILTER = "*AStepMayLeaveItsResultsOut*:*AModelWithoutExpertsIsRun*"


def stage_sanitize(place, report):
    """compute-sanitizer: memcheck and racecheck on the kernel tests"""
    for tool, name, filter_ in (
        ("memcheck", "cuda_kernels_test", "*"),
        ("racecheck", "cuda_kernels_test", RACE_FILTER),
        ("memcheck", "cuda_fast_test", FAST_FILTER),
    ):
        filter_ = "*Elementwise*" if place.quick and name == "cuda_kernels_test" else filter_
        command = [
            "compute-sanitizer",
            "--tool",
            tool,
            "--error-exitcode",
            "9",
            place.test(name),
            f"--gtest_filter={filter_}",
        ]
        done = program.run(command, place, f"{tool}_{name}", 150)
        summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (.+)", done.output)
        ran = re.findall(r"\[==========\] (\d+) tests? from .* ran", done.output)
        passed = done.code == 0 and bool(summary) and bool(ran) and ran[-1] != "0"
        detail = f"{summary[-1] if summary else 'no summary'}, {ran[-1] if ran else 'no'} tests, {done.seconds:.0f} s"
        report.check(
            f"{tool}: {name}", passed, detail if done.code == 0 else f"{detail}; {done.trouble()}", done.command
        )


def stage_replay(place, report):
    """1,000 replays of a decode step's CUDA graph, with and without programmatic dependent launch, bit-equal"""
    gtest(place, report, "cuda_fast_test", "1,000 graph replays, three ways of launching, bit-equal", THOUSAND, 120)
