"""`assay accept` on made-up nodes with eight GPUs: the healthy one passes, and each fault is named with its GPU."""
import json
import os
import pathlib

from harness import Bench, main

TESTS = pathlib.Path(__file__).resolve().parent.parent
STATES = TESTS / "fakes/nvml"
OF_EACH_GPU = {
    requirement["id"]
    for requirement in json.loads((TESTS / "e2e/gpu_health.json").read_text())["requirements"]
    if requirement["scope"] == "gpu"
}
BESIDE = ["ecc_uncorrected", "remapping_failed"]


def uuid(index):
    return f"GPU-0000000{index}-5afe-4000-8000-00000000000{index}"


class GpuHealth(Bench):
    def judge(self, scenario, log="quiet.log", library=None):
        """Accepts the node of `scenario`; (requirement, subject) to outcome for every cell that does not pass."""
        node = self.scratch / "nvml"
        node.mkdir()
        (node / "libnvidia-ml.so.1").symlink_to(os.environ["ASSAY_FAKE_NVML_LIBRARY"])
        (node / "state.json").write_text(json.dumps({"base": str(STATES / f"{scenario}.json")}))
        profile = self.profile_with(
            {
                "nvml_library": library or str(node / "libnvidia-ml.so.1"),
                "kernel_log": log if log.startswith("/") else str(STATES / log),
            }
        )
        self.done = self.assay(
            "accept",
            "--profile",
            self.write("profile.json", profile),
            "--out",
            self.run_directory,
            "--directory",
            self.work,
        )
        self.results = self.verdict()["results"] if (self.run_directory / "verdict.json").exists() else []
        return {
            (result["requirement"], self.subject_of(result)): result["outcome"]
            for result in self.results
            if result["outcome"] != "pass" and not result["requirement"].startswith("beside.")
        }

    @staticmethod
    def profile_with(parameters):
        profile = json.loads((TESTS / "e2e/gpu_health.json").read_text())
        # What the probe finds wrong must be judged; these two are not what is tested here.
        profile["requirements"] += [
            {
                "id": f"beside.{metric}",
                "title": metric,
                "probe": "health_gpu",
                "metric": metric,
                "scope": "gpu",
                "limit": {"at_most": 0, "unit": "1"},
            }
            for metric in BESIDE
        ]
        for requirement in profile["requirements"]:
            requirement["parameters"] = parameters
            requirement.setdefault("conditions", []).append({"name": "driver_version", "equals": "simulated 575.57.08"})
            requirement.update(
                {
                    "repeat": {"n": 1},
                    "statistic": "max" if "at_most" in requirement["limit"] else "min",
                    "source": {"document": "the test", "status": "sourced"},
                }
            )
        return profile

    @staticmethod
    def subject_of(result):
        ((kind, name),) = result["subject"].items()
        return "node" if kind == "node" else name

    def rejected(self, scenario, faults, missing=(), **more):
        """The node is rejected, and what does not pass is exactly `faults`, each a failure, and the node's own cell of each
        requirement in `missing`, of which one GPU too few has told a figure."""
        expected = {fault: "fail" for fault in faults} | {
            (requirement, "node"): "not_measured" for requirement in missing
        }
        self.assertEqual(self.judge(scenario, **more), expected, self.done.stderr)
        self.assertEqual(self.done.returncode, 1, self.done.stdout)

    def test_a_healthy_node_is_accepted(self):
        self.assertEqual(self.judge("healthy"), {}, self.done.stderr)
        self.assertEqual(self.done.returncode, 0, self.done.stdout)
        self.assertEqual(len(self.results), 2 + (14 + len(BESIDE)) * 8)
        self.assertEqual(self.verify().returncode, 0)

    def test_a_dead_nvlink_is_rejected(self):
        self.rejected("dead_nvlink", [("nvlinks", uuid(3)), ("nvlink_speed", uuid(3))])

    def reason_of(self, requirement):
        return next(r["reason"] for r in self.results if r["requirement"] == requirement and r["outcome"] != "pass")

    def test_a_lane_that_is_down_rejects_its_gpu_and_the_link_is_named(self):
        self.rejected("slow_nvlink", [("nvlink_speed", uuid(3))])
        self.assertIn("Missed at link 7 (13.28 GB/s)", self.reason_of("nvlink_speed"))

    def test_a_link_that_is_up_at_no_rate_is_a_contradiction_and_no_failure(self):
        self.assertEqual(self.judge("zero_speed_nvlink"), {("nvlink_speed", uuid(2)): "inconclusive"})
        self.assertIn("1 answers of the driver about the GPU's links contradict", self.reason_of("nvlink_speed"))
        self.assertEqual(self.done.returncode, 3)

    def test_gpus_in_two_cliques_are_rejected(self):
        self.rejected("two_cliques", [("fabric_cliques", "node")])

    def test_a_gpu_that_the_fabric_refused_is_rejected(self):
        expected = {("fabric_faults", uuid(6)): "fail", ("fabric_cliques", "node"): "fail"}
        expected["nvlinks", uuid(6)] = "inconclusive"  # it demands fabric_state completed
        self.assertEqual(self.judge("refused_by_fabric"), expected)
        self.assertEqual(self.done.returncode, 1)

    def test_a_link_of_an_older_generation_is_rejected(self):
        self.rejected("gen3_link", [("pcie_generation", uuid(1))])

    def test_a_narrow_link_is_rejected(self):
        self.rejected("narrow_link", [("pcie_width", uuid(1))])

    def test_a_machine_without_a_gpu_is_told_so_in_the_first_line(self):
        if pathlib.Path("/dev/nvidiactl").exists():
            self.skipTest("this machine has an NVIDIA driver")
        done = self.assay("accept", "--profile", self.write("profile.json", self.profile_with({})))
        self.assertEqual(done.returncode, 2, done.stderr)
        first = done.stderr.splitlines()[0]
        self.assertIn("measures NVIDIA GPUs, and this machine shows none: /dev/nvidiactl is absent", first)
        self.assertEqual(done.stdout, "")

    def test_remapped_rows_are_rejected(self):
        self.rejected("remapped_rows", [("remapped_rows", uuid(6)), ("remapping_pending", uuid(6))])

    def test_a_gpu_that_was_too_hot_is_rejected(self):
        self.rejected("thermal_throttle", [("thermal_throttle", uuid(2))])

    def test_a_gpu_under_the_power_brake_is_rejected(self):
        self.rejected("power_brake", [("power_brake", uuid(4))])

    def test_a_busy_gpu_is_rejected(self):
        self.rejected("busy_gpu", [("other_processes", uuid(0))])

    def test_uncorrected_memory_errors_are_rejected(self):
        self.rejected("ecc", [("ecc_uncorrected", uuid(7))])

    def test_xid_events_are_rejected_on_their_gpu(self):
        self.rejected("healthy", [("xid_events", uuid(6))], log="xid.log")

    def test_seven_gpus_are_rejected(self):
        self.rejected("seven_gpus", [("gpus", "node")], missing=OF_EACH_GPU)

    def test_a_lost_gpu_is_rejected(self):
        self.rejected(
            "lost_gpu",
            [("gpus", "node"), ("query_errors", "index-5"), ("facts_missing", "index-5")],
            missing=OF_EACH_GPU - {"query_errors", "facts_missing"},
        )

    def test_a_gpu_that_tells_less_than_the_others_does_not_pass_by_it(self):
        self.rejected("unlike_gpu", [("facts_missing", uuid(2))], missing=["ecc_uncorrected"])

    def test_a_log_that_cannot_be_read_leaves_the_whole_incomplete(self):
        self.assertEqual(
            self.judge("healthy", log="/nonexistent/kmsg"), {("xid_events", "node"): "not_measured"}, self.done.stderr
        )
        self.assertEqual(self.done.returncode, 3)

    def test_a_node_without_a_driver_is_not_measured_and_the_reason_names_the_library(self):
        left = self.judge("no_driver")
        self.assertEqual(set(left.values()), {"not_measured"}, self.done.stderr)
        self.assertEqual(self.done.returncode, 3)
        self.assertTrue(all("Driver Not Loaded" in result["reason"] for result in self.results))

    def test_a_node_without_the_library_is_not_measured_and_the_reason_names_it(self):
        left = self.judge("healthy", library="libnvidia-ml-absent.so.1")
        self.assertEqual(set(left.values()), {"not_measured"}, self.done.stderr)
        self.assertTrue(all("libnvidia-ml-absent.so.1" in result["reason"] for result in self.results))


if __name__ == "__main__":
    main()
