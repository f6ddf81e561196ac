"""`assay drain` through a hook and a fake scontrol, which keep their nodes in a file, and through the real kubectl."""
import json
import pathlib
import shutil

from harness import main, requirement
from kubernetes import start_cluster
from nightly import NightBench, flag, nightly, report

FAKES = pathlib.Path(__file__).parent.parent / "fakes"
NODES = [f"n{i:02}" for i in range(1, 9)]
NOW = "2026-01-06T06:00:00.000Z"
KEY = "assay.dev/reason"
REASON = "assay:fake_probe.number:f00000000003:20260105"


class Drain(NightBench):
    actor, program = "hook", "fake_scheduler"

    def setUp(self):
        super().setUp()
        self.start_scheduler()
        self.site = self.write(
            "site.json",
            {"schema": "assay.site/1", "name": "s", "nodes": [{"name": name, "launcher": "ssh"} for name in NODES]},
        )

    def start_scheduler(self):
        self.nodes = self.scratch / "nodes.json"
        self.log = self.scratch / "calls.jsonl"
        self.set_nodes({})
        self.environment = dict(self.environment, FAKE_NODES=str(self.nodes), FAKE_NODES_LOG=str(self.log))
        self.program = self.scratch / {"hook": "hook", "slurm": "scontrol"}[self.actor]
        self.program.symlink_to(FAKES / "fake_scheduler")

    def set_fault(self, fault):
        self.environment["FAKE_NODES_FAULT"] = fault

    def set_nodes(self, changed, *more):
        idle = {"drained": False, "busy": False, "down": False, "reason": ""}
        self.nodes.write_text(json.dumps({name: {**idle, **changed.get(name, {})} for name in [*NODES, *more]}))

    def reasons(self):
        return {name: node["reason"] for name, node in json.loads(self.nodes.read_text()).items() if node["drained"]}

    def changes(self):
        """Calls that changed a node."""
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def words(self, action, document, *more, mode="drain", now=NOW):
        return [
            "drain",
            action,
            "--drift",
            self.write("drift.json", document),
            "--policy",
            self.write("policy.json", {"schema": "assay.policy/1", "mode": mode}),
            "--site",
            self.site,
            "--actor",
            self.actor,
            "--program",
            self.program,
            "--journal",
            self.scratch / "drain.jsonl",
            "--now",
            now,
            *more,
        ]

    def drain(self, action, document, *more, **how):
        return self.assay(*self.words(action, document, *more, **how))

    def test_nothing_is_changed_without_apply_nor_in_shadow(self):
        for how in ({"mode": "drain"}, {"mode": "shadow"}, {"mode": "alert"}):
            for action, more in (("plan", []), ("apply", []), ("plan", ["--apply"]), ("apply", ["--apply"])):
                if action == "apply" and more and how["mode"] == "drain":
                    continue
                done = self.drain(action, report(flag("n03")), *more, **how)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("nothing was changed", done.stdout)
        self.assertEqual(self.changes(), [])

    def test_a_confirmed_node_is_drained_once(self):
        for _ in range(2):
            done = self.drain("apply", report(flag("n03")), "--apply")
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.reasons(), {"n03": REASON})
        self.assertEqual(len({json.dumps(call) for call in self.changes()}), len(self.changes()))

    def test_a_foreign_reason_stays(self):
        self.set_nodes(
            {
                "n03": {"drained": True, "reason": "fan, ticket 12"},
                "n04": {"drained": True, "busy": True, "reason": "cordoned"},
            }
        )
        done = self.drain("apply", report(flag("n03"), flag("n04", raised="2026-01-04")), "--apply")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("already drained, not by assay", done.stdout)
        self.assertEqual(self.changes(), [])

    def test_a_node_that_an_administrator_put_back_is_left_in_service(self):
        self.assertEqual(self.drain("apply", report(flag("n03")), "--apply").returncode, 0)
        self.set_nodes({})
        before = self.changes()
        done = self.drain("apply", report(flag("n03")), "--apply")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("put back by other means", done.stdout)
        self.assertEqual(self.changes(), before)

    def test_many_flags_at_once_drain_no_node(self):
        done = self.drain("apply", report(flag("n03"), flag("n04")), "--apply")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("ALARM: fleet: 2 of 8 nodes were flagged", done.stdout)
        self.assertEqual(self.changes(), [])

    def test_an_old_report_is_refused(self):
        done = self.drain("apply", report(flag("n03")), "--apply", now="2026-01-09T06:00:00.000Z")
        self.assertEqual(done.returncode, 2)
        self.assertIn("older than the policy's verdict_max_age", done.stderr)
        self.assertEqual(self.changes(), [])

    def test_a_report_from_the_future_is_refused(self):
        for night in ("2026-01-08", "2099-01-05"):
            done = self.drain("apply", report(flag("n03"), as_of=night), "--apply", now="2026-01-06T06:00:00.000Z")
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"is of {night}: from the future", done.stderr)
        self.assertEqual(self.changes(), [])

    def test_a_policy_that_everyone_may_write_is_refused(self):
        words = self.words("apply", report(flag("n03")), "--apply")
        (self.scratch / "policy.json").chmod(0o666)
        done = self.assay(*words)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("others than its owner may change it", done.stderr)
        self.assertEqual(self.changes(), [])

    def test_a_scheduler_that_refuses_is_told_and_the_node_is_not_taken_for_drained(self):
        self.set_fault("refuse")
        done = self.drain("apply", report(flag("n03")), "--apply")
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn("not done: drain n03", done.stdout)
        self.set_fault("")
        self.assertEqual(self.drain("apply", report(flag("n03")), "--apply").returncode, 0)
        self.assertEqual(self.reasons(), {"n03": REASON})

    def test_a_node_comes_back_after_two_clean_sweeps(self):
        sweeps = []
        for day, value in ((7, 100), (8, 100), (9, 20)):
            done = self.sweep(
                nightly(requirement("r", value=value)),
                "--budget",
                "15min",
                "--now",
                f"2026-01-0{day}T23:00:00.000Z",
                night=f"2026-01-0{day}",
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            sweeps += ["--sweep", self.sweep_folder]
        name = next(iter(self.visits()))
        self.set_nodes({}, name)
        self.site = self.write(
            "site.json",
            {
                "schema": "assay.site/1",
                "name": "s",
                "nodes": [{"name": node, "launcher": "ssh"} for node in [*NODES, name]],
            },
        )
        self.assertEqual(self.drain("apply", report(flag(name)), "--apply").returncode, 0)
        late = {"now": "2026-01-10T06:00:00.000Z"}
        document = report(as_of="2026-01-09")
        for few in (sweeps[:2], [*sweeps[:2], *sweeps[4:]]):  # the third is slow: it shows no node clean
            done = self.drain("release", document, "--apply", *few, **late)
            self.assertIn("1 of 2 clean sweeps", done.stdout)
            self.assertEqual(list(self.reasons()), [name])
        copy = self.scratch / "copy"
        shutil.copytree(sweeps[1], copy)
        sweep = json.loads((copy / "sweep.json").read_text())
        sweep["plan"].update(id="00000000-0000-4000-8000-000000000000", started="2026-01-08T23:00:00.000Z")
        (copy / "sweep.json").write_text(json.dumps(sweep))
        done = self.drain("release", document, "--apply", *sweeps[:2], "--sweep", copy, **late)
        self.assertIn("1 of 2 clean sweeps", done.stdout)
        made_up = self.assay("simulate", "--profile", "host", "--nodes", 2, "--out", copy / "made-up")
        self.assertTrue((copy / "made-up/plan.json").exists(), made_up.stderr)
        (copy / "sweep.json").write_text(json.dumps({**sweep, "runs": ["made-up"]}))
        done = self.drain("release", document, "--apply", *sweeps[:2], "--sweep", copy, **late)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("is a simulation, which shows nothing of a node", done.stderr)
        self.assertEqual(list(self.reasons()), [name])
        done = self.drain("release", document, "--apply", *sweeps[:4], **late)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"done: release {name}", done.stdout)
        self.assertEqual(self.reasons(), {})

    def test_a_damaged_journal_is_refused_with_its_line(self):
        (self.scratch / "drain.jsonl").write_text("{}\n")
        done = self.drain("apply", report(flag("n03")), "--apply")
        self.assertEqual(done.returncode, 2)
        self.assertIn("drain.jsonl: line 1", done.stderr)
        self.assertEqual(self.changes(), [])


