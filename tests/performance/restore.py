#!/usr/bin/env python3
"""Restores of a checkpoint beside raw reads of the same files, by turns in one run: both probes read the files once more, with the
same threads, chunks and depth, and put nothing into place.

checkpoint          restore_efficiency: verification not counted on either side; the raw read comes first by turns
checkpoint_cluster  restore_share, tier shared, of RANKS processes of this machine that restore each other's files; its raw read always
                    comes second, so that a cache favours the raw read

usage: restore.py PROBES_DIRECTORY SCRATCH_DIRECTORY [REPETITIONS]
"""
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile

DEADLINE_S = 1200
RANKS, THREADS, DEPTH = 2, 2, 8
SIZE = 512 << 20  # of checkpoint, in B
DIVISOR = 220  # 14 B x 8.03e9 parameters / 220: 511 MB


def samples(output, metric):
    """Every sample of a metric in a record, the warm-up left out."""
    lines = [json.loads(line) for line in output.splitlines()]
    found = [line["measurement"] for line in lines if line.get("measurement", {}).get("metric") == metric]
    if not found:
        sys.exit(f"the record has no {metric}: {lines[-1]}")
    return [value for one in found for value in one["samples"]]


def run(arguments, directory):
    done = subprocess.run(arguments, cwd=directory, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    if done.returncode != 0:
        sys.exit(f"{arguments[0]} ended with {done.returncode}: {done.stdout[-400:]} {done.stderr[-400:]}")
    return done.stdout


def alone(probes, directory, repetitions):
    return run(
        [
            str(probes / "checkpoint"),
            f"--directory={directory}",
            f"--size={SIZE}",
            f"--ranks={RANKS}",
            f"--queue-depth={DEPTH}",
            f"--repetitions={repetitions}",
        ],
        directory,
    )


def together(probes, directory, repetitions):
    with socket.create_server(("127.0.0.1", 0)) as free:
        at = f"127.0.0.1:{free.getsockname()[1]}"
    words = [
        str(probes / "checkpoint_cluster"),
        "--clients=processes",
        f"--directory={directory}",
        "--tiers=shared",
        "--lost=node",
        f"--divisor={DIVISOR}",
        f"--threads={THREADS}",
        "--chunk=4MiB",
        f"--queue-depth={DEPTH}",
        f"--repetitions={repetitions}",
        f"--world={RANKS}",
        f"--rendezvous={at}",
        f"--token={'0123456789abcdef' * 2}",
    ]
    others = [subprocess.Popen([*words, f"--rank={rank}"], stdout=subprocess.DEVNULL) for rank in range(1, RANKS)]
    output = run([*words, "--rank=0"], directory)
    for other in others:
        other.wait(DEADLINE_S)
    return output


def report(name, metric, output):
    ratios = samples(output, metric)
    rates = {way: statistics.median(samples(output, f"{way}_bandwidth")) / 1e9 for way in ("restore", "raw_read")}
    print(
        f"{name} {metric}: median {statistics.median(ratios):.3f} of {len(ratios)} (lowest {min(ratios):.3f}, highest {max(ratios):.3f}); "
        f"restore {rates['restore']:.3f} GB/s, raw read {rates['raw_read']:.3f} GB/s; load of the machine {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    probes = pathlib.Path(sys.argv[1]).resolve()
    repetitions = int(sys.argv[3]) if len(sys.argv) == 4 else 10
    pathlib.Path(sys.argv[2]).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=sys.argv[2]) as directory:
        report("checkpoint", "restore_efficiency", alone(probes, directory, repetitions))
        report("checkpoint_cluster", "restore_share", together(probes, directory, repetitions))


if __name__ == "__main__":
    main()
