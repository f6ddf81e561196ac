#!/usr/bin/env python3
"""cluster: a cluster on one machine. Its nodes are namespaces behind a bridge, each with an sshd, reached from a head of its own.

    with Cluster(8) as cluster:
        subprocess.run([*cluster.head, "assay", "accept", "--site", cluster.site_file])
        cluster["n03"].freeze()

Nothing of it outlives the process that made it, killed or not: the kernel kills the nodes with their parent, and their networks and
mounts go with them. What may stay are a folder in /var/tmp and empty control groups; the next cluster removes those of dead makers.
Nothing is changed in the machine's own network. Root only; Unavailable, a unittest.SkipTest, says what a machine lacks.

    cluster.py COUNT COMMAND...   runs COMMAND at the head of a cluster of COUNT nodes; CLUSTER_SITE is the path of its site file
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from node import BOOT_PATIENCE_S, CPU_GROUPS, DISK_GROUPS, Node, Unavailable, command

# Where ip and tc are, and a root shell may not look; and in which language the programs answer whose words are read.
os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/local/sbin:/usr/sbin:/sbin"
os.environ["LC_ALL"] = "C.UTF-8"

HEAD_ADDRESS = "10.77.0.1/16"
MOST_NODES = 1000
NODES_PER_RACK, NODES_PER_LEAF = 8, 16
PROGRAMS = ["ip", "tc", "nsenter", "unshare", "setpriv", "ssh", "ssh-keygen", "/usr/sbin/sshd"]
PREFIX = "assay-cluster-"
PLACE = "/var/tmp"  # the nodes have their own /tmp and /run


def check_machine():
    """Raises Unavailable, with the reason, where no cluster can be made."""
    if os.geteuid() != 0:
        raise Unavailable("a test cluster needs root, for namespaces and a bridge")
    for program in PROGRAMS:
        if shutil.which(program) is None:
            raise Unavailable(f"{program} is not installed")
    probe = [
        "unshare",
        "--net",
        "--uts",
        "--ipc",
        "--mount",
        "--pid",
        "--fork",
        "--mount-proc",
        "sh",
        "-c",
        "mount -t sysfs sysfs /sys && ip link add br0 type bridge && ip link add one type veth peer name two",
    ]
    done = subprocess.run(probe, capture_output=True, text=True, timeout=BOOT_PATIENCE_S)
    if done.returncode != 0:
        raise Unavailable(f"no namespaces, bridge or veth here: {done.stderr.strip()}")


def remove_stale():
    """Removes what clusters left whose makers are dead."""
    groups = [path for place in (CPU_GROUPS, DISK_GROUPS) for path in place.glob(PREFIX + "*")]
    for path in [*pathlib.Path(PLACE).glob(PREFIX + "*"), *groups]:
        maker = path.name[len(PREFIX) :].split("-")[0]
        if not maker.isdigit() or os.path.exists(f"/proc/{maker}"):
            continue
        if path.parent in (CPU_GROUPS, DISK_GROUPS):
            remove_groups(path)
        else:
            shutil.rmtree(path, ignore_errors=True)


def remove_groups(path):
    """Removes a control group and those in it; one that still has dying processes is left to the next cluster."""
    for group in [*(path.iterdir() if path.is_dir() else []), path]:
        if group.is_dir():
            try:
                group.rmdir()
            except OSError:
                pass  # not empty yet


class Cluster:
    """`count` nodes n01, n02, …, up when the with block begins and gone when it ends. `disk` is the size of the disk that each
    node's work directory and /tmp lie on, such as "32m"; without it they share the machine's."""

    def __init__(self, count, disk=""):
        if not 1 <= count <= MOST_NODES:
            raise ValueError(f"{count} nodes are not 1 to {MOST_NODES}")
        self.count = count
        self.disk = disk
        self.nodes = []
        self.switch = None

    def __enter__(self):
        check_machine()
        remove_stale()
        self.path = pathlib.Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=PLACE))
        try:
            self._up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            if node.holder is not None:
                node.holder.kill()  # all of them first: each takes a moment to go
        for node in self.nodes:
            node.kill()
        if self.switch is not None:
            self.switch.kill()
            self.switch.wait(BOOT_PATIENCE_S)
        for groups in (CPU_GROUPS, DISK_GROUPS):
            remove_groups(groups / self.path.name)
        shutil.rmtree(self.path, ignore_errors=True)

    def _up(self):
        command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "assay-test", "-f", self.path / "client_key")
        # The switch is a network namespace that lives as long as this process, which does nothing but hold it.
        self.switch = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", "echo ready; exec sleep infinity"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        if self.switch.stdout.readline() != "ready\n":
            raise RuntimeError("the switch's network namespace could not be made")
        self.switch.stdout.close()
        batch = f"link set lo up\nlink add br0 type bridge\naddr add {HEAD_ADDRESS} dev br0\nlink set br0 up\n"
        self.at_switch("ip", "-batch", "-", input=batch)
        self.nodes = [Node(self, number + 1, self.disk) for number in range(self.count)]
        lines = [f"{node.address} {node.name}\n" for node in self.nodes]
        (self.path / "hosts").write_text(
            "127.0.0.1 localhost\n" + HEAD_ADDRESS.split("/")[0] + " head\n" + "".join(lines)
        )
        for node in self.nodes:
            node.boot()
        for node in self.nodes:
            node.wait_until_up()
        self.site_file = self.path / "site.json"
        self.site_file.write_text(json.dumps(self.site(), indent=1))

    def __getitem__(self, name):
        return next(node for node in self.nodes if node.name == name)

    @property
    def head(self):
        """The words before a command that is to run at the head, from where every node is reached."""
        return ["nsenter", f"--net=/proc/{self.switch.pid}/ns/net", "--"]

    def at_switch(self, *words, **more):
        """Runs a program in the switch's network namespace, where node number K hangs at the port pK."""
        return command(*self.head, *words, **more)

    def site(self):
        """The site as an object; every node with the host key that it was made with."""
        return {"schema": "assay.site/1", "name": "namespaces", "nodes": [node.site_entry() for node in self.nodes]}

    def rack_of(self, node):
        return f"r{1 + self.nodes.index(node) // NODES_PER_RACK:02d}"

    def leaf_of(self, node):
        return f"l{1 + self.nodes.index(node) // NODES_PER_LEAF:02d}"

    def slow_pair(self, one, other, rate):
        """Holds the traffic between two nodes to `rate` in each direction; that of either with all others is untouched."""
        one.slow_towards(other, rate)
        other.slow_towards(one, rate)

    def process_ids(self):
        """Process ids by name of node, of every process of every node."""
        names = {}
        for node in self.nodes:
            try:
                names[os.readlink(f"/proc/{node.init}/ns/pid")] = node.name
            except OSError:
                pass  # the node is dead, and so is everything on it
        found = {}
        for entry in os.scandir("/proc"):
            if not entry.name.isdigit():
                continue
            try:
                name = names.get(os.readlink(f"/proc/{entry.name}/ns/pid"))
            except OSError:
                continue  # it has just ended
            if name is not None:
                found.setdefault(name, []).append(int(entry.name))
        return found

    def strangers(self):
        """(node, command line) of every process on the nodes but their sshd and its sessions."""
        found = []
        for name, pids in self.process_ids().items():
            for pid in pids:
                try:
                    line = (
                        pathlib.Path(f"/proc/{pid}/cmdline")
                        .read_bytes()
                        .replace(b"\0", b" ")
                        .decode(errors="replace")
                        .strip()
                    )
                except OSError:
                    continue  # it has just ended
                if line and not line.startswith(
                    ("sshd:", "sshd-session:", "sshd-auth:", "/usr/sbin/sshd ")
                ):  # a zombie has no command line
                    found.append((name, line))
        return found


def main():
    if len(sys.argv) < 3 or not sys.argv[1].isdigit():
        print(__doc__.strip().split("\n")[-1].strip(), file=sys.stderr)
        return 2
    begin = time.monotonic()
    try:
        with Cluster(int(sys.argv[1])) as cluster:
            print(f"{cluster.count} nodes up in {time.monotonic() - begin:.1f} s", file=sys.stderr)
            return subprocess.run(
                [*cluster.head, *sys.argv[2:]], env=dict(os.environ, CLUSTER_SITE=str(cluster.site_file))
            ).returncode
    except Unavailable as reason:
        print(f"cluster: {reason}", file=sys.stderr)
        return 77


if __name__ == "__main__":
    sys.exit(main())
