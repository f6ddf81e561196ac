"""`assay` through Slurm and Kubernetes, as fakes that start the real agent on this machine; and `assay site`."""
import json
import os
import pathlib
import subprocess
import unittest

from harness import BIN, Bench, main, processes, profile, requirement, wait_for

FAKES = pathlib.Path(__file__).parent.parent / "fakes"


def has_host_names():
    return subprocess.run(["unshare", "--uts", "hostname", "assay-test"], capture_output=True).returncode == 0


class Fakes(Bench):
    """srun, sinfo, scontrol and kubectl are fakes, found in PATH."""

    def setUp(self):
        super().setUp()
        tools = self.scratch / "tools"
        tools.mkdir()
        for name, fake in {"srun": "fake_srun", "sinfo": "fake_sinfo", "kubectl": "fake_kubectl"}.items():
            (tools / name).symlink_to(FAKES / fake)
        self.log = self.scratch / "calls.jsonl"
        self.environment = dict(
            self.environment,
            PATH=f"{tools}:{os.environ['PATH']}",
            FAKE_SLURM_LOG=str(self.log),
            FAKE_KUBECTL_LOG=str(self.log),
        )
        self.environment.pop("SLURM_JOB_ID", None)

    def calls(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def site(self, *nodes, **more):
        return self.write("site.json", {"schema": "assay.site/1", "name": "fake", **more, "nodes": list(nodes)})

    def pod(self, name, **more):
        return {
            "name": name,
            "launcher": "kubernetes",
            "pod": f"assay-{name}",
            "directory": str(self.work / name),
            **more,
        }

    def gone(self):
        wait_for(lambda: not processes(str(self.scratch)), "agents and their starters are gone")


class Kubernetes(Fakes):
    def setUp(self):
        super().setUp()
        if not has_host_names():
            raise unittest.SkipTest(
                "no host names of their own for the pods here, and without them they are one machine"
            )

    def test_two_pods_are_deployed_to_run_and_judged(self):
        site = self.site(self.pod("n01", namespace="lab", container="assay", context="hall"), self.pod("n02"))
        done = self.accept(requirement("r"), more=["--site", site])
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertEqual(self.outcomes(), {("r", "n01"): "pass", ("r", "n02"): "pass"})
        call = next(words for words in self.calls() if "assay-n01" in words)
        self.assertEqual(
            call[:7], ["--context=hall", "--namespace=lab", "exec", "-i", "assay-n01", "--container=assay", "--"]
        )
        self.assertEqual(self.verify().returncode, 0)
        self.gone()

    def test_a_pod_that_is_not_there_is_named_and_the_other_is_judged(self):
        self.environment["FAKE_KUBECTL_ABSENT"] = "assay-n02"
        done = self.accept(requirement("r"), more=["--site", self.site(self.pod("n01"), self.pod("n02"))])
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(self.outcomes(), {("r", "n01"): "pass", ("r", "n02"): "not_measured"})
        self.assertIn('pods "assay-n02" not found', self.reasons()[("r", "n02")])
        self.gone()

    def test_check_says_that_two_pods_of_one_machine_are_alike_and_who_was_not_reached(self):
        site = self.site(self.pod("n01"), self.pod("n02"))
        done = self.assay("site", "check", "--site", site)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("2 of 2 nodes reached", done.stdout)
        self.environment["FAKE_KUBECTL_ABSENT"] = "assay-n02"
        done = self.assay("site", "check", "--site", site, "--json")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual([entry["node"] for entry in found["unreachable"]], ["n02"])
        self.assertIn("kernel", found["same"])
        self.gone()


class Slurm(Fakes):
    """The fake starts every agent on this machine under one host name, so that one node is all that can be accepted here."""

    def slurm(self, **more):
        # A link: a build may lie below a path that has a blank, and the name of a shared agent has none.
        agent = self.scratch / "tools/assay-node"
        if not agent.is_symlink():
            agent.symlink_to(BIN / "assay-node")
        return {"slurm": {"agent": str(agent), "wait_s": 60, **more}}

    def node(self, name):
        return {"name": name, "launcher": "slurm", "directory": str(self.work)}

    def test_a_node_is_accepted_through_srun(self):
        done = self.accept(
            requirement("r"), more=["--site", self.site(self.node("n01"), **self.slurm(partition="gpu"))]
        )
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertEqual(self.outcomes(), {("r", "n01"): "pass"})
        call = next(words for words in self.calls() if words[0] == "srun")
        self.assertIn("--partition=gpu", call)
        self.assertEqual(self.verify().returncode, 0)
        self.gone()

    def test_an_srun_that_fails_is_quoted_in_the_verdict(self):
        self.environment["FAKE_SLURM"] = "fail"
        done = self.accept(requirement("r"), more=["--site", self.site(self.node("n01"), **self.slurm())])
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("invalid partition specified: nowhere", self.reasons()[("r", "n01")])
        self.gone()

    def test_a_head_that_is_killed_leaves_no_srun_and_no_agent(self):
        site = self.site(self.node("n01"), **self.slurm())
        process = self.start(
            "accept",
            "--profile",
            self.write("profile.json", profile(requirement("r", "hang"))),
            "--site",
            site,
            "--out",
            self.run_directory,
        )
        wait_for(lambda: any(line["kind"] == "attempt_begin" for line in self.journal()), "a step runs")
        process.kill()
        process.wait()
        self.gone()

    def test_a_head_that_is_killed_takes_its_place_in_the_queue_with_it(self):
        self.environment["FAKE_SLURM"] = "pending"
        site = self.site(self.node("n01"), **self.slurm())
        process = self.start(
            "accept",
            "--profile",
            self.write("profile.json", profile(requirement("r"))),
            "--site",
            site,
            "--out",
            self.run_directory,
        )
        wait_for(lambda: any(words[0] == "srun" for words in self.calls()), "srun is in the queue")
        process.kill()
        process.wait()
        self.gone()


class SiteDocuments(Fakes):
    def test_a_host_file_becomes_a_site_that_can_be_planned(self):
        hosts = self.write("hosts", "n[01-02] slots=8\n")
        done = self.assay(
            "site", "--from", "hostfile", hosts, "--name", "hall", "--known-hosts", self.write("known_hosts", "")
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        planned = self.assay(
            "plan",
            "--profile",
            self.write("profile.json", profile(requirement("r"))),
            "--site",
            self.write("site.json", done.stdout),
        )
        self.assertEqual([node["name"] for node in json.loads(planned.stdout)["site"]["nodes"]], ["n01", "n02"])

    def test_a_file_that_is_not_understood_is_refused_with_line_and_hint(self):
        hosts = self.write("hosts", "n01\n[gpu nodes]\n")
        done = self.assay("site", "--from", "hostfile", hosts)
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"{hosts}: line 2: '[gpu' is no host\nhint: ", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_what_is_asked_for_wrongly_is_said(self):
        self.assertIn("needs --from, check, sbatch or manifest", self.assay("site").stderr)
        self.assertIn("needs a file", self.assay("site", "--from", "hostfile").stderr)
        self.assertIn("scontrol: is not installed", self.without_slurm("site", "--from", "slurm").stderr)
        self.assertIn(
            "has no node of launcher slurm", self.assay("site", "sbatch", "--site", self.site(self.pod("n01"))).stderr
        )

    def without_slurm(self, *words):
        self.environment["PATH"] = str(self.scratch / "tools")
        return self.assay(*words)

    def test_pods_become_a_site(self):
        pods = {
            "items": [
                {
                    "metadata": {"name": "assay-x7", "namespace": "lab"},
                    "spec": {"nodeName": "n01", "containers": [{"name": "assay"}]},
                    "status": {"phase": "Running"},
                }
            ]
        }
        self.environment["FAKE_KUBECTL_PODS"] = self.write("pods.json", pods)
        done = self.assay("site", "--from", "kubectl", "--namespace", "lab")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            json.loads(done.stdout)["nodes"],
            [{"name": "n01", "launcher": "kubernetes", "pod": "assay-x7", "namespace": "lab", "container": "assay"}],
        )
        self.assertEqual(self.calls()[-1], ["--namespace=lab", "get", "pods", "--output=json", "--selector=app=assay"])

    def test_a_manifest_is_a_document_that_kubectl_can_read(self):
        done = self.assay("site", "manifest", "--image", "debian:12", "--namespace", "lab")
        self.assertEqual(done.returncode, 0, done.stderr)
        manifest = json.loads(done.stdout)
        self.assertEqual((manifest["kind"], manifest["metadata"]["namespace"]), ("DaemonSet", "lab"))

    def test_a_batch_script_is_one_that_bash_takes(self):
        site = self.site(
            {"name": "n01", "launcher": "slurm"},
            {"name": "n02", "launcher": "slurm"},
            slurm={"partition": "gpu", "time": "2:00:00"},
        )
        done = self.assay("site", "sbatch", "--site", site)
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in ("#SBATCH --nodelist=n01,n02", "#SBATCH --partition=gpu", "#SBATCH --time=2:00:00"):
            self.assertIn(line + "\n", done.stdout)
        script = self.write("accept.sbatch", done.stdout)
        self.assertEqual(subprocess.run(["bash", "-n", script], capture_output=True, text=True).stderr, "")


if __name__ == "__main__":
    main()
