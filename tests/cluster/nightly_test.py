"""Nights of sweeps through a real Slurm: a node that becomes slow is flagged, tested again, confirmed, drained, repaired and put back; a job
of another user is left alone. The nights are those of --night."""
import json
import pathlib
import subprocess

from harness import main, requirement, wait_for
from nightly import nightly
from slurm_bench import SlurmBench

SLOW, HELD = "n03", "n05"
PATIENCE_S = 60


class ThreeNights(SlurmBench):
    def setUp(self):
        super().setUp()
        self.ssh_site = self.write("ssh.json", self.cluster.site())
        nodes = [
            {"name": node.name, "launcher": "slurm", "directory": "/tmp/assay-work"} for node in self.cluster.nodes
        ]
        self.site = self.write("slurm.json", {"schema": "assay.site/1", "name": "slurm", "nodes": nodes})
        figure = requirement("r", script="/tmp/number")
        figure["parameters"]["script"] = figure.pop("script")
        self.profile = self.write("night.json", nightly(figure))
        self.policy = self.write("policy.json", {"schema": "assay.policy/1", "warmup": 3, "mode": "drain"})
        self.history = self.scratch / "history.db"

    def command(self, *words):
        return subprocess.run(
            [*self.cluster.head, self.installed, *map(str, words)],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=self.deadline_s,
            stdin=subprocess.DEVNULL,
        )

    def sweep(self, name, night, *more, site=None):
        """The states of the nodes that were due."""
        folder = self.cluster.path / name
        done = self.command(
            "sweep",
            "--profile",
            self.profile,
            "--site",
            site or self.site,
            "--state",
            self.scratch / "ledger",
            "--night",
            night,
            "--now",
            f"{night}T23:00:00.000Z",
            "--history",
            self.history,
            "--out",
            folder,
            *(["--slurm", "--patience", "15s"] if site is None else []),
            *more,
        )
        self.assertIn(done.returncode, (0, 3), done.stderr + done.stdout)
        return {visit["node"]: visit["state"] for visit in json.loads((folder / "sweep.json").read_text())["visits"]}

    def numbers(self, name):
        """What the figure was on each node, by the records of the sweep."""
        found = {}
        nodes = self.cluster.path / name / "nodes"
        for record in nodes.glob("*/run/records/**/*"):
            if not record.is_file():
                continue
            lines = [json.loads(line) for line in record.read_text().splitlines()]
            if lines[0]["start"]["parameters"]["value"] == 100:
                found[record.relative_to(nodes).parts[0]] = next(
                    line["measurement"]["samples"][0] for line in lines if "measurement" in line
                )
        return found

    def drain(self, action, now, *more):
        return self.command(
            "drain",
            action,
            "--drift",
            self.scratch / "drift.json",
            "--policy",
            self.policy,
            "--site",
            self.site,
            "--journal",
            self.scratch / "drain.jsonl",
            "--now",
            now,
            "--apply",
            *more,
        )

    def state_of(self, node):
        shown = self.slurm.at_head("scontrol", "--oneliner", "show", "node", node)
        fields = dict(word.split("=", 1) for word in shown.split() if "=" in word)
        return fields["State"], shown.partition("Reason=")[2].partition(" [")[0]

    def hold(self, node):
        """A job of another user on the whole node."""
        script = self.write("job.sh", "#!/bin/sh\nsleep 600\n")
        job = self.slurm.at_head(
            "sbatch", "--parsable", "--exclusive", f"--nodelist={node}", "--output=/dev/null", script
        ).strip()
        wait_for(
            lambda: f"{job} " in self.slurm.at_head("squeue", "--noheader", "--states=RUNNING", "--format=%i ."),
            "the job runs",
            PATIENCE_S,
        )
        return job

    def slow_down(self, node, lines):
        pathlib.Path(f"/proc/{self.cluster[node].init}/root/tmp/number").write_text(lines)

    def judge(self):
        """The report of `assay drift judge` on what the sweeps measured."""
        done = self.command(
            "drift", "judge", "--db", self.history, "--policy", self.policy, "-o", self.scratch / "drift.json"
        )
        self.assertIn(done.returncode, (0, 1, 3), done.stderr)
        return json.loads((self.scratch / "drift.json").read_text())

    def flags(self):
        return {flag["node"]: flag["state"] for flag in self.judge()["flags"]}

    def test_a_slow_node_is_flagged_drained_and_comes_back_and_a_foreign_job_is_left_alone(self):
        every = {node.name for node in self.cluster.nodes}
        for night in ("2026-01-03", "2026-01-04", "2026-01-05"):
            self.assertEqual(self.sweep(night, night), dict.fromkeys(every, "measured"))
        self.assertEqual(self.numbers("2026-01-05"), dict.fromkeys(every, 100))
        self.assertEqual(self.flags(), {})

        self.slow_down(SLOW, "60\n" * 20)
        job = self.hold(HELD)
        second = self.sweep("second", "2026-01-06")
        self.assertEqual(second, {**dict.fromkeys(every, "measured"), HELD: "busy"})
        self.assertEqual(self.numbers("second"), {**dict.fromkeys(every - {HELD}, 100), SLOW: 60})
        self.assertFalse((self.cluster.path / "second/nodes" / HELD).exists())
        self.assertIn(job, self.slurm.at_head("squeue", "--noheader", "--states=RUNNING", "--format=%i"))
        self.slurm.at_head("scancel", job)
        wait_for(lambda: self.slurm.jobs() == [], "the foreign job is gone", PATIENCE_S)

        for test in ("again", "and-again"):
            self.assertEqual(self.flags(), {SLOW: "flagged"})
            self.assertEqual(
                self.sweep(test, "2026-01-06", "--retests", "--drift", self.scratch / "drift.json"), {SLOW: "measured"}
            )
            self.assertEqual(self.numbers(test), {SLOW: 60})
        self.assertEqual(self.drain("apply", "2026-01-07T06:00:00.000Z").returncode, 0)
        self.assertEqual(self.state_of(SLOW), ("IDLE", ""))  # not confirmed: not drained
        self.assertEqual(self.sweep("third", "2026-01-07"), dict.fromkeys(every, "measured"))
        (flag,) = self.judge()["flags"]
        self.assertEqual((flag["node"], flag["state"], round(flag["ratio"], 2)), (SLOW, "confirmed", 0.6))
        done = self.drain("apply", "2026-01-08T06:00:00.000Z", "--history", self.history)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        state, reason = self.state_of(SLOW)
        self.assertIn("DRAIN", state)
        self.assertRegex(reason, f"^assay:fake_probe.number[^:]*:{flag['id']}:20260107$")
        self.assertEqual(self.sweep("fourth", "2026-01-08"), {**dict.fromkeys(every, "measured"), SLOW: "busy"})

        self.slow_down(SLOW, "")  # repaired
        told = self.command(
            "history", "event", "--kind", "repaired", "--on", SLOW, "--at", "2026-01-09", "--db", self.history
        )
        self.assertEqual(told.returncode, 0, told.stderr)
        clean = []
        for night in ("2026-01-09", "2026-01-10"):
            states = self.sweep(night, night, "--budget", "15min", "--nodes", SLOW, site=self.ssh_site)
            self.assertEqual(states, {SLOW: "measured"})
            clean += ["--sweep", self.cluster.path / night]
        self.assertEqual(self.flags(), {})
        done = self.drain("release", "2026-01-11T06:00:00.000Z", "--history", self.history, *clean)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertIn(f"done: release {SLOW}", done.stdout)
        wait_for(
            lambda: self.state_of(SLOW) == ("IDLE", ""), "the node is in service", PATIENCE_S
        )  # it is asked once more whether it is there
        self.assertEqual(self.slurm.jobs(), [])

    def test_a_sweep_that_is_ended_takes_its_jobs_with_it(self):
        slow = requirement("r", "hang")
        self.profile = self.write("hang.json", nightly(slow))
        folder = self.cluster.path / "ended"
        process = subprocess.Popen(
            [
                *self.cluster.head,
                self.installation / "bin/assay",
                "sweep",
                "--profile",
                self.profile,
                "--site",
                self.site,
                "--state",
                self.scratch / "ledger",
                "--out",
                folder,
                "--slurm",
            ],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(process.wait, PATIENCE_S)
        self.addCleanup(process.kill)
        wait_for(lambda: len(list(folder.glob("nodes/*/run/journal.jsonl"))) == 2, "two workers measure", PATIENCE_S)
        process.terminate()
        self.assertEqual(process.wait(PATIENCE_S), 3)
        wait_for(lambda: self.slurm.jobs() == [], "no job is left", PATIENCE_S)
        states = [visit["state"] for visit in json.loads((folder / "sweep.json").read_text())["visits"]]
        self.assertEqual(sorted(states), ["busy"] * 6 + ["preempted"] * 2)


if __name__ == "__main__":
    main()
