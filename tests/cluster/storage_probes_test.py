"""The other probes of a storage that four nodes share: small files, consistency, and samples for accelerators. Each node has a client of its own, a FUSE
file system over one folder; an honest one passes, one node whose client lies is named, and no run leaves anything behind."""
import os
import pathlib
import signal

from bench import ClusterBench
from harness import main, requirement, wait_for
from node import Unavailable

LYING_FS = os.environ["ASSAY_LYING_FS"]
OF_OTHERS = [{"name": "read_by_other_node", "equals": True}]
NONE = {"at_most": 0, "unit": "1"}
SHORT = {
    "storage_metadata": {"files": 50, "threads": 2, "repetitions": 1},
    "storage_consistency": {"rounds": 3, "size": "16KiB", "wait": "2s"},
    "storage_ingest": {
        "record": "256KiB",
        "batch": 4,
        "compute": "50ms",
        "accelerators": 2,
        "readers": 2,
        "steps": 5,
        "repetitions": 1,
    },
}
FAULTS = {
    "storage_metadata": ("failures", "wrong_answers"),
    "storage_consistency": ("stale_reads", "wrong_reads", "false_successes", "failures"),
    "storage_ingest": ("mismatches",),
}


class StorageProbes(ClusterBench):
    def setUp(self):
        super().setUp()
        if not os.access("/dev/fuse", os.R_OK | os.W_OK):
            raise Unavailable("/dev/fuse cannot be opened")
        self.shared = self.cluster.path / "shared"
        self.shared.mkdir()
        self.point = self.cluster.path / "storage"
        self.point.mkdir()
        self.mounted = []  # nodes and their clients, which end with the node where a test fails

    def mount(self, **lies):
        """The folder by each node's own client, which is honest but on the nodes of `lies`."""
        for node in self.cluster.nodes:
            self.mounted.append((node, node.start(LYING_FS, self.shared, self.point, lies.get(node.name, "honest"))))
            wait_for(
                lambda: f" {self.point} " in node.run("cat", "/proc/self/mounts"),
                f"{node.name} has mounted the storage",
            )

    def faults(self, *probes, **parameters):
        return [
            requirement(
                f"{probe}.{metric}",
                probe=probe,
                parameters={"directory": str(self.point), **SHORT[probe], **parameters},
                metric=metric,
                limit=NONE,
                conditions=OF_OTHERS,
                scope="cluster",
                statistic="max",
                repeat={"n": 1},
                at="every",
            )
            for probe in probes
            for metric in FAULTS[probe]
        ]

    def record_text(self):
        return "".join(path.read_text() for path in (self.run_directory / "records").rglob("0.jsonl"))

    def assert_nothing_left(self):
        self.assertEqual([path.name for path in self.shared.iterdir()], [])
        for node, client in self.mounted:
            node.run("umount", self.point)
            self.assertEqual(client.wait(30), 0)
        self.check_aftermath()

    def test_an_honest_storage_passes_every_probe(self):
        self.mount()
        done = self.accept_on_cluster(*self.faults(*FAULTS), more=["--no-localise"])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(set(self.outcomes().values()), {"pass"}, self.reasons())
        self.assert_nothing_left()

    def test_a_node_whose_client_damages_what_it_writes_is_named_by_every_probe(self):
        self.mount(n03="flipped")
        done = self.accept_on_cluster(*self.faults(*FAULTS), more=["--no-localise"])
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        failed = {cell[0] for cell, outcome in self.outcomes().items() if outcome == "fail"}
        self.assertEqual(
            failed,
            {"storage_metadata.wrong_answers", "storage_consistency.wrong_reads", "storage_ingest.mismatches"},
            self.reasons(),
        )
        said = self.record_text()
        shown = (self.run_directory / "report.html").read_text()
        for probe, place in (("storage_consistency", "case"), ("storage_metadata", "phase")):
            self.assertIn(f"Faults of {probe} by {place} and class", shown)
        for words in ("new_file: n03 to n04: wrong: ", "n04: 0 refused, ", "n04 read "):
            self.assertIn(words, said)
        self.assert_nothing_left()

    def test_a_node_whose_client_forgets_what_it_synced_is_named(self):
        self.mount(n02="fsync_dropped")
        done = self.accept_on_cluster(*self.faults("storage_consistency"), more=["--no-localise"])
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(
            "new_file: n02 to n03: reported as done, but after 2 s the file ends after 0 of 16384 B", self.record_text()
        )
        self.assert_nothing_left()

    def test_a_client_that_is_killed_is_named_and_its_files_are_removed(self):
        self.mount()
        run = self.start_on_cluster(*self.faults("storage_metadata", files=100000))
        wait_for(lambda: list(self.shared.glob("assay-storage-*/set-*")), "files are made")
        os.kill(next(pid for pid in self.cluster["n02"].process_ids() if self.is_probe(pid)), signal.SIGKILL)
        self.assertEqual(run.wait(180), 3)
        self.assertEqual(set(self.outcomes().values()), {"error"})
        self.assertIn("rank 1", str(self.reasons()))
        self.assert_nothing_left()

    def is_probe(self, pid):
        try:
            return f"--directory={self.point}".encode() in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False


if __name__ == "__main__":
    main()
