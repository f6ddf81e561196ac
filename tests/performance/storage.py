#!/usr/bin/env python3
"""Compares the storage probes with fio run by hand: pairs in ABBA order, paired ratios, and their median.

storage_vs_fio     the job that storage_bandwidth runs, by hand, against the probe's number
checkpoint_vs_fio  checkpoint's restore_bandwidth against fio reading files of the same size, one for each job, with
                   the same block size and depth, file after file from its start to its end, as checkpoint does
cluster_vs_fio     storage_cluster's bandwidth of three clients, processes of this machine, against as many fio at once, with the
                   same files, block size and depth, fsync in the time; all bytes over the longest client's time, and at
                   the stonewall, which fio does not have: beside it stands the sum of its clients' own rates, which
                   is more, since each divides by its own time
cluster_vs_ior     the same beside IOR (--ior PATH, with mpiexec.mpich), a task for each thread, by libaio; complete alone
cluster_vs_elbencho  the same beside elbencho (--elbencho PATH), a thread for each of ours with a file of its own; complete is its "last done", at the
                   stonewall its "first done": of one thread, where ours is of one client. It does no fsync, ours has it in the time: its files are synced here, and that time is added to its own
                   No distribution packages elbencho; its release page is https://github.com/breuner/elbencho/releases

A pair is short (two runs of each side), because a shared machine drifts within a minute; take many.

usage: storage.py [--only NAME] [--ior PATH] [--elbencho PATH] PROBES_DIRECTORY SCRATCH_DIRECTORY [PAIRS]
"""
import argparse
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile

from storage_tools import (
    CHUNK,
    CLIENT_SIZE,
    CLIENTS,
    DEADLINE_S,
    DEPTH,
    MIB,
    RANKS,
    RUNS,
    SIZE,
    THREADS,
    elbencho_like_cluster,
    ior_like_cluster,
    run,
)

FILE_SIZE = 1024 * MIB


def probe(path, flags, metrics, directory):
    """Runs a probe; the mean of each metric's samples."""
    lines = [json.loads(line) for line in run([str(path), *flags, "--directory", "."], directory).splitlines()]
    found = {line["measurement"]["metric"]: line["measurement"]["samples"] for line in lines if "measurement" in line}
    return {metric: statistics.mean(found[metric]) for metric in metrics}


def fio(job, directory, direction):
    """Runs one fio job of our own; its bytes over the time that the slowest of its threads took, in B/s."""
    (pathlib.Path(directory) / "hand.fio").write_text("[hand]\n" + "".join(f"{k}={v}\n" for k, v in job.items()))
    run(["fio", "--output-format=json", "--output=hand.json", "hand.fio"], directory)
    text = (pathlib.Path(directory) / "hand.json").read_text()
    return json.loads(text[text.index("{") :])["jobs"][0][direction]["bw_bytes"]


def fio_by_hand(directory):
    """What a user types to measure sequential bandwidth: the means of two runs, reads and writes in turn."""
    job = {
        "filename": "hand",
        "size": FILE_SIZE,
        "bs": "1m",
        "iodepth": 32,
        "ioengine": "io_uring",
        "direct": 1,
        "thread": 1,
        "refill_buffers": 1,
        "time_based": 1,
        "runtime": "650ms",
        "ramp_time": "100ms",
    }
    runs = [
        (fio(job | {"rw": "read"}, directory, "read"), fio(job | {"rw": "write"}, directory, "write"))
        for _ in range(RUNS)
    ]
    return {f"{way}_bandwidth": statistics.mean(run[i] for run in runs) for i, way in enumerate(("read", "write"))}


def fio_like_restore(directory):
    """The mean of two reads of all files, once each; every job has a file of its own."""
    job = {
        "filename_format": "restore.$jobnum",
        "size": SIZE // RANKS,
        "bs": CHUNK,
        "iodepth": DEPTH,
        "numjobs": RANKS,
        "ioengine": "io_uring",
        "direct": 1,
        "thread": 1,
        "group_reporting": 1,
        "invalidate": 1,
        "rw": "read",
    }
    return {"restore_bandwidth": statistics.mean(fio(job, directory, "read") for _ in range(RUNS))}


