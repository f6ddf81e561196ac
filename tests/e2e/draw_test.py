"""`assay draw`: two parties commit to seeds, the cells follow from both, their repeats are held against the dossier."""
import datetime
import hashlib
import json
import pathlib
import shutil
import subprocess
import tempfile

from harness import BIN, Bench, main, requirement

CENTURY = {"valid_from": "2020-01-01", "valid_until": "2100-01-01"}
HONEST = [101.0, 99.5, 100.2]
AGAIN = [100.4, 99.1, 101.3]
REQUIREMENTS = 4
CELLS = 3
MADE = {}  # the dossier that all tests draw from, made by the first


class Drawing(Bench):
    def setUp(self):
        super().setUp()
        if not MADE:
            self.make()
        self.__dict__.update(MADE)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(MADE.get("base", ""), ignore_errors=True)

    def make(self):
        """A dossier of some requirements in three attempts each, two keys, and the policy that has them."""
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="assay-draw-", dir="/var/tmp"))
        self.scripts = [self.base / f"script-{i}" for i in range(REQUIREMENTS)]
        for name in ("vendor", "buyer"):
            self.done("keygen", self.base / f"{name}.key")
        self.policy = self.base / "trust.json"
        self.policy.write_text(
            json.dumps(
                {
                    "schema": "assay.trust/1",
                    "name": "hall",
                    **CENTURY,
                    "require": ["vendor"],
                    "parties": [
                        {
                            "name": organisation,
                            "role": role,
                            "threshold": 1,
                            "signers": [
                                {
                                    "name": person,
                                    "keys": [
                                        {"fingerprint": self.fingerprint(role), "file": f"{role}.key.pub", **CENTURY}
                                    ],
                                }
                            ],
                        }
                        for role, person, organisation in (
                            ("vendor", "Ada", "Example Systems"),
                            ("buyer", "Bo", "Example AG"),
                        )
                    ],
                }
            )
        )
        self.numbers(HONEST)
        asked = [requirement(f"r{i}", repeat={"attempts": 3}) for i in range(REQUIREMENTS)]
        for one, script in zip(asked, self.scripts):
            one["parameters"]["script"] = str(script)
        self.run_directory = self.base / "run"
        done = self.accept(*asked, more=["--key", self.base / "vendor.key"])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        MADE.update(
            base=self.base,
            scripts=self.scripts,
            policy=self.policy,
            run_directory=self.run_directory,
            dossier=self.run_directory / "dossier",
        )

    def done(self, *arguments, code=0):
        done = self.assay(*arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def fingerprint(self, name):
        return subprocess.run(
            [BIN / "assay-report", "fingerprint", self.base / f"{name}.key.pub"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    def numbers(self, figures):
        """What the next run of every requirement finds, each a little beside the others."""
        for i, script in enumerate(self.scripts):
            script.write_text("".join(f"{figure + i / 100}\n" for figure in figures))

    def commit(self, name, cells=CELLS, code=0, out=""):
        out = self.scratch / (out or f"{name}.commit")
        return self.done(
            "draw",
            "commit",
            self.dossier,
            "--key",
            self.base / f"{name}.key",
            "--policy",
            self.policy,
            "--cells",
            cells,
            "--out",
            out,
            code=code,
        )

    def reveal(self, name, *others, own="", code=0):
        """`name` says for which commitments it gives its seed away."""
        held = [word for other in others for word in ("--other", self.scratch / f"{other}.commit")]
        out = self.scratch / f"{own or name}.reveal"
        out.unlink(missing_ok=True)
        return self.done(
            "draw",
            "reveal",
            self.dossier,
            "--key",
            self.base / f"{name}.key",
            "--policy",
            self.policy,
            "--commitment",
            self.scratch / f"{own or name}.commit",
            *held,
            "--out",
            out,
            code=code,
        )

    def combine(self, *names, out="draw.json", seeds=None, code=0, kind="reveal"):
        words = []
        for name, seed in zip(names, seeds or names):
            words += ["--commitment", self.scratch / f"{name}.{kind}", "--seed", self.scratch / f"{seed}.commit.seed"]
        return self.done(
            "draw", "challenge", self.dossier, "--policy", self.policy, *words, "--out", self.scratch / out, code=code
        )

    def both(self, cells=CELLS):
        self.commit("buyer")
        self.commit("vendor", cells=cells)
        self.reveal("buyer", "vendor")
        self.reveal("vendor", "buyer")

    def planned(self):
        """The plan of the drawn cells, after both parties have committed and laid their seeds open."""
        self.both()
        self.combine("buyer", "vendor")
        self.plan = self.scratch / "drawn.json"
        return self.done(
            "draw",
            "plan",
            self.dossier,
            "--policy",
            self.policy,
            "--challenge",
            self.scratch / "draw.json",
            "--out",
            self.plan,
        )

    def repeated(self, figures):
        self.numbers(figures)
        self.done("run", self.plan, "--out", self.scratch / "repeat", "--key", self.base / "vendor.key", code=3)

    def check(self, *more, code):
        return self.done(
            "draw",
            "check",
            self.dossier,
            self.scratch / "repeat/dossier",
            "--policy",
            self.policy,
            "--challenge",
            self.scratch / "draw.json",
            *more,
            code=code,
        )

    def test_honest_repeats_are_repeated_and_slower_ones_contradict(self):
        shown = self.planned().stdout
        plan = json.loads(self.plan.read_text())
        self.assertEqual(len(plan["drawn"]), CELLS)
        self.assertEqual(len(plan["steps"]), CELLS)
        self.assertEqual(shown.count(" of node "), CELLS)
        self.repeated(AGAIN)
        self.assertIn("repeated: 3 cells drawn.", self.check(code=0).stdout)
        found = json.loads(self.check("--json", code=0).stdout)
        self.assertEqual((found["outcome"], found["drawn"], len(found["parties"])), ("repeated", CELLS, 2))
        self.assertLess(found["together"]["smallest_p"], found["together_threshold"])
        (self.scratch / "repeat").rename(self.scratch / "honest")
        self.repeated([0.8 * figure for figure in AGAIN])
        told = self.check(code=1).stdout
        self.assertIn("all cells together, more is better: worse, change -19.84 %", told)
        self.assertIn("contradicted: 3 cells drawn.", told)

    def test_the_seed_is_what_both_files_say_and_both_parties_make_the_same_challenge(self):
        self.planned()
        self.combine("vendor", "buyer", out="other.json")
        document = json.loads((self.scratch / "draw.json").read_text())
        self.assertEqual((self.scratch / "other.json").read_text(), (self.scratch / "draw.json").read_text())
        seeds = {(self.scratch / f"{name}.commit.seed").read_text().strip() for name in ("buyer", "vendor")}
        self.assertEqual({party["seed"] for party in document["parties"]}, seeds)
        self.assertEqual(json.loads(self.plan.read_text())["challenge"], document["seed"])
        self.assertEqual((self.scratch / "buyer.commit.seed").stat().st_mode & 0o777, 0o600)

    def test_what_breaks_the_draw_is_refused_by_its_rule(self):
        self.both(cells=CELLS + 1)
        self.assertIn("rule draw_cells", self.combine("buyer", "vendor", code=4).stderr)
        self.assertIn("rule draw_parties", self.combine("buyer", code=4).stderr)
        self.assertIn("rule draw_parties", self.combine("buyer", "buyer", code=4).stderr)
        self.assertIn("rule draw_seed", self.combine("buyer", "vendor", seeds=["vendor", "buyer"], code=4).stderr)
        self.done("keygen", self.scratch / "stranger.key")
        done = self.done(
            "draw",
            "commit",
            self.dossier,
            "--key",
            self.scratch / "stranger.key",
            "--policy",
            self.policy,
            "--cells",
            CELLS,
            "--out",
            self.scratch / "stranger.commit",
            code=4,
        )
        self.assertIn("does not have this key", done.stderr)

    def test_who_commits_again_after_it_saw_a_seed_is_refused(self):
        self.both()
        self.assertIn("does not say", self.combine("buyer", "vendor", kind="commit", code=4).stderr)
        seeds = (self.scratch / "buyer.commit.seed").read_text()
        for attempt in range(2):  # the vendor tries until the cells are those that it wants
            self.commit("vendor", out=f"again{attempt}.commit")
            self.reveal("vendor", "buyer", own=f"again{attempt}")
            told = self.combine("buyer", f"again{attempt}", code=4).stderr
            self.assertIn("rule draw_others: Bo of Example AG gave the seed away for another commitment", told)
            self.assertIn("hold it to its first commitment", told)
        self.assertEqual((self.scratch / "buyer.commit.seed").read_text(), seeds)
        self.combine("buyer", "vendor")
        first = json.loads((self.scratch / "draw.json").read_text())["seed"]
        self.reveal("vendor", "buyer")  # at another time: no grinding
        self.combine("buyer", "vendor", out="later.json")
        self.assertEqual(json.loads((self.scratch / "later.json").read_text())["seed"], first)
        self.assertIn("is of Example AG, too", self.reveal("buyer", "buyer", code=4).stderr)

    def repeated_with(self, change):
        """What the check says of honest repeats whose journal `change` has edited before they were signed."""
        self.numbers(AGAIN)
        repeat = self.scratch / "repeat"
        shutil.rmtree(repeat, ignore_errors=True)
        self.done("run", self.plan, "--out", repeat, code=3)
        journal = repeat / "journal.jsonl"
        lines = [json.loads(line) for line in journal.read_text().splitlines()]
        for line in lines:
            change(line)
        journal.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
        self.done("judge", repeat, code=3)
        self.done("report", repeat)
        self.done("sign", repeat, "--key", self.base / "vendor.key")
        return self.check(code=4).stderr

    def test_repeats_of_another_machine_or_time_are_refused(self):
        self.planned()

        def said(**facts):
            def change(line):
                if line["kind"] == "node_up":
                    line["facts"].update(facts)

            return change

        for name, value in (("name", "other-host"), ("cpu_model", "Another Processor"), ("sockets", 64)):
            told = self.repeated_with(said(**{name: value}))
            self.assertIn(f"rule draw_machines: the {name} of ", told)

        def a_day_earlier(line):
            day = datetime.datetime.fromisoformat(line["time"].replace("Z", "+00:00")) - datetime.timedelta(days=1)
            line["time"] = day.isoformat(timespec="milliseconds").replace("+00:00", "Z")

        self.assertIn("rule draw_time: the repeats began", self.repeated_with(a_day_earlier))

    def test_a_challenge_with_another_seed_and_a_repeat_of_other_cells_are_refused(self):
        self.planned()
        path = self.scratch / "draw.json"
        document = json.loads(path.read_text())
        mine = document["parties"][0]["seed"]
        path.write_text(path.read_text().replace(mine, hashlib.sha256(mine.encode()).hexdigest()))
        words = [
            "draw",
            "plan",
            self.dossier,
            "--policy",
            self.policy,
            "--challenge",
            path,
            "--out",
            self.scratch / "never.json",
        ]
        self.assertIn("rule draw_seed", self.done(*words, code=4).stderr)
        path.write_text(json.dumps(document, indent=1).replace(document["seed"], "0" * 64) + "\n")
        self.assertIn("not byte for byte", self.done(*words, code=4).stderr)
        path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
        self.numbers(HONEST)
        plan = json.loads(self.plan.read_text())
        plan["drawn"][0], plan["drawn"][1] = plan["drawn"][1], plan["drawn"][0]
        self.plan.write_text(json.dumps(plan, indent=1, sort_keys=True) + "\n")
        self.repeated(HONEST)
        self.assertIn("not of the plan that follows", self.check(code=4).stderr)

    def test_a_plan_of_drawn_cells_that_was_edited_is_refused_and_the_dossier_is_no_repeat_of_itself(self):
        self.planned()
        plan = json.loads(self.plan.read_text())
        plan["drawn"].pop()
        edited = self.write("edited.json", json.dumps(plan, indent=1, sort_keys=True) + "\n")
        self.assertIn(
            "plan again instead of editing it", self.done("run", edited, "--out", self.scratch / "x", code=2).stderr
        )
        done = self.done(
            "draw",
            "check",
            self.dossier,
            self.dossier,
            "--policy",
            self.policy,
            "--challenge",
            self.scratch / "draw.json",
            code=4,
        )
        self.assertIn("is the run of the dossier itself", done.stderr)
        done = self.done(
            "draw",
            "commit",
            self.run_directory,
            "--key",
            self.base / "buyer.key",
            "--policy",
            self.policy,
            "--cells",
            1,
            "--out",
            self.scratch / "y",
            code=2,
        )
        self.assertIn("dossier", done.stderr)

    def test_a_cell_that_could_not_be_measured_again_leaves_the_draw_open(self):
        self.planned()
        self.numbers(AGAIN)
        drawn = {cell["requirement"] for cell in json.loads(self.plan.read_text())["drawn"]}
        pathlib.Path(self.scripts[int(sorted(drawn)[0][1:])]).write_text("crash\ncrash\ncrash\n")
        self.done("run", self.plan, "--out", self.scratch / "repeat", "--key", self.base / "vendor.key", code=3)
        self.assertIn("open: 3 cells drawn. 1 of the drawn cells have no figure", self.check(code=3).stdout)


if __name__ == "__main__":
    main()
