"""What parties do after a verdict: waive cells for a time, and supersede a dossier by a newer one. No verdict changes."""
import base64
import datetime
import json

from attacks import TYPE, Document, canonical, encoding, main, row  # noqa: F401: Document is a test
from policies import PAST, REVOKED, Policies

NEXT_YEAR = f"{datetime.date.today().year + 1}-01-01"


class Waivers(Policies):
    """A rejected run: gemm.fp16, memory.copy and others do not pass. The buyer waives memory.copy on n03."""

    kind = "mixed"

    def waive(self, *more, by="buyer", policy=None, requirement="memory.copy", until=NEXT_YEAR):
        return self.command("waive", self.dossier, "--key", self.base / f"{by}.key", "--policy", policy or self.policy(),
                            "--requirement", requirement, "--reason", "module comes in March", "--until", until,
                            "--out", self.scratch / "waiver", *more)

    def policy(self, *buyer):
        return self.write(self.vendor(), self.buyer(*buyer), self.party("witness", [self.one("witness")]))

    def waived(self, *more, policy=None):
        """verify with a waiver."""
        return self.command("verify", self.dossier, "--policy", policy or self.policy(), "--waiver", self.scratch / "waiver", *more)

    def bent(self, change=lambda document: None, by="buyer", payload_type=TYPE):
        """The waiver after `change`, signed again."""
        self.assertEqual(self.waive("--node", "n03").returncode, 0)
        path = self.scratch / "waiver"
        document = json.loads(base64.b64decode(json.loads(path.read_text())["payload"]))
        change(document)
        payload = canonical(document)
        signature = self.signature(encoding(payload, payload_type), self.base / f"{by}.key")
        path.write_text(json.dumps({"payloadType": payload_type, "payload": base64.b64encode(payload).decode(),
                                    "signatures": [{"sig": base64.b64encode(signature).decode()}]}))

    def predicate(self, **members):
        return lambda document: document["predicate"].update(members)


class Waiving(Waivers):
    @row("W", "W-waive", "the buyer waives a cell that fails", 0, "waived: memory.copy on n03: ")
    def test_waive(self):
        return self.waive("--node", "n03")

    @row("W", "W-passes", "a waiver of a cell that passes", 2, "no cell that does not pass is chosen")
    def test_passes(self):
        return self.waive("--node", "n01")

    @row("W", "W-past", "a waiver until yesterday", 2, "--until: '2026-01-06' is not a time to come")
    def test_past(self):
        return self.waive("--node", "n03", until="2026-01-06")

    @row("W", "W-vendor", "the vendor waives what he owes", 4, "rule waiver_role: vendor 0 of Example vendor is the vendor")
    def test_vendor(self):
        return self.waive("--node", "n03", by="lab")

    @row("W", "W-stranger", "a key waives that the policy does not have", 4, "rule key_listed")
    def test_stranger(self):
        return self.waive("--node", "n03", by="second")

    @row("W", "W-tampered-dossier", "a waiver for a dossier that does not verify", 4, "SHA-256 differs")
    def test_dossier(self):
        self.flip(self.first("records"))
        return self.waive("--node", "n03")


