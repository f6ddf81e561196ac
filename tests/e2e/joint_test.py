"""Joint dossiers: several sites under one statement, and a site that has grown; every part stays a dossier by itself."""
import base64
import json
import shutil

from attacks import MAKE_RUN, TYPE, Document, canonical, encoding, main, row, run  # noqa: F401: Document is a test
from policies import Policies

#        site      run  first count serials     copy bandwidth
RUNS = {"old": ("hall-3", 1, 1, 8, "SN-hall3-", 4.62e11), "new": ("hall-3", 2, 9, 4, "SN-hall3-", 4.6e11),
        "slow": ("hall-3", 3, 9, 3, "SN-hall3-", 4.2e11), "same": ("hall-3", 4, 8, 8, "SN-again-", 4.62e11),
        "south": ("south", 5, 1, 8, "SN-south-", 4.62e11), "moved": ("west", 6, 1, 8, "SN-hall3-", 4.62e11),
        "failed": ("east", 7, 1, 8, "SN-east-0", 2.0e11), "small": ("small", 8, 1, 2, "SN-small-", 4.62e11)}


class Joints(Policies):
    """lab.key has signed every part; buyer.key joins them."""

    def folder(self, name):
        """The run of this name, judged, reported and signed once for all tests."""
        directory = self.base / name
        if not directory.exists():
            site, number, first, count, serials, level = RUNS[name]
            made = run(MAKE_RUN, "fleet", directory, site, f"5f0c3c1e-8a51-4f0e-9b64-0b1d5a7e2c{number:02}", first, count, serials, level)
            self.assertEqual(made.returncode, 0, made.stderr)
            self.command("report", directory, code=0)
            self.command("sign", directory, "--key", self.base / "lab.key", "--role", "vendor", "--name", "Ada", code=0)
        return directory / "dossier"

    def join(self, command, *names, by="buyer", keys=("lab",), more=()):
        known = [word for name in keys for word in ("--with-key", self.base / f"{name}.key.pub")]
        return self.command(command, *(name if "/" in str(name) else self.folder(name) for name in names), "--key", self.base / f"{by}.key",
                            *known, "--out", self.scratch / "joint", *more)

    def joined(self, command, *names):
        """A joint dossier of these runs, made once for all tests."""
        made = self.base / "-".join((command, *names))
        if not made.exists():
            done = self.join(command, *names)
            self.assertEqual(done.returncode, 0, done.stderr)
            (self.scratch / "joint").rename(made)
        shutil.copytree(made, self.scratch / "joint")
        self.part = self.scratch / "joint/parts/01"

    def check(self, *arguments, keys=("lab", "buyer")):
        known = [word for name in keys for word in ("--key", self.base / f"{name}.key.pub")]
        return self.command("verify", self.scratch / "joint", *known, *arguments)

    def countersign(self, name, *arguments):
        return self.command("sign", self.scratch / "joint", "--add", "--key", self.base / f"{name}.key", *arguments)

    def countersigned(self, name, *arguments):
        done = self.countersign(name, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)

    def bent(self, change, by="buyer", payload_type=TYPE):
        """The joint statement after `change`, signed again."""
        path = self.scratch / "joint/joint.dsse.json"
        document = json.loads(base64.b64decode(json.loads(path.read_text())["payload"]))
        change(document)
        payload = canonical(document)
        signature = self.signature(encoding(payload, payload_type), self.base / f"{by}.key")
        path.write_text(json.dumps({"payloadType": payload_type, "payload": base64.b64encode(payload).decode(),
                                    "signatures": [{"sig": base64.b64encode(signature).decode()}]}))


