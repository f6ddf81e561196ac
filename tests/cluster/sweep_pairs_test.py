"""Pairs of nodes in jobs of a real Slurm: measured with another partner every night, left alone where a node is busy, and stopped when a job
of another user takes a node of theirs."""
import json
import pathlib
import shutil
import sqlite3
import tempfile
import time

from bench import pair
from harness import main, requirement, wait_for
from nightly import nightly
from slurm_bench import SlurmBench

PATIENCE_S = 60
STOP_S = 5  # in which a pair that is preempted must have stopped
BEGIN_S = 5  # of Slurm, to see the job and to begin it


class Pairs(SlurmBench):
    nodes = 6
    preempting = True

    def setUp(self):
        super().setUp()
        nodes = [
            {"name": node.name, "launcher": "slurm", "directory": "/tmp/assay-work"} for node in self.cluster.nodes
        ]
        self.site = self.write(
            "slurm.json",
            {
                "schema": "assay.site/1",
                "name": "slurm",
                "nodes": nodes,
                "slurm": {"partition": "night", "address": "192.0.2.1"},
            },
        )
        self.history = self.scratch / "history.db"
        self.every = {node.name for node in self.cluster.nodes}

    def words(self, name, night, pause="0s", state="ledger"):
        joint = pair("p", parameters={"behaviour": "measure", "value": 100, "pause": pause}, rounds=1)
        self.folder = self.cluster.path / name
        return [
            "sweep",
            "--profile",
            self.write("night.json", nightly(requirement("r"), joint)),
            "--site",
            self.site,
            "--state",
            self.scratch / state,
            "--night",
            night,
            "--now",
            f"{night}T23:00:00.000Z",
            "--history",
            self.history,
            "--out",
            self.folder,
            "--slurm",
            "--patience",
            "10s",
        ]

    def sweep(self, name, night, expected=0, **more):
        """The pairs of a sweep, each with its state."""
        done = self.assay(*self.words(name, night, **more))
        self.assertEqual(done.returncode, expected, done.stderr + done.stdout)
        return self.pairs()

    def sweep_file(self):
        return json.loads((self.folder / "sweep.json").read_text())

    def pairs(self):
        return {tuple(visit["nodes"]): visit["state"] for visit in self.sweep_file()["pairs"]}

    def visits(self):
        return {visit["node"]: visit["state"] for visit in self.sweep_file()["visits"]}

    def rows(self, night):
        """What pairs left in the history: node, partner, state and how many figures."""
        with sqlite3.connect(self.history) as database:
            day = "SELECT DISTINCT night FROM sweep ORDER BY night"
            number = [row[0] for row in database.execute(day)][night]
            return set(
                database.execute(
                    "SELECT node, partner, state, figures FROM visit WHERE partner <> '' AND night = ?", (number,)
                )
            )

    def hosts(self, one):
        """How many hosts the ranks of the pair ran on, by its record."""
        for record in (self.folder / "pairs" / "+".join(one) / "run/records").glob("**/*"):
            for line in record.read_text().splitlines() if record.is_file() else []:
                condition = json.loads(line).get("condition", {})
                if condition.get("name") == "hosts":
                    return condition["value"]
        return None

    def hold(self, node, *more):
        """A job of another user on the whole node, which ends those of the sweep."""
        script = self.write("job.sh", "#!/bin/sh\nsleep 600\n")
        return self.slurm.at_head(
            "sbatch",
            "--parsable",
            "--partition=main",
            "--exclusive",
            f"--nodelist={node}",
            "--output=/dev/null",
            *more,
            script,
        ).strip()

    def is_running(self, job):
        return job in self.slurm.at_head("squeue", "--noheader", "--states=RUNNING", "--format=%i").split()

    def test_every_node_has_another_partner_every_night_and_pairs_without_a_busy_node_are_found(self):
        first = self.sweep("first", "2026-01-05")
        self.assertEqual(self.visits(), dict.fromkeys(self.every, "measured"))
        self.assertEqual(
            (sorted(node for one in first for node in one), set(first.values())), (sorted(self.every), {"measured"})
        )
        self.assertEqual({self.hosts(one) for one in first}, {2})
        self.assertEqual(self.rows(0), {(*ends, "measured", 1) for one in first for ends in (one, one[::-1])})
        second = self.sweep("second", "2026-01-06")
        self.assertEqual(set(second.values()), {"measured"})
        self.assertEqual({frozenset(one) for one in first} & {frozenset(one) for one in second}, set())

        (a, _), (_, b), _ = first  # two nodes that are no partners of the first night, which is swept again
        jobs = [self.hold(node) for node in (a, b)]
        wait_for(lambda: all(self.is_running(job) for job in jobs), "the jobs run", PATIENCE_S)
        third = self.sweep("third", "2026-01-05", state="another")
        self.assertEqual(self.visits(), {**dict.fromkeys(self.every, "measured"), a: "busy", b: "busy"})
        left = [node for one in list(first)[:2] for node in one if node not in (a, b)]
        rest = next(one for one in third if set(one) == set(left))  # those whose partner was busy
        self.assertEqual(
            third, {**dict.fromkeys(list(first)[:2], "busy"), list(first)[2]: "measured", rest: "measured"}
        )
        self.assertTrue(all(self.is_running(job) for job in jobs))

    def test_an_installation_that_no_node_sees_ends_the_sweep_with_what_a_job_wrote(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as unseen:  # the nodes have a /tmp of their own
            self.installed = shutil.copytree(self.installation, pathlib.Path(unseen) / "installation") / "bin/assay"
            done = self.assay(*self.words("blind", "2026-01-05"))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"1\d jobs ended and none visited a node; the last wrote: .*not found")
        self.assertIn("a file system that all nodes share", done.stderr)
        self.assertEqual(self.slurm.at_head("squeue", "--noheader", "--states=PENDING,RUNNING"), "")

    def test_a_pair_that_loses_a_node_stops_and_the_others_are_measured(self):
        process = self.start(*self.words("night", "2026-01-05", pause="6s"))
        begun = lambda: [
            path.parent.parent
            for path in self.folder.glob("pairs/*/run/journal.jsonl")
            if "attempt_begin" in path.read_text()
        ]
        wait_for(begun, "a pair is measured", PATIENCE_S)
        folder = begun()[0]
        lost = tuple(folder.name.split("+"))
        begin = time.monotonic()
        job = self.hold(lost[1])
        wait_for(lambda: (folder / "pair.json").exists(), "the pair has an outcome", PATIENCE_S)
        self.assertLess(time.monotonic() - begin, BEGIN_S + STOP_S)
        wait_for(lambda: self.is_running(job), "the job of the other user runs", PATIENCE_S)
        self.assertEqual(process.wait(PATIENCE_S), 3)
        pairs = self.pairs()
        self.assertEqual(pairs, {**dict.fromkeys(pairs, "measured"), lost: "preempted"})
        self.assertEqual(len(pairs), 3)
        self.assertEqual(self.visits(), dict.fromkeys(self.every, "measured"))
        self.assertEqual(
            self.rows(0),
            {
                (*ends, "preempted" if one == lost else "measured", 0 if one == lost else 1)
                for one in pairs
                for ends in (one, one[::-1])
            },
        )
        self.assertTrue(self.is_running(job))
        self.assertEqual(len(self.slurm.jobs()), 1)


if __name__ == "__main__":
    main()
