"""Attempts over RDMA CM on the soft-RoCE port of a virtual machine with the stock kernel: a target that listens is an answer and sees both, a port without a listener
refuses, and silence is none."""
import collections
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from harness import main

SCRIPT = pathlib.Path(__file__).with_name("encryption_guest")
NEEDED = ("qemu-system-x86_64", "busybox", "cpio", "depmod", "apt-get", "dpkg", "ip", "rdma")
MODULES = ("crc32_generic", "veth", "rdma_rxe", "rdma_ucm")
PATIENCE_S = 900  # the kernel comes by the network the first time


class RdmaCrossing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        absent = [program for program in NEEDED if not shutil.which(program)]
        if absent:
            raise unittest.SkipTest(f"not installed: {' '.join(absent)}")
        base = pathlib.Path(tempfile.mkdtemp(prefix="assay-rdma-crossing-", dir="/var/tmp"))
        cls.addClassCleanup(shutil.rmtree, base)
        (base / "bin").mkdir()
        shutil.copy(os.environ["ASSAY_CROSSING"], base / "bin")
        subprocess.run([SCRIPT, base, "rdma_crossing_init", "rdma", *MODULES], check=True, timeout=PATIENCE_S)
        cls.records = collections.defaultdict(dict)
        for line in (base / "console").read_text(errors="replace").splitlines():
            if not line.startswith("record "):
                continue
            _, case, rank, text = line.split(" ", 3)
            entry = json.loads(text)
            if "condition" in entry:
                cls.records[case, int(rank)][entry["condition"]["name"]] = entry["condition"]["value"]
            if "measurement" in entry:
                cls.records[case, int(rank)][entry["measurement"]["metric"]] = entry["measurement"]["samples"]

    def check(self, case, outcome, evidence):
        found = self.records[case, 0]
        self.assertEqual(found.get("outcome"), outcome, found)
        self.assertIn(evidence, found["evidence"])
        self.assertEqual(found["answered"], [1 if outcome == "answered" else 0])

    def test_a_port_without_a_listener_refuses(self):
        self.check("no-listener", "refused", "RDMA CM: rejected, reason 8")

    def test_nothing_that_comes_back_is_no_refusal(self):
        self.check("silent", "no_answer", "nothing came back")
        self.check("absent", "no_answer", "10.9.0.77 is on this node's link")

    def test_a_target_answers_and_sees_the_control_and_the_crossing(self):
        self.check("open", "answered", "RDMA CM: the connection was accepted")
        self.assertEqual(self.records["open", 1]["tried"], "control answered")
        target = self.records["open", 2]
        self.assertEqual((target["tried"], target["answered"]), ("control seen", [1]), target)
        self.assertEqual(target["evidence"], "a request of RDMA CM for a connection arrived")


if __name__ == "__main__":
    main()
