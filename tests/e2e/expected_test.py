"""What the receiver expects beside the signers: targets limit by limit, site, challenge, run, machines, age."""
import json

from attacks import ASSAY, Bench, Document, main, row, run, sha256  # noqa: F401: Document is a test

CHALLENGE = sha256(b"challenge")  # that make_run's inventory answers


class Pins(Bench):
    """Looser limits under a trusted key."""

    kind = "accepted"

    def agreed(self, change=lambda profile: None):
        """The profile of the run as a file, after `change`."""
        profile = json.loads((self.run_directory / "plan.json").read_text())["profile"]
        change(profile)
        path = self.scratch / "agreed.json"
        path.write_text(json.dumps({name: value for name, value in profile.items() if name not in ("ancestors", "loosened")}))
        return self.verify("--profile", path)

    def change(self, place, **members):
        return lambda profile: next(one for one in profile["requirements"] if one["id"] == place).update(members)

    @row("F", "F-profile", "the agreed profile as a file", 0, "verified: accepted")
    def test_same(self):
        return self.agreed()

    @row("F", "F-floor", "a lower floor than agreed", 4, "memory.copy: limit.at_least is 450000000000.0, expected 460000000000.0: LOOSER")
    def test_floor(self):
        return self.agreed(self.change("memory.copy", limit={"at_least": 4.6e11, "unit": "B/s"}))

    @row("F", "F-cap", "a higher cap than agreed", 4, "memory.latency: limit.at_most is 1.1e-07, expected 1e-07: LOOSER")
    def test_cap(self):
        return self.agreed(self.change("memory.latency", limit={"at_most": 1e-7, "unit": "s"}))

    @row("F", "F-stricter", "a higher floor than agreed: other targets all the same, and not called looser", 4, "/limit/at_least is 450000000000.0, should be 440000000000.0")
    def test_stricter(self):
        done = self.agreed(self.change("memory.copy", limit={"at_least": 4.4e11, "unit": "B/s"}))
        self.assertNotIn("LOOSER", done.stderr)
        return done

    @row("F", "F-condition", "a condition that was agreed and is not demanded", 4, "gemm.fp16: conditions.clock is not demanded, expected demanded: LOOSER")
    def test_condition(self):
        return self.agreed(self.change("gemm.fp16", conditions=[{"name": "clock", "at_least": 1.0}]))

    @row("F", "F-severity", "an agreed requirement that is advisory", 4, "memory.latency: severity is advisory, expected required: LOOSER")
    def test_severity(self):
        return self.agreed(self.change("memory.latency", severity="required"))

    @row("F", "F-missing", "an agreed requirement that is not there", 4, "drive.read: is not among the targets: LOOSER")
    def test_missing(self):
        return self.agreed(lambda profile: profile["requirements"].append({**profile["requirements"][0], "id": "drive.read"}))

    @row("F", "F-further", "a requirement that was not agreed", 4, "memory.latency: is not expected")
    def test_further(self):
        return self.agreed(lambda profile: profile["requirements"].pop(1))

    @row("F", "F-guard", "a smaller guard band than agreed", 4, "profile: decision.guard_factor is ")
    def test_guard(self):
        return self.agreed(lambda profile: profile["decision"].update(guard_factor=2.5))

    @row("F", "F-digest", "the digest of the targets", 0, "verified: accepted")
    def test_digest(self):
        return self.verify("--profile", json.loads(self.verify("--json").stdout)["targets_sha256"])

    @row("F", "F-digest-other", "another digest of the targets", 4, "has the targets with the digest '")
    def test_other_digest(self):
        return self.verify("--profile", sha256(b"others"))

    @row("F", "F-site-digest", "the digest of the site", 0, "verified: accepted")
    def test_site(self):
        return self.verify("--site", json.loads(self.verify("--json").stdout)["site_sha256"])

    @row("F", "F-site-digest-other", "another digest of the site", 4, "has the site with the digest '")
    def test_other_site(self):
        return self.verify("--site", sha256(b"another"))

    def test_every_difference_is_in_the_json(self):
        def many(profile):
            for one in profile["requirements"]:
                one["title"] = "Agreed"
            profile["decision"]["guard_factor"] = 2.5
        self.agreed(many)
        done = self.verify("--json", "--profile", self.scratch / "agreed.json")
        self.assertEqual(len(json.loads(done.stdout)["differences"]), 4, done.stdout)


