#!/usr/bin/env python3
"""A node under an enemy's control beside an honest one: the honest one is judged, the liar's cells are errors, no control character
reaches the terminal, and the head takes less than 1 GiB."""
import json
import re

import measured  # noqa: F401
from hostile_node import HostileNode
from rows import Document, harness, obeyed, row  # noqa: F401: Document is a test

FACTS = [
    ("H1", {"name": 7}),
    ("H1b", {"name": "evil", "boot_id": 7}),
    ("H2", {"name": "evil", "memory": "lots"}),
    ("H2b", {"name": "evil", "cpus": "x"}),
    ("H3", {"name": "evil", "memory": -1, "cpus": -1}),
    ("H3b", {"name": "evil", "memory": 1e308, "cpus": 1e308}),
    ("H3c", {"name": "evil", "memory": 0}),
    ("H3d", {"name": "evil", "more": 1}),
    ("H5-factsxss", {"name": "evil\x1b[2J<script>"}),
]


class Facts(HostileNode):
    """What a node says of itself."""

    @row("H", "H0", "an honest answer", 0, "ACCEPTED: 2 of 2 required cells pass")
    def test_h0(self):
        return self.alone("honest", evil="pass")

    @row("H", "H4-factsbig", "8,000 facts", 3, "welcome.facts")
    def test_many(self):
        return self.alone("many_facts", evil="not_measured")


for _name, _facts in FACTS:
    _told = json.dumps(_facts).replace("|", "")
    _mark = row("H", _name, f"facts `{_told}`", 3, "welcome.facts")
    setattr(
        Facts,
        f"test_{_name}",
        _mark(lambda self, facts=_facts: self.alone("facts:" + json.dumps(facts), evil="not_measured")),
    )


class Protocol(HostileNode):
    """What a node says to the head beside its records. Those that take a minute are in node_long_test.py."""

    @row(
        "H",
        "H4-preamble",
        "output without end in the agent's place",
        3,
        "login scripts on the node print more than 64 KiB",
    )
    def test_preamble(self):
        return self.alone("preamble", evil="not_measured")

    @row("H", "H4-oversize", "a frame of 4 GiB announced", 3, "a frame of 4294967295 bytes; 1 to 1048577 are allowed")
    def test_oversize(self):
        return self.alone("oversize", evil="not_measured")

    @row("H", "H4-garbage", "4 MiB of random bytes for frames", 3, "byte 0 of the stream: a frame of ")
    def test_garbage(self):
        return self.alone("garbage", evil="not_measured")

    @row("H", "H4-nowelcome-ping", "pongs without a welcome", 3, "the agent's hello is missing or repeated")
    def test_pongs(self):
        return self.alone("pongs", evil="not_measured")

    @row("H", "H4-wrongid", "output of a run that is not active", 3, "sent output of a run that is not active")
    def test_other_run(self):
        return self.alone("other_run")

    @row("H", "H4-elapsed", "a run that took -1 s", 3, "ended.elapsed_s: is not a number from 0 to 2419200")
    def test_elapsed(self):
        return self.alone("elapsed")

    @row(
        "H",
        "H4-leftbehind",
        "2^31 - 1 processes left behind: named as a deviation of that node",
        0,
        "ACCEPTED: 2 of 2 required cells pass",
    )
    def test_left_behind(self):
        return self.alone("left_behind", evil="pass")


class Words(HostileNode):
    """Texts for the terminal, and for the report."""

    def shown(self, mode, **more):
        """Every command that prints or writes what the node said: nothing is obeyed, and the report has no tag of the node's."""
        done = self.alone(mode, **more)
        for code, words in (
            ((0, 3), ["judge", self.run_directory]),
            ((0, 3), ["status", self.run_directory]),
            (0, ["verify", self.run_directory / "dossier", "--key", self.key, "--json"]),
        ):
            self.command(code, harness.BIN / "assay", *words)
        report = (self.run_directory / "report.html").read_text()
        self.assertNotIn("<script", report)
        self.assertEqual([c for c in obeyed(report) if c != "0xad"], [])
        return done

    @row(
        "H",
        "H5-escape-end",
        "escapes, C1 controls and a mark of direction in a reason: the record is refused",
        3,
        "has control characters",
    )
    def test_reason(self):
        return self.shown("reason")

    @row("H", "H6", "a reason that says accepted on lines of its own", 3, "INCOMPLETE: 1 of 2 required cells pass")
    def test_polite_reason(self):
        done = self.shown("polite_reason")
        self.assertFalse(re.search(r"^ACCEPTED", done.out, re.M), done)
        return done

    @row("H", "H5-escape-cond", "escapes and a tag in a condition", 3, "has control characters")
    def test_condition(self):
        return self.shown("condition")

    @row("H", "H5-escape-subject", "escapes and a tag in a subject", 3, "control characters")
    def test_subject(self):
        return self.shown("subject")


class Records(HostileNode):
    """Records that are too large, or of others."""

    @row("H", "H7a", "50 made-up nodes of 1,000 against a fleet median", 3, "evil")
    def test_median_up(self):
        return self.median("median:50,1000")

    @row("H", "H7b", "50 made-up nodes of 0.1 against a fleet median", 3, "evil")
    def test_median_down(self):
        return self.median("median:50,0.1")

    def median(self, mode):
        fleet = harness.requirement("number", limit={"at_least": 0.9, "unit": "1", "of": "fleet_median"})
        self.assertNotIn("pass", self.judged(mode, fleet)["evil"], self.reasons())
        outcomes = {result["node"]: result["outcome"] for result in self.verdict()["results"]}
        self.assertNotIn(outcomes["good"], ("fail", "conditional_fail"), self.reasons())
        return self.done

    @row("H", "H8a", "2 made-up nodes, not its own", 3, "evil")
    def test_two_nodes(self):
        return self.alone("nodes:2")

    @row("H", "H7-drives", "50 made-up drives where the profile says 2", 3, "evil")
    def test_drives(self):
        drive = harness.requirement("number", scope="drive", severity="advisory")
        self.assertEqual(self.judged("drives:50,1000", drive, node={"drive": 2})["evil"], {"error"})
        return self.done

    @row(
        "H", "H9c", "samples of 1.797e308: the run keeps its dossier, and the report its figures", 0, "ACCEPTED: 2 of 2"
    )
    def test_largest_number(self):
        return self.drawn("1.797e308,1.797e308")

    @row("H", "H9d", "samples that differ in their last bit, or not in what a figure shows", 0, "ACCEPTED: 2 of 2")
    def test_neighbours(self):
        return self.drawn("1e30,1.0000000000000002e30,1e30")

    def drawn(self, values):
        done = self.alone("values:" + values, evil="pass")
        report = (self.run_directory / "report.html").read_text()
        self.assertNotIn("could not be made", report)
        self.assertLess(len(report), 1 << 20)
        self.command(0, harness.BIN / "assay", "compare", self.run_directory, self.run_directory)
        return done

    @row("H", "H10", "a reason of 8 MB against 40 requirements", 3, "evil")
    def test_big_reason(self):
        done = self.alone("big_reason", *[harness.requirement(f"number{i}") for i in range(40)])
        self.assertLess((self.run_directory / "verdict.json").stat().st_size, 1 << 20)
        return done


if __name__ == "__main__":
    harness.main()
