"""node: one node of a test cluster, and everything that can be done to it."""
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

BOOT_PATIENCE_S = 60  # a node boots in 0.1 s; the rest is for a loaded machine with many of them
STOP_ROUNDS = 200  # what forks while it is stopped needs another round
CPU_GROUPS = pathlib.Path("/sys/fs/cgroup/cpu")
DISK_GROUPS = pathlib.Path("/sys/fs/cgroup/blkio")
CPU_PERIOD_US = 50_000  # short against what a probe times at once, so that a throttled node is slow all the time and not now and then
CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
OWN_FOLDERS = ("/tmp", "/run", "/root")  # what each node has of its own (node_init)
LINK_NAME = "eth0"
# Of a link that is held to a rate. What a machine does not send in time while it is busy elsewhere, the bucket lets it
# make up for; and the queue is longer than what two full streams have under way, so that nothing is lost there (see
# Node.bound_streams).
SHAPE = ["burst", "256k", "latency", "400ms"]
STREAM_B = 300_000  # that one stream has under way at most, once bound
PATIENT_RTO_S = 3  # a node that is held off for less time sends nothing again for it


class Unavailable(unittest.SkipTest):
    """This machine cannot do what the test needs; the text says what is missing."""


def command(*words, **more):
    """Runs a program to its end; a failure raises with what it said."""
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=BOOT_PATIENCE_S, **more
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def kept_in_sight():
    """The checkout, and the folders that the tests' ASSAY_* variables name, as far as a node's own /tmp, /run or /root would cover
    them: tests start programs on a node by their paths."""
    named = [
        pathlib.Path(value) for name, value in os.environ.items() if name.startswith("ASSAY_") and value.startswith("/")
    ]
    places = {
        CHECKOUT,
        *(path.resolve() if path.is_dir() else path.resolve().parent for path in named if path.exists()),
    }
    covered = [path for path in places if any(pathlib.Path(own) in path.parents for own in OWN_FOLDERS)]
    return [str(path) for path in sorted(covered) if not any(other in path.parents for other in covered)]


