"""Training steps of four nodes: one that computes slowly is named by what it computes and by who waits, one behind a slow link is not, one stall shows
in the tail. Every node is held to a share of the two processors, or they would slow each other."""
import json
import math
import os
import signal
import statistics
import subprocess
import time

from bench import ClusterBench
from harness import BIN, main, requirement, wait_for
from undisturbed import measures, taken_of

SHARE = 0.35  # processors of each node: four of them leave a part of two to the head
SLOW = 0.8  # of that, for one node
SHORT = {"steps": 60, "block": 6, "warmup_steps": 2, "micro_batches": 2, "path": "fabric"}
DELAY_MS = 20
RATE_MBIT = 400
PARAMETERS = 2_000_128  # of tiny-dense
STALL_S = 0.4  # several steps
RUN_S, LOOK_S = 300, 0.01  # a run alone takes seconds
AMONG_STEPS = 0.65  # of the work of a run alone: exact steps and those without collectives take the first two fifths, the last tenth is exact steps again
ALONE = {"steps": 50, "block": 50, "warmup_steps": 2, "micro_batches": 4}
# Three and four ranks divide its heads.
TWELVE_HEADS = {
    "schema": "assay.model/1",
    "name": "twelve-heads",
    "layers": 2,
    "hidden": 192,
    "ffn": 528,
    "heads": 12,
    "kv_heads": 12,
    "head_dim": 16,
    "vocab": 1008,
    "tied": False,
    "mlp": "swiglu",
    "attention": "gqa",
    "moe": None,
}
SPLITS = {
    "tp2": {"tp": 2},
    "tp4": {"tp": 4},
    "tp3": {"tp": 3, "ranks_per_node": 3},
    "pp2": {"pp": 2},
    "dp4": {},
    "cp2": {"cp": 2},
    "ep4": {"model": "tiny-moe", "ep": 4},
    "tp2pp2": {"tp": 2, "pp": 2},
}
FEW = {"steps": 2, "block": 2, "warmup_steps": 1, "seq": 24, "reference": "one_rank"}


def steps(name, metric, limit, parameters=None, **more):
    return requirement(
        name,
        probe="train_step",
        parameters=dict(SHORT, **(parameters or {})),
        metric=metric,
        limit=limit,
        **{"scope": "cluster", **more},
    )


