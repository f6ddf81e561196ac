"""Who is at fault where nodes that work together fall short: extra tests over real ssh, on nodes whose probe is told who is slow."""
import json
import signal

from harness import DEADLINE_S, main, requirement, wait_for
from loopback import LoopbackBench


def whole(name, slow, **more):
    """One requirement on fake_fabric over the whole site; `slow` tells who makes its number less than the limit of 90."""
    parameters = {"behaviour": "measure", "value": 100, "slow": slow, **more.pop("parameters", {})}
    return requirement(name, at_least=90, probe="fake_fabric", scope=more.pop("scope", "cluster"), **more) | {
        "parameters": parameters
    }


class Localise(LoopbackBench):
    count = 6

    def made(self):
        return [line for line in self.journal() if line["kind"] == "attempt_begin" and "purpose" in line]

    def test_a_slow_node_is_named_with_evidence_and_the_dossier_verifies(self):
        done = self.accept_on_site(requirement("alone"), whole("fabric", "n03:40"))
        self.assertEqual(done.returncode, 1, done.stderr + done.stdout)
        (found,) = self.verdict()["localised"]
        self.assertEqual([culprit["nodes"] for culprit in found["culprits"]], [["n03"]], found)
        self.assertEqual(found["state"], "found")
        self.assertIn("node n03: misses the limit with every peer", done.stdout)
        self.assertIn("At fault: node n03.", done.stdout)
        tests = self.made()
        self.assertEqual([line["step"] for line in tests], [test["id"] for test in found["tests"]])
        self.assertLessEqual(len(tests), found["budget"])
        for line in tests:
            for rank, _ in enumerate(line["nodes"]):
                self.assertTrue((self.run_directory / f"records/{line['step']}/1/{rank}.jsonl").exists(), line)
        self.assertTrue(set(found["culprits"][0]["tests"]) <= {line["step"] for line in tests})
        self.assertIn("Located faults", (self.run_directory / "report.html").read_text())
        verified = self.verify()
        self.assertEqual(verified.returncode, 0, verified.stderr)

    def test_a_slow_pair_is_named_as_a_pair(self):
        done = self.accept_on_site(whole("fabric", "n02+n05:40"))
        self.assertEqual(done.returncode, 1, done.stderr + done.stdout)
        (found,) = self.verdict()["localised"]
        self.assertEqual(
            [(culprit["fault"], culprit["nodes"]) for culprit in found["culprits"]], [("pair", ["n02", "n05"])], found
        )
        self.assertEqual(self.verify().returncode, 0)

    def test_pairs_name_their_node_without_any_extra_test(self):
        done = self.accept_on_site(whole("pairs", "n04:40", scope="pair"))
        self.assertEqual(done.returncode, 1, done.stderr + done.stdout)
        (found,) = self.verdict()["localised"]
        self.assertEqual([culprit["nodes"] for culprit in found["culprits"]], [["n04"]])
        self.assertEqual(self.made(), [])

    def test_pairs_that_are_measured_again_keep_their_nodes(self):
        done = self.accept_on_site(whole("pairs", "n04:40", scope="pair", repeat={"attempts": 1, "more_attempts": 1}))
        self.assertEqual(done.returncode, 1, done.stderr + done.stdout)
        lines = self.journal()
        self.assertEqual(
            [line["kind"] for line in lines if line["kind"].startswith("second_stage")], ["second_stage_begin"]
        )
        self.assertEqual({line["outcome"] for line in lines if line["kind"] == "attempt_end"}, {"exited"})
        self.assertEqual(
            done.stderr.count("starting the agent"), self.count, done.stderr
        )  # of every node once: a second start ends the first
        (found,) = self.verdict()["localised"]
        self.assertEqual([culprit["nodes"] for culprit in found["culprits"]], [["n04"]])

    def test_a_healthy_site_has_no_extra_test_and_accuses_no_node(self):
        done = self.accept_on_site(whole("fabric", ""))
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertEqual(self.verdict()["localised"], [])
        self.assertEqual(self.made(), [])

    def test_a_killed_search_goes_on_where_it_was(self):
        profile = self.write(
            "profile.json",
            {
                "schema": "assay.profile/1",
                "name": "test",
                "title": "T",
                "revision": 1,
                "requirements": [whole("fabric", "n06:40", parameters={"pause": "300ms"})],
            },
        )
        process = self.start(
            "accept", "--profile", profile, "--site", self.write("site.json", self.site), "--out", self.run_directory
        )
        wait_for(lambda: len(self.made()) >= 3, "the search has begun its third test", 120)
        process.send_signal(signal.SIGKILL)
        process.wait(DEADLINE_S)
        judged = self.assay("judge", self.run_directory)
        self.assertEqual(judged.returncode, 1, judged.stderr)
        self.assertEqual(self.verdict()["localised"][0]["state"], "open")
        before = [line["step"] for line in self.journal() if line["kind"] == "attempt_end"]
        resumed = self.assay("run", "--resume", self.run_directory)
        self.assertEqual(resumed.returncode, 1, resumed.stderr + resumed.stdout)
        ended = [line["step"] for line in self.journal() if line["kind"] == "attempt_end"]
        self.assertEqual(ended[: len(before)], before)
        self.assertEqual(len(ended), len(set(ended)))
        self.assertEqual(self.verdict()["localised"][0]["culprits"][0]["nodes"], ["n06"])

    def test_a_probe_that_needs_more_ranks_is_not_searched_and_says_why(self):
        done = self.accept_on_site(whole("fabric", "n03:40", parameters={"fewest": 5}))
        self.assertEqual(done.returncode, 1, done.stderr + done.stdout)
        (found,) = self.verdict()["localised"]
        self.assertEqual((found["state"], found["culprits"]), ("not_searched", []))
        self.assertIn("it needs 5 ranks", found["reason"])
        self.assertEqual(self.verify().returncode, 0)

    def test_who_wants_no_extra_tests_gets_none(self):
        done = self.accept_on_site(whole("fabric", "n03:40"), more=["--no-localise"])
        self.assertEqual(done.returncode, 1, done.stderr + done.stdout)
        self.assertEqual(self.made(), [])
        self.assertEqual(self.verdict()["localised"], [])

    def test_a_journal_with_a_test_taken_out_is_refused(self):
        self.accept_on_site(whole("fabric", "n03:40"))
        first = self.made()[0]["step"]
        path = self.run_directory / "journal.jsonl"
        path.write_text(
            "".join(line + "\n" for line in path.read_text().split("\n")[:-1] if json.loads(line).get("step") != first)
        )
        judged = self.assay("judge", self.run_directory)
        self.assertEqual(judged.returncode, 2, judged.stdout)
        self.assertIn("its search would not have asked for", judged.stderr)


if __name__ == "__main__":
    main()
