#!/usr/bin/env python3
"""Fails on a class of tests that no run has: where a CMake file names some classes of a file (FILE:CLASS, FILE_test.py CLASS), it must name
all of them that have tests."""
import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")


def main():
    cmake = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.cmake"))
    checked, missing = 0, []
    for file in sorted((ROOT / "tests").rglob("*_test.py")):
        stem = file.stem.removesuffix("_test")
        named = set(re.findall(rf"\b{stem}:(\w+)", cmake))
        rows = re.findall(rf"\b{stem}_test\.py((?: [A-Z]\w*[a-z]\w*)+)|\bclasses_of_{stem} ([\w ]+)\)", cmake)
        named |= {word for row in rows for words in row for word in words.split()}
        classes = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.ClassDef)]
        with_tests = {
            one.name
            for one in classes
            if any(isinstance(item, ast.FunctionDef) and item.name.startswith("test_") for item in one.body)
        }
        if not named & with_tests:
            continue
        checked += 1
        missing += [f"{file.relative_to(ROOT)}: no CMake file runs {name}" for name in sorted(with_tests - named)]
    print("\n".join([*missing, f"{checked} files of which classes are named, {len(missing)} classes missing"]))
    sys.exit(1 if missing or checked == 0 else 0)


main()
