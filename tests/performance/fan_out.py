#!/usr/bin/env python3
"""Time and CPU to bring a no-op probe to N ssh nodes, run it there and collect what it says: assay beside pdsh, clush and ansible.

The nodes are namespaces of this machine (tests/cluster), all tools reach them through the same OpenSSH, at most FAN_OUT at a time. Each round runs
every tool once, in an order that turns with the round, on nodes whose working folders were emptied before: nothing is there from the round before.
assay does what `assay accept` does: it plans, hashes and stores agent and probe, runs, checks the record, judges, reports and signs; the
others copy one file and run it. Wall time, and CPU time of everything that took part, nodes and their sshd included (cpuacct), as
medians, and each tool over assay as the median of the rounds' ratios. A tool that is not installed is named and left out.

Example: fan_out.py build/release/cluster --nodes 64 --rounds 5       (an installation with fake_probe; target cluster_installation)
Exit code 0 when every round of every tool reached every node; the numbers are for the reader to judge. Root only.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [str(pathlib.Path(__file__).parent.parent / "cluster")]
from cluster import Cluster, Unavailable  # noqa: E402

FAN_OUT = 32
DEADLINE_S = 600
ACCOUNTS = pathlib.Path("/sys/fs/cgroup/cpuacct")
PROGRAMS = {"assay": [], "assay, agent there": [], "pdsh": ["pdsh", "pdcp"], "clush": ["clush"], "ansible": ["ansible"]}
REQUIREMENT = {
    "id": "noop",
    "title": "noop",
    "probe": "fake_probe",
    "parameters": {},
    "metric": "number",
    "scope": "node",
    "repeat": {"attempts": 1, "more_attempts": 0},
    "reproducibility": {"u": 1e-9, "source": {"document": "a made-up number", "status": "sourced"}},
    "limit": {"at_least": 1, "unit": "1"},
    "source": {"document": "this script", "status": "sourced"},
}


class Account:
    """CPU time of this process and all that it starts from now on, in s."""

    def __init__(self):
        self.group = ACCOUNTS / f"assay-fan-out-{os.getpid()}"
        self.group.mkdir()
        (self.group / "cgroup.procs").write_text(str(os.getpid()))

    def used_s(self):
        return int((self.group / "cpuacct.usage").read_text()) / 1e9

    def close(self):
        (ACCOUNTS / "cgroup.procs").write_text(str(os.getpid()))
        self.group.rmdir()


class Tools:
    """How each tool brings the probe to every node and runs it. Every method returns how many nodes answered."""

    def __init__(self, installation, cluster, scratch):
        self.installation, self.cluster, self.scratch = installation, cluster, scratch
        self.probe = installation / "libexec/assay/probes/fake_probe"
        self.there = "/root/fake_probe"  # on each node; its home is its own
        self.names = ",".join(node.name for node in cluster.nodes)
        known = scratch / "known_hosts"
        known.write_text("".join(f"{node.name},{node.address} {node.host_key}\n" for node in cluster.nodes))
        config = scratch / "ssh_config"
        config.write_text(
            f"Host *\n  User root\n  IdentityFile {cluster.path}/client_key\n  IdentitiesOnly yes\n  UserKnownHostsFile {known}\n"
            "  StrictHostKeyChecking yes\n  BatchMode yes\n  LogLevel ERROR\n"
            + "".join(f"Host {node.name}\n  HostName {node.address}\n" for node in cluster.nodes)
        )
        self.config = config
        # What the three tools share: an ssh with this configuration first in PATH, so that no tool needs options of its own.
        binaries = scratch / "bin"
        binaries.mkdir()
        for name in ("ssh", "scp", "sftp"):
            (binaries / name).write_text(f'#!/bin/sh\nexec /usr/bin/{name} -F {config} "$@"\n')
            (binaries / name).chmod(0o755)
        self.environment = dict(
            os.environ,
            PATH=f"{binaries}:{os.environ['PATH']}",
            PDSH_RCMD_TYPE="ssh",
            ANSIBLE_FORKS=str(FAN_OUT),
            ANSIBLE_NOCOWS="1",
            ANSIBLE_PYTHON_INTERPRETER="/usr/bin/python3",
            ANSIBLE_SSH_ARGS="",
            ANSIBLE_LOCAL_TEMP=str(scratch / "ansible"),
            XDG_STATE_HOME=str(scratch / "state"),
            LC_ALL="C.UTF-8",
        )
        (scratch / "inventory").write_text("".join(f"{node.name}\n" for node in cluster.nodes))
        (scratch / "profile.json").write_text(
            json.dumps(
                {
                    "schema": "assay.profile/1",
                    "name": "noop",
                    "title": "noop",
                    "revision": 1,
                    "requirements": [REQUIREMENT],
                }
            )
        )

    def call(self, *words):
        done = subprocess.run(
            [*self.cluster.head, *map(str, words)],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{words[0]} ended with {done.returncode}: {(done.stderr or done.stdout)[-500:]}")
        return done.stdout

    def empty_nodes(self, keep_agents=False):
        for node in self.cluster.nodes:
            for folder in (node.directory, node.path / "home"):
                for entry in folder.iterdir():
                    if entry.name == "agents" and keep_agents:
                        continue
                    shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def assay(self):
        out = self.scratch / "run"
        shutil.rmtree(out, ignore_errors=True)
        self.call(
            self.installation / "bin/assay",
            "accept",
            "--profile",
            self.scratch / "profile.json",
            "--site",
            self.cluster.site_file,
            "--out",
            out,
        )
        return json.loads((out / "verdict.json").read_text())["counts"]["pass"]

    def pdsh(self):
        self.call("pdcp", "-f", FAN_OUT, "-w", self.names, self.probe, self.there)
        return self.call("pdsh", "-f", FAN_OUT, "-w", self.names, self.there).count('"status":"complete"')

    def clush(self):
        self.call("clush", "-f", FAN_OUT, "-w", self.names, "--copy", self.probe, "--dest", self.there)
        return self.call("clush", "-f", FAN_OUT, "-w", self.names, self.there).count('"status":"complete"')

    def ansible(self):
        # `script` copies and runs in one task, the fewest that ansible can do it with.
        return (
            self.call("ansible", "all", "-i", self.scratch / "inventory", "-m", "script", "-a", self.probe).count(
                '\\"status\\":\\"complete\\"'
            )
            // 2
        )

    def run(self, name):
        """(nodes that answered, wall s) of one tool."""
        self.empty_nodes(keep_agents=name == "assay, agent there")
        begin = time.monotonic()
        answered = getattr(self, name.split(",")[0])()
        return answered, time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "installation", type=pathlib.Path, help="folder with bin/assay and libexec/assay/probes/fake_probe"
    )
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    present = [name for name, programs in PROGRAMS.items() if all(map(shutil.which, programs))]
    for name in PROGRAMS.keys() - present:
        print(f"left out: {name} is not installed")
    print(
        f"load of the machine before: {os.getloadavg()[0]:.2f} on {os.cpu_count()} CPUs; {given.nodes} nodes, {FAN_OUT} at a time, {given.rounds} rounds",
        flush=True,
    )
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="assay-fan-out-", dir="/var/tmp"))
    account = Account()
    taken = {name: [] for name in present}
    well = True
    try:
        with Cluster(given.nodes) as cluster:
            tools = Tools(given.installation.resolve(), cluster, scratch)
            for turn in range(given.rounds):
                for name in present[turn % len(present) :] + present[: turn % len(present)]:
                    before = account.used_s()
                    answered, wall = tools.run(name)
                    taken[name].append((wall, account.used_s() - before))
                    well = well and answered == given.nodes
                    print(
                        f"round {turn + 1}  {name:<20} {wall:7.2f} s wall  {taken[name][-1][1]:7.2f} s CPU  {answered} of {given.nodes} nodes",
                        flush=True,
                    )
    except Unavailable as reason:
        print(f"fan_out: {reason}", file=sys.stderr)
        return 77
    finally:
        account.close()
        shutil.rmtree(scratch, ignore_errors=True)
    print(
        f"\n| tool | wall time, median | CPU time, median | wall over assay | CPU over assay |\n|---|---|---|---|---|"
    )
    for name, runs in taken.items():
        ratios = [statistics.median(run[i] / other[i] for run, other in zip(runs, taken["assay"])) for i in (0, 1)]
        print(
            f"| {name} | {statistics.median(run[0] for run in runs):.1f} s | {statistics.median(run[1] for run in runs):.1f} s | {ratios[0]:.2f} | {ratios[1]:.2f} |"
        )
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
