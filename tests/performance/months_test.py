"""The figures that nightly sweeps promise, of made-up fleets of full size: false flags, nights to a flag, time and memory. Some ten minutes."""
import os
import re
import subprocess
import tempfile
import unittest

NIGHTLY = os.environ["NIGHTLY"]
NODES, METRICS = "10000", "30"


class Months(unittest.TestCase):
    def said(self, *words):
        done = subprocess.run([NIGHTLY, *words], capture_output=True, text=True, check=True)
        print(done.stdout, end="", flush=True)
        return done.stdout

    def number(self, pattern, text):
        found = re.search(pattern, text)
        self.assertIsNotNone(found, text)
        return float(found.group(1))

    def test_a_fleet_without_fault_has_two_flags_in_thirty_nights_at_most_and_none_is_confirmed(self):  # row a
        for noise in ("gauss", "t5"):
            said = self.said("null", NODES, METRICS, "90", "20", noise)
            self.assertLessEqual(self.number(r"([\d.]+) in 30 nights", said), 2)
            self.assertEqual(self.number(r"(\d+) confirmed", said), 0)

    def test_three_deviations_are_flagged_in_a_median_of_six_nights_and_with_heavy_tails_of_eight(self):
        for noise, most in (("gauss", 6), ("t5", 8)):
            said = self.said("delay", NODES, "3", "3", noise)
            self.assertLessEqual(self.number(r"flagged, median (\d+) nights", said), most)
            self.assertEqual(self.number(r"(\d+) confirmed", said), 25)

    def test_a_year_is_judged_within_a_minute_in_two_gigabytes(self):  # row p
        said = self.said("year", NODES, METRICS, "365")
        self.assertLess(self.number(r": ([\d.]+) s to judge", said), 60)
        self.assertLess(self.number(r", ([\d.]+) s the last night", said), 2)
        self.assertLess(self.number(r" (\d+) MB", said), 2000)

    def test_a_night_is_added_within_two_seconds(self):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            said = self.said("add", NODES, METRICS, f"{folder}/history.db").splitlines()[-1]
        self.assertLess(self.number(r": ([\d.]+) s", said), 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
