#!/usr/bin/env python3
"""What the companions on a measured node cost its matrix products, pair by pair.

Each pair is one run of host_gemm alone and one beside power_sampler and power_bmc, in the order AB, BA, AB, …, so that a drift of the machine
falls on both alike. Printed are every pair's ratio, the median with its distribution-free 95 % interval (side_by_side.py), and the CPU time
that the companions used of all CPUs' time, which does not depend on what else runs. Where the machine has no RAPL and no BMC, both are
artificial: files, in which this script counts on ten times a second in both runs of a pair; the MSR behind a real counter and a BMC's answer are not measured then.

Example: companions.py build/release --pairs 12 --time 10s
Exit code 0 when the commands ran; the numbers are for the reader to judge.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from side_by_side import interval

DEADLINE_S = 300  # for one run of host_gemm


def artificial(scratch):
    """A package and its memory under powercap, and a file for the IPMI device."""
    for zone, name in (("intel-rapl:0", "package-0"), ("intel-rapl:0:0", "dram")):
        folder = scratch / "powercap" / zone
        folder.mkdir(parents=True)
        for file, content in (("name", name), ("max_energy_range_uj", "262143328850"), ("energy_uj", "1000000")):
            (folder / file).write_text(content + "\n")
    (scratch / "ipmi0").write_text("813\n")

    def count_on():
        energy_uj = 1000000
        while scratch.exists():
            energy_uj += 20000000  # 200 W
            for zone in ("intel-rapl:0", "intel-rapl:0:0"):
                try:
                    (scratch / "powercap" / "next").write_text(f"{energy_uj}\n")
                    (scratch / "powercap" / "next").replace(scratch / "powercap" / zone / "energy_uj")
                except FileNotFoundError:
                    return  # the folder is being removed
            time.sleep(0.1)

    threading.Thread(target=count_on, daemon=True).start()


def gemm(probe, time_limit):
    done = subprocess.run(
        [probe, "--time-limit", time_limit, "--max-samples", "500"],
        stdout=subprocess.PIPE,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    for line in map(json.loads, done.stdout.splitlines()):
        if line.get("measurement", {}).get("metric") == "throughput":
            return statistics.median(line["measurement"]["samples"])
    raise ValueError("host_gemm printed no throughput")


class Companions:
    """power_sampler and power_bmc as a run starts them, at their usual intervals."""

    def __init__(self, probes, given, scratch):
        powercap = pathlib.Path("/sys/class/powercap")
        self.powercap = (
            powercap if any(powercap.glob("intel-rapl:*")) and not given.artificial else scratch / "powercap"
        )
        self.device = (
            pathlib.Path("/dev/ipmi0")
            if pathlib.Path("/dev/ipmi0").exists() and not given.artificial
            else scratch / "ipmi0"
        )
        environment = dict(os.environ)
        if self.device.parent == scratch:
            environment["LD_PRELOAD"] = (
                str(given.build / "tests" / "libfake_ipmi_device.so") if given.fake is None else given.fake
            )
        self.commands = [
            ([probes / "power_sampler", "--powercap", self.powercap], dict(os.environ)),
            ([probes / "power_bmc", "--device", self.device], environment),
        ]

    def __enter__(self):
        self.processes = [
            subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
            for command, environment in self.commands
        ]
        time.sleep(1)
        self.begin, self.cpu = time.monotonic(), self.cpu_s()
        return self

    def cpu_s(self):
        """Of all threads, by the scheduler's own count: the ticks of /proc/PID/stat are too coarse for it."""
        return (
            sum(
                int(task.read_text().split()[0])
                for process in self.processes
                for task in pathlib.Path(f"/proc/{process.pid}/task").glob("*/schedstat")
            )
            / 1e9
        )

    def __exit__(self, *ended):
        alive = all(process.poll() is None for process in self.processes)
        self.share = (self.cpu_s() - self.cpu) / (time.monotonic() - self.begin) / os.cpu_count() if alive else None
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            process.wait(timeout=20)
        if not alive:
            raise RuntimeError("a companion ended by itself; run it by hand to see why")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="build directory, with libexec/assay/probes")
    parser.add_argument("--pairs", type=int, default=12, help="pairs to run, at least 6 (default 12)")
    parser.add_argument("--time", default="10s", help="time limit of one run of host_gemm (default 10s)")
    parser.add_argument("--fake", help="libfake_ipmi_device.so, where it is not in the build's tests")
    parser.add_argument("--artificial", action="store_true", help="artificial counters even where there are real ones")
    given = parser.parse_args()
    if given.pairs < 6:
        parser.error("--pairs must be at least 6: below that the median has no 95 % interval")
    probes = given.build / "libexec" / "assay" / "probes"
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="assay-companions-"))
    ratios, shares = [], []
    try:
        artificial(scratch)
        beside = Companions(probes, given, scratch)
        print(
            f"powercap {beside.powercap}, device {beside.device}\n{'pair':>4} {'order':>5} {'alone':>12} {'beside':>12} {'ratio':>8} {'CPU':>9}"
        )
        for pair in range(given.pairs):

            def with_them():
                with beside:
                    return gemm(probes / "host_gemm", given.time)

            if pair % 2 == 0:
                alone = gemm(probes / "host_gemm", given.time)
                loaded = with_them()
            else:
                loaded = with_them()
                alone = gemm(probes / "host_gemm", given.time)
            ratios.append(loaded / alone)
            shares.append(beside.share)
            print(
                f"{pair + 1:>4} {'AB' if pair % 2 == 0 else 'BA':>5} {alone:>12.5g} {loaded:>12.5g} {ratios[-1]:>8.4f} {shares[-1]:>9.2e}",
                flush=True,
            )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    low, high, level = interval(ratios)
    print(
        f"median ratio {statistics.median(ratios):.4f}, {level:.1%} interval {low:.4f} to {high:.4f}, {given.pairs} pairs"
    )
    print(f"CPU time of the companions: {statistics.median(shares):.2e} of the node's, at most {max(shares):.2e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
