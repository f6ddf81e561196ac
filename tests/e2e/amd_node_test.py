"""`assay accept --profile amd-mi300x` on a made-up node of eight GPUs: the requirements of the shipped profile, with sizes and limits
that made-up libraries can meet. The healthy node passes only where a test says that its driver is made up; each fault is named."""
import json
import os
import pathlib
import shutil

from harness import ONCE, keep_agent, main
from kubernetes import start_cluster
from launchers_test import Fakes

PROFILES = pathlib.Path(__file__).resolve().parent.parent.parent / "profiles"
LIBRARIES = [pathlib.Path(name) for name in os.environ["ASSAY_FAKE_AMD"].split(":")]
PROBES = ["health_amd", "amd_gemm", "amd_hbm_bandwidth", "amd_host_link", "amd_peer_bandwidth", "rccl_collective"]
SMALL = {  # of each probe: as much as a made-up GPU computes in a fraction of a second
    "amd_gemm": {"m": 16, "n": 16, "k": 128, "trials": 1, "sample_length": 0.01, "warmup_least": 0, "load_least": 0},
    "amd_hbm_bandwidth": {"size": 1 << 20, "slice": 1 << 20, "passes": 0},
    "amd_host_link": {"size": 1 << 20},
    "amd_peer_bandwidth": {"size": 1 << 20},
    "rccl_collective": {"sizes": "1000,70000"},
}
RATES = ("B/s", "FLOP/s")
MADE_UP = {"name": "driver_version", "equals": "simulated 6.12.12"}
GPUS = 8
# In every run all that computes or copies does so on three GPUs; in -C cluster everything on eight, in one run.
IN_PARTS = [(["health_amd", "rccl_collective"], GPUS), (PROBES[1:-1], 3)]
WHOLE = [(PROBES, GPUS)] if os.environ.get("ASSAY_WHOLE_NODE") else IN_PARTS
HIP, SMI = {"memory": "120", "slow": "20"}, {"gpu": {"cache_kb": 64}}


def uuid(index):
    return f"a1ff74a1-0000-1000-8000-00000000000{index}"


def shipped(probes):
    """The requirements of amd-mi300x on one node by `probes`, each whole."""
    all_of_it = json.loads((PROFILES / "amd-mi300x.json").read_text())["requirements"]
    by_id = {}
    for one in all_of_it:
        by_id[one["id"]] = {**by_id.get(one.get("like"), {}), **one}
        by_id[one["id"]].pop("like", None)
    return [one for one in by_id.values() if one["probe"] in probes and not one["id"].startswith("two_node")]


def small(one, driver):
    sampling = (
        {}
        if one["probe"] == "health_amd"
        else {"min_samples": 6, "max_samples": 6, "time_limit": 0.1, "warmup_limit": 0.0}
    )
    limit = {"at_least": 1, "unit": one["limit"]["unit"]} if one["limit"].get("at_least", 0) > 1000 else one["limit"]
    conditions = [driver if each["name"] == driver["name"] else each for each in one.get("conditions", [])]
    conditions = [each for each in conditions if each["name"] != "watch_s"]  # a minute under load
    more = {"at": {"size": 70000}} if isinstance(one.get("at"), dict) else {}
    if limit["unit"] in RATES:  # how fast a busy machine computes for a made-up GPU decides nothing
        more["severity"] = "advisory"
    return {
        **one,
        "parameters": {**one.get("parameters", {}), **SMALL.get(one["probe"], {}), **sampling},
        "limit": limit,
        **({"conditions": conditions} if conditions else {}),
        **ONCE,
        "repeat": {**ONCE["repeat"], "n": 1},
        **more,
    }


