"""A dossier that was changed without the key, or that a signer spelt otherwise: refused by exit code and by name."""
import base64
import json
import os
import socket

from attacks import Bench, Document, canonical, encoding, main, row  # noqa: F401: Document is a test

NO_SIGNATURE = "statement.dsse.json: has no valid signature of the key"
ORDER = 2**252 + 27742317777372353535851937790883648493  # of Ed25519's base point


class Bytes(Bench):
    """One bit of each file."""

    @row("A", "tamper-record", "one bit of a record flipped", 4, "/1/0.jsonl: SHA-256 differs")
    def test_record(self):
        self.flip(self.first("records"))

    @row("A", "tamper-log", "one bit of a log flipped", 4, "/1/0.log: SHA-256 differs")
    def test_log(self):
        self.flip(self.first("logs"))


for _name in ("evidence/plan.json", "evidence/journal.jsonl", "evidence/verdict.json", "evidence/report.html", "MANIFEST.sha256",
              "VERIFY.txt", "signer.pub"):
    _words = "MANIFEST.sha256: SHA-256 differs from the signed one" if _name.startswith("MANIFEST") else f"{_name}: SHA-256 differs"
    _mark = row("A", "tamper-" + _name.replace("/", "_"), f"one bit of {_name} flipped", 4, _words)
    setattr(Bytes, "test_" + _name.replace("/", "_"), _mark(lambda self, name=_name: self.flip(name)))


class Signatures(Bench):
    def edited(self, **members):
        self.put({**self.envelope(), **members})

    def signatures(self, *raw):
        self.edited(signatures=[{"sig": base64.b64encode(one).decode()} for one in raw])

    def good(self):
        return base64.b64decode(self.envelope()["signatures"][0]["sig"])

    def attacker(self):
        return self.signature(encoding(self.payload()), self.base / "buyer.key")

    @row("A", "tamper-payload", "the verdict in the payload changed, signature kept", 4, NO_SIGNATURE)
    def test_payload(self):
        payload = self.payload().replace(b'"overall":"accepted"', b'"overall":"rejected"', 1)
        self.edited(payload=base64.b64encode(payload).decode())

    @row("A", "tamper-sig", "one bit of the signature flipped", 4, NO_SIGNATURE)
    def test_signature(self):
        self.signatures(bytes([self.good()[0] ^ 1]) + self.good()[1:])

    @row("A", "payload-type-swapped", "another payload type, signature kept", 4, NO_SIGNATURE)
    def test_payload_type(self):
        self.edited(payloadType="text/plain")

    @row("A", "payload-type-other-signed",
         "another payload type, signed by the right key", 4, "payloadType: is not 'application/vnd.in-toto+json'")
    def test_payload_type_signed(self):
        self.sign(self.payload(), "text/plain")

    @row("A", "no-pae", "the right key over the payload without its type", 4, NO_SIGNATURE)
    def test_no_encoding(self):
        self.sign(self.payload(), message=self.payload())

    @row("A", "keyid-lies", "another signer's signature under the keyid of the signer", 4, NO_SIGNATURE)
    def test_keyid(self):
        self.edited(signatures=[{"keyid": "lab", "sig": base64.b64encode(self.attacker()).decode()}])

    @row("A", "attacker-valid-wanted-garbage", "a valid signature of another key beside garbage for the signer's", 4, NO_SIGNATURE)
    def test_attacker_and_garbage(self):
        self.signatures(self.attacker(), bytes(64))

    @row("A", "garbage-plus-valid",
         "garbage beside the valid signature, as DSSE allows", 0, "1 further signatures by keys that were not given")
    def test_garbage_and_valid(self):
        self.signatures(bytes(64), self.good())

    @row("A", "same-key-twice", "one key given as two signers", 4, "--key: the same key was given twice")
    def test_same_key(self):
        return self.verify("--key", "{base}/lab.key.pub", "--key", "{base}/lab.key.pub")

    @row("A", "same-sig-twice-for-2", "one signature twice where two signers are demanded", 4, NO_SIGNATURE)
    def test_same_signature(self):
        self.signatures(self.good(), self.good())
        return self.verify("--key", "{base}/lab.key.pub", "--key", "{base}/buyer.key.pub")

    @row("A", "same-key-two-files", "one key in two files given as two signers", 4, "--key: the same key was given twice")
    def test_same_key_two_files(self):
        (self.scratch / "other.pub").write_text((self.base / "lab.key.pub").read_text() + "of the lab\n")
        return self.verify("--key", "{base}/lab.key.pub", "--key", "{scratch}/other.pub")

    @row("A", "S-plus-L", "a signature whose scalar is not reduced", 4, NO_SIGNATURE)
    def test_scalar(self):
        scalar = int.from_bytes(self.good()[32:], "little") + ORDER
        self.signatures(self.good()[:32] + scalar.to_bytes(32, "little"))

    @row("A", "sig-65-bytes", "a byte behind the signature", 4, NO_SIGNATURE)
    def test_long(self):
        self.signatures(self.good() + b"\0")


