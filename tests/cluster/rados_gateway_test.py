"""storage_protocols on a real store with two protocols: the object gateway of Ceph, whose bucket nfs-ganesha exports. As they are installed the pair is
inconsistent: what was written, synced and closed over NFS is an empty object for ten seconds. The probe says so; through S3 alone it finds no fault."""
import os

from clients import NFS_FS, Servers, counts, main_beside_servers, nfs_clients, notes, run_ranks
from harness import main

FAULTS = ("stale_reads", "wrong_reads", "false_successes", "failures")


def ranks(base, probe):
    with nfs_clients(base, "assay", 2) as folders:
        return run_ranks(probe, folders, ["--wait=15s", "--endpoint=http://127.0.0.1:7480", "--bucket=assay", f"--credentials={base}/s3.json"],
                         program=os.environ["ASSAY_STORAGE_PROTOCOLS"])


class RadosGateway(Servers):
    script, filesystem = "rados_gateway", "fuse.nfs_fs"
    programs = (NFS_FS, "ceph-mon", "ceph-osd", "radosgw", "ganesha.nfsd", "rpcbind", "s3cmd", "nfs-ls")
    packages = "ceph-mon ceph-osd radosgw ceph-common nfs-ganesha nfs-ganesha-rgw rpcbind s3cmd libnfs-dev libnfs-utils"

    def test_what_was_closed_over_nfs_is_an_empty_object_for_ten_seconds(self):
        lines = self.records("storage_protocols")["storage_protocols"]
        found = counts(lines, *FAULTS)
        self.assertIn(("stale_reads", "posix_to_s3.new"), found, notes(lines))
        self.assertIn(("stale_reads", "posix_to_s3.overwrite"), found, notes(lines))
        self.assertGreater(counts(lines, "visible_after")[("visible_after", "posix_to_s3.new")], 5)
        self.assertTrue([note for note in notes(lines) if note.startswith("posix_to_s3.new:") and "the file ends after 0 of 16384 B" in note], notes(lines))
        self.assertEqual({fault: count for fault, count in found.items() if fault[1].startswith("s3_to_s3.")}, {}, notes(lines))


if __name__ == "__main__":
    main_beside_servers(ranks, main)
