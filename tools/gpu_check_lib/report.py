"""What one stage found: values and checks, kept as one JSON file."""

import datetime
import json
import math

from gpu_check_lib import rows

SCHEMA = 1
TEXTS = ("stage", "tree", "device", "driver", "date")


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


def is_text(value):
    return isinstance(value, str)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def has(entry, **kinds):
    """Whether `entry` is an object whose members are what `kinds` ask of them."""
    return isinstance(entry, dict) and all(name in entry and kind(entry[name]) for name, kind in kinds.items())


def damage(data):
    """What of a stage's results is not as Report.write leaves it; "" where nothing is."""
    missing = [name for name in (*TEXTS, "quick", "values", "checks") if name not in data]
    if missing:
        return f"'{missing[0]}' is missing"
    for name in TEXTS:
        if not is_text(data[name]):
            return f"'{name}' is no text"
    if data["stage"] not in rows.STAGE_NAMES:
        return f"no stage '{data['stage']}' (known: {' '.join(rows.STAGE_NAMES)})"
    if not isinstance(data["quick"], bool):
        return "'quick' is neither true nor false"
    if not isinstance(data["values"], dict) or not isinstance(data["checks"], list):
        return "'values' is no object or 'checks' no list"
    for key, value in data["values"].items():
        if not has(value, value=is_number, command=is_text, note=is_text):
            return f"value '{key}': expected a number of at least 0, command and note"
    for place, check in enumerate(data["checks"]):
        if not has(check, what=is_text, passed=lambda flag: isinstance(flag, bool), detail=is_text, command=is_text):
            return f"check {place}: expected what, passed (true or false), detail and command"
    return ""


def read(path):
    """A stage's results. Raises Refused when the file is not one."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise Refused(f"{path}: {error}") from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise Refused(f"{path}: no results of this gpu_check (schema {SCHEMA})")
    trouble = damage(data)
    if trouble:
        raise Refused(f"{path}: {trouble}")
    return data
