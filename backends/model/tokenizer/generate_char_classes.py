#!/usr/bin/env python3
"""Writes char_class_ranges.inc: the pre-tokenizer's class of every code point.

Needs the Python package tiktoken. Membership is asked of tiktoken itself, code point by code point, so the table holds
exactly the Unicode version of its regex engine, whatever version Python's or PCRE2's own tables have.

Usage: generate_char_classes.py > char_class_ranges.inc
"""
import importlib.metadata

import tiktoken

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
# Symbol (see char_class.h) -> Unicode class; later lines win where classes overlap.
CLASSES = [
    ("U", r"[\p{Lu}\p{Lt}]"),
    ("l", r"\p{Ll}"),
    ("o", r"[\p{Lm}\p{Lo}]"),
    ("m", r"\p{M}"),
    ("n", r"\p{N}"),
    ("w", r"\s"),
    ("e", r"[\r\n]"),
    ("s", " "),
    ("/", "/"),
]
UNICODE_PROBES = [("17", 0x16EA0), ("16", 0x10D50), ("15.1", 0x2EBF0), ("15", 0x11F04)]  # letters new in that version


def members(pattern):
    """Code points that tiktoken's engine counts into the class."""
    single_bytes = {bytes([b]): b for b in range(256)}
    probe = tiktoken.Encoding("probe", pat_str=pattern, mergeable_ranks=single_bytes, special_tokens={})
    found = set()
    for i in range(0, len(CODE_POINTS), 4096):
        text = "".join(map(chr, CODE_POINTS[i : i + 4096]))
        found.update(map(ord, probe.decode(probe.encode_ordinary(text))))
    return found


def main():
    classes = ["x"] * 0x110000
    letters = 0
    for symbol, pattern in CLASSES:
        found = members(pattern)
        letters += len(found) if symbol in "Ulo" else 0
        for c in found:
            assert classes[c] == "x" or symbol in "es/", (hex(c), classes[c], symbol)
            classes[c] = symbol
    assert letters == len(members(r"\p{L}"))
    unicode = next((v for v, c in UNICODE_PROBES if classes[c] != "x"), "older")

    starts = [c for c in range(0x110000) if c == 0 or classes[c] != classes[c - 1]]
    version = importlib.metadata.version("tiktoken")
    print(f"// Written by generate_char_classes.py from tiktoken {version} (Unicode {unicode}). Do not edit.")
    print("// Each entry: (first code point << 8) | class symbol; it holds up to the next entry.")
    print(f"// {len(starts)} ranges.")
    cells = [f"0x{c << 8 | ord(classes[c]):X}," for c in starts]
    line = ""
    for cell in cells:
        if len(line) + 1 + len(cell) > 120:
            print(line)
            line = ""
        line = f"{line} {cell}" if line else cell
    print(line)


if __name__ == "__main__":
    main()
