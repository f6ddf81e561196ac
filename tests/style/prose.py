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
ROOMS = ("orchestrator/judge", "orchestrator/history", "orchestrator/cli", "orchestrator/drain", "orchestrator/run", "reports")
LITERAL = r'"((?:[^"\\\n]|\\.)*)"'
CALL = re.compile(r"\b(?:find|rfind|contains|starts_with|ends_with|compare|find_first_of|find_last_of)\(")
CONSTANT = re.compile(r"constexpr\s+(?:const\s+char\s*\*\s*(?:const\s+)?|std::string_view\s+|auto\s+)(k\w+)\s*(?:=|\{)\s*" + LITERAL)
# file: {literal or constant: why it may be compared}
PEM = "the first or last line of a key's file, by RFC 7468 or PROTOCOL.key of OpenSSH"
OLD = "assay.verdict/2 has no field for it; applied to such verdicts alone"
STATEMENT = "a constant of the statement's format, compared whole"
ALLOWED = {
    "orchestrator/judge/condition_words.cpp": {"= ": "shortens what people read; decides nothing"},
    "orchestrator/judge/site_evidence.cpp": {"; ": "records of power_feed list unread meters in one text, by name; only the reason shown comes from it"},
    "orchestrator/judge/verdict.cpp": {
        "kOldUnchecked": OLD, "kOldNotChecked": OLD, "kOldRelativeOnly": OLD, "kOldAttempt": OLD, ": ": OLD,
        r'\n \"schema\": \"': "a member of our own JSON, as it is written",
    },
    "orchestrator/cli/doctor_command.cpp": {"kAlone": "chooses what `assay doctor` shows for a skip; decides nothing of a run"},
    "orchestrator/drain/decide.cpp": {"node ": "elements are named by kind and name", "unit ": "elements are named by kind and name"},
    "orchestrator/drain/states.cpp": {"kField": "a field of scontrol", " [": "the form of a reason of scontrol: text [user@time]"},
    "reports/cli/expected.cpp": {"BEGIN CERTIFICATE": PEM},
    "reports/dossier/contents.cpp": {"kRenderer": STATEMENT},
    "reports/dossier/keys.cpp": {"ENCRYPTED PRIVATE KEY-----": PEM, "BEGIN PUBLIC KEY-----": PEM},
    "reports/dossier/public_key.cpp": {"-----BEGIN CERTIFICATE-----": PEM, "kBegin": PEM},
    "reports/dossier/serials.cpp": {"kBlanks": "characters that are stripped"},
    "reports/dossier/ssh_key.cpp": {"kSshBegin": PEM, "kSshEnd": PEM},
    "reports/dossier/ssh_signature.cpp": {"kBegin": PEM, "kEnd": PEM},
    "reports/dossier/statement.cpp": {"kProgram": STATEMENT, "kResponsible": STATEMENT, "kSelfSigned": STATEMENT},
    "reports/nightly/nights.cpp": {" … ": "shortens what people read; decides nothing"},
    "reports/page/action.cpp": {": ": "leaves out a name that is shown beside it; decides nothing"},
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
    shared = {name for path, text in texts.items() if path.suffix == ".h" for name, value in CONSTANT.findall(text) if is_prose(value)}
    wrong, unused = [], {(name, what) for name, known in ALLOWED.items() for what in known}
    for path, text in texts.items():
        name = path.relative_to(ROOT).as_posix()
        own = {constant for constant, value in CONSTANT.findall(text) if is_prose(value)}
        for at, what in compared(text, shared | own):
            unused.discard((name, what))
            if what not in ALLOWED.get(name, {}):
                wrong.append(f"{name}:{text.count(chr(10), 0, at) + 1}: acts on prose, '{what}'; use a value")
    wrong += [f"{name}: '{what}' is allowed and compared nowhere" for name, what in sorted(unused) if (ROOT / name).exists()]
    print("\n".join(wrong))
    print(f"{len(files)} files, {len(wrong)} places")
    sys.exit(1 if wrong or not files else 0)


main()
