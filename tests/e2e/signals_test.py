"""Early signs from the probe to the flag, and losses of carrier on a real port: real binaries, made-up drives, a pair of virtual ports."""
import json
import os
import subprocess
import unittest

from harness import BIN, ONCE, main
from nightly import NightBench, nightly

PROBES = BIN.parent / "libexec/assay/probes"


def health_log(media, wear=3):
    """Log page 02h: NVM Express Base Specification 2.0, 5.16.1.3."""
    log = bytearray(512)
    log[3], log[4], log[5] = 100, 10, wear
    log[160:168] = media.to_bytes(8, "little")
    return bytes(log)


class Drives(NightBench):
    """Nights of this machine with one made-up drive."""

    def setUp(self):
        super().setUp()
        self.history = self.scratch / "history.db"
        self.root = self.scratch / "machine"
        self.policy = self.write("policy.json", {"schema": "assay.policy/1"})

    def drive(self, serial, media):
        controller = self.root / "sys/class/nvme/nvme0"
        (controller / "nvme0n1").mkdir(parents=True, exist_ok=True)
        for name, text in (("transport", "pcie"), ("state", "live"), ("model", "PM9A3"), ("serial", serial)):
            (controller / name).write_text(text + "\n")
        (self.root / "dev").mkdir(exist_ok=True)
        (self.root / "dev/nvme0.nvme-health").write_bytes(health_log(media))

    def night(self, day, serial, media):
        self.drive(serial, media)
        figures = [
            {
                "id": metric,
                "title": metric,
                "probe": "health_drive",
                "parameters": {"root": str(self.root)},
                "metric": metric,
                "scope": "drive",
                "statistic": "max",
                "limit": {"at_most": 1000, "unit": "1"},
                "source": {"document": "the test", "status": "sourced"},
                **ONCE,
            }
            for metric in ("media_errors", "critical_warnings", "spare_below_threshold")
        ]
        targets = {**nightly(*figures), "node": {"drive": 1}}
        done = self.sweep(targets, "--history", self.history, night=f"2026-01-{day:02}")
        self.assertEqual(done.returncode, 0, done.stderr)

    def flags(self):
        done = self.assay(
            "drift", "judge", "--db", self.history, "--policy", self.policy, "-o", self.scratch / "drift.json"
        )
        self.assertIn(done.returncode, (1, 3), done.stderr)  # 3: its nights are long ago
        return [
            (flag["unit"], flag["metric"].split("{")[0], flag["rule"], flag["ratio"])
            for flag in json.loads((self.scratch / "drift.json").read_text())["flags"]
        ]

    def test_one_more_media_error_is_flagged_and_another_drive_with_old_ones_is_not(self):
        for day, media in ((1, 7), (2, 7)):
            self.night(day, "S6CLNE0T", media)
        self.assertEqual(self.flags(), [])
        self.night(3, "S6CLNF7Q", 90)  # another drive in the same place, used before
        self.night(4, "S6CLNF7Q", 90)
        self.assertEqual(self.flags(), [])
        self.night(5, "S6CLNF7Q", 91)
        self.assertEqual(self.flags(), [("drive:S6CLNF7Q", "health_drive.media_errors", "count", 1)])


class Ports(unittest.TestCase):
    """A pair of virtual ports in network and mount namespaces of their own."""

    def test_each_loss_of_carrier_is_counted(self):
        if os.geteuid() != 0:
            self.skipTest("namespaces need root")
        probe = f"{PROBES}/health_links --interface port0"
        script = f"""set -e
mount -t sysfs none /sys
ip link add port0 type veth peer name port1
ip link set port0 up; ip link set port1 up
{probe}
ip link set port1 down; ip link set port1 up; ip link set port1 down; ip link set port1 up
{probe}"""
        done = subprocess.run(
            ["unshare", "--net", "--mount", "sh", "-c", script], capture_output=True, text=True, timeout=60
        )
        if done.returncode != 0 and "not permitted" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        seen = [
            line["measurement"]["samples"]
            for line in lines
            if line.get("measurement", {}).get("metric") == "carrier_losses"
        ]
        self.assertEqual(len(seen), 2)
        self.assertEqual(seen[1][0] - seen[0][0], 2)
        causes = [line["condition"]["value"] for line in lines if line.get("condition", {}).get("name") == "module"]
        self.assertEqual(len(causes), 2)
        self.assertTrue(
            all(cause.startswith("absent: the module of port0 is not reported: ") for cause in causes), causes
        )


if __name__ == "__main__":
    main()
