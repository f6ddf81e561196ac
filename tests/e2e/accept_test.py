"""`assay accept` on this machine: from a profile to a verdict, with probes that behave and probes that do not."""
from harness import DAEMON_S, Bench, main, processes, requirement, wait_for


class Accept(Bench):
    def test_a_healthy_machine_is_accepted_and_its_dossier_verifies(self):
        done = self.accept(requirement("r"))
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertIn("ACCEPTED: 1 of 1 required cells pass.", done.stdout)
        self.assertIn("SELF-SIGNED", done.stderr)
        self.assertTrue((self.run_directory / "report.html").read_text().startswith("<!DOCTYPE html>"))
        verified = self.verify()
        self.assertEqual(verified.returncode, 0, verified.stderr)
        self.nothing_left()

    def test_a_missed_limit_is_rejected(self):
        done = self.accept(requirement("r", at_least=200), requirement("s"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("REJECTED", done.stdout)
        self.assertEqual(self.verify().returncode, 0)

    def test_a_probe_that_is_not_there_is_not_measured_and_the_whole_incomplete(self):
        done = self.accept(requirement("r"), dict(requirement("gpu"), probe="cuda_gemm", parameters={}))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(self.outcomes()[("gpu", self.node())], "not_measured")
        self.assertIn("cuda_gemm is not part of this build", done.stdout)

    def test_every_misbehaviour_is_named_and_nothing_else_is_lost(self):
        behaviours = {"hang": "error", "stubborn": "error", "crash": "error", "exit3": "error", "flood": "error", "garbage": "error",
                      "truncate": "error", "error": "error", "skip": "not_measured", "daemon": "pass", "measure": "pass"}
        done = self.accept(*(requirement(name, name, value=DAEMON_S) for name in behaviours))
        self.assertEqual(done.returncode, 3, done.stderr)
        node = self.node()
        self.assertEqual(self.outcomes(), {(name, node): outcome for name, outcome in behaviours.items()})
        reasons = self.reasons()
        for name, words in {"hang": "deadline", "stubborn": "deadline", "crash": "crashed", "exit3": "exit code 3", "flood": "output_limit",
                            "garbage": "line 2", "truncate": "'end' is missing", "error": "answered with an error",
                            "skip": "no such hardware"}.items():
            self.assertIn(words, reasons[(name, node)])
        self.nothing_left()
        self.assertEqual(processes(f"sleep {DAEMON_S}"), [])
        self.assertEqual(self.verify().returncode, 0)

    def test_a_directory_with_a_run_in_it_is_refused(self):
        self.accept(requirement("r"))
        again = self.accept(requirement("r"))
        self.assertEqual(again.returncode, 2)
        self.assertIn("exists and is not empty", again.stderr)

    def test_judging_again_gives_the_same_bytes(self):
        self.accept(requirement("r"))
        before = (self.run_directory / "verdict.json").read_bytes()
        self.assertEqual(self.assay("judge", self.run_directory).returncode, 0)
        self.assertEqual((self.run_directory / "verdict.json").read_bytes(), before)

    def test_a_rehearsal_accepts_nothing(self):
        done = self.accept(requirement("r"), more=["--quick"])
        self.assertEqual(done.returncode, 3)
        self.assertIn("rehearsal", done.stdout)

    def test_a_dry_run_does_nothing(self):
        done = self.accept(requirement("r"), more=["--dry-run"])
        self.assertEqual(done.returncode, 0)
        self.assertIn("0001-fake_probe-", done.stdout)
        self.assertFalse(self.run_directory.exists())


class CommandLine(Bench):
    def refused(self, words, *arguments):
        done = self.assay(*arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(words, done.stderr)

    def test_misspelt_names_get_the_nearest(self):
        self.refused("did you mean 'accept'?", "acept")
        self.refused("did you mean '--profile'?", "accept", "--profil", "host")
        self.refused("did you mean 'host'?", "accept", "--profile", "hots")
        self.refused("did you mean 'fake_probe'?", "describe", "fake_prob")

    def test_every_command_that_is_passed_on_exists_in_assay_report(self):
        self.refused("'export' is not a command", "export")
        self.refused("'trend' is not a command", "trend")
        for command in ("report", "sign", "verify", "keygen", "simulate"):
            self.assertEqual(self.assay(command, "--help").returncode, 0, command)

    def test_help_fits_a_screen_and_ends_with_an_example(self):
        for command in ([], ["accept"], ["plan"], ["run"], ["judge"], ["status"], ["list"], ["describe"], ["bundle"]):
            text = self.assay(*command, "--help").stdout.rstrip()
            self.assertLessEqual(len(text.split("\n")), 40, command)
            self.assertIn("Example: assay", text.split("\n")[-1])
            self.assertNotIn("{false}", text)

    def test_a_profile_with_a_fault_is_refused_with_its_place(self):
        bad = requirement("r")
        bad["limit"]["unit"] = "GB/s"
        done = self.accept(requirement("q"), bad)
        self.assertEqual(done.returncode, 2)
        self.assertIn("requirements[1].limit.unit: 'GB/s' is not one of", done.stderr)

    def test_list_and_describe_tell_of_every_probe(self):
        self.assertIn("fake_probe", self.assay("list").stdout)
        self.assertIn("repeats the parameter value", self.assay("describe", "fake_probe").stdout)


if __name__ == "__main__":
    main()
