"""attacks: a dossier of a made-up run, ways to bend it, and the hands of a signer who is trusted and lies."""
import atexit
import base64
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

import attack_rows
from attack_rows import Document  # noqa: F401: every file of attacks has this test

REPORT, ASSAY, MAKE_RUN = (os.environ[name] for name in ("ASSAY_REPORT", "ASSAY", "MAKE_RUN"))
TYPE = "application/vnd.in-toto+json"
DEADLINE_S = 300
MOST_KIB = 1 << 20  # 1 GiB: what a hostile input may take


def row(section, name, attempt, code, words, *arguments):
    """Names a method as one attempt: what is done, with which exit code assay answers, and words that it says."""

    def mark(method):
        attack_rows.add(section, name, attempt, code, words)

        def test(self):
            result = method(self)
            done = result if isinstance(result, subprocess.CompletedProcess) else self.verify(*arguments)
            self.assertEqual(done.returncode, code, f"{name}: {done.stdout}{done.stderr}")
            self.assertIn(words, done.stdout + done.stderr, name)
            # Of the largest program so far, verify among them.
            self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, MOST_KIB, name)

        test.__name__ = "test_" + re.sub(r"\W", "_", name)
        test.__doc__ = f"{section}: {name}: {attempt}"
        return test

    return mark


