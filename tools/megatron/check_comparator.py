#!/usr/bin/env python3
"""Compares the verdicts of `assay compare --compat megatron` with those of Megatron-LM's own comparator.

Usage: check_comparator.py --assay BIN --megatron DIR [--mutations N] [--seed S] [--jobs N]

From DIR (a checkout) tests/functional_tests/python_test_utils/test_inference_regular_pipeline.py is imported as it is and its
test function is called; it needs numpy, pyyaml and pytest. Pairs: a table of odd ones with every form of METRICS, each
golden of the tree's inference cases against itself, and N seeded mutations of goldens (values, types, keys, ids, bytes).
Verdict (passed, failed, skipped) and the class of the exception are compared; a differing class alone is counted apart, as
their order of requests is that of a set. Exit code 1 on a differing verdict.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import copy
import importlib.util
import io
import json
import logging
import os
import random
import subprocess
import sys
import tempfile

METRICS = ["generated_tokens", "logprobs", "generated_text", "routing_indices", "throughput", "mem-max-allocated-bytes", "lifetime_prefill_token_count"]
FORMS = ["METRICS: null", "METRICS:", "METRICS: []", "METRICS: {}", "METRICS: ''", "METRICS: false", "METRICS: off", "METRICS: 0", "METRICS: 0.0", "METRICS: -0",
         "METRICS: 0x0", "METRICS: 1", "METRICS: true", "METRICS: 2020-01-01", "METRICS: .nan", "METRICS: logprobs", "METRICS: 'x generated_tokens logprobs'",
         "METRICS: lifetime_prefill_token_count", "METRICS: {logprobs: 1, generated_tokens: null}", "METRICS: {lifetime_prefill_token_count: 1, logprobs: 2}",
         "METRICS: [null, 5, true, logprobs]", "METRICS: [lifetime_prefill_token_count]", "METRICS: ['generated_tokens', \"logprobs\"]", "OTHER: 1"]
NAN, INF = float("nan"), float("inf")
ODD_VALUES = [None, True, False, 0, 1, -1, 2, 0.5, -0.0, NAN, INF, -INF, 10**30, 10**400, 2**63, "", "a", "abc", "1", "1_0", " inf ", "nan", [], {}, [1], [1.0], ["a"], [[1, 2]],
              [[1], [1, 2]], [None], [NAN], [True, False], {"a": 1}, "generated_tokens", ["generated_tokens"], {"logprobs": [1]}, [1, 2, 3], [3, 1, NAN, 2],
              [1, 100, 95.5], [[[1, 2]], [[3, 4]]], [-1], [0, 1], "\u00e9\U0001F600", "\ud83d"]


def load_comparator(megatron):
    path = os.path.join(megatron, "tests/functional_tests/python_test_utils/test_inference_regular_pipeline.py")
    spec = importlib.util.spec_from_file_location("their_comparator", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    logging.disable(logging.CRITICAL)
    return module.test_inference_pipeline


def theirs(function, golden, actual, config):
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            function(golden, actual, config)
            return "passed", ""
        except BaseException as error:  # pytest's Skipped is no Exception
            if type(error).__name__ == "Skipped":
                return "skipped", ""
            return "failed", type(error).__name__


def ours(assay, golden, actual, config):
    done = subprocess.run([assay, "compare", golden, actual, "--config", config, "--compat", "megatron", "--json"], capture_output=True)
    try:
        compat = json.loads(done.stdout)["compat"]
    except (ValueError, KeyError):
        return "no verdict", done.stderr.decode("utf-8", "replace").strip()
    return compat["verdict"], compat["message"].split(":")[0] if compat["verdict"] == "failed" else ""


def request(**changes):
    base = {"input_prompt": "p", "generated_text": "Hello", "generated_tokens": [1, 2, 3], "logprobs": [-0.5, -1.25, -2.0],
            "routing_indices": [[[2, 1]], [[0, 3]]], "routing_indices_token_indices": [0, -1]}
    base.update(changes)
    return {key: value for key, value in base.items() if value is not Ellipsis}


def table():
    """Pairs (golden, actual, METRICS as YAML) made by hand; a str is written as it is, all else as JSON."""
    whole = {"0": request(), "throughput": [1.0, 100.0, 101.0], "mem-max-allocated-bytes": 1000, "lifetime_prefill_token_count": 5}
    everything = "METRICS: [" + ", ".join(METRICS[:6]) + "]"
    for form in FORMS:
        yield whole, whole, form
        yield whole, {"0": request(logprobs=[9.0])}, form
        yield "{", "{", form
        yield {"throughput": [1, 2]}, {}, form
        yield {}, {}, form
    for form in (everything, "METRICS: [generated_text]", "METRICS: [logprobs]", "METRICS: [throughput]", "METRICS: [routing_indices]"):
        yield json.dumps(json.dumps(whole)), whole, form
        yield whole, json.dumps(json.dumps(whole)), form
        yield json.dumps(json.dumps(json.dumps(whole))), whole, form
        yield whole, {"0": request(), "1": request()}, form
        yield {"0": request(), "1": request()}, whole, form
        yield {"0": request(), "async_sched_step_count": 1}, {"0": request(), "async_sched_compaction_step_count": 1}, form
        yield {"0": request(), "unknown_counter": 1}, {"0": request(), "unknown_counter": 1}, form
        yield request(), request(), form
        for text in ("H", "", "Hello world", "hello", "Hell\u00f6", "Hello\n"):
            yield {"0": request(generated_text=text)}, {"0": request()}, form
            yield {"0": request()}, {"0": request(generated_text=text)}, form
        for delta in (0.0, 0.000999, 0.001, 0.0010001, 0.00100000001, -0.001, 1e-12, NAN, INF):
            yield {"0": request()}, {"0": request(logprobs=[-0.5 + delta, -1.25, -2.0])}, form
            yield {"0": request(logprobs=[1e9])}, {"0": request(logprobs=[1e9 + 1 + delta])}, form
        for speed in (89.9, 90.0, 90.00001, 90.45, 100, 119.99, 120.0, 120.6, 121, NAN, INF, 10**30, "x", None, [1]):
            for rest in ([speed], [speed, speed], [speed, 100.0], [100.0, speed, 101.0]):
                yield {"throughput": [1.0, 100.0, 101.0]}, {"throughput": [1.0] + rest}, form
                yield {"throughput": [1.0] + rest}, {"throughput": [1.0, 100.0, 101.0]}, form
        for memory in (950, 949.999, 1050, 1050.001, 0, -1, NAN, INF, "1000", [], [1000], [5, 1000], [5, "1e3", 1001], None, {}, True):
            yield {"mem-max-allocated-bytes": 1000}, {"mem-max-allocated-bytes": memory}, "METRICS: [mem-max-allocated-bytes]"
            yield {"mem-max-allocated-bytes": memory}, {"mem-max-allocated-bytes": 1000}, "METRICS: [mem-max-allocated-bytes]"
    for key in ("generated_tokens", "logprobs", "generated_text", "routing_indices", "routing_indices_token_indices"):
        metric = key if key in METRICS else "routing_indices"
        for left in ODD_VALUES:
            yield {"0": left}, {"0": left}, f"METRICS: [{metric}]"
            for right in (left, [1], "abc", None, Ellipsis):
                yield {"0": request(**{key: left})}, {"0": request(**{key: right})}, f"METRICS: [{metric}]"
                yield {"0": request(**{key: right})}, {"0": request(**{key: left})}, f"METRICS: [{metric}]"
    for text in ("", " ", "nan", "[1]", "5", "null", "\"x\"", "\ufeff{}", "{\"0\": 01}", "{\"0\": {\"logprobs\": [1.]}}", "{\"0\": 1,}", "{'0': 1}", "\x00", "[" * 2000):
        yield text, whole, everything
        yield whole, text, everything
    yield b"\xff\xfe", whole, everything
    yield whole, b"{\"0\": \"\xed\xa0\x80\"}", "METRICS: null"


def goldens_of(megatron):
    root = os.path.join(megatron, "tests/functional_tests/test_cases")
    for folder, _, files in sorted(os.walk(root)):
        config = os.path.join(folder, "model_config.yaml")
        if not os.path.exists(config) or "\nMODE: inference" not in "\n" + open(config, encoding="utf-8").read():
            continue
        for name in sorted(files):
            if name.startswith("golden_values_"):
                yield open(os.path.join(folder, name), encoding="utf-8").read(), open(config, encoding="utf-8").read(), os.path.relpath(folder, root)


def spots(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in list(items)[:12]:
        yield from spots(child, path + (key,))


def put(root, path, value):
    if not path:
        return value
    node = root
    for key in path[:-1]:
        node = node[key]
    if value is Ellipsis:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    return root


def at(root, path):
    for key in path:
        root = root[key]
    return root


def changed(rng, value):
    """A value near `value`, or far from it."""
    kind = rng.random()
    if isinstance(value, bool) or value is None or kind < 0.25:
        return copy.deepcopy(rng.choice(ODD_VALUES))
    if isinstance(value, (int, float)):
        return rng.choice([value + rng.choice([1, -1, 0.0005, 0.0009999, 0.001, 0.0011, -0.00099]), value * rng.choice([0.9, 0.95, 1.05, 1.2, 1.0000000001]), float(value)])
    if isinstance(value, str):
        cut = rng.randint(0, len(value))
        return rng.choice([value[:cut], value + "x", value[:cut] + "\u00e9" + value[cut:], value.swapcase()])
    if isinstance(value, list):
        return rng.choice([value[:-1], value + value[-1:], value[::-1], value[:1], value + [NAN]])
    return rng.choice([{}, dict(list(value.items())[:1]), dict(value, **{"9": 1})])


def mutations(megatron, count, seed):
    rng = random.Random(seed)
    small = []
    for text, config, _ in goldens_of(megatron):
        if len(text) < 40_000:
            small.append((json.loads(text), config))
    small.append(({"0": request(), "1": request(generated_text="other"), "throughput": [1.0, 100.0, 101.0], "mem-max-allocated-bytes": 1000}, None))
    for _ in range(count):
        golden, config = rng.choice(small)
        golden, actual = copy.deepcopy(golden), copy.deepcopy(golden)
        for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
            side = rng.random() < 0.7
            root = actual if side else golden
            try:
                path = rng.choice([one for one in spots(root) if rng.random() < 0.5 or len(one) <= 2])
                value = Ellipsis if path and rng.random() < 0.15 else changed(rng, at(root, path))
                root = put(root, path, value)
            except (IndexError, KeyError, TypeError, OverflowError):
                continue
            golden, actual = (golden, root) if side else (root, actual)
        metrics = config if config is not None and rng.random() < 0.5 else None
        if metrics is None:
            chosen = rng.sample(METRICS[:6], rng.randint(1, 4)) + (METRICS[6:] if rng.random() < 0.03 else [])
            metrics = rng.choice(FORMS) if rng.random() < 0.05 else "METRICS: [" + ", ".join(chosen) + "]"
        if rng.random() < 0.05:
            actual = json.dumps(actual) if rng.random() < 0.5 else actual
        raw = json.dumps(actual, ensure_ascii=rng.random() < 0.5)
        if rng.random() < 0.05:
            where = rng.randint(0, len(raw))
            raw = raw[:where] + rng.choice(["", "x", ",", "\"", "]", "}", "NaN", "\\", "\n"]) + raw[where + rng.randint(0, 3):]
        yield golden, raw, metrics


def write(path, content):
    data = content if isinstance(content, bytes) else (content if isinstance(content, str) else json.dumps(content)).encode("utf-8", "surrogatepass")
    with open(path, "wb") as file:
        file.write(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assay", required=True)
    parser.add_argument("--megatron", required=True)
    parser.add_argument("--mutations", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(4300)
    function = load_comparator(options.megatron)
    os.environ.pop("ENABLE_LIGHTWEIGHT_MODE", None)
    pairs = [("table", *pair) for pair in table()]
    pairs += [(f"tree {where}", text, text, config) for text, config, where in goldens_of(options.megatron)]
    pairs += [("mutation", *pair) for pair in mutations(options.megatron, options.mutations, options.seed)]
    counts, wrong = collections.Counter(), 0
    with tempfile.TemporaryDirectory() as folder:
        def paths(number):
            return [os.path.join(folder, f"{number}.{name}") for name in ("golden.json", "actual.json", "config.yaml")]

        def run_ours(number):
            files = paths(number)
            for path, content in zip(files, pairs[number][1:]):
                write(path, content)
            return ours(options.assay, *files)

        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for number, own in enumerate(pool.map(run_ours, range(len(pairs)))):
                files = paths(number)
                other = theirs(function, *files)
                group = pairs[number][0].split()[0]
                counts[group, "all"] += 1
                counts[group, other[0]] += 1
                if own[0] != other[0]:
                    wrong += 1
                    print(f"DIFFERENT {pairs[number][0]} {number}: theirs {other}, ours {own}")
                    for content in pairs[number][1:]:
                        print("   ", repr(content)[:400])
                elif own[1] != other[1]:
                    counts[group, "other exception"] += 1
                    counts["class", other[1], own[1]] += 1
                for path in files:
                    os.remove(path)
    for key, count in sorted(counts.items(), key=str):
        print(*key, count)
    print(f"{len(pairs)} pairs, {wrong} differing verdicts")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