class TrainingSteps(ClusterBench):
    def samples(self, metric):
        """By subject, from the record of rank 0."""
        lines = [
            json.loads(line)
            for path in (self.run_directory / "records").rglob("0.jsonl")
            for line in path.read_text().splitlines()
        ]
        return {
            tuple(one["subject"].values())[0]: one["samples"]
            for one in (line.get("measurement", {}) for line in lines)
            if one.get("metric") == metric
        }

    def medians(self, metric):
        return {subject: statistics.median(samples) for subject, samples in self.samples(metric).items()}

    def share_processors(self, slow=None):
        for node in self.cluster.nodes:
            node.throttle(SHARE * (SLOW if node.name == slow else 1))

    def measure(self):
        done = self.accept_on_cluster(
            steps("self", "self_share", {"at_most": 1.1, "unit": "1"}), more=["--no-localise"]
        )
        self.assertIn(done.returncode, (0, 1, 3), done.stdout + done.stderr)
        self.assertEqual(next(iter(self.samples("mismatches").values())), [0.0])

    @measures
    def test_a_node_held_to_four_fifths_of_its_processor_is_named_by_self_time_and_by_who_waits(self):
        self.share_processors(slow="n03")
        self.measure()
        shares, last = self.medians("self_share"), {
            name: statistics.mean(one) for name, one in self.samples("last_share").items()
        }
        self.assertEqual(max(shares, key=shares.get), "n03", shares)
        self.assertGreater(shares["n03"], 1.1, shares)
        self.assertEqual(max(last, key=last.get), "n03", last)
        self.check_aftermath()

    @measures
    def test_a_node_behind_a_slow_link_lengthens_communication_and_is_not_blamed_for_computing(self):
        self.share_processors()
        self.cluster["n03"].delay_link(DELAY_MS)
        self.measure()
        self.assertGreater(min(self.medians("comm_time").values()), DELAY_MS / 1000)
        shares = self.medians("self_share")
        self.assertLess(shares["n03"], 1.1, shares)
        self.check_aftermath()

    @measures
    def test_a_node_whose_link_has_a_low_rate_lengthens_communication_and_is_not_blamed_for_computing(self):
        self.share_processors()
        self.cluster["n03"].slow_link(f"{RATE_MBIT}mbit")
        self.measure()
        # Every rank sends 3/4 of the fp32 gradients twice.
        self.assertGreater(min(self.medians("comm_time").values()), 0.8 * 1.5 * 4 * PARAMETERS * 8 / (RATE_MBIT * 1e6))
        shares = self.medians("self_share")
        self.assertLess(shares["n03"], 1.1, shares)
        self.check_aftermath()

    @measures
    def test_one_stall_in_fifty_steps_shows_in_the_tail_and_not_in_the_median(self):
        probe = self.start_alone()
        whole_s = self.worked_until(self.only_rank(), math.inf)
        self.alone(probe)
        probe = self.start_alone()
        rank = self.only_rank()
        self.worked_until(rank, AMONG_STEPS * whole_s)
        os.kill(rank, signal.SIGSTOP)
        time.sleep(STALL_S)
        os.kill(rank, signal.SIGCONT)
        record = self.alone(probe)
        times, tail = record["step_time"], record["tail_share"][0]
        self.assertEqual(len(times), 50)
        self.assertGreater(max(times), statistics.median(times) + STALL_S / 2, times)
        self.assertLess(statistics.median(times), 2 * min(times), times)
        self.assertGreaterEqual(tail, 0.02)

    def test_exact_steps_of_every_split_over_four_nodes_have_the_bits_of_one_rank(self):
        card = self.write("card.json", TWELVE_HEADS)
        exact = [
            steps(
                name,
                "mismatches",
                {"at_most": 0, "unit": "1"},
                {"model": card, **FEW, **split},
                statistic="max",
                repeat={"n": 1},
            )
            for name, split in SPLITS.items()
        ]
        done = self.accept_on_cluster(*exact, more=["--no-localise"])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(
            {name: outcome for (name, _), outcome in self.outcomes().items()}, dict.fromkeys(SPLITS, "pass")
        )
        self.check_aftermath()

    def test_ranks_of_four_nodes_that_are_killed_hang_and_are_cut_off_are_resumed_bit_by_bit(self):
        resumed = [
            requirement(
                name,
                probe="fault_resume",
                metric=name,
                limit={"at_most": 0, "unit": "1"},
                scope="cluster",
                at="every",
                statistic="max",
                repeat={"n": 1},
                parameters={
                    "ranks_per_node": 1,
                    "phases": "reduce",
                    "path": "fabric",
                    "micro_batch": 1,
                    "heartbeat": "500ms",
                },
            )
            for name in ("mismatches", "false_losses")
        ]
        done = self.accept_on_cluster(*resumed, more=["--no-localise"])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([len(times) for times in self.samples("mttr").values()], [3])
        self.check_aftermath()

    def start_alone(self):
        words = [word for name, value in ALONE.items() for word in (f"--{name.replace('_', '-')}", value)]
        return self.cluster["n01"].start(
            BIN.parent / "libexec/assay/probes/train_step", *words, stdout=subprocess.PIPE, text=True
        )

    def only_rank(self):
        wait_for(self.ranks, "a rank runs")
        (rank,) = self.ranks()
        return rank

    def worked_until(self, rank, most_s):
        """Waits until the rank has worked for so long, or has ended; for how long it has, which other load hardly changes."""
        worked_s = 0.0
        end = time.monotonic() + RUN_S
        while worked_s < most_s and self.is_rank(rank):
            self.assertLess(time.monotonic(), end, "the rank neither ends nor works")
            worked_s = max(worked_s, taken_of(rank))
            time.sleep(LOOK_S)
        self.assertTrue(most_s == math.inf or self.is_rank(rank), f"the rank ended after {worked_s} s of work")
        return worked_s

    def alone(self, probe):
        out, _ = probe.communicate(timeout=300)
        self.assertEqual(probe.returncode, 0, out)
        return {
            one["metric"]: one["samples"]
            for one in (json.loads(line).get("measurement", {}) for line in out.splitlines())
            if one
        }

    def ranks(self):
        return [pid for pid in self.cluster["n01"].process_ids() if self.is_rank(pid)]

    @staticmethod
    def is_rank(pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return file.read().startswith(b"train_step_rank\0")
        except OSError:
            return False


if __name__ == "__main__":
    main()
