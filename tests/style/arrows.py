#!/usr/bin/env python3
"""Checks every #include of the product, and what its libraries are linked to, against the table "may include" of docs/ARCHITECTURE.md.

Fails on an include that the table does not allow, on a folder with sources that has no row, and on a row whose folder has none.
A room may have folders; these include each other without a circle. The library of a room of orchestrator or reports (assay_room,
assay_room in CMake) uses only rooms that the table allows it, and reaches all of them.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
TOPS = ("probes", "workloads", "profiles", "orchestrator", "reports")
SOURCES = (".h", ".cpp", ".cu", ".cuh")
# Libraries that are no room: what a room of probes, workloads or profiles has for others.
LIBRARIES = {
    "assay_core": "probes/core",
    "assay_profiles": "profiles",
    "assay_readings": "probes/meters",
    "assay_train_graph": "workloads/train",
}
LEAST_LIBRARIES = 20  # fewer means that the rooms were not found in CMake
LEAST_ARROWS = 20  # fewer means that the table or the sources were not found


def room_of(path):
    """The folder that a path from the repository's root belongs to: 'orchestrator/plan', 'workloads'."""
    parts = path.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def folder_of(path):
    """The folder inside its room that a path belongs to, 'orchestrator/judge/cells'; nothing for a file of the room itself."""
    parts = path.split("/")
    return "/".join(parts[:3]) if len(parts) > 3 else None


def in_circles(arrows):
    """The folders of `arrows`, pairs of a folder and one that it includes, that reach themselves."""
    targets = {}
    for folder, target in arrows:
        targets.setdefault(folder, set()).add(target)
    circles = set()
    for start in targets:
        seen, todo = set(), [start]
        while todo:
            new = targets.get(todo.pop(), set()) - seen
            seen |= new
            todo += new
        if start in seen:
            circles.add(start)
    return sorted(circles)


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


def libraries():
    """Room -> rooms whose libraries its own is linked to, from calls such as assay_room(plan SOURCES plan.cpp USES assay_site)."""
    rooms = {}
    for top in ("orchestrator", "reports"):
        text = re.sub(r"#.*", "", (ROOT / top / "CMakeLists.txt").read_text())
        for name, uses in re.findall(r"\bassay_(?:report_)?room\((\w+)\s+SOURCES\s[^)]*?(?:\sUSES\s([^)]*))?\)", text):
            rooms[f"{top}/{name}"] = set(uses.split()) | {"assay_core"}
    named = LIBRARIES | {f"assay_{room.split('/')[1]}": room for room in rooms}
    return {room: {named[one] for one in uses if one in named} for room, uses in rooms.items()}


def reached(room, links):
    """`room`'s libraries, and those that they are linked to."""
    found, todo = set(), [room]
    while todo:
        new = links.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found


def main():
    rows, wrong, seen, arrows, inner = allowed(), [], set(), set(), set()
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
                    ends = (folder_of(name), folder_of(include[1]))
                    if None not in ends and ends[0] != ends[1]:
                        inner.add(ends)
                    continue
                arrows.add((room, target))
                if target not in rows.get(room, ()):
                    wrong.append(f"{name}:{number}: {room} may not include {target}")
    links = libraries()
    for room, uses in links.items():
        wrong += [f"CMake: {room} may not be linked to {one}" for one in sorted(uses - rows.get(room, set()))]
        wrong += [f"CMake: {room} does not reach {one}" for one in sorted(rows.get(room, set()) - reached(room, links))]
    wrong += [f"{folder}: is in a circle of folders that include each other" for folder in in_circles(inner)]
    wrong += [f"docs/ARCHITECTURE.md: no row for {room}" for room in sorted(seen - rows.keys())]
    wrong += [f"docs/ARCHITECTURE.md: {room} has a row and no sources" for room in sorted(rows.keys() - seen)]
    print("\n".join(wrong))
    print(
        f"{len(seen)} rooms, {len(arrows)} arrows and {len(inner)} inside rooms, {len(links)} libraries, {len(wrong)} not allowed"
    )
    sys.exit(1 if wrong or len(arrows) < LEAST_ARROWS or len(links) < LEAST_LIBRARIES else 0)


main()
