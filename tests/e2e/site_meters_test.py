"""The head's companion: meters read during a run, what is judged by them, and a load that stops. The plant behind the meters is simulated
here: its numbers are made up, and go over real Modbus TCP."""
import signal
import time

from harness import main, wait_for
from site_bench import LOAD, SiteBench


class SiteMeters(SiteBench):
    def test_meters_are_judged_during_the_load_and_one_that_is_silent_leaves_its_own_cells_open(self):
        swaying = lambda mean: mean + 10 * (time.monotonic() % 1)
        heat = 2400 / (997 * 4180 * 8)  # m3/s of water that carry 2400 W at a rise of 8 K
        site = self.site(
            [
                self.feed("pdu-a", lambda: swaying(1000)),
                self.feed("pdu-b", lambda: swaying(1500)),
                self.meter(
                    "cdu-1",
                    "cdu",
                    ["flow", "supply_temperature", "return_temperature"],
                    lambda: [heat, 30.0, 38.0],
                    rack="r1",
                ),
                self.meter("hung", "feed", ["power"], lambda: [1.0], "silent", rack="r2"),
                self.meter("flooding", "meter", ["power"], lambda: [1.0], "flood"),
            ],
            load_test={"consent": "the test itself, for n01", "limit_w": 9000},
        )
        result = self.assay(
            *self.begin(
                site,
                self.metered("budget", "total_power", "rack", {"at_most": 3000}, "W", statistic="max"),
                self.metered("rating", "rating_share", "feed", {"at_most": 0.8}, statistic="max"),
                self.metered("phases", "phase_imbalance", "feed", {"at_most": 0.05}, statistic="max"),
                self.metered("heat", "heat_share", "cdu", {"at_least": 0.9}, statistic="min"),
                self.metered("intake", "power_ratio", "meter", {"at_most": 1.4}),
            )
        )
        cells = {(one["requirement"], *one["subject"].values()): one for one in self.verdict()["results"]}
        words = {cell: (one["outcome"], one["reason"]) for cell, one in cells.items()}
        self.assertEqual(
            {cell: one[0] for cell, one in words.items()},
            {
                ("budget", "r1"): "pass",
                ("budget", "r2"): "inconclusive",
                ("rating", "pdu-a"): "pass",
                ("rating", "pdu-b"): "pass",
                ("rating", "hung"): "inconclusive",
                ("phases", "pdu-a"): "fail",
                ("phases", "pdu-b"): "fail",
                ("phases", "hung"): "inconclusive",
                ("heat", "cdu-1"): "pass",
                ("intake", "flooding"): "inconclusive",
            },
            (words, result.stderr),
        )
        self.assertIn("hung at 127.0.0.1", words[("budget", "r2")][1])
        self.assertIn("flooding at 127.0.0.1", words[("intake", "flooding")][1])
        self.assertTrue(2500 < cells[("budget", "r1")]["value"] < 2530, cells[("budget", "r1")])
        self.check_journal(result)

    def check_journal(self, result):
        watches = [line for line in self.journal() if line["kind"] == "watch_end"]
        self.assertEqual([line["watch"] for line in watches], [1, 2, 3])  # before the load, during it, and after
        record = self.run_directory / "records/site/2/power_feed.jsonl"
        self.assertEqual(
            [file["path"] for file in watches[1]["evidence"] if file["path"].startswith("records")],
            ["records/site/2/power_feed.jsonl"],
        )
        self.assertEqual(self.verify().returncode, 0, self.verify().stderr + result.stdout + result.stderr)
        inside = self.run_directory / "dossier/evidence/records/site/2/power_feed.jsonl"
        self.assertEqual(inside.read_bytes(), record.read_bytes())
        inside.write_bytes(record.read_bytes().replace(b'"power"', b'"heat"', 1))
        self.assertEqual(self.verify().returncode, 4)

    def test_a_load_without_consent_or_without_a_meter_that_could_stop_it_is_refused(self):
        limit = self.metered("budget", "total_power", "rack", {"at_most": 3000}, "W", statistic="max")
        rated = self.feed("pdu-a", lambda: 1000.0)
        refused = self.assay(*self.begin(self.site([rated]), limit))
        self.assertEqual(refused.returncode, 2)
        self.assertIn("site hall: load_test: is missing, and profile test loads all nodes together", refused.stderr)
        rated.pop("rating_w")
        blind = self.assay(
            *self.begin(self.site([rated], load_test={"consent": "the test itself", "limit_w": 9000}), limit)
        )
        self.assertEqual(blind.returncode, 2)
        self.assertIn("none has a rating_w", blind.stderr)

    def test_a_meter_over_its_rating_stops_the_load(self):
        site = self.site(
            [self.feed("pdu-a", lambda: 9000.0 if self.loads() else 1000.0)],
            load_test={"consent": "the test itself, for n01", "limit_w": 90000},
        )
        self.assertIn("pdu-a is at 9000 W, its rating is 5000 W", self.stopped(site, 40))

    def test_racks_over_the_limit_of_the_consent_stop_the_load_although_each_is_below_its_rating(self):
        site = self.site(
            [self.feed(name, lambda: 4000.0 if self.loads() else 1000.0) for name in ("pdu-a", "pdu-b")],
            load_test={"consent": "the test itself, for n01", "limit_w": 7000},
        )
        self.assertIn("all racks together are at 8000 W, the limit is 7000 W", self.stopped(site, 30))

    def test_a_meter_that_goes_blind_stops_the_load(self):
        blind = self.feed("pdu-a", lambda: 1000.0)
        self.devices[-1].way = lambda: "silent" if self.loads() else "honest"
        site = self.site([blind], load_test={"consent": "the test itself, for n01", "limit_w": 7000})
        self.assertIn("pdu-a has a rating and does not answer: a load must not continue unseen", self.stopped(site, 45))

    def stopped(self, site, within_s):
        """Runs a load of a minute, which must not last that long; why its only cell is an error."""
        limit = self.metered("budget", "total_power", "rack", {"at_most": 30000}, "W", statistic="max")
        limit["parameters"] = {**LOAD, "hold": "60s"}
        begin = time.monotonic()
        self.assay(*self.begin(site, limit))
        self.assertLess(time.monotonic() - begin, within_s)
        self.assertFalse(self.loads())
        [cell] = self.verdict()["results"]
        self.assertEqual(cell["outcome"], "error", cell)
        return cell["reason"]

    def test_a_load_ends_within_five_seconds_of_the_head_killed(self):
        site = self.site(
            [self.feed("pdu-a", lambda: 1000.0)], load_test={"consent": "the test itself, for n01", "limit_w": 90000}
        )
        limit = self.metered("budget", "total_power", "rack", {"at_most": 3000}, "W", statistic="max")
        limit["parameters"] = {**LOAD, "hold": "60s"}
        head = self.start(*self.begin(site, limit))
        wait_for(self.loads, "the load runs")
        time.sleep(1)  # it works, beyond its start
        head.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        wait_for(lambda: not self.loads(), "the load has ended", 5)
        self.assertLess(time.monotonic() - killed, 5)


if __name__ == "__main__":
    main()
