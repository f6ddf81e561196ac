"""What stages need: libraries, an interpreter with PyTorch, a site, a profile that fits into the time."""
import json
import os
import pathlib
import re
import shutil
import site
import socket
import subprocess
import sys

LIBRARIES = (
    "libcuda.so.1",
    "libnvidia-ml.so.1",
    "libcublasLt.so.13",
    "libnvrtc.so.13",
    "libnccl.so.2",
    "libcudnn.so.9",
)
USUAL = (
    "/usr/local/nvidia",
    "/usr/local/cuda/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
)
DEPTH = 6  # site-packages/nvidia/cublas/lib is 3
PROFILE = "first-light.json"
KEPT_OF_ONE = r"(health|after|hbm|host_link\.one_by_one)\.|cuda_gemm\.bf16\."
KEPT_OF_SEVERAL = r"(health|after|hbm|host_link|peer)\.(?!one_by_one)|cuda_gemm\.bf16\."
LOADS = {
    "cuda_gemm": {"warmup_least": "20s", "load_least": "60s"},
    "cuda_hbm_bandwidth": {"warmup_least": "1s", "load_least": "2s"},
    "cuda_host_link": {"size": "256MiB", "max_samples": 20, "time_limit": "3s"},
}
BETWEEN_RUNS = {
    "u": 0.005,
    "source": {
        "document": "docs/records/2026-11-27-gpus, h100/gemm_bf16.jsonl and gemm_bf16_b.jsonl",
        "figure": "694.3 and 696.6 TFLOP/s",
        "date": "2026-11-27",
        "method": "Two runs on one board differ by 0.3 %; rounded up. There is time for one run.",
        "status": "sourced",
    },
}
WATCHED_S = {"cuda_gemm": 60, "cuda_hbm_bandwidth": 15}


def interpreters():
    """Python interpreters of this machine, this one last: another one may have the packages."""
    named = [os.environ.get("VIRTUAL_ENV", "/nowhere") + "/bin/python"]
    in_opt = [
        str(path)
        for pattern in ("*/bin/python", "*/.venv/bin/python")
        for path in sorted(pathlib.Path("/opt").glob(pattern))
    ]
    return [path for path in named + in_opt + ["python3", "python"] if shutil.which(path)] + [sys.executable]


def asked(interpreter, words):
    try:
        return subprocess.run(
            [interpreter, "-c", words],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        ).stdout.split("\n")
    except (OSError, subprocess.SubprocessError):
        return []


def with_torch(candidates):
    """The first interpreter that has PyTorch; the last one where none has."""
    words = "import importlib.util; print('yes' if importlib.util.find_spec('torch') else '')"
    return next((one for one in candidates if "yes" in asked(one, words)), candidates[-1])


def python_folders(candidates):
    folders = list(site.getsitepackages()) + [site.getusersitepackages()]
    for interpreter in candidates:
        folders += asked(interpreter, "import sys; print('\\n'.join(p for p in sys.path if p))")
    return folders


def find_libraries(search=(), candidates=()):
    """The first file of each name, as {name: path}: in `search`, LD_LIBRARY_PATH, the usual folders, Python packages."""
    roots = list(search) + os.environ.get("LD_LIBRARY_PATH", "").split(":") + list(USUAL) + python_folders(candidates)
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


def folders_of(libraries):
    return list(dict.fromkeys(os.path.dirname(path) for path in libraries.values()))


def environment(libraries):
    folders = folders_of(libraries)
    variables = dict(os.environ, ASSAY_LIBRARY_PATH=":".join(folders))
    variables["LD_LIBRARY_PATH"] = ":".join(folders + [os.environ.get("LD_LIBRARY_PATH", "")]).strip(":")
    return variables


def whole(profiles):
    """The requirements of `profiles` with the fields of those that they are `like`."""
    by_id = {}
    for one in (one for profile in profiles for one in profile["requirements"]):
        model = by_id.get(one.get("like"), {})
        parameters = {**model.get("parameters", {}), **one.get("parameters", {})}
        by_id[one["id"]] = {**model, **one, "parameters": parameters}
        by_id[one["id"]].pop("like", None)
    return list(by_id.values())


def short_profile(profiles, kept):
    """The requirements that `kept` matches, of all `profiles` (read from JSON), cut to minutes, one attempt each. What the host and
    further types must reach is left to other stages."""
    requirements = [one for one in whole(profiles) if re.match(kept, one["id"])]
    for one in requirements:
        one["title"] = one["title"].replace("for two minutes under load", "for a minute under load")
        one["parameters"] = {**one.get("parameters", {}), **LOADS.get(one["probe"], {})}
        if one.get("statistic") not in ("min", "max"):
            one["repeat"] = {**one.get("repeat", {}), "attempts": 1, "more_attempts": 0}
            one.setdefault("reproducibility", BETWEEN_RUNS)
        for demand in one.get("conditions", []):
            if demand["name"] == "watch_s":
                demand["at_least"] = WATCHED_S.get(one["probe"], 0)
    return {
        "schema": profiles[0]["schema"],
        "name": "first-light",
        "revision": profiles[0]["revision"],
        "node": profiles[-1]["node"],
        **{key: value for key, value in profiles[-1].items() if key == "relative_only"},
        "title": "First light: a part of what holds for GPUs of any model, in minutes",
        "requirements": requirements,
    }


def write_inputs(tree, out, libraries, gpus):
    name = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname()).strip("-._")[:60] or "machine"
    names = ("nvidia-gpu-each",) if gpus == 1 else ("nvidia-gpu-each", "nvidia-gpu")
    profiles = [json.loads((tree / f"share/assay/profiles/{one}.json").read_text()) for one in names]
    profile = short_profile(profiles, KEPT_OF_ONE if gpus == 1 else KEPT_OF_SEVERAL)
    node = {
        "name": name,
        "launcher": "local",
        "directory": str(out / "scratch"),
        "parts": {"gpu": gpus},
    }
    site_file = {"schema": "assay.site/1", "name": "first-light", "nodes": [node]}
    (out / PROFILE).write_text(json.dumps(profile, indent=2) + "\n")
    (out / "site.json").write_text(json.dumps(site_file) + "\n")
    # Agents give their probes no environment; libraries below the directory of the agent are found.
    beside = out / "scratch/lib/assay"
    link_all(libraries, beside)
    # cuBLASLt where no library that compiles is found: an empty file is in the place of that one.
    alone = out / "scratch/no_nvrtc"
    link_all({name: path for name, path in libraries.items() if "nvrtc" not in name}, alone)
    (alone / "libnvrtc.so.13").write_bytes(b"")


def link_all(libraries, folder):
    """Links to all of them; and to the files that cuDNN opens beside itself."""
    parts = pathlib.Path(libraries.get("libcudnn.so.9", "/nowhere/libcudnn.so.9")).parent.glob("libcudnn_*.so.9")
    folder.mkdir(parents=True, exist_ok=True)
    for name, path in {**libraries, **{one.name: str(one) for one in sorted(parts)}}.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(os.path.realpath(path))