class Merging(Joints):
    @row("J", "J-merge", "accepted dossiers of two sites", 0, "accepted: 2 parts with 16 nodes, each accepted by itself.")
    def test_merge(self):
        return self.join("merge", "old", "south")

    @row("J", "J-verify", "the joint dossier, by the keys of all signers", 0, "verified: accepted: 2 parts with 16 nodes")
    def test_verify(self):
        self.joined("merge", "old", "south")
        done = self.check("--accepted")
        document = json.loads(self.check("--json").stdout)
        self.assertEqual([part["site"] for part in document["parts"]], ["hall-3", "south"])
        return done

    @row("J", "J-part", "a part of it, verified by itself", 0, "verified: accepted\n  24 of 24 required cells pass.")
    def test_part(self):
        self.joined("merge", "old", "south")
        return self.command("verify", self.part, "--key", self.base / "lab.key.pub")

    @row("J", "J-rejected", "one of the dossiers is rejected", 4, "part 02: is rejected: ")
    def test_rejected(self):
        return self.join("merge", "old", "failed")

    @row("J", "J-incomplete", "one of them is incomplete", 4, "part 02: is incomplete: ")
    def test_incomplete(self):
        return self.join("merge", "old", "small")

    @row("J", "J-serial", "machines that were tested at another site before", 4, "r01 of part 01 and r01 of part 02 show the same machine SN-hall3-01")
    def test_serial(self):
        return self.join("merge", "old", "moved")

    @row("J", "J-twice", "the same dossier twice", 4, "part 01 and part 02: are of the same run")
    def test_twice(self):
        return self.join("merge", "old", "old")

    @row("J", "J-one-site", "two dossiers of one site", 4, "are both of the site hall-3")
    def test_one_site(self):
        return self.join("merge", "old", "same")

    @row("J", "J-alone", "one dossier alone", 4, "is one dossier alone")
    def test_alone(self):
        return self.join("merge", "old")

    @row("J", "J-targets", "dossiers of two profiles", 4, "part 01 and part 02: have other targets: fleet revision 1 (")
    def test_targets(self):
        return self.join("merge", "old", self.run_directory / "dossier")

    @row("J", "J-signer", "a dossier of a signer whose key was not given", 4, "part 01: statement.dsse.json: has no valid signature of any key that was given")
    def test_signer(self):
        return self.join("merge", "old", "south", keys=("second",))

    @row("J", "J-no-key", "no key and no policy", 2, "--with-key: is missing")
    def test_no_key(self):
        return self.join("merge", "old", "south", keys=())

    @row("J", "J-tampered", "a dossier that does not verify", 4, "SHA-256 differs")
    def test_tampered(self):
        copy = self.scratch / "copy"
        shutil.copytree(self.folder("south"), copy)
        path = copy / "evidence/journal.jsonl"
        path.write_bytes(path.read_bytes().replace(b"r01", b"r02"))
        done = self.join("merge", "old", copy)
        self.assertFalse((self.scratch / "joint").exists())
        self.assertEqual([path.name for path in self.scratch.iterdir() if "partial" in path.name], [])
        return done

    @row("J", "J-run", "the folder of a run in place of its dossier", 2, "is the folder of a run")
    def test_run(self):
        return self.join("merge", "old", self.folder("south").parent)

    @row("J", "J-exists", "a folder that exists already", 4, "exists already")
    def test_exists(self):
        (self.scratch / "joint").mkdir()
        return self.join("merge", "old", "south")


