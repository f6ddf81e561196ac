#!/usr/bin/env python3
"""Fails where code compares a text with a piece of prose: what a rule needs is a value, so that words may change.

Looked at are calls of find, contains, starts_with, ends_with and the like, and == and !=, in the rooms that judge, keep and show
results. A piece of prose is a literal with a space beside other characters, or a constant that is one. A place that compares a format of
ours or of others, or texts for people alone, has a line in ALLOWED, with the reason.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
ROOMS = (
    "orchestrator/judge",
    "orchestrator/history",
    "orchestrator/cli",
    "orchestrator/drain",
    "orchestrator/run",
    "reports",
)
LITERAL = r'"((?:[^"\\\n]|\\.)*)"'
CALL = re.compile(r"\b(?:find|rfind|contains|starts_with|ends_with|compare|find_first_of|find_last_of)\(")
CONSTANT = re.compile(
    r"constexpr\s+(?:const\s+char\s*\*\s*(?:const\s+)?|std::string_view\s+|auto\s+)(k\w+)\s*(?:=|\{)\s*" + LITERAL
)
# file: {literal or constant: why it may be compared}
ALLOWED = {
    "orchestrator/judge/cells/condition_words.cpp": {"= ": "takes the sign off a bound that is only shown"},
    "orchestrator/judge/metering/site_evidence.cpp": {
        "; ": "the list of meters that a sampler writes; what is found is only shown"
    },
    "orchestrator/judge/verdict.cpp": {
        "kOldUnchecked": "assay.verdict/2 has it in words alone",
        "kOldNotChecked": "assay.verdict/2 has it in words alone",
        "kOldRelativeOnly": "assay.verdict/2 has it in words alone",
        "kOldAttempt": "assay.verdict/2 has it in words alone",
        ": ": "assay.verdict/2 has it in words alone",
        '\\n \\"schema\\": \\"': "our own form of JSON",
    },
    "orchestrator/cli/doctor_command.cpp": {
        "kAlone": "a list for people, from which nothing follows; a kind of skip would be better"
    },
    "orchestrator/drain/decide.cpp": {"node ": "kind and name of an element, as drift writes it", "unit ": "the same"},
    "reports/cli/expected.cpp": {"BEGIN CERTIFICATE": "PEM, RFC 7468", "BEGIN X509 CRL": "PEM, RFC 7468"},
    "reports/dossier/contents.cpp": {"kRenderer": "name and version of a program"},
    "reports/dossier/keys.cpp": {
        "ENCRYPTED PRIVATE KEY-----": "PEM, RFC 7468",
        "BEGIN PUBLIC KEY-----": "PEM, RFC 7468",
    },
    "reports/dossier/public_key.cpp": {"-----BEGIN CERTIFICATE-----": "PEM, RFC 7468", "kBegin": "PEM, RFC 7468"},
    "reports/dossier/hardware_trust.cpp": {"kSpaceOrTab": "characters, not words"},
    "reports/dossier/ssh_key.cpp": {
        "kSshBegin": "OpenSSH's key format",
        "kSshEnd": "OpenSSH's key format",
        "kBegin": "OpenSSH's signature format",
        "kEnd": "OpenSSH's signature format",
    },
    "reports/dossier/statement.cpp": {
        "kProgram": "name of the program, which is signed",
        "kResponsible": "one of two sentences that are signed; any other is refused",
        "kSelfSigned": "one of two sentences that are signed; any other is refused",
    },
    "reports/nightly/nights.cpp": {" … ": "a name that this file shortened"},
    "reports/page/action.cpp": {": ": "takes a name off a sentence that is only shown"},
    "reports/page/pdf.cpp": {"kNames": "ISO 32000, a name tree", "kLimits": "ISO 32000, a name tree"},
}


def is_prose(literal):
    text = literal.replace("\\n", "").replace('\\"', '"')
    return " " in text and text.strip() != ""


def arguments(text, begin):
    """The text of a call's arguments; `begin` is behind the opening bracket."""
    depth, at = 1, begin
    while at < len(text) and depth > 0:
        if text[at] == '"':
            at += 1
            while at < len(text) and text[at] != '"':
                at += 2 if text[at] == "\\" else 1
        elif text[at] in "([{":
            depth += 1
        elif text[at] in ")]}":
            depth -= 1
        at += 1
    return text[begin : at - 1]


def compared(text, constants):
    """(position, literal or constant) of every piece of prose that something is compared with."""
    for call in CALL.finditer(text):
        given = arguments(text, call.end())
        for literal in re.findall(LITERAL, given):
            if is_prose(literal):
                yield call.start(), literal
        for name in re.findall(r"\bk[A-Z]\w*", given):
            if name in constants:
                yield call.start(), name
    for match in re.finditer(r"[=!]=\s*(?:" + LITERAL + r"|(?:\w+::)*(k[A-Z]\w*))", text):
        if match[1] is not None and is_prose(match[1]):
            yield match.start(), match[1]
        if match[2] in constants:
            yield match.start(), match[2]


def main():
    files = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*")) if path.suffix in (".cpp", ".h")]
    texts = {path: re.sub(r"//[^\n]*", "", path.read_text()) for path in files}
    shared = {
        name
        for path, text in texts.items()
        if path.suffix == ".h"
        for name, value in CONSTANT.findall(text)
        if is_prose(value)
    }
    wrong, unused = [], {(name, what) for name, known in ALLOWED.items() for what in known}
    for path, text in texts.items():
        name = path.relative_to(ROOT).as_posix()
        own = {constant for constant, value in CONSTANT.findall(text) if is_prose(value)}
        for at, what in compared(text, shared | own):
            unused.discard((name, what))
            if what not in ALLOWED.get(name, {}):
                wrong.append(f"{name}:{text.count(chr(10), 0, at) + 1}: acts on prose, '{what}'; use a value")
    wrong += [
        f"{name}: '{what}' is allowed and compared nowhere" for name, what in sorted(unused) if (ROOT / name).exists()
    ]
    print("\n".join(wrong))
    print(f"{len(files)} files, {len(wrong)} places")
    sys.exit(1 if wrong or not files else 0)


main()
