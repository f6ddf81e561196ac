"""holder_steps: the steps of attacks/holder.cases: keys of other kinds than Ed25519, an SSH agent, a FIDO token, a token by PKCS#11."""
import base64
import hashlib
import os
import re
import subprocess

from attack_steps import Steps
from attacks import DEADLINE_S, REPORT, encoding, run
from held import Held, tool

NAMESPACE = b"assay-dossier"
TOUCHED, COUNTER = b"\x01", (7).to_bytes(4, "big")
MODULE = next(
    (
        path
        for path in ("/usr/lib/softhsm/libsofthsm2.so", "/usr/lib/x86_64-linux-gnu/softhsm/libsofthsm2.so")
        if os.path.exists(path)
    ),
    "libsofthsm2.so",
)


def text(data):
    return len(data).to_bytes(4, "big") + data


class HeldSteps(Steps, Held):
    """{scratch}/own.key and own.pub are a key by openssl; sign-as makes {dossier} a second one of the run."""

    def do_curve_key(self, curve="P-256", name="own"):
        self.on_curve(curve, name=name)

    def do_rsa_key(self):
        self.key_file("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:3072")

    def run_sign_as(self, key):
        return self.sign_as(key)

    def run_by_hand(self, public, digest=""):
        """The commands of VERIFY.txt."""
        return self.by_hand(public, **({"DIGEST": digest} if digest else {}))

    def do_openssl(self, *words):
        tool("openssl", *words)

    def do_signature_over_sha1(self):
        (self.scratch / "message").write_bytes(encoding(self.payload()))
        signature = tool("openssl", "dgst", "-sha1", "-sign", self.scratch / "own.key", self.scratch / "message")
        self.put_signature(signature)

    def put_signature(self, signature):
        self.put({**self.envelope(), "signatures": [{"sig": base64.b64encode(signature).decode()}]})

    def raw_signature(self):
        return base64.b64decode(self.envelope()["signatures"][0]["sig"])


