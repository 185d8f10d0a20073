#!/usr/bin/env python3
"""Digest of MODEL_ARGS as PyYAML reads it: the oracle of model_args_digest() in list.h.

Usage: model_args_digest.py FILE_OR_DIRECTORY...   prints "sha256  path" for every model_config.yaml, sorted by path.
Scalars keep their text (no implicit types), merges and duplicate keys are PyYAML's own.
"""
import hashlib
import json
import pathlib
import re
import sys

import yaml


class TextLoader(yaml.SafeLoader):
    yaml_implicit_resolvers = {}


TextLoader.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile(r"^(?:<<)$"), ["<"])


def canonical(path):
    with open(path, encoding="utf-8") as file:
        args = (yaml.load(file, Loader=TextLoader) or {}).get("MODEL_ARGS")
    pairs = list(args.items()) if isinstance(args, dict) else []
    return json.dumps(pairs, ensure_ascii=False, separators=(",", ":"))


def main(arguments):
    files = set()
    for argument in map(pathlib.Path, arguments):
        files |= set(argument.rglob("model_config.yaml")) if argument.is_dir() else {argument}
    for path in sorted(files):
        print(hashlib.sha256(canonical(path).encode()).hexdigest(), "", path)


if __name__ == "__main__":
    main(sys.argv[1:])
