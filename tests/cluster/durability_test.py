"""What four nodes were told is durable, after a client's server was killed: each node has a server of its own, a FUSE file system over one folder, and that of
n02 gets SIGKILL while all write. An honest one loses nothing, ten times of ten; one that keeps what it acknowledged in its memory is named."""
import json
import os
import signal

from bench import ClusterBench
from harness import main, requirement, wait_for
from node import Unavailable

LYING_FS = os.environ["ASSAY_LYING_FS"]
FAULTS = ("lost_writes", "rolled_back_writes", "torn_writes")
VICTIM = "n02"


class Durability(ClusterBench):
    def setUp(self):
        super().setUp()
        if not os.access("/dev/fuse", os.R_OK | os.W_OK):
            raise Unavailable("/dev/fuse cannot be opened")
        self.shared = self.cluster.path / "shared"
        self.shared.mkdir()
        self.point = self.cluster.path / "storage"
        self.point.mkdir()
        self.servers = {}

    def mount(self, node, lie):
        self.servers[node.name] = node.start(LYING_FS, self.shared, self.point, lie)
        wait_for(
            lambda: f" {self.point} " in node.run("cat", "/proc/self/mounts"), f"{node.name} has mounted the storage"
        )

    def kill_server(self, node):
        """SIGKILL, and an honest one in its place."""
        victims = [pid for pid in node.process_ids() if self.is_server(pid)]
        self.assertEqual(len(victims), 1)
        os.kill(victims[0], signal.SIGKILL)
        node.run("umount", "-l", self.point)
        self.mount(node, "honest")

    @staticmethod
    def is_server(pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return file.read().split(b"\0")[0] == LYING_FS.encode()
        except OSError:
            return False

    def interrupted_run(self, run_directory):
        """A run whose storage is interrupted on the victim; its exit code."""
        self.run_directory = run_directory
        common = {
            "probe": "storage_durability",
            "scope": "cluster",
            "at": "every",
            "statistic": "max",
            "limit": {"at_most": 0, "unit": "1"},
            "repeat": {"n": 1},
            "parameters": {
                "directory": str(self.point),
                "duration": "15s",
                "streams": 2,
                "slots": 16,
                "stall": "30s",
                "recovery": "1min",
            },
            "conditions": [{"name": "interrupted", "equals": True}, {"name": "read_by_other_node", "equals": True}],
        }
        run = self.start_on_cluster(*[requirement(metric, metric=metric, **common) for metric in FAULTS])
        wait_for(lambda: list(self.shared.glob("assay-storage-*/durable-1-1-name-9")), "the victim writes")
        self.kill_server(self.cluster[VICTIM])
        return run.wait(120)

    def lines(self, kind):
        lines = [
            json.loads(line)
            for path in (self.run_directory / "records").rglob("*.jsonl")
            for line in path.read_text().splitlines()
        ]
        return [line[kind] for line in lines if kind in line]

    def assert_nothing_left(self):
        self.assertEqual([path.name for path in self.shared.iterdir()], [])
        for node in self.cluster.nodes:
            node.run("umount", self.point)
            self.assertEqual(self.servers[node.name].wait(30), 0)
        self.check_aftermath()

    def test_an_honest_storage_passes_ten_times_of_ten(self):
        for node in self.cluster.nodes:
            self.mount(node, "honest")
        parent = self.run_directory
        for turn in range(10):
            code = self.interrupted_run(parent.with_name(f"run-{turn}"))
            self.assertEqual((turn, code), (turn, 0), self.reasons())
            self.assertEqual(set(self.outcomes().values()), {"pass"}, self.reasons())
            recovered = [one for one in self.lines("measurement") if one["metric"] == "recovery_time"]
            self.assertEqual(len(recovered), 1)
        self.assert_nothing_left()

    def test_a_server_that_acknowledged_what_it_had_in_memory_is_named(self):
        for node in self.cluster.nodes:
            self.mount(node, "volatile" if node.name == VICTIM else "honest")
        self.assertEqual(self.interrupted_run(self.run_directory), 1, self.reasons())
        self.assertIn("fail", self.outcomes().values(), self.reasons())
        notes = [note["text"] for note in self.lines("note")]
        lost = [note for note in notes if " was acknowledged, and " in note]
        self.assertTrue(lost, notes)
        self.assertTrue(all(f": {VICTIM} read by n03: " in note for note in lost), notes)
        self.assert_nothing_left()


if __name__ == "__main__":
    main()
