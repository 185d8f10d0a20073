#!/usr/bin/env python3
"""abi_snapshot.py on headers that were changed: what may grow may, and what may not is refused.

Usage: abi_snapshot_test.py INCLUDE_DIR SNAPSHOT [--compiler CC]
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

SCRIPT = pathlib.Path(__file__).with_name("abi_snapshot.py")


def with_member(include, snapshot, compiler, struct, *flags):
    """Exit code and text of the script, `struct` having another member at its end."""
    with tempfile.TemporaryDirectory() as folder:
        headers = pathlib.Path(folder) / "include"
        shutil.copytree(include / "assay", headers / "assay")
        kept = pathlib.Path(folder) / "abi.txt"
        shutil.copy(snapshot, kept)
        for path in headers.rglob("abi/*.h"):
            path.write_text(path.read_text().replace(f"}} {struct};", f"uint64_t added;\n}} {struct};"))
        ended = subprocess.run([sys.executable, SCRIPT, headers, kept, "--compiler", compiler, *flags],
                               capture_output=True, text=True)
        changed = kept.read_text() != snapshot.read_text()
        return ended.returncode, ended.stdout + ended.stderr, changed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("include", type=pathlib.Path)
    parser.add_argument("snapshot", type=pathlib.Path)
    parser.add_argument("--compiler", default="cc")
    options = parser.parse_args()
    faults = 0

    def expect(true, what):
        nonlocal faults
        if not true:
            faults += 1
            print("FAILED:", what)

    for struct in ("assay_event", "assay_task_state", "assay_run", "assay_kernel_time", "assay_candidate", "assay_sampling"):
        for flags in ((), ("--update",), ("--extends",)):
            code, text, changed = with_member(options.include, options.snapshot, options.compiler, struct, *flags)
            expect(code == 1 and f"{struct}: was " in text and "may not grow" in text, f"{struct} {flags}: {code} {text}")
            expect(not changed, f"{struct} {flags}: the snapshot was written")
    for struct in ("assay_engine_info", "assay_record", "assay_finding"):
        code, text, _ = with_member(options.include, options.snapshot, options.compiler, struct, "--extends")
        expect(code == 0, f"{struct} may grow: {text}")
        code, text, changed = with_member(options.include, options.snapshot, options.compiler, struct, "--update")
        expect(code == 0 and changed, f"{struct} may grow: {text}")
    print(f"{faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
