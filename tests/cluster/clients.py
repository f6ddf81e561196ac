"""Probes of shared storage as processes of this machine, each on a client of its own, inside of the namespaces that a script of servers has made: the test
starts that script, and the script starts the test's own file again with the names of the probes."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from harness import wait_for
from node import Unavailable

NFS_FS = pathlib.Path(os.environ["ASSAY_LYING_FS"]).with_name("nfs_fs")  # built where libnfs-dev is installed
PROBES = pathlib.Path(os.environ["ASSAY_E2E"], "libexec/assay/probes")
PATIENCE_S = 600


def run_ranks(probe, directories, words, during=lambda: None, program=None):
    """Runs one rank of `probe` in each of `directories`; their records as text, by rank. `during` is called while they run."""
    running = [
        subprocess.Popen(
            [
                program or PROBES / probe,
                "--quick",
                f"--directory={directory}",
                f"--rank={rank}",
                f"--world={len(directories)}",
                "--rendezvous=127.0.0.1:24900",
                "--token=" + 8 * "90ab",
                "--clients=processes",
                *words,
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank, directory in enumerate(directories)
    ]
    during()
    return [one.communicate(timeout=PATIENCE_S)[0] for one in running]


@contextlib.contextmanager
def nfs_clients(base, export, number, *words):
    """Folders below `base`, each a mount of its own of this export of this machine, by nfs_fs with `words`."""
    folders = [base / f"client-{rank}" for rank in range(number)]
    mounts = []
    try:
        for folder in folders:
            folder.mkdir(exist_ok=True)
            mounts.append(subprocess.Popen([NFS_FS, f"nfs://127.0.0.1/{export}?version=3&uid=0&gid=0", folder, *words]))
            wait_for(folder.is_mount, f"{folder} is mounted", 30)
        yield folders
    finally:
        for mount in mounts:
            mount.terminate()
            mount.wait(30)


def counts(lines, *metrics):
    """Each of `metrics` by its coordinate, where it is not 0."""
    measured = [line["measurement"] for line in lines if "measurement" in line]
    return {
        (one["metric"], *one.get("at", {}).values()): one["samples"][0]
        for one in measured
        if one["metric"] in metrics and one["samples"][0] != 0
    }


def notes(lines):
    return [line["note"]["text"] for line in lines if "note" in line]


class Servers(unittest.TestCase):
    """A script beside the tests starts servers, and this file again beside them."""

    script, programs, packages, filesystem = "", (), "", ""

    def setUp(self):
        if os.geteuid() != 0:
            raise Unavailable("mounting needs root")
        for program in self.programs:
            if shutil.which(program) is None:
                raise Unavailable(f"{program} is missing: apt-get install {self.packages}")
        self.base = pathlib.Path(tempfile.mkdtemp(prefix=f"assay-{self.script}-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.base)

    def beside(self, *probes, arguments=()):
        """What the file's ranks() found for each of `probes`, beside the servers."""
        own = pathlib.Path(sys.modules[type(self).__module__].__file__).resolve()
        done = subprocess.run(
            [own.with_name(self.script), self.base, *map(str, arguments), sys.executable, own, self.base, *probes],
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE_S,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def records(self, *probes, arguments=()):
        """Rank 0's record of each probe, as lines."""
        found = {}
        for probe, outputs in self.beside(*probes, arguments=arguments).items():
            found[probe] = [json.loads(line) for line in outputs[0].splitlines()]
            self.assertEqual(found[probe][-1]["end"]["status"], "complete", found[probe][-1])
            self.assertIn(self.filesystem, outputs[0])
        return found


def main_beside_servers(ranks, main):
    """The tests; or, started beside the servers, ranks(base, probe) of the probes that are named."""
    if len(sys.argv) > 2 and pathlib.Path(sys.argv[1]).is_dir():
        print(json.dumps({probe: ranks(pathlib.Path(sys.argv[1]), probe) for probe in sys.argv[2:]}))
    else:
        main()
