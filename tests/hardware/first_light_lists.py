"""What is measured on one GPU, and on several: most telling first. The limits of what runs unnamed add up to less than 570 s."""
import os
import pathlib
import subprocess
import sys

from first_light_stages import Stage

HERE = pathlib.Path(__file__).resolve().parent


class Machine:
    """Where things lie: the unpacked archive, the folder of results, an interpreter that has PyTorch, folders of libraries."""

    def __init__(self, tree, out, gpus, python=sys.executable, folders=()):
        self.tree, self.out, self.gpus, self.python, self.folders = (
            tree,
            out,
            gpus,
            python,
            folders,
        )
        self.run, self.scratch = out / "run", out / "scratch"
        self.state = {"XDG_STATE_HOME": str(self.scratch / "state")}  # the machine's own signing key

    def probe(self, name, *more):
        return [self.tree / "libexec/assay/probes" / name, *more]

    def assay(self, name, *more):
        return [self.tree / "bin" / name, *more]


def product(machine, name, *more, expected=12, limit=16, chosen=True):
    """Five seconds of the library's first algorithm, after four of warm-up."""
    load = "--warmup-least 4s --warmup-limit 1s --load-least 5s --min-samples 5 --max-samples 5 --trials 1".split()
    return Stage(name, expected, limit, machine.probe("cuda_gemm", "--type", name, *load, *more), chosen=chosen)


def right(machine, name):
    """One short load: operands are made, results summed and compared, and nothing is said of a rate."""
    few = "--quick --m 1024 --n 1024 --k 1024 --trials 1 --min-samples 1 --max-samples 1".split()
    return Stage(f"right_{name}", 3, 5, machine.probe("cuda_gemm", "--type", name, *few))


def fp8(machine, *more, expected=55, limit=68, chosen=True):
    """A load that lasts, with the algorithm that is chosen under it."""
    load = "--type fp8_e4m3 --fast-accumulation 1 --warmup-least 15s --load-least 20s --max-samples 10".split()
    return Stage("fp8", expected, limit, machine.probe("cuda_gemm", *load, *more), chosen=chosen)


def over_hip(machine, name, expected, limit, chosen=True):
    """The host code of an AMD probe, once, over HIP calls that are CUDA's."""
    libraries = {"ASSAY_LIBRARY_PATH": str(machine.tree / "lib/hip_over_cuda")}
    return Stage(name, expected, limit, machine.probe(name, "--quick"), environment=libraries, chosen=chosen)


def experts(machine, families, engine="nccl"):
    """Tokens of DeepSeek-V3 to their experts and back between GPUs; one GPU alone sends its slots to itself."""
    job = "--quick --model deepseek-v3 --tokens 1024 --dispatch-element 1".split()
    return machine.probe("moe_dispatch", "--engine", engine, *job, "--families", families)


def sanitized(machine, name, tool, *words, expected, limit, chosen=True):
    """The commands of `sanitize` that have one of the words; some may be skipped."""
    command = [HERE / "sanitize", machine.tree, tool, *words]
    return Stage(name, expected, limit, command, (0, 3), required=False, chosen=chosen)


def begin(machine):
    facts = (
        "nvidia-smi -q 2>&1; nvidia-smi topo -m 2>&1; uname -a; nproc; free -g; cat /sys/module/nvidia/version; "
        f"sha256sum '{machine.tree}'/libexec/assay/probes/*; true"
    )
    return [
        Stage("facts", 2, 6, ["bash", "-c", facts], required=False),
        Stage("health_before", 1, 5, machine.probe("health_gpu")),
    ]


def accepted(machine, profile, expected_s, limit_s):
    """Plan, run, judge and sign, then what a receiver does. A verdict of any kind is a result."""
    accept = [
        "accept",
        "--profile",
        profile,
        "--site",
        machine.out / "site.json",
        "--out",
        machine.run,
    ]
    key = machine.scratch / "state/assay/machine.key.pub"
    verify = ["verify", machine.run / "dossier", "--key", key]
    return [
        Stage(
            "accept",
            expected_s,
            limit_s,
            machine.assay("assay", *accept),
            (0, 1, 3),
            environment=machine.state,
        ),
        Stage("verify", 1, 5, machine.assay("assay-report", *verify)),
    ]


def yardstick_of(machine, name, record, environment, expected, limit, chosen=True):
    """PyTorch beside a record."""
    command = [machine.python, HERE / f"{name}.py", record]
    return Stage(name, expected, limit, command, required=False, chosen=chosen, environment=environment)


