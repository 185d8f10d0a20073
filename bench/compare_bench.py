#!/usr/bin/env python3
"""How fast `assay compare` is beside Python's json and numpy doing the same.

Writes a golden of about 100 MB (prompt-free requests with generated_tokens, logprobs and routing_indices) and a result
whose logprobs differ a little, always the same ones, then times whole processes, the two programs in turn:

    bench/compare_bench.py --assay build/release/bin/assay

Prints medians of elapsed and of processor seconds, their ratios, and the largest resident memory. Needs numpy.
"""
import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

LAYERS, TOPK, EXPERTS = 12, 6, 64
METRICS = ["generated_tokens", "logprobs", "routing_indices"]


def write_files(folder, requests, tokens):
    """Golden and result as Python's json writes them; logprobs are fp32 values, as engines give them."""
    random = np.random.default_rng(20261129)
    golden, actual = {}, {}
    for request in range(requests):
        ids = random.integers(0, 128000, tokens).tolist()
        logprobs = (-random.exponential(1.5, tokens)).astype(np.float32)
        noise = random.normal(0, 2e-6, tokens).astype(np.float32)
        steps = random.integers(1, EXPERTS // TOPK + 1, (tokens, LAYERS, TOPK))
        routing = (np.cumsum(steps, axis=2) - 1).tolist()
        for to, values in ((golden, logprobs), (actual, logprobs + noise)):
            to[str(request)] = {
                "generated_text": "some text\n" * 4,
                "generated_tokens": ids,
                "logprobs": values.astype(np.float64).tolist(),
                "routing_indices": routing,
            }
    paths = [os.path.join(folder, "golden_values_dev_any.json"), os.path.join(folder, "actual.json")]
    for path, results in zip(paths, (golden, actual)):
        with open(path, "w") as file:
            json.dump(results, file)
    return paths


def compare_in_python(golden_path, actual_path, metrics):
    """What the comparators judge, the way a test script does it."""
    with open(golden_path) as file:
        golden = json.load(file)
    with open(actual_path) as file:
        actual = json.load(file)
    assert golden.keys() == actual.keys()
    worst = 0.0
    for request, reference in golden.items():
        candidate = actual[request]
        if "generated_tokens" in metrics:
            assert reference["generated_tokens"] == candidate["generated_tokens"]
        if "logprobs" in metrics:
            a, b = np.array(reference["logprobs"]), np.array(candidate["logprobs"])
            assert np.isfinite(a).all() and np.isfinite(b).all()
            worst = max(worst, float(np.abs(a - b).max()))
        if "routing_indices" in metrics:
            a, b = (np.sort(np.array(r["routing_indices"], np.uint16), axis=-1) for r in (reference, candidate))
            assert np.array_equal(a, b)
    print(f"max |difference| of logprobs {worst:.3g}")


def timed(command):
    """Elapsed seconds, processor seconds, peak resident MB and output of one process, which must end with code 0."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    if status != 0:
        sys.exit(f"{' '.join(command)} failed with status {status}:\n{output}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assay", default="build/release/bin/assay", help="the program to measure")
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=5000, help="tokens a request")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--python", nargs=3, metavar=("GOLDEN", "ACTUAL", "METRICS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.python:
        return compare_in_python(options.python[0], options.python[1], options.python[2].split(","))
    plugins = subprocess.run([options.assay, "plugin", "list"], check=True, capture_output=True, text=True).stdout
    metrics = [metric for metric in METRICS if metric in plugins]
    with tempfile.TemporaryDirectory() as folder:
        with multiprocessing.Pool(1) as pool:  # a process of its own: a child's peak memory begins with its parent's
            golden, actual = pool.apply(write_files, (folder, options.requests, options.tokens))
        config = os.path.join(folder, "model_config.yaml")
        with open(config, "w") as file:
            file.write("TEST_TYPE: regular\nMODE: inference\nMODEL_ARGS: {}\nMETRICS:\n" + "".join(f"  - {m}\n" for m in metrics))
        commands = {
            "assay compare": [options.assay, "compare", golden, actual, "--config", config],
            "json + numpy": [sys.executable, __file__, "--python", golden, actual, ",".join(metrics)],
        }
        seconds = {name: [] for name in commands}
        processor = {name: [] for name in commands}
        peak = {name: 0.0 for name in commands}
        output = {}
        for _ in range(options.runs):
            for name, command in commands.items():
                elapsed, busy, memory, output[name] = timed(command)
                seconds[name].append(elapsed)
                processor[name].append(busy)
                peak[name] = max(peak[name], memory)
        megabytes = os.path.getsize(golden) / 1e6
        print(f"golden of {megabytes:.0f} MB, {options.requests} requests, metrics {', '.join(metrics)}")
        for name in commands:
            print(f"{name}: median of {options.runs} {statistics.median(seconds[name]):.3f} s elapsed "
                  f"({min(seconds[name]):.3f} .. {max(seconds[name]):.3f}), {statistics.median(processor[name]):.3f} s "
                  f"of processors, peak {peak[name]:.0f} MB; {output[name].splitlines()[-1].strip()}")
        ratios = [statistics.median(kind["json + numpy"]) / statistics.median(kind["assay compare"])
                  for kind in (seconds, processor)]
        print(f"assay compare is {ratios[0]:.1f} times as fast by elapsed time, {ratios[1]:.1f} times by processor time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
