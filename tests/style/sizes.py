#!/usr/bin/env python3
"""Fails on a source file over 400 lines and on a function over 60 lines; needs universal-ctags."""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
TOPS = ("probes", "workloads", "profiles", "orchestrator", "reports", "tests")
MOST_LINES = 400
MOST_FUNCTION_LINES = 60
LEAST_FUNCTIONS = 1000  # fewer means that ctags did not read the sources


def main():
    files = sorted(
        path for top in TOPS for path in (ROOT / top).rglob("*") if path.suffix in (".h", ".cpp", ".cu", ".cuh", ".py")
    )
    wrong = []
    for path in files:
        lines = len(path.read_text().splitlines())
        if lines > MOST_LINES:
            wrong.append(f"{path.relative_to(ROOT)}: {lines} lines; {MOST_LINES} are allowed")
    tags = subprocess.run(
        [
            "ctags",
            "--output-format=json",
            "--fields=+ne",
            "--langmap=C++:+.cu.cuh.h",
            "--kinds-C++=f",
            "--languages=C++",
            "-f",
            "-",
            *map(str, files),
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    ).stdout
    functions = [json.loads(line) for line in tags.splitlines()]
    for function in functions:
        length = function.get("end", function["line"]) - function["line"] + 1
        if length > MOST_FUNCTION_LINES:
            name = pathlib.Path(function["path"]).relative_to(ROOT)
            wrong.append(
                f"{name}:{function['line']}: {function['name']} has {length} lines; {MOST_FUNCTION_LINES} are allowed"
            )
    print("\n".join(wrong))
    print(f"{len(files)} files, {len(functions)} functions, {len(wrong)} too long")
    sys.exit(1 if wrong or len(functions) < LEAST_FUNCTIONS else 0)


main()
