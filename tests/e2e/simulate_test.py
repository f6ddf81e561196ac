"""`assay simulate`: what it leaves is read by every other command, and none of them takes it for a measurement."""
import csv
import json

from harness import Bench, main, profile, requirement


class Simulate(Bench):
    def simulate(self, *more, faults=None):
        arguments = [
            "simulate",
            "--profile",
            self.write("profile.json", profile(requirement("r"))),
            "--nodes",
            20,
            "--seed",
            7,
        ]
        if faults is not None:
            arguments += ["--faults", self.write("faults.json", dict(faults, schema="assay.faults/1"))]
        return self.assay(*arguments, *more)

    def test_the_summary_says_what_was_found(self):
        done = self.simulate(faults={"bad_nodes": [{"node": "n00003", "factor": 0.5}], "dead": ["n00004"]})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("SIMULATION: nothing was measured\n"), done.stdout)
        self.assertIn("2 found, 0 missed, 0 false alarms", done.stdout)
        self.assertFalse(self.run_directory.exists())

    def test_the_same_seed_leaves_the_same_bytes(self):
        for name in ("a", "b"):
            done = self.simulate("--out", self.scratch / name)
            self.assertEqual(done.returncode, 0, done.stderr)
        for file in ("plan.json", "journal.jsonl", "verdict.json", "simulation.json", "report.html"):
            self.assertEqual((self.scratch / "a" / file).read_bytes(), (self.scratch / "b" / file).read_bytes(), file)

    def test_judge_and_report_read_it_and_accept_nothing(self):
        self.assertEqual(self.simulate("--out", self.run_directory, "--json").returncode, 0)
        before = {file: (self.run_directory / file).read_bytes() for file in ("verdict.json", "report.html")}
        judged = self.assay("judge", self.run_directory)
        self.assertEqual(judged.returncode, 3, judged.stderr)
        self.assertIn("SIMULATION: nothing was measured", judged.stdout)
        self.assertIn("had it been measured, it would be accepted", judged.stdout)
        reported = self.assay("report", self.run_directory)
        self.assertEqual(reported.returncode, 0, reported.stderr)
        for file, bytes_before in before.items():
            self.assertEqual((self.run_directory / file).read_bytes(), bytes_before, file)

    def test_its_dossier_is_refused_as_an_acceptance(self):
        self.assertEqual(self.simulate("--out", self.run_directory).returncode, 0)
        key = self.scratch / "lab.key"
        self.assertEqual(self.assay("keygen", key).returncode, 0)
        signed = self.assay("sign", self.run_directory, "--key", key)
        self.assertEqual(signed.returncode, 0, signed.stderr)
        verified = self.verify(key=self.scratch / "lab.key.pub")
        self.assertEqual(verified.returncode, 4, verified.stdout)
        self.assertIn("is a simulation, in which nothing was measured", verified.stderr)

    def test_probes_that_are_not_part_of_this_build_are_simulated_too(self):
        done = self.assay("simulate", "--profile", "nvidia-gpu-each", "--nodes", 2, "--out", self.run_directory)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("had it been measured, it would be accepted", done.stdout)
        self.assertNotIn("not part of this build", (self.run_directory / "plan.json").read_text())
        self.assertEqual(self.assay("judge", self.run_directory).returncode, 3)

    def test_its_plan_is_not_run(self):
        self.assertEqual(self.simulate("--out", self.run_directory).returncode, 0)
        done = self.assay("run", self.run_directory / "plan.json", "--out", self.scratch / "real")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("is the plan of a simulation, which measures nothing", done.stderr)

    def test_a_plan_without_the_word_is_refused(self):
        self.assertEqual(self.simulate("--out", self.run_directory).returncode, 0)
        path = self.run_directory / "plan.json"
        plan = json.loads(path.read_text())
        del plan["kind_of_run"]
        path.write_text(json.dumps(plan, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
        judged = self.assay("judge", self.run_directory)
        self.assertEqual(judged.returncode, 2, judged.stdout)

    def test_a_knee_is_found_drawn_and_exported(self):
        full = {"nodes": 12, "metric": "bandwidth", "counter": "rpc_backlog"}
        faults = self.write("faults.json", {"schema": "assay.faults/1", "knees": [full]})
        more = ["--nodes", 32, "--seed", 3, "--faults", faults, "--out", self.run_directory]
        done = self.assay("simulate", "--profile", "storage-shared", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 found, 0 missed, 0 false alarms", done.stdout)
        knees = {
            one["requirement"]: one for one in json.loads((self.run_directory / "verdict.json").read_text())["knees"]
        }
        self.assertEqual({one["state"] for one in knees.values()}, {"found"}, knees)
        write = knees["shared.write.knee"]
        self.assertEqual((write["kept"], write["lost"], write["counter"]["name"]), (13, 14, "rpc_backlog"))
        self.assertEqual({one["kept"] for one in write["points"] if one["nodes"] > 13}, {False})
        page = (self.run_directory / "report.html").read_text()
        for words in ('<h3 id="knees">', "knee 13", "rpc_backlog of a node"):
            self.assertIn(words, page)
        rows = list(csv.DictReader(self.assay("export", "knees", "--run", self.run_directory).stdout.splitlines()))
        self.assertEqual(len(rows), sum(len(one["points"]) for one in knees.values()))
        self.assertIn(
            ("shared.write.knee", "13", "true"), {(one["requirement"], one["nodes"], one["kept"]) for one in rows}
        )

    def test_the_report_of_a_large_fleet_shows_what_is_open_and_counts_the_rest(self):
        faults = self.write(
            "faults.json", {"schema": "assay.faults/1", "bad_nodes": [{"node": "n00003", "factor": 0.3}]}
        )
        done = self.assay(
            "simulate",
            "--profile",
            self.write("profile.json", profile(requirement("r"))),
            "--nodes",
            600,
            "--seed",
            7,
            "--faults",
            faults,
            "--out",
            self.run_directory,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        page = (self.run_directory / "report.html").read_text()
        matrix = page[page.index("3 Coverage") : page.index("4 Results")]
        self.assertIn("n00003", matrix)
        self.assertNotIn("n00004", matrix)
        passed = list(self.outcomes().values()).count("pass")
        self.assertGreater(passed, 590)  # a steady node that looks unsteady by chance stays open, and is shown
        self.assertIn(f"Omitted, with cells that all pass: {passed} places", page)
        self.assertIn("600 planned attempts that exited are omitted", page)

    def test_months_with_fresh_tests_are_judged_from_their_database_as_in_the_rehearsal(self):
        faults = self.write(
            "faults.json",
            {
                "schema": "assay.night-faults/1",
                "faults": [{"kind": "step", "unit": "n00003", "metric": "simulated.m01", "from_night": 60, "sigma": 8}],
            },
        )
        database, rehearsed, judged = (
            self.scratch / "months.db",
            self.scratch / "rehearsed.json",
            self.scratch / "judged.json",
        )
        done = self.assay(
            "simulate",
            "--nights",
            70,
            "--nodes",
            30,
            "--metrics",
            3,
            "--faults",
            faults,
            "--db",
            database,
            "-o",
            rehearsed,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"[1-9]\d* fresh tests")
        self.assertIn(self.assay("drift", "judge", "--db", database, "-o", judged).returncode, (0, 1))
        self.assertEqual(judged.read_bytes(), rehearsed.read_bytes())
        self.assertIn('"confirmed"', judged.read_text())
        done = self.assay("simulate", "--nights", 70, "--nodes", 30, "--metrics", 3, "--faults", faults, "--retests", 0)
        self.assertIn(" 0 fresh tests", done.stdout)

    def test_a_node_that_the_fleet_has_not_is_named(self):
        done = self.simulate(faults={"dead": ["n7"]})
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no node 'n7'", done.stderr)
        self.assertIn("the simulated nodes are n00000 to n00019", done.stderr)


if __name__ == "__main__":
    main()
