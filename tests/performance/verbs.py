#!/usr/bin/env python3
"""Compares verbs_bandwidth and verbs_latency with perftest, in alternated runs on the same two emulated machines in the same boot.

verbs.py PROBES [RUNS]     PROBES: build/release/libexec/assay/probes; RUNS: 5 by default, at least 3
Boots the soft-RoCE bed of tests/cluster/soft_roce. Each comparison has the same operation, size, queue pairs, depth, MTU and direction,
and one slot of memory for each queue pair, which is all that perftest has. Printed
are every run, both medians with their ratio, and the median of the ratios of neighbouring runs, which a machine that gets slower or faster
meanwhile does not move: bandwidth should be at least 0.95 of perftest's, median latency at most 1.10 of it.
Exit code 0 when everything ran; the numbers are for the reader to judge. 77 where the bed cannot be had.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

BED = pathlib.Path(__file__).resolve().parent.parent / "cluster" / "soft_roce"
UP_S, RUN_S = 1800, 240
PORT = 29100
SERVER_START_S = 2  # a perftest server listens after some 0.2 s of an emulated CPU; the client also tries again
ATTEMPTS, NO_CLOCK = 5, "Correlation coefficient"
TOKEN = "00112233445566778899aabbccddeeff"
BANDWIDTH = [("write", 65536, 1), ("write", 65536, 4), ("read", 65536, 1), ("send", 65536, 1), ("write", 1 << 20, 1)]
LATENCY = [("write", 8), ("read", 8), ("send", 8)]


class Bed:
    def __init__(self):
        self.folder = pathlib.Path(f"/var/tmp/assay-soft-roce-performance-{os.getpid()}")
        up = subprocess.run([BED, "up", self.folder], capture_output=True, text=True, timeout=UP_S)
        if up.returncode != 0:
            print(up.stderr, file=sys.stderr)
            sys.exit(up.returncode)

    def down(self):
        subprocess.run([BED, "down", self.folder], timeout=60, check=True)

    def start(self, node, command, data=None):
        return subprocess.Popen(
            [BED, "run", self.folder, str(node), command],
            stdin=data or subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def copy(self, program):
        for node in (1, 2):
            with open(program, "rb") as file:
                process = self.start(node, f"cat > /tmp/{program.name} && chmod 755 /tmp/{program.name}", file)
                finish(process)


def finish(process):
    out, err = process.communicate(timeout=RUN_S)
    if process.returncode != 0:
        raise RuntimeError(f"{process.args[4:]} ended with {process.returncode}: {err[-600:]}{out[-300:]}")
    return out


def ours(bed, probe, arguments):
    """The record of rank 0, on guest 1; rank 1 runs on guest 2."""
    command = (
        f"/tmp/{probe} --world 2 --rendezvous 10.9.0.1:{PORT} --stall-limit 30s --ack-timeout 1s {arguments} --rank "
    )
    processes = [bed.start(node, f"ASSAY_TOKEN={TOKEN} {command}{node - 1}") for node in (1, 2)]
    outputs = [finish(process) for process in processes]
    return [json.loads(line) for line in outputs[0].splitlines()]


def samples(record, metric):
    found = [line["measurement"]["samples"] for line in record if line.get("measurement", {}).get("metric") == metric]
    if len(found) != 1:
        raise RuntimeError(f"{len(found)} measurements of {metric}")
    return found[0]


def perftest(bed, program, server, arguments):
    """The row of numbers that the client prints; the server runs on guest `server`."""
    arguments += " -u 18"  # 1.07 s, as ours: emulated machines acknowledge late, and rxe does not survive all repeats
    for attempt in range(ATTEMPTS):
        listening = bed.start(server, f"{program} -d rxe0 -x 1 {arguments}")
        time.sleep(SERVER_START_S)
        client = bed.start(3 - server, f"{program} -d rxe0 -x 1 {arguments} 10.9.0.{server}")
        try:
            row = finish(client)
            finish(listening)
            break
        except RuntimeError as error:  # it calibrates its clock first; where that fails it ends without a figure
            listening.kill()
            if NO_CLOCK not in str(error) or attempt + 1 == ATTEMPTS:
                raise
            print("  perftest could not calibrate its clock and printed nothing; once more", flush=True)
    return [line.split() for line in row.splitlines() if line.split() and line.split()[0].isdigit()][-1]


def one_bandwidth(bed, operation, size, pairs):
    def mine():
        record = ours(
            bed,
            "verbs_bandwidth",
            f"--operation {operation} --sizes {size} --qps {pairs} --depth 128 --directions forward --buffer 1 "
            "--window 300ms --min-samples 15 --max-samples 15 --time-limit 30s --warmup-limit 2s",
        )
        if samples(record, "mismatches") != [0.0]:
            raise RuntimeError("data is wrong")
        return statistics.median(samples(record, "bandwidth_forward"))

    def theirs():
        # The client writes or sends; with read the payload comes to it, so the sides change places.
        server = 1 if operation == "read" else 2
        row = perftest(bed, f"ib_{operation}_bw", server, f"-s {size} -q {pairs} -t 128 -m 4096 -D 8 --report_gbits")
        return float(row[3]) * 1e9 / 8

    return mine, theirs


def one_latency(bed, operation, size):
    def mine():
        record = ours(
            bed, "verbs_latency", f"--operation {operation} --sizes {size} --messages 200 --batches 10 --warmup 200"
        )
        if not samples(record, "latency_p999") or not samples(record, "latency_max"):
            raise RuntimeError("a tail is missing")
        return statistics.median(samples(record, "latency"))

    def theirs():
        row = perftest(bed, f"ib_{operation}_lat", 2, f"-s {size} -m 4096 -n 2000")
        return float(row[4]) * 1e-6  # t_typical, the median, in microseconds

    return mine, theirs


def compare(title, mine, theirs, runs):
    a, b = [], []
    for run in range(runs):
        for side in ((mine, a), (theirs, b)) if run % 2 == 0 else ((theirs, b), (mine, a)):
            side[1].append(side[0]())
        print(f"  {title} run {run + 1}: assay {a[-1]:.6g}, perftest {b[-1]:.6g}", flush=True)
    pairs = [mine / other for mine, other in zip(a, b)]
    print(
        f"{title}: medians assay {statistics.median(a):.6g}, perftest {statistics.median(b):.6g}, ratio {statistics.median(a) / statistics.median(b):.3f}; "
        f"of neighbouring runs {statistics.median(pairs):.3f} ({min(pairs):.3f}-{max(pairs):.3f})",
        flush=True,
    )


def main(arguments):
    if len(arguments) not in (1, 2) or (len(arguments) == 2 and int(arguments[1]) < 3):
        print(__doc__, file=sys.stderr)
        return 2
    runs = int(arguments[1]) if len(arguments) == 2 else 5
    bed = Bed()
    try:
        for probe in ("verbs_bandwidth", "verbs_latency"):
            bed.copy(pathlib.Path(arguments[0]) / probe)
        for operation, size, pairs in BANDWIDTH:
            compare(
                f"{operation} {size} B, {pairs} queue pairs, B/s", *one_bandwidth(bed, operation, size, pairs), runs
            )
        for operation, size in LATENCY:
            compare(f"{operation} latency {size} B, s", *one_latency(bed, operation, size), runs)
    finally:
        bed.down()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (subprocess.SubprocessError, RuntimeError, OSError) as error:
        print(f"verbs.py: {error}", file=sys.stderr)
        sys.exit(1)
