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
PROFILE = ['{"partition": "p", "time": "1:00", "gres": "gpu:{count}", "extra": ["--exclusive"], "workers": {"tasks": 2, "losses": 1}}',
           '{"start": ["ssh", "{host}", "{command}"], "poll": ["a", "{id}"], "hosts": ["n1:2", "n2"], "lost_codes": [255]}',
           '{"workers": {"heartbeat": 1.5, "cpus": 2, "poll": 0.5}}']
SCONTROL = ("JobId=2 ArrayJobId=1 ArrayTaskId=0 JobName=a JobState=FAILED Reason=NonZeroExitCode Restarts=0 ExitCode=2:0 BatchHost=n1\n"
            "JobId=1 ArrayJobId=1 ArrayTaskId=2-4,7%2 JobState=PENDING Reason=JobArrayTaskLimit NodeList=(null)\n")
SACCT = "1_0|COMPLETED|0:0|n1\n1_1|CANCELLED by 0|0:15|n2\n1_[2-3]|PENDING|0:0|None assigned\n"
SHARDS = {"schema": 1, "partition": "sha256:0", "count": 2, "cases": [
    {"name": "a", "path": "p/a", "model": "m", "relations": [""], "shard": 1},
    {"name": "b", "path": "p/b", "model": "m", "relations": ["", "prefix_cache"], "shard": 2}]}
DURATIONS = {"schema": 1, "cases": {"a": {"seconds": 1.5, "load_seconds": 0.5, "repeats": 2}}}
METRICS = {"lm loss": {"start_step": 1, "end_step": 3, "step_interval": 1, "values": {"1": 10.5, "2": 1e-05, "3": "nan"}}}
TOKEN = {"token": " b", "logprob": -0.5, "bytes": [32, 98], "top_logprobs": [{"token": " b", "logprob": -0.5, "bytes": [32, 98]}]}
COMPLETION = {"choices": [{"index": 0, "text": " b c", "finish_reason": "stop", "logprobs": {
    "tokens": [" b", " c"], "token_logprobs": [-0.5, -1], "text_offset": [0, 2], "top_logprobs": [{" b": -0.5}, {" c": -1}]}}],
    "usage": {"prompt_tokens": 2, "completion_tokens": 2}, "model": "m"}
CHAT = {"choices": [{"index": 0, "message": {"role": "assistant", "content": " b"}, "finish_reason": "stop",
                     "logprobs": {"content": [TOKEN]}}], "usage": {"prompt_tokens": 2, "completion_tokens": 1}}
STREAM = [{"choices": [{"index": 0, "text": " b", "logprobs": {"tokens": [" b"], "token_logprobs": [-0.5]}}]},
          {"choices": [{"index": 0, "text": " c", "finish_reason": "length"}], "usage": {"completion_tokens": 2}}]
CHAT_STREAM = [{"choices": [{"index": 0, "delta": {"content": " b"}, "logprobs": {"content": [TOKEN]}}]},
               {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
RECORDS = ('{"id": 0, "generated_text": "b", "generated_tokens": [1, 2], "logprobs": [-0.5, -1]}\n{"id": 1, "error": "no"}\n'
           '{"id": "2", "generated_text": "\\u00e9", "latency": 0.5}\n')
SHELL = ['"two words" \'one\' \\$A', "${A} $B [a b] (c)", "([0]*1+[1]*26)", "MODE: inference\nMODEL_ARGS:\n  --load: ${A}\n"]


def contents(pattern):
    for path in sorted(ROOT.glob(pattern)):
        if path.is_file():
            yield path.read_bytes()


def sent_events(chunks):
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks).encode() + b"data: [DONE]\n\n"


def tensorboard():
    """Records as the target frames them: a file version, and two scalars at one step each."""
    version = b"\x1a\x0dbrain.Event:2"
    records = []
    for step in (1, 2):
        value = b"\x0a\x07lm loss\x15\x00\x00\x28\x41"  # tag, simple_value 10.5
        summary = b"\x0a" + bytes([len(value)]) + value
        records.append(b"\x10" + bytes([step]) + b"\x2a" + bytes([len(summary)]) + summary)
    return b"\0" + b"".join(bytes([len(record)]) + record for record in [version, *records])


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
        "shard_file": [json.dumps(one).encode() for one in (SHARDS, DURATIONS)] + [b"2/8", b"\n".join(lines)],
        "python_json": [json.dumps(one).encode() for one in (SHARDS, METRICS, CHAT)] + [b'[NaN, -Infinity, 1e400, 12345678901234567890]'],
        "tensorboard": [tensorboard()],
        "metric_file": [json.dumps(METRICS).encode(), json.dumps(json.dumps(METRICS)).encode()],
        "redact": [b"hunter2hunter2\0export A=hunter2hunter2 B=x", b'a"b\\c\0{"A": "a\\"b\\\\c"}'],
        "openai_stream": [b"\x0e" + sent_events(STREAM), b"\x0f" + sent_events(CHAT_STREAM)],
        "openai_answer": [b"\x04" + json.dumps(COMPLETION).encode(), b"\x05" + json.dumps(CHAT).encode(),
                          b'\x00{"error": {"message": "no", "code": 400}}'],
        "process_output": [b"\0" + RECORDS.encode(), b"\0" + small],
        "slurm_text": [SCONTROL.encode(), SACCT.encode()],
        "launcher_options": [one.encode() for one in PROFILE],
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
