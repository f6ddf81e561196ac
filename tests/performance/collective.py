#!/usr/bin/env python3
"""Compares host_collective with a plain loop on Gloo's API, in alternated runs on the same nodes of the test cluster.

collective.py BUILD [--pairs 5] [--nodes 8] [--link 500mbit] [--sizes 1048576,16777216,67108864]     BUILD: build/release
Needs root, and the targets host_collective and gloo_loop. Both sides use one rank on a node, the same addresses, fp32, buffers out of place and
Gloo's own algorithm. What differs is meant to: ours begins each iteration with a barrier (not timed) and takes the slowest rank; the loop is timed
as Gloo's own benchmark is, back to back and by rank 0. Printed are every run, and the ratio of the medians, ours over the loop's: it should be at
least 0.95. With --link none, links are as fast as the machine's processors, which all nodes share. Exit code 0 when everything ran.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
from cluster import Cluster  # noqa: E402 (the path comes first)

TOKEN = "00112233445566778899aabbccddeeff"
PORT = 29200
RUN_S = 300
WARMUP, COUNT = 5, 20
OPERATIONS = [
    "all_reduce",
    "all_gather",
    "all_to_all",
]  # every rank does the same, so that rank 0's time is that of all


def on_all(cluster, words_of_rank):
    """Runs a program on every node; what that of rank 0 printed."""
    started = [
        node.start(*words_of_rank(rank, node), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for rank, node in enumerate(cluster.nodes)
    ]
    try:
        outputs = [process.communicate(timeout=RUN_S) for process in started]
    finally:
        for process in started:
            process.kill()
    for process, (_, err) in zip(started, outputs):
        if process.returncode != 0:
            raise RuntimeError(f"{process.args[-12:]} ended with {process.returncode}: {err[-600:]}")
    return outputs[0][0]


def ours(cluster, build, operation, size):
    """Median time in s."""
    probe = build / "libexec/assay/probes/host_collective"
    out = on_all(
        cluster,
        lambda rank, node: [
            "env",
            f"ASSAY_TOKEN={TOKEN}",
            probe,
            "--rank",
            rank,
            "--world",
            len(cluster.nodes),
            "--rendezvous",
            f"{cluster.nodes[0].address}:{PORT}",
            "--operation",
            operation,
            "--sizes",
            size,
            "--min-samples",
            COUNT,
            "--max-samples",
            COUNT,
            "--time-limit",
            "60s",
            "--warmup-limit",
            "2s",
        ],
    )
    measured = [line["measurement"] for line in map(json.loads, out.splitlines()) if "measurement" in line]
    if [one["samples"] for one in measured if one["metric"] == "mismatches"] != [[0.0]]:
        raise RuntimeError("data is wrong")
    return statistics.median(next(one["samples"] for one in measured if one["metric"] == "time"))


def theirs(cluster, build, operation, size):
    """Median time in s."""
    with tempfile.TemporaryDirectory(prefix="gloo-store-", dir=cluster.path) as store:
        out = on_all(
            cluster,
            lambda rank, node: [
                build / "bin/gloo_loop",
                rank,
                len(cluster.nodes),
                node.address,
                store,
                operation,
                size,
                WARMUP,
                COUNT,
            ],
        )
    times = [float(line) for line in out.split()]
    if len(times) != COUNT:
        raise RuntimeError(f"{len(times)} of {COUNT} iterations were printed")
    return statistics.median(times)


def compare(cluster, build, operation, size, pairs):
    mine, other = [], []
    for pair in range(pairs):
        for side, times in ((ours, mine), (theirs, other)) if pair % 2 == 0 else ((theirs, other), (ours, mine)):
            times.append(side(cluster, build, operation, size))
        print(
            f"  {operation} {size} B, pair {pair + 1}: assay {size / mine[-1]:.6g} B/s, loop {size / other[-1]:.6g} B/s, load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
    ratio = statistics.median(other) / statistics.median(mine)
    print(
        f"{operation} {size} B: algbw assay {size / statistics.median(mine):.6g} B/s, loop {size / statistics.median(other):.6g} B/s, ratio {ratio:.3f}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--link", default="500mbit")
    parser.add_argument("--sizes", default="1048576,16777216,67108864")
    parser.add_argument("--operations", default=",".join(OPERATIONS))
    given = parser.parse_args()
    with Cluster(given.nodes) as cluster:
        if given.link != "none":
            for node in cluster.nodes:
                node.slow_link(given.link)
        for operation in given.operations.split(","):
            for size in map(int, given.sizes.split(",")):
                compare(cluster, given.build.resolve(), operation, size, given.pairs)


if __name__ == "__main__":
    try:
        main()
    except (subprocess.SubprocessError, RuntimeError, OSError) as error:
        print(f"collective.py: {error}", file=sys.stderr)
        sys.exit(1)
