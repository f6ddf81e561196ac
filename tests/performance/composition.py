#!/usr/bin/env python3
"""Runs train_step several times and prints `composition` of each: step time over what its operations add up to.

The goal is at most 1.15 in nine of ten runs on a quiet machine; the load before each run is printed beside, since on a
machine that is not quiet the number says more about the others. Words after the probe are its parameters.

Example: composition.py --runs 10 build/release/libexec/assay/probes/train_step --ranks_per_node 2
Exit code 0 when the runs ended with a record; the numbers are for the reader to judge.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

GOAL = 1.15
DEADLINE_S = 600  # of one run; the default ones take a minute


def composition(command):
    """Median of the rounds, the largest share of time in which a rank did not run, and how much was found wrong."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=DEADLINE_S, check=True)
    median = off_cpu = mismatches = None
    for line in done.stdout.splitlines():
        record = json.loads(line)
        one, condition = record.get("measurement", {}), record.get("condition", {})
        if one.get("metric") == "composition":
            median = statistics.median(one["samples"])
        if one.get("metric") == "mismatches":
            mismatches = one["samples"][0]
        if condition.get("name") == "off_cpu_share":
            off_cpu = condition["value"]
    if median is None:
        raise ValueError(f"'{' '.join(command)}' recorded no composition")
    return median, off_cpu, mismatches


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("probe")
    parser.add_argument("parameters", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    found = []
    print(f"{'run':>4} {'load':>6} {'composition':>12} {'off_cpu':>8} {'mismatches':>10}")
    for run in range(given.runs):
        load = os.getloadavg()[0]
        median, off_cpu, mismatches = composition([given.probe, *given.parameters])
        found.append(median)
        shown = "-" if off_cpu is None else f"{off_cpu:.3f}"
        print(f"{run + 1:>4} {load:>6.2f} {median:>12.4f} {shown:>8} {mismatches!s:>10}", flush=True)
    within = sum(one <= GOAL for one in found)
    print(
        f"{within} of {len(found)} at most {GOAL}; median {statistics.median(found):.4f}, "
        f"lowest {min(found):.4f}, highest {max(found):.4f}"
    )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (subprocess.SubprocessError, ValueError, KeyError, OSError) as error:
        print(f"composition.py: {error}", file=sys.stderr)
        sys.exit(1)
