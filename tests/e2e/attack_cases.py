"""attack_cases: runs the text cases of attacks/AREA.cases, each as one test.

    attack_cases.py AREA [unittest options]

A file is read line by line:

    # a comment
    steps: PolicySteps                  class of attack_tables.STEPS whose steps the cases use
    run: mixed                          kind of run that make_run writes; `accepted` unless stated
    before: joined merge old south      steps before each case
                                        (before the first group: for all; below the line of a group: for it alone)
    [P Signatures]                      a group: its section, and its name
    P-both: vendor and buyer have signed        a row: its id, and what is attempted
        countersign; by vendor buyer => 0 signed as buyer
    a key file is relative to the policy        a case that is no row: a claim without an id
        ...

The indented lines of a case are steps, `;` between them, with words as a shell has them: '…' for blanks, \\n, \\t, \\\\
and \\ufeff in it; (…) is one word. {name} is a path or digest of the test (Steps.place). A step is a method do_STEP, an
edit, or run_STEP, a command. `=> CODE WORDS` is what the command before it must answer: exit code, and words that stand
in stdout or stderr ("…" around words that begin or end with a blank). Any other command must exit with 0. The last `=>`
is the row's. Checks of the same answer may follow, a line each:

    stdout has WORDS        stdout lacks WORDS      the same with stderr; stdout is WORDS; stdout has all of WORD WORD
    first 4 lines have WORDS                        of stdout
    json /a/*/b == VALUE                            of stdout as JSON; json PATH /a == VALUE of a file
    json /a has 4 members
    file PATH has WORDS     file PATH has in order WORDS | WORDS
    absent PATTERN          unchanged PATH          since the step `keep PATH`
"""
import json
import pathlib
import re
import resource
import sys
import unittest

import attack_rows
from attack_rows import Document  # noqa: F401: every area of attacks has this test
from attack_steps import CONSTANTS, Fault, found
from attacks import MOST_KIB

FOLDER = pathlib.Path(__file__).parent / "attacks"
SETTINGS = ("steps", "run", "before")
CHECKS = ("stdout", "stderr", "first", "json", "file", "absent", "unchanged")
WORD = re.compile(r"\s*(;|(?:'[^']*'|\([^()]*\)|[^\s'();])+)")
ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", "ufeff": "\ufeff"}
NAMED = re.compile(r"([a-z]+)=(.*)", re.DOTALL)
PLACE = re.compile(r"\{([a-z][\w.-]*)\}")


def unescaped(text):
    return re.sub(r"\\(n|t|\\|ufeff)", lambda escape: ESCAPES[escape[1]], text)


def phrase(text):
    """Expected words: as they stand, or between quotation marks; names of constants are replaced."""
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = unescaped(text[1:-1])
    for name, value in CONSTANTS.items():
        text = text.replace("{" + name + "}", value)
    return text


def steps_of(text):
    """The steps of a line, each a list of words."""
    steps, at = [[]], 0
    text = text.rstrip()
    while at < len(text):
        match = WORD.match(text, at)
        if match is None:
            raise Fault(f"not understood: {text[at:].strip()}")
        at = match.end()
        if match[1] == ";":
            steps.append([])
        else:
            steps[-1].append(re.sub(r"'([^']*)'", lambda quoted: unescaped(quoted[1]), match[1]))
    if [] in steps:
        raise Fault("an empty step")
    return steps


class Answer:
    """Steps, the exit code and words that must follow, and further checks of them."""

    def __init__(self, steps, code, words):
        self.steps, self.code, self.words, self.checks = steps, code, words, []


