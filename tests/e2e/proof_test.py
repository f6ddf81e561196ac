"""What others prove beside the signer: an authority of RFC 3161 (openssl ts) when a signature was made, and a witness what a journal had while
the run went on."""
import base64
import datetime
import json
import os
import shutil
import subprocess
import time

from attacks import ASSAY, DEADLINE_S, Bench, Document, main, row, run  # noqa: F401: Document is a test
from policies import EVER, Policies

DAY_S = 86400
CONFIGURATION = """
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
[stamps]
extendedKeyUsage = critical, timeStamping
[tsa]
default_tsa = one
[one]
serial = {folder}/serial
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = {digests}
ess_cert_id_alg = sha256
"""


class Authority:
    """A time-stamping authority of its own, whose certificate is valid for a day; `shift_s`: by how much its clock is off."""

    def __init__(self, folder, shift_s=0, digests="sha256"):
        folder.mkdir()
        self.folder = folder
        self.environment = dict(os.environ, LD_PRELOAD=os.environ["SHIFT_CLOCK"], SHIFT_CLOCK_S=str(shift_s))
        (folder / "conf").write_text(CONFIGURATION.format(folder=folder, digests=digests))
        (folder / "serial").write_text("01\n")
        new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-config", "conf")
        self.openssl("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-days", "1", "-subj", "/CN=Root", "-extensions", "authority")
        self.openssl("req", *new, "-keyout", "tsa.key", "-out", "tsa.csr", "-subj", "/CN=Example Time")
        self.openssl("x509", "-req", "-in", "tsa.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "tsa.pem", "-days", "1",
                     "-extfile", "conf", "-extensions", "stamps")

    def openssl(self, *words):
        done = subprocess.run(["openssl", *map(str, words)], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=DEADLINE_S)
        if done.returncode != 0:
            raise AssertionError(f"{words}: {done.stderr}")

    def answer(self, request):
        self.openssl("ts", "-reply", "-config", "conf", "-section", "one", "-queryfile", request, "-signer", "tsa.pem", "-inkey", "tsa.key",
                     "-out", "answer.tsr")
        return self.folder / "answer.tsr"


