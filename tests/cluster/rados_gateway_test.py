"""storage_protocols on a real store with two protocols: the object gateway of Ceph, whose bucket nfs-ganesha exports. As they are installed the pair is
inconsistent: what was written, synced and closed over NFS is an empty object for ten seconds. The probe says so; through S3 alone it finds no fault. What its client
writes s3cmd and rclone read, which sign for themselves, and the reverse."""
import hashlib
import os
import subprocess

from clients import NFS_FS, Servers, counts, main_beside_servers, nfs_clients, notes, run_ranks
from harness import main

FAULTS = ("stale_reads", "wrong_reads", "false_successes", "failures")
ENDPOINT, BUCKET, KEYS = "127.0.0.1:7480", "assay", ("ACCEPT", "of-this-test-alone")
TRANSFERS = "transfers"  # no probe: objects by our client, s3cmd and rclone
NAMES = ("plain", "deep/er/name.bin", "with blank+plus", "a=b&c~d$e", "\u00fc")


def once(verb, key, body=b""):
    """One request of our client; what it writes."""
    return subprocess.run(
        [os.environ["ASSAY_S3_ONCE"], f"http://{ENDPOINT}", BUCKET, *KEYS, verb, key],
        input=body,
        capture_output=True,
        timeout=60,
        check=True,
    ).stdout


def s3cmd(base, *words):
    subprocess.run(
        [
            "s3cmd",
            f"--config={base}/none",
            f"--access_key={KEYS[0]}",
            f"--secret_key={KEYS[1]}",
            f"--host={ENDPOINT}",
            f"--host-bucket={ENDPOINT}",
            "--no-ssl",
            "--region=us-east-1",
            "--force",
            *words,
        ],
        capture_output=True,
        timeout=60,
        check=True,
    )


def rclone(base, *words, body=b""):
    remote = {
        "TYPE": "s3",
        "PROVIDER": "Ceph",
        "ACCESS_KEY_ID": KEYS[0],
        "SECRET_ACCESS_KEY": KEYS[1],
        "ENDPOINT": f"http://{ENDPOINT}",
        "REGION": "us-east-1",
    }
    others = {
        name: value for name, value in os.environ.items() if not name.startswith("AWS_")
    }  # of this machine's own accounts
    environment = {**others, **{f"RCLONE_CONFIG_STORE_{name}": value for name, value in remote.items()}}
    return subprocess.run(
        ["rclone", f"--config={base}/none", *words],
        input=body,
        env=environment,
        capture_output=True,
        timeout=60,
        check=True,
    ).stdout


def transfers(base):
    """For each name, which of the clients read what our client wrote, and whether ours reads what they wrote."""
    (base / "none").touch()
    found = {}
    for number, name in enumerate(NAMES):
        body = b"".join(hashlib.sha256(f"{number} {i}".encode()).digest() for i in range(1024))
        key, file = f"transfers/{name}", base / "read"
        tag = once("put", key, body).decode().strip()
        s3cmd(base, "get", f"s3://{BUCKET}/{key}", file)
        found[name] = {
            "etag": tag == f'"{hashlib.md5(body).hexdigest()}"',
            "s3cmd reads": file.read_bytes() == body,
            "rclone reads": rclone(base, "cat", f"store:{BUCKET}/{key}") == body,
            "ours has its size": once("size", key) == b"32768\n",
        }
        once("remove", key)
        found[name]["removed"] = once("size", key) == b"none\n"
        s3cmd(base, "put", file, f"s3://{BUCKET}/{key}")
        found[name]["ours reads s3cmd's"] = once("get", key) == body
        once("remove", key)
        rclone(base, "rcat", f"store:{BUCKET}/{key}", body=body)
        found[name]["ours reads rclone's"] = once("get", key) == body
    found["plain"]["listed"] = once("lists", "transfers/plain") == b"yes\n"
    return found


def ranks(base, probe):
    if probe == TRANSFERS:
        return transfers(base)
    with nfs_clients(base, "assay", 2) as folders:
        return run_ranks(
            probe,
            folders,
            ["--wait=15s", "--endpoint=http://127.0.0.1:7480", "--bucket=assay", f"--credentials={base}/s3.json"],
            program=os.environ["ASSAY_STORAGE_PROTOCOLS"],
        )


class RadosGateway(Servers):
    script, filesystem = "rados_gateway", "fuse.nfs_fs"
    programs = (NFS_FS, "ceph-mon", "ceph-osd", "radosgw", "ganesha.nfsd", "rpcbind", "s3cmd", "rclone", "nfs-ls")
    packages = (
        "ceph-mon ceph-osd radosgw ceph-common nfs-ganesha nfs-ganesha-rgw rpcbind s3cmd rclone libnfs-dev libnfs-utils"
    )

    def test_what_was_closed_over_nfs_is_an_empty_object_for_ten_seconds(self):
        lines = self.records("storage_protocols")["storage_protocols"]
        found = counts(lines, *FAULTS)
        self.assertIn(("stale_reads", "posix_to_s3.new"), found, notes(lines))
        self.assertIn(("stale_reads", "posix_to_s3.overwrite"), found, notes(lines))
        self.assertGreater(counts(lines, "visible_after")[("visible_after", "posix_to_s3.new")], 5)
        self.assertTrue(
            [
                note
                for note in notes(lines)
                if note.startswith("posix_to_s3.new:") and "the file ends after 0 of 16384 B" in note
            ],
            notes(lines),
        )
        self.assertEqual(
            {fault: count for fault, count in found.items() if fault[1].startswith("s3_to_s3.")}, {}, notes(lines)
        )

    def test_s3cmd_and_rclone_read_what_our_client_writes_and_the_reverse(self):
        found = self.beside(TRANSFERS)[TRANSFERS]
        self.assertEqual(set(found), set(NAMES))
        self.assertEqual(
            {name: [what for what, right in of.items() if not right] for name, of in found.items()},
            {name: [] for name in NAMES},
        )


if __name__ == "__main__":
    main_beside_servers(ranks, main)
