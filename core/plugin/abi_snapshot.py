#!/usr/bin/env python3
"""The binary interface as text: size of every struct, offset and size of every member, value of every enumerator.

Usage: abi_snapshot.py INCLUDE_DIR SNAPSHOT [--compiler CC] [--update | --extends]
--extends asks for less: SNAPSHOT is an older minor, whose members and enumerators must all be where they were.
Structs that may not grow (those without a `size` of 32 bits, and those that say "never grows") keep their size in any case.
Otherwise compares what a C compiler says of INCLUDE_DIR/assay/plugin_abi.h with the file SNAPSHOT. A difference ends with 1 and tells what
to do about it; --update writes the file.
"""
import argparse
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

HOW_TO = """The binary interface is not what {snapshot} says.
 - A member, entry or enumerator at the end of a struct, table or enum: raise ASSAY_ABI_MINOR (abi/common.h), mark what is new
   with "since {next}", look at it only where `size` covers it, then run abi_snapshot.py with --update and commit both.
 - Anything moved, removed or changed: undo it. Where it cannot be undone, raise ASSAY_ABI_MAJOR: every plugin must be rebuilt."""


def declarations(include):
    """Text of all headers without comments and preprocessor lines."""
    folder = include / "assay"
    files = sorted(folder.glob("abi/*.h")) or [folder / "plugin_abi.h"]
    text = "\n".join(path.read_text() for path in files)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return re.sub(r"^\s*#.*$", "", text, flags=re.M)


def members(body):
    for declaration in body.split(";"):
        declaration = " ".join(declaration.split())
        if not declaration:
            continue
        function = re.search(r"\(\s*\*\s*(\w+)\s*\)", declaration)
        yield function.group(1) if function else re.search(r"(\w+)\s*(\[[^\]]*\])?$", declaration).group(1)


def rigid(include):
    """Names of the structs that may not grow."""
    text = "\n".join(path.read_text() for path in sorted((include / "assay").rglob("*.h")))
    found = re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", text, flags=re.S)
    return {name for name, body in found if "never grows" in body or not re.search(r"\buint32_t size;", body)}


def program(text):
    lines = ['#include "assay/plugin_abi.h"', "#include <stdio.h>", "int main(void) {",
             'printf("abi %u.%u\\n", ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR);']
    for match in re.finditer(r"typedef struct (\w+) \{(.*?)\} \w+;", text, flags=re.S):
        name, body = match.groups()
        lines.append(f'printf("struct {name} %zu\\n", sizeof({name}));')
        for member in members(body):
            lines.append(f'printf("  {member} at %zu size %zu\\n", offsetof({name}, {member}), sizeof((({name}*)0)->{member}));')
    for match in re.finditer(r"enum (\w*)\s*\{(.*?)\}", text, flags=re.S):
        for entry in match.group(2).split(","):
            if entry.strip():
                name = re.match(r"\s*(\w+)", entry).group(1)
                lines.append(f'printf("{name} = %lld\\n", (long long){name});')
    return "\n".join(lines + ["return 0;", "}", ""])


def snapshot(include, compiler):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "snapshot.c"
        source.write_text(program(declarations(include)))
        binary = source.with_suffix("")
        subprocess.run([compiler, "-std=c11", "-I", str(include), str(source), "-o", str(binary)], check=True)
        return subprocess.run([str(binary)], check=True, capture_output=True, text=True).stdout


def layout(text):
    """{"struct member": "offset size", "ENUMERATOR": "value"} of a snapshot."""
    found, struct = {}, ""
    for line in text.splitlines():
        words = line.split()
        if words[0] == "struct":
            struct = words[1]
        elif line.startswith("  "):
            found[f"{struct} {words[0]}"] = " ".join(words[1:])
        elif words[0] != "abi":
            found[words[0]] = words[2]
    return found


def sizes(text):
    """{struct: bytes} of a snapshot."""
    return dict(re.findall(r"^struct (\w+) (\d+)$", text, flags=re.M))


def grown(old, new, names):
    """Which of the structs `names` have not the size that they had in `old`."""
    now = sizes(new)
    return [f"{name}: was {was} bytes, is {now[name]}: it travels in arrays, or has no size of its own, and may not grow; "
            "add a struct and a function beside it" for name, was in sizes(old).items() if name in names and now.get(name, was) != was]


def extends(old, new):
    """What of `old` is no longer as it was."""
    now = layout(new)
    return [f"{name}: was {was}, is {now.get(name, 'gone')}" for name, was in layout(old).items() if now.get(name) != was]


def major(text):
    return text.split(".")[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("include", type=pathlib.Path)
    parser.add_argument("snapshot", type=pathlib.Path)
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--extends", action="store_true")
    options = parser.parse_args()
    seen = snapshot(options.include, options.compiler)
    kept = options.snapshot.read_text() if options.snapshot.exists() else ""
    larger = grown(kept, seen, rigid(options.include)) if major(kept) == major(seen) else []
    if larger and not options.extends:
        print("\n".join(larger))
        return 1
    if options.update:
        options.snapshot.write_text(seen)
        return 0
    if options.extends:
        lost = extends(kept, seen) + larger
        print("\n".join(lost) or f"everything of {options.snapshot} is where it was")
        return 1 if lost else 0
    if seen == kept:
        print(f"{len(seen.splitlines())} lines of the binary interface are as in {options.snapshot}")
        return 0
    sys.stdout.writelines(difflib.unified_diff(kept.splitlines(True), seen.splitlines(True), str(options.snapshot), "headers"))
    first, minor = re.match(r"abi (\d+)\.(\d+)", seen).groups()
    print(HOW_TO.format(snapshot=options.snapshot, next=f"{first}.{int(minor) + 1}"))
    return 1


if __name__ == "__main__":
    sys.exit(main())
