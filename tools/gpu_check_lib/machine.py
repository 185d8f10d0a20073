"""Which GPU this is, and which sources are measured."""

import re
import shutil
import subprocess
from pathlib import Path

from gpu_check_lib.report import Refused

ROOT = Path(__file__).resolve().parents[2]


class NoGpu(Exception):
    """There is no GPU that can be used here; the text says why."""


def find_gpu():
    """{"name", "driver"} of the first GPU. Raises NoGpu."""
    program = shutil.which("nvidia-smi")
    if program is None:
        raise NoGpu("nvidia-smi is not installed; the tests that need none run with ctest")
    asked = subprocess.run(
        [program, "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True
    )
    lines = [line for line in asked.stdout.splitlines() if "," in line]
    if asked.returncode != 0 or not lines:
        said = (asked.stdout + asked.stderr).strip().splitlines()
        raise NoGpu(f"nvidia-smi says: {said[0] if said else 'nothing'}")
    name, driver = (word.strip() for word in lines[0].split(",")[:2])
    return {"name": name, "driver": driver}


def git(root, *words):
    """Output of git, or None where it fails or there is none."""
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def tree_of(root, given):
    """The hash of backends/cuda that the figures belong to. Raises Refused: it is changed, unknown, or not `given`."""
    if given is not None and not re.fullmatch(r"[0-9a-f]{40}", given):
        raise Refused(f"--tree {given}: expected the 40 digits of git rev-parse HEAD:backends/cuda")
    known = git(root, "rev-parse", "HEAD:backends/cuda")
    if known is None:
        if given is None:
            raise Refused("no git here: --tree names the hash of backends/cuda (git rev-parse HEAD:backends/cuda)")
        return given
    changed = git(root, "status", "--porcelain", "--", "backends/cuda")
    if changed:
        raise Refused(f"backends/cuda has changes that are not committed: {changed.splitlines()[0].strip()}")
    if given is not None and given != known:
        raise Refused(f"--tree {given}, but backends/cuda here is {known}")
    return known
