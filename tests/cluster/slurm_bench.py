"""slurm_bench: a test cluster under a real Slurm, with an installation of assay where every node sees it."""
import os
import shutil

from bench import ClusterBench
from harness import BIN
from slurm import Slurm


class SlurmBench(ClusterBench):
    nodes = 8
    preempting = False

    def setUp(self):
        super().setUp()
        self.slurm = Slurm(self.cluster, self.preempting)
        self.slurm.__enter__()
        self.addCleanup(self.slurm.__exit__)
        # What a shared file system is to a real cluster: the nodes have a /tmp, a /run and a /root of their own, and a build
        # may lie below any of them.
        self.installation = self.cluster.path / "installation"
        shutil.copytree(BIN.parent, self.installation)
        self.installed = self.installation / "bin/assay"  # jobs run the one that made them
        self.environment = dict(
            self.environment,
            **self.slurm.environment,
            PATH=f"{self.installation / 'bin'}:{os.environ['PATH']}:/usr/sbin",
        )
        for name in [name for name in self.environment if name.startswith("SLURM_") and name != "SLURM_CONF"]:
            del self.environment[name]  # of a job that this test itself may run in
