#!/usr/bin/env python3
"""Makes small corpora of seeds, one folder a parser, from files that are in the tree. Usage: seeds.py FOLDER"""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LARGEST = 16 << 10  # bytes of a seed: larger ones slow the search down

RECIPE = """type: basic
format_version: 1
maintainers: [mcore]
loggers: [stdout]
spec:
  name: '{test_case}_{environment}_{platforms}'
  model: gpt
  build: mcore-pyt-{environment}
  nodes: 1
  gpus: 8
  platforms: dgx_a100
  artifacts: {/mnt/a: "text/{platforms}"}
  script: |-
    ARGUMENTS=("TRAINING_SCRIPT_PATH=pretrain_gpt.py" "OUTPUT_PATH={assets_dir}")
    run ${{ARGUMENTS[@]}} {n_repeat:>3} {name!r}
products:
  - test_case: [one]
    cadence: [pr, weekly]
    products:
      - environment: [dev, lts]
        scope: [mr, nightly]
        platforms: [dgx_h100]
        n_repeat: [1, 0x2]
"""
BUILD = "type: build\nformat_version: 1\nspec:\n  name: mcore\n  source: {image: registry/x}\n"
VERDICT = {"verdict": "IDENTICAL", "reason": "all equal", "golden": "g.json", "metrics": []}
EVENTS = [
    {"event": "run_started", "t": 1.5, "schema": 1, "run_id": "r", "command": ["assay", "run"], "options": {},
     "environment": "dev", "platform": "", "cases": 1, "filtered": 0, "groups": 1},
    {"event": "case_planned", "t": 1.6, "case": "a/b", "name": "a/b", "path": "p", "model": "a", "metrics": ["logprobs"],
     "reproduce": "assay run p"},
    {"event": "case_started", "t": 1.7, "case": "a/b", "name": "a/b", "worker": "w000"},
    {"event": "case_finished", "t": 2.5, "case": "a/b", "verdict": VERDICT,
     "summary": {"engine": "replay", "seconds": 0.5, "max_abs_difference": "nan"}, "actual": "", "log": ""},
    {"event": "run_finished", "t": 2.6, "seconds": 1.0, "counts": {"IDENTICAL": 1}, "exit_code": 0, "loads": 1,
     "crashes": 0, "cancelled": False},
]
TEMPLATES = ["{a}-{n:05d}", "${{HOME}} {list[0]!r:>8}", "{a:{w}.2}", "{map[k]} {t} {none} {n:+,}", "{{}}"]
FILTERS = ['name:gpt* and not (metric:logprobs or tag:slow)', '"a b" engine:buffered', "model:moe or [a-c]*?", "not not x"]
OPTIONS = ['{"whole": -3, "small": 2, "number": 0.25, "flag": true, "text": "x", "choice": "b", "texts": ["a", "b"]}']
SHELL = ['"two words" \'one\' \\$A', "${A} $B [a b] (c)", "([0]*1+[1]*26)", "MODE: inference\nMODEL_ARGS:\n  --load: ${A}\n"]


def contents(pattern):
    for path in sorted(ROOT.glob(pattern)):
        if path.is_file():
            yield path.read_bytes()


def seeds():
    configs = list(contents("testcases/*/*/model_config.yaml"))
    goldens = [g for g in contents("testcases/*/*/golden_values_*.json")]
    small = json.dumps({"0": {"input_prompt": "a\n", "generated_text": "b\u00e9", "generated_tokens": [1, 2],
                              "logprobs": [-0.5, -1e-9, 0], "tpot": [0.5], "routing_indices": [[[0, 1]], [[2, 3]]],
                              "generated_top_n_logprobs": [{"x": -1.5}, {}]}, "throughput": [1.5, 2]}).encode()
    pending = json.dumps({"0": {"generated_text": "b", "generated_tokens": [1]}, "assay": {"pending": {
        "recorded_at": "2026-01-01T00:00:00Z", "run_id": "r", "command": "assay record", "golden_sha256": ""}}}).encode()
    prompts = [line for text in contents("golden/*/prompts.jsonl") for line in text.splitlines()]
    checkpoint = list(contents("golden/*/checkpoint/*/.metadata"))
    archive = next(contents("golden/*/checkpoint/*/__0_0.distcp"), b"")
    licence = next(contents("golden/licences/gpl-3.0.txt"), b"")[:4000]
    prompt, rest = licence[100:200], licence[200:]
    lines = [json.dumps(event).encode() for event in EVENTS]
    return {
        "case_config": configs,
        "model_args": configs[:4] + [s.encode() for s in SHELL],
        "recipe": [RECIPE.encode(), BUILD.encode()],
        "format_template": [t.encode() for t in TEMPLATES],
        "golden": goldens + [small, json.dumps(small.decode()).encode()],
        "pending": goldens + [pending],
        "journal": [b"\n".join(lines) + b"\n"],
        "events": lines + [json.dumps(VERDICT).encode()],
        "filter": [f.encode() for f in FILTERS],
        "known_completion": [b"\0".join([licence, prompt, rest[:300], rest[:200]])],
        "comparator_options": [b'{"tolerance": 0.001}', json.dumps(VERDICT).encode()],
        "plugin_options": [o.encode() for o in OPTIONS],
        "prompts": prompts + [b'{"ids": [1, -2]}'],
        "tokenizer_vocabulary": [b'{"rank":256,"token_bytes":"YWI=","token_str":"ab"}'],
        "pickle": checkpoint,
        "checkpoint_archive": [archive[-4000:], archive[:4000]],
    }


def main():
    folder = pathlib.Path(sys.argv[1])
    for parser, texts in seeds().items():
        (folder / parser).mkdir(parents=True, exist_ok=True)
        kept = [text for text in texts if text and len(text) <= LARGEST] or [text[:LARGEST] for text in texts[:1]]
        for number, text in enumerate(kept):
            (folder / parser / f"seed{number:03}").write_bytes(text)


if __name__ == "__main__":
    main()
