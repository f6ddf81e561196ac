"""`assay sweep`, `verdict` and `install` on this machine, with fake_probe as every probe."""
import csv
import datetime
import io
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import time

from harness import keep_agent, main, processes, requirement, wait_for
from kubernetes import start_cluster
from nightly import NightBench, check, flag, nightly, report

STOP_S = 5  # in which a sweep that is preempted must have stopped


class Sweep(NightBench):
    def node_name(self):
        return subprocess.run(["hostname"], capture_output=True, text=True).stdout.strip().split(".")[0]

    def only_state(self):
        states = list(self.visits().values())
        self.assertEqual(len(states), 1)
        return states[0]

    def test_a_sweep_measures_what_is_due_once_a_night_and_accepts_nothing(self):
        done = self.sweep(nightly(requirement("r")))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 of 1 due nodes measured; a sweep accepts and rejects nothing", done.stdout)
        self.assertEqual(self.only_state(), "measured")
        verdict = json.loads((self.sweep_folder / "run/verdict.json").read_text())
        self.assertEqual(verdict["overall"], "incomplete")
        self.assertIn("requires nothing", verdict["reason"])
        again = self.sweep(nightly(requirement("r")))
        self.assertEqual((again.returncode, again.stdout), (0, "nothing is due tonight\n"))
        later = self.sweep(nightly(requirement("r")), night="2026-01-06")
        self.assertEqual(later.returncode, 0, later.stderr)
        self.assertEqual([entry["night"] for entry in self.ledger()], ["2026-01-05", "2026-01-06"])

    def test_a_failing_figure_is_no_finding_of_the_sweep(self):
        done = self.sweep(nightly(requirement("r", value=7)))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.only_state(), "measured")

    def test_a_node_that_others_use_is_not_measured_at_all(self):
        script = self.write("load", "99\n")
        done = self.sweep(nightly(requirement("r"), before=check(script=script)))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.only_state(), "busy")
        self.assertFalse((self.sweep_folder / "run").exists())

    def test_figures_of_a_node_that_others_began_to_use_do_not_count(self):
        script = self.write("load", "99\n")
        done = self.sweep(nightly(requirement("r"), after=check(after=True, script=script)))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.only_state(), "busy")
        self.assertIn("others used it meanwhile", done.stdout)

    def test_a_check_that_crashes_is_a_hole_and_no_fault_of_the_node(self):
        done = self.sweep(nightly(requirement("r"), before=check(script=self.write("load", "crash\n"))))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(self.only_state(), "not_measured")

    def test_a_full_disk_leaves_out_what_writes_to_it_and_nothing_else(self):
        writer = requirement("writer")
        writer["parameters"]["writes"] = "1000000GiB"
        done = self.sweep(nightly(requirement("r"), writer))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.only_state(), "measured")
        journal = [json.loads(line) for line in (self.sweep_folder / "run/journal.jsonl").read_text().splitlines()]
        self.assertRegex(done.stderr, r"1 step left out: \. on \S+: .* are free; step \S+ puts up to 1.074 PB there")
        (left_out,) = [line for line in journal if line["kind"] == "steps_left_out"]
        self.assertRegex(left_out["reason"], r"are free; step \S+ puts up to 1.074 PB there")
        measured = {line["step"] for line in journal if "attempt" in line["kind"]}
        self.assertEqual((len(left_out["steps"]), len(measured)), (1, 2))  # the figure, and the check for others
        self.assertFalse(measured & set(left_out["steps"]))

    def test_a_node_whose_every_figure_was_left_out_is_not_measured(self):
        writer = requirement("writer")
        writer["parameters"]["writes"] = "1000000GiB"
        done = self.sweep(nightly(writer))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(self.only_state(), "not_measured")
        self.assertRegex(done.stdout, r"not_measured: \. on \S+: .* are free; step \S+ puts up to 1.074 PB there")

    def test_a_sweep_that_is_preempted_stops_at_once_and_leaves_nothing(self):
        process = self.start(*self.sweep_words(nightly(requirement("r", "hang"))))
        journal = self.sweep_folder / "run/journal.jsonl"
        wait_for(lambda: journal.exists() and "fake_probe" in journal.read_text(), "the figure is measured")
        begin = time.monotonic()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 3)
        self.assertLess(time.monotonic() - begin, STOP_S)
        self.assertEqual(self.only_state(), "preempted")
        wait_for(lambda: not processes(str(self.scratch)), "no process is left")
        self.assertEqual(self.ledger()[-1]["visits"][0]["state"], "preempted")

    def test_a_sweep_that_is_killed_was_interrupted_and_not_busy(self):
        words = self.sweep_words(nightly(requirement("r", "hang")))
        process = self.start(*words)
        journal = self.sweep_folder / "run/journal.jsonl"
        wait_for(lambda: journal.exists() and "fake_probe" in journal.read_text(), "the figure is measured")
        process.kill()
        process.wait(60)
        wait_for(lambda: not processes(str(self.scratch)), "no process is left")
        again = self.assay(*words)
        self.assertEqual(again.returncode, 2)
        self.assertIn(f"`assay sweep --collect {self.sweep_folder}` ends an interrupted sweep", again.stderr)
        done = self.assay("sweep", "--collect", self.sweep_folder, "--state", self.state)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(self.only_state(), "preempted")
        self.assertIn("interrupted: the sweep ended while it measured", done.stdout)

    def test_the_budget_leaves_out_what_does_not_fit_and_the_next_night_has_it(self):
        document = nightly(*(requirement(f"r{i}", value=100 + i) for i in range(4)))
        done = self.sweep(document, "--budget", "8s")  # the checks take four of them, each figure two
        self.assertEqual(done.returncode, 0, done.stderr)
        first = json.loads((self.sweep_folder / "due.json").read_text())
        self.assertEqual(len(first["left_out"]), 2)
        done = self.sweep(document, "--budget", "8s", night="2026-01-06")
        second = json.loads((self.sweep_folder / "due.json").read_text())
        self.assertTrue(set(first["left_out"]) <= set(second["only"]), second)

    def test_a_profile_that_does_not_look_for_others_is_refused(self):
        document = nightly(requirement("r"))
        document["requirements"] = document["requirements"][1:]
        done = self.sweep(document)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no requirement idle.* before the measurement", done.stderr)

    def test_bad_times_are_refused_with_the_option(self):
        for option, value in (("--until", "6 o'clock"), ("--deadline", "soon"), ("--budget", "x"), ("--now", "today")):
            done = self.sweep(nightly(requirement("r")), option, value)
            self.assertEqual(done.returncode, 2, option)
            self.assertIn(option, done.stderr)

    def test_nodes_wanted_for_a_test_again_are_visited_though_they_were_tonight(self):
        self.assertEqual(self.sweep(nightly(requirement("r"))).returncode, 0)
        name = next(iter(self.visits()))
        drift = self.write("drift.json", report(retests=[name]))
        done = self.sweep(nightly(requirement("r")), "--retests", "--drift", drift)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.visits(), {name: "measured"})

    def test_workers_claim_a_node_once_and_their_outcomes_are_collected(self):
        made = self.sweep(nightly(requirement("r")), "--prepare")
        self.assertEqual(made.returncode, 0, made.stderr)
        node = json.loads((self.sweep_folder / "due.json").read_text())["due"][0]["node"]
        for said in (f"{node} measured", f"{node} was visited already"):
            done = self.assay("sweep", "--worker", self.sweep_folder, "--node", node)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(said, done.stdout)
        done = self.assay("sweep", "--worker", self.sweep_folder, "--node", "elsewhere")
        self.assertEqual((done.returncode, done.stdout), (0, "elsewhere is not due\n"))
        for _ in range(2):
            done = self.assay("sweep", "--collect", self.sweep_folder, "--state", self.state)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            [entry["visits"] for entry in self.ledger()], [[{"node": node, "reason": "", "state": "measured"}]]
        )