class DrainBySlurm(Drain):
    actor = "slurm"

    def test_a_drain_of_ours_is_known_again_and_one_of_others_is_not_taken_for_it(self):
        self.environment["FAKE_NODES_COMMENT"] = "see [bob@2026-01-01T00:00:00]"
        self.assertEqual(self.drain("apply", report(flag("n03")), "--apply").returncode, 0)
        done = self.drain("apply", report(flag("n03")), "--apply")
        self.assertIn("drained by us since", done.stdout)
        self.set_nodes({"n03": {"drained": True, "reason": f"{REASON} [root@2026-01-05T01:00:00] Comment=fan"}})
        done = self.drain("apply", report(flag("n03")), "--apply")
        self.assertIn("already drained, not by assay", done.stdout)


class DrainByKubernetes(Drain):
    actor = "kubernetes"

    def start_scheduler(self):
        self.api = start_cluster(self, *NODES, pods=False)
        self.program = shutil.which("kubectl")

    def set_fault(self, fault):
        self.api.fault = fault

    def set_nodes(self, changed, *more):
        for name in [*NODES, *more]:
            spec = {"unschedulable": True} if changed.get(name, {}).get("drained") else {}
            self.api.add_node(name, **spec)

    def reasons(self):
        """Of the nodes with assay's taint."""
        tainted = [node for node in self.api.store.list("nodes") if node["spec"].get("taints")]
        return {node["metadata"]["name"]: node["metadata"]["annotations"].get(KEY) for node in tainted}

    def changes(self):
        return [entry for entry in self.api.log if entry[1] == "nodes"]

    def test_a_confirmed_node_is_drained_once(self):
        for _ in range(2):
            done = self.drain("apply", report(flag("n03")), "--apply")
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.reasons(), {"n03": REASON})
        self.assertEqual(self.changes(), [("PATCH", "nodes", "n03")] * 2)  # the reason, then the taint

    def test_a_node_that_is_not_ready_is_down(self):
        self.api.add_node("n03", ready=False)
        done = self.drain("apply", report(flag("n03")), "--apply")
        self.assertIn("it is down", done.stdout)
        self.assertEqual(self.changes(), [])


if __name__ == "__main__":
    main()