class Stamps(Policies):
    """lab.key has signed the dossier; each test asks an authority of its own."""

    def request(self, key="lab", dossier=None):
        path = self.scratch / f"{key}.tsq"
        done = self.command("timestamp", dossier or self.dossier, "--key", self.base / f"{key}.key.pub", "--request", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def add_stamp(self, answer, authority, key="lab"):
        return self.command("timestamp", self.dossier, "--key", self.base / f"{key}.key.pub", "--response", answer, "--tsa", authority.folder / "ca.pem")

    def stamped(self, name="tsa", **more):
        authority = Authority(self.scratch / name, **more)
        done = self.add_stamp(authority.answer(self.request()), authority)
        self.assertEqual(done.returncode, 0, done.stderr)
        return authority

    def verify_by(self, authority):
        return self.verify("--tsa", authority.folder / "ca.pem")


class Stamped(Stamps):
    @row("TS", "T-stamped", "a signature with a time stamp", 0, "stamped 20")
    def test_stamped(self):
        authority = self.stamped()
        self.assertEqual(self.verify().returncode, 0)  # who asks for no stamp passes it over
        return self.verify_by(authority)

    @row("TS", "T-none", "a stamp is demanded, and the signature has none", 4, "has no time stamp")
    def test_none(self):
        return self.verify_by(Authority(self.scratch / "tsa"))

    @row("TS", "T-one-of-two", "two signed, one signature is stamped", 4, "has no time stamp")
    def test_one_of_two(self):
        authority = self.stamped()
        self.countersign()
        return self.verify("--tsa", authority.folder / "ca.pem", "--key", "{base}/lab.key.pub", "--key", "{base}/buyer.key.pub")

    @row("TS", "T-countersigned", "a stamped dossier is signed by the buyer: the stamp stays", 0, "stamped 20")
    def test_countersigned(self):
        authority = self.stamped()
        self.countersign()
        return self.verify_by(authority)

    @row("TS", "T-other", "the answer to another signature is added", 4, "does not hold: message imprint mismatch")
    def test_other(self):
        self.countersign()
        authority = Authority(self.scratch / "tsa")
        return self.add_stamp(authority.answer(self.request("buyer")), authority)

    @row("TS", "T-swapped", "the stamp of another signature is moved", 4, "does not hold: message imprint mismatch")
    def test_swapped(self):
        self.countersign()
        authority = Authority(self.scratch / "tsa")
        self.assertEqual(self.add_stamp(authority.answer(self.request("buyer")), authority, "buyer").returncode, 0)
        envelope = self.envelope()
        envelope["signatures"][0]["timestamp"] = envelope["signatures"][1].pop("timestamp")
        self.put(envelope)
        return self.verify_by(authority)

    @row("TS", "T-authority", "another authority than the receiver's", 4, "does not hold: certificate verify error")
    def test_authority(self):
        self.stamped()
        return self.verify_by(Authority(self.scratch / "other"))

    @row("TS", "T-tampered", "a byte of the stamp changed", 4, "statement.dsse.json: signatures[0].timestamp")
    def test_tampered(self):
        authority = self.stamped()
        envelope = self.envelope()
        token = bytearray(base64.b64decode(envelope["signatures"][0]["timestamp"]))
        token[-10] ^= 1
        envelope["signatures"][0]["timestamp"] = base64.b64encode(token).decode()
        self.put(envelope)
        return self.verify_by(authority)

    @row("TS", "T-longer", "a byte behind the stamp", 4, "is not a time stamp")
    def test_longer(self):
        authority = self.stamped()
        envelope = self.envelope()
        envelope["signatures"][0]["timestamp"] = base64.b64encode(base64.b64decode(envelope["signatures"][0]["timestamp"]) + b"\0").decode()
        self.put(envelope)
        return self.verify_by(authority)

    @row("TS", "T-base64", "a stamp that is no base64", 4, "signatures[0].timestamp: is no time stamp in strict base64")
    def test_base64(self):
        self.stamped()
        envelope = self.envelope()
        envelope["signatures"][0]["timestamp"] = "!"
        self.put(envelope)
        return self.verify()

    @row("TS", "T-garbage", "an answer that is none", 4, "is not the answer of a time-stamping authority")
    def test_garbage(self):
        return self.add_stamp(self.request(), Authority(self.scratch / "tsa"))

    @row("TS", "T-denied", "an authority that does not grant the stamp", 4, "has no time stamp: Status: Rejected.")
    def test_denied(self):
        authority = Authority(self.scratch / "tsa", digests="sha512")
        return self.add_stamp(authority.answer(self.request()), authority)

    @row("TS", "T-early", "stamped before the run ended", 4, "before the run ended (2026-01-05T")
    def test_early(self):
        day = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
        return self.verify_by(self.stamped(shift_s=int((day - datetime.datetime.now(datetime.timezone.utc)).total_seconds())))

    @row("TS", "T-before-issue", "stamped before the statement says that it was issued", 4, "before the statement was issued (20")
    def test_before_issue(self):
        return self.verify_by(self.stamped(shift_s=-DAY_S))

    @row("TS", "T-future", "stamped tomorrow", 4, "and it is 20")
    def test_future(self):
        return self.verify_by(self.stamped(shift_s=DAY_S))

    @row("TS", "T-no-file", "--tsa with a file that has no certificate", 2, "has no certificate")
    def test_no_file(self):
        return self.verify("--tsa", "{base}/lab.key.pub")


class Later(Stamps):
    """The dossier was signed and stamped two days ago; the certificate of the authority ended yesterday."""

    def signed_then(self):
        environment = dict(self.environment, LD_PRELOAD=os.environ["SHIFT_CLOCK"], SHIFT_CLOCK_S=str(-2 * DAY_S))
        run_directory = self.scratch / "run"
        shutil.copytree(self.run_directory, run_directory, ignore=shutil.ignore_patterns("dossier"))
        done = run(os.environ["ASSAY_REPORT"], "sign", run_directory, "--key", self.key, "--role", "vendor", "--name", "Ada", env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.dossier = run_directory / "dossier"
        self.statement = self.dossier / "statement.dsse.json"
        return self.stamped(shift_s=-2 * DAY_S)

    def ended_yesterday(self):
        yesterday = (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=1)).date().isoformat()
        return self.write(self.vendor(self.one("lab", {**EVER, "valid_until": yesterday})))

    @row("TS", "T-outlived", "the certificate of the authority has ended since", 0, "stamped 20")
    def test_outlived(self):
        return self.verify_by(self.signed_then())

    @row("TS", "T-key-ended", "the signer's key has ended since, without a stamp that is looked at", 4, "rule key_valid_until")
    def test_key_ended(self):
        self.signed_then()
        return self.command("verify", self.dossier, "--policy", self.ended_yesterday())

    @row("TS", "T-key-outlived", "the signer's key has ended since, and the stamp shows that it was valid", 0, "signed as vendor")
    def test_key_outlived(self):
        authority = self.signed_then()
        return self.command("verify", self.dossier, "--policy", self.ended_yesterday(), "--tsa", authority.folder / "ca.pem")

    @row("TS", "T-key-revoked", "the signer's key was revoked: no stamp helps", 4, "rule key_revoked")
    def test_key_revoked(self):
        authority = self.signed_then()
        revoked = {"revoked": {"at": datetime.date.today().isoformat(), "reason": "a stolen laptop"}}
        policy = self.write(self.vendor(self.one("lab", **revoked)))
        return self.command("verify", self.dossier, "--policy", policy, "--tsa", authority.folder / "ca.pem")


class Heads(Policies):
    """A witness sees the journal when two thirds of it are written, and at its end."""

    def seen(self, share=1.0, by="witness", name="head", change=lambda lines: None):
        lines = (self.run_directory / "journal.jsonl").read_text().splitlines(keepends=True)
        lines = lines[:max(1, int(len(lines) * share))]
        change(lines)
        journal = self.scratch / f"{name}.journal"
        journal.write_text("".join(lines) + ('{"time":"20' if share < 1 else ""))  # a line that is being written
        done = self.command("witness", journal, "--key", self.base / f"{by}.key", "--out", self.scratch / name)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.scratch / name

    def check(self, *heads, key="witness"):
        words = [word for head in heads for word in ("--head", head)]
        return self.verify(*words, "--witness-key", self.base / f"{key}.key.pub")

    def without_last_attempt(self, lines, _):
        ends = [i for i, line in enumerate(lines) if line["kind"] == "attempt_end"]
        begins = [i for i, line in enumerate(lines) if line["kind"] == "attempt_begin"]
        for i in sorted((ends[-1], begins[-1]), reverse=True):
            del lines[i]


class Witnessed(Heads):
    @row("TS", "H-seen", "two heads of the run", 0, "the journal was witnessed 2 times")
    def test_seen(self):
        return self.check(self.seen(0.7, name="first"), self.seen(name="last"))

    @row("TS", "H-policy", "a head by the witness of the policy", 0, "witness: witness 0 of Example witness")
    def test_policy(self):
        policy = self.write(self.vendor(), self.party("witness", [self.one("witness")]))
        return self.command("verify", self.dossier, "--policy", policy, "--head", self.seen(0.7))

    @row("TS", "H-deleted", "an attempt was taken out before the run was signed", 4, "the journal does not begin with the")
    def test_deleted(self):
        head = self.seen()
        done = self.sign_run(self.doctor(self.without_last_attempt))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.verify().returncode, 0)  # nothing of it is seen without a head
        return self.check(head)

    @row("TS", "H-changed", "an attempt was changed before the run was signed", 4, "the journal does not begin with the")
    def test_changed(self):
        head = self.seen(0.7)
        self.sign_run(self.doctor(lambda lines, _: lines[1].update(facts={**lines[1]["facts"], "cores": 128})))
        return self.check(head)

    @row("TS", "H-other-run", "the witness saw another run", 4, "is of the run 'another', the dossier of '5f0c3c1e")
    def test_other_run(self):
        def rename(lines):
            first = json.loads(lines[0])
            lines[0] = json.dumps({**first, "run_id": "another"}, separators=(",", ":")) + "\n"
        return self.check(self.seen(0.7, change=rename))

    @row("TS", "H-stranger", "a head by another key", 4, "rule head_signed: no key that was given has signed it")
    def test_stranger(self):
        return self.check(self.seen(by="second"))

    @row("TS", "H-vendor", "the vendor watches his own run", 4, "rule head_role: vendor 0 of Example vendor is the vendor")
    def test_vendor(self):
        return self.command("verify", self.dossier, "--policy", self.write(self.vendor()), "--head", self.seen(by="lab"))

    @row("TS", "H-tampered", "a head whose bytes were changed", 4, "rule head_signed")
    def test_tampered(self):
        path = self.seen()
        envelope = json.loads(path.read_text())
        envelope["payload"] = base64.b64encode(base64.b64decode(envelope["payload"]).replace(b'"lines":1', b'"lines":2')).decode()
        path.write_text(json.dumps(envelope))
        return self.check(path)

    @row("TS", "H-statement", "a dossier's statement as a head", 4, "rule head_signed")
    def test_statement(self):
        return self.check(self.statement)

    @row("TS", "H-statement-own", "a statement that the witness has signed, as a head", 4, "is not 'urn:uuid:")
    def test_statement_own(self):
        head = self.scratch / "own"
        self.key = self.base / "witness.key"
        original = self.envelope()
        self.sign(self.payload())
        shutil.copy(self.statement, head)
        self.put(original)
        self.key = self.base / "lab.key"
        return self.check(head)

    @row("TS", "H-folder", "a folder of heads of the run", 0, "the journal was witnessed 2 times")
    def test_folder(self):
        (self.scratch / "heads").mkdir()
        self.seen(0.7, name="heads/0001.head")
        self.seen(name="heads/0002.head")
        return self.check(self.scratch / "heads")

    @row("TS", "H-folder-other", "a folder of heads, one of a run that was begun and never handed over", 4, "is of the run 'another', the dossier of")
    def test_folder_other(self):
        def rename(lines):
            first = json.loads(lines[0])
            lines[0] = json.dumps({**first, "run_id": "another"}, separators=(",", ":")) + "\n"
        (self.scratch / "heads").mkdir()
        self.seen(name="heads/0001.head")
        self.seen(0.7, name="heads/0002.head", change=rename)
        return self.check(self.scratch / "heads")

    @row("TS", "H-folder-empty", "a folder without a head", 4, "has no *.head")
    def test_folder_empty(self):
        (self.scratch / "heads").mkdir()
        return self.check(self.scratch / "heads")

    @row("TS", "H-watched", "a witness watches while the journal grows, and an attempt is taken out before it is signed", 4,
         "the journal does not begin with the")
    def test_watched(self):
        heads = self.watched(lambda journal, lines: journal.write_text("".join(lines)))
        self.assertGreater(len(list(heads.iterdir())), 1)
        self.assertEqual(self.check(heads).returncode, 0)
        self.sign_run(self.doctor(self.without_last_attempt))
        return self.check(heads)

    @row("TS", "H-watch-lost", "a line that was witnessed goes away under the eyes of the witness", 4, "does not begin with the")
    def test_watch_lost(self):
        return self.watched(lambda journal, lines: journal.write_text("".join(lines[1:])), code=4)

    def watched(self, change, code=0):
        """The folder of a witness who saw a journal of some lines, and then what `change` makes of it; the witness's end if it is no success."""
        lines = (self.run_directory / "journal.jsonl").read_text().splitlines(keepends=True)
        journal, heads = self.scratch / "journal", self.scratch / "heads"
        journal.write_text("".join(lines[:3]))
        with open(self.scratch / "told", "w+") as told:
            process = subprocess.Popen([ASSAY, "witness", str(journal), "--key", str(self.base / "witness.key"), "--every", "50ms", "--out", str(heads)],
                                       env=self.environment, stdin=subprocess.DEVNULL, stdout=told, stderr=told)
            deadline = time.monotonic() + DEADLINE_S
            while not (heads / "0001.head").exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            change(journal, lines)
            self.assertEqual(process.wait(DEADLINE_S), code)
            told.seek(0)
            text = told.read()
        if code != 0:
            return subprocess.CompletedProcess(process.args, code, text, text)
        self.assertIn("the run has ended", text)
        return heads

    @row("TS", "H-stdin", "a journal comes to the witness through a pipe", 0, "the journal was witnessed 1 times")
    def test_stdin(self):
        words = [ASSAY, "witness", "-", "--key", str(self.base / "witness.key"), "--out", str(self.scratch / "head")]
        with open(self.run_directory / "journal.jsonl") as journal, subprocess.Popen(["cat"], stdin=journal, stdout=subprocess.PIPE) as pipe:
            done = subprocess.run(words, env=self.environment, stdin=pipe.stdout, capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.check(self.scratch / "head")

    @row("TS", "H-no-head", "a key of a witness and no head", 4, "--witness-key: needs --head")
    def test_no_head(self):
        return self.verify("--witness-key", self.base / "witness.key.pub")

    @row("TS", "H-empty", "a journal without a whole line is witnessed", 4, "has no whole line yet")
    def test_empty(self):
        (self.scratch / "journal").write_text('{"schema"')
        return self.command("witness", self.scratch / "journal", "--key", self.base / "witness.key", "--out", self.scratch / "head")


if __name__ == "__main__":
    main()
