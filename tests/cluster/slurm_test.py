"""`assay accept` through a real Slurm: slurmctld, munged, and a slurmd on every node of a test cluster."""
import json
import pathlib
import subprocess

from harness import main, processes, requirement, wait_for
from node import kept_in_sight
from slurm import find
from slurm_bench import SlurmBench

SLURM_PATIENCE_S = 60  # for slurmctld to notice that a job has ended


class OnSlurm(SlurmBench):
    def setUp(self):
        super().setUp()
        made = self.assay("site", "--from", "slurm", "--name", "slurm")
        self.assertEqual(made.returncode, 0, made.stderr)
        site = json.loads(made.stdout)
        for node in site["nodes"]:
            node["directory"] = "/tmp/assay-work"  # every node has a /tmp of its own
        site["slurm"] = {"wait_s": 60}
        self.cluster.site_file.write_text(json.dumps(site))

    def check_aftermath(self, key=None):
        verified = self.verify(key=key)
        self.assertEqual(verified.returncode, 0, verified.stderr)
        wait_for(lambda: self.slurm.jobs() == [], "no job is left in Slurm", SLURM_PATIENCE_S)
        wait_for(lambda: not self.strangers(), "no process of ours is left on the nodes", SLURM_PATIENCE_S)
        self.assertEqual(processes(str(self.run_directory)), [])
        known = {"assay-work", *(pathlib.Path(path).parts[2] for path in kept_in_sight() if path.startswith("/tmp/"))}
        for node in self.cluster.nodes:
            if node.init is not None:
                tmp = pathlib.Path(f"/proc/{node.init}/root/tmp")
                left = [(path.name, path.stat().st_size) for path in tmp.iterdir() if path.name not in known]
                self.assertEqual(left, [], node.name)
                self.assertEqual(list((tmp / "assay-work/scratch").glob("*")), [], node.name)

    def strangers(self):
        return [
            (node, line)
            for node, line in self.cluster.strangers()
            if not line.startswith((find("slurmd"), "slurmstepd:"))
        ]


class Healthy(OnSlurm):
    def test_eight_nodes_are_accepted_through_one_srun(self):
        done = self.accept_on_cluster(requirement("r"), requirement("s", value=200))
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertEqual(
            set(self.outcomes()), {(name, node.name) for name in ("r", "s") for node in self.cluster.nodes}
        )
        self.check_aftermath()

    def test_a_batch_job_accepts_the_nodes_of_its_own_allocation(self):
        profile = self.write(
            "profile.json",
            {
                "schema": "assay.profile/1",
                "name": "test",
                "title": "Test",
                "revision": 1,
                "requirements": [requirement("r")],
            },
        )
        made = self.assay("site", "sbatch", "--site", self.cluster.site_file, "--profile", profile)
        self.assertEqual(made.returncode, 0, made.stderr)
        script = self.write("accept.sbatch", made.stdout)
        submitted = subprocess.run(
            [*self.cluster.head, "sbatch", "--parsable", f"--chdir={self.scratch}", script],
            env=self.environment,
            capture_output=True,
            text=True,
        )
        self.assertEqual(submitted.returncode, 0, submitted.stderr)
        job = submitted.stdout.strip()
        self.run_directory = self.scratch / f"assay-run-{job}"
        log = self.scratch / f"assay-{job}.log"
        wait_for(lambda: self.slurm.jobs() == [], "the job has ended", 240)
        self.assertTrue((self.run_directory / "verdict.json").exists(), log.read_text() if log.exists() else "no log")
        self.assertEqual({node for _, node in self.outcomes()}, {node.name for node in self.cluster.nodes})
        self.assertEqual(set(self.outcomes().values()), {"pass"}, self.reasons())
        self.check_aftermath()

    def test_a_head_that_is_killed_leaves_nothing_and_the_run_goes_on_later(self):
        process = self.start_on_cluster(*(requirement(f"r{i}", "slow", value=100 + i) for i in range(4)))
        wait_for(lambda: self.begun("fake_probe-n02"), "a step runs on n02", SLURM_PATIENCE_S)
        process.kill()
        process.wait()
        wait_for(lambda: self.slurm.jobs() == [], "srun's job is gone", SLURM_PATIENCE_S)
        wait_for(lambda: not self.strangers(), "no agent is left", SLURM_PATIENCE_S)
        done = self.assay("run", "--resume", self.run_directory)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(set(self.outcomes().values()), {"pass"}, self.reasons())


class DeadSlurmd(OnSlurm):
    def test_a_dead_slurmd_is_named_and_the_others_are_judged(self):
        self.slurm.kill_on(self.cluster["n03"])
        done = self.accept_on_cluster(requirement("r"))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assert_only_culprit("n03")
        self.assertEqual(self.outcomes()[("r", "n03")], "not_measured")
        self.assertIn("n03", self.reasons()[("r", "n03")])
        self.check_aftermath()


class DeadNode(OnSlurm):
    def test_a_node_that_dies_in_mid_step_is_named_and_the_others_are_judged(self):
        process = self.start_on_cluster(*(requirement(f"r{i}", "slow", value=100 + i) for i in range(4)))
        wait_for(lambda: self.begun("fake_probe-n02"), "a step runs on n02", SLURM_PATIENCE_S)
        self.cluster["n02"].kill()
        self.assertEqual(process.wait(240), 3)
        self.assert_only_culprit("n02")
        lost = [reason for (_, node), reason in self.reasons().items() if node == "n02"]
        self.assertTrue(any("lost" in reason for reason in lost), lost)
        self.check_aftermath()


if __name__ == "__main__":
    main()
