#!/usr/bin/env python3
"""Checks `assay recipe list` against Megatron-LM's own recipe parser.

    pip install click pyyaml
    tools/megatron/check_recipes.py --megatron CHECKOUT --assay build/ci/bin/assay [--mutants 250] [--seed 1]

Expands all recipes of the checkout, then changed ones made from a seed, with both, and prints every workload that only
one of them has and every recipe that only one of them takes. Ends with 1 where there is one. Filters are checked on the
recipes as they are. n_repeat, time_limit and artifacts are compared
only where a script names them: callers of their parser give these anew.
"""

import argparse
import collections
import copy
import hashlib
import importlib.util
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import yaml

OWN = {"n_repeat": 1, "time_limit": 1800, "artifacts": {}}  # and what they are where a recipe does not say
# What assay says of a workload beside its spec.
BESIDE = {"type", "recipe", "line", "flavour", "training_script", "case", "golden", "error"}
BROKEN = "cannot be filled in"
PLACES = {"assets_dir": "$OUTPUT_PATH", "artifacts_dir": "$OUTPUT_PATH"}


def load_parser(megatron):
    path = megatron / "tests/test_utils/python_scripts/recipe_parser.py"
    spec = importlib.util.spec_from_file_location("recipe_parser", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row(spec):
    kept = {key: value for key, value in spec.items() if key not in OWN}
    for long in ("script", "script_setup"):  # so that a row can be printed
        if long in kept:
            kept[long] = hashlib.sha256(str(kept[long]).encode()).hexdigest()[:12]
    return json.dumps(kept, sort_keys=True, default=str)


def filled(spec):
    """The spec with name and script filled in as their job generators do it; None where they fail."""
    given = {key: spec[key] if spec.get(key) is not None else default for key, default in OWN.items()}
    values = {**spec, **given, **PLACES}
    try:
        values["name"] = spec["name"].format(**values)
        script = spec["script"].format(**values)
    except (KeyError, IndexError, ValueError, AttributeError):
        return None
    return {**spec, "name": values["name"], "script": script}


def theirs(parser, folder, filters=None):
    """Counted rows of all recipes below a folder, or None where the parser fails."""
    try:
        workloads = [one for file in sorted(folder.glob("**/*.yaml")) for one in parser.load_and_flatten(str(file))]
        for key, word in (filters or {}).items():
            workloads = getattr(parser, f"filter_by_{key}")(workloads, word)
    except Exception:  # whatever their code raises
        return None
    rows = collections.Counter()
    for workload in workloads:
        whole = filled(workload.spec)
        rows[row(whole) if whole else BROKEN] += 1
    return rows


def ours(assay, folder, filters=None):
    """The same from `assay recipe list`, and whether it found an error."""
    options = [part for key, word in (filters or {}).items() for part in (f"--{key}", word)]
    command = [assay, "recipe", "list", str(folder), "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 4):
        raise SystemExit(f"{' '.join(command)}: code {done.returncode}\n{done.stderr}")
    rows = collections.Counter()
    for one in json.loads(done.stdout or "[]"):
        if one["type"] == "build":
            continue
        spec = {key: value for key, value in one.items() if key not in BESIDE}
        rows[row(spec) if one["error"] is None else BROKEN] += 1
    return rows, done.returncode == 1


def mutate(rng, recipe):
    """Some change that a writer of recipes may make, or get wrong in a way that both have to refuse."""
    products = [p for p in recipe.get("products") or [] if isinstance(p, dict) and "products" in p]
    if not products:
        return
    entry = rng.choice(products)
    inner = rng.choice(entry["products"])
    words = ["pr", "nightly", "mergegroup", "weekly"]
    scopes = ["mr", "mr-github", "mr-github-slim", "nightly", "weekly", "L0", "L1", "unit-tests"]
    change = rng.randrange(12)
    if change == 0:
        inner["scope"] = rng.sample(scopes, rng.randint(1, 3))
    elif change == 1:
        inner["cadence"] = rng.sample(words, rng.randint(1, 3))
    elif change == 2:
        entry["cadence"] = rng.sample(words, rng.randint(1, 2))
    elif change == 3:
        inner["cadence"] = [rng.choice(["hourly", "PR", ""])]
    elif change == 4:
        inner["platforms"] = ["dgx_h100", "dgx_a100", "dgx_gb200"][: rng.randint(1, 3)]
    elif change == 5:
        inner[rng.choice(["gpus", "nodes", "note"])] = rng.sample([1, 2, 8, 1.5, True, "x y", None], rng.randint(1, 3))
    elif change == 6:
        inner.pop(rng.choice(list(inner)))
    elif change == 7:
        entry["test_case"] = entry["test_case"] + ["another"]
    elif change == 8:
        recipe["spec"]["script"] += rng.choice(["\n${{HOME}}", "\n{gpus}{nodes}", "\n{nowhere}", "\n{", "\n{name}"])
    elif change == 9:
        recipe["spec"]["name"] = rng.choice(["{test_case}", "{test_case}_{gpus:03d}", "{model}-{scope}", "fixed"])
    elif change == 10:
        inner["test_case"] = ["overridden"]
    else:
        recipe["products"].append(copy.deepcopy(entry))


def compare(name, left, right):
    """Prints what differs; True where nothing does."""
    rows, refused = right
    if left is None:
        if not refused:
            print(f"{name}: only assay takes it")
        return refused
    for text, difference in (("theirs", left - rows), ("ours", rows - left)):
        for one, count in itertools.islice(difference.items(), 3):
            print(f"{name}: {count} only in {text}: {one}")
    return left == rows


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--megatron", type=pathlib.Path, required=True)
    arguments.add_argument("--assay", required=True)
    arguments.add_argument("--mutants", type=int, default=250)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    parser = load_parser(given.megatron)
    recipes = given.megatron / "tests/test_utils/recipes"
    rng = random.Random(given.seed)
    bad = 0
    whole = theirs(parser, recipes)
    bad += not compare("all recipes", whole, ours(given.assay, recipes))
    specs = [json.loads(one) for one in whole if one != BROKEN]
    for _ in range(40):
        one = rng.choice(specs)
        names = {"model": "--model", "environment": "--environment", "platforms": "--platform", "scope": "--scope"}
        keys = rng.sample([key for key in names if isinstance(one.get(key), str)], 2)
        filters = {"platform" if key == "platforms" else key: one[key] for key in keys}
        if rng.random() < 0.3:
            filters["cadence"] = rng.choice(["pr", "nightly", "mergegroup", "weekly"])
        bad += not compare(str(filters), theirs(parser, recipes, filters), ours(given.assay, recipes, filters))
    files = sorted(path for path in recipes.glob("**/*.yaml") if not path.name.startswith("_"))
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder) / "mutant.yaml"
        for number in range(given.mutants):
            source = rng.choice(files)
            recipe = yaml.safe_load(source.read_text())
            for _ in range(rng.randint(1, 3)):
                mutate(rng, recipe)
            target.write_text(yaml.safe_dump(recipe, sort_keys=False))
            bad += not compare(f"mutant {number} of {source.name}", theirs(parser, target.parent), ours(given.assay, target))
    print(f"{sum(whole.values())} workloads, 40 filters, {given.mutants} mutants: {bad} differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
