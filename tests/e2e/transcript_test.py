"""The terminal transcripts of docs/GUIDE.md: their commands run, and what they print is what the guide shows. Keys and hours are this
test's own; records are a fixture's."""
import calendar
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
import unittest

GUIDE = pathlib.Path(__file__).parents[2] / "docs/GUIDE.md"
BIN = pathlib.Path(os.environ["ASSAY"]).parent
DEADLINE_S = 120
CENTURY = {"valid_from": "2020-01-01", "valid_until": "2100-01-01"}


def blocks():
    return dict(re.findall(r"<!-- transcript (\w+) -->\n```text\n(.*?)```\n", GUIDE.read_text(), re.DOTALL))


def steps_of(transcript):
    """Days and commands, each with what it prints."""
    steps = []
    for line in transcript.splitlines():
        if line.startswith(("# ", "$ ")):
            steps.append([line, []])
        else:
            steps[-1][1].append(line)
    return steps


def without_changing(line):
    """What differs each time: fingerprints and signatures of fresh keys, and the time of the day."""
    line = re.sub(r"[0-9a-f]{64}", "DIGEST", line)
    return re.sub(r"T\d\d:\d\d:\d\d\.\d{3}Z", "TIME", line)


class Transcripts(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="assay-transcript-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.environment = dict(
            os.environ, PATH=f"{BIN}:{os.environ['PATH']}", XDG_STATE_HOME=str(self.folder / ".state")
        )
        for name in ("vendor", "buyer"):
            self.run_command(f"assay-report keygen {name}.key")
        parties = [
            {
                "name": organisation,
                "role": role,
                "threshold": 1,
                "signers": [
                    {
                        "name": person,
                        "keys": [
                            {
                                "fingerprint": self.run_command(f"assay-report fingerprint {role}.key.pub").strip(),
                                "file": f"{role}.key.pub",
                                **CENTURY,
                            }
                        ],
                    }
                ],
            }
            for role, person, organisation in (
                ("vendor", "Ada Example", "Example Systems"),
                ("buyer", "Bo Example", "Example AG"),
            )
        ]
        (self.folder / "trust.json").write_text(
            json.dumps(
                {"schema": "assay.trust/1", "name": "hall 3", **CENTURY, "require": ["vendor"], "parties": parties}
            )
        )

    def run_command(self, command):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=DEADLINE_S,
        )
        return done.stdout

    def at(self, day):
        """Sets the clock of the commands to nine o'clock of this day."""
        shift_s = calendar.timegm(time.strptime(day + " 09", "%Y-%m-%d %H")) - int(time.time())
        self.environment.update(LD_PRELOAD=os.environ["SHIFT_CLOCK"], SHIFT_CLOCK_S=str(shift_s))

    def make(self, *arguments):
        subprocess.run([os.environ["MAKE_RUN"], *map(str, arguments)], cwd=self.folder, check=True, timeout=DEADLINE_S)

    def agree(self, run):
        """The profile of the run, as both parties have agreed on it before."""
        profile = json.loads((self.folder / run / "plan.json").read_text())["profile"]
        (self.folder / "agreed.json").write_text(
            json.dumps({name: value for name, value in profile.items() if name not in ("ancestors", "loosened")})
        )

    def check(self, name):
        transcript = blocks()[name]
        told = []
        for line, shown in steps_of(transcript):
            if line.startswith("# "):
                self.at(re.search(r"\d{4}-\d\d-\d\d", line)[0])
                told.append(line)
                continue
            printed = self.run_command(line[2:]).splitlines()
            told += [line, *printed]
            if not os.environ.get("ASSAY_BLESS"):
                self.assertEqual(
                    [without_changing(one) for one in shown],
                    [without_changing(one) for one in printed],
                    f"{shlex.quote(line)}: run with ASSAY_BLESS=1",
                )
        if os.environ.get("ASSAY_BLESS"):
            GUIDE.write_text(GUIDE.read_text().replace(transcript, "\n".join(told) + "\n"))
        return told

    def test_a_vendor_hands_over_and_a_buyer_verifies_and_countersigns(self):
        self.make("inventory", "run")
        self.agree("run")
        told = "\n".join(self.check("handover"))
        self.assertIn("refused: trust.json: rule required_role", told)
        self.assertIn("signed as buyer: Bo Example of Example AG", told)

    def test_sixteen_nodes_become_256(self):
        self.make("fleet", "first", "hall-3", "5f0c3c1e-8a51-4f0e-9b64-0b1d5a7e2c21", 1, 16, "SN-hall3-", 4.62e11)
        self.make("fleet", "later", "hall-3", "5f0c3c1e-8a51-4f0e-9b64-0b1d5a7e2c22", 17, 240, "SN-hall3-", 4.6e11)
        told = "\n".join(self.check("growth"))
        self.assertIn("verified: accepted: 2 parts with 256 nodes", told)

    def test_a_waiver_runs_out(self):
        self.make("mixed", "run")
        told = "\n".join(self.check("waiver"))
        self.assertIn("WAIVED until 2026-03-31", told)
        self.assertIn("rule waiver_until", told)


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=2)
    sys.exit(0 if program.result.wasSuccessful() and program.result.testsRun == 3 else 1)
