"""A storage that all nodes share: a folder of this machine, each node's way to it held to a rate of its own. A healthy one passes, a slow client is named,
damaged data fail, and no run leaves anything behind. The nodes share one kernel, so these tests show no cold reads."""
import os
import pathlib
import signal
import threading
import time

from bench import ClusterBench
from harness import main, requirement, wait_for
from node import Unavailable
from undisturbed import measures

RATE = 20_000_000  # B/s to the disk and from it, of each node
SLOW = RATE // 5
SHORT = {"duration": "1s", "size": "128MiB", "threads": 1, "depth": 4, "block": "256KiB", "repetitions": 8}
EIGHT = {"repeat": {"n": 8}}
# Samples of a share of two rates, which scatter by 10 % and more. Where they seem to follow each other a cell may stay inconclusive: 8 independent
# ones have an estimated correlation above 0.9 in one series of 44 (60,000 drawn), 16 in one of 15,000.
SHARES_KEPT = 16
OF_OTHERS = [{"name": "read_by_other_node", "equals": True}, {"name": "direct_io", "equals": True}]
PHASES = ("write", "read")


class StorageBench(ClusterBench):
    """A folder that all nodes share, with what it takes to measure it."""

    def setUp(self):
        super().setUp()
        self.shared = self.cluster.path / "shared"
        self.shared.mkdir()
        if os.major(os.stat(self.shared).st_dev) == 0:
            raise Unavailable(f"{self.shared} lies on no disk whose use could be held to a rate")
        for node in self.cluster.nodes:
            node.slow_disk(self.shared, RATE)

    def on_storage(self, name, metric, limit, phase, **more):
        parameters = dict(SHORT, directory=str(self.shared), **more.pop("parameters", {}))
        at = {"at": {"phase": phase}} if phase else {}
        return requirement(
            name,
            probe="storage_cluster",
            parameters=parameters,
            metric=metric,
            limit=limit,
            conditions=OF_OTHERS,
            **{"scope": "cluster", **at, **EIGHT, **more},
        )

    def clients(self):
        """No client is at less than half of the median, writing or reading."""
        return [
            self.on_storage(f"client.{phase}", "client_share", {"at_least": 0.5, "unit": "1"}, phase)
            for phase in PHASES
        ]

    def cells(self):
        """Requirement and subject of everything that the judge decided against, with its outcome."""
        return self.found(
            {
                (one["requirement"], one["node"], *one["subject"].values()): one["outcome"]
                for one in self.verdict()["results"]
            }
        )

    def assert_nothing_left(self):
        self.assertEqual([path.name for path in self.shared.iterdir()], [])
        self.check_aftermath()


class EightClients(StorageBench):
    nodes = 8

    @measures
    def test_one_slow_client_of_eight_is_named_and_no_other(self):
        self.cluster["n06"].slow_disk(self.shared, SLOW)
        done = self.accept_on_cluster(*self.clients(), more=["--no-localise"])
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(
            {(cell[0], cell[2]): outcome for cell, outcome in self.cells().items()},
            {(f"client.{phase}", "n06"): "fail" for phase in PHASES},
            self.reasons(),
        )
        self.assert_nothing_left()


class FullBeyondFour(StorageBench):
    nodes = 8
    fed = {
        "record": "64KiB",
        "batch": 4,
        "compute": "50ms",
        "accelerators": 1,
        "readers": 2,
        "ahead": 1,
        "steps": 8,
        "repetitions": 6,
    }
    wants = 4 * 64 * 1024 / 0.050  # B/s of one node

    @measures
    def test_the_knee_of_a_storage_that_feeds_four_nodes_is_found(self):
        for node in self.cluster.nodes:
            node.slow_disk(self.shared, int(4.4 * self.wants), with_others="shared")
        every = {
            "probe": "storage_ingest",
            "parameters": {"directory": str(self.shared), **self.fed},
            "conditions": OF_OTHERS,
            "scope": "group",
            "by": "growing",
        }
        limit = {"at_least": 0.85, "unit": "1", "of": "smallest_group"}
        metric = "accelerator_utilisation"
        feeds = requirement("feeds", metric=metric, limit=limit, knee={"at_least": 3}, repeat={"n": 6}, **every)
        none = {"limit": {"at_most": 0, "unit": "1"}, "statistic": "max", "repeat": {"n": 1}}
        exact = requirement("exact", metric="mismatches", **none, **every)
        done = self.accept_on_cluster(feeds, exact)
        self.assertIn(done.returncode, (0, 3), done.stdout + done.stderr)
        knee = self.verdict()["knees"][0]
        self.assertEqual(knee["state"], "found", knee)
        self.assertIn(knee["kept"], (4, 5, 6), knee)
        self.assertEqual({one["kept"] for one in knee["points"] if one["nodes"] == 8}, {False}, knee)
        self.assertIn(knee["reason"], done.stdout.replace("\n", " ").replace("  ", " "))
        self.assert_nothing_left()


