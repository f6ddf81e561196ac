#!/usr/bin/env python3
"""Texts of others on their way to a terminal or a report: outputs of tools, lists of nodes, profiles; and what a small disk does."""
import html.parser
import json
import subprocess

import measured
from hostile_node import HostileNode
from rows import Document, harness, row  # noqa: F401: Document is a test

ESCAPES = "\x1b]0;PWN\x07\x1b[2J\u009b31m\u202e"
OUTPUTS = [
    ("nccl-tests", f"# nccl-tests version {ESCAPES}\n"),
    ("osu", f"# OSU MPI Bandwidth Test v7.5\n# Size      {ESCAPES}\n1 2.5\n"),
    ("perftest", '{"a' + ESCAPES + '": 1}'),
    ("fio", json.dumps({"fio version": ESCAPES, "jobs": []}, ensure_ascii=False)),
    ("nvbandwidth", json.dumps({"nvbandwidth": {"version": ESCAPES, ESCAPES: []}}, ensure_ascii=False)),
    ("transferbench", f"GPU-GFX All-To-All benchmark:\nSRC\\DST GPU 00 {ESCAPES}\n"),
    ("nixlbench", f"Block Size (B)  {ESCAPES}\n"),
    ("rvs", json.dumps({"gst": {ESCAPES: [{"gpu_id": ESCAPES, "gflops": ESCAPES}]}}, ensure_ascii=False)),
    ("amd-smi", json.dumps([{"gpu": 0, "vram": {"size": {"value": 1, "unit": ESCAPES}}}], ensure_ascii=False)),
    ("tpu", json.dumps({"schema": ESCAPES}, ensure_ascii=False)),
]


class Imports(harness.Bench):
    @row("I", "I-hostfile", "escapes in a hostfile", 2, "line 1: ")
    def test_hostfile(self):
        return measured.run(
            [harness.BIN / "assay", "site", "--from", "hostfile", self.write("hosts", ESCAPES + "\n")], self.environment
        )

    @row("I", "I-lldp", "escapes in a switch's name", 2, "lldp")
    def test_lldp(self):
        folder = self.scratch / "lldp"
        folder.mkdir()
        site = {
            "schema": "assay.site/1",
            "name": "s",
            "nodes": [{"name": "n01", "launcher": "local", "directory": str(self.work)}],
        }
        seen = {
            "lldp": {
                "interface": {
                    "eth1": {
                        "via": "LLDP",
                        "chassis": {ESCAPES: {"id": {"type": "mac", "value": "3a:c7:c3:da:c6:45"}}},
                        "port": {"id": {"type": "ifname", "value": ESCAPES}},
                    }
                }
            }
        }
        (folder / "n01.json").write_text(json.dumps(seen, ensure_ascii=False))
        return measured.run(
            [
                harness.BIN / "assay",
                "site",
                "--from",
                "lldp",
                folder,
                "--site",
                self.write("site.json", site),
                "--plane",
                "parameter",
            ],
            self.environment,
        )

    @row("I", "I-ib", "escapes in a switch's description", 2, "ib.txt")
    def test_ib(self):
        site = {
            "schema": "assay.site/1",
            "name": "s",
            "nodes": [{"name": "n01", "launcher": "local", "directory": str(self.work)}],
        }
        text = f'Switch\t36 "S-{ESCAPES}"\t\t# "{ESCAPES}" base port 0 lid 1 lmc 0\n'
        return measured.run(
            [
                harness.BIN / "assay",
                "site",
                "--from",
                "ibnetdiscover",
                self.write("ib.txt", text),
                "--site",
                self.write("site.json", site),
                "--plane",
                "parameter",
            ],
            self.environment,
        )

    @row("I", "I-bomb", "4 MB of empty objects as a tool's output", 2, "bomb.json")
    def test_bomb(self):
        bomb = self.write("bomb.json", '{"jobs":[' + "{}," * (1 << 20) + "{}]}")
        return measured.run([harness.BIN / "assay", "import", "fio", bomb], self.environment)


