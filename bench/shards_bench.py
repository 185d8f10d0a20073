#!/usr/bin/env python3
"""Replays many cases in shards and merges them; prints how long each step took.

  bench/shards_bench.py --assay build/ci/bin/assay --cases 10000 --shards 8 --at-once 2

Makes cases of two requests with 30 tokens and logprobs each, judged by generated_tokens, generated_text and logprobs,
runs every shard with its reports, merges them with all reports and checks that every case is IDENTICAL. Exit code 1
where that is not so, or where --limit seconds are exceeded.
"""
import argparse
import json
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

CONFIG = """ENV_VARS:
  CUDA_DEVICE_MAX_CONNECTIONS: 1
  NVTE_ALLOW_NONDETERMINISTIC_ALGO: 0
  NCCL_ALGO: Ring
TEST_TYPE: frozen-start
MODE: inference
MODEL_ARGS:
  --num-layers: 24
  --hidden-size: 1152
  --num-attention-heads: 16
  --max-position-embeddings: 1024
  --seq-length: 1024
  --micro-batch-size: 1
  --load: ${{CHECKPOINT_LOAD_PATH}}/model{model}
  --ckpt-format: torch_dist
  --bf16: true
  --temperature: 1.0
  --top_k: 1
  --return-log-probs: true
  --num-tokens-to-generate: 30
  --inference-max-seq-length: 4096
  --use-legacy-static-engine: true
  --tokenizer-type: NullTokenizer
  --vocab-size: 1000
  --prompts: "1 2 3 4"
  --output-path: ${{INFERENCE_OUTPUT_PATH}}
METRICS:
  - "generated_tokens"
  - "generated_text"
  - "logprobs"
ASSAY:
  engine: replay
"""


def write_cases(folder, count):
    for number in range(count):
        case = folder / f"model{number // 1000}" / f"case_{number:05}"
        case.mkdir(parents=True)
        (case / "model_config.yaml").write_text(CONFIG.format(model=number // 1000))
        golden = {}
        for request in range(2):
            golden[str(request)] = {
                "input_prompt": f"prompt {request}",
                "generated_text": f" text of case {number} request {request}",
                "generated_tokens": [(number * 7 + i * 13 + request) % 1000 for i in range(30)],
                "latency": 0.5,
                "logprobs": [-(1 + i % 9 + (number * 31 + i * 977) % 1000000 / 1e6) for i in range(49)],
            }
        (case / "golden_values_dev_any.json").write_text(json.dumps(golden))


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_shards(arguments, work):
    """Starts all shards, --at-once at a time; waits for the last one. Returns their output folders."""
    outputs = [work / f"shard{index}" for index in range(1, arguments.shards + 1)]
    waiting = list(enumerate(outputs, 1))
    running = []
    while waiting or running:
        while waiting and len(running) < arguments.at_once:
            index, output = waiting.pop(0)
            words = [arguments.assay, "run", str(work / "cases"), "--set", "CHECKPOINT_LOAD_PATH=/models", "--quiet",
                     "--jobs", str(arguments.jobs), "--shard", f"{index}/{arguments.shards}", "--output", str(output)]
            running.append((words, subprocess.Popen(words, stdout=subprocess.DEVNULL)))
        for words, child in list(running):
            if child.poll() is None:
                continue
            if child.returncode != 0:
                sys.exit(f"shards_bench: exit code {child.returncode} of {' '.join(words)}")
            running.remove((words, child))
        time.sleep(0.002)
    return outputs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assay", default="build/ci/bin/assay", help="the program")
    parser.add_argument("--cases", type=int, default=10000)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--at-once", type=int, default=2, help="shards that run at the same time")
    parser.add_argument("--jobs", type=int, default=1, help="workers of each shard")
    parser.add_argument("--limit", type=float, default=0, help="seconds for shards and merge together; 0: none")
    parser.add_argument("--keep", action="store_true", help="do not remove the temporary folder")
    arguments = parser.parse_args()
    arguments.assay = str(pathlib.Path(arguments.assay).resolve())
    work = pathlib.Path(tempfile.mkdtemp(prefix="assay-shards-"))
    try:
        write_cases(work / "cases", arguments.cases)
        begin, used = time.monotonic(), processor_seconds()
        outputs = run_shards(arguments, work)
        middle, middle_used = time.monotonic(), processor_seconds()
        words = [arguments.assay, "merge", "--quiet", "--output", str(work / "merged"), *map(str, outputs)]
        code = subprocess.run(words, stdout=subprocess.DEVNULL).returncode
        end, end_used = time.monotonic(), processor_seconds()
        report = json.loads((work / "merged" / "report.json").read_text())
        identical = sum(case["verdict"] == "IDENTICAL" for case in report["cases"])
        journals = sum((output / "results.jsonl").stat().st_size for output in outputs)
        print(f"{arguments.cases} cases, {arguments.shards} shards, {arguments.at_once} at once, {arguments.jobs} job(s) each")
        print(f"shards  {middle - begin:7.2f} s   {middle_used - used:7.2f} s of processors")
        print(f"merge   {end - middle:7.2f} s   {end_used - middle_used:7.2f} s of processors")
        print(f"total   {end - begin:7.2f} s   {end_used - used:7.2f} s of processors")
        print(f"journals of the shards: {journals / 1e6:.1f} MB, {journals / arguments.cases:.0f} bytes a case")
        if code != 0 or identical != arguments.cases:
            sys.exit(f"shards_bench: merge ended with {code}, {identical} of {arguments.cases} cases IDENTICAL")
        if 0 < arguments.limit < end - begin:
            sys.exit(f"shards_bench: {end - begin:.2f} s, the limit is {arguments.limit} s")
    finally:
        if arguments.keep:
            print(work)
        else:
            shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