class Case:
    def __init__(self, headline, at):
        name, colon, attempt = headline.partition(": ")
        self.row = bool(colon) and " " not in name
        self.name, self.attempt, self.at = (name, attempt, at) if self.row else (headline, "", at)
        self.method = "test_" + re.sub(r"\W", "_", self.name)
        self.answers, self.open = [], []

    def line(self, text):
        if text.split()[0] in CHECKS:
            if self.open or not self.answers:
                raise Fault("a check of no answer")
            checker(text)  # that it can be read
            self.answers[-1].checks.append(text)
            return
        steps, arrow, answer = re.match(r"(.*?)(?:(?:^|\s+)(=>)\s*(.*))?$", text, re.DOTALL).groups()
        self.open += steps_of(steps) if steps else []
        if arrow is None:
            return
        code, _, words = answer.partition(" ")
        if code not in ("0", "1", "2", "3", "4"):
            raise Fault(f"no exit code: {answer}")
        if not self.open:
            raise Fault("an answer to no step")
        self.answers.append(Answer(self.open, int(code), phrase(words)))
        self.open = []

    def close(self, steps):
        """Refuses a case that checks nothing, and steps that are not known."""
        if self.open or not self.answers:
            raise Fault(f"{self.name}: ends without `=> CODE WORDS`")
        if not self.answers[-1].words and not self.answers[-1].checks:
            raise Fault(f"{self.name}: checks no words")
        for answer in self.answers:
            for words in answer.steps:
                found(steps, words[0])
            if not found(steps, answer.steps[-1][0]).startswith("run_"):
                raise Fault(f"{self.name}: {answer.steps[-1][0]} is no command, which could be answered")


class Group:
    def __init__(self, section, name, settings):
        self.section, self.name, self.settings, self.cases = section, name, dict(settings), []

    def close(self, steps):
        if not self.cases:
            raise Fault(f"[{self.section} {self.name}] has no case")
        for words in steps_of(self.settings["before"]) if "before" in self.settings else []:
            found(self.steps(steps), words[0])
        for case in self.cases:
            case.close(self.steps(steps))

    def steps(self, steps):
        name = self.settings.get("steps", "Steps")
        if name not in steps:
            raise Fault(f"steps: {name} is not one of {', '.join(steps)}")
        return steps[name]


def read(text, steps):
    """The groups of a file; Fault with the number of the line."""
    common, groups, names = {}, [], set()
    for number, line in enumerate(text.splitlines(), 1):
        try:
            take(line, number, common, groups, names)
        except Fault as fault:
            raise Fault(f"line {number}: {fault}") from None
    if not groups:
        raise Fault("has no case")
    for group in groups:
        group.close(steps)
    return groups


def take(line, number, common, groups, names):
    if not line.strip() or line.lstrip().startswith("#"):
        return
    heading = re.fullmatch(r"\[(\S+) (\w+)\]", line)
    if heading:
        if heading[2] in [group.name for group in groups]:
            raise Fault(f"{heading[2]} is there twice")
        groups.append(Group(heading[1], heading[2], common))
    elif line.startswith("    "):
        if not groups or not groups[-1].cases:
            raise Fault("a step of no case")
        groups[-1].cases[-1].line(line.strip())
    elif line[0].isspace():
        raise Fault("is indented by other than four blanks")
    elif not groups or (not groups[-1].cases and line.partition(": ")[0] in SETTINGS):
        name, _, value = line.partition(": ")
        if name not in SETTINGS or not value:
            raise Fault(f"{name}: is not one of {', '.join(SETTINGS)}")
        (groups[-1].settings if groups else common)[name] = value
    else:
        case = Case(line, number)
        if case.name.partition(":")[0] in SETTINGS or case.method in names:
            raise Fault(f"{case.name}: is there twice, or is a setting below a case")
        names.add(case.method)
        groups[-1].cases.append(case)


def checker(text):
    """The function (test, done) that makes this check."""
    for pattern, check in PATTERNS:
        match = re.fullmatch(pattern, text, re.DOTALL)
        if match:
            return lambda test, done: check(test, done, *match.groups())
    raise Fault(f"not understood: {text}")


def picked(document, pointer):
    for part in pointer.split("/")[1:]:
        if part == "*":
            return [picked(one, pointer.partition("/*")[2]) for one in document]
        document = document[int(part)] if isinstance(document, list) else document[part]
    return document


def json_is(test, done, path, pointer, value):
    document = json.loads(pathlib.Path(path.strip()).read_text() if path else done.stdout)
    test.assertEqual(picked(document, pointer), json.loads(value))


def in_order(test, _, path, words):
    text, at = pathlib.Path(path).read_text(), 0
    for one in words.split(" | "):
        test.assertIn(one, text)
        test.assertGreaterEqual(text.index(one), at, one)
        at = text.index(one)


