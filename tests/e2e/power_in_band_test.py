"""power_bmc, power_agreement and power_cap on a fake of the kernel's IPMI driver and artificial RAPL counters, moved by one made-up truth."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

DEADLINE_S = 120
IDLE_W, THREAD_W = 60, 90  # of the package
FANS_W, LOSS = 150, 1.08  # what the BMC sees beyond the package


class InBand(unittest.TestCase):
    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="assay-in-band-"))
        self.addCleanup(shutil.rmtree, self.scratch, True)
        self.device = self.scratch / "ipmi0"
        self.device.write_text("813\n")
        zone = self.scratch / "powercap" / "intel-rapl:0"
        zone.mkdir(parents=True)
        for name, content in (("name", "package-0"), ("max_energy_range_uj", "262143328850"), ("energy_uj", "1000000")):
            (zone / name).write_text(content + "\n")
        self.energy = zone / "energy_uj"

    def start(self, variable, *arguments):
        return subprocess.Popen(
            [os.environ[variable], "--device", str(self.device), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "LD_PRELOAD": os.environ["FAKE_IPMI_DEVICE"]},
        )

    def finish(self, process):
        out, err = process.communicate(timeout=DEADLINE_S)
        return [json.loads(line) for line in out.splitlines()], err

    def conditions(self, record):
        return {line["condition"]["name"]: line["condition"]["value"] for line in record if "condition" in line}

    def values(self, record, metric):
        return [
            value
            for line in record
            if line.get("measurement", {}).get("metric") == metric
            for value in line["measurement"]["samples"]
        ]

    def agreement(self, bmc_of):
        """Runs power_agreement while package power follows the load; `bmc_of` makes the BMC's of it. Every figure is made up."""
        self.device.write_text(f"{round(bmc_of(IDLE_W)):8d}\n")
        process = self.start(
            "POWER_AGREEMENT",
            "--powercap",
            str(self.scratch / "powercap"),
            "--nvml-library",
            "none.so",
            "--threads",
            "2",
            "--quick",
        )
        over = threading.Event()

        def truth():
            energy_uj, last, watts = 1_000_000, time.monotonic(), IDLE_W
            while not over.wait(0.02):
                now = time.monotonic()
                threads = 0
                try:
                    threads = len(list(pathlib.Path(f"/proc/{process.pid}/task").iterdir())) - 1
                except OSError:
                    pass  # it has ended
                energy_uj += int(watts * (now - last) * 1e6)
                last, watts = now, IDLE_W + THREAD_W * threads
                self.replace(self.energy, energy_uj)
                self.replace(self.device, round(bmc_of(watts)), whole=True)

        mover = threading.Thread(target=truth)
        mover.start()
        try:
            return self.finish(process)
        finally:
            over.set()
            mover.join()

    def replace(self, path, number, whole=False):
        if whole:  # the probe has this file open: it is written in place, in one call
            with open(path, "r+b") as file:
                file.write(f"{number:8d}\n".encode())
            return
        path.with_suffix(".new").write_text(f"{number}\n")
        path.with_suffix(".new").replace(path)

    def test_a_bmc_is_sampled_on_the_grid_of_utc(self):
        record, _ = self.finish(self.start("POWER_BMC", "--duration", "3s", "--interval", "500ms"))
        measured = [line["measurement"] for line in record if "measurement" in line]
        self.assertEqual(set(self.values(record, "power")), {813})
        self.assertEqual(measured[0]["at"]["interval_s"], 0.5)
        self.assertLess(abs(measured[0]["at"]["begin_s"] - time.time()), 60)
        self.assertEqual(self.conditions(record)["meter_doubts"], "none")

    def test_a_bmc_at_the_end_of_16_bits_or_without_power_is_doubtful(self):
        self.device.write_text("65535\n")
        record, _ = self.finish(self.start("POWER_BMC", "--duration", "1s", "--interval", "100ms"))
        self.assertIn("wrapped", self.conditions(record)["meter_doubts"])
        self.device.write_text("0\n")
        record, _ = self.finish(self.start("POWER_BMC", "--duration", "1s", "--interval", "100ms"))
        self.assertIn("absent", self.conditions(record)["meter_doubts"])

    def test_a_bmc_without_dcmi_and_a_node_without_a_bmc_are_skips_with_the_cause(self):
        self.device.write_text("none\n")
        record, _ = self.finish(self.start("POWER_BMC", "--interval", "100ms"))
        self.assertIn("refuses DCMI Get Power Reading, completion code cbh", record[-1]["end"]["reason"])
        self.device.unlink()
        record, _ = self.finish(self.start("POWER_AGREEMENT", "--quick"))
        self.assertEqual(record[-1]["end"]["status"], "skip")
        self.assertIn("No such file or directory; there is no BMC", record[-1]["end"]["reason"])

    def cap(self, device):
        """The record of power_cap on a BMC that says `device`, without counters of packages and GPUs."""
        self.device.write_text(device)
        process = self.start(
            "POWER_CAP",
            "--powercap",
            str(self.scratch / "none"),
            "--nvml-library",
            "none.so",
            "--threads",
            "1",
            "--hold",
            "4s",
            "--ramp",
            "100ms",
        )
        return self.finish(process)[0]

    def test_the_limit_of_a_bmc_is_held_against_its_power(self):
        record = self.cap("980 1000 1500\n")
        self.assertEqual(record[-1]["end"]["status"], "complete", record[-1])
        conditions = self.conditions(record)
        self.assertEqual(
            [conditions[name] for name in ("cap_w", "cap_window_s", "cap_source", "cap_reached", "settings_changed")],
            [1000, 1.5, "DCMI", True, False],
        )
        self.assertEqual(self.values(record, "cap_share"), [0.98] * 3)  # of four seconds, by means of two
        record = self.cap("1100 1000 1000\n")
        self.assertEqual(set(self.values(record, "cap_share")), {1.1})
        record = self.cap("500 1000 70000\n")  # a correction time that is longer than the load, of over 16 bits
        self.assertEqual((self.values(record, "cap_share"), self.conditions(record)["cap_window_s"]), ([], 70))

    def test_a_bmc_without_a_limit_in_force_is_a_skip_with_the_cause(self):
        end = self.cap("980\n")[-1]["end"]
        self.assertEqual(end["status"], "skip")
        self.assertIn("the BMC has no limit in force", end["reason"])
        self.assertIn("refuses DCMI Get Power Limit, completion code cbh", self.cap("none\n")[-1]["end"]["reason"])

    def test_gain_and_offset_of_an_honest_bmc_are_those_of_the_truth(self):
        record, err = self.agreement(lambda watts: FANS_W + LOSS * watts)
        self.assertEqual(record[-1]["end"]["status"], "complete", err)
        self.assertAlmostEqual(self.values(record, "gain")[0], LOSS, delta=0.02 * LOSS)
        self.assertAlmostEqual(self.values(record, "offset")[0], FANS_W, delta=5)
        self.assertGreater(self.values(record, "r_squared")[0], 0.99)
        conditions = self.conditions(record)
        self.assertEqual((conditions["meter_doubts"], conditions["levels_reached"]), ("none", True))

    def test_a_bmc_that_stands_still_is_stuck_and_has_no_gain(self):
        record, err = self.agreement(lambda watts: 400)
        self.assertEqual(record[-1]["end"]["status"], "complete", err)
        self.assertIn("stuck: 400", self.conditions(record)["meter_doubts"])
        self.assertAlmostEqual(self.values(record, "gain")[0], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
