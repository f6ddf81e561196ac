#!/usr/bin/env python3
"""Folders and files from outside: refused in less than 1 GiB, before any signature is known."""
import base64
import hashlib
import json
import subprocess

import measured
from rows import Document, harness, row  # noqa: F401: Document is a test
import attacks  # behind rows, which knows where it lies

MIB = 1 << 20
VALUES = [("D1", b"{},"), ("D2", b'{"":0},'), ("D3", b"0,"), ("D3b", b"[],"), ("D3c", b'"",')]


class Envelope(harness.Bench):
    def full_of(self, value):
        subprocess.run([harness.BIN / "assay-report", "keygen", self.scratch / "key"], check=True, capture_output=True)
        dossier = self.scratch / "dossier"
        dossier.mkdir()
        body = b'{"x":[' + value * ((255 * MIB - 20) // len(value))
        (dossier / "statement.dsse.json").write_bytes(body[:-1] + b"]}")
        return measured.run(
            [harness.BIN / "assay-report", "verify", dossier, "--key", self.scratch / "key.pub"], self.environment
        )


for _name, _value in VALUES:
    _mark = row(
        "D", _name, f"an envelope of 255 MiB of `{_value.decode()[:-1]}`, not signed", 4, "more than 1000 values"
    )
    setattr(Envelope, f"test_{_name}", _mark(lambda self, value=_value: self.full_of(value)))


class Payload(harness.Bench):
    """An envelope full of values under a signature of nobody."""

    def unsigned(self, name, mib, *words):
        keygen = subprocess.run([harness.BIN / "assay-report", "keygen", self.scratch / "key"], capture_output=True)
        self.assertEqual(keygen.returncode, 0, keygen.stderr)
        dossier = self.scratch / "dossier"
        dossier.mkdir()
        payload = base64.b64encode(b'{"x":[' + b"0," * (mib * MIB * 3 // 8) + b"0]}").decode()
        signature = base64.b64encode(bytes(64)).decode()
        (dossier / name).write_text(
            '{"payload":"%s","payloadType":"application/vnd.in-toto+json","signatures":[{"sig":"%s"}]}'
            % (payload, signature)
        )
        return measured.run([harness.BIN / "assay-report", "verify", dossier, *words], self.environment)

    @row(
        "D",
        "D6",
        "an envelope of 255 MiB with a payload of 100 million values, not signed",
        4,
        "has no valid signature",
    )
    def test_key(self):
        return self.unsigned("statement.dsse.json", 255, "--key", self.scratch / "key.pub")

    @row("D", "D6-policy", "the same, by a policy", 4, "rule required_role")
    def test_policy(self):
        fingerprint = hashlib.sha256(b"nobody").hexdigest()
        ever = {"valid_from": "2020-01-01", "valid_until": "2100-01-01"}
        signer = {"name": "Ada", "keys": [{"fingerprint": fingerprint, **ever}]}
        party = {"name": "Example AG", "role": "vendor", "threshold": 1, "signers": [signer]}
        policy = {"schema": "assay.trust/1", "name": "p", **ever, "require": ["vendor"], "parties": [party]}
        return self.unsigned("statement.dsse.json", 255, "--policy", self.write("trust.json", policy))

    @row("D", "D6-joint", "127 MiB of the same as a joint dossier", 4, "has no valid signature")
    def test_joint(self):
        return self.unsigned("joint.dsse.json", 127, "--key", self.scratch / "key.pub")


class SignedPayload(harness.Bench):
    """A payload full of values that a trusted key has signed: no limit of memory, but it grows with the payload alone."""

    def signed(self, values):
        dossier = self.scratch / f"dossier-{values}"
        dossier.mkdir()
        payload = b'{"x":[' + b"{}," * (values - 1) + b"{}]}"
        message = self.scratch / "message"
        message.write_bytes(attacks.encoding(payload))
        words = ["openssl", "pkeyutl", "-sign", "-inkey", self.scratch / "key", "-rawin", "-in", message]
        signature = subprocess.run(words, check=True, capture_output=True).stdout
        envelope = {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": attacks.TYPE,
            "signatures": [{"sig": base64.b64encode(signature).decode()}],
        }
        (dossier / "statement.dsse.json").write_text(json.dumps(envelope))
        verify = [harness.BIN / "assay-report", "verify", dossier, "--key", self.scratch / "key.pub"]
        return measured.run(verify, self.environment)

    @row("D", "D6-signed", "4 million values, signed by a trusted key", 4, "payload: _type: is not")
    def test_linear(self):
        keygen = [harness.BIN / "assay-report", "keygen", self.scratch / "key"]
        subprocess.run(keygen, check=True, capture_output=True)
        two, four = self.signed(2_000_000), self.signed(4_000_000)
        self.assertLess(four.kib, 2.2 * two.kib)
        return four


class Run(harness.Bench):
    @row(
        "D",
        "D5",
        "a plan of 1,000 nodes and 1,000 requirements of pairs, for judge",
        2,
        "makes 499500 cells of the plan",
    )
    def test_plan(self):
        self.accept(harness.requirement("number"))
        path = self.run_directory / "plan.json"
        path.write_text(huge_plan(json.loads(path.read_text())))
        return measured.run([harness.BIN / "assay", "judge", self.run_directory], self.environment)

    @row("D", "D4", "12 files of 256 MiB beside the records, 1 MB on disk", 0, "report.html")
    def test_evidence(self):
        self.accept(harness.requirement("number"))
        for i in range(12):
            with open(self.run_directory / f"records/big{i}.jsonl", "wb") as file:
                file.truncate(256 * MIB)
        return measured.run([harness.BIN / "assay-report", "report", self.run_directory], self.environment)

    @row("D", "I-bomb-45MB", "45 MB of empty objects as an output of fio", 2, "bomb.json")
    def test_bomb(self):
        path = self.scratch / "bomb.json"
        path.write_bytes(b'{"jobs":[' + b"{}," * (15 * MIB) + b"{}]}")
        return measured.run([harness.BIN / "assay", "import", "fio", path], self.environment)


def huge_plan(plan):
    """A plan that would give hundreds of millions of steps."""
    described = subprocess.run(
        [harness.BIN / "assay", "describe", "fake_fabric", "--json"], check=True, capture_output=True
    ).stdout
    plan["probes"] = {"fake_fabric": {"sha256": "ab" * 32, "description": json.loads(described)}}
    one = dict(plan["profile"]["requirements"][0], scope="pair", probe="fake_fabric", parameters={})
    plan["profile"]["requirements"] = [dict(one, id=f"r{i}") for i in range(1000)]
    node = plan["site"]["nodes"][0]
    plan["site"]["nodes"] = [dict(node, name=f"n{i}", address=f"n{i}", launcher="ssh") for i in range(1000)]
    plan["steps"] = plan["coverage"] = plan["searches"] = []
    return json.dumps(plan, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


class Signed(attacks.Bench):
    """The same plan in a dossier that a trusted signer sealed."""

    def setUp(self):
        super().setUp()
        plan, profile = self.scratch / "plan.json", self.scratch / "profile.json"
        profile.write_text(json.dumps(harness.profile(harness.requirement("number"))))
        subprocess.run(
            [harness.BIN / "assay", "plan", "--profile", profile, "--directory", self.scratch / "work", "--out", plan],
            check=True,
            capture_output=True,
        )
        (self.dossier / "evidence/plan.json").write_text(huge_plan(json.loads(plan.read_text())))
        self.seal()

    @row("D", "D5-verify", "the same in a sealed dossier, for verify", 4, "makes 499500 cells of the plan")
    def test_verify(self):
        return measured.run([attacks.REPORT, "verify", self.dossier, "--key", f"{self.key}.pub"], self.environment)

    @row("D", "D5-add", "the same, for sign --add", 4, "makes 499500 cells of the plan")
    def test_add(self):
        return measured.run(
            [
                attacks.REPORT,
                "sign",
                self.dossier,
                "--key",
                self.base / "buyer.key",
                "--add",
                "--with-key",
                f"{self.key}.pub",
            ],
            self.environment,
        )


if __name__ == "__main__":
    harness.main()