PATTERNS = (
    (
        r"(stdout|stderr) has all of (.+)",
        lambda test, done, stream, words: [test.assertIn(one, getattr(done, stream)) for one in words.split()],
    ),
    (
        r"(stdout|stderr) has (.+)",
        lambda test, done, stream, words: test.assertIn(phrase(words), getattr(done, stream)),
    ),
    (
        r"(stdout|stderr) lacks (.+)",
        lambda test, done, stream, words: test.assertNotIn(phrase(words), getattr(done, stream)),
    ),
    (
        r"(stdout|stderr) is (.+)",
        lambda test, done, stream, words: test.assertEqual(getattr(done, stream), phrase(words)),
    ),
    (
        r"(stdout|stderr) matches (.+)",
        lambda test, done, stream, words: test.assertRegex(getattr(done, stream), rf"\A(?:{words})\Z"),
    ),
    (
        r"first (\d) lines have (.+)",
        lambda test, done, count, words: test.assertIn(
            phrase(words), "\n".join(done.stdout.splitlines()[: int(count)])
        ),
    ),
    (
        r"json (/\S+) has (\d+) members",
        lambda test, done, pointer, count: test.assertEqual(
            len(picked(json.loads(done.stdout), pointer)), int(count), done.stdout
        ),
    ),
    (r"json (\S+ )??(/\S+) == (.+)", json_is),
    (r"file (\S+) has in order (.+)", in_order),
    (
        r"file (\S+) has (.+)",
        lambda test, done, path, words: test.assertIn(phrase(words), pathlib.Path(path).read_text()),
    ),
    (r"absent (\S+)", lambda test, done, path: test.assertEqual(list(pathlib.Path("/").glob(path.lstrip("/"))), [])),
    (r"unchanged (\S+)", lambda test, done, path: test.assertEqual(pathlib.Path(path).read_bytes(), test.kept[path])),
)


def take_step(test, words):
    """Does one step; what a command answers, or None."""
    name = found(type(test), words[0])
    plain, named = [], {}
    for word in words[1:]:
        word = PLACE.sub(lambda place: str(test.place(place[1])), word)
        match = NAMED.fullmatch(word)
        if match:
            named[match[1]] = match[2]
        else:
            plain.append(word)
    done = getattr(test, name)(*plain, **named)
    return done if name.startswith("run_") else None


def take_steps(test, steps, code=0):
    """Does the steps; the last command must end with this exit code, those before with 0."""
    done = None
    for at, words in enumerate(steps):
        done = take_step(test, words)
        if done is not None:
            expected = code if at == len(steps) - 1 else 0
            test.assertEqual(done.returncode, expected, f"{' '.join(words)}: {done.stdout}{done.stderr}")
    return done


def method_of(case):
    def test(self):
        for answer in case.answers:
            done = take_steps(self, answer.steps, answer.code)
            self.assertIn(answer.words, done.stdout + done.stderr)
            for check in answer.checks:
                checker(PLACE.sub(lambda place: str(self.place(place[1])), check))(self, done)
        # Of the largest program so far, verify among them.
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, MOST_KIB)

    test.__name__ = case.method
    test.__doc__ = f"{case.name}: {case.attempt}" if case.row else case.name
    return test


def class_of(group, steps):
    """The test class of a group; its rows are noted in their order."""
    before = steps_of(group.settings["before"]) if "before" in group.settings else []

    def set_up(self):
        base.setUp(self)
        take_steps(self, before)

    base = group.steps(steps)
    members = {"setUp": set_up, "kind": group.settings.get("run", "accepted"), "__module__": __name__}
    for case in group.cases:
        members[case.method] = method_of(case)
        if case.row:
            attack_rows.add(group.section, case.name, case.attempt, case.answers[-1].code, case.answers[-1].words)
    return type(group.name, (base,), members)


def main():
    from attack_tables import STEPS

    area = sys.argv.pop(1) if len(sys.argv) > 1 else ""
    path = FOLDER / f"{area}.cases"
    if not path.is_file():
        sys.exit(f"usage: attack_cases.py AREA, one of {', '.join(sorted(one.stem for one in FOLDER.glob('*.cases')))}")
    try:
        groups = read(path.read_text(), STEPS)
    except Fault as fault:
        sys.exit(f"{path}: {fault}")
    for group in groups:
        globals()[group.name] = class_of(group, STEPS)
    program = unittest.main(exit=False, verbosity=2)
    sys.exit(0 if program.result.wasSuccessful() and program.result.testsRun > 1 else 1)


if __name__ == "__main__":
    main()
