#!/usr/bin/env python3
"""The attempts of a hostile node that take a minute, or much memory if it is not bounded."""
from hostile_node import HostileNode
from rows import Document, harness, row  # noqa: F401: Document is a test


class Slow(HostileNode):
    @row("HL", "H4-silent", "silence after the login", 3, "no agent answered within 70 s")
    def test_silent(self):
        return self.alone("silent", evil="not_measured")

    @row("HL", "H4-stderrflood", "errors without end in the agent's place", 3, "no agent answered within 70 s")
    def test_errors(self):
        return self.alone("errors", evil="not_measured")

    @row("HL", "H4-slowloris", "a welcome of 1 MiB, one byte a second", 3, "no agent answered within 70 s")
    def test_drip(self):
        return self.alone("drip", evil="not_measured")

    @row("HL", "H4-flood", "output of a run without end", 3, "evil")
    def test_output_flood(self):
        return self.alone("output_flood")

    @row("HL", "H4-errflood", "errors of a run without end", 3, "evil")
    def test_error_flood(self):
        return self.alone("error_flood")


class Large(HostileNode):
    @row("HL", "H8b", "99,000 made-up nodes", 3, "evil")
    def test_nodes(self):
        return self.alone("nodes:99000")

    @row("HL", "H8c", "40,000 made-up nodes whose names have 500 letters, with conditions", 3, "evil")
    def test_long_subjects(self):
        return self.alone("long_subjects:40000")

    @row("HL", "H9a", "8 lines of 1.9 million samples", 3, "evil")
    def test_samples(self):
        return self.alone("samples")

    @row("HL", "H9b", "49,000 conditions of made-up drives, one of them demanded", 3, "evil")
    def test_conditions(self):
        demanding = harness.requirement("number", conditions=[{"name": "behaved", "equals": True}])
        self.assertEqual(self.judged("conditions:49000", demanding)["evil"], {"error"})
        return self.done


if __name__ == "__main__":
    harness.main()