class Node:
    """A node: process namespace, network, host name, mounts, sshd, keys, home and work directory of its own."""

    def __init__(self, cluster, number, disk):
        self.cluster = cluster
        self.name = f"n{number:02d}"
        self.address = f"10.77.{1 + number // 250}.{1 + number % 250}"
        # The same after a boot, as a real port's: others remember where an address was.
        self.hardware_address = f"02:4d:00:00:{number // 256:02x}:{number % 256:02x}"
        self.port = f"p{number}"  # at the switch
        self.path = cluster.path / self.name
        self.directory = self.path / "work"  # where the agent works
        self.disk = disk
        self.init = None  # process id of its sshd, seen from outside
        self.holder = None
        self.shares = {}  # of a link held to a rate, by the address of the other end
        self.path.mkdir()
        self.new_host_key()
        (self.path / "sshd_config").write_text(
            f"ListenAddress {self.address}\nPort 22\nHostKey {self.path}/host_key\nPidFile none\n"
            f"AuthorizedKeysFile {cluster.path}/client_key.pub\nAuthenticationMethods publickey\nPermitRootLogin prohibit-password\n"
            "StrictModes no\nUsePAM no\nPrintMotd no\nUseDNS no\nMaxStartups 100\nSubsystem sftp internal-sftp\n"
        )

    def new_host_key(self):
        """Makes a host key; a node that runs shows it after its next boot."""
        (self.path / "host_key").unlink(missing_ok=True)
        command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", self.name, "-f", self.path / "host_key")
        self.host_key = " ".join((self.path / "host_key.pub").read_text().split()[:2])

    # Life and death

    def boot(self):
        """Starts the node; wait_until_up() waits for its sshd. It dies with the process that called this, even by SIGKILL."""
        script = pathlib.Path(__file__).parent / "node_init"
        self.shares = {}
        switch = os.open(f"/proc/{self.cluster.switch.pid}/ns/net", os.O_RDONLY)
        try:
            with open(self.path / "sshd.log", "w") as log:
                self.holder = subprocess.Popen(
                    [
                        "setpriv",
                        "--pdeathsig",
                        "KILL",
                        "unshare",
                        "--net",
                        "--uts",
                        "--ipc",
                        "--mount",
                        "--pid",
                        "--fork",
                        "--kill-child",
                        "--mount-proc",
                        script,
                        self.name,
                        f"{self.address}/16",
                        self.hardware_address,
                        self.path,
                        self.port,
                        f"/proc/self/fd/{switch}",
                        *([self.disk] if self.disk else []),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[switch],
                    start_new_session=True,
                    env=dict(os.environ, CLUSTER_KEEP="\n".join(kept_in_sight())),
                )
        finally:
            os.close(switch)

    def wait_until_up(self):
        """Returns when the sshd listens; raises with its last words when it does not."""
        end = time.monotonic() + BOOT_PATIENCE_S
        log = self.path / "sshd.log"
        while "Server listening" not in log.read_text(errors="replace"):
            if self.holder.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{self.name} did not come up: {log.read_text(errors='replace')[-500:]}")
            time.sleep(0.01)
        holder = self.holder.pid
        self.init = int(pathlib.Path(f"/proc/{holder}/task/{holder}/children").read_text().split()[0])

    def kill(self):
        """The node is gone at once, with everything that ran on it."""
        if self.holder is None:
            return
        self.holder.kill()  # and unshare's child, the init, with it
        self.holder.wait(BOOT_PATIENCE_S)
        if self.init is not None:
            end = time.monotonic() + BOOT_PATIENCE_S
            while os.path.exists(f"/proc/{self.init}/exe") and time.monotonic() < end:
                time.sleep(0.005)
        self.holder = self.init = None

    def reboot(self):
        """Kills the node and starts it again; with a disk of its own it comes back empty."""
        self.kill()
        self.boot()
        self.wait_until_up()

    def freeze(self):
        """Stops every process of the node; its kernel still answers for its network."""
        for _ in range(STOP_ROUNDS):
            running = [pid for pid in self.process_ids() if self.state(pid) not in "TZX"]
            if not running:
                return
            for pid in running:
                self.signal(pid, signal.SIGSTOP)
            time.sleep(0.01)  # one that is in a call of the kernel stops when it returns
        raise RuntimeError(f"{self.name} could not be frozen")

    def thaw(self):
        """Undoes freeze()."""
        for pid in self.process_ids():
            self.signal(pid, signal.SIGCONT)

    # What runs on it

    def inside(self, *words):
        """The words that run `words` on the node."""
        return [
            "nsenter",
            "-t",
            str(self.init),
            "--net",
            "--uts",
            "--ipc",
            "--mount",
            "--pid",
            "--wd=/",
            "--",
            *map(str, words),
        ]

    def run(self, *words):
        """Runs a program on the node and returns what it printed."""
        return command(*self.inside(*words), stdin=subprocess.DEVNULL)

    def start(self, *words, **more):
        """Starts a program on the node; it ends with the node at the latest."""
        return subprocess.Popen(self.inside(*words), stdin=subprocess.DEVNULL, start_new_session=True, **more)

    def process_ids(self):
        """Every process of the node, seen from outside."""
        return self.cluster.process_ids().get(self.name, [])

    @staticmethod
    def state(pid):
        """The letter of proc(5), X for a process that is gone."""
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return "X"

    @staticmethod
    def signal(pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass  # it has ended by itself

    # Faults

    def cut_off(self):
        """Nothing reaches the node any more, and nothing comes from it; it runs on."""
        self.cluster.at_switch("ip", "link", "set", self.port, "down")

    def rejoin(self):
        """Undoes cut_off()."""
        self.cluster.at_switch("ip", "link", "set", self.port, "up")

    def slow_link(self, rate):
        """Holds both directions of the node's link to `rate`, such as 200mbit."""
        shape = ["root", "tbf", "rate", rate, *SHAPE]
        self.run("tc", "qdisc", "replace", "dev", LINK_NAME, *shape)
        self.cluster.at_switch("tc", "qdisc", "replace", "dev", self.port, *shape)

    def delay_link(self, milliseconds):
        """What the node sends leaves this much later; its rate stays. Unavailable where the kernel has no netem."""
        try:
            self.run("tc", "qdisc", "replace", "dev", LINK_NAME, "root", "netem", "delay", f"{milliseconds}ms")
        except RuntimeError as failure:
            raise Unavailable(f"packets cannot be delayed here: {failure}") from failure

    def bound_streams(self, device=LINK_NAME):
        """Whatever this node then sends again through a port was lost on the way: two streams cannot overflow the queue of
        a link held to a rate, and a late acknowledgement is waited for, however busy the machine is. What leaves through the
        port is one segment a packet: a packet lost is a segment lost, and no rate is a multiple of 64 KiB a window."""
        self.run(
            "sysctl",
            "-qw",
            f"net.ipv4.tcp_wmem=4096 16384 {STREAM_B}",
            f"net.ipv4.tcp_rmem=4096 {4 * STREAM_B} {4 * STREAM_B}",
            "net.ipv4.tcp_early_retrans=0",
        )
        route = self.run("ip", "route", "show", "dev", device, "proto", "kernel").splitlines()[0].split()
        self.run("ip", "route", "change", *route, "dev", device, "proto", "kernel", "rto_min", f"{PATIENT_RTO_S}s")
        self.run("ip", "link", "set", device, "gso_max_segs", "1")

    def slow_towards(self, other, rate):
        """Holds what this node sends to `other` to `rate`; all other traffic is untouched."""
        if not self.shares:
            self.run("tc", "qdisc", "replace", "dev", LINK_NAME, "root", "handle", "1:", "htb")
        number = self.shares.setdefault(other.address, 1 + len(self.shares))
        self.run(
            "tc",
            "class",
            "replace",
            "dev",
            LINK_NAME,
            "parent",
            "1:",
            "classid",
            f"1:{number}",
            "htb",
            "rate",
            rate,
            "burst",
            "256k",
        )
        self.run(
            "tc",
            "filter",
            "add",
            "dev",
            LINK_NAME,
            "parent",
            "1:",
            "protocol",
            "ip",
            "u32",
            "match",
            "ip",
            "dst",
            f"{other.address}/32",
            "flowid",
            f"1:{number}",
        )

    def drop(self, share, source=None):
        """Loses this share of the packets that come in, 0 to 1, from the node `source` or from all."""
        origin = ["-s", source.address] if source else []
        try:
            self.run(
                "iptables",
                "-A",
                "INPUT",
                "-i",
                LINK_NAME,
                *origin,
                "-m",
                "statistic",
                "--mode",
                "random",
                "--probability",
                share,
                "-j",
                "DROP",
            )
        except RuntimeError as failure:
            raise Unavailable(f"packets cannot be dropped here: {failure}") from failure

    def throttle(self, cpus):
        """Gives the whole node `cpus` processors' time, 0.02 and up; wall time alone shows it."""
        self._confine(CPU_GROUPS, {"cpu.cfs_period_us": CPU_PERIOD_US, "cpu.cfs_quota_us": int(cpus * CPU_PERIOD_US)})

    def slow_disk(self, path, rate, with_others=""):
        """Holds what the node writes to, and reads from, the disk below `path` to `rate` B/s each; direct I/O alone. Nodes of one name `with_others` share that rate."""
        device = os.stat(path).st_dev
        disk = f"{os.major(device)}:{os.minor(device)}"
        self._confine(
            DISK_GROUPS,
            {f"blkio.throttle.{way}_bps_device": f"{disk} {rate}" for way in ("read", "write")},
            with_others,
        )

    def _confine(self, groups, settings, name=""):
        """Puts every process of the node into a control group with these settings, of its own or of that name."""
        group = groups / self.cluster.path.name / (name or self.name)
        try:
            group.mkdir(parents=True, exist_ok=True)
            for setting, value in settings.items():
                (group / setting).write_text(str(value))
        except OSError as failure:
            raise Unavailable(
                f"no {groups.name} control group of version 1 here, or not for this: {failure}"
            ) from failure
        for _ in range(STOP_ROUNDS):
            inside = set((group / "cgroup.procs").read_text().split())
            outside = [pid for pid in self.process_ids() if str(pid) not in inside and self.state(pid) not in "ZX"]
            if not outside:
                return
            for pid in outside:
                try:
                    (group / "cgroup.procs").write_text(str(pid))
                except ProcessLookupError:
                    pass  # it has ended by itself
        raise RuntimeError(f"the processes of {self.name} could not be put into {group}")

    def fill_disk(self, leave=0):
        """Fills the node's own disk but for `leave` bytes; the cluster must have been made with `disk`."""
        free = int(re.split(r"\s+", self.run("df", "--output=avail", "-B1", self.directory).strip())[-1])
        if free > leave:
            self.run("fallocate", "-l", str(free - leave), self.directory / "ballast")

    def site_entry(self):
        """The node in a site file, with the host key that it shows."""
        return {
            "name": self.name,
            "launcher": "ssh",
            "address": self.address,
            "user": "root",
            "host_key": self.host_key,
            "identity_file": str(self.cluster.path / "client_key"),
            "directory": str(self.directory),
            "rack": self.cluster.rack_of(self),
            "leaf": self.cluster.leaf_of(self),
        }

    def __repr__(self):
        return f"Node({json.dumps(self.name)})"
