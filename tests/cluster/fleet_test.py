"""Many healthy nodes: 64 are accepted, and runs in a row raise no alarm: three, or as many as ASSAY_HEALTHY_RUNS says."""
import os

from bench import ClusterBench, pair
from harness import main, requirement
from links_test import LINK, METRICS, exact, fills_the_link
from undisturbed import measures

FLEET = 64
RUNS = int(os.environ.get("ASSAY_HEALTHY_RUNS", "3"))


class Fleet(ClusterBench):
    nodes = FLEET
    deadline_s = 800  # half a minute of a quiet machine, most of it OpenSSH; tests that run beside it take their share

    def test_sixty_four_ssh_nodes_are_accepted(self):
        processors = requirement(
            "processors",
            probe="health_inventory",
            parameters={},
            metric="cpus_online",
            limit={"at_least": 1, "unit": "1"},
            statistic="min",
            repeat={"n": 1},
        )
        done = self.accept_on_cluster(requirement("r"), processors, pair("pair", rounds=2))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(sum(node.count("+") == 0 for _, node in self.outcomes()), 2 * FLEET)
        self.assertEqual(sum(node.count("+") == 1 for _, node in self.outcomes()), 2 * FLEET // 2)
        self.assertEqual(set(self.outcomes().values()), {"pass"})
        self.check_aftermath()


class Healthy(ClusterBench):
    @measures
    def test_a_healthy_cluster_run_again_and_again_raises_no_alarm(self):
        for node in self.cluster.nodes:
            node.slow_link(LINK)
            node.bound_streams()
        for run in range(RUNS):
            self.run_directory = self.scratch / f"run{run}"
            done = self.accept_on_cluster(requirement("r"), pair("pair"), *map(fills_the_link, METRICS), exact("exact"))
            self.assertIn(done.returncode, (0, 3), f"run {run}: {done.stdout}{done.stderr}")
            self.assertEqual(self.found(), {}, self.reasons())
            self.check_aftermath()


if __name__ == "__main__":
    main()
