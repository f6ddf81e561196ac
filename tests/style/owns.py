#!/usr/bin/env python3
"""Fails on a unit of a room that the room's README does not name in backticks.

A unit is the name of a source file without its ending; a room has a folder of its own with a README.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
TOPS = ("probes", "workloads", "orchestrator", "reports")
SOURCES = (".h", ".cpp", ".cu", ".cuh")
LEAST_ROOMS = 20  # fewer means that the READMEs were not found


def main():
    readmes = sorted(path for top in TOPS for path in (ROOT / top).glob("*/README.md"))
    wrong, units = [], 0
    for readme in readmes:
        words = {word.split("/")[-1].split(".")[0] for word in re.findall(r"`([^`]+)`", readme.read_text())}
        of_room = {path.stem for path in readme.parent.rglob("*") if path.suffix in SOURCES}
        units += len(of_room)
        wrong += [f"{readme.relative_to(ROOT)}: does not name `{unit}`" for unit in sorted(of_room - words)]
    print("\n".join(wrong))
    print(f"{len(readmes)} rooms, {units} units, {len(wrong)} not named")
    sys.exit(1 if wrong or len(readmes) < LEAST_ROOMS else 0)


main()
