"""A checkpoint that four nodes save and others restore: from the memory of a peer, from the storage that all share, and past a drive whose copies are
damaged, which is named. The nodes share one kernel, so these tests show no cold reads."""
import json
import os

from bench import ClusterBench
from harness import main, requirement, wait_for
from node import Unavailable

LYING_FS = os.environ["ASSAY_LYING_FS"]
AT = {"checkpoint": "llama3-8b/2000"}
NONE = {"at_most": 0, "unit": "1"}


class Checkpoint(ClusterBench):
    def setUp(self):
        super().setUp()
        self.shared = self.cluster.path / "shared"
        self.shared.mkdir()
        self.drive = self.cluster.path / "drive"  # what it shows is each node's own
        self.drive.mkdir()
        self.drives = []  # nodes with what is behind their drive and its client

    def mount_drives(self, **lies):
        """On each node a drive of its own, which is honest but on the nodes of `lies`."""
        if not os.access("/dev/fuse", os.R_OK | os.W_OK):
            raise Unavailable("/dev/fuse cannot be opened")
        for node in self.cluster.nodes:
            backing = self.cluster.path / f"drive-of-{node.name}"
            backing.mkdir()
            self.drives.append(
                (node, backing, node.start(LYING_FS, backing, self.drive, lies.get(node.name, "honest")))
            )
            wait_for(
                lambda: f" {self.drive} " in node.run("cat", "/proc/self/mounts"), f"{node.name} has mounted its drive"
            )

    def saved_and_restored(self, tiers, lost, other_node=True):
        parameters = {
            "directory": str(self.shared),
            "local_directory": str(self.drive),
            "model": "llama3-8b",
            "divisor": 2000,
            "tiers": tiers,
            "lost": lost,
            "threads": 2,
            "chunk": "1MiB",
            "repetitions": 8,
        }
        common = {
            "probe": "checkpoint_cluster",
            "parameters": parameters,
            "scope": "cluster",
            "conditions": [{"name": "read_by_other_node", "equals": other_node}, {"name": "whole", "equals": False}],
        }
        resumed = requirement(
            "resumed",
            metric="time_to_resume",
            at=AT,
            limit={"at_most": 60, "unit": "s"},
            **{**common, "repeat": {"n": 8}},
        )
        faults = [
            requirement(metric, metric=metric, at="every", statistic="max", limit=NONE, repeat={"n": 1}, **common)
            for metric in ("mismatches", "fallbacks")
        ]
        return self.accept_on_cluster(resumed, *faults, more=["--no-localise"])

    def lines(self, kind):
        """What the records of all ranks say in lines of that kind."""
        lines = [
            json.loads(line)
            for path in (self.run_directory / "records").rglob("*.jsonl")
            for line in path.read_text().splitlines()
        ]
        return [line[kind] for line in lines if kind in line]

    def served(self):
        """What each rank was served by."""
        return [line["value"] for line in self.lines("condition") if line["name"] == "served_by"]

    def assert_nothing_left(self):
        self.assertEqual([path.name for path in self.shared.iterdir()], [])
        for node, backing, client in self.drives:
            self.assertEqual([path.name for path in backing.iterdir()], [])
            node.run("umount", self.drive)
            self.assertEqual(client.wait(30), 0)
        self.check_aftermath()

    def test_another_node_restores_from_the_memory_of_a_peer_before_the_storage(self):
        done = self.saved_and_restored("memory,peer,shared", "node")
        self.assertEqual(done.returncode, 0, str(self.reasons()) + done.stdout + done.stderr)
        self.assertEqual(self.served(), ["peer"] * self.nodes)
        self.assert_nothing_left()

    def test_another_node_restores_from_the_storage_where_no_peer_has_a_copy(self):
        done = self.saved_and_restored("memory,shared", "node")
        self.assertEqual(done.returncode, 0, str(self.reasons()) + done.stdout + done.stderr)
        self.assertEqual(self.served(), ["shared"] * self.nodes)
        shares = [line["samples"] for line in self.lines("measurement") if line["metric"] == "restore_share"]
        self.assertEqual([len(samples) for samples in shares], [8])
        self.assertTrue(all(0 < share for share in shares[0]), shares)
        self.assert_nothing_left()

    def test_a_drive_whose_copies_are_damaged_is_skipped_and_named(self):
        self.mount_drives(n03="flipped")
        done = self.saved_and_restored("local,shared", "memory", other_node=False)
        self.assertEqual(done.returncode, 1, str(self.reasons()) + done.stdout + done.stderr)
        failed = {cell[0] for cell, outcome in self.outcomes().items() if outcome == "fail"}
        self.assertEqual(failed, {"mismatches", "fallbacks"}, self.reasons())
        self.assertEqual(sorted(self.served()), ["local", "local", "local", "shared"])
        notes = [note["text"] for note in self.lines("note")]
        self.assertTrue(any(note.startswith("n03 restored ") and " in tier local" in note for note in notes), notes)
        self.assertFalse([note for note in notes if note.startswith(("n01 ", "n02 ", "n04 "))], notes)
        self.assert_nothing_left()


if __name__ == "__main__":
    main()