def real_training(machine, environment):
    """Four layers of Llama 3 8B at 4096 tokens, some ten seconds warm; then PyTorch's step beside it; then other attention, and the same
    with FP8 products, which PyTorch alone does not have."""
    slice_of = "--model llama3-8b --layers-run 4 --seq 4096 --micro-batch 1 --reference none".split()
    steps = "--warmup-steps 60 --steps 40 --block 20".split()
    record = machine.out / "records/train_8b.out"
    return [
        Stage("train_8b", 15, 26, machine.probe("cuda_train_step", *slice_of, *steps)),
        yardstick_of(machine, "train_yardstick", record, environment, 28, 34, chosen=False),  # this has run
        *(
            Stage(
                f"train_8b_{kind}",
                13,
                25,
                machine.probe("cuda_train_step", *slice_of, *steps, "--attention", kind),
                (0, 77),
                chosen=False,  # one comparison is in every fused run
            )
            for kind in ("products", "fused_unordered")
        ),
        Stage(
            "train_fp8", 13, 25, machine.probe("cuda_train_step", "--type", "fp8", *slice_of, *steps), chosen=False
        ),  # this has run
        Stage("train_fp8_exact", 2, 6, machine.probe("cuda_train_step", "--type", "fp8", "--quick")),
    ]


def without_nvrtc(machine):
    """An environment in which cuBLASLt finds no library that compiles: an empty file lies in its place."""
    folder = machine.scratch / "no_nvrtc"
    return {
        "ASSAY_LIBRARY_PATH": str(folder),
        "LD_LIBRARY_PATH": ":".join([str(folder), *machine.folders]),
    }


def profile_of_this_gpu(machine):
    """Path of the profile for one GPU of the model that the driver names; nothing where there is none."""
    try:
        names = subprocess.run(
            ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        ).stdout.lower()
    except (OSError, subprocess.TimeoutExpired):
        return None
    for path in sorted((machine.tree / "share/assay/profiles").glob("nvidia-*-one.json")):
        if path.name.split("-")[1] in names:
            return path
    return None


