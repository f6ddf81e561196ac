#!/usr/bin/env python3
"""The executor of a training step beside the same calls written down by hand: train_loop, several times.

train_loop makes both steps by turns in one process, so that a drift of the machine falls on both alike, and prints the
median of the ratios of its pairs. Printed here are those of every run, their median and the load. The goal is 1.02.

Example: executor.py build/release/bin/train_loop
Exit code 0 when the runs ended; the numbers are for the reader to judge.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys

DEADLINE_S = 600  # of one run; 150 pairs take ten seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--pairs", type=int, default=150)
    given = parser.parse_args()
    ratios = []
    print(f"{'run':>4} {'load':>6} {'of pairs':>9} {'of medians':>11} {'of fastest':>11}")
    for run in range(given.runs):
        load = os.getloadavg()[0]
        out = subprocess.run(
            [given.program, str(given.pairs)], stdout=subprocess.PIPE, text=True, timeout=DEADLINE_S, check=True
        ).stdout
        medians, pairs, fastest = (
            float(re.search(rf"{word} ([0-9.e-]+)", out).group(1)) for word in ("ratio", "of pairs", "of the fastest")
        )
        ratios.append(pairs)
        print(f"{run + 1:>4} {load:>6.2f} {pairs:>9.4f} {medians:>11.4f} {fastest:>11.4f}", flush=True)
    print(
        f"median of {len(ratios)} runs {statistics.median(ratios):.4f}, lowest {min(ratios):.4f}, "
        f"highest {max(ratios):.4f}"
    )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (subprocess.SubprocessError, AttributeError, ValueError, OSError) as error:
        print(f"executor.py: {error}", file=sys.stderr)
        sys.exit(1)
