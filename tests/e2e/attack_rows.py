"""attack_rows: the table of docs/ATTACKS.md, a row for each attempt, written and compared by the tests that make the attempts."""
import os
import pathlib
import re
import unittest

DOCUMENT = pathlib.Path(__file__).parents[2] / "docs/ATTACKS.md"
ROWS = {}  # section -> list of rows, in the order of the file


def add(section, name, attempt, code, words):
    """The attempt `name` of a section: what is done, with which exit code assay answers, and words that it says."""
    ROWS.setdefault(section, []).append((name, attempt, code, words))


def table():
    """docs/ATTACKS.md as the rows of this run's files give it, for their sections."""
    text = DOCUMENT.read_text()
    for section, rows in ROWS.items():
        lines = ["| id | attempt | exit code | assay says |", "|---|---|---|---|"]
        lines += [
            f"| {name} | {attempt} | {code} | {words} |".replace("\n", " ") for name, attempt, code, words in rows
        ]
        pattern = re.compile(rf"(<!-- rows {section} -->\n).*?(<!-- end -->)", re.DOTALL)
        if len(pattern.findall(text)) != 1:
            raise AssertionError(f"docs/ATTACKS.md has no place for section {section}")
        text = pattern.sub(lambda place: place[1] + "\n".join(lines) + "\n" + place[2], text)
    return text


class Document(unittest.TestCase):
    def test_the_list_of_what_must_be_refused_names_rows_that_refuse(self):
        text = DOCUMENT.read_text()
        kinds = re.search(r"<!-- list -->\n(.*?)<!-- end list -->", text, re.DOTALL)[1].splitlines()[2:]
        codes = dict(re.findall(r"^\| (\S+) \| .*? \| (\d) \| .* \|$", text, re.MULTILINE))
        self.assertGreater(len(kinds), 15)
        for kind in kinds:
            for name in kind.split("|")[2].split(","):
                self.assertIn(codes.get(name.strip()), {"2", "3", "4"}, name)

    def test_the_document_lists_every_attempt_with_its_outcome(self):
        if os.environ.get("ASSAY_BLESS"):
            DOCUMENT.write_text(table())
        self.assertEqual(DOCUMENT.read_text(), table(), "run with ASSAY_BLESS=1")