class Files(Bench):
    @row("A", "manifest-truncated", "the last line of the manifest removed", 4, "MANIFEST.sha256: SHA-256 differs from the signed one")
    def test_truncated(self):
        path = self.dossier / "MANIFEST.sha256"
        path.write_text("".join(line + "\n" for line in path.read_text().splitlines()[:-1]))

    @row("A", "extra-file", "a file at the top", 4, "ACCEPTED.pdf: is not in the manifest")
    def test_extra(self):
        (self.dossier / "ACCEPTED.pdf").touch()

    @row("A", "extra-evidence", "a file among the records", 4, "evidence/records/x.jsonl: is not in the manifest")
    def test_extra_evidence(self):
        (self.dossier / "evidence/records/x.jsonl").touch()

    def linked(self, name):
        path = self.dossier / name
        path.rename(self.scratch / "moved")
        path.symlink_to(self.scratch / "moved")

    @row("A", "symlink", "a link in place of a record, to the same bytes", 4, "/1/0.jsonl: is a symbolic link")
    def test_link(self):
        self.linked(self.first("records"))

    @row("A", "symlink-dir", "a link in place of evidence/", 4, "evidence: is a symbolic link")
    def test_linked_folder(self):
        self.linked("evidence")

    @row("A", "symlink-statement", "a link in place of the statement", 4, "statement.dsse.json: is a symbolic link")
    def test_linked_statement(self):
        self.linked("statement.dsse.json")

    @row("A", "hardlink", "a second hard link to a record", 4, "/1/0.jsonl: has a second hard link")
    def test_hard_link(self):
        os.link(self.dossier / self.first("records"), self.scratch / "second")

    @row("A", "fifo", "a pipe in evidence/", 4, "evidence/pipe: is not a regular file")
    def test_pipe(self):
        os.mkfifo(self.dossier / "evidence/pipe")

    def piped(self, name):
        (self.dossier / name).unlink()
        os.mkfifo(self.dossier / name)

    @row("A", "fifo-for-record", "a pipe in place of a record", 4, "/1/0.jsonl: is not a regular file")
    def test_piped_record(self):
        self.piped(self.first("records"))

    @row("A", "fifo-for-statement", "a pipe in place of the statement", 4, "statement.dsse.json: is not a regular file")
    def test_piped_statement(self):
        self.piped("statement.dsse.json")

    @row("A", "device", "a device or socket in evidence/", 4, "evidence/null: is not a regular file")
    def test_device(self):
        try:
            os.mknod(self.dossier / "evidence/null", 0o020666, os.makedev(1, 5))
        except PermissionError:  # only root makes devices
            socket.socket(socket.AF_UNIX).bind(os.path.relpath(self.dossier / "evidence/null"))

    @row("A", "empty-dir", "an empty folder ACCEPTED", 4, "ACCEPTED: is an empty folder")
    def test_empty_folder(self):
        (self.dossier / "ACCEPTED").mkdir()

    @row("A", "case-twin", "Plan.json beside plan.json", 4, "evidence/Plan.json: is not in the manifest")
    def test_twin(self):
        (self.dossier / "evidence/Plan.json").touch()

    @row("A", "nonascii", "a name that is not ASCII", 4, "evidence/pl??n.json: has a name that is not plain")
    def test_name(self):
        (self.dossier / "evidence/plän.json").touch()

    @row("A", "newline-name", "a name with a line break", 4, "evidence/a?b: has a name that is not plain")
    def test_line_break(self):
        (self.dossier / "evidence/a\nb").touch()

    @row("A", "missing-file", "a log removed", 4, "/1: is an empty folder")
    def test_missing(self):
        (self.dossier / self.first("logs")).unlink()

    def huge(self, name):
        with open(self.dossier / name, "wb") as file:
            file.truncate(100 << 30)

    @row("A", "sparse-100G", "a sparse file of 100 GiB", 4, "evidence/huge: 107374182400 bytes, over the limit of 268435456")
    def test_huge(self):
        self.huge("evidence/huge")

    @row("A", "sparse-statement", "a statement of 100 GiB", 4, "statement.dsse.json: 107374182400 bytes, over the limit of 268435456")
    def test_huge_statement(self):
        self.huge("statement.dsse.json")

    @row("A", "deep", "30 levels of folders", 4, "evidence/d/d/d/d/d/d/d: is deeper than 8 levels")
    def test_deep(self):
        (self.dossier / "evidence" / "/".join("d" * 30)).mkdir(parents=True)