class Waived(Waivers):
    @row("W", "W-shown", "a waiver in the first lines, the verdict as it was", 0, "verified: rejected")
    def test_shown(self):
        self.waive("--node", "n03")
        done = self.waived()
        self.assertIn(f"  WAIVED until {NEXT_YEAR}T00:00:00.000Z by buyer 0 of Example buyer (buyer), which changes no verdict: module comes",
                      "\n".join(done.stdout.splitlines()[:4]))
        return done

    @row("W", "W-accepted", "--accepted with a waiver: the exit code is that of the verdict", 1, "verified: rejected")
    def test_accepted(self):
        self.waive("--node", "n03")
        return self.waived("--accepted")

    @row("W", "W-ran-out", "a waiver that has run out", 4, "rule waiver_until: the waiver ran out 2026-02-01T00:00:00.000Z")
    def test_ran_out(self):
        self.bent(self.predicate(until="2026-02-01T00:00:00.000Z", issuedAt="2026-01-06T00:00:00.000Z"))
        return self.waived()

    @row("W", "W-before", "a waiver that was issued before the run", 4, "rule waiver_time")
    def test_before(self):
        self.bent(self.predicate(issuedAt="2026-01-01T00:00:00.000Z"))
        return self.waived()

    @row("W", "W-future", "a waiver of a day to come", 4, "rule waiver_time")
    def test_future(self):
        self.bent(self.predicate(issuedAt="2099-01-01T00:00:00.000Z", until="2099-02-01T00:00:00.000Z"))
        return self.waived()

    @row("W", "W-flipped", "a waiver with another reason, not signed again", 4, "rule signer_listed: no key of the policy has signed it")
    def test_flipped(self):
        self.bent()
        path = self.scratch / "waiver"
        envelope = json.loads(path.read_text())
        payload = base64.b64decode(envelope["payload"]).replace(b"March", b"April")
        path.write_text(json.dumps({**envelope, "payload": base64.b64encode(payload).decode()}))
        return self.waived()

    @row("W", "W-by-vendor", "a waiver signed by the vendor in the buyer's name", 4, "rule waiver_role")
    def test_by_vendor(self):
        self.bent(by="lab")
        return self.waived()

    @row("W", "W-by-stranger", "a waiver signed by a key that the policy does not have", 4, "rule signer_listed")
    def test_by_stranger(self):
        self.bent(by="second")
        return self.waived()

    @row("W", "W-other-name", "a waiver that names another key than the one that signed it", 4, "names another key or role than the policy has")
    def test_other_name(self):
        self.bent(lambda document: document["predicate"]["signatory"].update(keyFingerprint=self.fingerprint["lab"]))
        return self.waived()

    @row("W", "W-revoked", "the buyer's key was revoked since", 4, "rule key_revoked")
    def test_revoked(self):
        self.waive("--node", "n03")
        return self.waived(policy=self.policy(self.one("buyer", **REVOKED)))

    @row("W", "W-expired", "the buyer's key has ended since", 4, "rule key_valid_until")
    def test_expired(self):
        self.waive("--node", "n03")
        return self.waived(policy=self.policy(self.one("buyer", PAST)))

    @row("W", "W-two", "a waiver with two signatures", 4, "rule one_signature: has 2 signatures")
    def test_two(self):
        self.bent()
        envelope = json.loads((self.scratch / "waiver").read_text())
        (self.scratch / "waiver").write_text(json.dumps({**envelope, "signatures": envelope["signatures"] * 2}))
        return self.waived()

    @row("W", "W-other-run", "a waiver of another run", 4, "is of the run 'another', not '5f0c3c1e-")
    def test_other_run(self):
        self.bent(self.predicate(run="another"))
        return self.waived()

    @row("W", "W-other-verdict", "a waiver of another verdict of the same run", 4, "is of the verdict '")
    def test_other_verdict(self):
        self.bent(lambda document: document["subject"][1]["digest"].update(sha256="0" * 64))
        return self.waived()

    @row("W", "W-two-plans", "a waiver that names the plan twice and no verdict", 4, "not '")
    def test_two_plans(self):
        self.bent(lambda document: document["subject"].__setitem__(1, document["subject"][0]))
        return self.waived()

    @row("W", "W-cell", "a waiver of a cell that the verdict does not have", 4, "memory.copy of node n09 is no cell with the outcome")
    def test_cell(self):
        self.bent(lambda document: document["predicate"]["cells"][0].update(subject={"kind": "node", "id": "n09"}))
        return self.waived()

    @row("W", "W-cell-outcome", "a waiver that states another outcome", 4, "is no cell with the outcome error")
    def test_outcome(self):
        self.bent(lambda document: document["predicate"]["cells"][0].update(verdict="error"))
        return self.waived()

    @row("W", "W-member", "a waiver with a member of its own", 4, "unknown field 'verdict'")
    def test_member(self):
        self.bent(self.predicate(verdict="accepted"))
        return self.waived()

    @row("W", "W-dossier", "the statement of a dossier offered as a waiver", 4, "predicateType: is not 'urn:uuid:112ea9c6-4ef6-4368-bc2d-5a6dd78d850e#attestation/waiver/v1'")
    def test_statement(self):
        (self.scratch / "waiver").write_bytes(self.statement.read_bytes())
        return self.waived(policy=self.write({**self.vendor(), "role": "buyer"}, require=("buyer",)))

    @row("W", "W-as-statement", "a waiver offered as the statement of a dossier", 4, "predicateType: is not 'urn:uuid:112ea9c6-4ef6-4368-bc2d-5a6dd78d850e#attestation/acceptance/v1'")
    def test_as_statement(self):
        self.bent()
        self.statement.write_bytes((self.scratch / "waiver").read_bytes())
        return self.verify("--key", "{base}/buyer.key.pub")

    @row("W", "W-alone", "--waiver without --policy", 2, "--waiver: needs --policy")
    def test_alone(self):
        self.waive("--node", "n03")
        return self.verify("--waiver", self.scratch / "waiver")

    @row("W", "W-report", "report with a waiver, on the first page", 0, "waived.html")
    def test_report(self):
        self.waive("--node", "n03")
        page = self.scratch / "waived.html"
        done = self.command("report", self.run_directory, "--waiver", self.scratch / "waiver", "--policy", self.policy(), "--out", page)
        text = page.read_text()
        self.assertLess(text.index("REJECTED"), text.index("WAIVED"))
        self.assertLess(text.index("WAIVED"), text.index("Start of test"))
        self.assertIn("memory.copy on n03: fail. Reason: module comes in March.", text)
        return done

    @row("W", "W-report-alone", "report with a waiver into the page of the dossier", 2, "--waiver: needs --policy and --out")
    def test_report_alone(self):
        self.waive("--node", "n03")
        return self.command("report", self.run_directory, "--waiver", self.scratch / "waiver")

    @row("W", "W-report-ran-out", "report with a waiver that has run out", 4, "rule waiver_until")
    def test_report_ran_out(self):
        self.bent(self.predicate(until="2026-02-01T00:00:00.000Z", issuedAt="2026-01-06T00:00:00.000Z"))
        return self.command("report", self.run_directory, "--waiver", self.scratch / "waiver", "--policy", self.policy(),
                            "--out", self.scratch / "waived.html")


