"""`assay accept` over ssh: real sshd instances on this machine, each a node with a key and a directory of its own."""
import pathlib

from harness import DAEMON_S, main, processes, requirement, wait_for
from loopback import LoopbackBench


def together(name, behaviour="measure", scope="pair", **more):
    """One requirement on fake_fabric, which the nodes of a pair or of the whole site run together."""
    return requirement(name, behaviour, probe="fake_fabric", scope=scope, **more)


class SshNodes(LoopbackBench):
    def test_two_healthy_nodes_are_deployed_to_run_collected_and_judged(self):
        done = self.accept_on_site(requirement("r"), requirement("s", value=200))
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertEqual(set(self.outcomes()), {(r, n) for r in ("r", "s") for n in ("n01", "n02")})
        self.assertEqual(self.verify().returncode, 0)
        self.nothing_left_on_nodes()

    def test_a_changed_host_key_is_named_and_the_other_node_is_judged(self):
        self.site["nodes"][0]["host_key"] = self.site["nodes"][1]["host_key"]
        done = self.accept_on_site(requirement("r"))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(self.outcomes(), {("r", "n01"): "not_measured", ("r", "n02"): "pass"})
        self.assertIn("host key", self.reasons()[("r", "n01")].lower())
        self.nothing_left_on_nodes()

    def test_a_node_that_is_down_is_named_and_the_other_is_judged(self):
        self.site["nodes"][1]["port"] = 1
        done = self.accept_on_site(requirement("r"))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(self.outcomes(), {("r", "n01"): "pass", ("r", "n02"): "not_measured"})
        self.assertIn("n02", self.reasons()[("r", "n02")])
        self.nothing_left_on_nodes()

    def test_misbehaving_probes_are_named_on_each_node_and_nothing_stays(self):
        behaviours = {
            "hang": "error",
            "crash": "error",
            "flood": "error",
            "garbage": "error",
            "daemon": "pass",
            "measure": "pass",
        }
        done = self.accept_on_site(*(requirement(name, name, value=DAEMON_S) for name in behaviours))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(
            self.outcomes(), {(name, node): outcome for name, outcome in behaviours.items() for node in ("n01", "n02")}
        )
        self.assertEqual(self.verify().returncode, 0)
        self.nothing_left_on_nodes()

    def test_two_nodes_run_one_step_together_and_each_rank_leaves_its_record(self):
        done = self.accept_on_site(
            together("pair", conditions=[{"name": "hosts", "equals": 2}, {"name": "token_is_secret", "equals": True}])
        )
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertEqual(self.outcomes(), {("pair", "n01+n02"): "pass"})
        ranks = sorted(path.name for path in (self.run_directory / "records").rglob("*.jsonl"))
        self.assertEqual(ranks, ["0.jsonl", "1.jsonl"])
        self.assertEqual(self.verify().returncode, 0)
        self.nothing_left_on_nodes()

    def test_a_rank_that_goes_wrong_is_named_with_its_node_and_the_rest_is_judged(self):
        wrong = {
            "crash": "n02: ",
            "hang": "n02: ",
            "error": "rank 1",
            "absent": "n02: ",
            "skip": "n02: the probe skipped",
        }
        done = self.accept_on_site(
            requirement("alone"), *(together(name, name) for name in wrong), together("good", scope="cluster")
        )
        self.assertEqual(done.returncode, 3, done.stderr)
        outcomes = self.outcomes()
        self.assertEqual(
            {outcomes[("alone", node)] for node in ("n01", "n02")} | {outcomes[("good", "loopback")]}, {"pass"}
        )
        for name, words in wrong.items():
            self.assertEqual(outcomes[(name, "n01+n02")], "not_measured" if name == "skip" else "error", self.reasons())
            self.assertIn(words, self.reasons()[(name, "n01+n02")])
        self.assertEqual(self.verify().returncode, 0)
        self.nothing_left_on_nodes()

    def test_a_pair_without_one_of_its_nodes_is_not_measured_and_the_node_is_named(self):
        self.site["nodes"][1]["port"] = 1
        done = self.accept_on_site(requirement("alone"), together("pair"))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(
            self.outcomes(),
            {("alone", "n01"): "pass", ("alone", "n02"): "not_measured", ("pair", "n01+n02"): "not_measured"},
        )
        self.assertIn("n02", self.reasons()[("pair", "n01+n02")])
        self.nothing_left_on_nodes()

    def test_one_machine_under_two_addresses_is_named_and_accepts_nothing(self):
        first, second, *rest = self.site["nodes"][0]["address"].split(".")
        twin = dict(
            self.site["nodes"][0], name="n03", address=".".join([first, str(int(second) + 64), *rest])
        )  # see ssh_nodes
        self.site["nodes"].append(twin)
        done = self.accept_on_site(requirement("r"))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(self.outcomes(), {("r", "n01"): "error", ("r", "n02"): "pass", ("r", "n03"): "error"})
        self.assertIn("n01 and n03 are one machine", self.reasons()[("r", "n01")])

    def nothing_left_on_nodes(self):
        """No probe runs and no scratch directory stays on any node; the sshd instances themselves live on."""
        for node in self.site["nodes"]:
            scratch = pathlib.Path(node["directory"]) / "scratch"
            self.assertEqual(list(scratch.iterdir()) if scratch.exists() else [], [])
        wait_for(
            lambda: not [agent for agent in processes("assay-node --") if str(self.cluster) in agent], "agents are gone"
        )
        wait_for(lambda: not processes(f"sleep {DAEMON_S}"), "daemonised children are gone")


if __name__ == "__main__":
    main()