class Envelope(Bench):
    def text(self):
        return self.statement.read_text()

    def payload_as(self, change):
        self.put({**self.envelope(), "payload": change(self.envelope()["payload"])})

    def signature_as(self, change):
        self.put({**self.envelope(), "signatures": [{"sig": change(self.envelope()["signatures"][0]["sig"])}]})

    @row("A", "bom", "a byte order mark before the envelope", 4, "statement.dsse.json: line 1, column 1: begins with a byte order mark")
    def test_mark(self):
        self.put("\ufeff" + self.text())

    @row("A", "trailing-brace", "a brace behind the envelope", 4, "unexpected '}'; expected end of input")
    def test_brace(self):
        self.put(self.text() + "}")

    @row("A", "dup-key", "the key payload twice", 4, "statement.dsse.json: the key 'payload' is in one object twice")
    def test_twice(self):
        self.put('{"payload":"e30=",' + self.text()[1:])

    @row("A", "env-unknown-member", "an unknown member of the envelope, as DSSE allows", 0, "verified: accepted")
    def test_unknown(self):
        self.put({**self.envelope(), "note": "unknown"})

    @row("A", "concat", "two JSON documents", 4, "unexpected '{'; expected end of input")
    def test_two(self):
        self.put(self.text() * 2)

    @row("A", "env-whitespace", "white space in the envelope", 0, "verified: accepted")
    def test_space(self):
        self.put(json.dumps(self.envelope(), indent=2))

    @row("A", "deep-env", "an envelope of 200,000 levels", 4, "statement.dsse.json: deeper than 8 levels")
    def test_levels(self):
        self.put('{"x":' + "[" * 200_000 + "]" * 200_000 + "," + self.text()[1:])

    @row("A", "b64-nonzero-bits", "base64 with bits behind its end", 4, "signatures[0].sig: is missing or not strict base64")
    def test_bits(self):
        letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        self.signature_as(lambda text: text[:-3] + letters[letters.index(text[-3]) | 1] + "==")

    @row("A", "b64-space", "base64 with white space", 4, "signatures[0].sig: is missing or not strict base64")
    def test_blank(self):
        self.signature_as(lambda text: text[:8] + " " + text[8:])

    @row("A", "b64-nopad", "base64 without its padding", 4, "signatures[0].sig: is missing or not strict base64")
    def test_padding(self):
        self.signature_as(lambda text: text.rstrip("="))

    @row("A", "b64-url", "the URL alphabet of base64, as DSSE demands", 0, "verified: accepted")
    def test_alphabet(self):
        def other(text):
            return text.replace("+", "-").replace("/", "_")
        self.put({**self.envelope(), "payload": other(self.envelope()["payload"]),
                  "signatures": [{"sig": other(self.envelope()["signatures"][0]["sig"])}]})


