"""Whether a contrast tells a feature that works from one that something has switched off: transparent huge pages, by
the latency of memory. Once each, or as often as ASSAY_CONTRAST_RUNS says."""
import ctypes
import os

from harness import Bench, main, profile

PR_SET_THP_DISABLE = 41  # prctl(2): of this process and all that it starts, whatever they ask for
GAIN = 0.05


def huge_pages():
    return {
        "id": "huge",
        "title": "Huge pages make memory faster",
        "probe": "host_memory_latency",
        "parameters": {
            "size": os.environ.get("ASSAY_CONTRAST_SIZE", "256MiB"),
            "min_samples": 10,
            "max_samples": 20,
            "warmup_limit": "500ms",
            "time_limit": "3s",
        },
        "metric": "latency",
        "scope": "node",
        "contrast": {
            "parameter": "huge_pages",
            "on": "on",
            "off": "off",
            "at_least": GAIN,
            "shown_by": "huge_page_share",
        },
        "repeat": {"attempts": 3, "more_attempts": 4},
        "source": {"document": "the test", "status": "sourced"},
    }


class HugePages(Bench):
    runs = int(os.environ.get("ASSAY_CONTRAST_RUNS", "1"))

    def setUp(self):
        super().setUp()
        with open("/sys/kernel/mm/transparent_hugepage/enabled") as states:
            if "[never]" in states.read():
                self.skipTest("this machine has no transparent huge pages")

    def result(self, run):
        self.run_directory = self.scratch / f"run{run}"
        done = self.accept(huge_pages())
        self.assertIn(done.returncode, (0, 1, 3), done.stderr + done.stdout)
        result = self.verdict()["results"][0]
        print(f"{run}: {result['outcome']}: {result['reason']}", flush=True)
        return result

    def test_a_feature_that_works_is_never_accused(self):
        for run in range(self.runs):
            self.assertIn(self.result(run)["outcome"], ("pass", "conditional_pass", "inconclusive"))

    def test_a_feature_that_was_switched_off_is_named_and_never_passes(self):
        libc = ctypes.CDLL(None, use_errno=True)
        self.assertEqual(libc.prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0)
        self.addCleanup(libc.prctl, PR_SET_THP_DISABLE, 0, 0, 0, 0)
        for run in range(self.runs):
            result = self.result(run)
            self.assertEqual(result["outcome"], "inconclusive")
            self.assertIn("huge_pages could not be switched: huge_page_share was 0 with", result["reason"])


if __name__ == "__main__":
    main()
