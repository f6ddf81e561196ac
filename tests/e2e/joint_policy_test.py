"""Trust policies that assay drafts, and joint dossiers by one: who may join, who countersigns, and time stamps of their signatures."""
import json

from attacks import Document, main, row  # noqa: F401: Document is a test
from joints import Joints
from policies import REVOKED, Policies
from stamps import Authority


class Drafted(Policies):
    """`trust init`, by keys and roles."""

    def draft(self, *words):
        keys = [word.replace("=", f"={self.base}/") if word.endswith(".pub") else word for word in words]
        return self.command("trust", "init", *keys, "--out", self.scratch / "trust.json")

    def test_verify_takes_a_draft_as_it_is(self):
        done = self.draft("--key", "vendor=lab.key.pub", "--key", "buyer=buyer.key.pub", "--name", "hall 3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"vendor: lab, key {self.fingerprint['lab']}", done.stderr)
        by = ("--policy", self.scratch / "trust.json")
        self.assertIn("signed as vendor: lab of vendor", self.command("verify", self.dossier, *by, code=0).stdout)
        both = (*by, "--require", "buyer,vendor")
        self.assertIn("no signature of a buyer counts", self.command("verify", self.dossier, *both, code=4).stderr)
        self.command("sign", self.dossier, "--add", "--key", self.base / "buyer.key", *by, code=0)
        self.assertIn("signed as buyer: buyer of buyer", self.command("verify", self.dossier, *both, code=0).stdout)

    def test_a_draft_that_verify_would_refuse_is_not_written(self):
        lab = ("--key", "vendor=lab.key.pub")
        for words, said in (
            ((*lab, "--key", "buyer=lab.key.pub"), f"has the key {self.fingerprint['lab']} twice"),
            ((*lab, "--require", "buyer"), "no party has the role buyer"),
            (("--key", "owner=lab.key.pub"), "commissioner, vendor, buyer or witness"),
            (("--key", "lab.key.pub"), "is not ROLE=FILE"),
            ((*lab, "--until", "2020-01-01"), "is not after valid_from"),
            ((*lab, "--until", "soon"), "'soon'"),
            (("--key", "vendor=nobody.pub"), "nobody.pub"),
        ):
            with self.subTest(said):
                done = self.draft(*words)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(said, done.stderr)
                self.assertFalse((self.scratch / "trust.json").exists())

    def test_a_policy_that_is_there_is_kept(self):
        (self.scratch / "trust.json").write_text("mine")
        self.assertEqual(self.draft("--key", "vendor=lab.key.pub").returncode, 2)
        self.assertEqual((self.scratch / "trust.json").read_text(), "mine")


class Governed(Joints):
    """By a trust policy."""

    def policy(self, *parties, **more):
        return self.write(*parties, **more)

    def by(self, policy, *arguments):
        return self.command("verify", self.scratch / "joint", "--policy", policy, *arguments)

    def merged(self, policy, **more):
        return self.join("merge", "old", "south", keys=(), more=("--policy", policy, "--role", "buyer"), **more)


class Joining(Governed):
    @row(
        "JP",
        "J-policy",
        "vendor's dossiers joined by the buyer, by a policy",
        0,
        "signed as buyer: buyer 0 of Example buyer",
    )
    def test_policy(self):
        policy = self.policy(self.vendor(), self.buyer())
        self.assertEqual(self.merged(policy).returncode, 0)
        return self.by(policy)

    @row("JP", "J-policy-part", "the policy requires the buyer, who has not signed the parts", 4, "part 01: ")
    def test_part_policy(self):
        self.assertEqual(self.merged(self.policy(self.vendor(), self.buyer())).returncode, 0)
        done = self.by(self.policy(self.vendor(), self.buyer(), require=("vendor", "buyer")))
        self.assertIn("rule required_role: no signature of a buyer counts", done.stderr)
        return done

    @row("JP", "J-policy-revoked", "the vendor's key was revoked since", 4, "rule key_revoked")
    def test_revoked(self):
        self.assertEqual(self.merged(self.policy(self.vendor(), self.buyer())).returncode, 0)
        return self.by(self.policy(self.vendor(self.one("lab", **REVOKED)), self.buyer()))

    @row(
        "JP",
        "J-policy-stranger",
        "who joins is not in the policy",
        4,
        "rule key_listed: the policy does not have the key",
    )
    def test_stranger(self):
        return self.merged(self.policy(self.vendor(), self.buyer()), by="second")

    @row(
        "JP",
        "J-policy-role",
        "the vendor joins in the buyer's role",
        4,
        "rule maker_role: vendor 0 signed as 'buyer', and is the vendor",
    )
    def test_role(self):
        return self.merged(self.policy(self.vendor(), self.buyer()), by="lab")


class Countersigning(Governed):
    """The buyer has joined the vendor's dossiers; the vendor is to hold for the whole, too."""

    BOTH = ("--require", "buyer,vendor")

    def setUp(self):
        super().setUp()
        self.both = self.policy(self.vendor(), self.buyer())
        self.joined("merge", "old", "south")

    def joined(self, command, *names):
        done = self.merged(self.both)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.part = self.scratch / "joint/parts/01"

    def signatures(self, change):
        path = self.scratch / "joint/joint.dsse.json"
        envelope = json.loads(path.read_text())
        path.write_text(json.dumps({**envelope, "signatures": change(envelope["signatures"])}))

    @row(
        "JP",
        "J-counter",
        "the vendor countersigns what the buyer joined, and both are required",
        0,
        ", signed as vendor: vendor 0 of Example vendor",
    )
    def test_counter(self):
        self.countersigned("lab", "--policy", self.both, *self.BOTH)
        done = self.by(self.both, *self.BOTH)
        self.assertIn("countersigned by the key", done.stdout)
        signatures = json.loads(self.by(self.both, *self.BOTH, "--json").stdout)["signatures"]
        self.assertEqual(sorted(one["role"] for one in signatures), ["buyer", "vendor"])
        return done

    @row(
        "JP",
        "J-counter-missing",
        "both are required, and the vendor has signed the parts alone",
        4,
        "rule required_role: no signature of a vendor counts",
    )
    def test_missing(self):
        return self.by(self.both, *self.BOTH)

    @row(
        "JP",
        "J-counter-maker",
        "the signature of who joined is taken out",
        4,
        "rule maker_listed: no signature of buyer 0",
    )
    def test_maker(self):
        self.countersigned("lab", "--policy", self.both)
        self.signatures(lambda all_of_them: all_of_them[1:])
        return self.by(self.both)

    @row("JP", "J-counter-stranger", "one countersigns whom the policy does not have", 4, "rule key_listed")
    def test_counter_stranger(self):
        return self.countersign("second", "--policy", self.both)

    @row("JP", "J-counter-revoked", "the countersigner's key was revoked since", 4, "rule key_revoked")
    def test_counter_revoked(self):
        witness = self.party("witness", [self.one("witness")])
        policy = self.policy(self.vendor(), self.buyer(), witness)
        self.countersigned("witness", "--policy", policy)
        revoked = self.party("witness", [self.one("witness", **REVOKED)])
        return self.by(self.policy(self.vendor(), self.buyer(), revoked), "--require", "witness")

    def stamp(self, directory, key, authority):
        signature = ("timestamp", directory, "--key", self.base / f"{key}.key.pub")
        request = self.scratch / f"{directory.name}.tsq"
        self.assertEqual(self.command(*signature, "--request", request).returncode, 0)
        done = self.command(*signature, "--response", authority.answer(request), "--tsa", authority.folder / "ca.pem")
        self.assertEqual(done.returncode, 0, done.stderr)

    def stamp_parts(self, authority):
        for part in ("01", "02"):
            self.stamp(self.scratch / "joint/parts" / part, "lab", authority)

    @row("JP", "J-stamp", "the joint statement and its parts have time stamps", 0, "by CN = Example Time")
    def test_stamp(self):
        authority = Authority(self.scratch / "tsa")
        self.stamp_parts(authority)
        self.stamp(self.scratch / "joint", "buyer", authority)
        done = self.by(self.both, "--tsa", authority.folder / "ca.pem")
        self.assertIn(", stamped ", done.stdout)
        return done

    @row(
        "JP",
        "J-stamp-parts",
        "time stamps are demanded, and the parts alone have them",
        4,
        "joint.dsse.json: the signature of the key ",
    )
    def test_stamp_parts(self):
        authority = Authority(self.scratch / "tsa")
        self.stamp_parts(authority)
        done = self.by(self.both, "--tsa", authority.folder / "ca.pem")
        self.assertIn("has no time stamp", done.stderr)
        return done

    @row(
        "JP",
        "J-stamp-early",
        "a time stamp of an hour before the joint statement was issued",
        4,
        ", before the joint statement was issued (",
    )
    def test_stamp_early(self):
        authority = Authority(self.scratch / "tsa")
        self.stamp_parts(authority)
        early = Authority(self.scratch / "early", shift_s=-3600)
        self.stamp(self.scratch / "joint", "buyer", early)
        (self.scratch / "both.pem").write_text(
            "".join((one.folder / "ca.pem").read_text() for one in (authority, early))
        )
        return self.by(self.both, "--tsa", self.scratch / "both.pem")


if __name__ == "__main__":
    main()
