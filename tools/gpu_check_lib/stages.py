"""All stages by name, in the order of a whole run. Each takes at most eight minutes."""

import time

from gpu_check_lib import checks, measurements

STAGES = {
    "tests": checks.stage_tests,
    "cases": checks.stage_cases,
    "sanitize": checks.stage_sanitize,
    "replay": checks.stage_replay,
    "bench": measurements.stage_bench,
    "vendor": measurements.stage_vendor,
    "peers": measurements.stage_peers,
    "load": measurements.stage_load,
}


def run(name, place, report):
    """Runs one stage. A fault of this script is a failed check, as the other stages go on."""
    begin = time.monotonic()
    try:
        STAGES[name](place, report)
    except Exception as error:
        report.check(f"stage {name}", False, f"{type(error).__name__}: {error}", f"tools/gpu_check {name}")
    report.data["seconds"] = time.monotonic() - begin
