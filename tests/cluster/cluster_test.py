"""The test cluster itself: its nodes are apart from each other, its knobs do what they say, and nothing of it stays."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from cluster import CPU_GROUPS, Cluster
from harness import main, wait_for

HOLD = "from cluster import Cluster\nimport time\nwith Cluster(2) as cluster:\n    print(cluster.path, *(n.init for n in cluster.nodes), flush=True)\n    time.sleep(600)\n"


class TestCluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(3, disk="8m")
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)

    def answers(self, node, prefix=None):
        """What the sshd of `node` shows to the head, or to the user that `prefix` makes of us."""
        scan = ["ssh-keyscan", "-T", "2", "-t", "ed25519", node.address]
        return subprocess.run(
            [*(prefix or self.cluster.head), *scan], capture_output=True, text=True, timeout=30
        ).stdout

    def assert_answers(self, node, prefix=None):
        wait_for(lambda: node.host_key in self.answers(node, prefix), f"{node.name} answers")

    def test_every_node_has_a_name_a_boot_and_processes_of_its_own(self):
        names = [node.run("hostname").strip() for node in self.cluster.nodes]
        self.assertEqual(names, ["n01", "n02", "n03"])
        self.assertEqual(len({node.run("cat", "/proc/sys/kernel/random/boot_id") for node in self.cluster.nodes}), 3)
        self.assertEqual(self.cluster["n01"].run("ls", "/sys/class/net").split(), ["eth0", "lo"])
        wait_for(lambda: self.cluster.strangers() == [], "only sshd runs on the nodes")
        sleeper = self.cluster["n02"].start("sleep", "600")
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        wait_for(
            lambda: self.cluster.strangers() == [("n02", "sleep 600")],
            "the sleeper is seen on its node and on no other",
        )

    def test_a_node_that_is_cut_off_answers_again_once_it_rejoins(self):
        node = self.cluster["n01"]
        self.assert_answers(node)
        node.cut_off()
        self.assertEqual(self.answers(node), "")
        node.rejoin()
        self.assert_answers(node)

    def test_packets_are_dropped_from_one_source_alone(self):
        one, two, three = self.cluster.nodes
        one.drop(1.0, source=two)
        self.assertEqual(self.answers(one, two.inside()), "")
        self.assert_answers(one, three.inside())
        one.run("iptables", "-F", "INPUT")

    def test_a_link_is_held_in_both_directions_and_a_pair_alone_by_its_address(self):
        one, two, three = self.cluster.nodes
        one.slow_link("100mbit")
        self.assertIn("rate 100Mbit", one.run("tc", "qdisc", "show", "dev", "eth0"))
        self.assertIn("rate 100Mbit", self.cluster.at_switch("tc", "qdisc", "show", "dev", "p1"))
        self.cluster.slow_pair(two, three, "50mbit")
        self.assertIn("rate 50Mbit", two.run("tc", "class", "show", "dev", "eth0"))
        self.assertEqual(two.run("tc", "filter", "show", "dev", "eth0").count("match 0a4d0104/ffffffff"), 1)
        for node in self.cluster.nodes:
            node.reboot()
        self.assertNotIn("rate", two.run("tc", "class", "show", "dev", "eth0"))

    def test_a_frozen_node_runs_nothing_until_it_is_thawed(self):
        node = self.cluster["n01"]
        node.freeze()
        self.assertEqual({node.state(pid) for pid in node.process_ids()}, {"T"})
        self.assertEqual(self.answers(node), "")
        node.thaw()
        self.assert_answers(node)

    def test_a_killed_node_takes_everything_with_it_and_boots_again(self):
        node = self.cluster["n01"]
        boot = node.run("cat", "/proc/sys/kernel/random/boot_id")
        sleeper = node.start("sleep", "600")
        wait_for(lambda: ("n01", "sleep 600") in self.cluster.strangers(), "the sleeper runs")
        node.kill()
        self.assertNotEqual(sleeper.wait(30), 0)
        self.assertEqual(self.answers(node), "")
        node.boot()
        node.wait_until_up()
        self.assertNotEqual(node.run("cat", "/proc/sys/kernel/random/boot_id"), boot)
        self.assert_answers(node)

    def test_a_changed_host_key_is_shown_after_a_boot_and_the_site_keeps_the_old_one(self):
        node = self.cluster["n03"]
        before = node.host_key
        node.new_host_key()
        node.reboot()
        self.assert_answers(node)
        self.assertNotIn(before, self.answers(node))
        self.assertIn(before, self.cluster.site_file.read_text())

    def test_a_full_disk_takes_nothing_more(self):
        node = self.cluster["n02"]
        node.run("cp", "/etc/hosts", node.directory / "file")
        node.fill_disk()
        with self.assertRaisesRegex(RuntimeError, "No space left on device"):
            node.run("cp", "/etc/hosts", node.directory / "other")
        neighbour = self.cluster["n03"]
        neighbour.run("cp", "/etc/hosts", neighbour.directory / "file")

    def test_a_throttled_node_waits_for_its_share(self):
        node = self.cluster["n01"]
        node.throttle(0.1)
        group = CPU_GROUPS / self.cluster.path.name / "n01"
        busy = subprocess.Popen(
            [
                *self.cluster.head,
                "ssh",
                "-F",
                "none",
                "-i",
                self.cluster.path / "client_key",
                "-o",
                "StrictHostKeyChecking=no",
                "-o",
                "UserKnownHostsFile=/dev/null",
                "-o",
                "LogLevel=ERROR",
                f"root@{node.address}",
                "timeout 15 sh -c 'while :; do :; done'",
            ]
        )
        self.addCleanup(busy.wait)
        self.addCleanup(busy.kill)
        throttled = lambda: int((group / "cpu.stat").read_text().split("nr_throttled ")[1].split()[0])
        wait_for(lambda: throttled() > 3, "the kernel holds the node back")

    def test_a_killed_maker_leaves_no_process_and_the_next_cluster_removes_its_folder(self):
        maker = subprocess.Popen(
            [sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True, cwd=pathlib.Path(__file__).parent
        )
        path, *inits = maker.stdout.readline().split()
        self.assertEqual(len(inits), 2)
        maker.send_signal(signal.SIGKILL)
        maker.wait(30)
        maker.stdout.close()
        wait_for(lambda: not any(os.path.exists(f"/proc/{init}/exe") for init in inits), "its nodes are gone")
        self.assertTrue(os.path.exists(path))
        with Cluster(1):
            self.assertFalse(os.path.exists(path))

    def test_an_installation_below_tmp_is_seen_by_nodes_that_have_a_tmp_of_their_own(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder, tempfile.TemporaryDirectory(dir="/tmp") as other:
            program = pathlib.Path(folder) / "bin/program"
            program.parent.mkdir()
            program.write_text("#!/bin/sh\necho seen\n")
            program.chmod(0o755)
            with mock.patch.dict(os.environ, ASSAY_PLACED=folder), Cluster(1, disk="8m") as cluster:
                node = cluster["n01"]
                for _ in range(2):
                    self.assertEqual(node.run(program), "seen\n")
                    self.assertEqual(node.run("sh", "-c", f"test -e {other} || echo hidden"), "hidden\n")
                    node.reboot()
            self.assertTrue(program.exists())


if __name__ == "__main__":
    main()