class SharedStorage(StorageBench):
    @measures
    def test_a_healthy_storage_passes_client_by_client_and_as_a_whole(self):
        whole = [
            self.on_storage(
                f"whole.{phase}",
                "bandwidth",
                {"at_least": 0.6 * RATE * self.nodes, "at_most": 1.3 * RATE * self.nodes, "unit": "B/s"},
                phase,
            )
            for phase in PHASES
        ]
        done = self.accept_on_cluster(*self.clients(), *whole, more=["--no-localise"])
        self.assertIn(done.returncode, (0, 3), done.stdout + done.stderr)
        self.assertEqual(self.cells(), {}, self.reasons())
        named = {
            one["subject"].get("group") for one in self.verdict()["results"] if one["requirement"] == "client.write"
        }
        self.assertEqual(named, {node.name for node in self.cluster.nodes})
        self.assert_nothing_left()

    @measures
    def test_one_slow_client_of_four_is_named_and_no_other(self):
        self.cluster["n03"].slow_disk(self.shared, SLOW)
        done = self.accept_on_cluster(*self.clients(), more=["--no-localise"])
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(
            {(cell[0], cell[2]): outcome for cell, outcome in self.cells().items()},
            {(f"client.{phase}", "n03"): "fail" for phase in PHASES},
            self.reasons(),
        )
        self.assert_nothing_left()

    @measures
    def test_a_group_whose_last_client_is_slow_does_not_grow_as_promised(self):
        self.cluster["n04"].slow_disk(self.shared, SLOW)
        grows = self.on_storage(
            "grows",
            "bandwidth",
            {"at_least": 0.7, "unit": "B/s", "of": "smallest_group_by_nodes"},
            "write",
            scope="group",
            by="growing",
        )
        done = self.accept_on_cluster(grows, more=["--no-localise"])
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual({cell[:2] for cell in self.cells()}, {("grows", "first-4")}, self.reasons())
        self.assert_nothing_left()

    def keeps(self, at_least):
        """What of its rate alone n01 keeps when the other three come."""
        return [
            self.on_storage(
                f"keeps.{phase}",
                "victim_kept",
                {"at_least": at_least, "unit": "1"},
                phase,
                parameters={"operation": "interference", "repetitions": SHARES_KEPT},
                repeat={"n": SHARES_KEPT},
            )
            for phase in PHASES
        ]

    @measures
    def test_a_node_keeps_its_rate_where_each_has_its_own(self):
        done = self.accept_on_cluster(*self.keeps(0.7), more=["--no-localise"])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assert_nothing_left()

    @measures
    def test_a_node_keeps_a_quarter_where_four_share_one_rate(self):
        for node in self.cluster.nodes:
            node.slow_disk(self.shared, RATE, with_others="shared")
        done = self.accept_on_cluster(*self.keeps(0.7), more=["--no-localise"])
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(
            {cell[0]: outcome for cell, outcome in self.cells().items()},
            {f"keeps.{phase}": "fail" for phase in PHASES},
            self.reasons(),
        )
        for one in self.verdict()["results"]:
            if one["requirement"].startswith("keeps."):
                self.assertGreater(one["value"], 0.15, self.reasons())
                self.assertLess(one["value"], 0.4, self.reasons())
        self.assert_nothing_left()

    def test_data_that_are_damaged_after_they_were_written_fail(self):
        over = threading.Event()
        vandal = threading.Thread(target=self.damage, args=[over])
        vandal.start()
        try:
            done = self.accept_on_cluster(
                self.on_storage(
                    "exact", "mismatches", {"at_most": 0, "unit": "1"}, None, statistic="max", repeat={"n": 1}
                ),
                more=["--no-localise"],
            )
        finally:
            over.set()
            vandal.join()
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(set(self.outcomes().values()), {"fail"}, self.reasons())
        (found,) = self.verdict()["results"]
        self.assertGreater(found["value"], 0)
        self.assertIn(
            "wrong B; the first: 1 of 262144 B at 0 of ",
            "".join(path.read_text() for path in (self.run_directory / "records").rglob("0.jsonl")),
        )
        self.assert_nothing_left()

    def damage(self, over):
        """Changes a byte of n02's files, again and again."""
        while not over.is_set():
            for path in self.shared.glob("assay-storage-*/set-*-stream-000001"):
                try:
                    file = os.open(path, os.O_WRONLY)
                except OSError:
                    continue  # it has just been removed
                os.pwrite(file, b"!", 1000)
                os.close(file)
            time.sleep(0.005)

    def test_a_client_that_is_killed_is_named_and_its_data_are_removed(self):
        run = self.start_on_cluster(
            self.on_storage(
                "endless",
                "mismatches",
                {"at_most": 0, "unit": "1"},
                None,
                statistic="max",
                repeat={"n": 1},
                parameters={"duration": "10min", "size": "1GiB"},
            )
        )
        wait_for(lambda: list(self.shared.glob("assay-storage-*/set-*")), "data are written")
        victim = self.cluster["n02"]
        os.kill(
            next(pid for pid in victim.process_ids() if self.is_client(pid)), signal.SIGKILL
        )  # the probe alone, not its agent
        self.assertEqual(run.wait(120), 3)
        self.assertEqual(set(self.outcomes().values()), {"error"})
        self.assertIn("rank 1", str(self.reasons()))
        self.assert_nothing_left()

    def is_client(self, pid):
        try:
            return str(self.shared).encode() in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False


if __name__ == "__main__":
    main()