class AmdNode(Fakes):
    def setUp(self):
        super().setUp()
        start_cluster(self, "n01")

    @staticmethod
    def profile(requirements, gpus=GPUS):
        return {
            "schema": "assay.profile/1",
            "name": "amd-node",
            "title": "Test",
            "revision": 1,
            "relative_only": "a test",
            "node": {"gpu": gpus, "pair": gpus * (gpus - 1)},
            "requirements": requirements,
        }

    def judge(self, probes, driver=MADE_UP, hip=None, smi=None, rccl="", without=(), gpus=GPUS):
        """Accepts the node by what amd-mi300x asks of `probes`; (requirement, subject) to outcome for every cell that does not pass.
        With fewer `gpus`, all that they compute is computed in less time."""
        libraries = self.work / "n01/lib/assay"
        libraries.mkdir(parents=True)
        keep_agent(self.work / "n01")
        for library in LIBRARIES:
            if library.name not in without:
                shutil.copy(library, libraries)
        told = {
            "ASSAY_FAKE_AMDHIP": " ".join(
                f"{name}={value}" for name, value in {"gpus": gpus, **HIP, **(hip or {})}.items()
            ),
            "ASSAY_FAKE_AMD_SMI": json.dumps({"count": gpus, **SMI, **(smi or {})}),
            "ASSAY_FAKE_RCCL": rccl,
        }
        for name, text in told.items():
            (libraries / name).write_text(text)
        profile = self.profile([small(one, driver) for one in shipped(probes)], gpus)
        node = {"name": "n01", "launcher": "kubernetes", "pod": "assay-n01", "directory": str(self.work / "n01")}
        self.done = self.assay(
            "accept",
            "--profile",
            self.write("profile.json", profile),
            "--site",
            self.site(node),
            "--out",
            self.run_directory,
        )
        self.assertTrue((self.run_directory / "verdict.json").exists(), self.done.stderr)
        self.results = self.verdict()["results"]
        rates = {one["id"] for one in shipped(probes) if one["limit"]["unit"] in RATES}
        return {
            (
                result["requirement"],
                "".join(name for kind, name in result["subject"].items() if kind != "node"),
            ): result["outcome"]
            for result in self.results
            if result["outcome"] != "pass" and result["requirement"] not in rates
        }

    def reason_of(self, requirement):
        return next(r["reason"] for r in self.results if r["requirement"] == requirement and r["outcome"] != "pass")

    def test_a_healthy_node_meets_all_that_its_profile_asks_and_its_dossier_verifies(self):
        for probes, gpus in WHOLE:
            left = self.judge(probes, gpus=gpus)
            self.assertEqual(left, {}, [self.reason_of(requirement) for requirement, _ in left])
            self.assertEqual(self.done.returncode, 0, self.done.stdout)
            told = {result["requirement"] for result in self.results if result["outcome"] != "not_measured"}
            self.assertEqual(told, {one["id"] for one in shipped(probes)})
            self.assertEqual(self.verify().returncode, 0)
            self.assertIn("simulated 6.12.12", (self.run_directory / "report.html").read_text())
            shutil.rmtree(self.run_directory)
            shutil.rmtree(self.work)

    def test_by_the_conditions_of_the_shipped_profile_a_made_up_driver_accepts_nothing(self):
        demand = next(
            c for one in shipped(["health_amd"]) for c in one.get("conditions", []) if c["name"] == "driver_version"
        )
        left = self.judge(["health_amd"], driver=demand)
        self.assertEqual(self.done.returncode, 3, self.done.stdout)
        self.assertEqual(set(left.values()), {"inconclusive"})
        self.assertIn("simulated 6.12.12", self.reason_of("health.gpus"))

    def test_a_simulated_fleet_is_measured_by_all_of_it_and_its_slow_node_found(self):
        profile = self.profile(shipped(PROBES))
        faults = {"schema": "assay.faults/1", "bad_nodes": [{"node": "n00003", "factor": 0.5}]}
        done = self.assay(
            *("simulate", "--profile", self.write("profile.json", profile), "--nodes", 8, "--seed", 7),
            *("--faults", self.write("faults.json", faults)),
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("SIMULATION: nothing was measured\n"), done.stdout)
        self.assertIn("1 found, 0 missed, 0 false alarms", done.stdout)

    def check(self, probes, faults, **node):
        left = self.judge(probes, **node)
        self.assertEqual({cell: left.get(cell) for cell in faults}, faults, self.done.stdout)
        self.assertNotEqual(self.done.returncode, 0)

    def test_what_amd_smi_tells_of_one_gpu_rejects_it(self):
        smi = {
            "gpus": {
                "1": {"umc": [0, 1, 0], "total": [0, 1, 0]},
                "2": {"links": [1, 1, 1, 0, 1, 1, 1, 2]},
                "3": {"xgmi_state": 1},
                "4": {"pages": [1, 2]},
                "5": {"lost": True},
            }
        }
        self.check(
            ["health_amd"],
            {
                ("health.ecc_uncorrected", uuid(1)): "fail",
                ("health.block_uncorrected", uuid(1)): "fail",
                ("health.xgmi_links_down", uuid(2)): "fail",
                ("health.xgmi_errors", uuid(3)): "fail",
                ("health.retired_pages_pending", uuid(4)): "fail",
                ("health.retired_pages_failed", uuid(4)): "fail",
                ("health.gpus", ""): "fail",
                ("health.query_errors", "index-5"): "fail",
            },
            smi=smi,
        )

    def test_memory_that_does_not_return_what_was_stored_rejects_it(self):
        self.check(["amd_hbm_bandwidth"], {("hbm.mismatches", uuid(0)): "fail"}, hip={"fault": "stuck"}, gpus=2)

    def test_a_wrong_product_rejects_every_gpu_that_makes_it(self):
        faults = {(f"amd_gemm.{kind}.mismatches", uuid(1)): "fail" for kind in ("bf16", "fp8_e4m3")}
        self.check(["amd_gemm"], faults, hip={"fault": "wrong"}, gpus=2)

    def test_a_copy_between_gpus_that_does_not_arrive_rejects_the_pair(self):
        self.check(
            ["amd_peer_bandwidth"],
            {("peer.mismatches", f"{uuid(1)}>{uuid(2)}"): "fail"},
            hip={"fault": "peer_copy"},
            gpus=3,
        )

    def test_gpus_that_reach_each_other_over_pcie_are_no_judgement_of_xgmi(self):
        self.judge(["amd_peer_bandwidth"], smi={"gpu": {"cache_kb": 64, "link": [2, 1]}}, gpus=3)
        cells = [result for result in self.results if result["requirement"] == "peer.read.bandwidth"]
        self.assertEqual({result["outcome"] for result in cells}, {"inconclusive"})
        self.assertIn("The GPUs reached each other by pcie", self.reason_of("peer.read.bandwidth"))

    def test_a_wrong_sum_rejects_the_node(self):
        self.check(["rccl_collective"], {("rccl.all_reduce.mismatches", ""): "fail"}, rccl="rank=5 fault=wrong")

    def test_a_rank_that_dies_is_named(self):
        self.check(["rccl_collective"], {("rccl.all_reduce.mismatches", ""): "error"}, rccl="rank=5 fault=dies")
        self.assertIn(f" {uuid(5)}) was killed by signal 9", self.reason_of("rccl.all_reduce.mismatches"))

    def not_measured(self, requirement, words, **node):
        probes = [one["probe"] for one in shipped(PROBES) if one["id"] == requirement]
        left = self.judge(probes, **node)
        self.assertEqual(set(left.values()), {"not_measured"}, self.done.stdout)
        self.assertEqual(self.done.returncode, 3)
        self.assertIn(words, self.reason_of(requirement))
        shutil.rmtree(self.run_directory)
        shutil.rmtree(self.work)

    def test_what_is_missing_is_said_with_what_to_do(self):
        if pathlib.Path("/opt/rocm").exists():
            self.skipTest("this machine has ROCm")
        older = "of an older ROCm: libamd_smi.so.26 of ROCm 7.0 or newer is read; hint: install that too"
        self.not_measured("health.gpus", older, without=["libamd_smi.so.26"])
        both = ["libamd_smi.so.26", "libamd_smi.so.25"]
        self.not_measured("health.gpus", "it comes with ROCm 7.0 or newer", without=both)
        self.not_measured("hbm.mismatches", "it comes with ROCm 6.0 or newer", without=["libamdhip64.so.7"])
        self.not_measured(
            "amd_gemm.bf16.mismatches",
            "libhipblaslt.so.1, libhipblaslt.so.0 does not open",
            without=["libhipblaslt.so.1"],
        )
        self.not_measured("rccl.all_reduce.mismatches", "librccl.so.1 does not open", without=["librccl.so.1"])
        self.not_measured("peer.mismatches", "the HIP runtime shows no GPU", hip={"fault": "no_gpu"})
        self.not_measured("health.gpus", "finds no working driver", smi={"init": 34})

    def test_a_partitioned_gpu_is_no_gpu_of_the_profile(self):
        left = self.judge(["health_amd"], smi={"gpu": {"cache_kb": 64, "compute": "CPX", "memory_mode": "NPS4"}})
        self.assertEqual(left["health.facts_missing", uuid(0)], "inconclusive")
        self.assertIn("amd-smi set --compute-partition", self.reason_of("health.facts_missing"))

    def test_a_container_without_the_device_is_told_so_in_the_first_line(self):
        if pathlib.Path("/dev/kfd").exists():
            self.skipTest("this machine has amdgpu")
        done = self.assay("accept", "--profile", "amd-mi300x", "--allow-missing")
        self.assertEqual(done.returncode, 2, done.stderr)
        first = done.stderr.splitlines()[0]
        self.assertIn("measures AMD GPUs, and this machine shows none: /dev/kfd is absent", first)
        self.assertIn("--device=/dev/kfd --device=/dev/dri", done.stderr)


if __name__ == "__main__":
    main()
