"""The probes of shared storage on nfs-ganesha, over ext4 and over xfs, whose clients keep nothing: what NFS 3 has no way to do is named, appending together
and reading a file that another client has replaced, and no other fault is found; what it acknowledged is there after SIGKILL. Three clients of NFS 3 are
processes of this machine."""
import subprocess

from clients import NFS_FS, Servers, counts, main_beside_servers, nfs_clients, notes, run_ranks
from harness import main, wait_for

CLIENTS = 3
WORDS = {
    "storage_cluster": ["--size=16MiB"],
    "storage_metadata": ["--layout=shared_directory"],
    "storage_ingest": [],
    "storage_consistency": ["--wait=5s"],
}
KILLED = "storage_durability"
WORDS_KILLED = ["--duration=60s", "--streams=2", "--stall=3s", "--recovery=2min"]


def ranks(base, probe):
    with nfs_clients(base, "export", CLIENTS) as folders:
        if probe != KILLED:
            return run_ranks(probe, folders, WORDS[probe])
        return run_ranks(probe, folders, WORDS_KILLED, during=lambda: kill_server(base))


def kill_server(base):
    """SIGKILL while every rank writes; then it is started again."""
    wait_for(
        lambda: all(
            list((base / "export").glob(f"assay-storage-*/durable-{rank}-1-name-9")) for rank in range(CLIENTS)
        ),
        "every rank writes",
        300,
    )
    subprocess.run([base / "again"], check=True, timeout=60)


class Ganesha(Servers):
    script, filesystem = "ganesha", "fuse.nfs_fs"
    programs = (NFS_FS, "ganesha.nfsd", "rpcbind", "nfs-ls", "mkfs.ext4", "mkfs.xfs")
    packages = "nfs-ganesha nfs-ganesha-vfs rpcbind libnfs-dev libnfs-utils xfsprogs"

    def test_every_probe_finds_what_nfs_3_cannot_do_and_no_other_fault(self):
        beyond_nfs_3 = {"storage_consistency": {("false_successes", "append_together"), ("failures", "rename")}}
        for kind in ("ext4", "xfs"):
            for probe, lines in self.records(*WORDS, arguments=(kind,)).items():
                with self.subTest(kind=kind, probe=probe):
                    found = counts(
                        lines,
                        "mismatches",
                        "failures",
                        "wrong_answers",
                        "stale_reads",
                        "wrong_reads",
                        "false_successes",
                    )
                    self.assertLessEqual(set(found), beyond_nfs_3.get(probe, set()), notes(lines))
                    self.assertEqual(
                        ("false_successes", "append_together") in found, probe == "storage_consistency", notes(lines)
                    )

    def test_what_it_acknowledged_before_it_was_killed_is_there(self):
        lines = self.records(KILLED, arguments=("ext4",))[KILLED]
        self.assertEqual(counts(lines, "lost_writes", "rolled_back_writes", "torn_writes"), {}, notes(lines))
        self.assertEqual(len(counts(lines, "acknowledged")), CLIENTS)
        self.assertIn(
            {"name": "interrupted", "value": True},
            [{word: line["condition"][word] for word in ("name", "value")} for line in lines if "condition" in line],
        )


if __name__ == "__main__":
    main_beside_servers(ranks, main)
