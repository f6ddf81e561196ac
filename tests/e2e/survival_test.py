"""What a run survives: full disks, a second run in its directory, a node that goes away and comes back."""
import os
import pathlib
import signal
import subprocess
import unittest

from harness import DEADLINE_S, Bench, main, processes, requirement, wait_for
from loopback import LoopbackBench

PAGE = 4096  # what a file on tmpfs takes at least
PATIENCE_S = 120  # for two nodes on a loaded machine


class FullDisk(Bench):
    def small_disk(self, path, size):
        path.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "assay-test", path], capture_output=True, text=True
        )
        if mounted.returncode != 0:
            raise unittest.SkipTest("a small disk cannot be mounted on this machine: " + mounted.stderr)
        self.addCleanup(subprocess.run, ["umount", "-l", path])

    def test_a_full_disk_on_the_head_stops_the_run_and_what_was_finished_is_kept(self):
        steps = [requirement(f"r{i:02}", value=100 + i) for i in range(12)]
        profile = self.write(
            "profile.json",
            {"schema": "assay.profile/1", "name": "test", "title": "T", "revision": 1, "requirements": steps},
        )
        plan = self.scratch / "plan.json"
        self.assertEqual(
            self.assay("plan", "--profile", profile, "--directory", self.work, "--out", plan).returncode, 0
        )
        # Room for the plan, the journal, and the records of some of the steps.
        disk = self.scratch / "head"
        self.small_disk(disk, (plan.stat().st_size // PAGE + 7) * PAGE)
        self.run_directory = disk / "run"
        done = self.assay("run", plan, "--out", self.run_directory)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("evidence cannot be written", done.stderr)
        self.assertIn("No space left on device", done.stderr)
        self.assertIn("assay run --resume", done.stderr)
        self.assertEqual(list(self.run_directory.rglob("*.tmp")), [])
        ended = [line["step"] for line in self.journal() if line["kind"] == "attempt_end"]
        self.nothing_left()

        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        resumed = self.assay("run", "--resume", self.run_directory)
        self.assertEqual(resumed.returncode, 0, resumed.stderr + resumed.stdout)
        self.assertEqual(set(self.outcomes().values()), {"pass"})
        again = [line["step"] for line in self.journal() if line["kind"] == "attempt_end"]
        self.assertEqual(again[: len(ended)], ended)
        self.assertEqual(len(set(again)), len(again))
        for line in self.journal():
            for file in line.get("evidence", []):
                self.assertEqual((self.run_directory / file["path"]).stat().st_size, file["bytes"])

    def test_a_full_disk_on_a_node_is_named_and_nothing_passes(self):
        self.small_disk(
            self.work, "64k,nr_inodes=2"
        )  # one for its root, one for the filler: a directory needs no block of a tmpfs
        with open(self.work / "filler", "wb", buffering=0) as filler, self.assertRaises(OSError):
            while True:
                filler.write(b"x" * PAGE)
        done = self.accept(requirement("r"))
        self.assertEqual(done.returncode, 3, done.stderr + done.stdout)
        self.assertNotIn("pass", self.outcomes().values())
        self.assertIn("No space left on device", " ".join(self.reasons().values()))


class OneRunAtATime(Bench):
    def test_a_second_run_into_one_directory_is_refused_and_told_who_has_it(self):
        self.profile = self.write(
            "profile.json",
            {
                "schema": "assay.profile/1",
                "name": "test",
                "title": "T",
                "revision": 1,
                "requirements": [requirement(f"r{i}", "slow", value=100 + i) for i in range(3)],
            },
        )
        process = self.start("accept", "--profile", self.profile, "--directory", self.work, "--out", self.run_directory)
        wait_for(lambda: any(line["kind"] == "attempt_begin" for line in self.journal()), "the first step runs")
        process.send_signal(signal.SIGSTOP)  # so that it is there still, however late the second comes
        second = self.assay("run", "--resume", self.run_directory)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(second.returncode, 2, second.stdout)
        self.assertIn(f"is in use by process {process.pid} on {os.uname().nodename}", second.stderr)
        self.assertEqual(process.wait(DEADLINE_S), 0)
        self.assertEqual(set(self.outcomes().values()), {"pass"})


class KilledWhileWriting(Bench):
    def test_halves_that_a_killed_run_left_are_gone_when_it_goes_on(self):
        steps = [requirement(f"r{i}", "slow", value=100 + i) for i in range(2)]
        profile = self.write(
            "profile.json",
            {"schema": "assay.profile/1", "name": "test", "title": "T", "revision": 1, "requirements": steps},
        )
        process = self.start("accept", "--profile", profile, "--directory", self.work, "--out", self.run_directory)
        wait_for(lambda: any(line["kind"] == "attempt_end" for line in self.journal()), "the first step ended")
        process.send_signal(signal.SIGKILL)
        process.wait(DEADLINE_S)
        record, *_ = (self.run_directory / "records").glob("*/1/0.jsonl")
        record.with_suffix(".jsonl.tmp").write_text('{"half')
        self.assertEqual(self.assay("run", "--resume", self.run_directory).returncode, 0)
        self.assertEqual(list(self.run_directory.rglob("*.tmp")), [])


class ComesBack(LoopbackBench):
    def end(self, node):
        """Ends the node's sshd and its sessions, as a machine that goes down does; gives the program that it was."""
        pid = int((self.cluster / node / "sshd.pid").read_text())
        program = os.readlink(f"/proc/{pid}/exe")
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(pid, signal.SIGKILL)
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        wait_for(lambda: not pathlib.Path(f"/proc/{pid}/exe").exists(), "its sshd is gone")
        return program

    def test_a_node_that_is_away_for_a_while_goes_on_with_its_steps_and_its_absence_is_on_record(self):
        profile = self.write(
            "profile.json",
            {
                "schema": "assay.profile/1",
                "name": "test",
                "title": "T",
                "revision": 1,
                "requirements": [requirement(f"r{i}", "slow", value=100 + i) for i in range(3)],
            },
        )
        process = self.start(
            "accept",
            "--profile",
            profile,
            "--site",
            self.cluster / "site.json",
            "--out",
            self.run_directory,
            "--patience",
            "2min",
        )
        wait_for(
            lambda: any(line["kind"] == "attempt_begin" and line["node"] == "n02" for line in self.journal()),
            "n02 measures",
            PATIENCE_S,
        )
        sshd = self.end("n02")
        wait_for(lambda: any(line["kind"] == "node_down" for line in self.journal()), "n02 is missed", PATIENCE_S)
        again = subprocess.Popen(
            [
                "unshare",
                "--uts",
                "sh",
                "-c",
                'hostname n02 && exec "$0" -D -e -f "$1"',
                sshd,
                self.cluster / "n02/sshd_config",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(again.wait, DEADLINE_S)
        self.addCleanup(again.kill)
        self.assertEqual(process.wait(2 * PATIENCE_S), 3)
        outcomes = self.outcomes()
        self.assertEqual({outcomes[(f"r{i}", "n01")] for i in range(3)}, {"pass"})
        self.assertEqual(sorted(outcomes[(f"r{i}", "n02")] for i in range(3)), ["error", "pass", "pass"])
        self.assertEqual(sum(line["kind"] == "node_up" and line["node"] == "n02" for line in self.journal()), 2)
        self.assertTrue(
            any(
                "n02" in line["what"] and "connection was lost" in line["what"] for line in self.verdict()["deviations"]
            )
        )
        wait_for(
            lambda: not [agent for agent in processes("assay-node --") if str(self.cluster) in agent], "agents are gone"
        )


if __name__ == "__main__":
    main()
