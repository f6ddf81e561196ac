"""Nodes that fall silent without a word: frozen, or cut off in mid-step. The head gives them a minute, and then goes on without them."""
from bench import START_PATIENCE_S, ClusterBench, pair
from harness import main, requirement, wait_for

HEAD_PATIENCE_S = 240  # a minute of silence, a minute for ssh to see a cut network, and reconnections


class Silence(ClusterBench):
    nodes = 3

    def fall_silent(self, silence, come_back):
        process = self.start_on_cluster(*(requirement(f"r{i}", "slow", value=100 + i) for i in range(3)), pair("pair"))
        wait_for(lambda: self.begun("fake_probe-n02"), "a step runs on n02", START_PATIENCE_S)
        silence(self.cluster["n02"])
        self.assertEqual(process.wait(HEAD_PATIENCE_S), 3)
        self.assert_only_culprit("n02")
        alone = {self.outcomes()[(f"r{i}", "n02")] for i in range(3)}
        self.assertIn("error", alone, self.reasons())
        self.assertTrue(any("lost" in self.reasons()[(f"r{i}", "n02")] for i in range(3)), self.reasons())
        for (name, node), outcome in self.outcomes().items():
            if name == "pair" and "n02" in node.split("+"):
                self.assertEqual(outcome, "not_measured", node)
                self.assertIn("n02", self.reasons()[(name, node)])
        come_back(self.cluster["n02"])
        self.check_aftermath()


class Frozen(Silence):
    def test_a_frozen_node_is_named_and_leaves_nothing_once_it_thaws(self):
        self.fall_silent(lambda node: node.freeze(), lambda node: node.thaw())


class CutOff(Silence):
    def test_a_node_that_is_cut_off_in_mid_step_is_named_and_cleans_up_by_itself(self):
        self.fall_silent(lambda node: node.cut_off(), lambda node: None)


if __name__ == "__main__":
    main()
