"""The probes of shared storage on GlusterFS, a real network file system: without its clients' caches it passes; as it is installed, its clients show for a
second what was there before, and the probe says so. Three clients are processes of this machine."""
import os
import pathlib
import signal
import subprocess

from clients import Servers, counts, main_beside_servers, notes, run_ranks
from harness import main, wait_for

CLIENTS = 3
WORDS = {
    "storage_cluster": ["--size=16MiB"],
    "storage_metadata": ["--layout=shared_directory"],
    "storage_ingest": [],
    "storage_consistency": ["--wait=5s"],
}
KILLED = "storage_durability"  # its run has the brick's server killed
WORDS_KILLED = ["--duration=60s", "--streams=2", "--stall=30s", "--recovery=2min"]


def ranks(base, probe):
    folders = [base / f"client-{rank}" for rank in range(CLIENTS)]
    if probe == KILLED:
        return run_ranks(probe, folders, WORDS_KILLED, during=lambda: kill_brick(base / "brick"))
    return run_ranks(probe, folders, WORDS[probe])


def kill_brick(brick):
    """SIGKILL for the server of the brick while every rank writes; then it is started again."""
    wait_for(
        lambda: all(list(brick.glob(f"assay-storage-*/durable-{rank}-1-name-9")) for rank in range(CLIENTS)),
        "every rank writes",
        300,
    )
    servers = [
        path.parent.name
        for path in pathlib.Path("/proc").glob("[0-9]*/comm")
        if path.read_text().strip() == "glusterfsd"
    ]
    for server in servers:  # of this namespace of processes alone
        os.kill(int(server), signal.SIGKILL)
    subprocess.run(
        ["gluster", "--mode=script", "volume", "start", "shared", "force"],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=60,
    )


class Gluster(Servers):
    script, filesystem = "gluster", "fuse.glusterfs"
    programs, packages = ("glusterd", "gluster", "glusterfs"), "glusterfs-server glusterfs-client"

    def of(self, kind, *probes):
        found = self.records(*probes, arguments=(CLIENTS, kind))
        self.assertEqual(
            [path.name for path in (self.base / "brick").iterdir() if path.name != ".glusterfs"], [], "what is left"
        )
        return found

    def test_without_caches_of_the_clients_every_probe_finds_no_fault(self):
        for probe, lines in self.of("strict", *WORDS).items():
            self.assertEqual(
                counts(
                    lines, "mismatches", "failures", "wrong_answers", "stale_reads", "wrong_reads", "false_successes"
                ),
                {},
                [probe] + notes(lines),
            )

    def test_as_it_is_installed_a_client_shows_what_was_there_before(self):
        lines = self.of("plain", "storage_consistency")["storage_consistency"]
        self.assertEqual(counts(lines, "wrong_reads", "false_successes"), {}, lines)
        # Now and then a reader loses the file that it has open, because another is renamed over its name; POSIX has it keep it.
        refused = counts(lines, "failures")
        self.assertLessEqual(set(refused), {("failures", "rename")}, notes(lines))
        self.assertEqual(
            bool(refused),
            any(
                "rename: " in note and "refused: read " in note and "Stale file handle" in note for note in notes(lines)
            ),
            notes(lines),
        )
        stale = counts(lines, "stale_reads")
        self.assertIn(("stale_reads", "overwrite"), stale)
        self.assertIn(("stale_reads", "unlink"), stale)
        self.assertGreater(counts(lines, "visible_after")[("visible_after", "overwrite")], 0.5)

    def test_what_it_acknowledged_before_its_server_was_killed_is_there(self):
        lines = self.of("strict", KILLED)[KILLED]
        self.assertEqual(counts(lines, "lost_writes", "rolled_back_writes", "torn_writes"), {}, lines)
        self.assertEqual(len(counts(lines, "acknowledged")), 3)
        self.assertIn(
            {"name": "interrupted", "value": True},
            [{word: line["condition"][word] for word in ("name", "value")} for line in lines if "condition" in line],
        )


if __name__ == "__main__":
    main_beside_servers(ranks, main)
