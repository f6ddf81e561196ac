"""`assay` through Slurm, whose programs are fakes here, and through the real kubectl; and `assay site`."""
import json
import os
import pathlib
import subprocess
import unittest

from harness import BIN, Bench, main, processes, profile, requirement, wait_for
from kubernetes import start_cluster

FAKES = pathlib.Path(__file__).parent.parent / "fakes"


class Fakes(Bench):
    """srun, sinfo and scontrol are fakes, found in PATH."""

    def setUp(self):
        super().setUp()
        tools = self.scratch / "tools"
        tools.mkdir()
        for name, fake in {"srun": "fake_srun", "sinfo": "fake_sinfo"}.items():
            (tools / name).symlink_to(FAKES / fake)
        self.log = self.scratch / "calls.jsonl"
        self.environment = dict(
            self.environment,
            PATH=f"{tools}:{os.environ['PATH']}",
            FAKE_SLURM_LOG=str(self.log),
        )
        self.environment.pop("SLURM_JOB_ID", None)

    def calls(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def site(self, *nodes, **more):
        return self.write("site.json", {"schema": "assay.site/1", "name": "fake", **more, "nodes": list(nodes)})

    def gone(self):
        wait_for(lambda: not processes(str(self.scratch)), "agents and their starters are gone")


class Kubernetes(Fakes):
    def setUp(self):
        super().setUp()
        self.api = start_cluster(self, "n01", "n02")

    def pod(self, name, **more):
        return {
            "name": name,
            "launcher": "kubernetes",
            "pod": f"assay-{name}",
            "directory": str(self.work / name),
            **more,
        }

    def test_two_pods_are_deployed_to_run_and_judged(self):
        self.api.add_pod("assay-n01", "n01", "lab")
        self.api.delete("pods", "default", "assay-n01")
        there = self.pod("n01", namespace="lab", container="assay", context="commissioning@hall")
        done = self.accept(requirement("r"), more=["--site", self.site(there, self.pod("n02"))])
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertEqual(self.outcomes(), {("r", "n01"): "pass", ("r", "n02"): "pass"})
        self.assertEqual(len(self.api.carriers), 1)  # WebSocket or SPDY, as kubectl is new or old
        self.assertEqual(self.verify().returncode, 0)
        self.gone()

    def test_a_server_without_websockets_is_used_over_spdy(self):
        self.api.carrier = "spdy"
        done = self.accept(requirement("r"), more=["--site", self.site(self.pod("n01"))])
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertEqual(self.api.carriers, {"spdy"})

    def test_a_pod_that_is_not_there_is_named_and_the_other_is_judged(self):
        self.api.delete("pods", "default", "assay-n02")
        done = self.accept(requirement("r"), more=["--site", self.site(self.pod("n01"), self.pod("n02"))])
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(self.outcomes(), {("r", "n01"): "pass", ("r", "n02"): "not_measured"})
        self.assertIn('pods "assay-n02" not found', self.reasons()[("r", "n02")])
        self.gone()

    def test_who_may_not_exec_or_is_not_known_is_told_so(self):
        for user, words in (("viewer", "is forbidden"), ("stranger", "Unauthorized")):
            site = self.site(self.pod("n01"), self.pod("n02", context=f"{user}@hall"))
            done = self.assay("site", "check", "--site", site, "--json")
            self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
            (missing,) = json.loads(done.stdout)["unreachable"]
            self.assertEqual(missing["node"], "n02")
            self.assertRegex(missing["reason"], f"login refused: .*{words}")

    def test_a_head_that_is_killed_leaves_no_kubectl_and_no_agent(self):
        slow = requirement("r", parameters={"behaviour": "hang"})
        site = self.site(self.pod("n01"), self.pod("n02"))
        process = self.start(
            "accept",
            *("--profile", self.write("profile.json", profile(slow)), "--site", site, "--out", self.run_directory),
        )
        wait_for(lambda: len(processes(str(self.work))) >= 2, "both agents run")
        process.kill()
        process.wait()
        self.gone()

    def test_check_says_that_two_pods_of_one_machine_are_alike_and_who_was_not_reached(self):
        site = self.site(self.pod("n01"), self.pod("n02"))
        done = self.assay("site", "check", "--site", site)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("2 of 2 nodes reached", done.stdout)
        self.api.delete("pods", "default", "assay-n02")
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
        here = self.site({"name": "n01", "launcher": "local"})
        self.assertIn("has no node of launcher slurm", self.assay("site", "sbatch", "--site", here).stderr)

    def without_slurm(self, *words):
        self.environment["PATH"] = str(self.scratch / "tools")
        return self.assay(*words)

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


class Manifests(Bench):
    """What `assay site manifest` and `assay nightly install` print is taken by kubectl and by the server's checks."""

    def setUp(self):
        super().setUp()
        self.api = start_cluster(self, pods=False)
        for name in ("n01", "n02", "n03"):
            self.api.add_node(name, {"nvidia.com/gpu": "8"})
        self.api.add_node("cp", {}, taints=[{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}])

    def kubectl(self, *words, text=None):
        return subprocess.run(
            ["kubectl", *words], env=self.environment, input=text, capture_output=True, text=True, timeout=60
        )

    def applied(self, *words):
        made = self.assay("site", "manifest", "--image", "debian:12", "--namespace", "lab", *words)
        self.assertEqual(made.returncode, 0, made.stderr)
        done = self.kubectl("apply", "--filename", "-", text=made.stdout)
        self.assertEqual(done.returncode, 0, done.stderr)
        return made.stdout

    def site_nodes(self):
        done = self.assay("site", "--from", "kubectl", "--namespace", "lab")
        self.assertEqual(done.returncode, 0, done.stderr)
        return [(node["name"], node["namespace"], node["container"]) for node in json.loads(done.stdout)["nodes"]]

    def test_a_daemon_set_is_on_every_node_and_becomes_a_site(self):
        self.applied()
        self.assertEqual(self.site_nodes(), [(name, "lab", "assay") for name in ("cp", "n01", "n02", "n03")])
        pod = self.api.store.list("pods")[0]["metadata"]["name"]
        self.assertIn("agent pod of", self.kubectl("--namespace", "lab", "logs", pod).stdout)
        self.assertEqual(self.kubectl("--namespace", "lab", "delete", "daemonset", "assay").returncode, 0)
        self.assertEqual(self.api.store.list("pods"), [])

    def test_jobs_and_job_sets_have_a_node_for_each_pod(self):
        for kind in ("job", "jobset"):
            with self.subTest(kind=kind):
                self.applied("--kind", kind, "--nodes", "3", "--gpus", "8")
                self.assertEqual({name for name, _, _ in self.site_nodes()}, {"n01", "n02", "n03"})
                done = self.kubectl("--namespace", "lab", "delete", kind, "assay")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.api.store.list("pods"), [])

    def test_a_job_that_wants_more_nodes_than_there_are_is_no_site_yet(self):
        self.applied("--kind", "job", "--nodes", "4", "--gpus", "8")
        done = self.assay("site", "--from", "kubectl", "--namespace", "lab")
        self.assertEqual(done.returncode, 2)
        self.assertIn("is 'Pending' instead of running", done.stderr)

    def test_a_field_that_the_api_does_not_have_is_refused(self):
        """The checks of server or client can fail: otherwise the tests above show nothing."""
        text = self.applied("--kind", "job", "--nodes", "1")
        self.kubectl("--namespace", "lab", "delete", "job", "assay")
        for right, wrong in (
            ("hostNetwork", "hostNetworks"),
            ("mountPath", "path"),
            ('"completions": 1', '"completions": "1"'),
            ('"Never"', '"Always"'),
            ('"lab"', '"nowhere"'),
        ):
            done = self.kubectl("apply", "--filename", "-", text=text.replace(right, wrong))
            self.assertNotEqual(done.returncode, 0, wrong)
            self.assertRegex(done.stderr, "unknown field|invalid type|must be a integer|Required value|not found")

    def test_the_files_of_the_nightly_cron_job_are_taken(self):
        folder = self.scratch / "cron"
        done = self.assay(
            *("install", "cron", "--image", "registry.lab/assay:1", "--count", "3", "--gpus", "8", "--out", folder),
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        for path in sorted(folder.glob("*.json")):
            done = self.kubectl("apply", "--filename", str(path))
            self.assertEqual(done.returncode, 0, f"{path}: {done.stderr}")
        self.assertEqual(len(self.api.store.list("cronjobs")), 2)


if __name__ == "__main__":
    main()
