"""slurm: a real Slurm on a test cluster: slurmctld at the head, slurmd on every node, and one munged for all of them.

    with Slurm(cluster) as slurm:
        subprocess.run([*cluster.head, "sinfo"], env=dict(os.environ, **slurm.environment))

It ends with the cluster at the latest: its daemons at the head die with the process that made them, those on nodes with the node.
Unavailable says what a machine lacks.
"""
import os
import pathlib
import shutil
import socket
import subprocess
import time

from node import BOOT_PATIENCE_S, Unavailable, command

PROGRAMS = ["munged", "slurmctld", "slurmd", "srun", "sbatch", "sinfo", "squeue", "scontrol"]
HEAD = "10.77.0.1"
CONTROLLER_PORT, NODE_PORT = 17000, 17100
# Seconds after which slurmctld calls a silent slurmd down: long enough for a loaded machine to answer its pings.
SILENCE_S = 10


def find(program):
    return shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")


class Slurm:
    """Slurm for `cluster`, which is up; its node names and addresses are the cluster's. With `preempting` there is a partition `night` beside
    `main`, whose jobs are cancelled when one of `main` wants their nodes."""

    def __init__(self, cluster, preempting=False):
        self.cluster = cluster
        self.preempting = preempting
        self.path = cluster.path / "slurm"
        self.daemons = []
        self.on_node = {}  # slurmd by name of node
        self.environment = {"SLURM_CONF": str(self.path / "slurm.conf")}

    def __enter__(self):
        for program in PROGRAMS:
            if find(program) is None:
                raise Unavailable(f"{program} is not installed (packages munge slurmctld slurmd slurm-client)")
        try:
            self._up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for daemon in [*self.on_node.values(), *reversed(self.daemons)]:
            daemon.terminate()
        for daemon in [*self.on_node.values(), *self.daemons]:
            try:
                daemon.wait(5)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait(BOOT_PATIENCE_S)

    def _up(self):
        for name in ("", "state", "log", "munge", *(f"spool/{node.name}" for node in self.cluster.nodes)):
            (self.path / name).mkdir(parents=True, mode=0o700)
        (self.path / "munge/key").write_bytes(os.urandom(128))
        (self.path / "munge/key").chmod(0o400)
        (self.path / "slurm.conf").write_text(self._configuration())
        munge = self.path / "munge"
        self._daemon(
            find("munged"),
            "--foreground",
            "--force",
            f"--key-file={munge}/key",
            f"--socket={munge}/socket",
            f"--pid-file={munge}/pid",
            f"--log-file={munge}/log",
            f"--seed-file={munge}/seed",
        )
        self._wait(lambda: (munge / "socket").exists(), "munged listens")
        self._daemon(*self.cluster.head, find("slurmctld"), "-D", "-c", "-f", self.path / "slurm.conf")
        for node in self.cluster.nodes:
            self.start_on(node)
        self._wait(lambda: self.states().count("idle") == len(self.cluster.nodes), "all nodes are idle")

    def _daemon(self, *words):
        log = open(self.path / "log" / f"{len(self.daemons)}.out", "w")
        with log:
            self.daemons.append(
                subprocess.Popen(
                    ["setpriv", "--pdeathsig", "KILL", *map(str, words)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    env=dict(os.environ, **self.environment),
                )
            )

    def start_on(self, node):
        """Starts slurmd on a node."""
        log = self.path / "log" / f"{node.name}.out"
        with open(log, "w") as file:
            self.on_node[node.name] = node.start(
                find("slurmd"), "-D", "-N", node.name, "-f", self.path / "slurm.conf", stdout=file, stderr=file
            )

    def kill_on(self, node):
        """slurmd of a node is gone at once, and Slurm does not know yet."""
        for pid in node.process_ids():
            try:
                name = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
            except OSError:
                continue  # it has just ended
            if name == "slurmd":
                os.kill(pid, 9)
        self.on_node.pop(node.name).wait(BOOT_PATIENCE_S)

    def at_head(self, *words, **more):
        """Runs a program of Slurm at the head; what it printed."""
        return command(*self.cluster.head, *words, env=dict(os.environ, **self.environment), **more)

    def states(self):
        """One word for each node."""
        try:
            return self.at_head("sinfo", "--noheader", "--Node", "--partition=main", "--format=%T").split()
        except RuntimeError:
            return []  # slurmctld does not answer yet

    def jobs(self):
        """What is in the queue or runs."""
        return self.at_head("squeue", "--noheader").splitlines()

    def _wait(self, condition, what):
        end = time.monotonic() + BOOT_PATIENCE_S
        while not condition():
            for daemon in self.daemons:
                if daemon.poll() is not None:
                    raise RuntimeError(
                        f"{' '.join(daemon.args[-6:])} ended with exit code {daemon.returncode}: {self._last_words()}"
                    )
            if time.monotonic() > end:
                raise RuntimeError(f"still not so: {what}; {self.states()}; {self._last_words()}")
            time.sleep(0.05)

    def _last_words(self):
        return "; ".join(
            f"{log.name}: {log.read_text(errors='replace')[-300:]}"
            for log in sorted((self.path / "log").iterdir())
            if log.stat().st_size
        )

    def _configuration(self):
        nodes = "\n".join(
            f"NodeName={node.name} NodeAddr={node.address} NodeHostname={node.name} CPUs={os.cpu_count()} RealMemory=1000 State=UNKNOWN"
            for node in self.cluster.nodes
        )
        head = socket.gethostname().split(".")[0]
        preemption = "PreemptType=preempt/partition_prio\nPreemptMode=CANCEL" if self.preempting else ""
        night = (
            "PartitionName=night Nodes=ALL State=UP MaxTime=INFINITE OverSubscribe=NO PriorityTier=1"
            if self.preempting
            else ""
        )
        return f"""ClusterName=assay
SlurmctldHost={head}({HEAD})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={self.path}/munge/socket
CredType=cred/munge
SlurmctldPort={CONTROLLER_PORT}
SlurmdPort={NODE_PORT}
StateSaveLocation={self.path}/state
SlurmdSpoolDir={self.path}/spool/%n
SlurmctldPidFile={self.path}/slurmctld.pid
SlurmdPidFile={self.path}/slurmd.%n.pid
SlurmctldLogFile={self.path}/log/slurmctld.log
SlurmdLogFile={self.path}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout={SILENCE_S}
SlurmdParameters=config_overrides
InactiveLimit=0
KillWait={10 if self.preempting else 2}
{preemption}
{nodes}
PartitionName=main Nodes=ALL Default=YES State=UP MaxTime=INFINITE OverSubscribe=NO PriorityTier=10
{night}
"""
