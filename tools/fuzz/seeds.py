#!/usr/bin/env python3
"""Makes small corpora of seeds, one folder a parser, from files that are in the tree. Usage: seeds.py FOLDER"""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LARGEST = 16 << 10  # bytes of a seed: larger ones slow the search down

TEMPLATES = ["{a}-{n:05d}", "${{HOME}} {list[0]!r:>8}", "{a:{w}.2}", "{map[k]} {t} {none} {n:+,}", "{{}}"]
FILTERS = ['name:gpt* and not (metric:logprobs or tag:slow)', '"a b" engine:buffered', "model:moe or [a-c]*?", "not not x"]
OPTIONS = ['{"whole": -3, "small": 2, "number": 0.25, "flag": true, "text": "x", "choice": "b", "texts": ["a", "b"]}']


def contents(pattern):
    for path in sorted(ROOT.glob(pattern)):
        if path.is_file():
            yield path.read_bytes()


def seeds():
    prompts = [line for text in contents("golden/*/prompts.jsonl") for line in text.splitlines()]
    checkpoint = list(contents("golden/*/checkpoint/*/.metadata"))
    archive = next(contents("golden/*/checkpoint/*/__0_0.distcp"), b"")
    return {
        "filter": [f.encode() for f in FILTERS],
        "format_template": [t.encode() for t in TEMPLATES],
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
