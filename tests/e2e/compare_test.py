"""`assay compare`: dossiers, run folders and simulated fleets side by side, and what vouches for each of them."""
import json
import pathlib

from attacks import ASSAY, Bench, main, run


class Comparing(Bench):
    kind = "accepted"

    def compare(self, *arguments):
        return run(ASSAY, "compare", *arguments, env=self.environment)

    def simulate(self, name, profile="host", seed=7, **faults):
        path = self.scratch / f"{name}.json"
        path.write_text(json.dumps({"schema": "assay.faults/1", **faults}))
        out = self.scratch / name
        done = self.command(
            "simulate", "--profile", profile, "--nodes", 6, "--seed", seed, "--faults", path, "--out", out, code=0
        )
        self.assertIn("SIMULATION", done.stdout)
        return out

    def test_a_verified_dossier_beside_its_run_folder(self):
        done = self.compare(self.dossier, self.run_directory, "--key", f"{self.key}.pub", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual((found["a"]["standing"], found["b"]["standing"]), ("verified", "unsigned"))
        self.assertEqual(len(found["a"]["signers"]), 1)
        self.assertIn("A and B are the same run", found["notes"])

    def test_without_a_key_the_signature_was_not_checked_and_that_is_said(self):
        done = self.compare(self.dossier, self.dossier)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("A is a dossier whose SIGNATURE WAS NOT CHECKED", done.stdout)

    def test_a_dossier_of_another_signer_is_refused(self):
        done = self.compare(self.dossier, self.run_directory, "--key", self.base / "buyer.key.pub")
        self.assertEqual(done.returncode, 4, done.stdout)
        self.assertIn("has no valid signature of any key that was given", done.stderr)

    def test_a_tampered_dossier_is_refused_with_and_without_a_key(self):
        self.flip(self.first("records"))
        for more in ([], ["--key", f"{self.key}.pub"]):
            done = self.compare(self.dossier, self.run_directory, *more)
            self.assertEqual(done.returncode, 4, done.stdout)
            self.assertIn("SHA-256 differs", done.stderr)

    def test_a_slower_fleet_is_shown_and_a_page_is_written(self):
        before = self.simulate("before", healthy={"margin": 0.10, "spread": 0.01, "run_to_run": 0.004})
        after = self.simulate("after", healthy={"margin": 0.04, "spread": 0.01, "run_to_run": 0.004})
        page = self.scratch / "page.html"
        done = self.compare(before, after, "--out", page, "--no-worse")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("A is SIMULATED", done.stdout)
        self.assertIn("SIMULATION", page.read_text())
        found = json.loads(self.compare(before, after, "--json").stdout)
        self.assertGreater(found["counts"]["worse"], 0)
        self.assertEqual(found["counts"]["better"], 0)
        again = self.compare(before, before, "--no-worse")
        self.assertEqual(again.returncode, 3, "a run is no evidence beside itself: " + again.stdout)
        alike = {"margin": 0.10, "spread": 0, "run_to_run": 0.004}  # another seed is another fleet, of the same nodes
        one, other = (self.simulate(f"seed{seed}", seed=seed, healthy=alike) for seed in (7, 8))
        self.assertEqual(self.compare(one, other, "--no-worse").returncode, 0)

    def test_a_run_by_a_looser_profile_or_of_a_run_that_passed_nothing_shows_nothing(self):
        healthy = {"margin": 0.10, "spread": 0, "run_to_run": 0.004}
        before = self.simulate("before", healthy=healthy)
        host = json.loads((pathlib.Path(__file__).parents[2] / "profiles/host.json").read_text())["requirements"]
        for name, margin, change in (
            ("limit", 0.4, {"limit": {"at_least": 0.5, "unit": "1"}}),  # a simulated figure follows its limit
            ("type", 0.1, {"parameters": {"type": "fp32"}}),
        ):
            one = {**host[0], **change}
            document = {"schema": "assay.profile/1", "name": "looser", "title": "L", "revision": 1, "extends": "host"}
            profile = self.scratch / f"{name}-profile.json"
            profile.write_text(json.dumps({**document, "requirements": [one]}))
            after = self.simulate(name, profile=profile, seed=8, healthy={**healthy, "margin": margin})
            self.assertEqual(self.compare(before, after, "--no-worse").returncode, 3, name)
        nothing = self.simulate("nothing", seed=9, dead=[f"n{i:05}" for i in range(6)])
        self.assertEqual(self.compare(nothing, before, "--no-worse").returncode, 3)

    def test_a_cell_that_passed_and_fails_or_is_not_measured_any_more_gives_the_exit_code(self):
        healthy = {"margin": 0.10}
        before = self.simulate("sound", healthy=healthy)
        wrong = [{"node": "n00003", "metric": "mismatches", "factor": 0.9}]
        for name, code, faults in (
            ("wrong", 1, {"bad_nodes": wrong}),
            ("one_dead", 3, {"dead": ["n00003"]}),
            ("all_dead", 3, {"dead": [f"n{i:05}" for i in range(6)]}),
        ):
            done = self.compare(before, self.simulate(name, healthy=healthy, **faults), "--no-worse")
            self.assertEqual(done.returncode, code, f"{name}: {done.stdout}")

    def test_bad_input_is_named(self):
        done = self.compare(self.scratch / "nothing", self.dossier)
        self.assertEqual(done.returncode, 2)
        self.assertIn("nothing: is not a folder", done.stderr)
        done = self.compare(self.dossier, self.scratch)
        self.assertEqual(done.returncode, 4)
        self.assertIn("plan.json", done.stderr)


if __name__ == "__main__":
    main()
