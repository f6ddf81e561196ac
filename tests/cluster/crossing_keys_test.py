"""crossing_refused of class ib_path with a real subnet manager (opensm) on a simulated fabric (ibsim): it gives the keys to the ports, and the paths. The probe asks
the kernel's connection manager, which ibsim has not: a made-up one asks the subnet manager in its place, by saquery."""
import glob
import os
import shlex
import shutil
import signal
import subprocess
import unittest

from harness import main, wait_for
from made_up_ports import DEADLINE_S, MadeUpPorts, manager

PRELOAD = "/usr/lib/*/umad2sim/libumad2sim.so"
NODES = ("sm", "blue", "red", "store")  # store is blue's
FABRIC = "".join(f'Hca 1 "{name}"\n[1] "leaf"[{i}]\n\n' for i, name in enumerate(NODES, 1))
LEAF = 'Switch 8 "leaf"\n' + "".join(f'[{i}] "{name}"[1]\n' for i, name in enumerate(NODES, 1)) + "\n"
KEY, LIMITED, KEYS_READ = "0x8005", "0x0005", 8
# Members of the partition beside blue, and what the path is for red. Limited members have no path to each other (InfiniBand Architecture Specification, 10.9.3).
STATES = [
    ({"store": "full"}, "refused", f"put {KEY} into the table of no port"),
    ({"store": "limited", "red": "limited"}, "refused", "the subnet manager gives no path"),
    ({"store": "full", "red": "full"}, "answered", "the subnet manager gives a path"),
]
PORT = "/sys/class/infiniband/ibsim0/ports/1"
ROUNDS = int(os.environ.get("ASSAY_CROSSING_ROUNDS", "2"))


class Keys(MadeUpPorts):
    def setUp(self):
        absent = [program for program in ("opensm", "ibsim", "saquery") if not shutil.which(program)]
        if absent or not glob.glob(PRELOAD):
            packages = "apt-get install opensm ibsim-utils infiniband-diags"
            raise unittest.SkipTest(f"not installed: {' '.join(absent)} umad2sim: {packages}")
        super().setUp()
        (self.scratch / "net").write_text(LEAF + FABRIC)
        self.environment = {**os.environ, "OSM_CACHE_DIR": str(self.scratch)}
        self.fabric = fabric = subprocess.Popen(
            ["unshare", "--net", "ibsim", "-s", "-n", "net"],  # the names of its sockets are a network's
            cwd=self.scratch,
            env=self.environment,
            stdin=subprocess.PIPE,  # it ends with its input
            stdout=subprocess.PIPE,
            text=True,
        )
        for clean in (fabric.stdout.close, fabric.wait, fabric.kill, fabric.stdin.close):  # from the last on
            self.addCleanup(clean)
        while "Network simulator ready" not in (line := fabric.stdout.readline()):
            self.assertTrue(line, "ibsim ended")

        self.guids = {name: self.gid(name)[-19:].replace(":", "") for name in NODES}
        self.log = self.scratch / "opensm.log"
        self.manager = None

    def inside(self, node, *words):
        """A command on a node of the fabric."""
        namespace = f"--net=/proc/{self.fabric.pid}/ns/net"
        return [
            "nsenter",
            namespace,
            "env",
            f"SIM_HOST={node}",
            f"LD_PRELOAD={glob.glob(PRELOAD)[0]}",
            *map(str, words),
        ]

    def at(self, node, *words):
        return subprocess.run(
            self.inside(node, *words), cwd=self.scratch, capture_output=True, text=True, timeout=DEADLINE_S
        ).stdout.split()

    def gid(self, node):
        return self.at(node, "cat", f"{PORT}/gids/0")[0]

    def sweeps(self):
        return self.log.read_text(errors="replace").count("SUBNET UP") if self.log.exists() else 0

    def give(self, members):
        """Lets the subnet manager give the key to these nodes and to blue; each node's ports are as it then finds them."""
        partition = ", ".join(f"0x{self.guids[name]}={right}" for name, right in {"blue": "full", **members}.items())
        (self.scratch / "partitions").write_text(f"Default=0x7fff : ALL=full;\nBlue=0x0005 : {partition};\n")
        before = self.sweeps()
        if self.manager:
            self.manager.send_signal(signal.SIGHUP)  # reads the file again
        else:
            (self.scratch / "settings").write_text("force_log_flush TRUE\n")  # each line at once
            words = (
                "opensm",
                "-F",
                self.scratch / "settings",
                "--Pconfig",
                self.scratch / "partitions",
                "-f",
                self.log,
            )
            self.manager = subprocess.Popen(
                self.inside("sm", *words),
                cwd=self.scratch,
                env=self.environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for clean in (self.manager.wait, self.manager.kill):
                self.addCleanup(clean)
        wait_for(lambda: self.sweeps() > before, "the subnet manager is done", DEADLINE_S)
        for name in ("blue", "red"):
            keys = self.at(name, "cat", *(f"{PORT}/pkeys/{i}" for i in range(KEYS_READ)))
            wanted = {"full": {KEY}, "limited": {LIMITED}}.get({"blue": "full", **members}.get(name), set())
            self.assertEqual({key for key in keys if key in (KEY, LIMITED)}, wanted, name)
            facts = {f"pkeys/{i}": key for i, key in enumerate(keys)}
            # The simulator's own word is "IB"; the kernel's is this one.
            self.write_port(self.scratch / name, "mlx5_0", {"link_layer": "InfiniBand", **facts})

    def test_a_node_outside_the_partition_has_no_path_and_a_full_member_has_one(self):
        for number in range(ROUNDS):
            for members, outcome, evidence in STATES:
                self.give(members)
                words = ["--class=ib_path", "--path=p", f"--address={self.gid('store')}", f"--resource={KEY}"]
                words += ["--tries=1", "--timeout=4s"]
                queries = {
                    name: f"cd {self.scratch} && "
                    + shlex.join(self.inside(name, "saquery", "PR", "--sgid", self.gid(name)))
                    for name in ("red", "blue")
                }
                red, blue = (
                    self.begin(
                        rank, words, machine=self.scratch / name, **manager(), ASSAY_FAKE_SUBNET_MANAGER=queries[name]
                    )
                    for rank, name in enumerate(("red", "blue"))
                )
                with self.subTest(number=number, members=members):
                    crossing, control = self.record_of(red), self.record_of(blue)
                    self.assertEqual(control.get("tried"), "control answered", control)
                    self.assertEqual(crossing.get("outcome"), outcome, crossing)
                    self.assertIn(evidence, crossing["evidence"])


if __name__ == "__main__":
    main()
