"""What sweeps leave for others: the verdict of a node, read fast, and the files that start sweeps."""
import json
import re
import shutil
import subprocess
import time

from harness import BIN, main, requirement
from nightly import NightBench, nightly

READ_S = 0.1  # in which the cached verdict must be read


class Verdict(NightBench):
    def test_the_answer_takes_less_than_a_tenth_of_a_second(self):
        moments = []
        path = self.write(
            "verdict.json",
            {
                "schema": "assay.cached-verdict/1",
                "node": "n01",
                "health": "healthy",
                "text": "assay: healthy",
                "as_of": "2026-01-05T06:00:00.000Z",
                "valid_until": "2126-01-05T06:00:00.000Z",
            },
        )
        for _ in range(20):
            begin = time.monotonic()
            done = self.assay("verdict", "--file", path, "--node", "n01")
            moments.append(time.monotonic() - begin)
            self.assertEqual((done.returncode, done.stdout), (0, "assay: healthy\n"), done.stderr)
        self.assertLess(min(moments), READ_S)  # others may hold up single calls

    def test_without_a_verdict_nothing_is_known(self):
        done = self.assay("verdict", "--file", self.scratch / "absent.json")
        self.assertEqual(
            (done.returncode, done.stdout),
            (2, "assay: unknown: the verdict cannot be read: No such file or directory\n"),
        )


class Install(NightBench):
    def files(self, what, *more):
        done = self.assay("install", what, "-o", self.scratch / what, *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual("systemctl enable --now assay-sweep.timer" in done.stderr, what == "timer")
        return {path.name: path for path in (self.scratch / what).iterdir()}

    def test_units_pass_systemds_own_check(self):
        files = self.files("timer")
        self.assertEqual(set(files), {"assay-sweep.service", "assay-sweep.timer"})
        if shutil.which("systemd-analyze"):
            # Of what it says only these units matter; the machine's own may be broken.
            said = subprocess.run(
                ["systemd-analyze", "verify", files["assay-sweep.timer"], files["assay-sweep.service"]],
                capture_output=True,
                text=True,
            )
            self.assertNotIn("assay-sweep", said.stderr)

    def test_the_night_of_a_timer_and_of_the_head_sweeps_and_judges(self):
        node = {"name": "n01", "launcher": "local", "directory": str(self.work)}
        site = self.write("site.json", {"schema": "assay.site/1", "name": "bench", "nodes": [node]})
        profile = self.write("night.json", nightly(requirement("r")))
        for what in ("timer", "slurm"):
            folder = self.scratch / f"fleet-{what}"
            files = self.files(what, "--site", site, "--profile", profile, "--folder", folder)
            if what == "timer":
                line = re.search(r"^ExecStart=/bin/sh -c '(.*)'$", files["assay-sweep.service"].read_text(), re.M)[1]
                line = line.replace("$$", "$").replace("%%", "%")  # as systemd reads it
            else:
                line = files["assay-sweep.sh"].read_text().replace(" --slurm", "")
            for night in range(2):  # the second one reads the report of the first
                done = subprocess.run(["/bin/sh", "-c", line], env=self.environment, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                report = json.loads((folder / "drift.json").read_text())
                self.assertEqual((report["nights"], report["coverage"]["measured"]), (1, 1))
                time.sleep(1 - time.time() % 1)  # the folder of a sweep is named by the second

    def test_scripts_are_ones_that_sh_takes_and_nothing_is_overwritten(self):
        for what in ("slurm", "npd"):
            for name, path in self.files(what).items():
                if name.endswith(".sh"):
                    self.assertEqual(subprocess.run(["sh", "-n", path], capture_output=True, text=True).stderr, "")
                    self.assertTrue(path.stat().st_mode & 0o100)
        done = self.assay("install", "npd", "-o", self.scratch / "npd")
        self.assertEqual(done.returncode, 2)
        self.assertIn("nothing is overwritten", done.stderr)

    def test_a_manifest_has_one_job_that_no_other_overlaps(self):
        files = self.files("cron", "--gpus", "8", "--count", "3")
        cron = json.loads(files["assay-cronjob.json"].read_text())
        self.assertEqual((cron["kind"], cron["spec"]["concurrencyPolicy"]), ("CronJob", "Forbid"))

    def test_a_script_of_npd_has_the_exit_code_of_the_verdict(self):
        script = self.files("npd")["assay-verdict.sh"]
        self.assertIn(str(BIN / "assay"), script.read_text())
        done = subprocess.run([script], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertLessEqual(len(done.stdout.strip()), 80)


if __name__ == "__main__":
    main()
