#!/usr/bin/env python3
"""Compares two commands that print one number each, by alternated pairs.

Pairs run in the order AB, BA, AB, BA, …, so that a drift of the machine falls on both alike. Printed are every pair's
ratio A/B, their median, and the distribution-free 95 % confidence interval of that median from order statistics
(Conover 1999, ch. 3.2); 6 pairs are the fewest for which one exists.

Example: side_by_side.py --pairs 8 "median_of.py throughput PROBE" "openblas_loop fp64 4096 2 12 median"
Exit code 0 when the commands ran; the numbers are for the reader to judge.
"""
import argparse
import math
import shlex
import statistics
import subprocess
import sys

DEADLINE_S = 600  # for one command; the longest here takes half a minute


def number(command):
    done = subprocess.run(shlex.split(command), stdout=subprocess.PIPE, text=True, timeout=DEADLINE_S, check=True)
    value = float(done.stdout)
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"'{command}' printed {value}, not a positive number")
    return value


def interval(values, confidence=0.95):
    """Narrowest symmetric pair of order statistics that covers the median with at least `confidence`, or None."""
    values, n = sorted(values), len(values)
    best = None
    for low in range(n // 2):  # ranks low + 1 and n - low
        outside = 2 * sum(math.comb(n, k) for k in range(low + 1)) / 2**n
        if 1 - outside >= confidence:
            best = (values[low], values[n - 1 - low], 1 - outside)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("a", help="first command")
    parser.add_argument("b", help="second command, the yardstick")
    parser.add_argument("--pairs", type=int, default=8, help="pairs to run, at least 6 (default 8)")
    given = parser.parse_args()
    if given.pairs < 6:
        parser.error("--pairs must be at least 6: below that the median has no 95 % interval")
    ratios = []
    print(f"A: {given.a}\nB: {given.b}\n{'pair':>4} {'order':>5} {'A':>12} {'B':>12} {'A/B':>8}")
    for pair in range(given.pairs):
        if pair % 2 == 0:
            a, b = number(given.a), number(given.b)
        else:
            b, a = number(given.b), number(given.a)
        ratios.append(a / b)
        print(f"{pair + 1:>4} {'AB' if pair % 2 == 0 else 'BA':>5} {a:>12.5g} {b:>12.5g} {a / b:>8.4f}", flush=True)
    low, high, level = interval(ratios)
    print(
        f"median A/B {statistics.median(ratios):.4f}, {level:.1%} interval {low:.4f} to {high:.4f}, {given.pairs} pairs"
    )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (subprocess.SubprocessError, ValueError, OSError) as error:
        print(f"side_by_side.py: {error}", file=sys.stderr)
        sys.exit(1)
