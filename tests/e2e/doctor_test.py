"""`assay doctor`: what the probes of this installation say that they lack."""
import hashlib
import json
import os

import shutil

from harness import BIN, Bench, main, profile, requirement


class Doctor(Bench):
    def findings(self, *more):
        done = self.assay("doctor", "--directory", self.scratch, "--json", *more)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)  # fake_fabric fails without other ranks
        return {one["name"]: one for one in json.loads(done.stdout)["rows"]}

    def test_a_probe_that_measures_is_ready_and_leaves_nothing(self):
        found = self.findings()
        self.assertEqual(found["fake_probe"]["state"], "ready")
        self.assertEqual(found["fake_fabric"]["state"], "error")
        self.assertIn("is not host:port", found["fake_fabric"]["reason"])
        self.assertEqual(
            found["assay-node"], {"name": "assay-node", "state": "ready", "reason": str((BIN / "assay-node"))}
        )
        self.assertEqual(list(self.scratch.glob("assay-doctor-*")), [])

    def test_a_program_that_is_not_there_is_missing_with_what_it_is_for(self):
        empty = self.scratch / "empty"
        empty.mkdir()
        self.environment["PATH"] = str(empty)
        found = self.findings()
        self.assertEqual(found["fio"]["state"], "missing")
        self.assertIn("the storage probes skip", found["fio"]["reason"])
        self.environment["PATH"] = os.environ["PATH"]

    def test_the_table_has_a_line_for_each_and_a_sum(self):
        done = self.assay("doctor", "--directory", self.scratch)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^fake_probe +ready +")
        self.assertRegex(done.stdout, r"\n\d+ ready, 0 for several nodes, \d+ missing something, 1 with an error\n$")

    def test_a_folder_that_is_not_there_is_bad_input(self):
        done = self.assay("doctor", "--directory", self.scratch / "nothing")
        self.assertEqual(done.returncode, 2)
        self.assertIn("is not a folder", done.stderr)

    def test_a_plan_starts_and_reads_the_probes_of_its_profile_alone(self):
        shutil.copytree(BIN.parent, self.scratch / "copy", ignore=shutil.ignore_patterns("doc"))
        self.installed = self.scratch / "copy/bin/assay"
        broken = self.scratch / "copy/libexec/assay/probes/broken"
        broken.write_text(f"#!/bin/sh\ntouch {self.scratch}/started\nexit 1\n")
        broken.chmod(0o755)
        done = self.accept(requirement("r"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse((self.scratch / "started").exists())
        probes = json.loads((self.run_directory / "plan.json").read_text())["probes"]
        fake = self.scratch / "copy/libexec/assay/probes/fake_probe"
        self.assertEqual(
            {name: probe["sha256"] for name, probe in probes.items()},
            {"fake_probe": hashlib.sha256(fake.read_bytes()).hexdigest()},
        )
        done = self.assay("doctor", "--directory", self.scratch)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertTrue((self.scratch / "started").exists())


if __name__ == "__main__":
    main()
