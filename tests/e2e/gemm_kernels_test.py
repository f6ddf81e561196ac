"""host_gemm measures the processor and not the age of OpenBLAS: kernels of narrower vectors are replaced before anything is measured."""
import json
import os
import pathlib
import subprocess
import unittest

PROBE = pathlib.Path(os.environ["ASSAY_E2E"]) / "libexec" / "assay" / "probes" / "host_gemm"
FLAGS = next((line for line in open("/proc/cpuinfo", encoding="utf-8") if line.startswith("flags")), "").split()
AVX512 = {"avx512f", "avx512cd", "avx512dq", "avx512bw", "avx512vl"} <= set(FLAGS)
WIDE = {"SkylakeX", "Cooperlake", "SapphireRapids"} if AVX512 else {"Haswell", "Zen"}


def kernels(core_type):
    """The kernels used by a run of the probe in an environment with this OPENBLAS_CORETYPE; None: without it."""
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    if core_type:
        environment["OPENBLAS_CORETYPE"] = core_type
    ran = subprocess.run(
        [PROBE, "--quick", "--size", "256", "--threads", "1"],
        env=environment,
        capture_output=True,
        timeout=120,
        check=True,
    )
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    return next(line["condition"]["value"] for line in lines if line.get("condition", {}).get("name") == "blas_core")


@unittest.skipUnless({"avx2", "fma"} <= set(FLAGS), "a processor without AVX2 has kernels of one width only")
class GemmKernels(unittest.TestCase):
    def test_kernels_of_a_processor_of_2004_are_replaced(self):
        self.assertIn(kernels("Prescott"), WIDE)

    def test_the_librarys_own_choice_is_as_wide_as_the_processor_or_replaced(self):
        self.assertIn(kernels(None), WIDE)


if __name__ == "__main__":
    unittest.main()
