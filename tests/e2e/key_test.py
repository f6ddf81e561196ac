"""Keys: forged, ambiguous, foreign, unreadable, too readable."""
import base64
import os
import subprocess

from attacks import DEADLINE_S, REPORT, Bench, Document, main, row, run  # noqa: F401: Document is a test

SPKI = bytes.fromhex("302a300506032b6570032100")
# The y coordinates of the points of small order, with either sign, and of points that are not reduced.
SMALL_ORDER = [y[:-2] + f"{int(y[-2:], 16) | sign:02x}" for sign in (0, 0x80) for y in (
    "00" * 32, "01" + "00" * 31, "ec" + "ff" * 30 + "7f", "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a", "ed" + "ff" * 30 + "7f", "ee" + "ff" * 30 + "7f")]


def pem(raw):
    return "-----BEGIN PUBLIC KEY-----\n" + base64.b64encode(SPKI + raw).decode() + "\n-----END PUBLIC KEY-----\n"


class Public(Bench):
    def with_key(self, text):
        (self.scratch / "key.pub").write_text(text)
        return self.verify("--key", "{scratch}/key.pub")

    def lab(self):
        return (self.base / "lab.key.pub").read_text()

    def buyer(self):
        return (self.base / "buyer.key.pub").read_text()

    @row("K", "K1", "14 keys of small order or not reduced", 2, "key.pub: is ")
    def test_small_order(self):
        self.assertEqual(len(SMALL_ORDER), 14)
        for raw in SMALL_ORDER:
            done = self.with_key(pem(bytes.fromhex(raw)))
            self.assertEqual(done.returncode, 2, raw)
        return done

    @row("K", "K2", "words before and behind the key", 0, "verified: accepted")
    def test_words(self):
        return self.with_key("The key of the lab:\n" + self.lab() + "Call us to compare it.\n")

    @row("K", "K3", "two keys in one file, the wanted one second", 2, "has 2 PEM blocks, and it is not clear which key is meant")
    def test_second(self):
        return self.with_key(self.buyer() + self.lab())

    @row("K", "K3b", "two keys in one file, the wanted one first", 2, "has 2 PEM blocks, and it is not clear which key is meant")
    def test_first(self):
        return self.with_key(self.lab() + self.buyer())

    @row("K", "K4", "the private key in place of the public one", 2, "is not a public key in PEM")
    def test_private(self):
        return self.verify("--key", "{base}/lab.key")

    def generated(self, *algorithm):
        made = subprocess.run(["openssl", "genpkey", "-algorithm", *algorithm], capture_output=True, timeout=DEADLINE_S, check=True)
        public = subprocess.run(["openssl", "pkey", "-pubout"], input=made.stdout, capture_output=True, timeout=DEADLINE_S, check=True)
        return self.with_key(public.stdout.decode())

    @row("K", "K5", "an RSA key of 2048 bits", 2, "is an RSA key of 2048 bits")
    def test_rsa(self):
        return self.generated("RSA")

    @row("K", "K6", "an Ed448 key", 2, "is a key of a kind that does not sign dossiers")
    def test_ed448(self):
        return self.generated("ED448")

    @row("K", "K7", "a pipe", 2, "key.pub: is not a regular file")
    def test_pipe(self):
        os.mkfifo(self.scratch / "key.pub")
        return self.verify("--key", "{scratch}/key.pub")

    @row("K", "K8", "a link to an endless device", 2, "key.pub: is not a regular file")
    def test_device(self):
        (self.scratch / "key.pub").symlink_to("/dev/zero")
        return self.verify("--key", "{scratch}/key.pub")

    @row("K", "K9", "a sparse file of 100 GiB", 2, "107374182400 bytes, over the limit of 65536")
    def test_huge(self):
        with open(self.scratch / "key.pub", "wb") as file:
            file.truncate(100 << 30)
        return self.verify("--key", "{scratch}/key.pub")

    @row("K", "K10", "an empty file", 2, "is not a public key in PEM")
    def test_empty(self):
        return self.with_key("")


class Private(Bench):
    def sign(self, key, *arguments):
        return self.command("sign", self.run_directory, "--out", self.scratch / "signed", "--key", key, *arguments)

    def copied(self, name="own.key"):
        key = self.scratch / name
        key.write_bytes((self.base / "lab.key").read_bytes())
        key.chmod(0o600)
        return key

    @row("K", "K11", "a private key that all users can read and write", 2, "has the mode 0666: others can use this private key")
    def test_open(self):
        key = self.copied()
        key.chmod(0o666)
        return self.sign(key)

    @row("K", "K12", "an encrypted key without its passphrase: no prompt", 2, "enc.key: is encrypted")
    def test_encrypted(self):
        (self.scratch / "pass").write_text("correct horse\n")
        self.command("keygen", self.scratch / "enc.key", "--passphrase-file", self.scratch / "pass", code=0)
        return self.sign(self.scratch / "enc.key")

    @row("K", "K13", "keygen onto a link that leads nowhere", 2, "File exists")
    def test_link(self):
        (self.scratch / "new.key").symlink_to(self.scratch / "nowhere")
        done = self.command("keygen", self.scratch / "new.key")
        self.assertFalse((self.scratch / "new.key.pub").exists())
        return done

    @row("K", "K14", "this machine's own key, not stated to be one", 2, "is this machine's own key, for which no organisation vouches")
    def test_machine(self):
        state = self.scratch / "state/assay"
        state.mkdir(parents=True)
        environment = dict(self.environment, XDG_STATE_HOME=str(self.scratch / "state"))
        for name in ("lab.key", "lab.key.pub"):
            (state / name.replace("lab", "machine")).write_bytes((self.base / name).read_bytes())
        return run(REPORT, "sign", self.run_directory, "--out", self.scratch / "signed", "--key", self.base / "lab.key", env=environment)


