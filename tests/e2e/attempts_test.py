"""How often steps are measured: in passes over the plan, and in a second stage what they leave open or failed."""
import hashlib
import json
import signal

from harness import DEADLINE_S, Bench, main, profile, requirement, wait_for

THRICE = {"attempts": 3, "more_attempts": 4}


class Attempts(Bench):
    def begun(self):
        """Steps by number, in the order in which their attempts began: "0001"."""
        return [line["step"][:4] for line in self.journal() if line["kind"] == "attempt_begin"]

    def second_stage(self):
        return [line["steps"] for line in self.journal() if line["kind"] == "second_stage_begin"]

    def result(self, name):
        return next(one for one in self.verdict()["results"] if one["requirement"] == name)

    def scripted(self, name, lines, **more):
        """A requirement on what a probe says that takes one of the lines in each run."""
        script = self.write(f"{name}.txt", "".join(f"{line}\n" for line in lines))
        return requirement(name, repeat=THRICE, **{"parameters": {"script": script}, **more})

    def start_accept(self, *requirements):
        written = self.write("profile.json", profile(*requirements))
        return self.start("accept", "--profile", written, "--directory", self.work, "--out", self.run_directory)

    def test_attempts_of_a_step_lie_in_different_passes_and_all_of_them_are_judged(self):
        done = self.accept(requirement("a", value=100, repeat=THRICE), requirement("b", value=101, repeat=THRICE))
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertIn("2 steps on 1 node, 6 attempts", done.stderr)
        self.assertEqual(self.begun(), ["0001", "0002"] * 3)
        self.assertEqual([self.result(name)["attempts"] for name in "ab"], [3, 3])
        self.assertEqual(self.second_stage(), [])
        self.assertEqual(self.verify().returncode, 0)

    def test_a_step_that_fails_is_measured_again_and_a_good_one_is_not(self):
        done = self.accept(requirement("bad", value=20, repeat=THRICE), requirement("good", value=100, repeat=THRICE))
        self.assertEqual(done.returncode, 1, done.stderr + done.stdout)
        self.assertEqual(self.begun(), ["0001", "0002"] * 3 + ["0001"] * 4)
        self.assertEqual(self.second_stage(), [{f"0001-fake_probe-{self.node()}": f"bad on {self.node()} is fail"}])
        self.assertEqual((self.result("bad")["attempts"], self.result("good")["attempts"]), (7, 3))
        self.assertIn("measured again, for a required cell that does not pass: 1 step\n", done.stderr)
        self.assertEqual(self.verify().returncode, 0)

    def test_a_figure_that_is_bad_in_every_other_attempt_is_not_accepted(self):
        done = self.accept(self.scripted("flapping", [100, 20] * 4))
        self.assertIn(done.returncode, (1, 3), done.stderr + done.stdout)
        self.assertEqual(self.result("flapping")["attempts"], 7)
        self.assertNotEqual(self.result("flapping")["outcome"], "pass")

    def test_a_crash_ends_the_attempts_of_its_stage_and_good_ones_after_it_do_not_mend_it(self):
        done = self.accept(self.scripted("crashing", [100, "crash"]), requirement("good", value=100, repeat=THRICE))
        self.assertEqual(done.returncode, 3, done.stderr + done.stdout)
        self.assertEqual(self.begun(), ["0001", "0002", "0001", "0002", "0002"] + ["0001"] * 4)
        self.assertEqual(self.result("crashing")["outcome"], "inconclusive")
        self.assertIn("crashed", self.result("crashing")["reason"])

    def test_a_failure_stops_the_run_only_when_no_planned_attempt_is_left_that_could_mend_it(self):
        done = self.accept(
            requirement("bad", value=20, repeat=THRICE),
            requirement("good", value=100, repeat=THRICE),
            more=["--stop-on-fail"],
        )
        self.assertEqual(done.returncode, 1, done.stderr + done.stdout)
        self.assertEqual(self.begun(), ["0001", "0002"] * 3 + ["0001"] * 4)

    def soak(self, lines):
        """A soak of at most six attempts of 0.9 s, as the probe says, with as many interruptions as the lines."""
        once = {"repeat": {"n": 1, "attempts": 1, "more_attempts": 0}}
        script = self.write("soak.txt", "".join(f"{line}\n" for line in lines))
        of = {"parameters": {"script": script, "load_least": "900ms"}, **once}
        done = self.accept(
            requirement(
                "stops", metric="interruptions", at="every", statistic="max", limit={"at_most": 9, "unit": "1"}, **of
            ),
            requirement("load", metric="load_share", statistic="min", limit={"at_least": 0.9, "unit": "1"}, **of),
            more=["--stability", "hours=15e-4,tolerated=1,refused=25e-5,accepted=5e-3,vendor=8,buyer=8,stop=early"],
        )
        whole = [one for one in self.verdict()["results"] if "cluster" in one["subject"]]
        self.assertEqual(self.verify().returncode, 0)
        return done, whole[0]

    def test_a_soak_ends_at_the_attempt_after_which_its_interruptions_cross_a_boundary(self):
        done, whole = self.soak([0] * 6)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertEqual((len(self.begun()), whole["outcome"], whole["each"]), (3, "pass", [0, 0, 0]))
        self.assertIn("the soak ends: 0 interruptions in 0.00075 h under load: look 3 of 6", done.stderr)

    def test_a_soak_that_is_refused_early_is_rejected(self):
        done, whole = self.soak([0, 2, 0])
        self.assertEqual(done.returncode, 1, done.stderr + done.stdout)
        self.assertEqual((len(self.begun()), whole["outcome"]), (2, "fail"))

    def test_a_soak_that_breaks_off_crosses_no_boundary(self):
        done, whole = self.soak([0, 0, "crash", 0, 0, 0])
        self.assertEqual(done.returncode, 3, done.stderr + done.stdout)
        self.assertEqual((len(self.begun()), whole["outcome"]), (3, "inconclusive"))

    def test_the_deadline_leaves_out_what_is_left_of_a_step(self):
        self.accept(requirement("a", repeat=THRICE), more=["--deadline", "1ms"])
        resumed = self.assay("run", "--resume", self.run_directory)
        self.assertEqual(resumed.returncode, 0, resumed.stderr + resumed.stdout)
        self.assertEqual(self.result("a")["attempts"], 3)

    def test_nodes_that_are_measured_anew_name_the_plan_that_they_continue(self):
        self.assertEqual(self.accept(requirement("a", value=20)).returncode, 1)
        first = hashlib.sha256((self.run_directory / "plan.json").read_bytes()).hexdigest()
        before, self.run_directory = self.run_directory, self.scratch / "again"
        done = self.accept(requirement("a", value=20), more=["--continues", before, "--nodes", self.node_of(before)])
        self.assertEqual(done.returncode, 1, done.stderr + done.stdout)
        self.assertEqual(json.loads((self.run_directory / "plan.json").read_text())["continues"], first)
        self.assertIn(
            f"The run continues the plan {first}: 1 of its nodes are measured anew.",
            [one["what"] for one in self.verdict()["deviations"]],
        )
        self.assertEqual(self.verify().returncode, 0)
        self.run_directory = self.scratch / "third"
        rehearsed = self.accept(requirement("a", value=20), more=["--continues", before / "dossier", "--dry-run"])
        self.assertEqual(rehearsed.returncode, 0, rehearsed.stderr)
        self.assertIn("--nodes: the site", self.accept(requirement("a"), more=["--nodes", "nobody"]).stderr)
        other = profile(requirement("a"))
        other["revision"] = 2
        refused = self.assay("plan", "--profile", self.write("other.json", other), "--continues", before)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("continue a test with the profile that it began with", refused.stderr)

    def node_of(self, directory):
        return json.loads((directory / "plan.json").read_text())["site"]["nodes"][0]["name"]

    def resumed_after_kill(self, when, what):
        """Kills the run when `when()` holds, and finishes it."""
        process = self.start_accept(*(requirement(f"r{i}", "slow", value=20 + i, repeat=THRICE) for i in range(2)))
        wait_for(when, what)
        process.send_signal(signal.SIGKILL)
        process.wait(DEADLINE_S)
        self.nothing_left()
        status = json.loads(self.assay("status", self.run_directory, "--json").stdout)
        resumed = self.assay("run", "--resume", self.run_directory)
        self.assertEqual(resumed.returncode, 1, resumed.stderr + resumed.stdout)
        ended = [line["step"][:4] for line in self.journal() if line["kind"] == "attempt_end"]
        self.assertEqual(sorted(ended), ["0001"] * 7 + ["0002"] * 7)
        self.assertEqual(len(self.second_stage()), 1)
        self.assertEqual([self.result(name)["attempts"] for name in ("r0", "r1")], [7, 7])
        return status

    def test_kill_9_in_the_second_pass_is_resumed_in_that_pass(self):
        status = self.resumed_after_kill(lambda: len(self.begun()) >= 4, "the fourth attempt runs")
        self.assertEqual(
            (status["stage"], status["pass"], status["passes"], status["planned_attempts"]), ("first", 2, 3, 6)
        )
        self.assertEqual(self.begun()[:4], ["0001", "0002"] * 2)

    def test_kill_9_in_the_second_stage_is_resumed_there_and_chooses_nothing_anew(self):
        status = self.resumed_after_kill(lambda: len(self.begun()) >= 8, "the second attempt of the second stage runs")
        self.assertEqual(
            (status["stage"], status["pass"], status["passes"], status["planned_attempts"]), ("second", 1, 4, 14)
        )


if __name__ == "__main__":
    main()