class Freshness(Bench):
    kind = "inventory"

    def serials(self, text):
        (self.scratch / "serials").write_text(text)
        return self.verify("--serials", self.scratch / "serials")

    @row("F", "F-challenge", "the challenge that the plan answers", 0, "the plan answers the challenge " + CHALLENGE)
    def test_challenge(self):
        return self.verify("--challenge", CHALLENGE)

    @row("F", "F-challenge-other", "a dossier that answers another challenge", 4, f"answers the challenge '{CHALLENGE}', expected '{sha256(b'mine')}'")
    def test_other_challenge(self):
        return self.verify("--challenge", sha256(b"mine"))

    @row("F", "F-challenge-word", "a challenge that is a word", 2, "--challenge: 'mine' is not 64 hexadecimal digits")
    def test_word(self):
        return self.verify("--challenge", "mine")

    @row("F", "F-challenge-edited", "the challenge written into an older plan", 4, "belongs to another plan than plan.json")
    def test_edited(self):
        path = self.dossier / "evidence/plan.json"
        path.write_text(path.read_text().replace(CHALLENGE, sha256(b"mine")))
        self.seal()
        return self.verify("--challenge", sha256(b"mine"))

    @row("F", "F-run", "the run that is expected", 0, "run 5f0c3c1e-8a51-4f0e-9b64-0b1d5a7e2c11 of plan")
    def test_run(self):
        return self.verify("--run-id", "5f0c3c1e-8a51-4f0e-9b64-0b1d5a7e2c11")

    @row("F", "F-run-other", "another run of the same plan", 4, "has the run '5f0c3c1e-8a51-4f0e-9b64-0b1d5a7e2c11', expected '")
    def test_other_run(self):
        return self.verify("--run-id", "00000000-0000-4000-8000-000000000000")

    @row("F", "F-age", "an old dossier, --max-age 30d from the day of the test", 0, "verified: accepted")
    def test_age(self):
        return self.verify("--max-age", "100000d")

    @row("F", "F-old", "a run of longer ago than --max-age", 4, "is of a run that ended 2026-01-05T")
    def test_old(self):
        return self.verify("--max-age", "1d")

    @row("F", "F-serials", "the expected machines by serial number", 0, "verified: accepted")
    def test_serials(self):
        return self.serials("n01 SN-n01\nn02\tSN-n02\nn03  SN-n03\n")

    @row("F", "F-serial-other", "another machine under the name of a node", 4, "has the serial number SN-n02 of the node n02, expected 7XK2H13")
    def test_other_serial(self):
        return self.serials("n01 SN-n01\nn02 7XK2H13\nn03 SN-n03\n")

    @row("F", "F-serial-more", "an expected machine that was not tested", 4, "does not test the node n04 with the serial number SN-n04")
    def test_more(self):
        return self.serials("n01 SN-n01\nn02 SN-n02\nn03 SN-n03\nn04 SN-n04\n")

    @row("F", "F-serial-fewer", "a tested node that is not in the list", 4, "tests the node n03, which the list of serial numbers does not have")
    def test_fewer(self):
        return self.serials("n01 SN-n01\nn02 SN-n02\n")

    @row("F", "F-serial-twice", "one machine twice in the list", 2, "line 2: has the serial number SN-n01 twice")
    def test_twice(self):
        return self.serials("n01 SN-n01\nn02 SN-n01\n")

    @row("F", "F-serial-empty", "an empty list", 2, "serials: lists nothing")
    def test_empty(self):
        return self.serials("")


class Planned(Bench):
    def plan(self, challenge):
        return run(ASSAY, "plan", "--profile", "host", "--challenge", challenge, "--out", self.scratch / "plan.json", env=self.environment)

    @row("F", "F-plan", "assay plan --challenge", 0, "written to ")
    def test_plan(self):
        done = self.plan(CHALLENGE)
        self.assertEqual(json.loads((self.scratch / "plan.json").read_text())["challenge"], CHALLENGE)
        return done

    @row("F", "F-plan-word", "assay plan --challenge of a word", 2, "--challenge: 'mine' is not 64 hexadecimal digits")
    def test_word(self):
        return self.plan("mine")


class Unanswered(Bench):
    """A dossier whose plan answers no challenge, and whose records have no serial number."""

    @row("F", "F-challenge-none", "a challenge, and a plan that answers none", 4, "answers no challenge, expected '")
    def test_challenge(self):
        return self.verify("--challenge", CHALLENGE)

    @row("F", "F-serial-none", "serial numbers, and a profile whose probes record none", 4, "has no serial number of the node n01, expected SN-n01")
    def test_serials(self):
        (self.scratch / "serials").write_text("n01 SN-n01\nn02 SN-n02\nn03 SN-n03\n")
        return self.verify("--serials", self.scratch / "serials")


if __name__ == "__main__":
    main()
