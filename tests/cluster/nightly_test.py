"""Three nights of sweeps through a real Slurm: a node that becomes slow is flagged, tested again, drained, repaired and put back; a job of
another user is left alone. The nights are those of --night; what judges the figures here is written by this test."""
import json
import pathlib
import subprocess

from harness import main, requirement, wait_for
from nightly import check, flag, nightly, report
from slurm_bench import SlurmBench

SLOW, HELD = "n03", "n05"
PATIENCE_S = 60
REASON = "assay:fake_probe.number:f00000000003:20260106"


class ThreeNights(SlurmBench):
    def setUp(self):
        super().setUp()
        self.ssh_site = self.write("ssh.json", self.cluster.site())
        nodes = [{"name": node.name, "launcher": "slurm", "directory": "/tmp/assay-work"} for node in self.cluster.nodes]
        self.site = self.write("slurm.json", {"schema": "assay.site/1", "name": "slurm", "nodes": nodes})
        figure = requirement("r", script="/tmp/number")
        figure["parameters"]["script"] = figure.pop("script")
        self.profile = self.write("night.json", nightly(figure))
        self.write("policy.json", {"schema": "assay.policy/1", "mode": "drain"})

    def command(self, *words):
        return subprocess.run([*self.cluster.head, self.installation / "bin/assay", *map(str, words)], env=self.environment, capture_output=True, text=True,
                              timeout=self.deadline_s, stdin=subprocess.DEVNULL)

    def sweep(self, name, night, *more, site=None):
        """The states of the nodes that were due."""
        folder = self.cluster.path / name
        done = self.command("sweep", "--profile", self.profile, "--site", site or self.site, "--state", self.scratch / "ledger", "--night", night,
                            "--now", f"{night}T23:00:00.000Z", "--out", folder, *(["--slurm", "--patience", "15s"] if site is None else []), *more)
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
                found[record.relative_to(nodes).parts[0]] = next(line["measurement"]["samples"][0] for line in lines if "measurement" in line)
        return found

    def drain(self, action, document, now, *more):
        return self.command("drain", action, "--drift", self.write("drift.json", document), "--policy", self.scratch / "policy.json", "--site", self.site,
                            "--journal", self.scratch / "drain.jsonl", "--now", now, "--apply", *more)

    def state_of(self, node):
        shown = self.slurm.at_head("scontrol", "--oneliner", "show", "node", node)
        fields = dict(word.split("=", 1) for word in shown.split() if "=" in word)
        return fields["State"], shown.partition("Reason=")[2].partition(" [")[0]

    def hold(self, node):
        """A job of another user on the whole node."""
        script = self.write("job.sh", "#!/bin/sh\nsleep 600\n")
        job = self.slurm.at_head("sbatch", "--parsable", "--exclusive", f"--nodelist={node}", "--output=/dev/null", script).strip()
        wait_for(lambda: f"{job} " in self.slurm.at_head("squeue", "--noheader", "--states=RUNNING", "--format=%i ."), "the job runs", PATIENCE_S)
        return job

    def slow_down(self, node, lines):
        pathlib.Path(f"/proc/{self.cluster[node].init}/root/tmp/number").write_text(lines)

    def test_a_slow_node_is_drained_and_comes_back_and_a_foreign_job_is_left_alone(self):
        every = {node.name for node in self.cluster.nodes}
        first = self.sweep("first", "2026-01-05")
        self.assertEqual(first, dict.fromkeys(every, "measured"))
        self.assertEqual(self.numbers("first"), dict.fromkeys(every, 100))

        self.slow_down(SLOW, "60\n60\n60\n60\n")
        job = self.hold(HELD)
        second = self.sweep("second", "2026-01-06")
        self.assertEqual(second, {**dict.fromkeys(every, "measured"), HELD: "busy"})
        self.assertEqual(self.numbers("second"), {**dict.fromkeys(every - {HELD}, 100), SLOW: 60})
        self.assertFalse((self.cluster.path / "second/nodes" / HELD).exists())
        self.assertIn(job, self.slurm.at_head("squeue", "--noheader", "--states=RUNNING", "--format=%i"))

        again = self.sweep("again", "2026-01-06", "--retests", "--drift",
                           self.write("wanted.json", report(flag(SLOW, 0.6, "flagged", "2026-01-06"), as_of="2026-01-06", retests=[SLOW])))
        self.assertEqual(again, {SLOW: "measured"})
        self.assertEqual(self.numbers("again"), {SLOW: 60})
        done = self.drain("apply", report(flag(SLOW, 0.6, "confirmed", "2026-01-06"), as_of="2026-01-06"), "2026-01-07T06:00:00.000Z")
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        state, reason = self.state_of(SLOW)
        self.assertIn("DRAIN", state)
        self.assertEqual(reason, REASON)

        self.slurm.at_head("scancel", job)
        wait_for(lambda: self.slurm.jobs() == [], "the foreign job is gone", PATIENCE_S)
        third = self.sweep("third", "2026-01-07")
        self.assertEqual(third, {**dict.fromkeys(every, "measured"), SLOW: "busy"})

        self.slow_down(SLOW, "")  # repaired
        clean = []
        for night in ("2026-01-08", "2026-01-09"):
            states = self.sweep(night, night, "--budget", "15min", "--nodes", SLOW, site=self.ssh_site)
            self.assertEqual(states, {SLOW: "measured"})
            clean += ["--sweep", self.cluster.path / night]
        done = self.drain("release", report(as_of="2026-01-09"), "2026-01-10T06:00:00.000Z", *clean)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertIn(f"done: release {SLOW}", done.stdout)
        wait_for(lambda: self.state_of(SLOW) == ("IDLE", ""), "the node is in service", PATIENCE_S)  # it is asked once more whether it is there
        self.assertEqual(self.slurm.jobs(), [])

    def test_a_sweep_that_is_ended_takes_its_jobs_with_it(self):
        slow = requirement("r", "hang")
        self.profile = self.write("hang.json", nightly(slow))
        folder = self.cluster.path / "ended"
        process = subprocess.Popen([*self.cluster.head, self.installation / "bin/assay", "sweep", "--profile", self.profile, "--site", self.site, "--state", self.scratch / "ledger",
                                    "--out", folder, "--slurm"], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
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
