"""The runner of text cases itself: what it refuses to read, and that a case fails which is answered otherwise."""
import subprocess
import unittest

import attack_cases
from attack_steps import Fault
from attacks import Bench, main


class Fakes(Bench):
    """Steps without a dossier: a command answers what its words say."""

    def setUp(self):
        pass

    def place(self, name):
        return {"here": "/here"}[name]

    def do_nothing(self):
        pass

    def run_say(self, text, code="0", error=""):
        return subprocess.CompletedProcess([], int(code), text, error)


STEPS = {"Steps": Fakes}
ROW = "[X Group]\nid: an attempt\n    "


def groups_of(text):
    return attack_cases.read(text, STEPS)


def outcome(text):
    """Whether the only case of a file passes."""
    case = groups_of(text)[0].cases[0]
    made = type("Made", (Fakes,), {"test": attack_cases.method_of(case)})
    return made("test").run().wasSuccessful()


class Reading(unittest.TestCase):
    def refused(self, text, words):
        with self.assertRaisesRegex(Fault, words):
            groups_of(text)

    def test_an_empty_file_and_a_group_without_a_case_are_refused(self):
        self.refused("", "has no case")
        self.refused("# nothing\n", "has no case")
        self.refused("[X Group]\n[X Other]\nid: an attempt\n    say a => 0 a\n", "Group. has no case")

    def test_an_unknown_setting_is_refused(self):
        self.refused("stesp: Steps\n" + ROW + "say a => 0 a", "line 1: stesp: is not one of steps, run, before")
        self.refused("steps: Other\n" + ROW + "say a => 0 a", "Other is not one of Steps")
        self.refused(ROW + "say a => 0 a\nsteps: Steps\n    say a => 0 a", "a setting below a case")

    def test_a_name_that_is_there_twice_is_refused(self):
        self.refused(ROW + "say a => 0 a\nid: again\n    say a => 0 a", "line 4: id: is there twice")
        self.refused(ROW + "say a => 0 a\n[Y Group]\nother: again\n    say a => 0 a", "Group is there twice")

    def test_a_case_that_checks_nothing_is_refused(self):
        self.refused("[X Group]\nid: an attempt\n", "ends without")
        self.refused(ROW + "say a", "ends without")
        self.refused(ROW + "say a => 0 a\n    nothing", "ends without")
        self.refused(ROW + "say a => 0", "checks no words")
        self.refused(ROW + "nothing => 0 a", "is no command")
        self.refused(ROW + "=> 0 a", "an answer to no step")

    def test_a_step_a_check_and_a_code_that_are_not_known_are_refused(self):
        self.refused(ROW + "shout a => 0 a", "has no step 'shout'")
        self.refused("before: shout\n" + ROW + "say a => 0 a", "has no step 'shout'")
        self.refused(ROW + "say a => 0 a\n    stdout had a", "not understood: stdout had a")
        self.refused(ROW + "say a => 9 a", "no exit code: 9 a")
        self.refused(ROW + "say 'a => 0 a", "not understood: 'a")

    def test_words_are_split_as_documented(self):
        self.assertEqual(
            attack_cases.steps_of(r"a 'b; c\n' d(e; f); g x='1 2'"), [["a", "b; c\n", "d(e; f)"], ["g", "x=1 2"]]
        )


class Running(unittest.TestCase):
    def test_the_answer_that_is_expected_passes(self):
        self.assertTrue(outcome(ROW + "nothing; say 'a b' => 0 a b"))
        self.assertTrue(outcome(ROW + "say {here} code=4 => 4 /here\n    say x => 0 x"))
        self.assertTrue(
            outcome(ROW + "say out error=err => 0 err\n    stdout has out\n    stderr lacks out\n    absent /nowhere/*")
        )
        self.assertTrue(
            outcome(ROW + 'say \'{"a":[{"b":1},{"b":2}]}\' => 0\n    json /a/*/b == [1, 2]\n    json /a has 2 members')
        )

    def test_another_exit_code_fails(self):
        self.assertFalse(outcome(ROW + "say a code=1 => 0 a"))
        self.assertFalse(outcome(ROW + "say a => 4 a"))

    def test_a_command_between_that_does_not_succeed_fails(self):
        self.assertFalse(outcome(ROW + "say a code=4; say a => 0 a"))
        self.assertFalse(outcome(ROW + "say a code=4 => 0\n    say a => 0 a"))

    def test_other_words_and_what_must_be_absent_fail(self):
        self.assertFalse(outcome(ROW + "say b => 0 a"))
        self.assertFalse(outcome(ROW + "say b => 0 a\n    say a => 0 a"))
        self.assertFalse(outcome(ROW + "say a error=b => 0 a\n    stderr lacks b"))
        self.assertFalse(outcome(ROW + "say a error=b => 0 a\n    stdout has b"))
        self.assertFalse(outcome(ROW + "say a => 0 a\n    absent /etc"))
        self.assertFalse(outcome(ROW + 'say \'{"a":[{"b":1}]}\' => 0\n    json /a/*/b == [2]'))
        self.assertFalse(outcome(ROW + 'say \'{"a":[{"b":1}]}\' => 0\n    json /a has 2 members'))


if __name__ == "__main__":
    main()
