#!/usr/bin/env python3
"""Fuzzes every parser for a while and prints a table; ends with 1 where one crashed, hung or broke a property.

Usage: tools/fuzz/run.py [--seconds N] [--jobs N] [--build FOLDER] [PARSER...]
Build first: cmake --preset ci-sanitize && cmake --build build/ci-sanitize --target fuzz (tools/test.sh fuzz does both).
Inputs that were found stay in FOLDER/fuzz/corpus and are used again; those that failed in FOLDER/fuzz/failures.
"""
import argparse
import base64
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SLOWEST = 10  # seconds that one input may take
MEMORY = 2048  # MB


def fuzz(parser, program, build, seconds):
    corpus = build / "fuzz" / "corpus" / parser
    failures = build / "fuzz" / "failures" / parser
    for folder in (corpus, failures):
        folder.mkdir(parents=True, exist_ok=True)
    log = build / "fuzz" / "failures" / f"{parser}.log"
    command = [program, corpus, build / "fuzz" / "seeds" / parser, f"-max_total_time={seconds}", f"-timeout={SLOWEST}",
               f"-rss_limit_mb={MEMORY}", "-max_len=16384", "-print_final_stats=1", f"-artifact_prefix={failures}/",
               "-use_value_profile=0", "-verbosity=1"]
    environment = dict(os.environ, ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1",
                       UBSAN_OPTIONS="print_stacktrace=1")
    begin = time.monotonic()
    with log.open("wb") as out:
        code = subprocess.run([str(word) for word in command], stdout=out, stderr=subprocess.STDOUT, env=environment,
                              timeout=seconds + 120, check=False).returncode
    text = log.read_text(errors="replace")
    stats = dict(re.findall(r"^stat::(\w+):\s+(\d+)", text, re.M))
    covered = re.findall(r"\bcov: (\d+)", text)
    kept = sorted(failures.iterdir(), key=lambda path: path.stat().st_mtime)
    return {"parser": parser, "code": code, "seconds": time.monotonic() - begin, "log": log, "text": text,
            "executions": int(stats.get("number_of_executed_units", 0)), "new": int(stats.get("new_units_added", 0)),
            "coverage": int(covered[-1]) if covered else 0, "failure": kept[-1] if code and kept else None}


def explain(result):
    print(f"\nfuzz: {result['parser']} failed with code {result['code']}; its output is {result['log']}")
    for line in result["text"].splitlines():
        if re.search(r"ERROR|SUMMARY|runtime error|property does not hold|^    #[0-9] ", line):
            print("  " + line[:200])
    if result["failure"]:
        data = result["failure"].read_bytes()
        print(f"  input: {result['failure']} ({len(data)} bytes), base64 {base64.b64encode(data[:3000]).decode()}")


def main():
    parse = argparse.ArgumentParser(description="Fuzzes every parser for a while.")
    parse.add_argument("--seconds", type=int, default=60, help="for each parser")
    parse.add_argument("--jobs", type=int, default=2, help="parsers at once")
    parse.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "build" / "ci-sanitize")
    parse.add_argument("parser", nargs="*", help="default: all")
    given = parse.parse_args()
    programs = {path.name.removeprefix("fuzz_"): path for path in sorted((given.build / "fuzz").glob("fuzz_*"))}
    unknown = [name for name in given.parser if name not in programs]
    if unknown or not programs:
        sys.exit(f"fuzz: no parser {' '.join(unknown)}; built ones: {' '.join(programs) or 'none'}")
    subprocess.run([sys.executable, HERE / "seeds.py", given.build / "fuzz" / "seeds"], check=True)
    for name in programs:
        (given.build / "fuzz" / "seeds" / name).mkdir(parents=True, exist_ok=True)
    chosen = given.parser or list(programs)
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        results = list(pool.map(lambda name: fuzz(name, programs[name], given.build, given.seconds), chosen))
    print(f"{'parser':22} {'executions':>11} {'per second':>11} {'coverage':>9} {'new units':>9}")
    for result in results:
        rate = result["executions"] / max(result["seconds"], 1)
        print(f"{result['parser']:22} {result['executions']:11,} {rate:11,.0f} {result['coverage']:9,} {result['new']:9,}"
              f"{'  FAILED' if result['code'] else ''}")
    bad = [result for result in results if result["code"]]
    idle = [result["parser"] for result in results if not result["code"] and result["executions"] < 100]
    for result in bad:
        explain(result)
    if idle:
        print(f"\nfuzz: fewer than 100 executions, which proves nothing: {' '.join(idle)}")
    sys.exit(1 if bad or idle else 0)


if __name__ == "__main__":
    main()