class AgentSteps(HeldSteps):
    """A real ssh-agent, and a real ssh-keygen; {scratch}/id.pub is the public half of the agent's key."""

    def setUp(self):
        super().setUp()
        words = tool("ssh-agent", "-s").decode()
        self.agent = dict(self.environment, **dict(re.findall(r"(SSH_\w+)=([^;]+);", words)))
        self.addCleanup(lambda: tool("ssh-agent", "-k", env=self.agent))
        self.public = self.scratch / "id.pub"

    def do_agent_key(self, kind="ed25519", add="yes"):
        """A key of this kind, which the agent has. The private one is gone."""
        path = self.scratch / "id"
        tool("ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "ada@example", "-f", path)
        if add == "yes":
            tool("ssh-add", path, env=self.agent)
        path.unlink()

    def run_sign_by_agent(self, *words):
        return self.sign_as(self.public, *words, env=self.agent)

    def run_sign_without_agent(self):
        return self.sign_as(
            self.public, env={name: value for name, value in self.environment.items() if not name.startswith("SSH_")}
        )

    def run_sign_add_by_agent(self, *words):
        return run(REPORT, "sign", self.dossier, "--add", "--key", self.public, *words, env=self.agent)

    def do_signature_of_keygen(self, namespace):
        """The statement signed by ssh-keygen itself."""
        (self.scratch / "message").write_bytes(encoding(self.payload()))
        tool("ssh-keygen", "-Y", "sign", "-n", namespace, "-f", self.public, self.scratch / "message", env=self.agent)
        lines = (self.scratch / "message.sig").read_text().splitlines()
        self.put_signature(base64.b64decode("".join(lines[1:-1])))

    def do_bend_signature(self, how):
        """The last byte cut off, a byte behind, or another digest named."""
        changes = {
            "cut": lambda data: data[:-1],
            "longer": lambda data: data + b"\0",
            "md5": lambda data: data.replace(b"sha512", b"md5-md"),
        }
        self.put_signature(changes[how](self.raw_signature()))

    def run_verify_every_9th_byte_changed(self):
        """One after the other; each must be refused as the last one is."""
        whole = self.raw_signature()
        for at in range(0, len(whole), 9):
            changed = bytearray(whole)
            changed[at] ^= 1
            self.put_signature(bytes(changed))
            done = self.verify("--key", self.public)
            self.assertEqual(done.returncode, 4, f"byte {at}")
        return done

    # A FIDO token, whose part lab.key plays: the formats are OpenSSH's PROTOCOL.u2f and PROTOCOL.sshsig.

    def do_token_key(self):
        """{scratch}/sk.pub"""
        der = tool("openssl", "pkey", "-in", self.key, "-pubout", "-outform", "DER")
        self.blob = text(b"sk-ssh-ed25519@openssh.com") + text(der[-32:]) + text(b"ssh:")
        (self.scratch / "sk.pub").write_text(
            f"sk-ssh-ed25519@openssh.com {base64.b64encode(self.blob).decode()} ada@token\n"
        )

    def do_sign_by_fido(self, touched="yes", beside="no"):
        """In place of the maker's signature, or beside it."""
        self.do_token_key()
        before = self.envelope()["signatures"]
        flags = TOUCHED if touched == "yes" else b"\0"
        digest = hashlib.sha512(encoding(self.payload())).digest()
        covered = b"SSHSIG" + text(NAMESPACE) + text(b"") + text(b"sha512") + text(digest)
        signature = self.signature(
            hashlib.sha256(b"ssh:").digest() + flags + COUNTER + hashlib.sha256(covered).digest()
        )
        inner = text(b"sk-ssh-ed25519@openssh.com") + text(signature) + flags + COUNTER
        self.put_signature(
            b"SSHSIG"
            + (1).to_bytes(4, "big")
            + text(self.blob)
            + text(NAMESPACE)
            + text(b"")
            + text(b"sha512")
            + text(inner)
        )
        if beside == "yes":
            self.put({**self.envelope(), "signatures": before + self.envelope()["signatures"]})

    def run_openssh_verify(self):
        """OpenSSH's own word on the token's signature."""
        (self.scratch / "allowed").write_text(f"ada {(self.scratch / 'sk.pub').read_text()}")
        armored = [
            "-----BEGIN SSH SIGNATURE-----",
            base64.b64encode(self.raw_signature()).decode(),
            "-----END SSH SIGNATURE-----",
        ]
        (self.scratch / "sig").write_text("\n".join(armored) + "\n")
        return subprocess.run(
            [
                "ssh-keygen",
                "-Y",
                "verify",
                "-f",
                self.scratch / "allowed",
                "-I",
                "ada",
                "-n",
                NAMESPACE.decode(),
                "-s",
                self.scratch / "sig",
            ],
            input=encoding(self.payload()).decode(),
            text=True,
            capture_output=True,
            timeout=DEADLINE_S,
            check=False,
        )


class TokenSteps(HeldSteps):
    """SoftHSM 2 is the token."""

    def setUp(self):
        super().setUp()
        (self.scratch / "tokens").mkdir()
        (self.scratch / "softhsm.conf").write_text(
            f"directories.tokendir = {self.scratch}/tokens\nobjectstore.backend = file\n"
        )
        (self.scratch / "pin").write_text("1234\n")
        self.hsm = dict(self.environment, SOFTHSM2_CONF=str(self.scratch / "softhsm.conf"))
        tool(
            "softhsm2-util",
            "--init-token",
            "--free",
            "--label",
            "hall 2",
            "--pin",
            "1234",
            "--so-pin",
            "56789",
            env=self.hsm,
        )

    def do_import_key(self, name="own", number="01"):
        """Onto the token, with the label `signing`."""
        tool(
            "softhsm2-util",
            "--import",
            self.scratch / f"{name}.key",
            "--token",
            "hall 2",
            "--label",
            "signing",
            "--id",
            number,
            "--pin",
            "1234",
            env=self.hsm,
        )

    def name(self, label="signing", token="hall%202", module=MODULE, more=""):
        return f"pkcs11:token={token};object={label}?module-path={module}{more}"

    def run_sign_by_token(self, pin="pin", **names):
        """pin: the file in {scratch} with the PIN, or none."""
        words = ["--passphrase-file", self.scratch / pin] if pin else []
        return self.sign_as(self.name(**names), *words, env=self.hsm)

    def run_token_fingerprint(self):
        return run(
            REPORT, "fingerprint", "--private", self.name(), "--passphrase-file", self.scratch / "pin", env=self.hsm
        )
