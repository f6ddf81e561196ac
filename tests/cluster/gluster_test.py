"""The probes of shared storage on GlusterFS, a real network file system: without its clients' caches it passes; as it is installed, its clients show for a
second what was there before, and the probe says so. Three clients are processes of this machine."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from harness import main, wait_for
from node import Unavailable

PROBES = pathlib.Path(os.environ["ASSAY_E2E"], "libexec/assay/probes")
HERE = pathlib.Path(__file__).resolve()
CLIENTS = 3
PATIENCE_S = 300
WORDS = {"storage_cluster": ["--size=16MiB"], "storage_metadata": ["--layout=shared_directory"], "storage_ingest": [], "storage_consistency": ["--wait=5s"]}
KILLED = "storage_durability"  # its run has the brick's server killed
WORDS_KILLED = ["--duration=60s", "--streams=2", "--stall=30s", "--recovery=2min"]


def ranks(base, probe):
    """Runs the ranks of `probe`, each on a client of its own; the records, by rank. This runs beside the servers."""
    running = [subprocess.Popen([PROBES / probe, "--quick", f"--directory={base}/client-{rank}", f"--rank={rank}", f"--world={CLIENTS}",
                                 "--rendezvous=127.0.0.1:24900", "--token=" + 8 * "90ab", "--clients=processes", *WORDS.get(probe, WORDS_KILLED)],
                                stdout=subprocess.PIPE, text=True) for rank in range(CLIENTS)]
    if probe == KILLED:
        kill_brick(pathlib.Path(base, "brick"))
    return [one.communicate(timeout=PATIENCE_S)[0] for one in running]


def kill_brick(brick):
    """SIGKILL for the server of the brick while every rank writes; then it is started again."""
    wait_for(lambda: all(list(brick.glob(f"assay-storage-*/durable-{rank}-1-name-9")) for rank in range(CLIENTS)), "every rank writes", PATIENCE_S)
    servers = [path.parent.name for path in pathlib.Path("/proc").glob("[0-9]*/comm") if path.read_text().strip() == "glusterfsd"]
    for server in servers:  # of this namespace of processes alone
        os.kill(int(server), signal.SIGKILL)
    subprocess.run(["gluster", "--mode=script", "volume", "start", "shared", "force"], check=True, stdout=subprocess.DEVNULL, timeout=60)


class Gluster(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            raise Unavailable("mounting needs root")
        for program in ("glusterd", "gluster", "glusterfs"):
            if shutil.which(program) is None:
                raise Unavailable(f"{program} is missing: apt-get install glusterfs-server glusterfs-client")
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="assay-gluster-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.base)

    def records(self, kind, *probes):
        """Rank 0's record of each probe, as lines; the brick must be empty afterwards."""
        done = subprocess.run([HERE.with_name("gluster"), self.base, str(CLIENTS), kind, sys.executable, HERE, self.base, *probes],
                              capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([path.name for path in (self.base / "brick").iterdir() if path.name != ".glusterfs"], [])
        found = {}
        for probe, outputs in json.loads(done.stdout).items():
            found[probe] = [json.loads(line) for line in outputs[0].splitlines()]
            self.assertEqual(found[probe][-1]["end"]["status"], "complete", found[probe][-1])
            self.assertIn("fuse.glusterfs", outputs[0])
        return found

    @staticmethod
    def counts(lines, *metrics):
        """Each of `metrics` by its coordinate, where it is not 0."""
        measured = [line["measurement"] for line in lines if "measurement" in line]
        return {(one["metric"], *one.get("at", {}).values()): one["samples"][0] for one in measured if one["metric"] in metrics and one["samples"][0] != 0}

    def test_without_caches_of_the_clients_every_probe_finds_no_fault(self):
        found = self.records("strict", *WORDS)
        for probe, lines in found.items():
            self.assertEqual(self.counts(lines, "mismatches", "failures", "wrong_answers", "stale_reads", "wrong_reads", "false_successes"), {},
                             [probe] + [line["note"] for line in lines if "note" in line])

    def test_as_it_is_installed_a_client_shows_what_was_there_before(self):
        lines = self.records("plain", "storage_consistency")["storage_consistency"]
        self.assertEqual(self.counts(lines, "wrong_reads", "false_successes", "failures"), {}, lines)
        stale = self.counts(lines, "stale_reads")
        self.assertIn(("stale_reads", "overwrite"), stale)
        self.assertIn(("stale_reads", "unlink"), stale)
        self.assertGreater(self.counts(lines, "visible_after")[("visible_after", "overwrite")], 0.5)

    def test_what_it_acknowledged_before_its_server_was_killed_is_there(self):
        lines = self.records("strict", KILLED)[KILLED]
        self.assertEqual(self.counts(lines, "lost_writes", "rolled_back_writes", "torn_writes"), {}, lines)
        self.assertEqual(len([one for one in self.counts(lines, "acknowledged")]), 3)
        self.assertIn({"name": "interrupted", "value": True}, [{word: line["condition"][word] for word in ("name", "value")} for line in lines if "condition" in line])


if __name__ == "__main__":
    if len(sys.argv) > 2 and pathlib.Path(sys.argv[1]).is_dir():
        print(json.dumps({probe: ranks(sys.argv[1], probe) for probe in sys.argv[2:]}))
    else:
        main()