class Altered(Joints):
    """A joint dossier in the hands of who passes it on, or of a signer who lies."""

    def setUp(self):
        super().setUp()
        self.joined("merge", "old", "south")

    @row("J", "J-altered", "a byte of a part's evidence", 4, "part 01: evidence/journal.jsonl: SHA-256 differs")
    def test_altered(self):
        path = self.part / "evidence/journal.jsonl"
        path.write_bytes(path.read_bytes().replace(b"r01", b"r02", 1))
        return self.check()

    @row("J", "J-exchanged", "a part exchanged for another signed dossier", 4, "does not follow from the parts: ")
    def test_exchanged(self):
        shutil.rmtree(self.part)
        shutil.copytree(self.folder("moved"), self.part)
        return self.check()

    @row("J", "J-order", "parts in another order", 4, "does not follow from the parts: ")
    def test_order(self):
        parts = self.scratch / "joint/parts"
        for old, new in (("01", "x"), ("02", "01"), ("x", "02")):
            (parts / old).rename(parts / new)
        return self.check()

    @row("J", "J-removed", "a part taken out", 4, "has 1 parts, the statement 2")
    def test_removed(self):
        shutil.rmtree(self.scratch / "joint/parts/02")
        return self.check()

    @row("J", "J-added", "a part put in", 4, "joint/parts/03: is no part of a joint dossier")
    def test_added(self):
        shutil.copytree(self.folder("moved"), self.scratch / "joint/parts/03")
        return self.check()

    @row("J", "J-file", "a certificate beside the parts", 4, "CERTIFICATE.html: is no part of a joint dossier")
    def test_file(self):
        (self.scratch / "joint/CERTIFICATE.html").write_text("ACCEPTED")
        return self.check()

    @row("J", "J-link", "a part that is a link", 4, "joint/parts/01: is no part of a joint dossier")
    def test_link(self):
        shutil.rmtree(self.part)
        self.part.symlink_to(self.folder("old"))
        return self.check()

    @row("J", "J-flipped", "the statement changed, not signed again", 4, "joint.dsse.json: has no valid signature of any key that was given")
    def test_flipped(self):
        path = self.scratch / "joint/joint.dsse.json"
        envelope = json.loads(path.read_text())
        payload = base64.b64decode(envelope["payload"]).replace(b"south", b"north")
        path.write_text(json.dumps({**envelope, "payload": base64.b64encode(payload).decode()}))
        return self.check()

    @row("J", "J-signed", "a statement signed with other words about a part", 4, "does not follow from the parts: ")
    def test_signed(self):
        self.bent(lambda document: document["predicate"]["parts"][0].update(site="north"))
        return self.check()

    @row("J", "J-member", "a statement with a member of its own", 4, "unknown field 'guarantee'")
    def test_member(self):
        self.bent(lambda document: document["predicate"].update(guarantee="for life"))
        return self.check()

    @row("J", "J-kind", "a merge that is said to be an expansion", 4, "part 01 and part 02: are of the sites hall-3 and south")
    def test_kind(self):
        self.bent(lambda document: document["predicate"].update(kind="expand"))
        return self.check()

    @row("J", "J-issued", "a statement issued before its parts were measured", 4, "was issued 2025-01-01T00:00:00.000Z, before part 01 ended")
    def test_issued(self):
        self.bent(lambda document: document["predicate"].update(issuedAt="2025-01-01T00:00:00.000Z"))
        return self.check()

    @row("J", "J-type", "a payload of another type", 4, "is not 'application/vnd.in-toto+json'")
    def test_type(self):
        self.bent(lambda document: None, payload_type="application/json")
        return self.check()

    @row("J", "J-as-joint", "the statement of a dossier offered as a joint one", 4, "predicateType: is not 'urn:uuid:112ea9c6-4ef6-4368-bc2d-5a6dd78d850e#attestation/joint/v1'")
    def test_as_joint(self):
        shutil.copy(self.part / "statement.dsse.json", self.scratch / "joint/joint.dsse.json")
        return self.check()

    @row("J", "J-former", "a joint statement under the name that its type had formerly", 0, "verified: accepted")
    def test_former(self):
        self.bent(lambda document: document.update(predicateType="https://assay-suite.example/attestation/joint/v1"))
        return self.check()

    @row("J", "J-joiner", "the key of who joined is not given", 4, "joint.dsse.json: has no valid signature of any key that was given")
    def test_joiner(self):
        return self.check(keys=("lab",))

    @row("J", "J-stranger", "a second signature, of a key that was not given", 0, "note: 1 more signatures, by other keys, were not checked")
    def test_stranger(self):
        self.countersigned("second", "--with-key", self.base / "lab.key.pub", "--with-key", self.base / "buyer.key.pub")
        return self.check()

    @row("J", "J-idle", "a key is given that has signed nothing", 4, "neither it nor a part has a valid signature of the key")
    def test_idle(self):
        return self.check(keys=("lab", "buyer", "second"))

    @row("J", "J-counter-key", "countersigned, and the key of it is given", 0, "  countersigned by the key")
    def test_counter_key(self):
        self.countersigned("second", "--with-key", self.base / "lab.key.pub", "--with-key", self.base / "buyer.key.pub")
        return self.check(keys=("lab", "buyer", "second"))

    @row("J", "J-counter-altered", "countersigning a joint dossier with an altered part", 4, "part 01: evidence/journal.jsonl: SHA-256 differs")
    def test_counter_altered(self):
        path = self.part / "evidence/journal.jsonl"
        path.write_bytes(path.read_bytes().replace(b"r01", b"r02", 1))
        statement = self.scratch / "joint/joint.dsse.json"
        before = statement.read_bytes()
        done = self.countersign("second", "--with-key", self.base / "lab.key.pub", "--with-key", self.base / "buyer.key.pub")
        self.assertEqual(statement.read_bytes(), before)
        return done

    @row("J", "J-counter-twice", "who joined countersigns", 4, "joint.dsse.json: is signed by this key already")
    def test_counter_twice(self):
        return self.countersign("buyer", "--with-key", self.base / "lab.key.pub", "--with-key", self.base / "buyer.key.pub")

    @row("J", "J-counter-option", "countersigning with an option that is of one dossier", 2, "--run-id: is of one dossier, and this is a joint one")
    def test_counter_option(self):
        return self.countersign("second", "--with-key", self.base / "lab.key.pub", "--run-id", "5f0c3c1e-8a51-4f0e-9b64-0b1d5a7e2c01")

    @row("J", "J-option", "an option that is of one dossier", 2, "--site: is of one dossier, and this is a joint one")
    def test_option(self):
        return self.check("--site", "hall-3")

    @row("J", "J-profile", "other targets than expected", 4, "part 01: statement.dsse.json: has the profile 'fleet', expected 'host'")
    def test_profile(self):
        return self.check("--profile", "host")


