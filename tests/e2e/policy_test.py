"""The trust policy: whose signatures count, as what, and when; what it does not find, it refuses."""
import json
import pathlib

from attacks import Bench, Document, main, row  # noqa: F401: Document is a test

EVER = {"valid_from": "2020-01-01", "valid_until": "2100-01-01"}
PAST = {"valid_from": "2020-01-01", "valid_until": "2025-01-01"}
FUTURE = {"valid_from": "2090-01-01", "valid_until": "2100-01-01"}
REVOKED = {"revoked": {"at": "2026-02-01", "reason": "a stolen laptop"}}
NAMES = ("lab", "buyer", "second", "witness")


class Policies(Bench):
    """lab.key has signed as the vendor; buyer.key, second.key and witness.key have not."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name in NAMES:
            if not (cls.base / f"{name}.key").exists():
                cls.command("keygen", cls.base / f"{name}.key", code=0)
        cls.fingerprint = {name: cls.command("fingerprint", cls.base / f"{name}.key.pub", code=0).stdout.strip() for name in NAMES}

    def one(self, name, when=EVER, file=True, **more):
        """An entry of a policy for this key."""
        entry = {"fingerprint": self.fingerprint[name], **when, **more}
        return {**entry, "file": str(self.base / f"{name}.key.pub")} if file else entry

    def party(self, role, *signers, name=None, threshold=1):
        """A party whose signers have these lists of keys."""
        return {"name": name or f"Example {role}", "role": role, "threshold": threshold,
                "signers": [{"name": f"{role} {i}", "keys": keys} for i, keys in enumerate(signers)]}

    def vendor(self, *keys, **more):
        return self.party("vendor", list(keys) or [self.one("lab")], **more)

    def buyer(self, *keys, **more):
        return self.party("buyer", list(keys) or [self.one("buyer")], **more)

    def write(self, *parties, require=("vendor",), when=EVER, **more):
        document = {"schema": "assay.trust/1", "name": "hall 2", **when, "require": list(require), "parties": list(parties), **more}
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


class Signatures(Policies):
    @row("P", "P-vendor", "the vendor alone is required, and has signed", 0, "signed as vendor: vendor 0 of Example vendor")
    def test_vendor(self):
        return self.by(self.vendor())

    @row("P", "P-both", "vendor and buyer are required and have signed", 0, "signed as buyer: buyer 0 of Example buyer")
    def test_both(self):
        self.countersign()
        return self.by(self.vendor(), self.buyer(), require=("vendor", "buyer"))

    @row("P", "P-no-buyer", "vendor and buyer are required, the vendor alone has signed", 4, "rule required_role: no signature of a buyer counts")
    def test_no_buyer(self):
        return self.by(self.vendor(), self.buyer(), require=("vendor", "buyer"))

    @row("P", "P-require", "the same, the buyer demanded by --require buyer,vendor", 4, "rule required_role: no signature of a buyer counts")
    def test_require(self):
        return self.by(self.vendor(), self.buyer(), arguments=("--require", "buyer,vendor"))

    @row("P", "P-require-both", "--require buyer,vendor, and both have signed", 0, "signed as buyer")
    def test_require_both(self):
        self.countersign()
        return self.by(self.vendor(), self.buyer(), arguments=("--require", "buyer,vendor"))

    @row("P", "P-no-vendor", "the buyer has signed, and the vendor's key is not the one that made the statement", 4,
         "rule required_role: no signature of a vendor counts")
    def test_no_vendor(self):
        self.countersign()
        return self.by(self.vendor(self.one("second")), self.buyer(), require=("vendor", "buyer"))

    @row("P", "P-require-unheld", "--require of a role that no party has", 4, "rule required_role: no signature of a witness counts: no party has this role")
    def test_unheld(self):
        return self.by(self.vendor(), arguments=("--require", "witness"))

    @row("P", "P-maker-unlisted", "the buyer alone is required and has signed; who made the statement is not listed", 4, "rule maker_listed: the statement was made with the key")
    def test_maker(self):
        self.countersign()
        return self.by(self.buyer(), require=("buyer",))

    @row("P", "P-wrong-role", "the key that signed is the witness's", 4, "rule required_role: no signature of a vendor counts")
    def test_wrong_role(self):
        return self.by(self.vendor(self.one("second")), self.party("witness", [self.one("lab")]))

    @row("P", "P-says-buyer", "the vendor states the role of the buyer", 4, "rule maker_role: vendor 0 signed as 'buyer', and is the vendor")
    def test_says_buyer(self):
        self.claim(lambda predicate: predicate["signatories"][0].update(role="buyer"))
        return self.by(self.vendor())

    @row("P", "P-self-signed", "a listed key, self-signed", 4, "rule maker_not_self_signed")
    def test_self_signed(self):
        run = self.doctor(lambda lines, directory: None)
        self.judge(run)
        self.command("report", run, "--self-signed", self.fingerprint["lab"], code=0)
        self.command("sign", run, "--self-signed", "--key", self.key, code=0)
        self.dossier = run / "dossier"
        return self.by(self.vendor())

    @row("P", "P-garbage", "a signature that does not hold", 4, "rule required_role")
    def test_garbage(self):
        self.put({**self.envelope(), "signatures": [{"sig": "A" * 86 + "=="}]})
        return self.by(self.vendor())

    @row("P", "P-tampered", "a record changed, under a policy", 4, "SHA-256 differs")
    def test_tampered(self):
        self.flip(self.first("records"))
        return self.by(self.vendor())


class Times(Policies):
    @row("P", "P-expired", "the vendor's key has ended", 4, "rule key_valid_until: the key")
    def test_expired(self):
        return self.by(self.vendor(self.one("lab", PAST)))

    @row("P", "P-early", "the vendor's key is not valid yet", 4, "rule key_valid_from: the key")
    def test_early(self):
        return self.by(self.vendor(self.one("lab", FUTURE)))

    @row("P", "P-revoked", "the vendor's key is revoked", 4, "of vendor 0 of Example vendor (vendor) was revoked 2026-02-01T00:00:00.000Z: a stolen laptop")
    def test_revoked(self):
        return self.by(self.vendor(self.one("lab", **REVOKED)))

    @row("P", "P-revoked-later", "the vendor's key is revoked from a day to come: it counts no more either", 4, "rule key_revoked")
    def test_revoked_later(self):
        return self.by(self.vendor(self.one("lab", revoked={"at": "2099-01-01", "reason": "moves"})))

    @row("P", "P-at-issue", "the statement bears a date before the vendor's key was valid", 4, "rule key_valid_at_issue: the statement was issued 2026-02-02T")
    def test_at_issue(self):
        self.claim(lambda predicate: predicate.update(issuedAt="2026-02-02T00:00:00.000Z"))
        return self.by(self.vendor(self.one("lab", {**EVER, "valid_from": "2026-03-01"})))

    @row("P", "P-buyer-revoked", "the buyer has signed with a key that is revoked", 4, "rule key_revoked: the key")
    def test_buyer_revoked(self):
        self.countersign()
        return self.by(self.vendor(), self.buyer(self.one("buyer", **REVOKED)), require=("vendor", "buyer"))

    @row("P", "P-rotated", "the revoked key of a signer was followed by one that has not signed", 4, "rule key_revoked")
    def test_rotated(self):
        return self.by(self.vendor(self.one("lab", **REVOKED), self.one("second")))

    @row("P", "P-resigned", "the same, and the new key has signed too: who made the statement counts no more", 4, "rule key_revoked")
    def test_resigned(self):
        self.countersign("second")
        return self.by(self.vendor(self.one("lab", **REVOKED), self.one("second")))

    @row("P", "P-successor", "the buyer's ended key has signed, and so has the one that followed", 0, "signed as buyer")
    def test_successor(self):
        self.countersign()
        self.countersign("second")
        return self.by(self.vendor(), self.buyer(self.one("buyer", PAST), self.one("second")), require=("vendor", "buyer"))

    @row("P", "P-policy-ended", "the policy has ended", 4, "rule policy_valid: the policy 'hall 2' is valid from 2020-01-01T00:00:00.000Z until 2025")
    def test_policy_ended(self):
        return self.by(self.vendor(), when=PAST)

    @row("P", "P-policy-early", "the policy is not in force yet", 4, "rule policy_valid")
    def test_policy_early(self):
        return self.by(self.vendor(), when=FUTURE)


class Thresholds(Policies):
    @row("P", "P-one-of-two", "two signers of the vendor are demanded, one has signed", 4, "rule threshold: too few signers of the vendor have signed: Example vendor: 1 of 2")
    def test_one_of_two(self):
        return self.by(self.party("vendor", [self.one("lab")], [self.one("second")], threshold=2))

    @row("P", "P-two-of-two", "two signers of the vendor are demanded, two have signed", 0, "signed as vendor: vendor 1 of Example vendor")
    def test_two_of_two(self):
        self.countersign("second")
        return self.by(self.party("vendor", [self.one("lab")], [self.one("second")], threshold=2))

    @row("P", "P-two-keys", "two are demanded, and one signer has signed with two keys", 4, "rule threshold")
    def test_two_keys(self):
        self.countersign("second")
        return self.by(self.party("vendor", [self.one("lab"), self.one("second")], [self.one("witness")], threshold=2))

    @row("P", "P-two-parties", "two are demanded, and one signer of each of two vendors has signed", 4, "rule threshold")
    def test_two_parties(self):
        self.countersign("second")
        return self.by(self.party("vendor", [self.one("lab")], [self.one("witness")], threshold=2),
                       self.party("vendor", [self.one("second")], [self.one("buyer")], name="Another vendor", threshold=2))

    @row("P", "P-same-signature-twice", "one signature twice where two signers are demanded", 4, "rule threshold")
    def test_same_signature(self):
        envelope = self.envelope()
        self.put({**envelope, "signatures": envelope["signatures"] * 2})
        return self.by(self.party("vendor", [self.one("lab")], [self.one("second")], threshold=2))


class Keys(Policies):
    @row("P", "P-fingerprint", "the policy has a fingerprint alone, and signer.pub is that key", 0, "signed as vendor")
    def test_fingerprint(self):
        return self.by(self.vendor(self.one("lab", file=False)))

    @row("P", "P-fingerprint-unknown", "the buyer's key is known by its fingerprint alone, and has signed", 4, "by its fingerprint alone: name its file there, or give it with --key")
    def test_unknown_bytes(self):
        self.countersign()
        return self.by(self.vendor(), self.buyer(self.one("buyer", file=False)), require=("vendor", "buyer"))

    @row("P", "P-fingerprint-key", "the same, with the key given by --key", 0, "signed as buyer")
    def test_given_bytes(self):
        self.countersign()
        return self.by(self.vendor(), self.buyer(self.one("buyer", file=False)), require=("vendor", "buyer"),
                       arguments=("--key", self.base / "buyer.key.pub"))

    @row("P", "P-key-unlisted", "--key of a key that has signed and that the policy does not have", 4, "rule key_listed: the policy does not have the key")
    def test_unlisted(self):
        self.countersign()
        return self.by(self.vendor(), arguments=("--key", self.base / "buyer.key.pub"))

    @row("P", "P-key-unsigned", "--key of a listed key that has not signed", 4, "has no valid signature of the key")
    def test_unsigned(self):
        return self.by(self.vendor(), self.buyer(), arguments=("--key", self.base / "buyer.key.pub"))

    @row("P", "P-add", "sign --add by the policy, of which the buyer's own role is still open", 0, "signed as vendor")
    def test_add(self):
        policy = self.write(self.vendor(), self.buyer(), require=("vendor", "buyer"))
        done = self.add("buyer", "--policy", policy)
        self.assertEqual(self.command("verify", self.dossier, "--policy", policy).returncode, 0)
        return done

    @row("P", "P-add-unlisted", "sign --add with a key that the policy does not have", 4, "rule key_listed")
    def test_add_unlisted(self):
        return self.add("second", "--policy", self.write(self.vendor(), self.buyer()))

    @row("P", "P-add-revoked", "sign --add with a revoked key", 4, "rule key_revoked")
    def test_add_revoked(self):
        return self.add("buyer", "--policy", self.write(self.vendor(), self.buyer(self.one("buyer", **REVOKED))))

    @row("P", "P-add-stranger", "sign --add to a statement of a stranger", 4, "rule required_role: no signature of a vendor counts")
    def test_add_stranger(self):
        return self.add("buyer", "--policy", self.write(self.vendor(self.one("second")), self.buyer()))


class Documents(Policies):
    """A policy that could mean two things is bad input."""

    @row("P", "P-no-schema", "a policy of another format", 2, "'assay.trust/2' is not 'assay.trust/1'")
    def test_schema(self):
        return self.by(self.vendor(), schema="assay.trust/2")

    @row("P", "P-member", "an unknown member", 2, "unknown field 'accept'")
    def test_member(self):
        return self.by({**self.vendor(), "accept": "all"})

    @row("P", "P-no-end", "a key without an end", 2, "the field 'valid_until' is missing")
    def test_no_end(self):
        return self.by(self.vendor(self.one("lab", {"valid_from": "2020-01-01"})))

    @row("P", "P-nothing-required", "a policy that requires no role", 2, "trust.json: require: ")
    def test_nothing(self):
        return self.by(self.vendor(), require=())

    @row("P", "P-role-word", "a role of another name", 2, "'owner' is not one of commissioner, vendor, buyer, witness")
    def test_word(self):
        return self.by(self.vendor(), require=("owner",))

    @row("P", "P-unfulfilled", "a required role that no party has", 2, "no party has the role buyer")
    def test_unfulfilled(self):
        return self.by(self.vendor(), require=("vendor", "buyer"))

    @row("P", "P-key-twice", "one key of two parties", 2, "twice")
    def test_twice(self):
        return self.by(self.vendor(), self.buyer(self.one("lab")), require=("vendor", "buyer"))

    @row("P", "P-party-twice", "one organisation as vendor and as buyer", 2, "has 'Example AG' twice")
    def test_party_twice(self):
        return self.by(self.vendor(name="Example AG"), self.buyer(name="Example AG"))

    @row("P", "P-signer-twice", "one signer twice in a party, for a threshold of two", 2, "'vendor 0' is there twice")
    def test_signer_twice(self):
        party = self.party("vendor", [self.one("lab")], [self.one("second")], threshold=2)
        party["signers"][1]["name"] = "vendor 0"
        return self.by(party)

    @row("P", "P-threshold-0", "a threshold of 0", 2, "threshold: ")
    def test_zero(self):
        return self.by(self.vendor(threshold=0))

    @row("P", "P-threshold-3", "a threshold above the number of signers", 2, "3 of 1 signers")
    def test_three(self):
        return self.by(self.vendor(threshold=3))

    @row("P", "P-other-file", "a file with another key than the fingerprint says", 2, "has the fingerprint")
    def test_other_file(self):
        return self.by(self.vendor({**self.one("lab"), "file": str(self.base / "buyer.key.pub")}))

    @row("P", "P-no-file", "a key file that is not there", 2, "nowhere.pub")
    def test_no_file(self):
        return self.by(self.vendor({**self.one("lab"), "file": "nowhere.pub"}))

    @row("P", "P-backwards", "a time that ends before it begins", 2, "valid_until: is not after valid_from")
    def test_backwards(self):
        return self.by(self.vendor(self.one("lab", {"valid_from": "2026-01-01", "valid_until": "2026-01-01"})))

    @row("P", "P-day", "a day that does not exist", 2, "'2026-02-30' is not a time")
    def test_day(self):
        return self.by(self.vendor(self.one("lab", {**EVER, "valid_from": "2026-02-30"})))

    @row("P", "P-twice-key", "a member twice, the second one without the revocation", 2, "is in one object twice")
    def test_member_twice(self):
        path = self.write(self.vendor(self.one("lab", **REVOKED)))
        path.write_text(path.read_text().replace('"parties":', '"parties": [], "parties":', 1))
        return self.command("verify", self.dossier, "--policy", path)

    @row("P", "P-neither", "neither --key nor --policy", 2, "--key: is missing")
    def test_neither(self):
        return self.command("verify", self.dossier)

    @row("P", "P-require-alone", "--require without --policy", 2, "--require: needs --policy")
    def test_require_alone(self):
        return self.verify("--require", "buyer")

    @row("P", "P-require-word", "--require of a word that is no role", 2, "'owner' is not one of commissioner, vendor, buyer, witness")
    def test_require_word(self):
        return self.by(self.vendor(), arguments=("--require", "vendor,owner"))

    def test_the_result_as_json_names_who_counted(self):
        done = self.by(self.vendor(), arguments=("--json",))
        self.assertEqual(json.loads(done.stdout)["policy"],
                         {"name": "hall 2", "counted": [{"role": "vendor", "party": "Example vendor", "signer": "vendor 0",
                                                         "key": self.fingerprint["lab"]}]})

    def test_a_key_file_is_relative_to_the_policy(self):
        key = pathlib.Path(self.scratch / "lab.pub")
        key.write_bytes((self.base / "lab.key.pub").read_bytes())
        self.assertEqual(self.by(self.vendor({**self.one("lab"), "file": "lab.pub"})).returncode, 0)


if __name__ == "__main__":
    main()
