"""Where a stage finds its programs, and what its checks and measurements have in common."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from gpu_check_lib import machine, program


@dataclass
class Place:
    bin: Path
    out: Path
    scratch: Path
    quick: bool = False
    limit: float = 480  # seconds that any program may take at most
    checkpoint: Path | None = None  # of the random-weight case, where there is one already
    root: Path = machine.ROOT

    def program(self, name):
        return self.bin / "bin" / name

    def test(self, name):
        return self.bin / "tests" / name


def json_lines(text):
    """The JSON objects among the lines."""
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return found


def assay_run(place, report, what, words, limit, name):
    """`assay run` as a check; what it says in its last event is the detail."""
    folder = place.out / "logs" / name
    shutil.rmtree(folder, ignore_errors=True)
    command = [place.program("assay"), "run", *words, "--backend", "cuda"]
    done = program.run([*command, "--output", folder], place, name, limit)
    shown = program.shown(command, place)
    try:
        last = json_lines((folder / "results.jsonl").read_text())[-1]
        counts = last["counts"]
    except (OSError, IndexError, KeyError):
        report.check(what, False, done.trouble() or "no results were written", shown)
        return
    detail = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    ran = sum(count for verdict, count in counts.items() if verdict != "SKIPPED")
    report.check(what, done.code == 0 and ran > 0, f"{detail}, {done.seconds:.0f} s", shown)
