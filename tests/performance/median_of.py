#!/usr/bin/env python3
"""Runs a probe and prints the median (or the largest) sample of one of its metrics, for side_by_side.py.

Example: median_of.py throughput build/release/libexec/assay/probes/host_gemm --type fp64
         median_of.py --best triad_bandwidth build/release/libexec/assay/probes/host_memory_bandwidth
"""
import json
import statistics
import subprocess
import sys


def main(arguments):
    choose = statistics.median
    if arguments[:1] == ["--best"]:
        choose, arguments = max, arguments[1:]
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    metric, command = arguments[0], arguments[1:]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=600)
    if done.returncode != 0:
        print(f"median_of.py: {command[0]} ended with {done.returncode}", file=sys.stderr)
        return 1
    for line in map(json.loads, done.stdout.splitlines()):
        if line.get("measurement", {}).get("metric") == metric:
            print(repr(choose(line["measurement"]["samples"])))
            return 0
    print(f"median_of.py: {command[0]} measured no {metric}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
