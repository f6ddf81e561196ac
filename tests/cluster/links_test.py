"""Faults that only measuring shows: a slow pair, a lossy pair, a slow node. Rates of links are set by tc, so they are the same on any machine."""
import os
import subprocess
import sys

from bench import ClusterBench, pair
from harness import main, requirement
from undisturbed import measures

# 6.25 MB/s: two streams then have a tenth of a second under way (node.STREAM_B), and a processor that is busy elsewhere
# for less leaves no gap on the link.
LINK = "50mbit"
SLOW = "15mbit"
LOSS = 0.001
FLOORS = {
    "forward_bandwidth": 4.4e6,
    "backward_bandwidth": 4.4e6,
    "duplex_bandwidth": 8.8e6,
}  # B/s: 0.7 of what LINK carries
TCP = {
    "streams": 2,
    "block": "8KiB",
    "window": "100ms",
    "min_samples": 10,
    "max_samples": 20,
    "time_limit": "4s",
    "warmup_limit": "500ms",
}
METRICS = ["forward_bandwidth", "backward_bandwidth", "duplex_bandwidth"]


def tcp(name, metric, limit, **more):
    return pair(name, "host_tcp_bandwidth", TCP, metric, limit, **more)


def fills_the_link(metric):
    return tcp(
        metric.split("_")[0],
        metric,
        {"at_least": FLOORS[metric], "unit": "B/s"},
        conditions=[{"name": "path", "equals": "fabric"}],
    )


def exact(name, probe="host_tcp_bandwidth"):
    return tcp(name, "mismatches", {"at_most": 0, "unit": "1"}, statistic="max", repeat={"n": 1})


class Links(ClusterBench):
    def shape(self):
        for node in self.cluster.nodes:
            node.slow_link(LINK)
            node.bound_streams()

    @measures
    def test_healthy_links_fail_nowhere_and_the_record_says_which_way_the_payload_went(self):
        self.shape()
        done = self.accept_on_cluster(*map(fills_the_link, METRICS), exact("exact"))
        self.assertIn(done.returncode, (0, 3), done.stdout + done.stderr)
        self.assertEqual(self.found(), {}, self.reasons())
        record = next((self.run_directory / "records").glob("*n01--n02/1/0.jsonl")).read_text()
        for words in (
            '"name":"interface"',
            '"value":"eth0"',
            '"value":"10.77.1.2"',
            '"value":"10.77.1.3"',
            '"name":"mtu"',
            '"name":"link_speed"',
        ):
            self.assertIn(words, record)
        self.check_aftermath()

    @measures
    def test_one_slow_pair_is_named_and_no_other(self):
        self.shape()
        self.cluster.slow_pair(self.cluster["n02"], self.cluster["n04"], SLOW)
        done = self.accept_on_cluster(*map(fills_the_link, METRICS), exact("exact"))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assert_most_fail({(metric.split("_")[0], "n02+n04") for metric in METRICS}, self.found())
        self.check_aftermath()

    @measures
    def test_a_link_slow_in_one_direction_shows_in_that_direction(self):
        self.shape()
        self.cluster["n03"].slow_towards(self.cluster["n01"], SLOW)
        done = self.accept_on_cluster(*map(fills_the_link, METRICS[:2]))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        failed = set(self.found())
        self.assertEqual(failed, {("backward", "n01+n03")}, self.reasons())
        self.check_aftermath()

    @measures
    def test_a_pair_that_loses_one_packet_in_a_thousand_is_named(self):
        self.shape()
        # A phase has 1.5 s of 4300 segments a second: some 6 are lost of them, where more than one is too many.
        self.cluster["n01"].drop(LOSS, source=self.cluster["n02"])
        self.cluster["n02"].drop(LOSS, source=self.cluster["n01"])
        lossless = tcp(
            "lossless", "retransmitted_share", {"at_most": 2e-4, "unit": "1"}, statistic="max", repeat={"n": 3}
        )
        done = self.accept_on_cluster(lossless, exact("exact"))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        failed = set(self.found())
        self.assertEqual(failed, {("lossless", "n01+n02")}, self.reasons())
        self.check_aftermath()

    @measures
    def test_a_throttled_node_is_named_by_the_time_it_did_not_run(self):
        self.cluster["n03"].throttle(0.03)
        # The nodes share the machine's processors, so all are held off now and then; a quota of 0.03 holds off for 0.97 of the time.
        undisturbed = requirement(
            "undisturbed",
            probe="host_memory_latency",
            metric="latency",
            scope="node",
            limit={"at_most": 1, "unit": "s"},
            parameters={"size": "1MiB", "min_samples": 10, "max_samples": 10, "warmup_limit": "100ms"},
            conditions=[{"name": "off_cpu_share", "at_most": 0.95}],
        )
        done = self.accept_on_cluster(undisturbed)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        # Readings of the others may be uneven, as the nodes share processors: that is another reason.
        held_off = {
            cell: self.outcomes()[cell]
            for cell, reason in self.reasons().items()
            if "a thread was off its CPU" in reason
        }
        self.assertEqual(held_off, {("undisturbed", "n03"): "inconclusive"}, self.reasons())
        self.check_aftermath()


class BusyFleet(ClusterBench):
    """Eight nodes of which one is held to a sixteenth, on a machine that other programs load: once, or runs ASSAY_BUSY_FROM to ASSAY_BUSY_RUNS."""

    nodes = 8
    deadline_s = 1500

    def of_the_fleet(self, metric):
        return tcp(metric, metric, {"at_least": 0.8, "unit": "B/s", "of": "fleet_median"}, rounds=5)

    def accused(self):
        """Names of all that required figures accuse."""
        verdict = self.verdict()
        advisory = {result["requirement"] for result in verdict["results"] if not result["required"]}
        return [
            (culprit["fault"], culprit["nodes"])
            for search in verdict["localised"]
            if not set(search["requirements"]) <= advisory
            for culprit in search["culprits"]
        ]

    def test_the_slow_node_is_named_and_nobody_else(self):
        for node in self.cluster.nodes:
            node.slow_link("3mbit" if node.name == "n05" else LINK)
            node.bound_streams()
        lossless = tcp(
            "lossless",
            "retransmitted_share",
            {"at_most": 0, "unit": "1"},
            statistic="max",
            repeat={"n": 3},
            rounds=5,
            severity="advisory",
        )
        runs = range(int(os.environ.get("ASSAY_BUSY_FROM", "0")), int(os.environ.get("ASSAY_BUSY_RUNS", "1")))
        for run in runs:
            self.run_directory = self.scratch / f"run{run}"
            load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(10 * run % 11)]
            try:
                done = self.accept_on_cluster(*map(self.of_the_fleet, METRICS[:2]), lossless, exact("exact"))
            finally:
                for one in load:
                    one.kill()
                    one.wait()
            self.assertEqual(self.accused(), [("node", ["n05"])], f"run {run}: {done.stdout}")
            self.assertIn("At fault: node n05.", done.stdout)
            self.check_aftermath()
            print(f"run {run}: n05 and nobody else, beside {len(load)} loads", flush=True)


if __name__ == "__main__":
    main()
