"""Whether a contrast tells a feature that works from one that does not: transparent huge pages by the latency of memory, where something
has switched them off; and large segments by the payload of a link whose rate tc sets. Once each, or as often as ASSAY_CONTRAST_RUNS says."""
import ctypes
import os

from bench import ClusterBench
from harness import Bench, main

PR_SET_THP_DISABLE = 41  # prctl(2): of this process and all that it starts, whatever they ask for
GAIN = 0.05


def huge_pages():
    return {
        "id": "huge_pages.gain",
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


class Counted:
    """Runs of one contrast, one line each."""

    runs = int(os.environ.get("ASSAY_CONTRAST_RUNS", "1"))

    def results(self, accept):
        for run in range(self.runs):
            self.run_directory = self.scratch / f"run{run}"
            done = accept()
            self.assertIn(done.returncode, (0, 1, 3), done.stderr + done.stdout)
            result = next(one for one in self.verdict()["results"] if "gain" in one["requirement"])
            print(f"{run}: {result['outcome']}: {result['reason']}", flush=True)
            yield result


class HugePages(Counted, Bench):
    def setUp(self):
        super().setUp()
        with open("/sys/kernel/mm/transparent_hugepage/enabled") as states:
            if "[never]" in states.read():
                self.skipTest("this machine has no transparent huge pages")

    def test_a_feature_that_works_is_never_accused(self):
        for result in self.results(lambda: self.accept(huge_pages())):
            self.assertIn(result["outcome"], ("pass", "conditional_pass", "inconclusive"))

    def test_a_feature_that_was_switched_off_is_named_and_never_passes(self):
        libc = ctypes.CDLL(None, use_errno=True)
        self.assertEqual(libc.prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0)
        self.addCleanup(libc.prctl, PR_SET_THP_DISABLE, 0, 0, 0, 0)
        for result in self.results(lambda: self.accept(huge_pages())):
            self.assertEqual(result["outcome"], "inconclusive")
            self.assertIn("huge_pages could not be switched: huge_page_share was 0 with", result["reason"])


class Segments(Counted, ClusterBench):
    """Of 1514 B on the wire 1448 are payload, and of 602 B 536: 7.4 % more."""

    nodes = 2

    def accept_gain(self, at_least):
        gain = {
            "id": "segments.gain",
            "title": "Large segments carry more payload",
            "probe": "host_tcp_bandwidth",
            "parameters": {"streams": 2, "block": "8KiB", "min_samples": 10, "max_samples": 20, "time_limit": "4s"},
            "metric": "forward_bandwidth",
            "scope": "pair",
            "contrast": {"parameter": "mss", "on": "0", "off": "536", "at_least": at_least, "shown_by": "mss"},
            "repeat": {"attempts": 3, "more_attempts": 4},
            "source": {"document": "the test", "status": "sourced"},
        }
        return self.accept_on_cluster(gain)

    def setUp(self):
        super().setUp()
        for node in self.cluster.nodes:
            node.slow_link("50mbit")
            node.bound_streams()

    def test_a_gain_that_is_there_is_never_accused(self):
        for result in self.results(lambda: self.accept_gain(0.03)):
            self.assertIn(result["outcome"], ("pass", "conditional_pass", "inconclusive"))

    def test_a_gain_that_is_not_there_fails(self):
        for result in self.results(lambda: self.accept_gain(0.2)):
            self.assertEqual(result["outcome"], "fail")
            self.assertIn("mss gains only ", result["reason"])


if __name__ == "__main__":
    main()
