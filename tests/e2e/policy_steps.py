"""policy_steps: the steps of cases by a trust policy: attacks/policy.cases and attacks/waiver.cases."""
import base64
import json

from attack_steps import CONSTANTS, Steps
from attacks import TYPE, canonical, encoding
from json_edits import edit
from policies import Policies


class PolicySteps(Steps, Policies):
    """{policy} is the last one that was written."""

    standard = ("vendor",)
    trust = None

    def place(self, name):
        return self.policy_file() if name == "policy" else super().place(name)

    def policy_file(self):
        """The policy that a step has written, or one of the usual parties."""
        return self.trust or self.write_words(*self.standard)

    def do_policy(self, *parties, **more):
        """vendor buyer(buyer revoked) require=vendor,buyer when=past schema=… (Policies.party_in_words)."""
        self.trust = self.write_words(*parties, **more)

    def run_verify_by_policy(self, *words):
        return self.command("verify", self.dossier, "--policy", self.policy_file(), *words)

    def run_by(self, *words, **more):
        """verify by a policy of these parties; words that begin with -- are verify's, and so are those behind them."""
        count = next((i for i, word in enumerate(words) if word.startswith("--")), len(words))
        self.do_policy(*words[:count], **more)
        return self.run_verify_by_policy(*words[count:])

    def run_countersign(self, name="buyer"):
        return self.add(name, "--with-key", self.base / "lab.key.pub")

    # Supersession.

    def do_newer(self, by="lab"):
        """A newer dossier of the same run, {newer}, after the first one, {older}."""
        newer = self.scratch / "newer"
        self.command(
            "sign",
            self.run_directory,
            "--key",
            self.base / f"{by}.key",
            "--out",
            newer,
            "--supersedes",
            self.dossier,
            "--reason",
            "module replaced",
            code=0,
        )
        self.older = self.dossier
        self.do_look_at(newer)

    def do_older_of_many_values(self, count):
        """{scratch}/older: an unsigned statement with so many values."""
        older = self.scratch / "older"
        older.mkdir()
        payload = base64.b64encode(b"[" + b"0," * int(count) + b"0]").decode()
        (older / "statement.dsse.json").write_text(
            json.dumps({"payloadType": TYPE, "payload": payload, "signatures": [{"sig": "AAAA"}]})
        )


class WaiverSteps(PolicySteps):
    """A rejected run: gemm.fp16, memory.copy and others do not pass. The buyer waives memory.copy on n03 with {scratch}/waiver."""

    standard = ("vendor", "buyer", "witness")

    def run_waive(self, *words, by="buyer", until=CONSTANTS["next_year"]):
        return self.command(
            "waive",
            self.dossier,
            "--key",
            self.base / f"{by}.key",
            "--policy",
            self.policy_file(),
            "--requirement",
            "memory.copy",
            "--reason",
            "module comes in March",
            "--until",
            until,
            "--out",
            self.scratch / "waiver",
            *words,
        )

    def run_waived(self, *words):
        """verify with the waiver."""
        return self.run_verify_by_policy("--waiver", self.scratch / "waiver", *words)

    def do_bent_waiver(self, *changes, by="buyer"):
        """A waiver after `changes`, signed again."""
        self.assertEqual(self.run_waive("--node", "n03").returncode, 0)
        path = self.scratch / "waiver"
        document = json.loads(base64.b64decode(json.loads(path.read_text())["payload"]))
        edit(document, *changes)
        payload = canonical(document)
        signature = self.signature(encoding(payload), self.base / f"{by}.key")
        path.write_text(
            json.dumps(
                {
                    "payloadType": TYPE,
                    "payload": base64.b64encode(payload).decode(),
                    "signatures": [{"sig": base64.b64encode(signature).decode()}],
                }
            )
        )
