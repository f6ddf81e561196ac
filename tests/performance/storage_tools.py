"""storage_tools: sizes of the comparisons of storage.py, and other tools that do the same as storage_cluster: IOR and elbencho."""
import concurrent.futures
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

DEADLINE_S = 300
RUNS = 2  # of each side in a pair
MIB = 1 << 20
CLIENTS, THREADS, CLIENT_SIZE = 3, 2, 256 * MIB  # of storage_cluster and of the fio beside it
RANKS, CHUNK, DEPTH, SIZE = 2, 4 * MIB, 8, 1024 * MIB  # of checkpoint and of the fio beside it


def run(arguments, directory):
    """Runs a program to its end; its stdout."""
    done = subprocess.run(arguments, cwd=directory, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    if done.returncode != 0:
        sys.exit(f"{arguments[0]} ended with {done.returncode}: {done.stdout[-400:]} {done.stderr[-400:]}")
    return done.stdout


def ior_like_cluster(ior, directory):
    """The same by IOR: all bytes over the time from the first open to the last close, fsync before."""
    rates = {}
    for _ in range(RUNS):
        for way in ("write", "read"):
            run(
                [
                    "mpiexec.mpich",
                    "-n",
                    str(CLIENTS * THREADS),
                    str(ior),
                    "-a",
                    "AIO",
                    f"--aio.max-pending={DEPTH}",
                    "--aio.granularity=1",
                    "--posix.odirect",
                    "-F",
                    "-b",
                    str(CLIENT_SIZE // THREADS),
                    "-t",
                    str(MIB),
                    "-e",
                    f"-{way[0]}",
                    "-k",
                    "-o",
                    "ior",
                    "-O",
                    "summaryFormat=JSON",
                    "-O",
                    "summaryFile=ior.json",
                ],
                directory,
            )
            (one,) = json.loads((pathlib.Path(directory) / "ior.json").read_text())["summary"]
            rates.setdefault(f"{way}_bandwidth", []).append(one["bwMeanMIB"] * MIB)
        for path in pathlib.Path(directory).glob("ior.0*"):
            path.unlink()
    return {name: statistics.mean(values) for name, values in rates.items()}


def synced_in(place):
    """Brings the files of a folder to the disk, all at once; the time in s."""
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        files = [os.open(path, os.O_RDWR) for path in place.iterdir()]
        list(pool.map(os.fsync, files))
    taken = time.monotonic() - begin
    for file in files:
        os.close(file)
    return taken


def elbencho_like_cluster(elbencho, directory):
    """The same by elbencho, as its own JSON says: bytes of all threads until the last is done, and until the first is."""
    rates = {}
    results = pathlib.Path(directory) / "elbencho.json"
    for _ in range(RUNS):
        place = pathlib.Path(directory) / "elbencho"
        place.mkdir()
        for way in ("write", "read"):
            results.unlink(missing_ok=True)
            run(
                [
                    str(elbencho),
                    "--nolive",
                    f"--{way}",
                    "-t",
                    str(CLIENTS * THREADS),
                    "-n",
                    "0",
                    "-N",
                    "1",
                    "-s",
                    str(CLIENT_SIZE // THREADS),
                    "-b",
                    str(MIB),
                    "--direct",
                    "--iodepth",
                    str(DEPTH),
                    "--blockvarpct",
                    "100",
                    "--jsonfile",
                    str(results),
                    str(place),
                ],
                directory,
            )
            (one,) = [
                line for line in map(json.loads, results.read_text().splitlines()) if line["phase_type"] == way.upper()
            ]
            moved = int(one["last_done"]["bytes"])
            if moved != CLIENTS * CLIENT_SIZE:
                sys.exit(f"elbencho moved {moved} B in its {way} phase, not {CLIENTS * CLIENT_SIZE} B")
            last_s = int(one["last_done"]["elapsed_time_ms"]) / 1000 + (synced_in(place) if way == "write" else 0)
            rates.setdefault(f"{way}_bandwidth", []).append(moved / last_s)
            rates.setdefault(f"{way}_bandwidth_stonewall", []).append(
                int(one["first_done"]["bytes"]) * 1000 / int(one["first_done"]["elapsed_time_ms"])
            )
        shutil.rmtree(place)
    return {name: statistics.mean(values) for name, values in rates.items()}
