#!/usr/bin/env python3
"""Simulates fleets of growing size and prints how time, memory and what is written grow with the nodes.

Every size runs `assay simulate` once with a profile (of 30 requirements unless another is given) and one bad node in a hundred: plan,
virtual run, judge, localise, report. Printed are wall time, CPU time, peak memory, bytes written, and the growth exponent between one size
and the next: log(time ratio) / log(nodes ratio), 1 for linear, 2 for quadratic. Numbers of a busy machine say nothing.

Examples: simulate_scale.py build/release/bin/assay --nodes 100 1000 10000
          simulate_scale.py build/release/bin/assay --profile train-gpu --nodes 512 2048    (16,384 GPUs)
Exit code 0 when every run ended well, found every fault and took no more memory than --most-mb; the times are for the reader to judge.
"""
import argparse
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

PROFILE = pathlib.Path(__file__).with_name("thirty.json")
DEADLINE_S = 1800


def faults_for(nodes):
    bad = [{"node": f"n{i:05}", "factor": 0.8} for i in range(50, nodes, 100)]
    return {"schema": "assay.faults/1", "bad_nodes": bad}


def run(assay, profile, nodes, scratch):
    out = scratch / f"run-{nodes}"
    faults = scratch / f"faults-{nodes}.json"
    faults.write_text(json.dumps(faults_for(nodes)))
    command = [
        assay,
        "simulate",
        "--profile",
        profile,
        "--nodes",
        str(nodes),
        "--nodes-per-leaf",
        "32",
        "--seed",
        "1",
        "--faults",
        str(faults),
        "--out",
        str(out),
        "--json",
    ]
    begin = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    said = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - begin
    if child.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {child.returncode}")
    summary = json.loads(said)
    written = sum(file.stat().st_size for file in out.iterdir())
    shutil.rmtree(out)
    return {
        "nodes": nodes,
        "wall_s": wall,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_bytes": usage.ru_maxrss * 1024,
        "written_bytes": written,
        "cells": summary["cells"],
        "steps": summary["steps"],
        "missed": len(summary["missed"]),
        "false_alarms": len(summary["false_alarms"]),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("assay", help="path of assay, with its probes in ../libexec/assay/probes")
    parser.add_argument("--profile", default=str(PROFILE), help="file or name of a built-in profile")
    parser.add_argument("--nodes", type=int, nargs="+", default=[100, 1000, 10000])
    parser.add_argument("--most-mb", type=float, default=math.inf, help="most memory that a run may take, in MB")
    given = parser.parse_args()
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="assay-scale-", dir="/var/tmp"))
    well = True
    before = None
    print(f"load of the machine before: {os.getloadavg()[0]:.2f} on {os.cpu_count()} CPUs", flush=True)
    print(
        f"{'nodes':>7} {'cells':>8} {'wall':>9} {'CPU':>9} {'exponent':>9} {'peak':>9} {'written':>9} {'missed':>7} {'false':>6}"
    )
    try:
        for nodes in given.nodes:
            row = run(given.assay, given.profile, nodes, scratch)
            exponent = (
                ""
                if before is None
                else f"{math.log(row['cpu_s'] / before['cpu_s']) / math.log(nodes / before['nodes']):.2f}"
            )
            print(
                f"{nodes:>7} {row['cells']:>8} {row['wall_s']:>7.2f} s {row['cpu_s']:>7.2f} s {exponent:>9} {row['peak_bytes'] / 1e6:>6.0f} MB "
                f"{row['written_bytes'] / 1e6:>6.1f} MB {row['missed']:>7} {row['false_alarms']:>6}",
                flush=True,
            )
            well = well and row["missed"] == 0 and row["false_alarms"] == 0
            if row["peak_bytes"] > given.most_mb * 1e6:
                print(f"{nodes} nodes took more than {given.most_mb:.0f} MB", flush=True)
                well = False
            before = row
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