def run(*command, **more):
    return subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=DEADLINE_S,
        stdin=subprocess.DEVNULL,
        **more,
    )


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def canonical(document):
    """RFC 8785 for what statements hold: texts, whole numbers, flags."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def encoding(payload, payload_type=TYPE):
    return b"DSSEv1 %d %s %d %s" % (len(payload_type), payload_type.encode(), len(payload), payload)


def tree_hash(leaves):
    if len(leaves) == 1:
        return hashlib.sha256(b"\0" + leaves[0]).digest()
    left = 1
    while left * 2 < len(leaves):
        left *= 2
    return hashlib.sha256(b"\1" + tree_hash(leaves[:left]) + tree_hash(leaves[left:])).digest()


class Bench(unittest.TestCase):
    """A dossier of its own for each attempt, signed by lab.key; buyer.key is another signer's."""

    kind = "accepted"
    base = pathlib.Path(
        tempfile.mkdtemp(prefix="assay-attacks-")
    )  # one run and one pair of keys for the tests of a file
    atexit.register(shutil.rmtree, base, ignore_errors=True)

    @classmethod
    def setUpClass(cls):
        cls.environment = dict(os.environ, XDG_STATE_HOME=str(cls.base / "state"))
        for name in ("lab", "buyer"):
            if not (cls.base / f"{name}.key").exists():
                cls.command("keygen", cls.base / f"{name}.key", code=0)
        cls.run_directory = cls.base / cls.kind
        if not cls.run_directory.exists():
            cls.make(cls.kind, cls.run_directory)

    @classmethod
    def command(cls, *arguments, code=None):
        done = run(REPORT, *arguments, env=cls.environment)
        if code is not None and done.returncode != code:
            raise AssertionError(f"{arguments}: exit code {done.returncode}: {done.stderr}")
        return done

    @classmethod
    def make(cls, kind, directory):
        """A judged, reported and signed run of this kind."""
        if run(MAKE_RUN, kind, directory).returncode != 0:
            raise AssertionError(f"make_run {kind}")
        cls.command("report", directory, code=0)
        cls.command("sign", directory, "--key", cls.base / "lab.key", "--role", "test lead", "--name", "Ada", code=0)

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(dir=self.base))
        self.dossier = self.scratch / "dossier"
        shutil.copytree(self.run_directory / "dossier", self.dossier)
        self.key = self.base / "lab.key"
        self.statement = self.dossier / "statement.dsse.json"

    def verify(self, *arguments, dossier=None, key=None):
        words = [str(word).format(scratch=self.scratch, base=self.base) for word in arguments]
        keys = [] if "--key" in words else ["--key", key or f"{self.key}.pub"]
        return self.command("verify", dossier or self.dossier, *keys, *words)

    # What anybody can do.

    def flip(self, name):
        path = self.dossier / name
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)

    def first(self, folder):
        """The first file under evidence/`folder`, as a path in the dossier."""
        return str(
            sorted(path for path in (self.dossier / "evidence" / folder).rglob("*") if path.is_file())[0].relative_to(
                self.dossier
            )
        )

    def envelope(self):
        return json.loads(self.statement.read_text())

    def put(self, envelope):
        self.statement.write_text(
            envelope if isinstance(envelope, str) else json.dumps(envelope, separators=(",", ":"))
        )

    # What a signer can do.

    def signature(self, message, key=None):
        (self.scratch / "message").write_bytes(message)
        words = [
            "openssl",
            "pkeyutl",
            "-sign",
            "-inkey",
            str(key or self.key),
            "-rawin",
            "-in",
            str(self.scratch / "message"),
        ]
        return subprocess.run(words, capture_output=True, timeout=DEADLINE_S, check=True).stdout

    def payload(self):
        return base64.b64decode(self.envelope()["payload"])

    def sign(self, payload, payload_type=TYPE, message=None):
        signature = self.signature(message if message is not None else encoding(payload, payload_type))
        self.put(
            {
                "payloadType": payload_type,
                "payload": base64.b64encode(payload).decode(),
                "signatures": [{"sig": base64.b64encode(signature).decode()}],
            }
        )

    def claim(self, change):
        """Changes the statement's predicate and signs it again."""
        document = json.loads(self.payload())
        change(document["predicate"])
        self.sign(canonical(document))

    def seal(self, change=lambda predicate: None):
        """Brings manifest, digests and statement in line with the files that lie there, and signs."""
        names = sorted(str(path.relative_to(self.dossier)) for path in self.dossier.rglob("*") if path.is_file())
        names = [name for name in names if name not in ("statement.dsse.json", "MANIFEST.sha256")]
        data = {name: (self.dossier / name).read_bytes() for name in names}
        lines = [f"{sha256(data[name])}  {name}" for name in names]
        manifest = "".join(line + "\n" for line in lines).encode()
        (self.dossier / "MANIFEST.sha256").write_bytes(manifest)
        document = json.loads(self.payload())
        predicate = document["predicate"]
        predicate["evidence"] = {
            "manifestSha256": sha256(manifest),
            "fileCount": len(lines),
            "totalBytes": sum(len(one) for one in data.values()),
            "merkleRoot": tree_hash([line.encode() for line in lines]).hex(),
        }
        digests = {name: sha256(data["evidence/" + name]) for name in ("plan.json", "verdict.json", "report.html")}
        predicate["plan"]["sha256"], predicate["verdict"]["sha256"] = digests["plan.json"], digests["verdict.json"]
        predicate["renderings"][0]["sha256"] = digests["report.html"]
        for subject in document["subject"]:
            subject["digest"]["sha256"] = digests[subject["name"].split("/")[1]]
        change(predicate)
        self.sign(canonical(document))

    # What the head of a run can do.

    def journal(self, directory):
        return [json.loads(line) for line in (directory / "journal.jsonl").read_text().splitlines()]

    def doctor(self, change, source=None):
        """A copy of the run in which `change(lines, directory)` was made and every digest redone; not judged yet."""
        directory = self.scratch / "doctored"
        shutil.copytree(
            source or self.run_directory, directory, ignore=shutil.ignore_patterns("dossier", "report.html")
        )
        lines = self.journal(directory)
        change(lines, directory)
        lines[0]["plan_sha256"] = sha256((directory / "plan.json").read_bytes())
        for line in lines:
            for file in line.get("evidence", []):
                data = (directory / file["path"]).read_bytes()
                file["sha256"], file["bytes"] = sha256(data), len(data)
        texts = [json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines]
        (directory / "journal.jsonl").write_text("".join(texts))
        return directory

    def judge(self, directory):
        return run(ASSAY, "judge", directory, env=self.environment)

    def sign_run(self, directory):
        """Judges, reports and signs with the tool itself; the dossier, or what refused it."""
        for done in (self.judge(directory), self.command("report", directory)):
            if done.returncode in (2, 4):
                return done
        done = self.command("sign", directory, "--key", self.key)
        if done.returncode == 0:
            self.dossier = directory / "dossier"
            self.statement = self.dossier / "statement.dsse.json"
        return done


def main():
    program = unittest.main(exit=False, verbosity=2)
    sys.exit(0 if program.result.wasSuccessful() and program.result.testsRun > 1 else 1)