class Growing(Joints):
    @row("J", "J-expand", "eight accepted nodes become twelve: four are no fleet, over all they are", 0,
         "accepted: 2 parts with 12 nodes; 12 cells with a limit of the fleet pass over all nodes, all others in their parts.")
    def test_expand(self):
        self.joined("expand", "old", "new")
        return self.check("--accepted")

    @row("J", "J-evidence", "the old evidence after the expansion: as it was", 0, "verified: accepted")
    def test_evidence(self):
        self.joined("expand", "old", "new")
        for path in self.folder("old").rglob("*"):
            if path.is_file():
                self.assertEqual(path.read_bytes(), (self.part / path.relative_to(self.folder("old"))).read_bytes())
        return self.command("verify", self.part, "--key", self.base / "lab.key.pub")

    @row("J", "J-slow", "new nodes that are slower than the old ones: over all nodes they fail", 1, "verified: rejected: 2 parts with 11 nodes; over all nodes memory.alike on r09 is fail")
    def test_slow(self):
        self.joined("expand", "old", "slow")
        return self.check("--accepted")

    @row("J", "J-hidden", "the same, signed as accepted", 4, "does not follow from the parts: ")
    def test_hidden(self):
        self.joined("expand", "old", "slow")
        self.bent(lambda document: document["predicate"]["verdict"].update(overall="accepted", reason="all pass"))
        return self.check()

    @row("J", "J-names", "a node in both parts", 4, "part 01 and part 02: both test the node r08")
    def test_names(self):
        return self.join("expand", "old", "same")

    @row("J", "J-sites", "an expansion of another site", 4, "are of the sites hall-3 and south")
    def test_sites(self):
        return self.join("expand", "old", "south")


if __name__ == "__main__":
    main()
