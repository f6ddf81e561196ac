"""One fault at a time on a cluster of real nodes: the culprit is named, everything else is judged, the evidence verifies, nothing stays."""
import pathlib

from bench import START_PATIENCE_S, ClusterBench, pair
from harness import main, requirement, wait_for

LIAR = """#!/bin/sh
# Says of every file that it is the agent.
echo {sha256}  -
"""
EVIL_AGENT = """#!/bin/sh
touch {marker}
echo i am the agent, believe me
exec cat >/dev/null
"""


def slow_steps(count=4):
    """Requirements whose steps take a moment each, so that a fault meets one of them."""
    return [requirement(f"r{i}", "slow", value=100 + i) for i in range(count)]


class Faults(ClusterBench):
    def test_a_killed_node_is_named_and_the_others_are_judged(self):
        process = self.start_on_cluster(*slow_steps(), pair("pair"))
        wait_for(lambda: self.begun("fake_probe-n02"), "a step runs on n02", START_PATIENCE_S)
        self.cluster["n02"].kill()
        self.assertEqual(process.wait(120), 3)
        self.assert_only_culprit("n02")
        lost = [reason for (_, node), reason in self.reasons().items() if node == "n02"]
        self.assertTrue(any("lost" in reason for reason in lost), lost)
        for (name, node), outcome in self.outcomes().items():
            if "+" in node and "n02" in node.split("+"):
                self.assertEqual(outcome, "not_measured", (name, node))
                self.assertIn("n02", self.reasons()[(name, node)])
        self.check_aftermath()

    def test_a_node_that_reboots_in_mid_step_is_named_and_its_step_stands_as_lost(self):
        process = self.start_on_cluster(*slow_steps())
        wait_for(lambda: self.begun("fake_probe-n03"), "a step runs on n03", START_PATIENCE_S)
        self.cluster["n03"].reboot()
        self.assertEqual(process.wait(120), 3)
        self.assert_only_culprit("n03")
        outcomes = [outcome for (_, node), outcome in self.outcomes().items() if node == "n03"]
        self.assertEqual(outcomes.count("error"), 1, self.reasons())
        self.assertLessEqual(
            set(outcomes), {"error", "pass", "not_measured"}, self.reasons()
        )  # whether it is back in time is its own affair
        self.check_aftermath()

    def test_a_changed_host_key_is_named_and_the_node_is_not_spoken_to(self):
        node = self.cluster["n04"]
        node.new_host_key()
        node.reboot()
        done = self.accept_on_cluster(requirement("r"), pair("pair"))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assert_only_culprit("n04")
        self.assertEqual(self.outcomes()[("r", "n04")], "not_measured")
        self.assertIn("host key", self.reasons()[("r", "n04")])
        self.assertFalse((node.directory / "agents").exists())
        self.check_aftermath()

    def test_a_tampered_agent_on_a_node_is_replaced_before_it_can_run(self):
        self.assertEqual(self.accept_on_cluster(requirement("r")).returncode, 0)
        agent = next((self.cluster["n02"].directory / "agents").iterdir())
        right, marker = agent.read_bytes(), self.scratch / "the_evil_agent_ran"
        agent.chmod(0o700)
        agent.write_text(EVIL_AGENT.format(marker=marker))
        self.run_directory = self.scratch / "again"
        done = self.accept_on_cluster(requirement("r"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(marker.exists())
        self.assertEqual(agent.read_bytes(), right)
        self.check_aftermath()


class LyingNode(ClusterBench):
    def test_a_node_that_lies_about_its_agent_is_named_and_contained(self):
        self.assertEqual(self.accept_on_cluster(requirement("r")).returncode, 0)
        node = self.cluster["n02"]
        agent = next((node.directory / "agents").iterdir())
        marker = self.scratch / "the_evil_agent_ran"
        agent.chmod(0o700)
        agent.write_text(EVIL_AGENT.format(marker=marker))
        liar = pathlib.Path(self.write("liar", LIAR.format(sha256=agent.name)))
        liar.chmod(0o755)
        node.run("mount", "--bind", liar, "/usr/bin/sha256sum")
        self.run_directory = self.scratch / "again"
        done = self.accept_on_cluster(requirement("r"), pair("pair"))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertTrue(marker.exists())
        self.assert_only_culprit("n02")
        self.assertEqual(self.outcomes()[("r", "n02")], "not_measured")
        self.assertIn("n02", self.reasons()[("r", "n02")])
        self.check_aftermath()


class FullDisk(ClusterBench):
    disk = "64m"

    def test_a_node_whose_disk_is_full_is_named_and_the_others_are_judged(self):
        self.cluster["n03"].fill_disk()
        done = self.accept_on_cluster(requirement("r"), pair("pair"))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assert_only_culprit("n03")
        self.assertEqual(self.outcomes()[("r", "n03")], "not_measured")
        self.assertIn("the agent was not received completely", self.reasons()[("r", "n03")])
        self.check_aftermath()


if __name__ == "__main__":
    main()
