"""Settings of machines: changed only where --allow-settings says so, told by the report, and put back in every end. The RAPL zone is made up."""
import signal

from harness import Bench, main, requirement, wait_for

LIMIT, LOWERED = "200000000", "160000000"  # uW


class Settings(Bench):
    def setUp(self):
        super().setUp()
        zone = self.scratch / "powercap" / "intel-rapl:0"
        zone.mkdir(parents=True)
        for name, content in (
            ("name", "package-0"),
            ("max_energy_range_uj", "262143328850"),
            ("energy_uj", "5000000"),
            ("constraint_0_name", "long_term"),
            ("constraint_0_time_window_us", "999424"),
            ("constraint_0_power_limit_uw", LIMIT),
        ):
            (zone / name).write_text(content + "\n")
        self.limit_file = zone / "constraint_0_power_limit_uw"

    def limit(self):
        return self.limit_file.read_text().strip()

    def capped(self, **more):
        parameters = {
            "powercap": str(self.scratch / "powercap"),
            "nvml_library": "none.so",
            "device": "/no-such-bmc",
            "hold": "2s",
            "ramp": "100ms",
            "threads": 1,
            "lower_to": 80,
            "allow_settings": "yes",
            **more,
        }
        return requirement(
            "capped",
            probe="power_cap",
            parameters=parameters,
            metric="cap_share",
            statistic="max",
            scope="cpu",
            limit={"at_most": 1, "unit": "1"},
            repeat={"n": 2},
        )

    def asked(self, *more, **parameters):
        document = {
            "schema": "assay.profile/1",
            "name": "test",
            "title": "Test",
            "revision": 1,
            "relative_only": "a test",
            "node": {"cpu": 1},
            "requirements": [self.capped(**parameters)],
        }
        return [
            "accept",
            "--profile",
            self.write("profile.json", document),
            "--directory",
            self.work,
            "--out",
            self.run_directory,
            *more,
        ]

    def test_a_profile_alone_changes_nothing(self):
        done = self.assay(*self.asked())
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("power_cap changes machine settings", done.stderr)
        self.assertIn("--allow-settings", done.stderr)
        self.assertFalse(self.run_directory.exists())
        self.assertEqual(self.limit(), LIMIT)

    def test_a_plan_that_consents_is_no_consent_of_who_runs_it(self):
        plan = self.scratch / "plan.json"
        asked = self.asked("--allow-settings")
        asked[0], asked[asked.index("--out") + 1] = "plan", plan
        done = self.assay(*asked)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.assay("run", plan, "--out", self.run_directory)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("power_cap changes machine settings", done.stderr)
        self.assertFalse(self.run_directory.exists())
        self.assertEqual(self.limit(), LIMIT)
        done = self.assay("run", plan, "--out", self.run_directory, "--allow-settings")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.limit(), LIMIT)

    def test_what_is_allowed_is_done_told_and_put_back(self):
        run = self.start(*self.asked("--allow-settings"))
        wait_for(lambda: self.limit() == LOWERED or run.poll() is not None, "the limit is lowered")
        run.wait(120)
        self.assertEqual(self.limit(), LIMIT)
        self.assertIn(
            "power_cap was allowed to change settings of machines (--allow-settings)", str(self.verdict()["deviations"])
        )
        self.assertEqual(run.returncode, 0, self.verdict())
        self.assertIn('"allow_settings": true', (self.run_directory / "plan.json").read_text())
        self.assertEqual(self.verify().returncode, 0)

    def test_a_head_that_is_killed_leaves_the_limit_as_it_was(self):
        run = self.start(*self.asked("--allow-settings", hold="3s"))
        wait_for(lambda: self.limit() == LOWERED or run.poll() is not None, "the limit is lowered")
        self.assertIsNone(run.poll())
        run.send_signal(signal.SIGKILL)
        run.wait(10)
        wait_for(lambda: self.limit() == LIMIT, "the limit is put back", 30)


if __name__ == "__main__":
    main()
