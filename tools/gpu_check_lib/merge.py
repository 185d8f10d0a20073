"""Results of stages, of one tree and one kind of device, put together into one Markdown table."""

from gpu_check_lib import measurements, report, rows


def collect(folders, strict):
    """Results by stage; of a stage that was run twice the later one. Raises Refused."""
    stages = {}
    first = None
    for folder in folders:
        files = sorted(folder.glob("*.json"))
        if not files:
            raise report.Refused(f"{folder}: no results there")
        for path in files:
            data = report.read(path)
            first = first or (path, data)
            for name, word in (("tree", "backends/cuda"), ("device", "device"), ("driver", "driver")):
                if data[name] != first[1][name]:
                    raise report.Refused(
                        f"{path} is of {word} {data[name]}, {first[0]} of {first[1][name]}: measure both on one"
                    )
            if data["quick"] and strict:
                raise report.Refused(f"{path} was made with --quick, which measures nothing that counts")
            known = stages.get(data["stage"])
            if known is None or known["date"] <= data["date"]:
                stages[data["stage"]] = data
    return stages


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def number(value, row):
    return f"{value:,.{row.digits}f} {row.unit}"


def limit(value, row):
    return "–" if value is None else f"{'≥' if row.more else '≤'} {value:g} {row.unit}"


def value_row(row, values, stages):
    """(cells, missed) of a row that is a number."""
    if row.key not in values:
        word = "**not measured**" if row.must is not None else "not measured"
        return [row.what, "–", limit(row.must, row), limit(row.aim, row), word, "", ""], row.must is not None
    found = values[row.key]
    void = rows.why_void(row, values)
    word, missed = (void, row.must is not None) if void else rows.judge(row, found["value"])
    note = f" ({found['note']})" if found["note"] else ""
    date = stages[row.stage]["date"] if row.stage in stages else ""
    shown = number(found["value"], row) + note
    return [row.what, shown, limit(row.must, row), limit(row.aim, row), word, f"`{found['command']}`", date], missed


def check_rows(stages):
    for stage in stages.values():
        for check in stage["checks"]:
            word = "passed" if check["passed"] else "**FAILED**"
            yield [
                check["what"],
                check["detail"],
                "passes",
                "–",
                word,
                f"`{check['command']}`",
                stage["date"],
            ], not check["passed"]


def absent_rows(stages):
    for name in rows.STAGE_NAMES:
        found = stages.get(name)
        if found is None or not (found["values"] or found["checks"]):
            word = "**not run**" if found is None else "**found nothing**"
            yield [f"stage {name}", "–", "runs", "–", word, f"`tools/gpu_check {name}`", ""], True


def extra_rows(stages, known):
    """Values that no row names: reported as they are."""
    for stage in stages.values():
        for key, found in stage["values"].items():
            if key in known:
                continue
            shown = f"{found['value']:,.4g} {found['note']}"
            yield [key, shown.strip(), "–", "–", "reported", f"`{found['command']}`", stage["date"]], False


def table(folders, strict=False):
    """(Markdown, whether a must is missed). Raises Refused."""
    stages = collect(folders, strict)
    values = rows.derive({key: value for data in stages.values() for key, value in data["values"].items()})
    some = next(iter(stages.values()))
    lines = [
        "| what | measured | must | aim | | command | date (UTC) |",
        "|---|---|---|---|---|---|---|",
        f"| device, driver | {some['device']}, {some['driver']} | | | | `nvidia-smi` | |",
        f"| tree of backends/cuda | {some['tree']} | | | | `git rev-parse HEAD:backends/cuda` | |",
    ]
    if any(measurements.SHAPES_NAME in value["command"] for value in values.values()):
        words = f"`{measurements.SHAPES_NAME}='{measurements.SHAPES}'`"
        lines.append(f"| model of these commands | random weights | | | | {words} | |")
    known = {row.key for row in rows.ROWS} | {"peer_load"}
    missed = False
    body = [value_row(row, values, stages) for row in rows.ROWS]
    for cells, bad in [*body, *check_rows(stages), *absent_rows(stages), *extra_rows(stages, known)]:
        lines.append("| " + " | ".join(cell(text) for text in cells) + " |")
        missed |= bad
    return "\n".join(lines), missed
