#!/usr/bin/env python3
"""Fails on a Python file that black 23.1 would change. Another version lays out a few constructs differently."""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
TOPS = ("probes", "workloads", "profiles", "orchestrator", "reports", "tests", "packages", "docs")
VERSION = "23.1"  # Debian 12's
COLUMNS = 120
LEAST_FILES = 130  # fewer means that the sources were not found


def black():
    """The program of that version; its absence is a failure, because this check decides what may be committed."""
    for path in (shutil.which("black"), "/usr/bin/black"):
        if path and pathlib.Path(path).exists():
            version = subprocess.run([path, "--version"], check=True, capture_output=True, text=True, timeout=60).stdout
            if re.search(rf"\b{re.escape(VERSION)}\.", version):
                return path
    sys.exit(f"black {VERSION} was not found\nhint: apt-get install black")


def is_python(path):
    """By its name, or by its first line where it has no ending."""
    if path.suffix == ".py":
        return True
    if path.suffix or not path.is_file():
        return False
    with open(path, "rb") as file:
        first = file.readline()
    return first.startswith(b"#!") and b"python" in first


def main():
    files = sorted(path for top in TOPS for path in (ROOT / top).rglob("*") if is_python(path))
    words = [black(), "--check", "--quiet", "--line-length", str(COLUMNS)]
    done = subprocess.run([*words, *map(str, files)], capture_output=True, text=True, timeout=280)
    if done.returncode == 1:
        wrong = [path for path in files if subprocess.run([*words, str(path)], timeout=60).returncode != 0]
        print("\n".join(str(path.relative_to(ROOT)) for path in wrong))
        print(f"hint: black --line-length {COLUMNS} on each")
    print(f"{len(files)} files, {'some to be formatted' if done.returncode else 'none to be formatted'}{done.stderr}")
    sys.exit(1 if done.returncode or len(files) < LEAST_FILES else 0)


main()
