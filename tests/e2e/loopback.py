"""loopback: nodes of this machine behind real sshd instances, which the tests of a class share."""
import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from harness import DEADLINE_S, Bench

SSH_NODES = pathlib.Path(__file__).parent.parent / "cluster/ssh_nodes"
SKIPPED = 77


class LoopbackBench(Bench):
    """Each test has a scratch directory and a site file of its own."""

    count = 2  # of nodes
    own_names = True  # needed by tests in which nodes must not be one machine

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        named = subprocess.run(["unshare", "--uts", "hostname", "assay-test"], capture_output=True)
        if cls.own_names and named.returncode != 0:
            raise unittest.SkipTest(
                "no host names of their own for the nodes here, and without them they are one machine"
            )
        home = pathlib.Path(tempfile.mkdtemp(prefix="assay-nodes-", dir="/var/tmp"))
        cls.addClassCleanup(shutil.rmtree, home, ignore_errors=True)
        cls.cluster = home / "cluster"
        up = subprocess.run(
            [SSH_NODES, "up", str(cls.count), cls.cluster], capture_output=True, text=True, timeout=DEADLINE_S
        )
        if up.returncode == SKIPPED:
            raise unittest.SkipTest(up.stderr)
        if up.returncode != 0:
            raise AssertionError(up.stderr)
        cls.addClassCleanup(subprocess.run, [SSH_NODES, "down", cls.cluster], timeout=DEADLINE_S)

    def setUp(self):
        super().setUp()
        self.site = json.loads((self.cluster / "site.json").read_text())

    def accept_on_site(self, *requirements, more=()):
        return self.accept(*requirements, more=["--site", self.write("site.json", self.site), *more])
