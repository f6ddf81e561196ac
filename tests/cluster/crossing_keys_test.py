"""crossing_refused of class ib_path with partition keys that a real subnet manager (opensm) gives to the ports of a simulated fabric (ibsim). The query for the path
itself goes to a made-up connection manager, since ibsim has no kernel's."""
import glob
import os
import shutil
import subprocess
import unittest

from harness import main
from made_up_ports import DEADLINE_S, MadeUpPorts, manager

PRELOAD = "/usr/lib/*/umad2sim/libumad2sim.so"
FABRIC = "".join(f'Hca 1 "{name}"\n[1] "leaf"[{i}]\n\n' for i, name in enumerate(("sm", "blue", "red"), 1))
LEAF = 'Switch 8 "leaf"\n' + "".join(f'[{i}] "{name}"[1]\n' for i, name in enumerate(("sm", "blue", "red"), 1)) + "\n"
KEY, KEYS_READ = "0x8005", 8
PORT = "/sys/class/infiniband/ibsim0/ports/1"
ROUNDS = int(os.environ.get("ASSAY_CROSSING_ROUNDS", "2"))


class Keys(MadeUpPorts):
    def setUp(self):
        absent = [program for program in ("opensm", "ibsim") if not shutil.which(program)]
        if absent or not glob.glob(PRELOAD):
            raise unittest.SkipTest(f"not installed: {' '.join(absent)} umad2sim: apt-get install opensm ibsim-utils")
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

    def at(self, node, *words):
        return subprocess.run(
            ["nsenter", f"--net=/proc/{self.fabric.pid}/ns/net", *words],
            cwd=self.scratch,
            env={**self.environment, "SIM_HOST": node, "LD_PRELOAD": glob.glob(PRELOAD)[0]},
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        ).stdout.split()

    def give(self, *members):
        """Lets the subnet manager give the key to these nodes; each node's ports are as it then finds them."""
        guids = {name: self.at(name, "cat", f"{PORT}/gids/0")[0][-19:].replace(":", "") for name in ("blue", "red")}
        partition = ", ".join(f"0x{guids[name]}=full" for name in members)
        (self.scratch / "partitions").write_text(f"Default=0x7fff : ALL=full;\nBlue=0x0005 : {partition};\n")
        self.at("sm", "opensm", "-o", "--Pconfig", self.scratch / "partitions", "-f", self.scratch / "opensm.log")
        for name in guids:
            keys = self.at(name, "cat", *(f"{PORT}/pkeys/{i}" for i in range(KEYS_READ)))
            facts = {f"pkeys/{i}": key for i, key in enumerate(keys)}
            # The simulator's own word is "IB"; the kernel's is this one.
            self.write_port(self.scratch / name, "mlx5_0", {"link_layer": "InfiniBand", **facts})

    def test_a_node_without_the_key_is_refused_and_one_with_it_asks(self):
        words = ["--class=ib_path", "--path=p", "--address=fe80::2", f"--resource={KEY}", "--tries=1", "--timeout=1s"]
        for number in range(ROUNDS):
            for leak in (False, True):
                self.give("blue", *(["red"] if leak else []))
                red, blue = (
                    self.begin(rank, words, machine=self.scratch / name, **manager())
                    for rank, name in enumerate(("red", "blue"))
                )
                with self.subTest(number=number, leak=leak):
                    crossing, control = self.record_of(red), self.record_of(blue)
                    self.assertEqual(control.get("tried"), "control answered", control)
                    self.assertEqual(crossing.get("outcome"), "answered" if leak else "refused", crossing)
                    self.assertIn(
                        "gives a path" if leak else f"put {KEY} into the table of no port", crossing["evidence"]
                    )


if __name__ == "__main__":
    main()
