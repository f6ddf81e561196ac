#!/usr/bin/env python3
"""Another user of the head or of a node, and what a killed head leaves. Needs root, which becomes that other user."""
import datetime
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time

import listener_test
import measured
from hostile_node import KEY
from rows import Document, harness, row  # noqa: F401: Document is a test

NOBODY = 65534


class Users(harness.Bench):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("UNDECIDED: only root can act as another user")
        self.shared = pathlib.Path(tempfile.mkdtemp(prefix="assay-shared-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.shared, ignore_errors=True)
        self.shared.chmod(0o777)  # and not sticky: the worst that a site can do
        self.scratch.chmod(0o755)
        self.victim = self.scratch / "victim"
        self.victim.mkdir(mode=0o755)
        (self.victim / "file").write_text("root's\n")
        (self.victim / "file").chmod(0o600)

    def as_nobody(self, make):
        """What the other user makes in the shared folder."""
        child = os.fork()
        if child == 0:
            os.setresuid(NOBODY, NOBODY, NOBODY)
            try:
                make()
            finally:
                os._exit(0)
        os.waitpid(child, 0)

    def untouched(self):
        self.assertEqual(stat.S_IMODE(self.victim.stat().st_mode), 0o755)
        self.assertEqual(sorted(path.name for path in self.victim.iterdir()), ["file"])
        self.assertEqual((self.victim / "file").read_text(), "root's\n")

    def accepts(self, *words, **more):
        profile = self.write("profile.json", harness.profile(harness.requirement("number")))
        return measured.run([harness.BIN / "assay", "accept", "--profile", profile, *words], self.environment, **more)

    @row(
        "L",
        "L1",
        "an empty folder of another user as --out, with a link at a temporary name",
        2,
        "belongs to another user",
    )
    def test_l1(self):
        out = self.shared / "run"

        def make():
            out.mkdir()
            for name in ("verdict.json.tmp", "plan.json.tmp", "journal.jsonl"):
                (out / name).symlink_to(self.victim / "file")

        self.as_nobody(make)
        done = self.accepts("--out", out, "--directory", self.work)
        self.untouched()
        return done

    @row(
        "L",
        "L2",
        "folders made beforehand at the default names of the next minute",
        2,
        "exists already, though its name was made up just now",
    )
    def test_l2(self):
        def make():
            now = datetime.datetime.now(datetime.timezone.utc)
            for second in range(60):
                (self.shared / (now + datetime.timedelta(seconds=second)).strftime("assay-run-%Y%m%dT%H%M%SZ")).mkdir()

        self.as_nobody(make)
        done = self.accepts("--directory", self.work, cwd=self.shared)
        self.assertEqual(list(self.shared.glob("*/*")), [])
        return done

    @row(
        "L",
        "L3",
        "a link at the agent's directory of an ssh node, to a folder of root",
        3,
        "is a link or belongs to another user",
    )
    def test_l3(self):
        tools = self.scratch / "tools"
        tools.mkdir()
        (tools / "ssh").write_text('#!/bin/bash\nexec /bin/sh -c "${@: -1}"\n')
        (tools / "ssh").chmod(0o755)
        self.environment["PATH"] = f"{tools}:{self.environment['PATH']}"
        self.as_nobody(lambda: (self.shared / "agent").symlink_to(self.victim))
        site = self.write(
            "site.json",
            {
                "schema": "assay.site/1",
                "name": "hall",
                "nodes": [
                    {
                        "name": "n1",
                        "launcher": "ssh",
                        "address": "n1",
                        "host_key": KEY,
                        "directory": str(self.shared / "agent"),
                    }
                ],
            },
        )
        done = self.accepts("--site", site, "--out", self.run_directory)
        self.untouched()
        return done

    @row(
        "L",
        "L8",
        "the agent's directory made beforehand by another user: said, with his number",
        3,
        "belongs to another user (uid 65534)",
    )
    def test_l8(self):
        self.as_nobody(lambda: (self.shared / "agent").mkdir())
        return self.accepts("--out", self.run_directory, "--directory", self.shared / "agent")

    @row("L", "L9", "the agent's directory is a link of another user's, to a folder of root", 3, "cannot be opened")
    def test_l9(self):
        self.as_nobody(lambda: (self.shared / "agent").symlink_to(self.victim))
        done = self.accepts("--out", self.run_directory, "--directory", self.shared / "agent")
        self.untouched()
        return done

    @row(
        "L",
        "L10",
        "modes of the agent's directory and of this machine's key",
        0,
        "ACCEPTED: 1 of 1 required cells pass",
    )
    def test_l10(self):
        done = self.accepts("--out", self.run_directory, "--directory", self.work)
        for path in [self.work, *[one for one in self.work.rglob("*") if one.is_dir()]]:
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o700, path)
        self.assertEqual(stat.S_IMODE((self.scratch / "state/assay/machine.key").stat().st_mode), 0o600)
        return done


class Programs(harness.Bench):
    """Who changes the programs, or how they are started."""

    @row("L", "L12", "a probe changed between plan and run", 2, "is not the binary that was planned")
    def test_l12(self):
        copy = self.scratch / "installation"
        shutil.copytree(harness.BIN.parent, copy, ignore=shutil.ignore_patterns("doc"))
        plan = self.scratch / "plan.json"
        profile = self.write("profile.json", harness.profile(harness.requirement("number")))
        planned = measured.run(
            [copy / "bin/assay", "plan", "--profile", profile, "--directory", self.work, "--out", plan],
            self.environment,
        )
        self.assertEqual(planned.code, 0, planned)
        with open(copy / "libexec/assay/probes/fake_probe", "ab") as file:
            file.write(b"\0")
        return measured.run([copy / "bin/assay", "run", plan, "--out", self.run_directory], self.environment)

    @row(
        "E",
        "E1",
        "LD_PRELOAD of the head's user: no agent and no probe has it",
        0,
        "ACCEPTED: 1 of 1 required cells pass",
    )
    def test_e1(self):
        loaded = self.scratch / "loaded"
        source, library = self.scratch / "evil.c", self.scratch / "evil.so"
        source.write_text(
            "#include <fcntl.h>\n#include <string.h>\n#include <unistd.h>\nextern char* program_invocation_name;\n"
            "__attribute__((constructor)) static void here(void) {\n"
            f'  int file = open("{loaded}", O_WRONLY | O_APPEND | O_CREAT, 0666);\n'
            '  if (file < 0 || write(file, program_invocation_name, strlen(program_invocation_name)) < 0 || write(file, "\\n", 1) < 0) return;\n'
            "}\n"
        )
        if subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], capture_output=True).returncode != 0:
            self.skipTest("UNDECIDED: no C compiler here")
        profile = self.write("profile.json", harness.profile(harness.requirement("number")))
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
            dict(self.environment, LD_PRELOAD=str(library), LD_LIBRARY_PATH=str(self.scratch)),
        )
        names = loaded.read_text().splitlines()
        self.assertTrue([name for name in names if name.endswith("/assay")], names)
        self.assertFalse([name for name in names if "assay-node" in name or "assay-probe" in name], names)
        return done


