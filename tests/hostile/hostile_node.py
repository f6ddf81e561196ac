"""hostile_node: a node under an enemy's control beside an honest one, both reached by an ssh that hostile_agent.py stands in for."""
import pathlib
import subprocess
import sys

import measured
from rows import harness, obeyed

HERE = pathlib.Path(__file__).resolve().parent
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"


class HostileNode(harness.Bench):
    def setUp(self):
        super().setUp()
        version = subprocess.run(
            [harness.BIN / "assay", "--version"], capture_output=True, text=True, check=True
        ).stdout.split()[-1]
        tools = self.scratch / "tools"
        tools.mkdir()
        (tools / "ssh").write_text(f'#!/bin/sh\nexec {sys.executable} {HERE}/hostile_agent.py {version} "$@"\n')
        (tools / "ssh").chmod(0o755)
        self.environment["PATH"] = f"{tools}:{self.environment['PATH']}"
        self.key = self.scratch / "state/assay/machine.key.pub"
        nodes = [
            {
                "name": name,
                "launcher": "ssh",
                "address": name,
                "host_key": KEY,
                "directory": str(self.scratch / f"agent-{name}"),
            }
            for name in ("good", "evil")
        ]
        self.site = self.write("site.json", {"schema": "assay.site/1", "name": "hall", "nodes": nodes})

    def command(self, code, *words):
        """A command that ends so, in little memory, and prints nothing that is obeyed."""
        done = measured.run(words, self.environment)
        self.assertIn(done.code, code if isinstance(code, tuple) else (code,), done)
        self.assertLess(done.kib, measured.MOST_KIB, done)
        self.assertEqual(obeyed(done.out + done.err), [], done)
        return done

    def judged(self, mode, *requirements, **more):
        """The outcomes by node; the run was judged again, and could be reported, signed and verified. What accept and verify said is in
        self.done."""
        self.environment["HOSTILE"] = mode
        document = dict(harness.profile(*(requirements or [harness.requirement("number")])), **more)
        self.done = self.command(
            (0, 1, 3),
            harness.BIN / "assay",
            "accept",
            "--profile",
            self.write("profile.json", document),
            "--site",
            self.site,
            "--out",
            self.run_directory,
            "--allow-missing",
        )
        verified = self.command(0, harness.BIN / "assay", "verify", self.run_directory / "dossier", "--key", self.key)
        self.done.out += verified.out
        self.done.kib = max(self.done.kib, verified.kib)
        outcomes = {}
        for result in self.verdict()["results"]:
            outcomes.setdefault(result["node"], set()).add(result["outcome"])
        return outcomes

    def alone(self, mode, *requirements, evil="error", good="pass", **more):
        """The liar's cells have this outcome, the honest node's theirs; what was said."""
        self.assertEqual(self.judged(mode, *requirements, **more), {"good": {good}, "evil": {evil}}, self.reasons())
        return self.done
