"""Who holds the key: an SSH agent, a token by PKCS#11; and other kinds of keys than Ed25519."""
import base64
import hashlib
import os
import re
import subprocess

from attacks import DEADLINE_S, REPORT, Document, encoding, main, row, run  # noqa: F401: Document is a test
from held import Held, tool

SIGNED = "verified: accepted"
NO_SIGNATURE = "has no valid signature of the key"
NAMESPACE = b"assay-dossier"
TOUCHED, COUNTER = b"\x01", (7).to_bytes(4, "big")
MODULE = next((path for path in ("/usr/lib/softhsm/libsofthsm2.so", "/usr/lib/x86_64-linux-gnu/softhsm/libsofthsm2.so")
               if os.path.exists(path)), "libsofthsm2.so")


def text(data):
    return len(data).to_bytes(4, "big") + data


class Kinds(Held):
    def signed_and_checked(self, key, **environment):
        done = self.sign_as(key)
        self.assertEqual(done.returncode, 0, done.stderr)
        by_hand = self.by_hand(self.scratch / "own.pub", **environment)
        self.assertEqual(by_hand.returncode, 0, by_hand.stderr)
        return self.verify("--key", "{scratch}/own.pub")

    @row("holders", "A-p256", "a key on P-256 signs, assay and VERIFY.txt check", 0, SIGNED)
    def test_p256(self):
        return self.signed_and_checked(self.on_curve())

    @row("holders", "A-p384", "a key on P-384", 0, SIGNED)
    def test_p384(self):
        return self.signed_and_checked(self.on_curve("P-384"), DIGEST="sha384")

    @row("holders", "A-rsa", "an RSA key of 3072 bits", 0, SIGNED)
    def test_rsa(self):
        return self.signed_and_checked(self.key_file("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:3072"))

    @row("holders", "A-p256-flipped", "the payload changed under a signature on P-256", 4, NO_SIGNATURE)
    def test_flipped(self):
        self.sign_as(self.on_curve())
        payload = self.payload().replace(b'"accepted"', b'"acceptes"')
        self.put({**self.envelope(), "payload": base64.b64encode(payload).decode()})
        return self.verify("--key", "{scratch}/own.pub")

    @row("holders", "A-p256-longer", "a byte behind a signature on P-256", 4, NO_SIGNATURE)
    def test_longer(self):
        self.sign_as(self.on_curve())
        envelope = self.envelope()
        envelope["signatures"][0]["sig"] = base64.b64encode(base64.b64decode(envelope["signatures"][0]["sig"]) + b"\0").decode()
        self.put(envelope)
        return self.verify("--key", "{scratch}/own.pub")

    @row("holders", "A-p256-other", "another key on P-256", 4, NO_SIGNATURE)
    def test_other(self):
        self.sign_as(self.on_curve())
        self.on_curve(name="other")
        return self.verify("--key", "{scratch}/other.pub")

    @row("holders", "A-weak-digest", "signed over SHA-1 with a key on P-256", 4, NO_SIGNATURE)
    def test_weak_digest(self):
        self.sign_as(self.on_curve())
        (self.scratch / "message").write_bytes(encoding(self.payload()))
        signature = tool("openssl", "dgst", "-sha1", "-sign", self.scratch / "own.key", self.scratch / "message")
        self.put({**self.envelope(), "signatures": [{"sig": base64.b64encode(signature).decode()}]})
        return self.verify("--key", "{scratch}/own.pub")

    @row("holders", "A-curve", "a key on another curve", 2, "is a key of a kind that does not sign dossiers")
    def test_curve(self):
        return self.sign_as(self.on_curve("secp256k1"))

    @row("holders", "A-explicit", "a key whose curve is spelt out", 2, "is a key of a kind that does not sign dossiers")
    def test_explicit(self):
        self.on_curve()
        tool("openssl", "pkey", "-in", self.scratch / "own.key", "-pubout", "-ec_param_enc", "explicit", "-out", self.scratch / "own.pub")
        return self.verify("--key", "{scratch}/own.pub")

    @row("holders", "A-compressed", "a key whose point is compressed", 2, "is a key of a kind that does not sign dossiers")
    def test_compressed(self):
        self.on_curve()
        tool("openssl", "pkey", "-in", self.scratch / "own.key", "-pubout", "-ec_conv_form", "compressed", "-out", self.scratch / "own.pub")
        return self.verify("--key", "{scratch}/own.pub")

    @row("holders", "A-certificate-key", "a certificate in place of a public key", 2, "is a certificate, whose issuer and time only a trust policy can check")
    def test_certificate(self):
        self.on_curve()
        tool("openssl", "req", "-x509", "-key", self.scratch / "own.key", "-subj", "/CN=Ada", "-out", self.scratch / "own.pem")
        return self.verify("--key", "{scratch}/own.pem")