def one_gpu(machine):
    gpu, plain = ("--engine", "gpu", "--quick"), {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
    eight_billion = "--model llama3-8b --batches 1,8,64 --contexts 1024 --steps 50".split()
    training = "--model llama3-8b --micro-batch 1 --reference none --block 2".split()
    long_sequence = [*training, *"--layers-run 2 --seq 16384 --warmup-steps 10 --steps 10".split()]
    most_layers = [*training, *"--layers-run 31 --seq 4096 --warmup-steps 6 --steps 10".split()]
    loopback = "--engine verbs --memory gpu --path loopback".split()
    rack = ("--quick", "--processes-per-gpu", "2")  # two processes share memory by POSIX descriptors
    stages = [
        *begin(machine),
        *accepted(machine, machine.out / "first-light.json", 150, 180),
        Stage("detection", 4, 12, machine.assay("hardware_detection", machine.tree / "libexec/assay/probes")),
        # Kernels of operands and checks are in other files since these types have run.
        *(right(machine, name) for name in ("fp8_e4m3", "fp16", "tf32", "fp64", "int8")),
        Stage("hbm_walk", 7, 12, machine.probe("cuda_hbm_bandwidth", "--size", "1GiB")),  # accept has 4 GiB
        Stage("decode_8b", 6, 12, machine.probe("decode_step", "--engine", "cuda", *eight_billion)),
        Stage("moe_experts", 3, 6, experts(machine, "uniform,zipf,hot_expert,burst")),
        Stage("moe_device", 3, 6, experts(machine, "uniform,zipf,hot_expert,burst", "nccl-device"), required=False),
        Stage("nccl_one_rank", 19, 22, machine.assay("hardware_collective", machine.tree / "libexec/assay/probes")),
        sanitized(machine, "memcheck_moe", "memcheck", "moe_dispatch", expected=22, limit=30),
        Stage("train_16k", 18, 28, machine.probe("cuda_train_step", *long_sequence)),
        Stage("train_31", 30, 44, machine.probe("cuda_train_step", *most_layers), refusal="nearest that fits"),
        sanitized(machine, "racecheck", "racecheck", "moe_dispatch", "decode_step", expected=30, limit=40),
        yardstick_of(machine, "decode_yardstick", machine.out / "records/decode_8b.out", plain, 12, 18, chosen=False),
        Stage("thermal_soak", 23, 38, machine.probe("thermal_soak", "--engine", "job", "--quick")),
        over_hip(machine, "amd_hbm_bandwidth", 8, 14),
        over_hip(machine, "amd_host_link", 8, 14, chosen=False),
        Stage("kv_loopback", 2, 5, machine.probe("kv_transfer", *loopback, "--quick"), (0, 77)),
        fp8(machine, chosen=False),  # this has run
        *real_training(machine, plain),
        product(machine, "fp16", chosen=False),  # these have run
        product(machine, "tf32", chosen=False),
        product(machine, "fp32", chosen=False),
        product(machine, "fp64", limit=19, chosen=False),
        product(machine, "int8", chosen=False),
        Stage("train_dense", 2, 6, machine.probe("cuda_train_step", "--quick")),
        Stage(
            "train_moe",
            2,
            6,
            machine.probe("cuda_train_step", "--quick", "--model", "tiny-moe"),
        ),
        Stage(
            "split_k",
            5,
            9,
            machine.probe("cuda_gemm", "--quick", "--m", "512", "--n", "512", "--k", "65536"),
            chosen=False,  # answered
        ),
        Stage(
            "no_nvrtc",
            7,
            13,
            machine.probe("cuda_gemm", "--quick"),
            environment=without_nvrtc(machine),
            chosen=False,  # answered
        ),
        Stage("load_bank", 6, 8, machine.probe("load_bank", *gpu), chosen=False),  # these have run
        Stage("power_cap", 5, 8, machine.probe("power_cap", *gpu), chosen=False),
        Stage(
            "mxfp8",
            1,
            7,
            machine.probe("cuda_gemm", "--type", "mxfp8", "--quick"),
            (0, 77),
        ),
        Stage(
            "nvfp4",
            1,
            7,
            machine.probe("cuda_gemm", "--type", "nvfp4", "--quick"),
            (0, 77),
        ),
        # PyTorch brings libraries of its own.
        Stage(
            "yardstick",
            23,
            28,
            [machine.python, HERE / "yardstick.py"],
            required=False,
            chosen=False,  # this has run
            environment=plain,
        ),
        Stage("rack_sm", 3, 5, machine.probe("cuda_rack_bandwidth", *rack)),
        Stage("rack_ce", 3, 5, machine.probe("cuda_rack_bandwidth", "--engine", "ce", *rack), chosen=False),
        Stage("health_after", 1, 5, machine.probe("health_gpu")),
        # This ended in a fault of the tool.
        sanitized(machine, "racecheck_gemm", "racecheck", "type=bf16", "slice=0B", expected=38, limit=40, chosen=False),
    ]
    profile = profile_of_this_gpu(machine)
    if profile:  # the whole of it, for a second call
        command = machine.assay(
            "assay",
            "accept",
            "--profile",
            profile,
            "--site",
            machine.out / "site.json",
            "--out",
            machine.out / "run_model",
        )
        stages.append(
            Stage(
                "accept_model",
                520,
                555,
                command,
                (0, 1, 3),
                chosen=False,
                environment=machine.state,
            )
        )
    return stages


def several_gpus(machine):
    def collective(operation, *more):
        return machine.probe("nccl_collective", "--quick", "--operation", operation, *more)

    large = ("--sizes", "1MiB,1GiB,8GiB")
    return [
        *begin(machine),
        *accepted(machine, machine.out / "first-light.json", 190, 230),
        Stage("all_reduce", 20, 26, collective("all_reduce", *large)),
        Stage("all_reduce_8_b", 10, 14, collective("all_reduce", "--sizes", "8..64KiB")),
        Stage(
            "all_reduce_ring",
            15,
            25,
            collective("all_reduce", *large, "--algorithm", "ring"),
        ),
        Stage("all_gather", 15, 25, collective("all_gather", *large)),
        Stage("reduce_scatter", 15, 25, collective("reduce_scatter", *large)),
        Stage("all_to_all", 15, 25, collective("all_to_all", *large)),
        Stage(
            "link_one_by_one",
            14,
            18,
            machine.probe("cuda_host_link", "--quick", "--device", "0"),
        ),
        fp8(machine, "--schedule", "together"),
        Stage("rack_node", 6, 10, machine.probe("cuda_rack_bandwidth", "--quick")),
        Stage("train_tp2", 5, 13, machine.probe("cuda_train_step", "--quick", "--tp", "2")),
        Stage(
            "train_dp",
            5,
            12,
            machine.probe("cuda_train_step", "--quick", "--dp", str(machine.gpus)),
        ),
        Stage("moe_experts", 6, 10, experts(machine, "uniform,zipf,hot_rank,burst")),
        Stage("moe_device", 6, 10, experts(machine, "uniform,zipf,hot_rank,burst", "nccl-device"), required=False),
        Stage("health_after", 1, 5, machine.probe("health_gpu")),
        sanitized(machine, "racecheck", "racecheck", "cuda_peer", expected=30, limit=35),
    ]


def stages(machine):
    return one_gpu(machine) if machine.gpus == 1 else several_gpus(machine)
