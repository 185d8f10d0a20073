#!/usr/bin/env python3
"""Compares the words of `assay show --json` with those that Megatron-LM's own shell script makes.

Usage: check_words.py --assay BIN --yq BIN --megatron DIR [--fuzz N] [--seed S] [--expectations FILE] [--jobs N]

--yq is mikefarah's yq v4; envsubst and xargs are those of the PATH. From DIR (a checkout) the parts of
tests/functional_tests/shell_test_utils/_run_training.sh that build the words are cut out and run by bash on a copy of each
config; nothing of it is kept. All configs of the tree are compared, with every MODEL_ARGS_n; --fuzz adds configs of odd
values. Ours may refuse a config where the shell would act; where ours has words they must be equal.
--expectations writes what the script gave for the fixed odd values, as the table that harness_words_test reads.
Exit code 1 on a difference.
"""
import argparse
import concurrent.futures
import json
import os
import random
import re
import shutil
import subprocess
import tempfile

VARIABLES = {
    "CHECKPOINT_LOAD_PATH": "/checkpoints", "CHECKPOINT_SAVE_PATH": "/save dir", "DATA_PATH": "/data",
    "DATA_CACHE_PATH": "/cache", "TENSORBOARD_PATH": "/out/tb", "OUTPUT_PATH": "/out", "INFERENCE_OUTPUT_PATH": "/out/r.json",
    "TRAINING_SCRIPT_PATH": "pretrain_gpt.py", "RUN": "7", "EMPTY": "", "FLAG": "true", "LIST": "[p, 'q r']", "HASH": "v # w",
}

# Values as they stand in a config, behind "--key: ".
ODD = [
    "true", "True", "TRUE", "false", "null", "~", "", "''", '""', '"true"', "' true '", "1e-3", "-1", "0x1F", "010", "1_000", "yes", "12:30:45",
    "2020-01-01", ".5", "+1", "a b", "'a  b'", '" lead"', '"a\\tb"', '"a\\nb"', '"a\\n"', "|\n    a b", "|-\n    a\n    b: c", ">\n    a\n    b", "(a b)",
    "([0]*1+[1]*26)", "(a)(b)", "(a)", "()", "[]", "[a]", "[a b]", "[a, b]", "[a, 'b c', \"d\"]", "'[a b]'", "'[a]b]'", "'[]'", "'[ ]'", "['it''s']",
    "[\"a'b\"]", "\n  - a", "\n  - a b\n  - 'c d'", "a|b", "a | b", "a(b", "a)b", "a;b", "'a; b'", "a&b", "'a & b'", "a<b", "'a > b'", "don't", "'don''t stop'",
    "don\\'t", "a\\b", "'a \\n b'", "'a \\\\n b'", '"a \\\\n b"', "'\"x y\"'", "'\"x\\y z\"'", "\"'x  y'\"", "a\\", "'a b\\'", "'a b\\\\'", "a\\\\", "'\"'",
    "'a\"b'", "'x\"\"y'", "-n", "-n x", "-E y", "-e x", "-nE", "--help", "--version", "--", "-", "*", "a*", "M-M*-M", "./*", "a?c", "[ab]c", "'x[0]=1'", "{a,b}",
    "'{a,b}'", "a{1..3}b", "'a {1,2} b'", "{}", "'{}'", "'a{b'", "~/x", "~", "a~b", "a=~/b", "a:~", "'#x'", "a#b", "'a #b'", "a #b", "$RUN", "${RUN}", "a$RUN.b",
    "'$RUN x'", "${EMPTY}", "a${EMPTY}b", "$FLAG", "$LIST", "$HASH", "'$HASH'", "$UNSET", "'a \\\\$UNSET'", "'\\$RUN'", "'a \\\\$RUN'", "$", "a$", "'a $ b'", "'5$'", "'$5 x'",
    "'$$'", "'${RUN'", "'${RUN:-x}'", "'`true`'", "'a `true` b'", "'$(true)'", "a: b", "'a: b'", "'a:b'", "http://h/x?y=1", "127,0", "é ü", "'a\u00a0b'", "\"\\u2028x\"", "!!str true",
    "!!str 5", "&anchor value", "'a!b'", "'! x'", "^a", "a^b", "a%b", "'%s %d'", "'a\tb'", "'true false'", "'[a] [b]'", "'(a) (b)'", "'[a b'", "'a b]'", "'\\[a b\\]'", "'\\(a\\)'",
    "'\\true'", "'t\\rue'", "'\"true\"'", "'\"\"'", "\"''\"", "'\"\" x'", "'a \"\" b'", "'\"a|b\"'", "'\\ '", "'\\  x'", "'a\\ b'", "'=true'", "x=true", "x=y z", "'=x y'", "@", "'@x'", "'a,b'",
    "'-x'", "'--other 3'", "'[--other 3]'", "'[a  \"b c\"]'", "'[$RUN x]'", "'[*]'", "'[a*]'", "'[~]'", "'[#]'", "'[a;b]'", "'[a|b]'", "'[(a)]'", "'a\\nb'", "'[a\\ b]'",
]