class Statement(Bench):
    """Signed by the right key."""

    def spelt(self, old, new):
        text = self.payload().decode()
        self.assertIn(old, text)
        self.sign(text.replace(old, new, 1).encode())

    def stated(self, change):
        document = json.loads(self.payload())
        change(document)
        self.sign(canonical(document))

    @row("A", "jcs-space", "a blank in the payload", 4, "is not canonical JSON (RFC 8785)")
    def test_blank(self):
        self.spelt('"_type":', '"_type": ')

    @row("A", "jcs-dup", "a key of the payload twice", 4, "payload: the key '_type' is in one object twice")
    def test_twice(self):
        self.spelt('{"_type":', '{"_type":"x","_type":')

    @row("A", "jcs-escape", "an escaped letter in the payload", 4, "is not canonical JSON (RFC 8785)")
    def test_escape(self):
        self.spelt('"role":"test lead"', '"role":"test le\\u0061d"')

    @row("A", "jcs-1.0", "1.0 for 1 in the payload", 4, "is not canonical JSON (RFC 8785)")
    def test_number(self):
        self.spelt('"attempts":1', '"attempts":1.0')

    @row("A", "jcs-newline", "a line break behind the payload", 4, "is not canonical JSON (RFC 8785)")
    def test_line_break(self):
        self.sign(self.payload() + b"\n")

    @row("A", "unknown-predicate",
         "another predicate type", 4, "payload: predicateType: is not 'urn:uuid:112ea9c6-4ef6-4368-bc2d-5a6dd78d850e#attestation/acceptance/v1'")
    def test_predicate(self):
        self.stated(lambda document: document.update(predicateType="urn:uuid:112ea9c6-4ef6-4368-bc2d-5a6dd78d850e#attestation/test-result/v1"))

    @row("A", "simulation-type", "the predicate type of a simulation", 4, "predicateType: is a simulation, in which nothing was measured")
    def test_simulation(self):
        self.stated(lambda document: document.update(predicateType="urn:uuid:112ea9c6-4ef6-4368-bc2d-5a6dd78d850e#attestation/simulation/v1"))

    @row("A", "former-type", "a statement under the name that its type had formerly", 0, "verified: accepted")
    def test_former(self):
        self.stated(lambda document: document.update(predicateType="https://assay-suite.example/attestation/acceptance/v1"))

    @row("A", "former-simulation", "a simulation under its former name", 4, "predicateType: is a simulation, in which nothing was measured")
    def test_former_simulation(self):
        self.stated(lambda document: document.update(predicateType="https://assay-suite.example/attestation/simulation/v1"))

    @row("A", "former-other", "a type of the former domain that never was", 4, "payload: predicateType: is not 'urn:uuid:")
    def test_former_other(self):
        self.stated(lambda document: document.update(predicateType="https://assay-suite.example/attestation/acceptance/v1/x"))

    @row("A", "unknown-member", "an unknown member of the predicate", 4, "predicate: unknown field 'waived'")
    def test_unknown(self):
        self.claim(lambda predicate: predicate.update(waived=True))

    @row("A", "overall-edited",
         "another verdict in the statement than in the evidence", 4, "does not follow from the evidence: /predicate/verdict/overall")
    def test_overall(self):
        self.claim(lambda predicate: predicate["verdict"].update(overall="rejected"))

    @row("A", "kind-edited", "a run that was not measured", 4, "predicate.run.kind: 'simulated' is not 'measured'")
    def test_kind(self):
        self.claim(lambda predicate: predicate["run"].update(kind="simulated"))

    @row("A", "subject-extra", "a subject that is no file of the run", 4, "does not follow from the evidence: /subject/2")
    def test_subject(self):
        self.stated(lambda document: document["subject"].append({"name": "evidence/x", "digest": {"sha256": "0" * 64}}))

    @row("A", "site-edited", "another site in the statement than in the plan", 4, "does not follow from the evidence: /predicate/site/name")
    def test_site(self):
        self.claim(lambda predicate: predicate["site"].update(name="other"))


if __name__ == "__main__":
    main()
