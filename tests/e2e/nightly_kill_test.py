"""A sweep, an addition to the history and a drain that are killed at 20 instants each: nothing is lost, nothing is done twice."""
import contextlib
import json
import sqlite3
import time

from drain_test import Drain as DrainBench
from harness import main, processes, requirement, wait_for
from nightly import NightBench, flag, nightly, report

INSTANTS = 20


class KilledSweep(NightBench):
    def kill_after(self, seconds, document, night):
        process = self.start(*self.sweep_words(document, night=night))
        time.sleep(seconds)
        process.kill()
        process.wait()
        wait_for(lambda: not processes(str(self.scratch)), "no process is left")

    def test_every_night_has_each_node_once_whenever_its_first_sweep_was_killed(self):
        document = nightly(requirement("r"))
        begin = time.monotonic()
        self.assertEqual(self.sweep(document).returncode, 0)
        whole = time.monotonic() - begin
        killed = 0
        for instant in range(INSTANTS):
            night = f"2026-02-{instant + 1:02}"
            self.kill_after(whole * (instant + 0.5) / INSTANTS, document, night)
            killed += not any(entry["night"] == night for entry in self.ledger())
            done = self.sweep(document, night=night)
            self.assertEqual(done.returncode, 0, done.stderr)
            measured = [
                visit
                for entry in self.ledger()
                if entry["night"] == night
                for visit in entry["visits"]
                if visit["state"] == "measured"
            ]
            self.assertEqual(len(measured), 1, night)
        self.assertGreater(killed, 0)  # how many instants lie before the end depends on the load of the machine


class KilledHistory(NightBench):
    """Two runs: one that is in the history, and one that a killed process was about to add."""

    def rows(self, database):
        with contextlib.closing(sqlite3.connect(database)) as one:
            counts = {
                name: one.execute(f"select count(*) from {name}").fetchone()[0]
                for name in ("sweep", "visit", "series", "unit")
            }
            return counts | {"figures": one.execute("select total(figures) from visit").fetchone()[0]}

    def test_a_run_is_in_the_history_whole_or_not_at_all_whenever_it_was_added(self):
        runs = []
        for value in (100, 101):
            self.assertEqual(
                self.sweep(
                    nightly(*(requirement(f"r{number}", value=value + number) for number in range(8))),
                    night=f"2026-01-{value - 95:02}",
                ).returncode,
                0,
            )
            runs.append(self.sweep_folder / "run")
        whole = self.scratch / "whole.db"
        states = [None]
        for run in runs:
            begin = time.monotonic()
            self.assertEqual(self.assay("history", "add", run, "--db", whole).returncode, 0)
            duration = time.monotonic() - begin
            states.append(self.rows(whole))
        before, after = states[1:]
        self.assertLess(before["figures"], after["figures"])
        cut_off = 0
        for instant in range(INSTANTS):
            database = self.scratch / f"history-{instant}.db"
            self.assertEqual(self.assay("history", "add", runs[0], "--db", database).returncode, 0)
            process = self.start("history", "add", runs[1], "--db", database)
            time.sleep(duration * (instant + 0.5) / INSTANTS)
            process.kill()
            process.wait()
            left = self.rows(database)
            self.assertIn(left, (before, after), instant)
            cut_off += left == before
            done = self.assay("history", "add", runs[1], "--db", database)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.rows(database), after)
        self.assertGreater(cut_off, 0)


class KilledDrain(DrainBench):
    actor = "slurm"

    def test_a_drain_is_done_once_whenever_the_first_call_was_killed(self):
        self.environment["FAKE_NODES_FAULT"] = "slow"
        document = report(flag("n03"))
        begin = time.monotonic()
        self.assertEqual(self.drain("apply", document, "--apply").returncode, 0)
        whole = time.monotonic() - begin
        half_done = 0
        for instant in range(INSTANTS):
            self.set_nodes({})
            (self.scratch / "drain.jsonl").unlink()
            self.log.unlink(missing_ok=True)
            process = self.start(*self.words("apply", document, "--apply"))
            time.sleep(whole * (instant + 0.5) / INSTANTS)
            process.kill()
            process.wait()
            wait_for(lambda: not processes(str(self.scratch / "scontrol")), "no scontrol is left")
            half_done += self.entries() == ["begin"]
            done = self.drain("apply", document, "--apply")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(list(self.reasons()), ["n03"])
            # The fake scheduler may be killed between its change and its own log of it.
            self.assertLessEqual(len(self.changes()), 1, f"instant {instant}: {self.changes()}")
            self.assertEqual(self.entries().count("done"), 1)
        self.assertGreater(half_done, 0)

    def entries(self):
        path = self.scratch / "drain.jsonl"
        return [json.loads(line)["entry"] for line in path.read_text().splitlines()] if path.exists() else []


# Only what this file adds.
for name in [name for name in dir(DrainBench) if name.startswith("test_")]:
    setattr(KilledDrain, name, None)
del DrainBench


if __name__ == "__main__":
    main()