class Killed(harness.Bench):
    def killed(self, behaviour):
        """Nothing is left of a head that was killed while a probe ran; what --resume says then."""
        steps = [harness.requirement(f"r{i}", behaviour, value=100 + i) for i in range(2)]
        profile = self.write("profile.json", harness.profile(*steps))
        head = self.start("accept", "--profile", profile, "--directory", self.work, "--out", self.run_directory)
        harness.wait_for(
            lambda: any("assay-probe" in line for line in harness.processes(f"--behaviour={behaviour}")), "a probe runs"
        )
        head.send_signal(signal.SIGKILL)
        head.wait(60)
        self.nothing_left()

    @row(
        "L",
        "L6",
        "kill -9 of the head while a probe runs: agent and probe end, and the run goes on",
        0,
        "ACCEPTED: 2 of 2 required cells pass",
    )
    def test_l6(self):
        self.killed("slow")
        return measured.run([harness.BIN / "assay", "run", "--resume", self.run_directory], self.environment)


class Secrets(listener_test.Listener):
    @row("L", "L4", "the token of a job in arguments, run folder or dossier", 0, "ACCEPTED: 1 of 1 required cells pass")
    def test_l4(self):
        calls = self.scratch / "calls.jsonl"
        self.environment["FAKE_SLURM_LOG"] = str(calls)
        seen, over = set(), threading.Event()

        def watch():
            while not over.is_set():
                for entry in pathlib.Path("/proc").iterdir():
                    if entry.name.isdigit():
                        try:
                            seen.add((entry / "cmdline").read_bytes())
                        except OSError:
                            pass
                time.sleep(0.05)

        threading.Thread(target=watch, daemon=True).start()
        done = self.accept_under()
        over.set()
        token = (
            next(words[1] for words in map(json.loads, calls.read_text().splitlines()) if words[0] == "token")
            .strip()
            .encode()
        )
        self.assertGreaterEqual(len(token), 32)
        self.assertFalse([line for line in seen if token in line])
        for path in self.run_directory.rglob("*"):
            self.assertFalse(path.is_file() and token in path.read_bytes(), path)
        return done


if __name__ == "__main__":
    harness.main()
