"""Two machines of namespaces behind Open vSwitch in user space: all packets pass software, which must show as an offloaded share of 0,
and as nothing where nothing was counted. Needs root and openvswitch-switch; it uses a database and a switch of its own."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import uuid

from harness import main

NEEDED = ("ip", "unshare", "ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-appctl", "ethtool")
PATIENCE_S = 120
ADDRESSES = ("10.213.0.1", "10.213.0.2")
PORT = 29517
BRIDGE = f"ab{os.getpid()}"  # a device of the machine's own network, where another test may run
# A window of a second has packets even where the switch waits for a processor; two of them show that there are rates.
WINDOWS = ("--window=1s", "--min-samples=2", "--max-samples=2", "--warmup-limit=0s")


def run(*words, **more):
    return subprocess.run([str(word) for word in words], check=True, timeout=PATIENCE_S, capture_output=True, **more)


class OpenVSwitch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        absent = [program for program in NEEDED if not shutil.which(program)]
        if os.geteuid() != 0 or absent or not os.path.exists("/dev/net/tun"):
            raise unittest.SkipTest(f"needs root, /dev/net/tun and, not installed: {' '.join(absent) or 'nothing'}")
        cls.base = pathlib.Path(tempfile.mkdtemp(prefix="assay-ovs-"))
        cls.addClassCleanup(shutil.rmtree, cls.base)
        cls.environment = dict(os.environ, OVS_RUNDIR=str(cls.base))
        cls.addClassCleanup(cls.stop_switch)
        run(pathlib.Path(__file__).with_name("open_vswitch"), cls.base)
        add = ("add-br", BRIDGE, "--", "set", "bridge", BRIDGE, "datapath_type=netdev")
        run("ovs-vsctl", "--timeout=60", *add, env=cls.environment)
        cls.addClassCleanup(run, "ovs-vsctl", "--timeout=60", "del-br", BRIDGE, env=cls.environment)
        cls.names = []
        for number, address in enumerate(ADDRESSES):
            cls.add_machine(f"{BRIDGE}-{number}", f"{BRIDGE}n{number}", address)

    @classmethod
    def stop_switch(cls):
        for file in cls.base.glob("*.pid"):
            os.kill(int(file.read_text()), signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE_S
        while list(cls.base.glob("*.pid")) and time.monotonic() < deadline:  # each removes its own
            time.sleep(0.1)

    @classmethod
    def add_machine(cls, name, port, address):
        run("ip", "netns", "add", name)
        cls.addClassCleanup(run, "ip", "netns", "del", name)
        run("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "link", "set", port, "up")
        run("ovs-vsctl", "--timeout=60", "add-port", BRIDGE, port, env=cls.environment)
        run("ip", "netns", "exec", name, "ethtool", "-K", "eth0", "tx", "off")  # the switch finishes no checksum
        for words in (
            ("addr", "add", f"{address}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("link", "set", "lo", "up"),
        ):
            run("ip", "-n", name, *words)
        boot = cls.base / f"{name}.boot_id"
        boot.write_text(f"{uuid.uuid4()}\n")
        cls.names.append((name, boot))

    def ranks(self, probe, *flags):
        started = []
        for rank, (name, boot) in enumerate(self.names):
            words = [
                os.environ[probe],
                "--quick",
                f"--rank={rank}",
                "--world=2",
                f"--rendezvous={ADDRESSES[0]}:{PORT}",
                *flags,
            ]
            script = f'mount --bind {boot} /proc/sys/kernel/random/boot_id && exec "$@"'
            environment = dict(self.environment, ASSAY_TOKEN="0123456789abcdef" * 2)
            started.append(
                subprocess.Popen(
                    ["ip", "netns", "exec", name, "unshare", "-m", "sh", "-c", script, "sh", *words],
                    env=environment,
                    stdout=subprocess.PIPE,
                )
            )
        records = []
        for process in started:
            text, _ = process.communicate(timeout=PATIENCE_S)
            lines = [json.loads(line) for line in text.splitlines()]
            self.assertEqual(lines[-1]["end"]["status"], "complete", lines[-1])
            conditions = {
                line["condition"]["name"]: line["condition"]["value"] for line in lines if "condition" in line
            }
            samples = {
                line["measurement"]["metric"]: line["measurement"]["samples"] for line in lines if "measurement" in line
            }
            records.append((conditions, samples))
        return records

    def test_a_switch_in_software_offloads_nothing_and_takes_processors(self):
        records = self.ranks("VIRTUAL_NETWORK", *WINDOWS)
        for conditions, _ in records:
            self.assertEqual((conditions["path"], conditions["offload_source"]), ("fabric", "ovs"))
            self.assertEqual(conditions["offloaded_share"], 0)
        samples = records[0][1]
        for metric in ("forward_packet_rate", "backward_packet_rate", "connection_rate", "connection_time"):
            self.assertGreater(min(samples[metric]), 0, metric)
        self.assertEqual(len(samples["busy_cores"]), 3)
        self.assertGreater(max(samples["switch_cores"]), 0.01)
        self.assertEqual(records[1][1], {})

    def test_a_stream_through_it_has_a_share_of_0_too_and_is_not_encrypted(self):
        for conditions, _ in self.ranks("HOST_TCP_BANDWIDTH", "--time-limit=1s"):
            self.assertEqual((conditions["offloaded_share"], conditions["encryption"]), (0, "none"))
            self.assertNotIn("encryption_offload", conditions)

    def test_where_nothing_counts_there_is_no_share(self):
        for conditions, _ in self.ranks("VIRTUAL_NETWORK", *WINDOWS, "--offload-counters=none"):
            self.assertNotIn("offloaded_share", conditions)
            self.assertNotIn("offload_source", conditions)
        for conditions, _ in self.ranks("VIRTUAL_NETWORK", *WINDOWS, "--offload-counters=ports"):
            self.assertNotIn("offloaded_share", conditions)


if __name__ == "__main__":
    main()
