"""What is measured, most telling first, and what it needs: libraries, a site, a profile that fits into the time."""
import json
import os
import pathlib
import re
import site
import socket
import subprocess
import sys

LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1", "libcublasLt.so.13", "libnvrtc.so.13", "libnccl.so.2")
USUAL = (
    "/usr/local/nvidia",
    "/usr/local/cuda/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
)
DEPTH = 6  # site-packages/nvidia/cublas/lib is 3
PROFILE = "first-light.json"


def python_folders():
    folders = list(site.getsitepackages()) + [site.getusersitepackages()] + [entry for entry in sys.path if entry]
    for interpreter in ("python3", "python"):  # another one may have the packages
        try:
            words = subprocess.run(
                [interpreter, "-c", "import sys; print('\\n'.join(p for p in sys.path if p))"],
                capture_output=True,
                text=True,
                timeout=20,
                check=False,
            )
            folders += words.stdout.split("\n")
        except (OSError, subprocess.TimeoutExpired):
            pass
    return folders


def find_libraries(search=()):
    """The first file of each name, as {name: path}: in `search`, LD_LIBRARY_PATH, Python packages, the usual folders."""
    roots = list(search) + os.environ.get("LD_LIBRARY_PATH", "").split(":") + python_folders() + list(USUAL)
    found, seen = {}, set()
    for root in roots:
        path = os.path.realpath(root) if root else ""
        if not path or path in seen or not os.path.isdir(path):
            continue
        seen.add(path)
        for folder, subfolders, files in os.walk(path, followlinks=True):
            if folder[len(path) :].count(os.sep) >= DEPTH:
                subfolders.clear()
            subfolders[:] = [name for name in subfolders if not name.startswith((".", "__"))]
            for name in LIBRARIES:
                if name in files and name not in found:
                    found[name] = os.path.join(folder, name)
        if len(found) == len(LIBRARIES):
            break
    return found


def environment(libraries):
    folders = list(dict.fromkeys(os.path.dirname(path) for path in libraries.values()))
    variables = dict(os.environ, ASSAY_LIBRARY_PATH=":".join(folders))
    variables["LD_LIBRARY_PATH"] = ":".join(folders + [os.environ.get("LD_LIBRARY_PATH", "")]).strip(":")
    return variables


def one_gpu_profile(each):
    """The profile of every GPU by itself, cut to minutes: the figures of the host and of further types are left to other stages,
    the two minutes of bf16 stay."""
    keep = re.compile(r"(health|after|hbm|host_link\.one_by_one)\.|cuda_gemm\.bf16\.")
    requirements = [one for one in each["requirements"] if keep.match(one["id"])]
    for one in requirements:
        if one["probe"] == "cuda_hbm_bandwidth":
            one["parameters"].update(warmup_least="2s", load_least="8s")
            one["conditions"] = [demand for demand in one.get("conditions", []) if demand["name"] != "watch_s"]
    return {
        "schema": each["schema"],
        "name": "first-light",
        "revision": each["revision"],
        "node": each["node"],
        "title": "First light of one GPU: part of nvidia-gpu-each, in minutes",
        "requirements": requirements,
    }


def write_inputs(tree, out, libraries, gpus):
    each = json.loads((tree / "share/assay/profiles/nvidia-gpu-each.json").read_text())
    (out / PROFILE).write_text(json.dumps(one_gpu_profile(each), indent=2) + "\n")
    name = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname()).strip("-._")[:60] or "machine"
    (out / "site.json").write_text(
        json.dumps(
            {
                "schema": "assay.site/1",
                "name": "first-light",
                "nodes": [
                    {"name": name, "launcher": "local", "directory": str(out / "scratch"), "parts": {"gpu": gpus}}
                ],
            }
        )
        + "\n"
    )
    # Agents give their probes no environment; libraries below the directory of the agent are found.
    beside = out / "scratch/lib/assay"
    beside.mkdir(parents=True, exist_ok=True)
    for name, path in libraries.items():
        link = beside / name
        if link.is_symlink() or link.exists():
            link.unlink()
        link.symlink_to(os.path.realpath(path))


def facts(tree, libraries_of=LIBRARIES):
    return [
        "bash",
        "-c",
        "nvidia-smi -q 2>&1; nvidia-smi topo -m 2>&1; uname -a; nproc; free -g; cat /sys/module/nvidia/version; "
        f"sha256sum '{tree}'/libexec/assay/probes/*; true",
    ]


def stages(tree, out):
    from first_light_stages import Stage

    probes, program = tree / "libexec/assay/probes", tree / "bin/assay"

    def gemm(kind, *more, wanted=(0,), limit=60):
        name = "gemm_" + kind + ("_exact" if kind.startswith("fp8") and not more else "")
        return Stage(name, limit, [probes / "cuda_gemm", "--type", kind, *more], wanted)

    here = pathlib.Path(__file__).resolve().parent
    run = out / "run"
    return [
        Stage("facts", 30, facts(tree), (0,), required=False),
        Stage("health_before", 20, [probes / "health_gpu"]),
        gemm("fp64"),
        gemm("fp8_e4m3", "--fast-accumulation", "1"),
        gemm("int8", limit=40),
        Stage("nccl_one_rank", 75, [tree / "bin/hardware_collective", probes]),
        # Plan, run, judge and sign; a verdict of any kind is a result. The power sampler is a companion of its own here.
        Stage(
            "accept",
            330,
            [program, "accept", "--profile", out / PROFILE, "--site", out / "site.json", "--out", run],
            (0, 1, 3),
            companion=[probes / "power_sampler"],
        ),
        Stage("verify", 20, [tree / "bin/assay-report", "verify", run / "dossier"]),
        Stage("yardstick", 60, [sys.executable, here / "yardstick.py"], (0,), required=False),
        gemm("mxfp8", "--quick", wanted=(0, 77), limit=15),
        gemm("nvfp4", "--quick", wanted=(0, 77), limit=15),
        gemm("fp16", "--quick", limit=30),
        gemm("tf32", "--quick", limit=30),
        gemm("fp32", "--quick", limit=30),
        Stage("constant_data", 30, [probes / "cuda_gemm", "--quick", "--data", "constant"], required=False),
        Stage(
            "with_a_stranger",
            30,
            [probes / "cuda_gemm", "--quick"],
            required=False,
            companion=[probes / "cuda_hbm_bandwidth", "--slice", "0B", "--load-least", "60s"],
        ),
        Stage("health_after", 20, [probes / "health_gpu"]),
    ]
