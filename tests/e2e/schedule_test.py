"""When steps start and when they do not: a deadline, the first failure, one cause of many, a power cap, too few nodes."""
from harness import Bench, main, profile, requirement
from loopback import LoopbackBench


class Schedule(Bench):
    def test_no_step_starts_that_cannot_end_before_the_deadline_and_the_rest_can_follow(self):
        done = self.accept(requirement("r"), requirement("s", value=200), more=["--deadline", "1ms"])
        self.assertEqual(done.returncode, 3, done.stderr + done.stdout)
        self.assertEqual(set(self.outcomes().values()), {"not_measured"})
        self.assertEqual(set(self.reasons().values()), {"the run's deadline was too near for it"})
        self.assertFalse([line for line in self.journal() if line["kind"] == "attempt_begin"])
        self.assertIn("2 steps did not start", done.stdout)
        self.assertIn("--resume", done.stderr)
        resumed = self.assay("run", "--resume", self.run_directory)
        self.assertEqual(resumed.returncode, 0, resumed.stderr + resumed.stdout)
        self.assertEqual(set(self.outcomes().values()), {"pass"})

    def refused(self, words, *arguments):
        done = self.assay(*arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(words, done.stderr)
        return done

    def test_what_too_few_nodes_can_decide_is_refused_before_anything_is_measured(self):
        pairs = self.write("pairs.json", profile(dict(requirement("p"), probe="fake_fabric", scope="pair")))
        self.refused(
            "could not be accepted on 1 node: p: a pair needs two nodes, the site has one",
            *("accept", "--profile", pairs, "--out", self.run_directory),
        )
        self.assertFalse(self.run_directory.exists())
        for option in ("--allow-missing", "--quick"):
            self.assertEqual(self.assay("plan", "--profile", pairs, "--dry-run", option).returncode, 0)
        nodes = [{"name": f"n0{i}", "launcher": "ssh", "address": f"10.0.0.{i}"} for i in range(1, 10)]
        site = self.write("site.json", {"schema": "assay.site/1", "name": "hall", "nodes": nodes})
        fleet = requirement("f", limit={"at_least": 0.9, "unit": "1", "of": "fleet_median"})
        chosen = ("--profile", self.write("fleet.json", profile(fleet)), "--site", site, "--dry-run", "--nodes")
        refused = self.refused("f: needs 8 members for comparison, and 1 takes part", "plan", *chosen, "n05")
        partners = "n05,n01,n02,n03,n04,n06,n07,n08"
        self.assertIn(f"measure them with others: --nodes {partners}\n", refused.stderr)
        listed = self.assay("plan", *chosen, partners)
        self.assertEqual(listed.returncode, 0)
        self.assertRegex(listed.stdout, r"\n0001-0008 +fake_probe +8 singly +.* of .* f\n$")
        pairs = self.write("pairs_of_fleet.json", profile(dict(fleet, id="g", probe="fake_fabric", scope="pair")))
        refused = self.refused(
            "g: a pair needs two nodes", "plan", "--profile", pairs, "--site", site, "--dry-run", "--nodes", "n05"
        )
        self.assertIn(f"measure them with others: --nodes {partners}\n", refused.stderr)  # two would be refused again

    def test_five_attempts_of_one_cause_stop_the_run_and_to_resume_goes_on(self):
        done = self.accept(*(requirement(f"r{i}", "crash", value=100 + i) for i in range(8)))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("5 attempts in a row broke for one cause: crashed: ", done.stderr)
        self.assertIn("assay run --resume", done.stderr)
        self.assertEqual(sum(line["kind"] == "attempt_end" for line in self.journal()), 5)
        self.assertEqual(self.assay("run", "--resume", self.run_directory).returncode, 3)
        self.assertEqual(sum(line["kind"] == "attempt_end" for line in self.journal()), 8)
        self.assertNotIn("broke for one cause", (self.run_directory / "verdict.json").read_text())

    def test_a_deadline_that_is_no_duration_is_refused(self):
        done = self.accept(requirement("r"), more=["--deadline", "soon"])
        self.assertEqual(done.returncode, 2)
        self.assertIn("--deadline: 'soon' is not a duration", done.stderr)
        done = self.accept(requirement("r"), more=["--deadline", "5"])
        self.assertEqual(done.returncode, 2)
        self.assertIn("--deadline: '5' has no unit", done.stderr)
        self.assertFalse(self.run_directory.exists())

    def test_nothing_starts_after_the_first_required_failure(self):
        done = self.accept(
            requirement("a", value=1, severity="advisory"),
            requirement("b", value=2),
            requirement("c", value=3, at_least=1),
            more=["--stop-on-fail"],
        )
        self.assertEqual(done.returncode, 1, done.stderr + done.stdout)
        node = self.node()
        self.assertEqual(self.outcomes(), {("a", node): "fail", ("b", node): "fail", ("c", node): "not_measured"})
        self.assertEqual(
            self.reasons()[("c", node)], f"b on {node} failed, and the run was to stop at the first failure"
        )
        resumed = self.assay("run", "--resume", self.run_directory)
        self.assertEqual(resumed.returncode, 1, resumed.stderr)
        self.assertEqual(self.outcomes()[("c", node)], "pass")

    def test_without_that_wish_the_others_go_on(self):
        done = self.accept(requirement("b", value=2), requirement("c", value=3, at_least=1))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(sorted(self.outcomes().values()), ["fail", "pass"])


class PowerCap(LoopbackBench):
    count = 3

    def accept_with(self, cap_w, power_w, *requirements):
        self.site["power_cap_w"] = cap_w
        document = {
            "schema": "assay.profile/1",
            "name": "test",
            "title": "T",
            "revision": 1,
            "requirements": list(requirements),
        }
        if power_w:
            document["power_w"] = power_w
        return self.assay(
            "accept",
            "--profile",
            self.write("profile.json", document),
            "--site",
            self.write("site.json", self.site),
            "--out",
            self.run_directory,
        )

    def most_at_once(self):
        running = most = 0
        for line in self.journal():
            running += {"attempt_begin": 1, "attempt_end": -1}.get(line["kind"], 0)
            most = max(most, running)
        return most

    def test_running_steps_stay_below_the_cap_and_all_of_them_run(self):
        done = self.accept_with(1500, 700, *(requirement(f"r{i}", "slow", value=100 + i) for i in range(2)))
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertEqual(len(self.outcomes()), 6)
        self.assertLessEqual(self.most_at_once(), 2)

    def test_a_requirement_may_draw_more_than_the_others(self):
        done = self.accept_with(1500, 700, requirement("r", "slow", power_w=1400))
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertEqual(self.most_at_once(), 1)

    def test_a_step_over_the_cap_by_itself_is_refused_when_planning(self):
        done = self.accept_with(600, 700, requirement("r"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("600 W, but step 0001-fake_probe-n01 draws 700 W", done.stderr)

    def test_a_cap_without_a_design_power_is_refused(self):
        done = self.accept_with(600, None, requirement("r"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("power_w: is missing, and the site loopback has a power cap of 600 W", done.stderr)


if __name__ == "__main__":
    main()