for _tool, _text in OUTPUTS:
    _mark = row("I", f"I-{_tool}", f"escapes in an output of {_tool}", 2, f"{_tool}.out")
    setattr(
        Imports,
        f"test_{_tool}",
        _mark(
            lambda self, tool=_tool, text=_text: measured.run(
                [harness.BIN / "assay", "import", tool, self.write(f"{tool}.out", text)], self.environment
            )
        ),
    )


class Check(HostileNode):
    """`assay site check` beside a hostile node."""

    def check(self, mode):
        self.environment["HOSTILE"] = mode
        return measured.run([harness.BIN / "assay", "site", "check", "--site", self.site], self.environment)

    @row(
        "I",
        "I-check-few",
        "a node that tells little of itself, and other things than the rest",
        1,
        "2 of 2 nodes reached",
    )
    def test_few(self):
        return self.check("honest")

    @row("I", "I-check-factsxss", "a node whose name has escapes and a tag", 3, "welcome.facts")
    def test_name(self):
        return self.check('facts:{"name":"evil\\u001b[2J<script>"}')

    @row("I", 'I-check-facts:{"name":7}', "a node whose name is a number", 3, "welcome.facts")
    def test_number(self):
        return self.check('facts:{"name":7}')

    @row("I", 'I-check-facts:{"memory":"x"}', "a node whose memory is a text", 3, "welcome.facts")
    def test_memory(self):
        return self.check('facts:{"name":"evil","memory":"x","cpus":"y"}')


class Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


class Report(harness.Bench):
    @row("X", "X1", "tags, attributes and escapes in every text of a profile", 3, "INCOMPLETE")
    def test_x1(self):
        evil = "\"><script>alert(1)</script><img src=x onerror=alert(1)><style>*{}</style>{{7*7}}\u202e'"
        one = harness.requirement("number", title=evil, source={"document": evil, "status": "sourced"})
        two = harness.requirement(
            "error", "error", title=evil, value=1, source={"document": evil, "status": "sourced", "note": evil}
        )
        del two["source"]["note"]
        document = dict(harness.profile(one, two), title=evil, relative_only=evil)
        done = measured.run(
            [
                harness.BIN / "assay",
                "accept",
                "--profile",
                self.write("profile.json", document),
                "--directory",
                self.work,
                "--out",
                self.run_directory,
            ],
            self.environment,
        )
        page = Tags()
        page.feed((self.run_directory / "report.html").read_text())
        self.assertNotIn("script", {tag for tag, _ in page.found})
        self.assertNotIn("img", {tag for tag, _ in page.found})
        self.assertEqual(len([tag for tag, _ in page.found if tag == "style"]), 1)
        self.assertFalse([names for _, names in page.found if any(name.startswith("on") for name in names)])
        policy = [
            names["content"]
            for tag, names in page.found
            if tag == "meta" and names.get("http-equiv") == "Content-Security-Policy"
        ]
        self.assertEqual(policy, ["default-src 'none'; style-src 'unsafe-inline'"])
        return done


class Disk(harness.Bench):
    @row(
        "V", "V1", "a full disk at the head during the run, then room again", 0, "ACCEPTED: 8 of 8 required cells pass"
    )
    def test_v1(self):
        disk = self.scratch / "disk"
        disk.mkdir()
        if (
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "size=60k,mode=700", "assay-test", disk], capture_output=True
            ).returncode
            != 0
        ):
            self.skipTest("UNDECIDED: a small disk cannot be mounted on this machine")
        self.addCleanup(subprocess.run, ["umount", "-l", disk])
        self.run_directory = disk / "run"
        profile = self.write(
            "profile.json", harness.profile(*[harness.requirement(f"r{i}", value=100 + i) for i in range(8)])
        )
        done = measured.run(
            [
                harness.BIN / "assay",
                "accept",
                "--profile",
                profile,
                "--directory",
                self.work,
                "--out",
                self.run_directory,
            ],
            self.environment,
        )
        self.assertEqual(done.code, 2, done)
        self.assertIn("No space left on device", done.err)
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        return measured.run([harness.BIN / "assay", "run", "--resume", self.run_directory], self.environment)


if __name__ == "__main__":
    harness.main()
