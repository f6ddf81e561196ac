#!/usr/bin/env python3
"""Checks every #include of the product against the table "may include" of docs/ARCHITECTURE.md.

Fails on an include that the table does not allow, on a folder with sources that has no row, and on a row whose folder has none.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
TOPS = ("probes", "workloads", "profiles", "orchestrator", "reports")
SOURCES = (".h", ".cpp", ".cu", ".cuh")
LEAST_ARROWS = 20  # fewer means that the table or the sources were not found


def room_of(path):
    """The folder that a path from the repository's root belongs to: 'orchestrator/plan', 'workloads'."""
    parts = path.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def allowed():
    """Room -> rooms that it may include, from rows such as "| `orchestrator/plan` | `orchestrator/site`, `profiles` |"."""
    rows = {}
    for line in (ROOT / "docs/ARCHITECTURE.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 2 and re.match(r"`(%s)\b" % "|".join(TOPS), cells[0]):
            for room in re.findall(r"`([^`]+)`", cells[0]):
                if room in rows:
                    sys.exit(f"docs/ARCHITECTURE.md: {room} has two rows")
                rows[room] = set(re.findall(r"`([^`]+)`", cells[1]))
    return rows


def main():
    rows, wrong, seen, arrows = allowed(), [], set(), set()
    for top in TOPS:
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix not in SOURCES:
                continue
            name = path.relative_to(ROOT).as_posix()
            room = room_of(name)
            seen.add(room)
            for number, line in enumerate(path.read_text().splitlines(), 1):
                include = re.match(r'#include "([^"]+)"', line)
                if not include:
                    continue
                target = room_of(include[1])
                if target == room:
                    continue
                arrows.add((room, target))
                if target not in rows.get(room, ()):
                    wrong.append(f"{name}:{number}: {room} may not include {target}")
    wrong += [f"docs/ARCHITECTURE.md: no row for {room}" for room in sorted(seen - rows.keys())]
    wrong += [f"docs/ARCHITECTURE.md: {room} has a row and no sources" for room in sorted(rows.keys() - seen)]
    print("\n".join(wrong))
    print(f"{len(seen)} rooms, {len(arrows)} arrows, {len(wrong)} not allowed")
    sys.exit(1 if wrong or len(arrows) < LEAST_ARROWS else 0)


main()
