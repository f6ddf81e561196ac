"""`assay requirements`: a catalogue over a dossier, a run folder and a simulated fleet; simulations meet nothing."""
import csv
import io
import json

from attacks import ASSAY, Bench, main, run

COPY = {"probe": "example_memory", "metric": "copy_bandwidth"}


class Requirements(Bench):
    kind = "accepted"

    def catalogue(self, *rows):
        path = self.scratch / "demands.json"
        source = {"document": "Example guide", "address": "https://example.org/guide", "date": "2026-11-27"}
        head = {"schema": "assay.catalogue/1", "name": "example", "title": "Demands", "revision": 1, "source": source}
        path.write_text(json.dumps({**head, "rows": list(rows)}, indent=1))
        return path

    def row(self, name, *answers):
        return {"id": name, "section": "Memory", "text": "It is fast", "answered_by": list(answers)}

    def requirements(self, *arguments):
        return run(ASSAY, "requirements", *arguments, env=self.environment)

    def test_a_verified_dossier_and_its_run_folder_meet_a_row_and_say_what_vouches_for_them(self):
        path = self.catalogue(self.row("a", COPY))
        for folder, keys, standing in (
            (self.dossier, ["--key", f"{self.key}.pub"], "verified"),
            (self.dossier, [], "signature_not_checked"),
            (self.run_directory, [], "unsigned"),
        ):
            done = self.requirements(path, "--run", folder, *keys, "--json", "--met")
            self.assertEqual(done.returncode, 0, done.stderr)
            found = json.loads(done.stdout)
            self.assertEqual((found["run"]["standing"], found["rows"][0]["state"]), (standing, "met"))
            record = found["requirements"][0]["cells"][0]["records"][0]
            manifest = (self.dossier / "MANIFEST.sha256").read_text()
            self.assertIn(f"{record['sha256']}  evidence/{record['path']}\n", manifest)

    def test_a_dossier_of_another_signer_is_refused(self):
        done = self.requirements(
            self.catalogue(self.row("a", COPY)), "--run", self.dossier, "--key", self.base / "buyer.key.pub"
        )
        self.assertEqual(done.returncode, 4, done.stdout)

    def test_a_simulated_fleet_meets_nothing_of_a_built_in_catalogue(self):
        out, page = self.scratch / "fleet", self.scratch / "page.html"
        self.command("simulate", "--profile", "host", "--nodes", 4, "--seed", 7, "--out", out, code=0)
        done = self.requirements("nvidia-ai-clouds", "--run", out, "--out", page, "--csv", "--met")
        self.assertEqual(done.returncode, 3, done.stderr)
        states = [row["state"] for row in csv.DictReader(io.StringIO(done.stdout))]
        self.assertEqual(set(states), {"not_tested", "outside"})
        self.assertIn("SIMULATION", page.read_text())
        table = self.requirements("clustermax", "--run", out).stdout
        self.assertIn("SIMULATION: nothing was measured", table)
        self.assertIn("\n0 met, 0 not met, ", table)

    def test_bad_input_is_named(self):
        path = self.catalogue(self.row("a", COPY), self.row("b", {**COPY, "metric": "copy_bandwith"}))
        done = self.requirements(path, "--run", self.dossier)
        self.assertEqual(done.returncode, 2)
        line = path.read_text().split('"id": "b"')[0].count("\n")
        self.assertIn(f"demands.json:{line}: rows[1].answered_by[0]: 'copy_bandwith' is not a metric", done.stderr)
        self.assertIn("did you mean 'copy_bandwidth'?", done.stderr)
        for arguments, words in (
            (["clustermx", "--run", self.dossier], "did you mean 'clustermax'?"),
            (["clustermax"], "needs a catalogue and --run"),
            (["clustermax", "--run", self.scratch / "nothing"], "is not a folder"),
            (["clustermax", "--run", self.dossier, "--json", "--csv"], "does not go with --json"),
        ):
            done = self.requirements(*arguments)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(words, done.stderr)

    def test_the_built_in_catalogues_are_listed(self):
        done = self.requirements("--list")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("clustermax", done.stdout)
        self.assertIn("nvidia-ai-clouds", done.stdout)


if __name__ == "__main__":
    main()