class Ssh(Bench):
    """Keys that ssh-keygen made."""

    def made(self, *arguments, kind="ed25519", passphrase=""):
        path = self.scratch / "id"
        subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "ada@example", "-f", path, *arguments], timeout=DEADLINE_S,
                       check=True, stdin=subprocess.DEVNULL)
        return path

    def sign(self, key):
        return self.command("sign", self.run_directory, "--out", self.scratch / "signed", "--key", key)

    def bent(self, change):
        """The private key after `change` of its bytes."""
        path = self.made()
        lines = path.read_text().splitlines()
        data = bytearray(base64.b64decode("".join(lines[1:-1])))
        path.write_text("\n".join([lines[0], base64.b64encode(bytes(change(data))).decode(), lines[-1]]) + "\n")
        return self.sign(path)

    @row("K", "K15", "signed with an Ed25519 key of OpenSSH, and verified with its .pub", 0, "verified: accepted")
    def test_signed(self):
        self.assertEqual(self.sign(self.made()).returncode, 0)
        return self.verify("--key", self.scratch / "id.pub", dossier=self.scratch / "signed")

    @row("K", "K15-openssl", "the same, its signature checked by openssl alone", 0, "Signature Verified Successfully")
    def test_by_hand(self):
        self.sign(self.made())
        self.statement = self.scratch / "signed/statement.dsse.json"
        payload, kind = self.payload(), self.envelope()["payloadType"]
        (self.scratch / "message").write_bytes(b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload))
        (self.scratch / "sig").write_bytes(base64.b64decode(self.envelope()["signatures"][0]["sig"]))
        return run("openssl", "pkeyutl", "-verify", "-pubin", "-inkey", self.scratch / "signed/signer.pub", "-rawin", "-in", self.scratch / "message",
                   "-sigfile", self.scratch / "sig")

    @row("K", "K15-other", "a key of OpenSSH that has not signed", 4, "has no valid signature of the key")
    def test_other(self):
        self.made()
        return self.verify("--key", self.scratch / "id.pub")

    @row("K", "K15-encrypted", "a private key of OpenSSH with a passphrase", 2, "is encrypted as OpenSSH does it, which is not supported")
    def test_encrypted(self):
        return self.sign(self.made(passphrase="correct horse"))

    @row("K", "K15-ecdsa", "a private ECDSA key of OpenSSH, which only its agent signs with", 2, "id: is not an Ed25519 key of OpenSSH")
    def test_ecdsa(self):
        return self.sign(self.made(kind="ecdsa"))

    @row("K", "K15-rsa-pub", "a public RSA key of OpenSSH", 2, "is an SSH key of the kind ssh-rsa")
    def test_rsa_public(self):
        self.made(kind="rsa")
        return self.verify("--key", self.scratch / "id.pub")

    @row("K", "K15-two", "two public keys of OpenSSH in one file", 2, "has several lines, and it is not clear which key is meant")
    def test_two(self):
        text = self.made().with_suffix(".pub").read_text()
        (self.scratch / "two.pub").write_text(text * 2)
        return self.verify("--key", "{scratch}/two.pub")

    def public(self, raw, kind=b"ssh-ed25519", behind=b""):
        blob = len(kind).to_bytes(4, "big") + kind + len(raw).to_bytes(4, "big") + raw + behind
        (self.scratch / "own.pub").write_text("ssh-ed25519 " + base64.b64encode(blob).decode() + " ada@example\n")
        return self.verify("--key", "{scratch}/own.pub")

    @row("K", "K15-small", "public keys of OpenSSH of small order or not reduced", 2, "own.pub: is ")
    def test_small_order(self):
        for raw in SMALL_ORDER:
            done = self.public(bytes.fromhex(raw))
            self.assertEqual(done.returncode, 2, raw)
            self.assertIn("own.pub: is ", done.stderr)
        return done

    @row("K", "K15-blob", "a public key of OpenSSH with bytes behind it, or of another kind inside", 2, "is not a public key of OpenSSH")
    def test_blob(self):
        for words in ({"behind": b"x"}, {"kind": b"ssh-rsa"}):
            self.assertIn("is not a public key of OpenSSH", self.public(b"a" * 32, **words).stderr)
        return self.public(b"a" * 31)

    @row("K", "K15-halves", "a private key of OpenSSH whose seed is of another key", 2, "has a private half that is not of its public half")
    def test_halves(self):
        def change(data):
            at = data.rindex(b"\0\0\0\x40") + 4
            data[at] ^= 1
            return data
        return self.bent(change)

    @row("K", "K15-cut", "a private key of OpenSSH that is cut off", 2, "is not an Ed25519 key of OpenSSH")
    def test_cut(self):
        return self.bent(lambda data: data[:80])

    @row("K", "K15-open", "a private key of OpenSSH that others can read", 2, "others can use this private key")
    def test_open(self):
        self.made().chmod(0o644)
        return self.sign(self.scratch / "id")


if __name__ == "__main__":
    main()
