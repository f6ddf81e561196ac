"""`--json` of commands that print a table: one shape, assay.table/1, that jq reads."""
import json
import pathlib

from harness import main, profile, requirement
from nightly import NightBench, flag, nightly, report

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "imports"
FAKES = pathlib.Path(__file__).parent.parent / "fakes"


class Tables(NightBench):
    def table(self, *words, code=0):
        done = self.assay(*words, "--json")
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertTrue(done.stdout.isascii())
        found = json.loads(done.stdout)
        self.assertEqual(list(found), ["schema", "command", "summary", "rows"])
        self.assertEqual((found["schema"], found["command"]), ("assay.table/1", words[0]))
        self.assertIsInstance(found["summary"], dict)
        self.assertTrue(all(isinstance(row, dict) for row in found["rows"]))
        return found

    def refused(self, words, *arguments):
        done = self.assay(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn(words, done.stderr)

    def test_a_plan_and_the_dry_run_of_accept_have_the_same_steps(self):
        ours = self.write("p.json", profile(requirement("r"), requirement("s", probe="example_drive")))
        planned = self.table("plan", "--profile", ours, "--dry-run", "--allow-missing")
        self.assertEqual([row["requirements"] for row in planned["rows"]], [["r"]])
        self.assertEqual(planned["summary"]["not_planned"][0]["requirement"], "s")
        self.assertIsNone(planned["summary"]["written"])
        out = self.scratch / "plan.json"
        written = self.table("plan", "--profile", ours, "--out", out, "--allow-missing")
        self.assertEqual(written["rows"], planned["rows"])
        self.assertEqual(
            [step["id"] for step in json.loads(out.read_text())["steps"]], [row["step"] for row in written["rows"]]
        )
        accepted = self.table("accept", "--profile", ours, "--dry-run", "--allow-missing")
        self.assertEqual(accepted["rows"], planned["rows"])
        self.refused("needs --out or --dry-run", "plan", "--profile", ours, "--json")

    def test_a_bundle_lists_its_files_with_their_size(self):
        found = self.table("bundle", "--dry-run")
        self.assertFalse(found["summary"]["written"])
        self.assertEqual(sum(row["bytes"] for row in found["rows"]), found["summary"]["bytes"])
        self.assertIn("bin/assay", [row["name"] for row in found["rows"]])

    def test_a_sweep_says_who_is_due_what_became_of_them_and_that_it_accepts_nothing(self):
        ours = nightly(requirement("r"))
        due = self.table(*self.sweep_words(ours, "--dry-run"))
        self.assertEqual((due["summary"]["of"], due["summary"]["out"], len(due["rows"])), ("due", None, 1))
        visited = self.table(*self.sweep_words(ours))
        self.assertEqual([row["state"] for row in visited["rows"]], ["measured"])
        self.assertEqual((visited["summary"]["of"], visited["summary"]["accepts_nothing"]), ("visited", True))
        again = self.table(*self.sweep_words(ours))
        self.assertEqual((again["summary"]["of"], again["rows"]), ("due", []))
        prepared = self.table(*self.sweep_words(ours, "--prepare", night="2026-01-06"))
        self.assertEqual(prepared["summary"]["out"], str(self.sweep_folder))

    def test_a_cached_verdict_has_the_word_of_its_exit_code(self):
        found = self.table("verdict", "--file", self.scratch / "none.json", "--node", "n01", code=2)
        self.assertEqual(
            [(row["node"], row["health"], row["exit_code"]) for row in found["rows"]], [("n01", "unknown", 2)]
        )

    def test_a_drain_has_a_row_for_each_node_and_says_whether_it_was_done(self):
        nodes = self.scratch / "nodes.json"
        nodes.write_text(
            json.dumps(
                {f"n{i:02}": {"drained": False, "busy": False, "down": False, "reason": ""} for i in range(1, 9)}
            )
        )
        hook = self.scratch / "hook"
        hook.symlink_to(FAKES / "fake_scheduler")
        self.environment = dict(self.environment, FAKE_NODES=str(nodes), FAKE_NODES_LOG=str(self.scratch / "calls"))
        site = self.write(
            "site.json",
            {
                "schema": "assay.site/1",
                "name": "s",
                "nodes": [{"name": f"n{i:02}", "launcher": "ssh"} for i in range(1, 9)],
            },
        )
        words = [
            "--drift",
            self.write("drift.json", report(flag("n03"))),
            "--policy",
            self.write("policy.json", {"schema": "assay.policy/1", "mode": "drain"}),
            "--site",
            site,
            "--actor",
            "hook",
            "--program",
            hook,
            "--journal",
            self.scratch / "drain.jsonl",
            "--now",
            "2026-01-06T06:00:00.000Z",
        ]
        planned = self.table("drain", "plan", *words)
        self.assertEqual(
            [(row["node"], row["ruling"], row["done"]) for row in planned["rows"]], [("n03", "drain", None)]
        )
        self.assertFalse(planned["summary"]["applied"])
        done = self.table("drain", "apply", *words, "--apply")
        self.assertEqual([(row["node"], row["done"]) for row in done["rows"]], [("n03", True)])
        self.assertTrue(json.loads(nodes.read_text())["n03"]["drained"])

    def test_imported_figures_are_labelled_in_each_row(self):
        self.assertEqual(self.accept(requirement("r")).returncode, 0)
        found = self.table("import", "osu", GOLDEN / "osu_bw_7.5.txt", "--beside", self.run_directory)
        self.assertFalse(found["summary"]["judged"])
        self.assertGreaterEqual(len(found["rows"]), 1)
        self.assertTrue(all(row["imported"] for row in found["rows"]))
        self.assertEqual({row["requirement"] for row in found["rows"]}, {None})
        self.refused("needs --beside", "import", "osu", GOLDEN / "osu_bw_7.5.txt", "--json")


if __name__ == "__main__":
    main()
