"""FLOP/J of a rack during a load of a minute, by meters of a simulated plant behind real Modbus TCP; the rates are those of this
machine."""
import time

from harness import main
from site_bench import LOAD, SiteBench

HOLD = "70s"  # 60 readings are needed; a busy machine may lose some


class Efficiency(SiteBench):
    def of_load(self, requirement):
        """The same of what the load itself measured."""
        requirement["probe"] = requirement.pop("during")
        return requirement

    def test_operations_over_energy_of_the_same_minute_are_judged(self):
        swaying = lambda mean: mean + 10 * (time.monotonic() % 1)
        # In the load the rack draws 1000 W more than before and after it: a mean over another time shows.
        # An answer that is late by less than a slot loses no reading; one that is given up does, and the next wait is longer.
        classed = {"averaging_s": 1, "accuracy": 0.01, "accuracy_source": "the test", "timeout_s": 5}
        site = self.site(
            [self.feed("pdu-a", lambda: swaying(2000 if self.loads() else 1000), **classed)],
            load_test={"consent": "the test itself, for n01", "limit_w": 9000},
        )
        long = {"parameters": {**LOAD, "hold": HOLD}}
        once = {"repeat": {"n": 1, "attempts": 1, "more_attempts": 0}}
        result = self.assay(
            *self.begin(
                site,
                self.metered(
                    "efficiency",
                    "energy_efficiency",
                    "rack",
                    {"at_least": 1e3},
                    "FLOP/J",
                    statistic="min",
                    **long,
                    **once
                ),
                self.metered("power", "total_power", "rack", {"at_most": 3000}, "W", statistic="median", **long),
                self.of_load(
                    self.metered("rate", "total_rate", "node", {"at_least": 1}, "FLOP/s", statistic="median", **long)
                ),
            )
        )
        efficiency, power, rate = self.verdict()["results"]
        self.assertEqual(efficiency["outcome"], "pass", (efficiency, result.stderr))
        # Means against medians of the same minute, on a machine that other programs share.
        self.assertAlmostEqual(efficiency["value"] / (rate["value"] / power["value"]), 1, delta=0.2)
        self.assertAlmostEqual(power["value"], 2005, delta=5)


if __name__ == "__main__":
    main()
