"""By how much counters rose during a run: one reading before the load, one after it."""
from harness import Bench, main, requirement

COUNT = {"metric": "count", "statistic": "max", "limit": {"at_most": 0, "unit": "1"}, "repeat": {"n": 1}}


class Rise(Bench):
    def risen(self, *readings, before=True, **more):
        """accept with a counter that says these numbers, one after the other; the outcome of its rise."""
        script = self.write("script", "".join(f"{one}\n" for one in (*readings, *readings[-1:] * 8)))
        counted = {**COUNT, "parameters": {"script": script, "counter": 1}}
        level = [requirement("level", severity="advisory", **counted)] if before else []
        self.done = self.accept(
            *level, requirement("load", value=101), requirement("rise", after=True, rise=True, **{**counted, **more})
        )
        if not self.run_directory.exists():
            return None
        return next(one for one in self.verdict()["results"] if one["requirement"] == "rise")

    def test_what_was_there_before_is_no_rise(self):
        rise = self.risen(7, 7)
        self.assertEqual(
            (self.done.returncode, rise["outcome"], rise["value"]), (0, "pass", 0), self.done.stderr + self.done.stdout
        )
        self.assertEqual(self.outcomes()[("level", self.node())], "fail")

    def test_a_rise_is_rejected_and_a_small_one_may_be_allowed(self):
        rise = self.risen(7, 9)
        self.assertEqual((self.done.returncode, rise["outcome"], rise["value"]), (1, "fail", 2))

    def test_a_rise_below_the_limit_passes(self):
        rise = self.risen(7, 9, limit={"at_most": 2, "unit": "1"})
        self.assertEqual((self.done.returncode, rise["outcome"], rise["value"]), (0, "pass", 2))

    def test_a_counter_that_fell_leaves_it_open(self):
        rise = self.risen(7, 3)
        self.assertEqual((self.done.returncode, rise["outcome"]), (3, "inconclusive"))
        self.assertIn("was 7 before the load and 3 after it: it was reset", rise["reason"])

    def test_a_first_reading_that_failed_leaves_it_open(self):
        rise = self.risen("crash", 7)
        self.assertEqual((self.done.returncode, rise["outcome"]), (3, "inconclusive"))
        self.assertIn("was read after the load, and not before it", rise["reason"])

    def test_a_profile_without_a_first_reading_is_refused(self):
        self.risen(7, 7, before=False)
        self.assertEqual(self.done.returncode, 2)
        self.assertIn("needs a reading before the load", self.done.stderr)

    def test_what_is_no_counter_is_refused(self):
        self.risen(7, 7, metric="number")
        self.assertEqual(self.done.returncode, 2)
        self.assertIn("number of fake_probe is no counter", self.done.stderr)


if __name__ == "__main__":
    main()
