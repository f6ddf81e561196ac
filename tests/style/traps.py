"""Kernels that nvcc compiles to a trap, for instance where a choice between two constants takes the address of a host's: a GPU alone shows
them, as a failure of whatever it is asked next."""
import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile


def traps(nvcc, root, source):
    """How often its PTX traps."""
    with tempfile.TemporaryDirectory() as folder:
        ptx = pathlib.Path(folder) / "ptx"
        options = ["-std=c++20", "--expt-relaxed-constexpr", "-arch=sm_90", "-I", root, "-ptx", "-o", ptx]
        subprocess.run([nvcc, *options, source], check=True)
        return ptx.read_text().count("trap;")


def main(nvcc, root):
    sources = sorted(path for room in ("probes", "workloads") for path in (root / room).rglob("*.cu"))
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        planted = pathlib.Path(folder) / "planted.cu"
        planted.write_text("__global__ void planted() { __trap(); }\n")
        if traps(nvcc, root, planted) != 1:
            sys.exit("a planted trap is not found")
        found = dict(zip(sources, pool.map(lambda source: traps(nvcc, root, source), sources)))
    for source, count in found.items():
        if count:
            print(f"{source.relative_to(root)}: {count} traps")
    print(f"{len(sources)} files, {sum(found.values())} traps")
    return 0 if sources and not any(found.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2])))
