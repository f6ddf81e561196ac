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
        self.profile = self.write("profile.json", {"schema": "assay.profile/1", "name": "test", "title": "T", "revision": 1, "requirements": steps})
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
        wait_for(lambda: len(self.ended()) >= 1 and len(self.begun()) > len(self.ended()), "a step runs and another has ended")
        process.send_signal(signal.SIGKILL)
        process.wait(DEADLINE_S)
        self.nothing_left()
        status = self.assay("status", self.run_directory, "--json")
        self.assertFalse(json.loads(status.stdout)["finished"])
        resumed = self.assay("run", "--resume", self.run_directory)
        self.assertEqual(resumed.returncode, 0, resumed.stderr + resumed.stdout)
        self.check_whole()
        self.assertIn("interrupted", {line["what"].split(": ")[1] for line in self.verdict()["deviations"] if ": " in line["what"]})

    def test_kill_9_at_many_instants_is_always_resumed(self):
        for instant in range(6):
            with self.subTest(instant=instant):
                self.run_directory = self.scratch / f"run{instant}"
                process = self.begin()
                lines = 1 + 2 * instant
                wait_for(lambda: (self.run_directory / "plan.json").exists() and len(self.journal()) >= min(lines, 8), f"{lines} lines of journal")
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
        self.nothing_left()
        self.assertEqual(self.assay("run", "--resume", self.run_directory).returncode, 0)
        self.check_whole()

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
        (self.run_directory / "plan.json").write_text(json.dumps(plan, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
        resumed = self.assay("run", "--resume", self.run_directory)
        self.assertEqual(resumed.returncode, 2)
        self.assertIn("another plan", resumed.stderr)


if __name__ == "__main__":
    main()
