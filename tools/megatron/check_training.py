#!/usr/bin/env python3
"""Checks `assay compare --compat megatron` of training goldens against Megatron-LM's own comparators.

    pip install numpy pydantic pytest pyyaml tensorboard
    tools/megatron/check_training.py --megatron CHECKOUT --assay build/ci/bin/assay [--pairs 400] [--seed 1]

Makes pairs of files from a seed, has both judge each, and prints every pair on which passed / failed differ. Ends with 1
where there is one.
"""

import argparse
import collections
import concurrent.futures
import json
import logging
import pathlib
import random
import subprocess
import sys
import tempfile

import yaml

METRICS = ["lm loss", "num-zeros", "iteration-time", "mem-allocated-bytes", "mem-max-allocated-bytes", "mtp_1 loss"]
BASE = {"lm loss": 10.5, "num-zeros": 2000.0, "iteration-time": 0.35, "mem-allocated-bytes": 6.1e10,
        "mem-max-allocated-bytes": 6.4e10, "mtp_1 loss": 11.0, "lm-loss": 2.0}


def series(rng, metric, steps):
    values = {s: round(BASE[metric] * (1 - 0.3 * s / max(steps)) + rng.random() * 1e-3, 5) for s in steps}
    if rng.random() < 0.1:
        values = {s: int(v) for s, v in values.items()}
    if rng.random() < 0.05:
        values = {s: 0.0 for s in steps}
    if rng.random() < 0.15:
        for step in rng.sample(steps, min(len(steps), rng.choice([1, 2, len(steps) // 2]))):
            values[step] = "nan"
    return {"start_step": steps[0], "end_step": steps[-1], "step_interval": 1, "values": values}


def disturbed(rng, golden, scale):
    actual = json.loads(json.dumps(golden))
    how = rng.random()
    values = actual["values"]
    keys = list(values)
    touched = keys if how < 0.4 else rng.sample(keys, min(len(keys), rng.choice([1, 1, 2, 3, 5])))
    for key in touched:
        if not isinstance(values[key], str):
            values[key] = round(values[key] * (1 + rng.uniform(-scale, scale)), 5)
    if rng.random() < 0.15:
        for key in rng.sample(keys, min(len(keys), rng.choice([1, 1, 2]))):
            del values[key]
    if rng.random() < 0.08:
        values[rng.choice(keys)] = "nan"
    if rng.random() < 0.1:
        values[str(int(keys[-1]) + 1)] = 1.0
    return actual


def pair(rng):
    rl = rng.random() < 0.35
    steps = list(range(1, rng.choice([1, 2, 3, 4, 6, 10, 20, 25, 26, 30, 45, 50, 100, 150, 250]) + 1))
    if rng.random() < 0.2:
        steps = [s for s in steps if s == 1 or s % 5 == 0]
    if rng.random() < 0.1 and len(steps) > 2:
        steps = steps[1:]
    names = rng.sample(METRICS + (["lm-loss"] if rl else []), rng.randint(1, 4))
    golden = {n: series(rng, n, steps) for n in names}
    scale = rng.choice([0, 0, 1e-6, 1e-3, 0.04, 0.049, 0.06, 0.09, 0.12, 0.25])
    actual = {n: disturbed(rng, g, scale) for n, g in golden.items()}
    if rng.random() < 0.06:
        del actual[rng.choice(names)]
    if rng.random() < 0.1:
        actual["total loss"] = series(rng, "lm loss", steps)
    if rng.random() < 0.03:
        golden[names[0]]["values"] = [1.0, 2.0]
    if rng.random() < 0.02:
        golden[names[0]]["values"] = {}
    if rng.random() < 0.02:
        del golden[names[0]]["start_step"]
    if rng.random() < 0.02:
        golden = {}
    config = {"MODE": "rl" if rl else "pretraining", "MODEL_ARGS": {"--train-iters": 100}, "ENV_VARS": {}}
    named = rng.random()
    if named < 0.75:
        config["METRICS"] = rng.sample(names, rng.randint(1, len(names)))
    elif named < 0.8:
        config["METRICS"] = []
    elif named < 0.85:
        config["METRICS"] = None
    elif named < 0.9:
        config["METRICS"] = names + ["perplexity"] + names
    if rng.random() < 0.5:
        config["ENV_VARS"]["NVTE_ALLOW_NONDETERMINISTIC_ALGO"] = 1
    if rl and rng.random() < 0.6:
        config["ENV_VARS"]["THROUGHPUT_START_STEP"] = rng.choice([0, 1, 3, 10, 500, "10"])
    return config, golden, actual


def theirs(modules, folder, config):
    golden, actual, case = (str(folder / n) for n in ("golden.json", "actual.json", "model_config.yaml"))
    try:
        if config["MODE"] == "rl":
            modules.grpo.test_grpo_training_loop(golden, actual, case)
        else:
            read = modules.common.read_golden_values_from_json
            approximate = "NVTE_ALLOW_NONDETERMINISTIC_ALGO" in config["ENV_VARS"]
            modules.regular.test_regular_pipeline(approximate, read(golden), read(actual), case)
        return "passed", ""
    except Exception as error:  # whatever pytest would count as a failure
        return "failed", f"{type(error).__name__}: {str(error)[:100]}"


def ours(assay, folder):
    run = subprocess.run([assay, "compare", folder / "golden.json", folder / "actual.json", "--config",
                          folder / "model_config.yaml", "--compat", "megatron", "--json"], capture_output=True, text=True)
    if not run.stdout:
        return "failed", run.stderr, ""
    verdict = json.loads(run.stdout)
    return verdict["compat"]["verdict"], verdict["compat"]["message"], verdict["verdict"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megatron", required=True)
    parser.add_argument("--assay", required=True)
    parser.add_argument("--pairs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sys.path.insert(0, options.megatron)
    from tests.functional_tests.python_test_utils import common, test_grpo_training_loop, test_pretraining_regular_pipeline
    logging.disable(logging.CRITICAL)
    modules = collections.namedtuple("Modules", "common regular grpo")(common, test_pretraining_regular_pipeline,
                                                                      test_grpo_training_loop)
    rng = random.Random(options.seed)
    counts = collections.Counter()
    differing = 0
    with tempfile.TemporaryDirectory() as root:
        cases = []
        for i in range(options.pairs):
            config, golden, actual = pair(rng)
            folder = pathlib.Path(root) / str(i)
            folder.mkdir()
            (folder / "golden.json").write_text(json.dumps(golden))
            (folder / "actual.json").write_text(json.dumps(actual))
            (folder / "model_config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
            cases.append((folder, config))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(lambda case: ours(options.assay, case[0]), cases))
        for (folder, config), (said, message, verdict) in zip(cases, answers):
            expected, why = theirs(modules, folder, config)
            counts[(config["MODE"], expected, verdict)] += 1
            if said != expected:
                differing += 1
                print(f"{folder.name}: theirs {expected} ({why}), ours says {said} ({message})")
                print("   ", (folder / "model_config.yaml").read_text().replace("\n", "; "))
    for (mode, expected, verdict), count in sorted(counts.items()):
        print(f"{count:5} {mode}: theirs {expected}, our own verdict {verdict}")
    print(f"{options.pairs} pairs, {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
