"""What becomes of a sweep when a run of it cannot be read, the database cannot be written, or it ends while it is entered."""
import contextlib
import json
import sqlite3

from harness import main, requirement
from nightly import NightBench, nightly


class Collected(NightBench):
    def setUp(self):
        super().setUp()
        self.history = self.scratch / "history.db"

    def collect(self):
        return self.assay("sweep", "--collect", self.sweep_folder, "--state", self.state, "--history", self.history)

    def in_history(self):
        with contextlib.closing(sqlite3.connect(self.history)) as database:
            return sorted(set(database.execute("select node, state from visit")))

    def in_ledger(self):
        return [{visit["node"]: visit["state"] for visit in entry["visits"]} for entry in self.ledger()]

    def files(self):
        return {path.name for path in self.sweep_folder.iterdir() if path.suffix == ".json"}

    def visited_by_workers(self):
        """A sweep of two nodes that workers measured, and that nobody collected."""
        nodes = []
        for name in ("n01", "n02"):
            directory = str(self.scratch / f"work-{name}")
            nodes.append({"name": name, "launcher": "ssh", "address": name, "directory": directory})
        site = self.write("site.json", {"schema": "assay.site/1", "name": "bench", "nodes": nodes})
        made = self.sweep(nightly(requirement("r")), "--prepare", site=site)
        self.assertEqual(made.returncode, 0, made.stderr)
        for name in ("n01", "n02"):
            done = self.assay("sweep", "--worker", self.sweep_folder, "--node", name)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_run_that_cannot_be_read_costs_its_node_and_no_other_one(self):
        self.visited_by_workers()
        (self.sweep_folder / "nodes/n01/run/journal.jsonl").write_text("")
        done = self.collect()
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("1 of 2 due nodes measured, 1 not measured", done.stdout)
        self.assertRegex(done.stdout, r"n01 not_measured: its run cannot be read: \S*nodes/n01/run")
        states = {"n01": "not_measured", "n02": "measured"}
        self.assertEqual((self.visits(), self.in_ledger()), (states, [states]))
        self.assertIn("its run cannot be read", self.reason_of("n01"))
        self.assertEqual(self.in_history(), sorted(states.items()))
        self.assertEqual(json.loads((self.sweep_folder / "sweep.json").read_text())["runs"], ["nodes/n02/run"])
        again = self.collect()
        self.assertEqual((again.returncode, self.visits(), self.in_ledger()), (3, states, [states]), again.stderr)

    def test_a_sweep_is_entered_once_though_its_collecting_was_killed_before_sweep_json(self):
        self.visited_by_workers()
        self.assertEqual(self.collect().returncode, 0)
        entered = self.in_history(), self.in_ledger()
        (self.sweep_folder / "sweep.json").unlink()
        done = self.collect()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.in_history(), self.in_ledger()), entered)
        self.assertEqual(self.visits(), {"n01": "measured", "n02": "measured"})

    def test_a_database_in_use_leaves_no_sweep_json_and_the_next_try_loses_no_figure(self):
        self.assertEqual(self.sweep(nightly(requirement("r")), "--history", self.history).returncode, 0)
        with contextlib.closing(sqlite3.connect(self.history, isolation_level=None)) as other:
            other.execute("begin immediate")
            done = self.sweep(nightly(requirement("r")), "--history", self.history, night="2026-01-06")
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn("history.db", done.stderr)
            other.execute("rollback")
        self.assertNotIn("sweep.json", self.files())
        self.assertEqual(len(self.ledger()), 1)
        done = self.collect()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(list(self.visits().values()), ["measured"])
        self.assertEqual([list(one.values()) for one in self.in_ledger()], [["measured"]] * 2)
        with contextlib.closing(sqlite3.connect(self.history)) as database:
            nights = database.execute("select count(distinct night) from visit where figures > 0").fetchone()
        self.assertEqual(nights, (2,))
        self.assertEqual(self.files(), {"due.json", "profile.json", "site.json", "sweep.json"})

    def test_a_sweep_of_all_nodes_at_once_whose_run_cannot_be_read_measured_none(self):
        self.assertEqual(self.sweep(nightly(requirement("r"))).returncode, 0)
        (self.state / "visits.jsonl").unlink()
        (self.sweep_folder / "sweep.json").rename(self.sweep_folder / "outcome.json")  # as before it was entered
        (self.sweep_folder / "run/journal.jsonl").write_text("")
        done = self.collect()
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(list(self.visits().values()), ["not_measured"])
        self.assertEqual(self.in_ledger(), [self.visits()])
        self.assertEqual([state for _, state in self.in_history()], ["not_measured"])


if __name__ == "__main__":
    main()
