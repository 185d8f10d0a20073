#!/usr/bin/env python3
"""Runs the examples of the docs and compares them with the program.

Usage: docs_examples.py SOURCE PREFIX [--only options|examples]   (PREFIX: where assay is installed)
 - options: every `assay COMMAND --option` that a page names exists in `assay COMMAND --help`, and every command is named.
 - examples: an indented block after the marker <!-- run: GROUP --> is run. Lines that begin with "$ " are commands; what follows is
   their output, where "..." stands for any text, and a line "..." for any lines. Blocks of one GROUP share a folder, which has
   testcases/ and golden/ in it. A command ends with 0 unless it ends in "# exit N".
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

MARKER = re.compile(r"<!-- run: (\w+) -->\n\s*\n((?:(?: {4}.*)?\n)+)")
TWO_WORDS = {"plugin": ("new", "test"), "golden": ("lint",), "recipe": ("list", "run")}


def pages(source):
    return [source / "README.md", source / "CONTRIBUTING.md", *sorted((source / "docs").rglob("*.md"))]


def code_of(text):
    """Code spans and the lines of indented and fenced blocks."""
    spans = re.findall(r"`([^`\n]+)`", text)
    lines = re.findall(r"^ {4,}(?:\$ )?(.*)$", text, flags=re.M)
    fenced = [line for block in re.findall(r"^```.*?\n(.*?)^```", text, flags=re.M | re.S) for line in block.splitlines()]
    return spans + lines + fenced


def commands_in(text):
    """(command words, options) of every use of assay."""
    for code in code_of(text):
        for part in re.split(r"&&|\|(?!\w)|;", code):
            part = re.sub(r"'[^']*'", "''", part.split(" -- ")[0])  # arguments of a model, commands of an engine
            words = part.split()
            while words and (words[0] == "$" or "=" in words[0]):
                words.pop(0)
            if len(words) < 2 or words[0].rsplit("/", 1)[-1] != "assay" or not re.fullmatch(r"[a-z][a-z-]*", words[1]):
                continue
            command = words[1:3] if len(words) > 2 and words[2] in TWO_WORDS.get(words[1], ()) else words[1:2]
            yield command, re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", part)


def check_options(source, assay):
    failures, checked, named, helps = [], 0, set(), {}
    known = re.findall(r"^  assay (\S+)", subprocess.run([assay, "--help"], capture_output=True, text=True).stdout, flags=re.M)
    for page in pages(source):
        for command, options in commands_in(page.read_text()):
            if command[0] not in known:
                failures.append(f"{page}: names assay {command[0]}, which is no command")
                continue
            named.add(command[0])
            key = " ".join(command)
            if key not in helps:
                helps[key] = subprocess.run([assay, *command, "--help"], capture_output=True, text=True).stdout
            for option in options:
                checked += 1
                if option not in ("--help", "--version") and not re.search(re.escape(option) + r"(?![\w-])", helps[key]):
                    failures.append(f"{page}: names assay {key} {option}, which --help does not")
    failures += [f"no page names assay {command}" for command in known if command not in named]
    print(f"options: {checked} uses of options of {len(named)} commands")
    return failures


def matches(expected, seen):
    """Lines of output against lines of the page."""
    pattern = ""
    for line in expected:
        pattern += r"(?:.*\n)*?" if line.strip() == "..." else ".*".join(re.escape(part) for part in line.split("...")) + r" *\n"
    return re.fullmatch(pattern, seen if seen.endswith("\n") or not seen else seen + "\n") is not None


def run_block(page, block, folder, environment):
    steps = []
    for line in block.splitlines():
        text = line[4:] if line.startswith("    ") else line.strip()
        if text.startswith("$ "):
            steps.append((text[2:], []))
        elif steps and text:
            steps[-1][1].append(text)
    failures = []
    for command, expected in steps:
        wanted = re.search(r"# exit (\d+)$", command)
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
        if done.returncode != (int(wanted.group(1)) if wanted else 0):
            failures.append(f"{page}: {command}\n  ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        elif expected and not matches(expected, done.stdout + done.stderr):
            failures.append(f"{page}: {command}\n  printed:\n{done.stdout}{done.stderr}\n  the page says:\n" + "\n".join(expected))
    return len(steps), failures


def check_examples(source, prefix):
    failures, count, folders = [], 0, {}
    environment = dict(os.environ, PATH=f"{prefix}/bin:{os.environ['PATH']}", PREFIX=str(prefix), LC_ALL="C.UTF-8")
    environment.pop("ASSAY_PLUGIN_PATH", None)
    with tempfile.TemporaryDirectory() as top:
        for page in pages(source):
            for group, block in MARKER.findall(page.read_text()):
                if group not in folders:
                    folders[group] = pathlib.Path(top) / group
                    folders[group].mkdir()
                    (folders[group] / ".git").mkdir()  # paths of cases begin here, as in a checkout
                    for name in ("testcases", "golden"):
                        (folders[group] / name).symlink_to(source / name)
                steps, failed = run_block(page, block, folders[group], environment)
                count += steps
                failures += failed
    print(f"examples: {count} commands run")
    return failures + ([] if count else ["no example is marked"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("prefix", type=pathlib.Path)
    parser.add_argument("--only", choices=("options", "examples"))
    options = parser.parse_args()
    failures = []
    if options.only != "examples":
        failures += check_options(options.source, str(options.prefix / "bin" / "assay"))
    if options.only != "options":
        failures += check_examples(options.source, options.prefix.resolve())
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
