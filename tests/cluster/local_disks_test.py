"""Probes of storage on local ext4 and xfs, on loop devices, where they find no fault and leave nothing behind, also where the disk runs full; and nodes with small disks of
their own, on which a run that does not fit is refused before anything is written, with the node that lacks room."""
import json
import os
import pathlib
import shutil

from bench import ClusterBench
from clients import Servers, main_beside_servers, counts, notes, run_ranks
from harness import main, requirement, wait_for
from node import Unavailable, command

RANKS = 3
DIVISOR = 2000  # 14 B x 8.03e9 parameters / 2000: 56 MB
WORDS = {
    "storage_cluster": ["--size=32MiB"],
    "storage_metadata": ["--layout=shared_directory"],
    "storage_ingest": [],
    "storage_consistency": [],
    "storage_durability": ["--stall=30s"],
    "checkpoint_cluster": ["--tiers=shared", "--lost=node", f"--divisor={DIVISOR}", "--chunk=1MiB"],
}
FAULTS = (
    "mismatches",
    "failures",
    "wrong_answers",
    "stale_reads",
    "wrong_reads",
    "false_successes",
    "lost_writes",
    "rolled_back_writes",
    "torn_writes",
    "fallbacks",
)
WITHOUT_DIRECT_IO = {
    "storage_metadata",
    "storage_consistency",
    "storage_durability",
    "checkpoint_cluster",
}  # as a condition; the last knows no other way
FULL = "full"  # storage_cluster, on a disk that another program fills meanwhile
MIB = 1 << 20
OF_THE_FILE_SYSTEM = 256  # sectors that ext4 may write of itself; the run would write 30 thousand


def fill(disk, filler):
    """Takes all room that is left as soon as the probe writes."""
    wait_for(lambda: list(disk.glob("assay-storage-*/set-*")), "data are written")
    room, end = os.statvfs(disk), 0
    piece = room.f_bavail * room.f_frsize
    with open(filler, "wb") as file:
        while piece >= MIB:
            try:
                os.posix_fallocate(file.fileno(), end, piece)
                end += piece
            except OSError:  # the probe was faster
                piece //= 2


def ranks(base, probe):
    disk, filler = base / "disk", base / "disk/filler"
    if probe == FULL:
        outputs = run_ranks(
            "storage_cluster", [disk] * RANKS, ["--size=1GiB", "--duration=60s"], during=lambda: fill(disk, filler)
        )
        filler.unlink()
    else:
        outputs = run_ranks(probe, [disk] * RANKS, WORDS[probe])
    return outputs + [json.dumps(os.listdir(disk))]


class LoopDisks(Servers):
    script, programs, packages = "loop_disk", ("mkfs.ext4", "mkfs.xfs"), "e2fsprogs xfsprogs"

    def on(self, kind, mib, *probes):
        """Rank 0's record of each probe, whose ranks left nothing on the disk."""
        found = {}
        for probe, outputs in self.beside(*probes, arguments=(kind, mib)).items():
            self.assertEqual(json.loads(outputs[-1]), [], (kind, probe))
            found[probe] = [json.loads(line) for line in outputs[0].splitlines()]
        return found

    def test_every_probe_finds_no_fault_on_ext4_and_on_xfs(self):
        for kind in ("ext4", "xfs"):
            for probe, lines in self.on(kind, 2048, *WORDS).items():
                with self.subTest(kind=kind, probe=probe):
                    self.assertEqual(lines[-1]["end"]["status"], "complete", lines[-1])
                    self.assertEqual(counts(lines, *FAULTS), {}, notes(lines))
                    told = {
                        line["condition"]["name"]: line["condition"]["value"] for line in lines if "condition" in line
                    }
                    self.assertEqual(told["filesystem"], kind)
                    self.assertIs(told.get("direct_io"), None if probe in WITHOUT_DIRECT_IO else True)

    def test_a_disk_that_runs_full_is_an_error_with_the_cause_and_is_cleared(self):
        for kind in ("ext4", "xfs"):
            with self.subTest(kind=kind):
                lines = self.on(kind, 4096, FULL)[FULL]
                self.assertEqual(lines[-1]["end"]["status"], "error", lines[-1])
                self.assertIn("No space left on device", lines[-1]["end"]["reason"])


class SmallDisks(ClusterBench):
    """Nodes with an ext4 of their own each, at one path."""

    def setUp(self):
        super().setUp()
        if shutil.which("mkfs.ext4") is None:
            raise Unavailable("mkfs.ext4 is missing: apt-get install e2fsprogs")
        self.shared = self.cluster.path / "shared"
        self.disk = self.cluster.path / "disk"
        self.shared.mkdir()
        self.disk.mkdir()

    def mount(self, **mib):
        """A disk on each node, of 160 MiB but on the nodes that are named."""
        for node in self.cluster.nodes:
            image = self.cluster.path / f"disk-of-{node.name}"
            with open(image, "wb") as file:
                file.truncate(mib.get(node.name, 160) * MIB)
            command("mkfs.ext4", "-q", image)
            node.run("mount", "-o", "loop", image, self.disk)
            node.run("rmdir", self.disk / "lost+found")

    def saved_and_restored(self):
        parameters = {
            "directory": str(self.shared),
            "local_directory": str(self.disk),
            "model": "llama3-8b",
            "divisor": DIVISOR,
            "tiers": "local,shared",
            "lost": "memory",
            "threads": 2,
            "chunk": "1MiB",
            "repetitions": 2,
        }
        faults = [
            requirement(
                metric,
                probe="checkpoint_cluster",
                parameters=parameters,
                scope="cluster",
                metric=metric,
                at="every",
                statistic="max",
                limit={"at_most": 0, "unit": "1"},
                repeat={"n": 1},
            )
            for metric in ("mismatches", "fallbacks")
        ]
        return self.accept_on_cluster(*faults, more=["--no-localise"])

    def assert_disks_are_empty(self):
        for node in self.cluster.nodes:
            self.assertEqual(node.run("find", self.disk, "-mindepth", "1"), "", node.name)
        self.assertEqual(list(self.shared.iterdir()), [])

    def sectors_written(self):
        """To each node's disk since it was mounted."""
        written = {}
        for node in self.cluster.nodes:
            device = node.run("stat", "-c", "%Hd:%Ld", self.disk).strip()
            written[node.name] = int(pathlib.Path(f"/sys/dev/block/{device}/stat").read_text().split()[6])
        return written

    def test_a_run_that_one_disk_has_no_room_for_is_refused_with_the_node_before_anything_is_written(self):
        self.mount(n03=16)
        for node in self.cluster.nodes:
            node.run("sync", "-f", self.disk)
        before = self.sectors_written()
        done = self.saved_and_restored()
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertRegex(
            done.stderr, rf"{self.disk} on n03: .* are free; step \S+ puts up to .* there and needs a tenth more"
        )
        self.assertNotRegex(done.stderr, rf"{self.disk} on n0[124]")
        self.assertEqual([line["kind"] for line in self.journal() if "attempt" in line["kind"]], [])
        self.assert_disks_are_empty()
        for node in self.cluster.nodes:
            node.run("sync", "-f", self.disk)
        for name, sectors in self.sectors_written().items():
            self.assertLess(sectors - before[name], OF_THE_FILE_SYSTEM, name)

    def test_the_same_run_passes_where_every_disk_has_room(self):
        self.mount()
        done = self.saved_and_restored()
        self.assertEqual(done.returncode, 0, str(self.reasons()) + done.stdout + done.stderr)
        self.assert_disks_are_empty()
        self.check_aftermath()


if __name__ == "__main__":
    main_beside_servers(ranks, main)
