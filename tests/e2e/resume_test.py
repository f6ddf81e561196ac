"""What a run survives: kill -9 at any instant, SIGINT once and twice, and what --resume makes of it."""
import json
import os
import signal

from harness import DEADLINE_S, Bench, main, requirement, wait_for

STEPS = 3  # 0.6 s each: a test on a loaded machine that is late by two steps still meets the third


class Resume(Bench):
    def ended(self):
        return [line["step"] for line in self.journal() if line["kind"] == "attempt_end"]

    def begun(self):
        return [line["step"] for line in self.journal() if line["kind"] == "attempt_begin"]

    def begin(self):
        steps = [requirement(f"r{i}", "slow", value=100 + i) for i in range(STEPS)]
        self.profile = self.write(
            "profile.json",
            {"schema": "assay.profile/1", "name": "test", "title": "T", "revision": 1, "requirements": steps},
        )
        return self.start("accept", "--profile", self.profile, "--directory", self.work, "--out", self.run_directory)

    def check_whole(self):
        """Every cell is judged as in an undisturbed run, and no finished step was repeated."""
        self.assertEqual(set(self.outcomes().values()), {"pass"})
        self.assertEqual(self.verdict()["overall"], "accepted")
        ended = [line for line in self.journal() if line["kind"] == "attempt_end" and line["outcome"] == "exited"]
        self.assertEqual(len(ended), STEPS)
        self.assertEqual(len({line["step"] for line in ended}), STEPS)
        for line in ended:
            for file in line["evidence"]:
                self.assertEqual((self.run_directory / file["path"]).stat().st_size, file["bytes"])
        self.nothing_left()

    def test_kill_9_in_mid_step_loses_that_attempt_alone(self):
        process = self.begin()
        wait_for(
            lambda: len(self.ended()) >= 1 and len(self.begun()) > len(self.ended()),
            "a step runs and another has ended",
        )
        self.assertNotIn("interrupted", self.assay("status", self.run_directory).stdout)
        process.send_signal(signal.SIGKILL)
        process.wait(DEADLINE_S)
        self.nothing_left()
        self.assertIn("interrupted", self.assay("status", self.run_directory).stdout)
        self.assertIn("is no folder of a run", self.assay("status", self.scratch).stderr)
        status = self.assay("status", self.run_directory, "--json")
        self.assertFalse(json.loads(status.stdout)["finished"])
        resumed = self.assay("run", "--resume", self.run_directory)
        self.assertEqual(resumed.returncode, 0, resumed.stderr + resumed.stdout)
        self.check_whole()
        self.assertIn(
            "interrupted",
            {line["what"].split(": ")[1] for line in self.verdict()["deviations"] if ": " in line["what"]},
        )

    def test_kill_9_at_many_instants_is_always_resumed(self):
        for instant in range(6):
            with self.subTest(instant=instant):
                self.run_directory = self.scratch / f"run{instant}"
                process = self.begin()
                lines = 1 + 2 * instant
                wait_for(
                    lambda: (self.run_directory / "plan.json").exists() and len(self.journal()) >= min(lines, 8),
                    f"{lines} lines of journal",
                )
                process.send_signal(signal.SIGKILL)
                process.wait(DEADLINE_S)
                resumed = self.assay("run", "--resume", self.run_directory)
                self.assertEqual(resumed.returncode, 0, resumed.stderr + resumed.stdout)
                self.check_whole()

    def test_a_torn_journal_line_is_passed_over(self):
        process = self.begin()
        wait_for(self.ended, "the first step ended")
        process.send_signal(signal.SIGKILL)
        process.wait(DEADLINE_S)
        with open(self.run_directory / "journal.jsonl", "a") as journal:
            journal.write('{"time":"2026-01-05T06:37:')
        self.assertEqual(self.assay("run", "--resume", self.run_directory).returncode, 0)
        self.check_whole()

    def test_one_interrupt_lets_the_step_end_and_keeps_all(self):
        process = self.begin()
        wait_for(self.begun, "the first step runs")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(DEADLINE_S), 3)
        self.assertEqual(self.ended(), self.begun())
        self.assertLess(len(self.ended()), STEPS)
        self.assertEqual(self.verdict()["overall"], "incomplete")
        self.assertIn("interrupted by a signal", str(self.verdict()["deviations"]))
        self.assertFalse((self.run_directory / "dossier").exists(), "an interrupted run is not signed")
        self.nothing_left()
        resumed = self.assay("run", "--resume", self.run_directory)
        self.assertEqual(resumed.returncode, 0)
        self.assertIn(f"[  {STEPS}/{STEPS}]", resumed.stderr)
        self.assertIn("to report and sign: assay report ", resumed.stderr)
        self.check_whole()

    def interrupted(self):
        """A run that was interrupted after its first step."""
        process = self.begin()
        wait_for(self.begun, "the first step runs")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(DEADLINE_S), 3)

    def key(self):
        self.assertEqual(self.assay("keygen", self.scratch / "lab.key").returncode, 0)
        return self.scratch / "lab.key"

    def test_a_resumed_run_is_reported_and_signed_with_the_key_that_is_named(self):
        self.interrupted()
        key = self.key()
        resumed = self.assay("run", "--resume", self.run_directory, "--key", key)
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        verified = self.verify(key=f"{key}.pub")
        self.assertEqual(verified.returncode, 0, verified.stderr)
        self.assertIn("verified: accepted", verified.stdout)

    def test_a_dossier_from_before_the_run_was_resumed_is_told_of_and_moved_aside(self):
        self.interrupted()
        key = self.key()
        dossier = self.run_directory / "dossier"
        for command in (("report", self.run_directory), ("sign", self.run_directory, "--key", key)):
            self.assertEqual(self.assay(*command).returncode, 0)
        journal = (self.run_directory / "journal.jsonl").read_text()
        (self.run_directory / "journal.jsonl").write_text(
            journal + '{"time":"2026-01-05T06:37:55.120Z","kind":"run_resume"}\n'
        )
        self.assertTrue(json.loads(self.assay("status", self.run_directory, "--json").stdout)["dossier_is_earlier"])
        self.assertIn("went on after this dossier was signed", self.verify(key=f"{key}.pub").stderr)
        for command in (("judge", self.run_directory), ("report", self.run_directory)):
            self.assertIn(self.assay(*command).returncode, (0, 3))
        signed = self.assay("sign", self.run_directory, "--key", key)
        self.assertEqual(signed.returncode, 0, signed.stderr)
        self.assertIn("it is now", signed.stderr)
        self.assertTrue((self.run_directory / "dossier-1").is_dir())
        self.assertEqual(self.verify(dossier, f"{key}.pub").stderr, "")
        again = self.assay("sign", self.run_directory, "--key", key)
        self.assertEqual(again.returncode, 2, "the dossier of the run as it is stays")
        self.assertIn(f"--out {dossier}-2", again.stderr)

    def test_a_run_that_is_going_on_is_not_reported_or_signed(self):
        process = self.begin()
        wait_for(self.begun, "the first step runs")
        self.assertTrue(json.loads(self.assay("status", self.run_directory, "--json").stdout)["running"])
        judged = self.assay("judge", self.run_directory)
        self.assertIn("still going on (process ", judged.stderr)
        report = self.assay("report", self.run_directory)
        self.assertEqual(report.returncode, 2, report.stderr)
        self.assertIn("is a run that is still going on (process ", report.stderr)
        process.send_signal(signal.SIGKILL)
        process.wait(DEADLINE_S)

    def test_the_folder_of_the_run_is_no_dossier(self):
        self.interrupted()
        self.assertEqual(self.assay("run", "--resume", self.run_directory, "--sign").returncode, 0)
        wrong = self.verify(self.run_directory)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn(f"did you mean {self.run_directory}/dossier?", wrong.stderr)
        (self.run_directory / "dossier/.DS_Store").write_text("x")
        self.assertIn(".DS_Store: is a file that a desktop leaves", self.verify().stderr)

    def test_two_interrupts_stop_at_once_and_leave_nothing_running(self):
        process = self.begin()
        wait_for(self.begun, "the first step runs")
        process.send_signal(signal.SIGINT)
        wait_for(lambda: os.path.exists(self.run_directory / "journal.jsonl"), "the journal is there")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(DEADLINE_S), 3)
        self.assertEqual(self.verdict()["overall"], "incomplete")
        self.nothing_left()

    def test_another_plan_is_not_resumed(self):
        process = self.begin()
        wait_for(self.ended, "the first step ended")
        process.send_signal(signal.SIGKILL)
        process.wait(DEADLINE_S)
        plan = json.loads((self.run_directory / "plan.json").read_text())
        plan["profile"]["requirements"][0]["limit"]["at_least"] = 1.0
        (self.run_directory / "plan.json").write_text(
            json.dumps(plan, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        )
        resumed = self.assay("run", "--resume", self.run_directory)
        self.assertEqual(resumed.returncode, 2)
        self.assertIn("another plan", resumed.stderr)


if __name__ == "__main__":
    main()
