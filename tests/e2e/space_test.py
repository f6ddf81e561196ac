"""What a plan writes to a storage is said before, and a run that does not fit measures nothing."""
from harness import Bench, main, profile, requirement

TOO_MUCH = "1000000GiB"  # no machine of these tests has a PiB free


def writing(name, amount):
    one = requirement(name)
    one["parameters"]["writes"] = amount
    return one


class Space(Bench):
    def test_plan_and_dry_run_say_what_is_written_where(self):
        written = self.write("profile.json", profile(writing("a", "64KiB")))
        for more in ([], ["--dry-run"]):
            done = self.assay("plan", "--profile", written, "--directory", self.work, *more)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(
                "fake_probe writes to the node's directory: 65.54 kB at one time on each node;"
                " in 1 attempt of 1 step 131.1 kB",
                done.stderr,
            )

    def test_a_run_that_does_not_fit_is_refused_before_anything_is_measured_and_can_go_on(self):
        done = self.accept(requirement("first"), writing("large", TOO_MUCH))
        self.assertEqual(done.returncode, 2, done.stderr + done.stdout)
        self.assertRegex(
            done.stderr,
            r"\. on \S+: .* are free; step 0002-fake_probe-\S+ puts up to 1.074 PB there and needs a tenth more, 1.181 PB",
        )
        self.assertRegex(done.stderr, r"nothing was measured: free .* there and continue with `assay run --resume`")
        self.assertEqual([line["kind"] for line in self.journal() if "attempt" in line["kind"]], [])
        again = self.assay("run", "--resume", self.run_directory)
        self.assertEqual(again.returncode, 2, again.stderr)
        self.nothing_left()

    def test_a_run_that_fits_runs(self):
        done = self.accept(writing("small", "64KiB"))
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)


if __name__ == "__main__":
    main()
