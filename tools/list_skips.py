#!/usr/bin/env python3
"""Prints every skipped test of a CTest JUnit file with its reason; fails when a skip has no good reason.

A test that skips for want of the shared vectors while they are there is a fault, and so is a skip without a reason.
So is a name with a blank in it: it shows the value of a parameter, which may be bytes with an address, and then the
name is another one in every run.
"""
import os
import re
import sys
import xml.etree.ElementTree as ElementTree


def main(path: str) -> int:
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    shared_is_there = os.path.isdir(os.path.join(here, "..", "shared"))
    bad = 0
    skips = 0
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        output = case.findtext("system-out") or ""
        if re.search(r"\s", case.get("name")):
            print(f"not allowed: a name with blanks: {case.get('name')!r}")
            bad += 1
        if case.find("skipped") is None and "[  SKIPPED ]" not in output:
            continue
        skips += 1
        match = re.search(r"Skipped\n(.+?)\n", output)
        reason = match.group(1).strip() if match else ""
        print(f"skipped: {case.get('name')}: {reason or 'NO REASON'}")
        if not reason or (shared_is_there and "shared" in reason):
            print(f"  not allowed: {'the shared folder is there' if reason else 'a skip needs a reason'}")
            bad += 1
    print(f"skips: {skips}, faults: {bad}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
