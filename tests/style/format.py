#!/usr/bin/env python3
"""Fails on a C++ or CUDA file that clang-format 14 would change. Another version lays out a few constructs differently."""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
TOPS = ("probes", "workloads", "profiles", "orchestrator", "reports", "tests")
VERSION = 14  # Debian 12's
LEAST_FILES = 500  # fewer means that the sources were not found


def clang_format():
    """The program of that version; its absence is a failure, because this check decides what may be committed."""
    for name in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name)
        if path:
            version = subprocess.run([path, "--version"], check=True, capture_output=True, text=True, timeout=10).stdout
            if re.search(rf"version {VERSION}\.", version):
                return path
    sys.exit(f"clang-format {VERSION} was not found\nhint: apt-get install clang-format-{VERSION}")


def main():
    files = sorted(
        path for top in TOPS for path in (ROOT / top).rglob("*") if path.suffix in (".h", ".cpp", ".cu", ".cuh")
    )
    done = subprocess.run(
        [clang_format(), "--dry-run", "--Werror", *map(str, files)], capture_output=True, text=True, timeout=280
    )
    wrong = sorted(set(re.findall(r"^(.+?):\d+:\d+: error: code should be clang-formatted", done.stderr, re.M)))
    print("\n".join(wrong))
    if done.returncode != 0 and not wrong:
        sys.exit(done.stderr)
    print(f"{len(files)} files, {len(wrong)} to be formatted")
    sys.exit(1 if wrong or len(files) < LEAST_FILES else 0)


main()
