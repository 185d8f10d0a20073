"""Builds the tree where no build folder is given."""

import subprocess

from gpu_check_lib.machine import ROOT
from gpu_check_lib.report import Refused


def make():
    """Configures and builds the preset cuda with tests and benchmarks; the build folder. Raises Refused."""
    configure = ["cmake", "--preset", "cuda", "-DASSAY_TESTS=ON", "-DASSAY_BENCH=ON"]
    for command in (configure, ["cmake", "--build", "--preset", "cuda"]):
        if subprocess.run(command, cwd=ROOT).returncode != 0:
            raise Refused(f"{' '.join(command)} failed")
    return ROOT / "build" / "cuda"
