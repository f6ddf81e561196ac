"""rows: attempts of an enemy, each a row: what is done, the exit code, words that assay says; below 1 GiB, and
nothing that a terminal would obey is printed."""
import pathlib
import re
import sys
import unicodedata

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import attack_rows  # noqa: E402
import harness  # noqa: E402,F401
import measured  # noqa: E402
from attack_rows import Document  # noqa: E402,F401


def obeyed(text):
    """What a terminal would obey in `text`, or what would change the direction of what it shows."""
    return sorted(
        {hex(ord(c)) for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs")}
    )


def checked(test, name, done, code, words):
    """That `done` ended with `code`, said `words`, printed nothing harmful and kept to its memory."""
    test.assertEqual(done.code, code, f"{name}: {done}")
    test.assertIn(words, done.out + done.err, name)
    test.assertLess(done.kib, measured.MOST_KIB, f"{name}: {done}")
    test.assertEqual(obeyed(done.out + done.err), [], f"{name}: {done}")


def row(section, name, attempt, code, words):
    """Names a method, which returns a measured.Done, as one attempt."""

    def mark(method):
        attack_rows.add(section, name, attempt, code, words)

        def test(self):
            checked(self, name, method(self), code, words)

        test.__name__ = "test_" + re.sub(r"\W", "_", name)
        test.__doc__ = f"{section}: {name}: {attempt}"
        return test

    return mark
