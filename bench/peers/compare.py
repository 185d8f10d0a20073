#!/usr/bin/env python3
"""Our CPU backend beside PyTorch and llama.cpp: the same weights, in one run, in turn. See README.md.

Every program loads once and sleeps while the others work. Printed for each model: how far the programs agree on the
likeliest tokens and on logprobs, then the median of each measure over the rounds and the median of the rounds' ratios.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROMPT, PAST, STEPS = 512, 128, 32
CHECK = [(17 + 13 * i) % 16384 for i in range(48)]
MODELS = {  # PyTorch's ways; oneDNN's own layout is for fp32, bf16 has it anyway
    "dense-bf16": ["eager", "compile"],
    "dense-fp32": ["eager", "onednn"],
    "moe-bf16": ["eager"],
}


class Worker:
    """A program that answers one line with one line. Its first line describes it."""

    def __init__(self, name, command):
        self.name = name
        environment = dict(os.environ, THP_MEM_ALLOC_ENABLE="1", PYTHONWARNINGS="ignore")  # huge pages for PyTorch
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"compare: {name} ended before it said what it is: {' '.join(command)[:200]}")
        self.about = json.loads(line)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            sys.exit(f"compare: {self.name} answers '{line[:60]}' with '{answer}'")
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def scores(worker):
    values = worker.ask("score " + " ".join(map(str, CHECK))).split()
    return [(int(values[i]), float(values[i + 1]), float(values[i + 2])) for i in range(0, len(values), 3)]


def agreement(own, other, most):
    same = sum(a[0] == b[0] for a, b in zip(own, other))
    apart = [abs(a[2] - b[2]) for a, b in zip(own, other)]
    print(
        f"    likeliest token equal at {same} of {len(own)} positions; logprobs of given tokens apart by"
        f" {statistics.mean(apart):.5f} on average, {max(apart):.5f} at most"
    )
    if statistics.mean(apart) > most:
        sys.exit(f"compare: more than {most} apart on average: these are not the same model")


def start(name, args, folder):
    workers = {"assay": Worker("assay", [args.own, name, json.dumps({"threads": args.threads})])}
    about = workers["assay"].about
    config = json.dumps(about["config"])
    for way in MODELS[name]:
        if way != "compile" or args.compile:
            command = [sys.executable, HERE / "torch_worker.py", about["checkpoint"], config, str(args.threads), way]
            workers[f"PyTorch {way}"] = Worker(f"PyTorch {way}", list(map(str, command)))
    file = folder / f"{name}.gguf"
    if not file.exists():
        subprocess.run([sys.executable, HERE / "gguf_of.py", about["checkpoint"], config, file], check=True)
    command = [sys.executable, HERE / "llama_worker.py", file, about["config"]["vocab_size"], args.threads]
    workers["llama.cpp"] = Worker("llama.cpp", list(map(str, command)))
    return workers


def measure(workers, rounds):
    """Tokens a second of each worker, one entry a round. In every other round they take turns from the last on."""
    found = {what: {name: [] for name in workers} for what in ("prefill", "decode")}
    asked = {"prefill": (f"prefill {PROMPT}", PROMPT), "decode": (f"decode {PAST} {STEPS}", STEPS)}
    for number in range(rounds + 1):  # the first one warms up
        for what, (line, tokens) in asked.items():
            for name, worker in sorted(workers.items(), reverse=number % 2 == 1):
                rate = tokens / float(worker.ask(line))
                if number > 0:
                    found[what][name].append(rate)
    return found


def report(workers, found):
    for what, rates in found.items():
        print(f"  {what}, tokens/s")
        for name, values in rates.items():
            ratio = statistics.median(a / b for a, b in zip(rates["assay"], values))
            print(
                f"    {name:16s} median {statistics.median(values):8.2f}  ({min(values):.2f} .. {max(values):.2f})"
                f"   assay / this: {ratio:5.2f}"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--own", required=True, help="the program own_worker of the build")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where the GGUF files go (4 GB in all)")
    parser.add_argument("--compile", action="store_true", help="measure torch.compile, too (a minute to compile)")
    args = parser.parse_args()
    print(f"{processor()}, {args.threads} threads; prompt of {PROMPT}; {STEPS} tokens behind {PAST}")
    for name in args.models:
        workers = start(name, args, Path(args.folder))
        print(f"{name}: {workers['assay'].about['bytes_read'] / 1e9:.2f} GB of weights")
        own = scores(workers["assay"])
        for worker in workers.values():
            print(f"  {worker.about['device']}")
            if worker.name != "assay":
                agreement(own, scores(worker), 0.05 if name.endswith("bf16") else 0.005)
        report(workers, measure(workers, args.rounds))
        for worker in workers.values():
            worker.close()
        sys.stdout.flush()


if __name__ == "__main__":
    main()
