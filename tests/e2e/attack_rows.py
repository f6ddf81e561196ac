"""attack_rows: the attempts that a test file makes, compared with the list of docs/ATTACKS.md."""
import pathlib
import re
import unittest

TESTS = pathlib.Path(__file__).parents[1]
DOCUMENT = TESTS.parent / "docs/ATTACKS.md"
ROWS = {}  # id -> exit code, of this run's file


def add(section, name, attempt, code, words):
    """The attempt `name` of a section: what is done, with which exit code assay answers, and words that it says."""
    if name in ROWS or not (section and attempt):
        raise AssertionError(f"{name}: an id twice, or a row without a section or an attempt")
    ROWS[name] = code


def ids_of_the_list():
    kinds = re.search(r"<!-- list -->\n(.*?)<!-- end list -->", DOCUMENT.read_text(), re.DOTALL)[1].splitlines()[2:]
    return [name.strip() for kind in kinds for name in kind.split("|")[2].split(",")]


class Document(unittest.TestCase):
    def test_the_list_of_what_must_be_refused_names_rows_that_refuse(self):
        ids = ids_of_the_list()
        self.assertGreater(len(ids), 60)
        for name in ids:
            self.assertIn(ROWS.get(name, 4), (2, 3, 4), name)

    def test_the_list_names_rows_that_are_there(self):
        files = [*TESTS.glob("e2e/attacks/*.cases"), *TESTS.glob("e2e/*_test.py"), *TESTS.glob("hostile/*_test.py")]
        rows = "\n".join(path.read_text() for path in files)
        for name in ids_of_the_list():
            self.assertRegex(rows, rf'(?m)(^{re.escape(name)}: |"{re.escape(name)}")', name)
