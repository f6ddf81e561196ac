"""What two clients were told is durable by a storage server whose power was cut: a virtual machine with an NVMe drive whose write cache is volatile. The machine ends
with what its memory holds, the drive with what its cache holds; the ledgers are with the clients. Where every fsync reaches the drive nothing is lost; a drive that
answers a flush and does nothing, and a file system that sends it none, are found out by what they lost."""
import json
import subprocess

from clients import NFS_FS, Servers, counts, main_beside_servers, nfs_clients, notes, run_ranks
from harness import main, wait_for

CLIENTS = 2
WORDS = ["--duration=10min", "--streams=2", "--slots=16", "--stall=5s", "--recovery=5min"]
FAULTS = ("lost_writes", "rolled_back_writes", "torn_writes")
BOOT_PATIENCE_S = 400
# Names are durable before they are acknowledged, as NFS 3 demands, whatever the server itself does.
OPTIONS = "dirsync"


def is_in(disk, words):
    """Whether the drive's medium has these bytes: what is still in its cache does not count."""
    return subprocess.run(["grep", "-q", "-a", "-F", words, disk], check=False).returncode == 0


def cut(base):
    """While every rank writes; the medium has some of what each wrote, so that a run's folder outlives the cut."""
    wait_for(
        lambda: all(is_in(base / "disk", f"durable-{rank}-1-name-9") for rank in range(CLIENTS)),
        "the medium has files of every rank",
        300,
    )
    subprocess.run([base / "cut"], check=True, timeout=BOOT_PATIENCE_S)


def ranks(base, probe):
    with nfs_clients(base, "export", CLIENTS, "stable") as folders:
        return run_ranks(probe, folders, WORDS, during=lambda: cut(base))


class PowerCut(Servers):
    script, filesystem = "power_cut", "fuse.nfs_fs"
    programs = (
        NFS_FS,
        "qemu-system-x86_64",
        "ganesha.nfsd",
        "rpcbind",
        "nfs-ls",
        "mkfs.ext4",
        "busybox",
        "cpio",
        "depmod",
        "apt-get",
        "dpkg",
    )
    packages = "qemu-system-x86 nfs-ganesha nfs-ganesha-vfs rpcbind libnfs-dev libnfs-utils busybox-static cpio kmod"

    def after_a_cut(self, drive, options=OPTIONS):
        """Rank 0's record of a run whose storage lost its power, and what the drive lost of its cache."""
        lines = self.records("storage_durability", arguments=(drive, options))["storage_durability"]
        self.assertIn("guest: the write cache of the drive is write back", (self.base / "log/console-0").read_text())
        self.assertIn(
            {"name": "interrupted", "value": True},
            [{word: line["condition"][word] for word in ("name", "value")} for line in lines if "condition" in line],
        )
        self.assertEqual(len(counts(lines, "acknowledged")), 3, notes(lines))
        return lines, json.loads((self.base / "lost-1").read_text())

    def assert_named(self, lines):
        found = counts(lines, *FAULTS)
        self.assertTrue(found, notes(lines))
        self.assertTrue([note for note in notes(lines) if " was acknowledged, and " in note], notes(lines))

    def test_of_what_an_honest_server_acknowledged_nothing_is_lost_three_times_of_three(self):
        for turn in range(3):
            lines, drive = self.after_a_cut("honest")
            self.assertEqual(counts(lines, *FAULTS), {}, (turn, notes(lines)))
            self.assertGreater(drive["flushes"], 0)

    def test_a_drive_that_does_nothing_when_it_is_to_flush_is_found_out(self):
        lines, drive = self.after_a_cut("deaf")
        self.assertGreater(drive["flushes"], 0)
        self.assertGreater(drive["dropped_bytes"], 0)
        self.assert_named(lines)

    def test_a_file_system_that_sends_no_flush_is_found_out(self):
        lines, drive = self.after_a_cut("honest", OPTIONS + ",barrier=0")
        self.assertGreater(drive["dropped_bytes"], 0)
        self.assert_named(lines)


if __name__ == "__main__":
    main_beside_servers(ranks, main)