def cluster(path, directory):
    """storage_cluster on CLIENTS processes: all bytes over the time of the last client, by phase."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        at = f"127.0.0.1:{free.getsockname()[1]}"
    words = [
        str(path),
        "--clients=processes",
        f"--directory={directory}",
        "--duration=60s",
        f"--size={CLIENT_SIZE}",
        f"--threads={THREADS}",
        f"--depth={DEPTH}",
        f"--block={MIB}",
        f"--repetitions={RUNS}",
        f"--world={CLIENTS}",
        f"--rendezvous={at}",
        f"--token={'0123456789abcdef' * 2}",
    ]
    others = [subprocess.Popen([*words, f"--rank={rank}"], stdout=subprocess.DEVNULL) for rank in range(1, CLIENTS)]
    lines = [json.loads(line) for line in run([*words, "--rank=0"], directory).splitlines()]
    for other in others:
        other.wait(DEADLINE_S)
    found = [
        line["measurement"]
        for line in lines
        if line.get("measurement", {}).get("metric") in ("bandwidth", "bandwidth_stonewall")
    ]
    return {f"{one['at']['phase']}_{one['metric']}": statistics.mean(one["samples"]) for one in found}


def fio_clients(directory, way):
    """CLIENTS fio at once: all bytes over the longest client's time, and the sum of their rates; reading takes the files that writing left."""
    job = {
        "filename_format": "client.$clientuid.$jobnum",
        "size": CLIENT_SIZE // THREADS,
        "bs": MIB,
        "iodepth": DEPTH,
        "numjobs": THREADS,
        "ioengine": "io_uring",
        "direct": 1,
        "thread": 1,
        "group_reporting": 1,
        "invalidate": 1,
        "fallocate": "none",
        "refill_buffers": 1,
        "create_on_open": 1,
        "end_fsync": 1,
        "rw": way,
    }
    running = []
    for client in range(CLIENTS):
        text = "".join(f"{k}={v}\n" for k, v in job.items()).replace("$clientuid", str(client))
        (pathlib.Path(directory) / f"{client}.fio").write_text("[hand]\n" + text)
        running.append(
            subprocess.Popen(["fio", "--output-format=json", f"--output={client}.json", f"{client}.fio"], cwd=directory)
        )
    moved, longest_s, sum_of_rates = 0, 0.0, 0.0
    for client, process in enumerate(running):
        if process.wait(DEADLINE_S) != 0:
            sys.exit(f"fio of client {client} ended with {process.returncode}")
        text = (pathlib.Path(directory) / f"{client}.json").read_text()
        done = json.loads(text[text.index("{") :])["jobs"][0]
        moved += done[way]["io_bytes"]
        longest_s = max(longest_s, done[way]["runtime"] / 1000)
        sum_of_rates += done[way]["bw_bytes"]
    return moved / longest_s, sum_of_rates


def fio_like_cluster(directory):
    """The means of RUNS writes of new files and reads of them."""
    rates = {}
    for _ in range(RUNS):
        for way in ("write", "read"):
            for kind, rate in zip(("bandwidth", "bandwidth_stonewall"), fio_clients(directory, way)):
                rates.setdefault(f"{way}_{kind}", []).append(rate)
        for path in pathlib.Path(directory).glob("client.*"):
            path.unlink()
    return {name: statistics.mean(values) for name, values in rates.items()}


def compare(name, ours, theirs, pairs):
    """Runs ours and theirs in ABBA order; prints every pair's ratio of each metric, and the medians."""
    ratios = {}
    for pair in range(pairs):
        if pair % 2 == 0:
            our, their = ours(), theirs()
        else:
            their, our = theirs(), ours()
        for metric in their:
            ratio = our[metric] / their[metric]
            ratios.setdefault(metric, []).append(ratio)
            print(
                f"{name} {metric} pair {pair + 1}: ours {our[metric] / 1e9:.3f} GB/s, theirs {their[metric] / 1e9:.3f} GB/s, "
                f"ratio {ratio:.3f}",
                flush=True,
            )
    for metric, all_of in ratios.items():
        print(
            f"{name} {metric}: median of {pairs} paired ratios {statistics.median(all_of):.3f} "
            f"(lowest {min(all_of):.3f}, highest {max(all_of):.3f})",
            flush=True,
        )


