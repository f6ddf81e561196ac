"""proof_steps: the steps of attacks/proof.cases: time stamps of signatures, and what a witness saw of a journal while the run went on."""
import base64
import datetime
import json
import os
import shutil
import subprocess
import time

from attacks import ASSAY, DEADLINE_S, canonical, encoding, run
from json_edits import edit
from policy_steps import PolicySteps
from stamps import Authority

DAY_S = 86400


class StampSteps(PolicySteps):
    """lab.key has signed the dossier; each case asks an authority of its own, whose certificate is {tsa}."""

    def place(self, name):
        return self.authority.folder / "ca.pem" if name == "tsa" else super().place(name)

    def request(self, key="lab"):
        path = self.scratch / f"{key}.tsq"
        self.command("timestamp", self.dossier, "--key", self.base / f"{key}.key.pub", "--request", path, code=0)
        return path

    def do_authority(self, name="tsa", shift="0", digests="sha256", **weak):
        """shift: by how many seconds its clock is off, or at which day it stands; weak: see Authority."""
        if "-" in shift[1:]:
            day = datetime.datetime.fromisoformat(shift).replace(tzinfo=datetime.timezone.utc)
            shift = (day - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
        self.authority = Authority(self.scratch / name, shift_s=int(shift), digests=digests, **weak)

    def run_add_stamp(self, of="lab", to="lab"):
        """Adds the authority's answer for the signature of one key to that of another."""
        return self.run_add_answer(self.authority.answer(self.request(of)), to)

    def run_add_answer(self, answer, to="lab"):
        return self.command(
            "timestamp",
            self.dossier,
            "--key",
            self.base / f"{to}.key.pub",
            "--response",
            answer,
            "--tsa",
            self.place("tsa"),
        )

    def run_stamp(self, shift="0"):
        """The dossier's signature stamped by an authority of its own."""
        self.do_authority(shift=shift)
        return self.run_add_stamp()

    def do_request(self):
        """{scratch}/lab.tsq"""
        self.request()

    def run_sign_then(self):
        """The dossier was signed two days ago."""
        environment = dict(self.environment, LD_PRELOAD=os.environ["SHIFT_CLOCK"], SHIFT_CLOCK_S=str(-2 * DAY_S))
        directory = self.scratch / "run"
        shutil.copytree(self.run_directory, directory, ignore=shutil.ignore_patterns("dossier"))
        done = run(
            os.environ["ASSAY_REPORT"],
            "sign",
            directory,
            "--key",
            self.key,
            "--role",
            "vendor",
            "--name",
            "Ada",
            env=environment,
        )
        self.do_look_at(directory / "dossier")
        return done


class HeadSteps(PolicySteps):
    """A witness sees the journal when a share of it is written, or at its end."""

    def run_seen(self, share="1", by="witness", name="head", run=None):
        """{scratch}/NAME, the witness's head of this share of the journal; `run`: of another run."""
        lines = (self.run_directory / "journal.jsonl").read_text().splitlines(keepends=True)
        lines = lines[: max(1, int(len(lines) * float(share)))]
        if run is not None:
            lines[0] = json.dumps({**json.loads(lines[0]), "run_id": run}, separators=(",", ":")) + "\n"
        journal = self.scratch / f"{name}.journal"
        journal.parent.mkdir(exist_ok=True)
        journal.write_text("".join(lines) + ('{"time":"20' if float(share) < 1 else ""))  # a line that is being written
        return self.command("witness", journal, "--key", self.base / f"{by}.key", "--out", self.scratch / name)

    def do_bend_head(self, *changes):
        """{scratch}/head with other facts, signed by the witness again."""
        path = self.scratch / "head"
        envelope = json.loads(path.read_text())
        document = json.loads(base64.b64decode(envelope["payload"]))
        edit(document, *changes)
        payload = canonical(document)
        signature = self.signature(encoding(payload), self.base / "witness.key")
        path.write_text(
            json.dumps(
                {
                    **envelope,
                    "payload": base64.b64encode(payload).decode(),
                    "signatures": [{"sig": base64.b64encode(signature).decode()}],
                }
            )
        )

    def run_verify_heads(self, *heads):
        """By these heads in {scratch} and the key of the witness; options behind them."""
        end = next((i for i, word in enumerate(heads) if word.startswith("--")), len(heads))
        words = [word for head in heads[:end] for word in ("--head", self.scratch / head)]
        return self.verify(*words, "--witness-key", self.base / "witness.key.pub", *heads[end:])

    def do_statement_by_witness(self, path):
        """The dossier's statement, signed by the witness, as a file."""
        original = self.envelope()
        self.key = self.base / "witness.key"
        self.sign(self.payload())
        shutil.copy(self.statement, path)
        self.put(original)
        self.key = self.base / "lab.key"

    def run_watch(self, then):
        """A witness who saw a journal of some lines, and then the whole of it, or one whose first line went away; {scratch}/heads."""
        lines = (self.run_directory / "journal.jsonl").read_text().splitlines(keepends=True)
        journal, heads = self.scratch / "journal", self.scratch / "heads"
        journal.write_text("".join(lines[:3]))
        with open(self.scratch / "told", "w+") as told:
            process = subprocess.Popen(
                [
                    ASSAY,
                    "witness",
                    str(journal),
                    "--key",
                    str(self.base / "witness.key"),
                    "--every",
                    "50ms",
                    "--out",
                    str(heads),
                ],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=told,
            )
            deadline = time.monotonic() + DEADLINE_S
            while not (heads / "0001.head").exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            journal.write_text("".join({"whole": lines, "first-line-lost": lines[1:]}[then]))
            code = process.wait(DEADLINE_S)
            told.seek(0)
            text = told.read()
        return subprocess.CompletedProcess(process.args, code, text, text)

    def do_several_heads(self):
        self.assertGreater(len(list((self.scratch / "heads").iterdir())), 1)

    def run_witness_pipe(self):
        """The journal comes to the witness through a pipe; {scratch}/head."""
        words = [ASSAY, "witness", "-", "--key", str(self.base / "witness.key"), "--out", str(self.scratch / "head")]
        with open(self.run_directory / "journal.jsonl") as journal, subprocess.Popen(
            ["cat"], stdin=journal, stdout=subprocess.PIPE
        ) as pipe:
            return subprocess.run(
                words, env=self.environment, stdin=pipe.stdout, capture_output=True, text=True, timeout=DEADLINE_S
            )
