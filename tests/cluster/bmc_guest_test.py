"""A BMC in band: a virtual machine's own kernel driver asks ipmi_sim, with a module that answers DCMI, and power_bmc and power_cap read /dev/ipmi0 there."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

from harness import main

SCRIPT = pathlib.Path(__file__).with_name("bmc_guest")
NEEDED = ("qemu-system-x86_64", "ipmi_sim", "busybox", "cpio", "depmod", "apt-get", "dpkg")
PATIENCE_S = 600  # the kernel comes by the network the first time
CAP = "power_cap --hold=4s --ramp=500ms --threads=1"
# The guest says what its BMC measures: the watts, and the limit where one is in force.
RUN = f"""cp /job/bin/* /bin/
echo 813 >/job/watts
power_bmc --interval=500ms --duration=5s >/job/steady.record
echo 790 800 >/job/watts
{CAP} >/job/kept.record
echo 790 700 >/job/watts
{CAP} >/job/over.record
echo 790 >/job/watts
{CAP} >/job/without.record
rm /job/watts
power_bmc --interval=500ms --duration=3s >/job/absent.record
true
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class BmcInBand(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        absent = [program for program in NEEDED if not shutil.which(program)]
        if absent or not os.environ.get("FAKE_DCMI"):
            raise unittest.SkipTest(f"not installed: {' '.join(absent) or 'libopenipmi-dev'}")
        cls.base = pathlib.Path(tempfile.mkdtemp(prefix="assay-bmc-guest-", dir="/var/tmp"))
        cls.addClassCleanup(shutil.rmtree, cls.base)
        (cls.base / "bin").mkdir()
        for probe in ("POWER_BMC", "POWER_CAP"):
            shutil.copy(os.environ[probe], cls.base / "bin")
        (cls.base / "run").write_text(RUN)
        port = free_port()
        (cls.base / "lan.conf").write_text(
            f"""name "n01"
set_working_mc 0x20
  serial 15 127.0.0.1 {port} codec VM
loadlib "{os.environ["FAKE_DCMI"]}" "{cls.base}/watts"
"""
        )
        (cls.base / "n01.emu").write_text(
            "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\nmc_enable 0x20\n"
        )
        bmc = subprocess.Popen(
            ["ipmi_sim", "-c", cls.base / "lan.conf", "-f", cls.base / "n01.emu", "-s", cls.base, "-n"],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
        )
        cls.addClassCleanup(bmc.wait, 30)
        cls.addClassCleanup(bmc.kill)
        subprocess.run([SCRIPT, cls.base, str(port)], check=True, timeout=PATIENCE_S)

    def record(self, name):
        lines = [json.loads(line) for line in (self.base / f"{name}.record").read_text().splitlines()]
        conditions = {line["condition"]["name"]: line["condition"]["value"] for line in lines if "condition" in line}
        samples = {}
        for line in lines:
            if "measurement" in line:
                samples.setdefault(line["measurement"]["metric"], []).extend(line["measurement"]["samples"])
        return lines[-1]["end"], conditions, samples

    def test_power_is_what_the_bmc_tells(self):
        end, conditions, samples = self.record("steady")
        self.assertEqual(end["status"], "complete", end)
        self.assertEqual(set(samples["power"]), {813})
        self.assertGreaterEqual(len(samples["power"]), 5)
        self.assertEqual(
            (conditions["meter_doubts"], conditions["statistics_active"], conditions["faults"]), ("none", True, 0)
        )
        self.assertLess(abs(conditions["clock_offset_s"]), 5)

    def test_a_limit_is_held_or_not(self):
        for name, share in (("kept", 790 / 800), ("over", 790 / 700)):
            end, conditions, samples = self.record(name)
            self.assertEqual(end["status"], "complete", end)
            self.assertEqual({round(one, 9) for one in samples["cap_share"]}, {round(share, 9)})
            self.assertIn("DCMI", conditions["cap_source"])

    def test_a_bmc_without_a_limit_is_a_skip(self):
        end, _, samples = self.record("without")
        self.assertEqual(end["status"], "skip", end)
        self.assertEqual(samples, {})

    def test_a_bmc_that_measures_nothing_gives_no_power(self):
        end, _, samples = self.record("absent")
        self.assertNotEqual(end["status"], "complete", end)
        self.assertEqual(samples, {})


if __name__ == "__main__":
    main()
