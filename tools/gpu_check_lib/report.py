"""What one stage found: values and checks, kept as one JSON file."""

import datetime
import json

SCHEMA = 1


class Refused(Exception):
    """Results that must not be made, or not be put together; the text says why."""


class Report:
    """Values by key (rows.py says what they must be) and checks that passed or failed. Nothing is dropped."""

    def __init__(self, stage, device, tree, quick=False):
        self.data = {
            "schema": SCHEMA,
            "stage": stage,
            "quick": quick,
            "tree": tree,
            "device": device["name"],
            "driver": device["driver"],
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M"),
            "seconds": 0.0,
            "values": {},
            "checks": [],
        }

    def value(self, key, value, command, note=""):
        self.data["values"][key] = {"value": float(value), "command": command, "note": note}

    def check(self, what, passed, detail, command):
        self.data["checks"].append({"what": what, "passed": bool(passed), "detail": detail, "command": command})

    def failed(self):
        return any(not check["passed"] for check in self.data["checks"])

    def summary(self):
        bad = [check["what"] for check in self.data["checks"] if not check["passed"]]
        good = len(self.data["checks"]) - len(bad)
        text = f"{len(self.data['values'])} values, {good} checks passed, {len(bad)} failed"
        return f"{text}{': ' if bad else ''}{'; '.join(bad)}, {self.data['seconds']:.0f} s"

    def write(self, folder):
        text = json.dumps(self.data, indent=1, ensure_ascii=False)
        (folder / f"{self.data['stage']}.json").write_text(text + "\n")


def read(path):
    """A stage's results. Raises Refused when the file is not one."""
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise Refused(f"{path}: {error}") from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise Refused(f"{path}: no results of this gpu_check (schema {SCHEMA})")
    missing = [
        name for name in ("stage", "quick", "tree", "device", "driver", "date", "values", "checks") if name not in data
    ]
    if missing:
        raise Refused(f"{path}: '{missing[0]}' is missing")
    return data
