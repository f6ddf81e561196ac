"""policies: trust policies for tests: parties, signers and their keys, as Python values or as words of attacks/*.cases."""
import datetime
import json

from attacks import Bench

EVER = {"valid_from": "2020-01-01", "valid_until": "2100-01-01"}
PAST = {"valid_from": "2020-01-01", "valid_until": "2025-01-01"}
FUTURE = {"valid_from": "2090-01-01", "valid_until": "2100-01-01"}
REVOKED = {"revoked": {"at": "2026-02-01", "reason": "a stolen laptop"}}
NAMES = ("lab", "buyer", "second", "witness")
TODAY = datetime.datetime.now(datetime.timezone.utc).date()
# What a key of a policy may be, as a word: vendor(lab past).
KEY_WORDS = {
    "past": PAST,
    "future": FUTURE,
    "revoked": REVOKED,
    "revoked-in-2099": {"revoked": {"at": "2099-01-01", "reason": "moves"}},
    "revoked-today": {"revoked": {"at": datetime.date.today().isoformat(), "reason": "a stolen laptop"}},
    "ended-yesterday": {"valid_until": (TODAY - datetime.timedelta(days=1)).isoformat()},
}
TIMES = {"from": "valid_from", "until": "valid_until"}


class Policies(Bench):
    """lab.key has signed as the vendor; buyer.key, second.key and witness.key have not."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name in NAMES:
            if not (cls.base / f"{name}.key").exists():
                cls.command("keygen", cls.base / f"{name}.key", code=0)
        cls.fingerprint = {
            name: cls.command("fingerprint", cls.base / f"{name}.key.pub", code=0).stdout.strip() for name in NAMES
        }

    def one(self, name, when=EVER, file=True, **more):
        """An entry of a policy for this key."""
        entry = {"fingerprint": self.fingerprint[name], **when, **more}
        return {**entry, "file": str(self.base / f"{name}.key.pub")} if file else entry

    def party(self, role, *signers, name=None, threshold=1):
        """A party whose signers have these lists of keys."""
        return {
            "name": name or f"Example {role}",
            "role": role,
            "threshold": threshold,
            "signers": [{"name": f"{role} {i}", "keys": keys} for i, keys in enumerate(signers)],
        }

    def vendor(self, *keys, **more):
        return self.party("vendor", list(keys) or [self.one("lab")], **more)

    def buyer(self, *keys, **more):
        return self.party("buyer", list(keys) or [self.one("buyer")], **more)

    def write(self, *parties, require=("vendor",), when=EVER, **more):
        document = {
            "schema": "assay.trust/1",
            "name": "hall 2",
            **when,
            "require": list(require),
            "parties": list(parties),
            **more,
        }
        (self.scratch / "trust.json").write_text(json.dumps(document))
        return self.scratch / "trust.json"

    def by(self, *parties, arguments=(), **more):
        """verify by a policy of these parties and by nothing else."""
        return self.command("verify", self.dossier, "--policy", self.write(*parties, **more), *arguments)

    def add(self, name, *arguments):
        return self.command("sign", self.dossier, "--add", "--key", self.base / f"{name}.key", *arguments)

    def countersign(self, name="buyer"):
        done = self.add(name, "--with-key", self.base / "lab.key.pub")
        self.assertEqual(done.returncode, 0, done.stderr)

    # The same as words.

    def key_in_words(self, text):
        """`lab past`: a key, and what it is."""
        name, *words = text.split()
        entry = self.one(name)
        for word in words:
            member, equals, value = word.partition("=")
            if equals:
                entry[TIMES.get(member, member)] = value
            elif word.startswith("without-"):
                del entry[TIMES.get(word[len("without-") :], word[len("without-") :])]
            else:
                entry.update(KEY_WORDS[word])
        return entry

    def party_in_words(self, text):
        """`vendor`, whose key is lab.key as each role has its own; `vendor(lab, second)`, one signer with two keys; `vendor(lab | second;
        threshold=2)`, two signers, and members of the party."""
        role, _, inner = text.rstrip(")").partition("(")
        signers, *members = inner.split(";")
        signers = signers.strip() or {"vendor": "lab"}.get(role, role)
        party = self.party(
            role, *[[self.key_in_words(key) for key in signer.split(",")] for signer in signers.split("|")]
        )
        for member in members:
            name, _, value = member.strip().partition("=")
            party[name] = int(value) if value.isdigit() else value
        return party

    def write_words(self, *parties, require="vendor", when=None, **more):
        return self.write(
            *map(self.party_in_words, parties),
            require=[role for role in require.split(",") if role],
            when=KEY_WORDS[when] if when else EVER,
            **more,
        )