class Supersession(Policies):
    """A newer dossier of the same run, after the first one."""

    def newer(self, *more, older=None, key="lab"):
        done = self.command("sign", self.run_directory, "--key", self.base / f"{key}.key", "--out", self.scratch / "newer",
                            "--supersedes", older or self.dossier, "--reason", "module replaced", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.older, self.dossier = self.dossier, self.scratch / "newer"
        self.statement = self.dossier / "statement.dsse.json"

    @row("U", "U-shown", "a newer dossier names the older one, in the first lines", 0, "supersedes the accepted run 5f0c3c1e-8a51-4f0e-9b64-0b1d5a7e2c11, issued 20")
    def test_shown(self):
        self.newer()
        done = self.verify()
        self.assertIn("by the signer's word: module replaced", "\n".join(done.stdout.splitlines()[:3]))
        return done

    @row("U", "U-demanded", "--supersedes of the older one", 0, "verified: accepted")
    def test_demanded(self):
        self.newer()
        return self.verify("--supersedes", self.older)

    @row("U", "U-nothing", "--supersedes, and the dossier supersedes nothing", 4, "supersedes nothing, expected ")
    def test_nothing(self):
        return self.verify("--supersedes", self.dossier)

    @row("U", "U-another", "--supersedes, and the dossier supersedes another one", 4, "supersedes the statement ")
    def test_another(self):
        self.newer()
        self.dossier, newest = self.older, self.dossier
        self.statement = self.dossier / "statement.dsse.json"
        self.claim(lambda predicate: predicate["signatories"][0].update(name="Bo"))
        return self.verify("--supersedes", self.dossier, dossier=newest)

    @row("U", "U-values", "--supersedes of an older statement with 30 million values, not signed", 4, "supersedes nothing, expected ")
    def test_values(self):
        older = self.scratch / "older"
        older.mkdir()
        payload = base64.b64encode(b"[" + b"0," * 30_000_000 + b"0]").decode()
        (older / "statement.dsse.json").write_text(json.dumps({"payloadType": TYPE, "payload": payload, "signatures": [{"sig": "AAAA"}]}))
        return self.verify("--supersedes", older)

    @row("U", "U-lies", "the newer one says that the older one was rejected", 4, "says of the older statement: run 5f0c3c1e-8a51-4f0e-9b64-0b1d5a7e2c11, rejected")
    def test_lies(self):
        self.newer()
        self.claim(lambda predicate: predicate["supersedes"].update(overall="rejected"))
        return self.verify("--supersedes", self.older)

    @row("U", "U-removed", "the newer one's word of the older one removed by who passes it on", 4, "has no valid signature of the key")
    def test_removed(self):
        self.newer()
        document = json.loads(self.payload())
        del document["predicate"]["supersedes"]
        self.put({**self.envelope(), "payload": base64.b64encode(canonical(document)).decode()})
        return self.verify("--supersedes", self.older)

    @row("U", "U-party", "one vendor supersedes the statement of another, under a policy", 4, "rule supersedes_party: the older statement was made with the key")
    def test_party(self):
        self.newer(key="second")
        return self.by(self.vendor(), self.vendor(self.one("second"), name="Another vendor"), arguments=("--supersedes", self.older))

    @row("U", "U-rotated", "a vendor supersedes its own statement by a new key, the old one being revoked", 0, "signed as vendor")
    def test_rotated(self):
        self.newer(key="second")
        return self.by(self.vendor(self.one("lab", **REVOKED), self.one("second")), arguments=("--supersedes", self.older))

    @row("U", "U-reason", "sign --supersedes without a reason", 2, "--supersedes: goes with --reason")
    def test_reason(self):
        return self.command("sign", self.run_directory, "--key", self.key, "--out", self.scratch / "newer", "--supersedes", self.dossier)

    @row("U", "U-no-dossier", "sign --supersedes of a folder that is no dossier", 2, "statement.dsse.json: ")
    def test_no_dossier(self):
        return self.command("sign", self.run_directory, "--key", self.key, "--out", self.scratch / "newer", "--supersedes", self.scratch,
                            "--reason", "none")


if __name__ == "__main__":
    main()
