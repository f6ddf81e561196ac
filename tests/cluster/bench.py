"""bench: `assay` at the head of a test cluster, and what must hold after every run on it, whatever went wrong."""
import pathlib

from cluster import Cluster
from harness import Bench, processes, profile, requirement, wait_for

# An agent that hears nothing for 60 s kills what it runs and goes; the rest is for a loaded machine.
AGENT_PATIENCE_S = 120
START_PATIENCE_S = 120  # agents are up within a second, on a loaded machine with others in a minute


def pair(name, probe="fake_fabric", parameters=None, metric="number", limit=None, **more):
    """One requirement on a probe that the nodes of every pair run together."""
    return requirement(
        name,
        probe=probe,
        scope="pair",
        metric=metric,
        parameters=parameters or {"behaviour": "measure", "value": 100},
        limit=limit or {"at_least": 50, "unit": "1"},
        **more,
    )


class ClusterBench(Bench):
    """A cluster of `nodes` nodes for each test, and shorthands."""

    nodes = 4
    disk = ""

    def setUp(self):
        super().setUp()
        self.cluster = Cluster(self.nodes, self.disk)
        self.cluster.__enter__()
        self.addCleanup(self.cluster.__exit__)
        self.prefix = self.cluster.head

    def accept_on_cluster(self, *requirements, more=()):
        return self.accept(*requirements, more=["--site", self.cluster.site_file, *more])

    def start_on_cluster(self, *requirements):
        """The same in the background."""
        return self.start(
            "accept",
            "--profile",
            self.write("profile.json", profile(*requirements)),
            "--site",
            self.cluster.site_file,
            "--out",
            self.run_directory,
        )

    def begun(self, part=""):
        """Whether an attempt of a step whose id contains `part` has begun and not ended."""
        lines = [line for line in self.journal() if part in line.get("step", "")]
        begun = {line["step"] for line in lines if line["kind"] == "attempt_begin"}
        return bool(begun - {line["step"] for line in lines if line["kind"] == "attempt_end"})

    def judged_otherwise(self, *names):
        """Outcomes of all cells that hold none of the nodes `names`."""
        return {cell: outcome for cell, outcome in self.outcomes().items() if not set(cell[1].split("+")) & set(names)}

    def assert_only_culprit(self, name):
        """Every cell without the node passed, and no other node stands for what happened."""
        healthy = self.judged_otherwise(name)
        self.assertTrue(healthy)
        self.assertEqual({cell: outcome for cell, outcome in healthy.items() if outcome != "pass"}, {}, self.reasons())

    def found(self, outcomes=None):
        """The cells that the judge decided against, with their outcomes. Of an uneven machine it leaves rates open: at most half of
        all cells may be, or the test shows nothing."""
        outcomes = self.outcomes() if outcomes is None else outcomes
        left_open = [cell for cell, outcome in outcomes.items() if outcome in ("inconclusive", "conditional_pass")]
        self.assertLessEqual(2 * len(left_open), len(outcomes), self.reasons())
        return {cell: outcome for cell, outcome in outcomes.items() if outcome != "pass" and cell not in left_open}

    def assert_most_fail(self, faulty, found):
        """Of the cells `faulty` at least two thirds fail, and no other one."""
        self.assertLessEqual(set(found.items()), {(cell, "fail") for cell in faulty}, self.reasons())
        self.assertLessEqual(2 * len(faulty), 3 * len(found), self.reasons())

    def check_aftermath(self, key=None):
        """The evidence verifies, and nothing of the run is left on the head or on any living node."""
        verified = self.verify(key=key)
        self.assertEqual(verified.returncode, 0, verified.stderr)
        self.assertEqual(processes(str(self.run_directory)), [])
        wait_for(lambda: not self.cluster.strangers(), "no process is left on the nodes", AGENT_PATIENCE_S)
        for node in self.cluster.nodes:
            if node.init is not None:
                scratch = pathlib.Path(f"/proc/{node.init}/root{node.directory}/scratch")
                self.assertEqual(list(scratch.iterdir()) if scratch.exists() else [], [], node.name)
