#!/usr/bin/env python3
"""side_by_side: tests that need an idle machine and use little of it themselves, at the same time, each on a cluster of its own.

    side_by_side.py LANE...   a lane is a row of FILE or FILE:CLASS with commas between them, one after the other

What each printed is shown when it ends. Fails when one fails; else skips (77) when one skips.
"""
import concurrent.futures
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
SKIPPED = 77


def run(lane):
    """Exit codes of a lane's tests."""
    codes = []
    for test in lane.split(","):
        file, _, name = test.partition(":")
        begin = time.monotonic()
        done = subprocess.run(
            [sys.executable, HERE / f"{file}_test.py", *([name] if name else [])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        print(
            f"== {test}: exit code {done.returncode} after {time.monotonic() - begin:.0f} s\n{done.stdout}", flush=True
        )
        codes.append(done.returncode)
    return codes


def main():
    if len(sys.argv) < 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    with concurrent.futures.ThreadPoolExecutor(len(sys.argv)) as pool:
        codes = [code for lane in pool.map(run, sys.argv[1:]) for code in lane]
    if any(code not in (0, SKIPPED) for code in codes):
        return 1
    return SKIPPED if SKIPPED in codes else 0


if __name__ == "__main__":
    sys.exit(main())
