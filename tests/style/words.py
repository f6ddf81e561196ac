#!/usr/bin/env python3
"""Fails where comments and texts fall back into a dialect: a room has a ceiling of hits per 1,000 words, which only falls.

Counted are PATTERNS in comments and string literals with a space of C++, by room, and in each document outside of code blocks. words.txt
has the ceilings. A room above its ceiling fails; a room more than SLACK below it fails too, until its ceiling is lowered.
With --list and the name of a room, the hits of that room are printed.
"""
import bisect
import math
import pathlib
import re
import sys

ROOMS_IN = ("probes", "workloads", "orchestrator", "reports")  # every folder in these is a room
ROOMS = ("profiles", "tests")
DOCUMENTS = ("*.md", "docs/*.md")
SLACK = 1.0
TOKEN = re.compile(r'//([^\n]*)|/\*(.*?)\*/|"((?:[^"\\\n]|\\.)*)"|' + r"'(?:[^'\\\n]|\\.)+'", re.S)
PATTERNS = (
    ("what-clause", r"\bwhat(?:ever)?\s+[a-z]"),
    ("person", r"\b(?:who|whom|whoever|somebody|someone|nobody|anybody|anyone)\b"),
    ("he", r"\b(?:he|him|his|himself)\b"),
    ("tell", r"\b(?:tell|tells|told|untold|telling)\b"),
    ("held against", r"\b(?:held|hold|holds|holding)\s+(?:\w+\s+)?against\b"),
    ("go on, come to", r"\b(?:go|goes|going|went|gone)\s+on\b|\b(?:come|comes|came|coming)\s+to\b"),
    ("stand, lie", r"\b(?:stands|stood|standing|lie|lies|lay|lying)\b"),
    ("by itself, beside, alone", r"\bby\s+(?:itself|themselves)\b|\bbeside\b|\balone\b"),
    ("nothing where", r"\b(?:nothing|none|empty)\s+(?:where|when)\b"),
    ("where it, that", r"\bwhere\s+(?:it|they|that|this|these|those|one|none|there)\b"),
)
PATTERN = re.compile("|".join(f"(?P<p{at}>{text})" for at, (_, text) in enumerate(PATTERNS)), re.I)
WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")


def prose_of_source(text):
    """(line, words) of comments and of literals with a space."""
    for match in TOKEN.finditer(text):
        literal = match[3]
        if literal is not None and " " not in literal.strip():
            continue
        found = match[1] or match[2] or (literal or "").replace("\\n", " ")
        if found:
            yield match.start(), found


def prose_of_document(text):
    """The document without its code blocks and code words."""
    bare = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.S | re.M)
    yield 0, re.sub(r"`[^`\n]*`", "x", bare)


def rooms(root):
    """name: files."""
    found = {}
    for top in ROOMS_IN:
        for path in sorted((root / top).rglob("*")) if (root / top).is_dir() else ():
            inside = path.relative_to(root).parts
            if path.suffix in (".cpp", ".h", ".cu", ".cuh") and len(inside) > 2:
                found.setdefault("/".join(inside[:2]), []).append(path)
    for top in ROOMS:
        files = [path for path in sorted((root / top).rglob("*")) if path.suffix in (".cpp", ".h", ".cu")]
        files = [path for path in files if "planted" not in path.relative_to(root).parts]
        if files:
            found[top] = files
    for pattern in DOCUMENTS:
        for path in sorted(root.glob(pattern)):
            found[path.relative_to(root).as_posix()] = [path]
    return found


def count(files, show):
    """(words, hits) of a room's files."""
    words = hits = 0
    for path in files:
        text = path.read_text()
        document = path.suffix == ".md"
        pieces = list(prose_of_document(text) if document else prose_of_source(text))
        starts, length = [], 0
        for _, piece in pieces:
            starts.append(length)
            length += len(piece) + 1
        joined = "\n".join(piece for _, piece in pieces)
        words += len(WORD.findall(joined))
        for match in PATTERN.finditer(joined):
            hits += 1
            if show:
                kind = next(name for at, (name, _) in enumerate(PATTERNS) if match[f"p{at}"] is not None)
                piece = bisect.bisect_right(starts, match.start()) - 1
                line = text.count("\n", 0, pieces[piece][0]) + joined.count("\n", starts[piece], match.start()) + 1
                around = joined[max(0, match.start() - 40) : match.end() + 40].replace("\n", " ")
                print(f"{path}:{line}: {kind}: {around}")
    return words, hits


def main():
    arguments = [each for each in sys.argv[1:] if each != "--list"]
    root = pathlib.Path(arguments[0] if arguments else ".")
    only = arguments[1] if len(arguments) > 1 else None
    lines = (root / "tests/style/words.txt").read_text().splitlines()
    ceilings = {name: int(ceiling) for name, ceiling in (line.split() for line in lines if line[:1] not in ("", "#"))}
    wrong, words_in_all, hits_in_all = [], 0, 0
    for name, files in sorted(rooms(root).items()):
        if only not in (None, name):
            continue
        words, hits = count(files, only is not None)
        words_in_all += words
        hits_in_all += hits
        rate = 1000 * hits / max(1, words)
        lower = math.ceil(rate)
        if "--list" in sys.argv:
            print(f"{name} {rate:.1f} ({hits} in {words} words)")
        ceiling = ceilings.pop(name, 0)
        if rate > ceiling:
            wrong.append(f"{name}: {rate:.1f} hits in 1,000 words, ceiling {ceiling}; reword: words.py --list . {name}")
        elif rate < ceiling - SLACK:
            wrong.append(
                f"{name}: {rate:.1f} hits in 1,000 words; lower its ceiling in words.txt from {ceiling} to {lower}"
            )
    if only is None:
        wrong += [f"{name}: has a ceiling and no words" for name in sorted(ceilings)]
    print("\n".join(wrong))
    print(f"{words_in_all} words, {hits_in_all} hits, {len(wrong)} rooms to change")
    sys.exit(1 if wrong or words_in_all == 0 else 0)


main()
