"""A sweep and a drain that are killed at 20 instants each: nothing is lost, nothing is done twice."""
import json
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
            measured = [visit for entry in self.ledger() if entry["night"] == night for visit in entry["visits"] if visit["state"] == "measured"]
            self.assertEqual(len(measured), 1, night)
        self.assertGreater(killed, 0)  # how many instants lie before the end depends on the load of the machine


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
