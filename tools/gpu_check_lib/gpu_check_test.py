"""tools/gpu_check without a GPU: refusals, and whole runs on programs that only say what real ones would say."""

import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOOLS))
sys.dont_write_bytecode = True

from gpu_check_lib import checks, machine, merge, report, rows, stages  # noqa: E402

TREE = "1" * 40
DEVICE = {"name": "NVIDIA H200", "driver": "580.1"}
GOOD = {
    "read_bandwidth": 4.5,
    "decode_128": 1.30,
    "decode_128_fraction": 88,
    "decode_4096_fraction": 80,
    "prefill_128": 9,
    "prefill_512": 11,
    "prefill_1024": 9.5,
    "prefill_4096": 50,
    "engine_64": 6000,
}


class Folder(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.dir = Path(self.scratch.name)

    def tearDown(self):
        self.scratch.cleanup()

    def stage(self, name, values=None, checks=(), tree=TREE, device=None, quick=False, folder="a"):
        (self.dir / folder).mkdir(exist_ok=True)
        result = report.Report(name, device or DEVICE, tree, quick)
        for key, value in (values or {}).items():
            result.value(key, value, f"measure {key}")
        for what, passed in checks:
            result.check(what, passed, "so it is", f"check {what}")
        result.write(self.dir / folder)
        return self.dir / folder

    def all_stages(self, **changed):
        self.stage("bench", {**GOOD, **changed})
        self.stage("peers", {"peer_decode": 6.0})
        loads = {"load": 40, "load_fraction": 85, "load_cold_fraction": 99, "load_memory": 1, "peer_load": 2}
        self.stage("load", loads, [("written", True)])
        self.stage("tests", {"vectors_delta": 5e-6}, [("kernels", True)])
        for name in ("cases", "sanitize", "replay", "vendor"):
            self.stage(name, {}, [(name, True)])
        return self.dir / "a"

    def line_of(self, text, what):
        return next(line for line in text.splitlines() if line.startswith(f"| {what} |"))


class Merging(Folder):
    def test_all_met_names_device_tree_and_date_and_misses_nothing(self):
        text, missed = merge.table([self.all_stages()], strict=True)
        self.assertFalse(missed, text)
        self.assertIn(TREE, text)
        self.assertIn("NVIDIA H200, 580.1", text)
        self.assertIn("met, aim met", self.line_of(text, "16B: decode, batch 1, context 128"))
        self.assertRegex(
            self.line_of(text, "16B: prefill of 512 tokens"),
            r"11\.00 ms \| ≤ 13 ms \| ≤ 10 ms \| met \| `measure prefill_512` \| 20",
        )
        self.assertIn("4.62 ×", self.line_of(text, "decode at 128: times as fast as transformers"))
        self.assertIn("20.00 ×", self.line_of(text, "… times as fast as PyTorch's reader"))
        width = {line.count("|") for line in text.splitlines()}
        self.assertEqual(width, {8})

    def test_a_missed_must_is_told_and_counts(self):
        text, missed = merge.table([self.all_stages(prefill_4096=70.5)])
        self.assertTrue(missed)
        self.assertIn("**MISSED**", self.line_of(text, "16B: prefill of 4,096 tokens"))
        self.assertFalse(merge.table([self.all_stages(prefill_4096=70.0)])[1])  # a limit is inclusive

    def test_a_failed_check_a_missing_value_and_a_missing_stage_are_rows(self):
        folder = self.stage("tests", {}, [("tests: some", False)])
        text, missed = merge.table([folder])
        self.assertTrue(missed)
        self.assertIn("**FAILED**", self.line_of(text, "tests: some"))
        self.assertIn("**not measured**", self.line_of(text, "16B: decode, batch 1, context 128"))
        for name in rows.STAGE_NAMES:
            if name != "tests":
                self.assertIn("**not run**", self.line_of(text, f"stage {name}"))

    def test_values_that_no_row_names_are_reported(self):
        folder = self.stage("vendor", {"gemm.qkv.128.gain": 1.25})
        self.assertIn("1.25", self.line_of(merge.table([folder])[0], "gemm.qkv.128.gain"))

    def test_ratios_are_void_where_the_yardstick_is(self):
        text, missed = merge.table([self.all_stages(read_bandwidth=4.1)])
        self.assertTrue(missed)
        self.assertIn("void: the device reads below 4.2", self.line_of(text, "… of the read bandwidth"))
        self.assertIn("void", self.line_of(text, "decode at 128: times as fast as transformers"))
        self.all_stages()
        self.stage("peers", {"peer_decode": 8.5})
        text, missed = merge.table([self.dir / "a"])
        self.assertTrue(missed)
        self.assertIn("void: the compiled", self.line_of(text, "decode at 128: times as fast as transformers"))

    def test_of_a_stage_that_ran_twice_the_later_one_counts(self):
        self.stage("bench", {"decode_128": 1.5}, folder="a")
        self.stage("bench", {"decode_128": 1.4}, folder="b")
        old = self.dir / "a" / "bench.json"
        old.write_text(old.read_text().replace('"date": "20', '"date": "19'))
        for order in (["a", "b"], ["b", "a"]):
            text, _ = merge.table([self.dir / name for name in order])
            self.assertIn("1.400", self.line_of(text, "16B: decode, batch 1, context 128"))

    def test_bars_and_line_ends_do_not_break_the_table(self):
        folder = self.stage("tests", {}, [("a | b\nc", True)])
        self.assertIn("| a \\| b c |", merge.table([folder])[0])


class Refusing(Folder):
    def refused(self, text, *folders, strict=True):
        with self.assertRaises(report.Refused) as caught:
            merge.table([self.dir / folder for folder in folders], strict)
        self.assertIn(text, str(caught.exception))

    def test_results_of_different_trees(self):
        self.stage("bench", tree=TREE, folder="a")
        self.stage("peers", tree="2" * 40, folder="b")
        self.refused("of backends/cuda 222", "a", "b")

    def test_results_of_different_devices_and_drivers(self):
        self.stage("bench")
        self.stage("peers", device={"name": "NVIDIA A100", "driver": "580.1"}, folder="b")
        self.refused("device NVIDIA A100", "a", "b")
        self.stage("peers", device={"name": "NVIDIA H200", "driver": "570"}, folder="b")
        self.refused("driver 570", "a", "b")

    def test_quick_results(self):
        self.stage("bench", quick=True)
        self.refused("--quick", "a")
        merge.table([self.dir / "a"])  # may be looked at

    def test_what_is_no_result(self):
        (self.dir / "a").mkdir()
        self.refused("no results there", "a")
        for text in ("", "{", "[1]", '{"schema": 9}', '{"schema": 1, "stage": "x"}'):
            (self.dir / "a" / "x.json").write_text(text)
            self.refused("x.json", "a")

    def test_results_that_are_damaged(self):
        path = self.stage("cases", {"decode_128": 1.5}, [("cases", True)]) / "cases.json"
        good = json.loads(path.read_text())
        value = {"value": 1.5, "command": "c", "note": ""}
        check = {"what": "w", "passed": True, "detail": "d", "command": "c"}
        damages = [{name: None} for name in good if name not in ("schema", "seconds")]
        damages += [{"stage": "nope"}, {"stage": ["cases"]}, {"quick": "no"}, {"values": []}, {"checks": {}}]
        damages += [{"values": {"decode_128": wrong}} for wrong in (1.5, {}, {"value": 1.5}, {**value, "note": 1})]
        for number in ("1.5", None, True, -1, float("nan"), float("inf")):
            damages.append({"values": {"decode_128": {**value, "value": number}}})
        damages += [{"checks": [wrong]} for wrong in ("w", {"what": "w"}, {**check, "passed": "no"})]
        for damage in damages:
            path.write_text(json.dumps({**good, **damage}))
            self.refused("cases.json: ", "a")
        path.write_text("[" * 100000)
        self.refused("cases.json: ", "a")

    def test_a_stage_that_found_nothing_is_missed(self):
        folder = self.all_stages()
        self.stage("cases")
        text, missed = merge.table([folder])
        self.assertTrue(missed)
        self.assertIn("**found nothing**", self.line_of(text, "stage cases"))

    def test_a_changed_tree_and_a_wrong_hash(self):
        root = self.dir / "tree"
        (root / "backends/cuda").mkdir(parents=True)
        (root / "backends/cuda/a.cu").write_text("a")
        run = lambda *words: subprocess.run(["git", "-C", root, *words], check=True, capture_output=True)  # noqa: E731
        run("init", "-q")
        run("add", "-A")
        run("-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "x")
        tree = machine.tree_of(root, None)
        self.assertRegex(tree, "^[0-9a-f]{40}$")
        self.assertEqual(machine.tree_of(root, tree), tree)
        with self.assertRaises(report.Refused):
            machine.tree_of(root, TREE)
        (root / "elsewhere").write_text("may change")
        machine.tree_of(root, None)
        for change in (
            lambda: (root / "backends/cuda/a.cu").write_text("b"),
            lambda: (root / "backends/cuda/new").write_text(""),
        ):
            change()
            with self.assertRaises(report.Refused) as caught:
                machine.tree_of(root, None)
            self.assertIn("not committed", str(caught.exception))
            run("add", "-A")
            run("-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "y")

    def test_no_git_needs_a_hash(self):
        bare = self.dir / "bare"
        bare.mkdir()
        with self.assertRaises(report.Refused):
            machine.tree_of(bare, None)
        with self.assertRaises(report.Refused):
            machine.tree_of(bare, "abc")
        self.assertEqual(machine.tree_of(bare, TREE), TREE)


GTEST = """#!/bin/sh
for word; do case $word in --gtest_output=json:*) out=${word#--gtest_output=json:};; esac; done
echo "one max |delta| 2.0e-06 over 10 logprobs"; echo "two max |delta| 3.0e-06 over 10 logprobs"
echo 'a_test.cc:7: Skipped'; echo 'no vectors here'
echo '[==========] 2 tests from 1 test suite ran.'; echo '========= ERROR SUMMARY: 0 errors'
cat > "$out" <<END
{"testsuites": [{"testsuite": [{"name": "A", "classname": "T", "result": "COMPLETED"FAILURE},
 {"name": "B", "classname": "T", "result": "SKIPPED", "skipped": [{"message": "Skipped\\\\nno vectors here"}]}]}]}
END
exit CODE
"""
ASSAY = """#!/bin/sh
if [ "$1" = bench ]; then
  echo '{"what": "model", "read_bandwidth": 4.6e12}'
  case "$*" in
    *"bench load"*)
      echo '{"what": "load", "gb_per_s": 40, "seconds": 1, "fraction": 0.9, "raw_gb_per_s": 44, "tensor_bytes": 4e9, "host_peak_bytes": 1}';;
    *--concurrency*) echo '{"what": "engine", "requests": 64, "tokens_per_second": 6000}';;
    *"bench decode"*) echo '{"what": "decode", "context": 128, "ms": 1.3, "fraction": 0.88, "read_bandwidth": 4.5e12}';;
    *fast*) echo "prefill: fast is not in this build" >&2; exit 1;;
    *) echo '{"what": "prefill", "tokens": 128, "ms": 9.5}';;
  esac
  exit 0
fi
for word; do last=$word; done
mkdir -p "$last"; echo '{"event": "run_finished", "counts": {"IDENTICAL": 49, "SKIPPED": 2}}' > "$last/results.jsonl"
"""


SANITIZER = """#!/bin/sh
while true; do case $1 in -*|memcheck|racecheck|9) shift;; *) break;; esac; done
"$@" --gtest_output=json:/dev/null
"""


class WholeRuns(Folder):
    """The script on a folder of programs that only talk."""

    def setUp(self):
        super().setUp()
        self.say("smi/nvidia-smi", "#!/bin/sh\necho 'NVIDIA H200, 580.1'\n")
        self.say(
            "smi/compute-sanitizer",
            SANITIZER,
        )
        self.say("build/bin/assay", ASSAY)
        self.say(
            "build/bin/cuda_vendor_bench",
            "#!/bin/sh\necho '# c'; echo 'gemm.qkv.128.cublaslt 11 us'; echo 'attention.128.cudnn 7 us'\n",
        )
        self.say("python/torch.py", "raise ImportError('no torch here')\n")  # whatever this machine has
        for name in ("cuda_kernels_test", "cuda_fast_test"):
            self.say(f"build/tests/{name}", GTEST.replace("FAILURE", "").replace("CODE", "0"))
        (self.dir / "build/gpu_tests.txt").write_text("cuda_kernels_test\ncuda_fast_test\n")

    def say(self, name, text):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def run_check(self, *words, smi="smi"):
        """The exit code, and both streams."""
        path = f"{self.dir / smi}:{os.environ['PATH']}" if smi else "/usr/bin:/bin"
        done = subprocess.run(
            [sys.executable, TOOLS / "gpu_check", *words],
            capture_output=True,
            text=True,
            cwd=self.dir,
            env={
                **os.environ,
                "PATH": path,
                "GIT_DIR": str(self.dir / "nowhere"),
                "PYTHONPATH": str(self.dir / "python"),
            },
        )
        return done.returncode, done.stdout + done.stderr

    def run_stages(self, *names):
        return self.run_check(*names, "--bin", "build", "--out", "out", "--tree", TREE)

    def test_stages_give_values_and_checks(self):
        code, text = self.run_stages("tests", "cases", "replay", "vendor", "sanitize")
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r"tests: cuda_fast_test \| 1 of 1 tests pass, 0 s; 1 skipped: no vectors here")
        self.assertIn("0.0000030 nats (2 models)", text)
        self.assertIn("49 IDENTICAL, 2 SKIPPED", text)
        self.assertRegex(text, r"gemm.qkv.128.cublaslt \| 11 us")
        self.assertRegex(text, r"racecheck: cuda_kernels_test \| 0 errors, 2 tests")
        code, text = self.run_check("--merge", "out")
        self.assertEqual(code, 1)
        self.assertIn("stage bench | – | runs | – | **not run**", text)

    def test_a_benchmark_that_fails_is_a_row_beside_those_that_do_not(self):
        code, text = self.run_stages("bench")
        self.assertEqual(code, 1)
        self.assertRegex(
            text,
            r"decode, batch 1, context 128 \| 1.300 ms/token \| ≤ 1.6 ms/token \| ≤ 1.4 ms/token \| met, aim met",
        )
        self.assertRegex(text, r"read bandwidth of the device \| 4.50 TB/s \(lowest of 4\)")
        self.assertRegex(
            text,
            r"benchmark: prefill=fast \| exit code 1: prefill: fast is not in this build \| passes \| – \| ..FAILED",
        )

    def test_a_value_that_misses_its_must_fails_the_stage(self):
        self.assertEqual(self.run_stages("tests")[0], 0)
        for name in ("cuda_kernels_test", "cuda_fast_test"):
            self.say(f"build/tests/{name}", GTEST.replace("FAILURE", "").replace("CODE", "0").replace("3.0e-06", "3e-4"))
        code, text = self.run_stages("tests")
        self.assertEqual(code, 1)
        self.assertIn("**MISSED**", self.line_of(text, "fp32 models: largest difference of a logprob to Megatron-LM's"))

    def test_the_commands_of_the_16b_rows_are_whole(self):
        _, text = self.run_stages("bench")
        self.assertRegex(text, r"build/cuda/bin/assay bench decode --context 128,1024,4096 .* -- \$SIXTEEN_B`")
        self.assertRegex(text, r"\| model of these commands \| .*`SIXTEEN_B='--num-layers 27 .*--bf16'` \|")

    def test_tests_that_see_no_device_do_not_pass(self):
        blind = (
            GTEST.replace("FAILURE", "")
            .replace("CODE", "0")
            .replace("no vectors here", "no CUDA device: driver too old")
        )
        self.say("build/tests/cuda_fast_test", blind)
        code, text = self.run_stages("tests")
        self.assertEqual(code, 1)
        self.assertRegex(text, r"tests: cuda_fast_test \| .*no CUDA device: driver too old \| passes \| – \| ..FAILED")

    def test_a_peer_that_cannot_run_is_a_row(self):
        code, text = self.run_stages("peers")
        self.assertEqual(code, 1)
        self.assertRegex(text, r"transformers: the run \| exit code 1: .*no torch here \| passes \| – \| ..FAILED")

    def test_loading_measures_runs_the_case_and_leaves_nothing_behind(self):
        self.say("build/bin/make_checkpoint", '#!/bin/sh\nmkdir -p "$2" && echo x > "$2/file"\n')
        cold = r"3 layers of it from the disk: of a parallel raw read \| 90.0 %"
        code, text = self.run_check(
            "load", "--bin", "build", "--out", "out", "--tree", TREE, "--scratch", str(self.dir / "scratch")
        )
        self.assertEqual(code, 1)
        self.assertRegex(text, r"16B: load of a torch_dist checkpoint \| 40.0 GB/s \(1.00 s, files in memory\)")
        self.assertRegex(text, r"of a parallel raw read of its files \| 90.0 % \(raw read 44.0 GB/s\)")
        self.assertRegex(text, r"16B with random weights: cuda against cpu's golden \| 49 IDENTICAL, 2 SKIPPED")
        self.assertRegex(text, r"load: PyTorch's reader \| exit code 1")
        self.assertRegex(text, cold)
        self.assertFalse((self.dir / "scratch/gpu_check_16b").exists())
        self.assertFalse((self.dir / "out/cold_checkpoint").exists())
        code, text = self.run_check(
            "load", "--bin", "build", "--out", "out", "--tree", TREE, "--checkpoint", str(self.dir / "smi")
        )
        self.assertRegex(text, r"RANDOM_16B_CHECKPOINT=.*/smi")
        self.assertRegex(text, cold)
        self.assertTrue((self.dir / "smi/nvidia-smi").exists())

    def test_a_program_that_does_not_end_is_stopped_and_told(self):
        self.say("build/bin/cuda_vendor_bench", "#!/bin/sh\necho 'gemm.qkv.128.cublaslt 11 us'; sleep 60\n")
        code, text = self.run_check("vendor", "--bin", "build", "--out", "out", "--tree", TREE, "--limit", "0.5")
        self.assertEqual(code, 1)
        self.assertRegex(text, r"cudnn was measured \| stopped after \d+ s: gemm.qkv")

    def test_what_is_stopped_stops_its_program(self):
        program = "#!/bin/sh\necho $$ > pid; sleep 60 & wait\n"
        self.say("build/bin/cuda_vendor_bench", program.replace("> pid", f"> '{self.dir}/pid'"))
        words = ["vendor", "--bin", "build", "--out", "out", "--tree", TREE]
        check = subprocess.Popen(
            [sys.executable, TOOLS / "gpu_check", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.dir,
            env={**os.environ, "PATH": f"{self.dir / 'smi'}:{os.environ['PATH']}", "GIT_DIR": str(self.dir / "nowhere")},
        )
        pid = self.dir / "pid"
        while check.poll() is None and not (pid.exists() and pid.read_text().strip()):
            time.sleep(0.05)
        check.terminate()
        text, _ = check.communicate(timeout=30)
        self.assertEqual((check.returncode, text), (130, "gpu_check: stopped\n"))
        with self.assertRaises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)

    def test_failures_of_programs_are_rows(self):
        self.say(
            "build/tests/cuda_fast_test",
            GTEST.replace("FAILURE", ', "failures": [{"failure": "x"}]').replace("CODE", "1"),
        )
        (self.dir / "build/tests/cuda_kernels_test").unlink()
        self.say("build/bin/cuda_vendor_bench", "#!/bin/sh\necho 'gemm.qkv.128.cublaslt 11 us'\nkill -SEGV $$\n")
        code, text = self.run_stages("tests", "vendor", "sanitize")
        self.assertEqual(code, 1)
        self.assertIn("failed: T.A", text)
        self.assertRegex(text, r"tests: cuda_kernels_test \| exit code 127")
        self.assertRegex(text, r"cudnn was measured \| killed by SIGSEGV")
        self.assertRegex(text, r"memcheck: cuda_kernels_test \| no summary")

    def test_no_test_programs_is_a_failure(self):
        (self.dir / "build/gpu_tests.txt").unlink()
        code, text = self.run_stages("tests")
        self.assertEqual(code, 1)
        self.assertIn("gpu_tests.txt is not there", text)

    def test_without_a_gpu_it_says_so_with_a_code_of_its_own(self):
        self.say("none/nvidia-smi", "#!/bin/sh\necho 'No devices were found'\nexit 6\n")
        code, text = self.run_check("all", smi="none")
        self.assertEqual(code, 4)
        self.assertIn("no GPU: nvidia-smi says: No devices were found", text)

    def test_usage_and_refusals_have_their_codes(self):
        self.assertEqual(self.run_check("nothing")[0], 2)
        self.assertEqual(self.run_check()[0], 2)
        self.assertEqual(self.run_check("--merge", "nowhere")[0], 3)
        self.assertEqual(self.run_check("cases", "--bin", "build")[0], 3)  # no git and no --tree
        self.assertEqual(self.run_check("cases", "--bin", "build", "--tree", "x")[0], 3)
        code, text = self.run_check("cases", "--bin", "nowhere", "--tree", TREE)
        self.assertEqual((code, text), (2, "gpu_check: --bin nowhere: no such folder\n"))
        self.assertEqual(self.run_check("load", "--bin", "build", "--tree", TREE, "--checkpoint", "nowhere")[0], 2)
        for limit in ("0", "-1", "nan", "inf", "x"):
            self.assertEqual(self.run_check("cases", "--bin", "build", "--tree", TREE, f"--limit={limit}")[0], 2)
        self.say("file", "")
        code, text = self.run_check("cases", "--bin", "build", "--tree", TREE, "--out", "file")
        self.assertEqual((code, text), (3, "gpu_check: refused: --out file: File exists\n"))
        code, text = self.run_check("--list")
        self.assertEqual(code, 0)
        self.assertEqual([line.split()[0] for line in text.splitlines()], rows.STAGE_NAMES)


class Filters(unittest.TestCase):
    def test_every_filter_names_tests_that_there_are(self):
        tests = []
        for path in TOOLS.parent.glob("backends/cuda/**/*_test.cc"):
            tests += [".".join(names) for names in re.findall(r"^TEST\w*\((\w+), (\w+)\)", path.read_text(), re.M)]
        for filter_ in (checks.RACE_FILTER, checks.FAST_FILTER, checks.THOUSAND):
            for pattern in filter_.lstrip("-").split(":"):
                self.assertTrue(any(fnmatch.fnmatchcase(test, pattern) for test in tests), pattern)


class Rows(unittest.TestCase):
    def test_keys_are_unique_and_stages_exist(self):
        keys = [row.key for row in rows.ROWS]
        self.assertEqual(len(keys), len(set(keys)))
        self.assertEqual(list(stages.STAGES), rows.STAGE_NAMES)
        for row in rows.ROWS:
            self.assertIn(row.stage, rows.STAGE_NAMES)
            if row.must is not None and row.aim is not None:
                self.assertTrue(row.aim > row.must if row.more else row.aim < row.must, row.key)


if __name__ == "__main__":
    unittest.main()