class Histories(NightBench):
    """Sweeps that go into a database, and verdicts that come out of it."""

    def setUp(self):
        super().setUp()
        self.history = self.scratch / "history.db"

    def rows(self, words):
        with sqlite3.connect(self.history) as database:
            return database.execute(words).fetchall()

    def test_figures_of_measured_nodes_are_added_once_and_what_shows_others_is_none(self):
        document = nightly(requirement("r"))
        done = self.sweep(document, "--history", self.history)
        self.assertEqual(done.returncode, 0, done.stderr)
        collected = self.assay(
            "sweep", "--collect", self.sweep_folder, "--state", self.state, "--history", self.history
        )
        self.assertEqual(collected.returncode, 0, collected.stderr)
        self.assertEqual(len(self.rows("select * from visit where state = 'measured'")), 1)

    def test_a_busy_node_is_a_visit_without_figures(self):
        done = self.sweep(
            nightly(requirement("r"), before=check(script=self.write("load", "99\n"))), "--history", self.history
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.rows("select state from visit"), [("busy",)])
        self.assertEqual(self.rows("select figures from visit"), [(0,)])

    def judge(self):
        """The report of `assay drift judge` on the history so far."""
        done = self.assay(
            "drift", "judge", "--db", self.history, "--policy", self.policy, "-o", self.scratch / "drift.json"
        )
        self.assertIn(done.returncode, (1, 3), done.stderr)  # 3: its nights are long ago
        return json.loads((self.scratch / "drift.json").read_text())

    def test_a_node_that_falls_is_flagged_tested_again_confirmed_and_would_be_drained(self):
        self.policy = self.write("policy.json", {"schema": "assay.policy/1", "warmup": 3, "mode": "drain"})
        numbers = self.scratch / "numbers"
        figure = requirement("r")
        figure["parameters"]["script"] = str(numbers)
        for night, number, more in (
            (1, 100, []),
            (2, 100, []),
            (3, 100, []),
            (4, 100, []),
            (5, 60, []),
            (5, 60, ["--retests"]),
            (5, 60, ["--retests"]),
            (6, 60, []),
        ):
            numbers.write_text(f"{number}\n")
            if more:
                self.assertEqual([one["state"] for one in self.judge()["flags"]], ["flagged"])
                more = [*more, "--drift", self.scratch / "drift.json"]
            done = self.sweep(nightly(figure), "--history", self.history, *more, night=f"2026-01-0{night}")
            self.assertEqual(done.returncode, 0, done.stderr)
        judged = self.judge()
        self.assertEqual([(one["state"], round(one["ratio"], 2)) for one in judged["flags"]], [("confirmed", 0.6)])
        name = next(iter(self.visits()))
        hook = self.write(
            "hook",
            f"#!/bin/sh\necho '{json.dumps({'node': name, 'drained': False, 'busy': False, 'down': False, 'reason': ''})}'\n",
        )
        os.chmod(hook, 0o755)
        site = self.write(
            "site.json", {"schema": "assay.site/1", "name": "s", "nodes": [{"name": name, "launcher": "local"}]}
        )
        done = self.assay(
            "drain",
            "plan",
            "--drift",
            self.scratch / "drift.json",
            "--policy",
            self.policy,
            "--site",
            site,
            "--actor",
            "hook",
            "--program",
            hook,
            "--journal",
            self.scratch / "drain.jsonl",
            "--now",
            "2026-01-07T06:00:00.000Z",
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"drain    {name} {judged['flags'][0]['id']}", done.stdout)

    def test_a_published_verdict_is_read_and_counts_for_its_node_alone(self):
        today = datetime.date.today().isoformat()
        self.assertEqual(self.sweep(nightly(requirement("r")), "--history", self.history, night=today).returncode, 0)
        name = next(iter(self.visits()))
        for flags, code in (([], 0), ([flag(name, raised="2026-01-05")], 1)):
            done = self.assay(
                "verdict",
                "--publish",
                "--drift",
                self.write("drift.json", report(*flags, as_of=today)),
                "--history",
                self.history,
                "--out",
                self.scratch / "verdicts",
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            path = self.scratch / f"verdicts/{name}.json"
            done = self.assay("verdict", "--file", path, "--node", name)
            self.assertEqual(done.returncode, code, done.stdout)
            self.assertLessEqual(len(done.stdout.encode()), 81)
            self.assertEqual(self.assay("verdict", "--file", path, "--node", "other").returncode, 2)
        done = self.assay(
            "verdict",
            "--publish",
            "--drift",
            self.write("drift.json", report(as_of="2026-01-05")),
            "--history",
            self.history,
            "--out",
            self.scratch / "verdicts",
        )
        stale = self.assay("verdict", "--file", path)
        self.assertEqual(stale.returncode, 2)
        self.assertIn("stale", stale.stdout)


class Pods(NightBench):
    """Pods of a cluster that the real kubectl reaches."""

    def setUp(self):
        super().setUp()
        self.api = start_cluster(self, "n01", "n02", "n03", "n04")
        for name in ("n01", "n02", "n03", "n04"):
            keep_agent(self.work / name)
        self.site = self.site_of("n01", "n02")

    def site_of(self, *names):
        pods = [
            {"name": name, "launcher": "kubernetes", "pod": f"assay-{name}", "directory": str(self.work / name)}
            for name in names
        ]
        return self.write("site.json", {"schema": "assay.site/1", "name": "pods", "nodes": pods})

    def test_a_pod_that_is_not_there_is_not_measured_and_the_other_is(self):
        self.api.delete("pods", "default", "assay-n02")
        done = self.sweep(nightly(requirement("r")), site=self.site)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(self.visits(), {"n01": "measured", "n02": "not_measured"})
        self.assertIn("not found", self.reason_of("n02"))
        self.api.add_pod("assay-n02", "n02")
        done = self.sweep(nightly(requirement("r")), site=self.site)
        self.assertEqual((done.returncode, self.visits()), (0, {"n02": "measured"}), done.stderr)

    def pair_profile(self):
        document = json.loads(pathlib.Path(self.site).read_text())
        for node in document["nodes"]:
            node["rendezvous"] = "127.0.0.1"
        self.site = self.write("site.json", document)
        return nightly(
            requirement("r"),
            requirement(
                "p", probe="fake_fabric", scope="pair", rounds=1, parameters={"behaviour": "measure", "value": 100}
            ),
        )

    def test_what_two_nodes_measured_is_a_figure_of_each_with_the_other_as_partner(self):
        history = self.scratch / "history.db"
        done = self.sweep(self.pair_profile(), "--history", history, site=self.site)
        self.assertEqual(done.returncode, 0, done.stderr)
        exported = self.assay("history", "export", "--db", history)
        self.assertEqual(exported.returncode, 0, exported.stderr)
        rows = [row for row in csv.DictReader(io.StringIO(exported.stdout)) if row["partner"]]
        self.assertEqual(
            sorted((row["node"], row["partner"], row["value"]) for row in rows),
            [("n01", "n02", "100"), ("n02", "n01", "100")],
        )

    def test_a_figure_of_two_nodes_is_tested_again_with_a_partner_and_counts_for_no_rotation(self):
        self.site = self.site_of("n01", "n02", "n03", "n04")
        night = self.pair_profile()
        drift = self.write("drift.json", report(flag("n04"), retests=["n03"], with_partner=True))
        words = ["--retests", "--drift", drift]
        for number in range(2):
            done = self.sweep(night, *words, "--history", self.scratch / "history.db", "--quiet", site=self.site)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn(" begins", done.stderr)
            first, partner = self.visits()
            self.assertIn("n03", (first, partner))
            self.assertNotIn("n04", (first, partner))  # flagged itself
            plan = json.loads((self.sweep_folder / "run/plan.json").read_text())
            self.assertEqual(
                [set(step["nodes"]) for step in plan["steps"] if step["probe"] == "fake_fabric"], [{first, partner}]
            )
        self.assertEqual(self.ledger(), [])
        with sqlite3.connect(self.scratch / "history.db") as database:
            rows = set(database.execute("SELECT node, retest FROM visit WHERE partner <> ''"))
        self.assertEqual({node for node, _ in rows} & {"n03", "n04"}, {"n03"})
        self.assertEqual({retest for _, retest in rows}, {1})
        for more, words_said in (
            (["--nodes", "n03"], "n03: is wanted with a partner, and there is none"),
            (["--prepare"], "a worker is alone on its node"),
        ):
            done = self.sweep(night, *words, *more, site=self.site)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words_said, done.stderr)

    def test_workers_are_not_asked_for_what_joins_two_nodes(self):
        made = self.sweep(self.pair_profile(), "--prepare", site=self.site)
        self.assertEqual(made.returncode, 0, made.stderr)
        due = json.loads((self.sweep_folder / "due.json").read_text())
        self.assertEqual((due["left_out"], due["pairs"]), (["p"], []))
        self.assertEqual(sorted(due["only"]), ["idle.cpu", "idle.cpu.after", "r"])

    def test_a_node_missed_in_four_sweeps_is_named(self):
        self.api.delete("pods", "default", "assay-n02")
        for night in range(5):
            done = self.sweep(nightly(requirement("r")), site=self.site, night=f"2026-01-0{night + 1}")
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertEqual("missed in 4 sweeps and more: n02" in done.stdout, night == 4, done.stdout)


if __name__ == "__main__":
    main()
