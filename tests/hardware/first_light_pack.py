"""The archive that travels to the machine, and the one that comes back."""
import lzma
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = (
    "bin/assay",
    "bin/assay-node",
    "bin/assay-report",
    "bin/contract_test",
    "bin/hardware_collective",
    "bin/hardware_detection",
    "bin/hardware_gemm",
    "bin/hardware_hbm_bandwidth",
    "bin/hardware_host_link",
    "bin/hardware_peer_bandwidth",
    "lib/hip_over_cuda/libamdhip64.so.7",
    "lib/hip_over_cuda/libhiprtc.so.7",
)
SCRIPTS = (
    "first_light",
    "first_light_lists.py",
    "first_light_pack.py",
    "first_light_plan.py",
    "first_light_report.py",
    "first_light_stages.py",
    "decode_yardstick.py",
    "train_yardstick.py",
    "yardstick.py",
    "run",
    "sanitize",
    "README.md",
)
WINDOW = 1 << 27  # B: four programs bring the same BLAS; one copy of it travels


def probes():
    """Names of the probes that travel, which CMake's target first_light builds."""
    return (ROOT / "tests/hardware/carried_probes.txt").read_text(encoding="utf-8").split()


def build(tree):
    """The programs of `tree`, which `./quickstart build` configured; without tests these few are built as well."""
    if (tree / "build.ninja").is_file():
        subprocess.run(["cmake", "--build", tree, "--target", "first_light"], check=True)


def stripped(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)
    with open(target, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return
    if subprocess.run(["strip", "-s", target], check=False).returncode != 0:
        sys.exit(f"first_light: strip failed for {source}; hint: install binutils")


def pack(tree, archive, most):
    build(tree)
    archive = pathlib.Path(archive).resolve()
    files = list(PROGRAMS) + [f"libexec/assay/probes/{probe}" for probe in probes()]
    missing = [name for name in files if not (tree / name).is_file()]
    if missing:
        sys.exit(
            f"first_light: {tree} lacks {', '.join(missing)}; hint: ./quickstart build, where the CUDA Toolkit 13 and nccl.h are"
        )
    with tempfile.TemporaryDirectory() as scratch:
        top = pathlib.Path(scratch) / "first_light"
        for name in files:
            stripped(tree / name, top / name)
        shutil.copytree(tree / "share/assay/profiles", top / "share/assay/profiles")
        (top / "tests/hardware").mkdir(parents=True)
        for name in SCRIPTS:
            shutil.copy2(
                pathlib.Path(__file__).resolve().parent / name,
                top / "tests/hardware" / name,
            )
        with lzma.open(
            archive,
            "wb",
            filters=[{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": WINDOW}],
        ) as packed:
            with tarfile.open(fileobj=packed, mode="w") as tar:
                tar.add(top, "first_light")
    size = archive.stat().st_size
    if size >= most:
        archive.unlink()
        sys.exit(
            f"first_light: the archive would have {size} B, the most is {most} B; hint: name fewer architectures with "
            "-DCMAKE_CUDA_ARCHITECTURES="
        )
    print(
        f"{archive}: {size} B; on the machine: python3 -m tarfile -e {archive.name} && "
        "first_light/tests/hardware/first_light measure OUT"
    )


def pack_results(out):
    """Records, run and summary; scratch files and links to libraries stay behind."""
    archive = out / "first_light.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name in (
            "records",
            "run",
            "run_model",
            "summary.md",
            "site.json",
            "first-light.json",
        ):
            if (out / name).exists():
                tar.add(out / name, f"first_light/{name}")
    return archive
