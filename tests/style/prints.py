#!/usr/bin/env python3
"""Fails on a print to stdout or stderr in orchestrator/, reports/ and probes/core/ that may show text from outside as it is.

A statement with std::cout or std::cerr may print literals, numbers of fmt::format with literals alone, and what one of the functions
below has returned. What else is the program's own text has a line in OWN, with the reason.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
SAFE = re.compile(
    r"harmless\(|harmless_page\(|ascii_json\(|\.text\(\)|verdict_table\(|fingerprint\(\)|\.dump\((?:-1|1), ' ', true|std::(?:flush|endl)"
)
# file: words of a statement that prints nothing but our own text, digests, counts or names of our own probes.
OWN = {
    "orchestrator/cli/main.cpp": ["completion_script(shell, app", "manual_page(app)", "app.help()"],
    "orchestrator/cli/run_command.cpp": [
        "to locate faults",
        "outcome, count",
        "shown(directory)",
        "pass {} of {}{}",
        "measured again",
    ],
    "orchestrator/cli/signing.cpp": ["report   {}"],
    "orchestrator/cli/run_stages.cpp": ["step.id"],
    "orchestrator/cli/bundle_command.cpp": ["files->size()"],
    "orchestrator/cli/plan_command.cpp": ["table_row", "all.dump(1)", "program.description"],
    "orchestrator/fleet/import_command.cpp": ["{} of {} imported"],
    "orchestrator/fleet/sweep_command.cpp": ["nothing is due tonight"],
    "orchestrator/fleet/verdict_command.cpp": ["verdicts written"],
    "orchestrator/cli/site_command.cpp": [
        "is not part of this installation",
        "#SBATCH",
        "#!/bin/bash",
        "srun",
        "*manifest",
        "export ",
    ],
    "orchestrator/node/main.cpp": ["error.message()", "claimed.error()"],
    "orchestrator/node/session.cpp": ["removed <<", "must be pipes or sockets"],
    "orchestrator/run/progress.cpp": ["\\x1b[", "<< block"],
    "probes/core/probe_main.cpp": ["describe(spec).dump(2)"],
    # text() of this file makes harmless; the others are counts.
    "reports/cli/verify_command.cpp": [
        "text(",
        "others",
        "who",
        "all.size()",
        "nodes.size()",
        "cells.size()",
        "files",
        "kMostHeads",
    ],
    "reports/fleet/draw_command.cpp": ["cells.size()"],
    "reports/fleet/commons_command.cpp": ["of figures, signed", "withheld: fewer than"],
}
FEWEST = 30  # fewer statements mean that the sources were not found


def statements(text):
    """(line, statement) of every print: from std::cout or std::cerr to the next semicolon outside of a text."""
    for match in re.finditer(r"std::c(?:out|err)\s*<<", text):
        end, quoted = match.end(), False
        while end < len(text) and (quoted or text[end] != ";"):
            if text[end] == "\\":
                end += 1
            elif text[end] == '"':
                quoted = not quoted
            end += 1
        yield text.count("\n", 0, match.start()) + 1, text[match.start() : end]


def main():
    wrong, seen = [], 0
    for top in ("orchestrator", "reports", "probes/core"):
        for path in sorted((ROOT / top).rglob("*.cpp")):
            name = path.relative_to(ROOT).as_posix()
            for line, statement in statements(path.read_text()):
                seen += 1
                bare = re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'', "", statement)
                bare = re.sub(r"std::c(?:out|err)|fmt::format|<<|[(),\s]", "", bare)
                if bare and not SAFE.search(statement) and not any(word in statement for word in OWN.get(name, ())):
                    wrong.append(
                        f"{name}:{line}: may print text from outside as it is; use harmless() of probes/core/text.h"
                    )
    print("\n".join(wrong))
    print(f"{seen} prints, {len(wrong)} that may be obeyed by a terminal")
    sys.exit(1 if wrong or seen < FEWEST else 0)


main()
