"""The head is killed at twenty random instants of a run on real nodes, and resumed: nothing is lost, nothing is doubled, nothing stays."""
import random
import signal
import time

from bench import AGENT_PATIENCE_S, ClusterBench, pair
from harness import DEADLINE_S, main, processes, requirement, wait_for

INSTANTS = 20
SEED = 4
CELLS = [("r", "n01"), ("r", "n02"), ("s", "n01"), ("s", "n02"), ("pair", "n01+n02"), ("again", "n01+n02")]
REQUIREMENTS = [
    requirement("r", "slow"),
    requirement("s", "slow", value=200),
    pair("pair"),
    pair("again", parameters={"behaviour": "measure", "value": 70}),
]


class Resume(ClusterBench):
    nodes = 2

    def test_kill_9_at_twenty_random_instants_is_always_resumed_to_the_same_verdict(self):
        self.key = self.scratch / "lab.key"
        self.assertEqual(self.assay("keygen", self.key).returncode, 0)
        self.run_directory = self.scratch / "undisturbed"
        begin = time.monotonic()
        self.assertEqual(self.accept_on_cluster(*REQUIREMENTS).returncode, 0)
        longest = time.monotonic() - begin
        dice = random.Random(SEED)
        interrupted = 0
        for instant in range(INSTANTS):
            delay = dice.uniform(0, longest)
            with self.subTest(instant=instant, delay=delay):
                self.run_directory = self.scratch / f"run{instant}"
                process = self.start_on_cluster(*REQUIREMENTS)
                time.sleep(delay)
                process.send_signal(signal.SIGKILL)
                process.wait(DEADLINE_S)
                finished = (self.run_directory / "verdict.json").exists()
                interrupted += not finished
                wait_for(
                    lambda: not self.cluster.strangers(), "the nodes noticed that the head is gone", AGENT_PATIENCE_S
                )
                if not (self.run_directory / "journal.jsonl").exists():
                    continue  # killed before the run began: there is nothing to lose
                key = self.resume_and_sign()
                self.assertEqual(self.verdict()["overall"], "accepted", self.reasons())
                self.assertEqual(self.outcomes(), dict.fromkeys(CELLS, "pass"))
                ended = [line["step"] for line in self.journal() if line["kind"] == "attempt_end"]
                self.assertEqual(len(ended), len(set(ended)), "a finished step was repeated")
                self.check_aftermath(key)
        self.assertGreater(interrupted, 0, "no instant lay within a run")

    def resume_and_sign(self):
        """Goes on to the end, and signs what a killed `accept` had no time to sign. Returns the key that the dossier is signed with."""
        wait_for(
            lambda: not processes(str(self.run_directory)),
            "a report that was being written when the head was killed is done",
        )
        signed = (self.run_directory / "dossier").exists()  # it is put in place whole or not at all
        signing = [["report", self.run_directory], ["sign", self.run_directory, "--key", self.key]]
        for command in [["run", "--resume", self.run_directory], *([] if signed else signing)]:
            done = self.assay(*command)
            self.assertEqual(done.returncode, 0, f"{command}: {done.stdout}{done.stderr}")
        return None if signed else self.key.with_suffix(".key.pub")


if __name__ == "__main__":
    main()
