"""Two virtual machines that mount one export of nfs-ganesha by their kernel's own client, over NFS 4.1 and over NFS 3: what came by wire is what the mount's own
counters say, so a read is cold by more than an empty page cache; what these clients do not keep consistent is named, and no other fault is found."""
import json
import pathlib
import re
import shutil
import subprocess
import sys

from clients import PROBES, Servers, counts, notes
from harness import main

CLIENTS = 2
SIZE = 8 << 20
STORAGE = [f"--size={SIZE}", "--threads=2", "--duration=5min", "--repetitions=2"]
# Name, probe, words: the same storage_cluster as clients on two machines, and as if one machine had both, which leaves only the wire as a proof.
RUNS = [
    ("nodes", "storage_cluster", [*STORAGE, "--clients=nodes"]),
    ("wire", "storage_cluster", [*STORAGE, "--clients=processes"]),
    ("consistency", "storage_consistency", ["--clients=nodes", "--rounds=3", "--wait=5s"]),
]
BOOT_PATIENCE_S = 900
TYPES = {"4.1": "nfs4", "3": "nfs"}
APPEND, HELD_OPEN = ("false_successes", "append_together"), (
    "stale_reads",
    "held_open",
)  # NFS has no append, and asks for attributes at times
FAULTS = ("mismatches", "failures", "wrong_answers", "stale_reads", "wrong_reads", "false_successes")


def job(number):
    """What machine `number` does: each probe, with the counters of its mount before and after."""
    lines = ["set -e", "cp /job/storage_* /bin/", "export ASSAY_TOKEN=" + 8 * "90ab"]
    for port, (name, probe, words) in enumerate(RUNS, 24900):
        lines += [
            f"cp /proc/self/mountstats /job/{name}.before",
            f"{probe} --quick --directory=/mnt --rank={number - 1} --world={CLIENTS} --rendezvous=10.10.0.1:{port} {' '.join(words)} >/job/{name}.record",
            f"cp /proc/self/mountstats /job/{name}.after",
        ]
    return "\n".join(lines) + "\n"


def run(base):
    """Beside the server: both machines do their jobs; what they left, by machine and file."""
    for number in range(1, CLIENTS + 1):
        folder = base / f"guest-{number}"
        (folder / "run").write_text(job(number))
        for probe in {probe for _, probe, _ in RUNS}:
            shutil.copy(PROBES / probe, folder)
    subprocess.run([base / "boot"], check=True, timeout=BOOT_PATIENCE_S, stdout=sys.stderr)
    left = [path.name for path in (base / "export").iterdir()]
    files = {
        name: [(base / f"guest-{number}" / name).read_text() for number in range(1, CLIENTS + 1)]
        for name in ["mounts", *(f"{name}.{kind}" for name, _, _ in RUNS for kind in ("before", "record", "after"))]
    }
    print(json.dumps({"left": left, "files": files}))


def read_from_server(mountstats):
    """B in replies to READ of the mount at /mnt so far: struct nfs_iostats of Linux, server_read."""
    return int(
        re.search(r" mounted on /mnt with fstype nfs.*?\n\s*bytes:\s+(?:\d+ ){4}(\d+)", mountstats, re.DOTALL)[1]
    )


class KernelClients(Servers):
    script = "nfs_guests"
    programs = (
        "qemu-system-x86_64",
        "ganesha.nfsd",
        "rpcbind",
        "mkfs.ext4",
        "busybox",
        "cpio",
        "depmod",
        "apt-get",
        "dpkg",
    )
    packages = "qemu-system-x86 nfs-ganesha nfs-ganesha-vfs rpcbind busybox-static cpio kmod"

    def found(self, version):
        """What both machines left, their records as lines."""
        done = self.beside(arguments=(version,))
        self.assertEqual(done["left"], [])
        for text in done["files"]["mounts"]:
            self.assertRegex(text, rf" /mnt .* - {TYPES[version]} 10\.10\.0\.254:/export .*vers={re.escape(version)},")
        return done["files"]

    def conditions(self, text):
        lines = [json.loads(line) for line in text.splitlines()]
        self.assertEqual(lines[-1]["end"]["status"], "complete", lines[-1])
        return {line["condition"]["name"]: line["condition"]["value"] for line in lines if "condition" in line}

    def check(self, version):
        files = self.found(version)
        for name, rung in (("nodes", 3), ("wire", 2)):
            for rank in range(CLIENTS):
                with self.subTest(version=version, run=name, rank=rank):
                    said = self.conditions(files[f"{name}.record"][rank])
                    self.assertEqual(said["filesystem"], TYPES[version])
                    self.assertEqual(
                        (said["cold_rung"], said["resident_pages"], said["direct_io"]), (rung, 0, True), said
                    )
                    self.assertEqual(
                        said["wire_share"], 1
                    )  # the mount's own READs; all that the machine received is more
                    came = read_from_server(files[f"{name}.after"][rank]) - read_from_server(
                        files[f"{name}.before"][rank]
                    )
                    self.assertGreaterEqual(came, 2 * SIZE)
            self.assertEqual(self.faults(files, name), {})
        consistency = [json.loads(line) for line in files["consistency.record"][0].splitlines()]
        return set(counts(consistency, *FAULTS)), notes(consistency)

    def faults(self, files, name):
        return counts([json.loads(line) for line in files[f"{name}.record"][0].splitlines()], *FAULTS)

    def test_over_nfs_4_1_what_attribute_caches_hide_is_named(self):
        found, said = self.check("4.1")
        self.assertLessEqual(found, {APPEND, HELD_OPEN, ("stale_reads", "size")}, said)
        self.assertLessEqual({APPEND, HELD_OPEN}, found, said)
        self.assert_stale_for_the_attributes_lifetime(said)

    def test_over_nfs_3_a_replaced_file_that_is_open_is_named_too(self):
        found, said = self.check("3")
        self.assertLessEqual(found, {APPEND, HELD_OPEN, ("stale_reads", "size"), ("failures", "rename")}, said)
        self.assertLessEqual({APPEND, HELD_OPEN}, found, said)
        self.assert_stale_for_the_attributes_lifetime(said)

    def assert_stale_for_the_attributes_lifetime(self, said):
        """Three seconds, acregmin of nfs(5); and no note is of another kind."""
        for note in said:
            stale = re.search(r"stale for ([0-9.]+) s: ", note)
            self.assertTrue(stale or "appended records are missing" in note or "Stale file handle" in note, note)
            if stale:
                self.assertLess(abs(float(stale[1]) - 3), 2, note)


if __name__ == "__main__":
    if len(sys.argv) > 1 and pathlib.Path(sys.argv[1]).is_dir():
        run(pathlib.Path(sys.argv[1]))
    else:
        main()
