"""failover_watch: an operator takes a feed away while a load is held. The plant behind the meters is simulated: its numbers are made up."""
import threading
import time

from harness import main
from site_bench import LOAD, SiteBench

AWAY = (6, 11)  # s after the load began
LOOK_S = 0.05  # between two looks for it
ANSWER_S = 0.9  # within which a meter answers: less than the interval, more than a busy machine keeps a thread waiting


class Failover(SiteBench):
    def setUp(self):
        super().setUp()
        self.begun = None
        self.over = threading.Event()
        looker = threading.Thread(target=self.look_for_load, daemon=True)
        looker.start()
        self.addCleanup(looker.join)
        self.addCleanup(self.over.set)  # before the join: cleanups run last first

    def look_for_load(self):
        """Sets when the load began. A thread of its own: a meter that walks /proc before it answers is late on a busy machine."""
        while not self.over.wait(LOOK_S):
            if self.loads():
                self.begun = time.monotonic()
                return

    def away(self):
        """Whether feed b is away now."""
        return self.begun is not None and AWAY[0] < time.monotonic() - self.begun < AWAY[1]

    def sway(self):
        return time.monotonic() % 1

    def verdict_of(self, node):
        site = self.site(
            [
                self.feed("pdu-a", lambda: (4000 if self.away() else 2000) + self.sway(), feed="A", timeout_s=ANSWER_S),
                self.feed("pdu-b", lambda: 0 if self.away() else 2000 + self.sway(), feed="B", timeout_s=ANSWER_S),
                self.meter(
                    "bmc",
                    "node",
                    ["power"],
                    lambda: [node() + self.sway()],
                    nodes=["n01"],
                    rack="r1",
                    timeout_s=ANSWER_S,
                ),
            ],
            load_test={"consent": "the test itself, for n01", "limit_w": 9000},
        )
        figure = lambda name, metric, limit, unit="1", **more: {
            **self.metered(name, metric, "rack", limit, unit, **more),
            "probe": "failover_watch",
            "parameters": {**LOAD, "hold": "18s"},
            "repeat": {"n": 1, "attempts": 1, "more_attempts": 0},
            "conditions": [{"name": "event_seen", "equals": True}],
        }
        begin = self.begin(
            site,
            figure("nodes", "lost_nodes", {"at_most": 0}, statistic="max"),
            figure("rating", "failover_rating_share", {"at_most": 1}, statistic="max"),
            figure("restored", "restored_imbalance", {"at_most": 0.1}, statistic="max"),
            figure("dip", "power_dip", {"at_least": 0.8}, statistic="min"),
        )
        profile = self.scratch / "profile.json"
        profile.write_text(profile.read_text().replace('"power_feed"]', '"failover_watch"]'))
        result = self.assay(*begin)
        return {
            one["requirement"]: (one["outcome"], one.get("value"), one["reason"]) for one in self.verdict()["results"]
        }, result

    def test_a_feed_that_goes_and_comes_back_without_harm_passes(self):
        cells, result = self.verdict_of(lambda: 3900)
        self.assertEqual(
            {name: cell[0] for name, cell in cells.items()},
            {"nodes": "pass", "rating": "pass", "restored": "pass", "dip": "pass"},
            (cells, result.stderr),
        )
        self.assertAlmostEqual(cells["rating"][1], 0.8, places=2)  # 4000 of 5000 W

    def test_a_node_that_goes_with_it_is_named(self):
        cells, result = self.verdict_of(lambda: 0 if self.away() else 3900)
        self.assertEqual(cells["nodes"][:2], ("fail", 1), (cells, result.stderr))
        self.assertIn("Lost with the feed: n01.", cells["nodes"][2])


if __name__ == "__main__":
    main()
