"""made_up_ports: crossing_refused on a machine whose RDMA ports are files, over made-up libraries and a made-up connection manager."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

DEADLINE_S = 60
ACTIVE = {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec"}


def manager(silent=""):
    """A connection manager that answers all questions but one: the environment of a process."""
    return {"LD_PRELOAD": os.environ["FAKE_RDMA_CM"], "ASSAY_FAKE_RDMA_CM": silent}


class MadeUpPorts(unittest.TestCase):
    ports = {}  # by device, the files of its port

    def setUp(self):
        if os.geteuid() != 0:
            raise unittest.SkipTest("needs root, for a /sys of its own")
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="assay-ports-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.scratch)
        self.notes = self.scratch / "notes"
        self.notes.mkdir()
        for device, facts in self.ports.items():
            self.write_port(self.scratch, device, facts)

    @staticmethod
    def write_port(machine, device, facts):
        for name, text in {**ACTIVE, **facts}.items():
            file = machine / "class" / "infiniband" / device / "ports" / "1" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text + "\n")

    def begin(self, rank, words, world=2, machine=None, **more):
        """A rank on the machine whose ports are below `machine`."""
        own = f'mount --bind {machine or self.scratch}/class /sys/class && exec "$@"'
        process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", own, "sh", os.environ["ASSAY_CROSSING"]]
            + [f"--rank={rank}", f"--world={world}", "--rendezvous=127.0.0.1:1", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "ASSAY_TOKEN": "ab" * 32, **more},
        )
        for clean in (process.stdout.close, process.stderr.close, process.wait, process.kill):  # from the last on
            self.addCleanup(clean)
        return process

    @staticmethod
    def record_of(process):
        """Its conditions, and what it says of errors."""
        out, err = process.communicate(timeout=DEADLINE_S)
        lines = [json.loads(line) for line in out.splitlines()]
        found = {one["condition"]["name"]: one["condition"]["value"] for one in lines if "condition" in one}
        return {**found, "errors": err}