class Agent(Held):
    """A real ssh-agent, and a real ssh-keygen."""

    def setUp(self):
        super().setUp()
        words = tool("ssh-agent", "-s").decode()
        self.agent = dict(self.environment, **dict(re.findall(r"(SSH_\w+)=([^;]+);", words)))
        self.addCleanup(lambda: tool("ssh-agent", "-k", env=self.agent))

    def held(self, kind="ed25519", passphrase="", add=True):
        """A key of this kind, which the agent has; the path of its public half. The private one is gone."""
        path = self.scratch / "id"
        tool("ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "ada@example", "-f", path)
        if add:
            tool("ssh-add", path, env=self.agent)
        path.unlink()
        return self.scratch / "id.pub"

    def signed(self, public):
        done = self.sign_as(public, env=self.agent)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.verify("--key", public)

    def put_ssh(self, signature):
        self.put({**self.envelope(), "signatures": [{"sig": base64.b64encode(signature).decode()}]})

    def made_by_keygen(self, public, namespace):
        """The statement signed by ssh-keygen itself."""
        (self.scratch / "message").write_bytes(encoding(self.payload()))
        tool("ssh-keygen", "-Y", "sign", "-n", namespace, "-f", public, self.scratch / "message", env=self.agent)
        lines = (self.scratch / "message.sig").read_text().splitlines()
        self.put_ssh(base64.b64decode("".join(lines[1:-1])))

    @row("holders", "A-agent", "the agent signs, assay and VERIFY.txt (with ssh-keygen) check", 0, SIGNED)
    def test_agent(self):
        public = self.held()
        done = self.signed(public)
        by_hand = self.by_hand(public)
        self.assertEqual(by_hand.returncode, 0, by_hand.stderr)
        self.assertIn('Good "assay-dossier" signature', by_hand.stdout)
        return done

    @row("holders", "A-agent-ecdsa", "the agent signs with a key on P-256", 0, SIGNED)
    def test_agent_ecdsa(self):
        return self.signed(self.held("ecdsa"))

    @row("holders", "A-agent-countersigns", "the agent adds its signature to another's", 0, SIGNED)
    def test_countersigns(self):
        public = self.held()
        done = run(REPORT, "sign", self.dossier, "--add", "--key", public, "--with-key", self.base / "lab.key.pub", env=self.agent)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.verify("--key", public)

    @row("holders", "A-agent-empty", "an agent that does not have the key", 2, "is the public key of one that the SSH agent does not have")
    def test_empty(self):
        return self.sign_as(self.held(add=False), env=self.agent)

    @row("holders", "A-agent-none", "no agent", 2, "an SSH agent must sign, and none answers at SSH_AUTH_SOCK")
    def test_none(self):
        without = {name: value for name, value in self.environment.items() if not name.startswith("SSH_")}
        return self.sign_as(self.held(), env=without)

    @row("holders", "A-keygen", "signed by ssh-keygen by hand", 0, SIGNED)
    def test_keygen(self):
        public = self.held()
        self.signed(public)
        self.made_by_keygen(public, NAMESPACE.decode())
        return self.verify("--key", public, "--without-report")

    @row("holders", "A-namespace", "a signature of the same bytes that was made for a file", 4, NO_SIGNATURE)
    def test_namespace(self):
        public = self.held()
        self.signed(public)
        self.made_by_keygen(public, "file")
        return self.verify("--key", public)

    def bent(self, change):
        public = self.held()
        self.signed(public)
        signature = bytearray(base64.b64decode(self.envelope()["signatures"][0]["sig"]))
        self.put_ssh(bytes(change(signature)))
        return self.verify("--key", public)

    @row("holders", "A-agent-bit", "every 9th byte of such a signature changed, one after the other", 4, NO_SIGNATURE)
    def test_bit(self):
        public = self.held()
        self.signed(public)
        whole = base64.b64decode(self.envelope()["signatures"][0]["sig"])
        for at in range(0, len(whole), 9):
            changed = bytearray(whole)
            changed[at] ^= 1
            self.put_ssh(bytes(changed))
            done = self.verify("--key", public)
            self.assertEqual(done.returncode, 4, f"byte {at}")
        return done

    @row("holders", "A-agent-cut", "the last byte of such a signature cut off", 4, NO_SIGNATURE)
    def test_cut(self):
        return self.bent(lambda signature: signature[:-1])

    @row("holders", "A-agent-longer", "a byte behind such a signature", 4, NO_SIGNATURE)
    def test_longer(self):
        return self.bent(lambda signature: signature + b"\0")

    @row("holders", "A-agent-hash", "a signature over another digest than SHA-256 or SHA-512", 4, NO_SIGNATURE)
    def test_hash(self):
        return self.bent(lambda signature: signature.replace(b"sha512", b"md5-md"))

    @row("holders", "A-agent-passphrase", "a passphrase file beside a public key", 2, "is for a private key, and this is a public one of SSH")
    def test_passphrase(self):
        (self.scratch / "pass").write_text("correct horse\n")
        return self.sign_as(self.held(), "--passphrase-file", self.scratch / "pass", env=self.agent)

    # A FIDO token, whose part lab.key plays: the formats are OpenSSH's PROTOCOL.u2f and PROTOCOL.sshsig.

    def token_key(self):
        der = tool("openssl", "pkey", "-in", self.key, "-pubout", "-outform", "DER")
        blob = text(b"sk-ssh-ed25519@openssh.com") + text(der[-32:]) + text(b"ssh:")
        public = self.scratch / "sk.pub"
        public.write_text(f"sk-ssh-ed25519@openssh.com {base64.b64encode(blob).decode()} ada@token\n")
        return public, blob

    def by_token(self, flags=TOUCHED):
        public, blob = self.token_key()
        digest = hashlib.sha512(encoding(self.payload())).digest()
        covered = b"SSHSIG" + text(NAMESPACE) + text(b"") + text(b"sha512") + text(digest)
        signature = self.signature(hashlib.sha256(b"ssh:").digest() + flags + COUNTER + hashlib.sha256(covered).digest())
        inner = text(b"sk-ssh-ed25519@openssh.com") + text(signature) + flags + COUNTER
        self.put_ssh(b"SSHSIG" + (1).to_bytes(4, "big") + text(blob) + text(NAMESPACE) + text(b"") + text(b"sha512") + text(inner))
        return public

    @row("holders", "A-fido", "a FIDO token's signature in place of the maker's", 4, "who has not signed")
    def test_fido(self):
        public = self.by_token()
        (self.scratch / "allowed").write_text(f"ada {public.read_text()}")
        signature = base64.b64decode(self.envelope()["signatures"][0]["sig"])
        armored = "\n".join(["-----BEGIN SSH SIGNATURE-----", base64.b64encode(signature).decode(), "-----END SSH SIGNATURE-----"])
        (self.scratch / "sig").write_text(armored + "\n")
        done = subprocess.run(["ssh-keygen", "-Y", "verify", "-f", self.scratch / "allowed", "-I", "ada", "-n", NAMESPACE.decode(), "-s",
                               self.scratch / "sig"], input=encoding(self.payload()), capture_output=True, timeout=DEADLINE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)  # OpenSSH takes it as well
        return self.verify("--key", public)

    @row("holders", "A-fido-added", "a FIDO token's signature beside the maker's", 0, SIGNED)
    def test_fido_added(self):
        before = self.envelope()["signatures"]
        public = self.by_token()
        self.put({**self.envelope(), "signatures": before + self.envelope()["signatures"]})
        return self.verify("--key", public)

    @row("holders", "A-fido-untouched", "a FIDO token that was not touched", 4, NO_SIGNATURE)
    def test_fido_untouched(self):
        return self.verify("--key", self.by_token(flags=b"\0"))

    @row("holders", "A-fido-plain", "a plain signature by the same secret, offered as a token's", 4, NO_SIGNATURE)
    def test_fido_plain(self):
        public, _ = self.token_key()
        return self.verify("--key", public)


class Token(Held):
    """SoftHSM 2 is the token."""

    def setUp(self):
        super().setUp()
        (self.scratch / "tokens").mkdir()
        (self.scratch / "softhsm.conf").write_text(f"directories.tokendir = {self.scratch}/tokens\nobjectstore.backend = file\n")
        (self.scratch / "pin").write_text("1234\n")
        self.hsm = dict(self.environment, SOFTHSM2_CONF=str(self.scratch / "softhsm.conf"))
        tool("softhsm2-util", "--init-token", "--free", "--label", "hall 2", "--pin", "1234", "--so-pin", "56789", env=self.hsm)

    def imported(self, key, label="signing", number="01"):
        tool("softhsm2-util", "--import", key, "--token", "hall 2", "--label", label, "--id", number, "--pin", "1234", env=self.hsm)

    def name(self, label="signing", token="hall%202", module=MODULE):
        return f"pkcs11:token={token};object={label}?module-path={module}"

    def sign_by(self, name, pin="pin"):
        arguments = ["--passphrase-file", self.scratch / pin] if pin else []
        return self.sign_as(name, *arguments, env=self.hsm)

    def signed(self, key):
        self.imported(key)
        done = self.sign_by(self.name())
        self.assertEqual(done.returncode, 0, done.stderr)
        by_hand = self.by_hand(self.scratch / "own.pub")
        self.assertEqual(by_hand.returncode, 0, by_hand.stderr)
        return self.verify("--key", "{scratch}/own.pub")

    @row("holders", "A-token", "a token signs with a key on P-256, assay and VERIFY.txt check", 0, SIGNED)
    def test_p256(self):
        return self.signed(self.on_curve())

    @row("holders", "A-token-rsa", "a token signs with an RSA key of 3072 bits", 0, SIGNED)
    def test_rsa(self):
        return self.signed(self.key_file("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:3072"))

    @row("holders", "A-token-fingerprint", "the fingerprint of a key on a token is that of its public half", 0, "")
    def test_fingerprint(self):
        self.imported(self.on_curve())
        done = run(REPORT, "fingerprint", "--private", self.name(), "--passphrase-file", self.scratch / "pin", env=self.hsm)
        self.assertEqual(done.stdout, self.command("fingerprint", self.scratch / "own.pub").stdout)
        self.assertEqual(len(done.stdout), 65)
        return done

    @row("holders", "A-token-pin", "a wrong PIN", 2, "refuses the PIN")
    def test_pin(self):
        self.imported(self.on_curve())
        (self.scratch / "wrong").write_text("4321\n")
        return self.sign_by(self.name(), pin="wrong")

    @row("holders", "A-token-no-pin", "no PIN", 2, "asks for a PIN")
    def test_no_pin(self):
        return self.sign_by(self.name(), pin=None)

    @row("holders", "A-token-pin-value", "a PIN in the name of the key", 2, "the attribute 'pin-value' is not taken")
    def test_pin_value(self):
        return self.sign_by(self.name() + "&pin-value=1234")

    @row("holders", "A-token-other", "a token that is not there", 2, "there is no token with this label")
    def test_other(self):
        return self.sign_by(self.name(token="hall%203"))

    @row("holders", "A-token-object", "a key that is not on it", 2, "there is no private key with this label")
    def test_object(self):
        self.imported(self.on_curve())
        return self.sign_by(self.name(label="other"))

    @row("holders", "A-token-two", "two keys with one label", 2, "two keys have this label")
    def test_two(self):
        self.imported(self.on_curve())
        self.imported(self.on_curve(name="second"), number="02")
        return self.sign_by(self.name())

    @row("holders", "A-token-module", "a library that is none", 2, "cannot be loaded as a PKCS#11 library")
    def test_module(self):
        return self.sign_by(self.name(module="/etc/hostname"))


if __name__ == "__main__":
    main()
