#!/usr/bin/env python3
"""Thousands of silent callers of the head's listener and of rank 0, renewed as they are let go: agents and ranks get in."""
import floods
import listener_test
import rendezvous_test
from rows import Document, harness, row  # noqa: F401: Document is a test

MANY = 20_000  # open files of this test: callers, and as many in the hands of the kernel


class Listener(listener_test.Listener):
    late_s = 4.0

    def flooded(self, callers, **more):
        if not floods.descriptors(MANY):
            self.skipTest(f"UNDECIDED: {MANY} open files are not allowed")
        thread = floods.Silent(self.port, callers)
        done = self.accept_under(thread, **more)
        self.assertGreaterEqual(thread.calls, callers)
        return done

    @row("TL", "T4", "1,100 silent callers", 0, "ACCEPTED: 1 of 1 required cells pass")
    def test_t4(self):
        return self.flooded(1100)

    @row("TL", "T5", "3,000 silent callers", 0, "ACCEPTED: 1 of 1 required cells pass")
    def test_t5(self):
        return self.flooded(3000)

    @row(
        "TL",
        "T6",
        "1,300 silent callers during the run, the head with 1,024 open files",
        0,
        "ACCEPTED: 8 of 8 required cells pass",
    )
    def test_t6(self):
        steps = [harness.requirement(f"r{i}", "slow", value=100 + i) for i in range(8)]
        return self.flooded(1300, words=["prlimit", "--nofile=1024:1024"], requirements=steps)


class Rendezvous(rendezvous_test.Ranks):
    def flooded(self, callers):
        if not floods.descriptors(MANY):
            self.skipTest(f"UNDECIDED: {MANY} open files are not allowed")
        return self.met_under(floods.Silent(self.port, callers))

    @row("TL", "R4", "1,500 silent callers of rank 0", 0, rendezvous_test.COMPLETE)
    def test_r4(self):
        return self.flooded(1500)

    @row("TL", "R5", "4,000 silent callers of rank 0", 0, rendezvous_test.COMPLETE)
    def test_r5(self):
        return self.flooded(4000)


if __name__ == "__main__":
    harness.main()
