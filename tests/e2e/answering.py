"""answering: runs in which hardware answers a question, their verification, and records that were changed."""
import hashlib
import json

from harness import Bench

CHALLENGE, EARLIER = "5a" * 32, "11" * 32


class Answering(Bench):
    def accept(self, profile, challenge=CHALLENGE, out="run"):
        self.run_directory = self.scratch / out
        return self.assay(
            *("accept", "--profile", self.write("profile.json", profile), "--directory", self.work),
            *("--out", self.run_directory, "--challenge", challenge),
        )

    def check(self, *more, status=0):
        got = self.assay(
            *("verify", self.run_directory / "dossier", "--key", self.scratch / "state/assay/machine.key.pub", *more)
        )
        self.assertEqual(got.returncode, status, got.stdout + got.stderr)
        return got.stdout + got.stderr

    def record(self):
        return next((self.run_directory / "records").glob("*/1/0.jsonl"))

    def said(self):
        """Texts of the record by name; of several subjects the last."""
        conditions = [
            line["condition"] for line in map(json.loads, self.record().read_text().splitlines()) if "condition" in line
        ]
        return {condition["name"]: condition["value"] for condition in conditions}

    def replace(self, texts):
        """Other texts in the record, and its digest and size in the journal, as who writes the evidence can do."""
        record, journal = self.record(), self.run_directory / "journal.jsonl"
        before, content = record.read_bytes(), record.read_text()
        for old, new in texts.items():
            content = content.replace(old, new)
        record.write_text(content)
        digest = [hashlib.sha256(data).hexdigest() for data in (before, content.encode())]
        account = journal.read_text().replace(digest[0], digest[1])
        journal.write_text(account.replace(f'"bytes":{len(before)}', f'"bytes":{len(content)}'))
