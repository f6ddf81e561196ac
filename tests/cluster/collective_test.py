"""Collectives of hosts between the nodes: exact in every operation, by the port that was asked for, and ended by name when a rank dies."""
import json
import os
import signal

from bench import ClusterBench
from harness import main, profile, requirement, wait_for

LINK = "1gbit"
OPERATIONS = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "scatter", "send_recv"]
SIZES = [1000, 65536, 1 << 20]
SHORT = {
    "sizes": ",".join(map(str, SIZES)),
    "min_samples": 10,
    "max_samples": 10,
    "time_limit": "1s",
    "warmup_limit": "200ms",
}
START_PATIENCE_S = 120


def collective(name, operation, metric, size, limit, statistic="max", n=1, **parameters):
    return requirement(
        name,
        probe="host_collective",
        scope="cluster",
        metric=metric,
        at={"size": size},
        limit=limit,
        statistic=statistic,
        parameters=dict(SHORT, operation=operation, **parameters),
        repeat={"n": n},
        conditions=[{"name": "path", "equals": "fabric"}, {"name": "transport", "equals": "tcp"}],
    )


def exact(operation, size):
    return collective(f"{operation}.{size}", operation, "mismatches", size, {"at_most": 0, "unit": "1"})


class Collectives(ClusterBench):
    nodes = 8

    def record_of(self, part, rank=0):
        return next((self.run_directory / "records").glob(f"*{part}*/1/{rank}.jsonl")).read_text()

    def test_every_operation_of_eight_nodes_is_exact_and_no_faster_than_their_links(self):
        for node in self.cluster.nodes:
            node.slow_link(LINK)
        # A link carries 125 MB/s, and its bucket lets some of the first MiB through at once.
        wire = collective(
            "wire",
            "all_reduce",
            "busbw",
            16 << 20,
            {"at_least": 1e6, "at_most": 1.25e8 * 1.05, "unit": "B/s"},
            "median",
            10,
            sizes="16MiB",
        )
        done = self.accept_on_cluster(wire, *(exact(operation, size) for operation in OPERATIONS for size in SIZES))
        self.assertIn(done.returncode, (0, 3), done.stdout + done.stderr + str(self.reasons()))
        self.assertEqual(
            len(self.outcomes()), 1 + 1 + len(OPERATIONS) * len(SIZES)
        )  # the figure, and what was found wrong beside it
        self.assertEqual(self.found(), {}, self.reasons())
        self.assertLessEqual(
            {cell[0] for cell, outcome in self.outcomes().items() if outcome != "pass"}, {"wire"}
        )  # exactness is never open
        (wire,) = [one["value"] for one in self.verdict()["results"] if one["requirement"] == "wire"]
        self.assertTrue(1e6 <= wire <= 1.25e8 * 1.05, wire)
        for rank, address in ((0, "10.77.1.2"), (7, "10.77.1.9")):
            conditions = {
                line["condition"]["name"]: line["condition"]["value"]
                for line in map(json.loads, self.record_of("host_collective", rank).splitlines())
                if "condition" in line
            }
            self.assertEqual(
                (conditions["address"], conditions["interface"], conditions["ranks"]), (address, "eth0", 8)
            )
            self.assertIn("segments_retransmitted", conditions)
        self.check_aftermath()

    def test_a_rank_that_is_killed_is_named_and_the_run_ends(self):
        endless = collective(
            "endless",
            "all_reduce",
            "mismatches",
            1 << 20,
            {"at_most": 0, "unit": "1"},
            sizes="1MiB",
            min_samples=1000000,
            max_samples=1000000,
            time_limit="10min",
        )
        run = self.start_on_cluster(endless)
        victim = self.cluster["n05"]
        wait_for(lambda: any(self.is_rank(pid) for pid in victim.process_ids()), "a rank runs on n05", START_PATIENCE_S)
        os.kill(next(pid for pid in victim.process_ids() if self.is_rank(pid)), signal.SIGKILL)
        self.assertEqual(run.wait(START_PATIENCE_S), 3)
        self.assertEqual(set(self.outcomes().values()), {"error"})
        self.assertIn("rank 4 (10.77.1.6) was killed by signal 9 before it answered", str(self.reasons()))
        self.check_aftermath()

    @staticmethod
    def is_rank(pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return file.read().startswith(b"host_collective_rank\0")
        except OSError:
            return False


if __name__ == "__main__":
    main()