def training_script(megatron):
    path = os.path.join(megatron, "tests/functional_tests/shell_test_utils/_run_training.sh")
    text = open(path, encoding="utf-8").read()
    parts = [re.search(r"\n(cat \$TRAINING_PARAMS_PATH.*?\nTRAINING_PARAMS_PATH=[^\n]*\n)", text, re.S),
             re.search(r"\n(if \[\[ \"\$IS_NEMO_TEST\" == \"true\" \]\]; then\n    PARAMS=\(\).*?\nfi\n)", text, re.S),
             re.search(r"\n(PARAMS=\(\"\$\{PARAMS.*?\n)", text)]
    if not all(parts):
        raise SystemExit(f"{path}: the parts that build the words were not found: another version?")
    return "".join(part.group(1) for part in parts)


class Checker:
    def __init__(self, options):
        self.options = options
        self.script = training_script(options.megatron).replace("/usr/local/bin/yq", options.yq)

    def theirs(self, config, run=1, nemo=False):
        """The words, or None where the script fails."""
        with tempfile.TemporaryDirectory() as folder:
            params = os.path.join(folder, "params.yaml")
            open(params, "w", encoding="utf-8").write(config)
            work = os.path.join(folder, "cwd")
            os.mkdir(work)
            environment = dict(VARIABLES, PATH=os.environ["PATH"], HOME="/home/user", TRAINING_PARAMS_PATH=params, RUN_NUMBER=str(run),
                               IS_NEMO_TEST="true" if nemo else "false", LC_ALL="C.UTF-8")
            command = ("set -euo pipefail\nPARAMS=()\n" + self.script +
                       "\nfor word in ${PARAMS[@]+\"${PARAMS[@]}\"}; do printf '%s\\0' \"$word\"; done >words\n")
            done = subprocess.run(["bash", "-c", command], cwd=work, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
            path = os.path.join(work, "words")
            if done.returncode != 0 or not os.path.exists(path):
                return None
            return open(path, "rb").read().decode("utf-8", "replace").split("\0")[:-1]

    def ours(self, config, run=1, nemo=False):
        """The words, or the message of the refusal."""
        with tempfile.TemporaryDirectory() as folder:
            open(os.path.join(folder, "model_config.yaml"), "w", encoding="utf-8").write(config)
            environment = dict(VARIABLES, PATH=os.environ["PATH"], HOME="/home/user", RUN_NUMBER=str(run), LC_ALL="C.UTF-8",
                               TRAINING_PARAMS_PATH="x", IS_NEMO_TEST="x")
            done = subprocess.run([self.options.assay, "show", "--json", folder], env=environment, capture_output=True)
            shown = json.loads(done.stdout)
            name = f"MODEL_ARGS_{run}"
            name = name if name in shown["words"] else "MODEL_ARGS"
            unset = [note for note in shown["notes"] if note.startswith("variables that a run has to get")]
            if name not in shown["words"] or unset:
                return "; ".join(shown["errors"] + unset) or "no words"
            return shown["words"][name]

    def check(self, item):
        label, config, run, nemo = item
        return label, config, self.theirs(config, run, nemo), self.ours(config, run, nemo)


def tree_items(megatron):
    root = os.path.join(megatron, "tests/functional_tests/test_cases")
    for folder, _, files in sorted(os.walk(root)):
        if "model_config.yaml" not in files:
            continue
        config = open(os.path.join(folder, "model_config.yaml"), encoding="utf-8").read()
        keys = re.findall(r"^MODEL_ARGS(?:_(\d+))?:[^\n]*\n(?:\s*#[^\n]*\n|\s*\n)*\s+([^\s:]+)", config, re.M)
        for number, first in keys or [("", "--")]:
            yield f"{os.path.relpath(folder, root)} {number or 1}", config, int(number or 1), not first.startswith(("-", "<", '"'))


def config_of(values, nemo=False):
    lines = "".join(f"  {'' if nemo else '--'}k{i}: {value}\n" for i, value in enumerate(values))
    return f"TEST_TYPE: regular\nMODE: pretraining\nMODEL_ARGS:\n{lines}"


def odd_items():
    for value in ODD:
        for nemo in (False, True):
            yield f"{'nemo ' if nemo else ''}{value!r}", config_of([value, "end"], nemo), 1, nemo


def fuzz_items(count, seed):
    rng = random.Random(seed)
    pieces = ["a", "b", "x y", " ", "  ", "'", '"', "\\", "\\\\", "(", ")", "[", "]", "|", "$", "$RUN", "${RUN}", "*", "?", "{", "}", ",", "#", "~", ";", "&",
              "=", ":", ": ", "-", "-n", "true", "\t", "é", "/", "1e-3", ".", "!", "%", "^", "@", "+", "<x"]
    for number in range(count):
        values = []
        for _ in range(rng.randint(1, 3)):
            text = rng.choice(ODD) if rng.random() < 0.2 else None
            if text is None:
                body = "".join(rng.choice(pieces) for _ in range(rng.randint(1, 6)))
                style = rng.random()
                text = "'" + body.replace("'", "''") + "'" if style < 0.5 else json.dumps(body, ensure_ascii=False) if style < 0.7 else body
            values.append(text)
        keys = [f"--k{i if rng.random() < 0.8 else 0}" for i in range(len(values))]
        base = "BASE: &b\n  --k0: base\n  --m: merged\n" if rng.random() < 0.3 else ""
        lines = [f"  {key}: {value}\n" for key, value in zip(keys, values)]
        if base:
            lines.insert(rng.randint(0, len(lines)), "  <<: *b\n")
        yield f"fuzz {number}", f"TEST_TYPE: regular\nMODE: pretraining\n{base}MODEL_ARGS:\n" + "".join(lines), 1, False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assay", required=True)
    parser.add_argument("--yq", required=True)
    parser.add_argument("--megatron", required=True)
    parser.add_argument("--fuzz", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--expectations")
    parser.add_argument("--no-tree", action="store_true")
    options = parser.parse_args()
    options.assay, options.yq = os.path.abspath(options.assay), os.path.abspath(shutil.which(options.yq) or options.yq)
    checker = Checker(options)
    items = [] if options.no_tree else list(tree_items(options.megatron))
    items += list(odd_items()) + list(fuzz_items(options.fuzz, options.seed))
    counts = {"equal": 0, "both refuse": 0, "ours refuses": 0, "DIFFERENT": 0}
    table = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for (label, config, theirs, ours), item in zip(pool.map(checker.check, items), items):
            refused = isinstance(ours, str)
            kind = "equal" if ours == theirs else "DIFFERENT" if not refused else "both refuse" if theirs is None else "ours refuses"
            counts[kind] += 1
            if kind == "DIFFERENT" or (kind == "ours refuses" and not label.startswith("fuzz")):
                print(f"{kind}: {label}\n  theirs {theirs}\n  ours   {ours}", flush=True)
                if kind == "DIFFERENT":
                    print("  " + config.replace("\n", "\n  "))
            if not label.startswith("fuzz") and config.startswith("TEST_TYPE: regular\nMODE: pretraining\nMODEL_ARGS:\n  ") and "k1: end" in config:
                table.append({"value": label, "config": config, "nemo": item[3], "words": None if refused else theirs})
    if options.expectations:
        with open(options.expectations, "w", encoding="utf-8") as file:
            file.write("[\n" + ",\n".join(json.dumps(row, ensure_ascii=True) for row in table) + "\n]\n")
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return 1 if counts["DIFFERENT"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