def storage_vs_fio(probes, directory, pairs):
    layout = {
        "filename": "hand",
        "size": FILE_SIZE,
        "bs": "1m",
        "iodepth": 32,
        "ioengine": "io_uring",
        "direct": 1,
        "refill_buffers": 1,
        "end_fsync": 1,
        "rw": "write",
    }
    fio(layout, directory, "write")
    compare(
        "storage_vs_fio",
        lambda: probe(
            probes / "storage_bandwidth", ["--samples", str(RUNS)], ["read_bandwidth", "write_bandwidth"], directory
        ),
        lambda: fio_by_hand(directory),
        pairs,
    )


def checkpoint_vs_fio(probes, directory, pairs):
    for rank in range(RANKS):
        fio(
            {
                "filename": f"restore.{rank}",
                "size": SIZE // RANKS,
                "bs": "1m",
                "iodepth": 32,
                "ioengine": "io_uring",
                "direct": 1,
                "refill_buffers": 1,
                "end_fsync": 1,
                "rw": "write",
            },
            directory,
            "write",
        )
    flags = [
        "--size",
        str(SIZE),
        "--ranks",
        str(RANKS),
        "--chunk",
        str(CHUNK),
        "--queue-depth",
        str(DEPTH),
        "--repetitions",
        str(RUNS),
    ]
    compare(
        "checkpoint_vs_fio",
        lambda: probe(probes / "checkpoint", flags, ["restore_bandwidth"], directory),
        lambda: fio_like_restore(directory),
        pairs,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("probes", type=pathlib.Path, help="folder of the probes")
    parser.add_argument("scratch", type=pathlib.Path, help="folder on the disk that is measured")
    parser.add_argument("pairs", type=int, nargs="?", default=12)
    parser.add_argument("--only", help="one comparison")
    parser.add_argument("--ior", type=pathlib.Path, help="path of IOR, for cluster_vs_ior")
    parser.add_argument("--elbencho", type=pathlib.Path, help="path of elbencho, for cluster_vs_elbencho")
    given = parser.parse_args()
    for option, binary in (("--ior", given.ior), ("--elbencho", given.elbencho)):
        if binary and not os.access(binary, os.X_OK):
            parser.error(
                f"{option} {binary}: is no program; hint: elbencho is at https://github.com/breuner/elbencho/releases, IOR at https://github.com/hpc/ior/releases"
            )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # an exit removes the scratch directory
    probes, pairs = given.probes.resolve(), given.pairs
    given.scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=given.scratch) as directory:
        ours = lambda: cluster(probes / "storage_cluster", directory)
        comparisons = {
            "storage_vs_fio": lambda: storage_vs_fio(probes, directory, pairs),
            "checkpoint_vs_fio": lambda: checkpoint_vs_fio(probes, directory, pairs),
            "cluster_vs_fio": lambda: compare("cluster_vs_fio", ours, lambda: fio_like_cluster(directory), pairs),
        }
        if given.ior:
            comparisons["cluster_vs_ior"] = lambda: compare(
                "cluster_vs_ior", ours, lambda: ior_like_cluster(given.ior.resolve(), directory), pairs
            )
        if given.elbencho:
            comparisons["cluster_vs_elbencho"] = lambda: compare(
                "cluster_vs_elbencho", ours, lambda: elbencho_like_cluster(given.elbencho.resolve(), directory), pairs
            )
        if given.only and given.only not in comparisons:
            parser.error(
                f"--only {given.only}: is none of {', '.join(comparisons)}; cluster_vs_ior and cluster_vs_elbencho need --ior or --elbencho with the program"
            )
        for name, one in comparisons.items():
            if given.only in (None, name):
                one()


if __name__ == "__main__":
    main()
