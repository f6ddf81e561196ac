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

    @row("K", "K5", "an RSA key", 2, "is not an Ed25519 key")
    def test_rsa(self):
        return self.generated("RSA")

    @row("K", "K6", "an Ed448 key", 2, "is not an Ed25519 key")
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


if __name__ == "__main__":
    main()
