"""key_steps: the steps of attacks/key.cases: keys of openssl and OpenSSH, and what is done to them."""
import base64
import subprocess

from attack_steps import Steps
from attacks import DEADLINE_S, REPORT, run

SPKI = bytes.fromhex("302a300506032b6570032100")
# The y coordinates of the points of small order, with either sign, and of points that are not reduced.
SMALL_ORDER = [
    y[:-2] + f"{int(y[-2:], 16) | sign:02x}"
    for sign in (0, 0x80)
    for y in (
        "00" * 32,
        "01" + "00" * 31,
        "ec" + "ff" * 30 + "7f",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    )
]


class KeySteps(Steps):
    def pem(self, raw):
        (self.scratch / "key.pub").write_text(
            "-----BEGIN PUBLIC KEY-----\n" + base64.b64encode(SPKI + raw).decode() + "\n-----END PUBLIC KEY-----\n"
        )
        return "key.pub"

    def ssh(self, raw, kind=b"ssh-ed25519", behind=b""):
        blob = len(kind).to_bytes(4, "big") + kind + len(raw).to_bytes(4, "big") + raw + behind
        (self.scratch / "own.pub").write_text("ssh-ed25519 " + base64.b64encode(blob).decode() + " ada@example\n")
        return "own.pub"

    def run_verify_by_each_small_order_key(self, form):
        """Each of them must be refused as the last one is."""
        self.assertEqual(len(SMALL_ORDER), 14)
        for raw in SMALL_ORDER:
            name = {"pem": self.pem, "ssh": self.ssh}[form](bytes.fromhex(raw))
            done = self.verify("--key", self.scratch / name)
            self.assertEqual(done.returncode, 2, raw)
            self.assertIn(f"{name}: is ", done.stderr)
        return done

    def do_ssh_public(self, length, kind="ssh-ed25519", behind=""):
        """{scratch}/own.pub with a key of so many bytes."""
        self.ssh(b"a" * int(length), kind.encode(), behind.encode())

    def do_generate_key(self, algorithm):
        """{scratch}/key.pub by openssl."""
        made = subprocess.run(
            ["openssl", "genpkey", "-algorithm", algorithm], capture_output=True, timeout=DEADLINE_S, check=True
        )
        public = subprocess.run(
            ["openssl", "pkey", "-pubout"], input=made.stdout, capture_output=True, timeout=DEADLINE_S, check=True
        )
        (self.scratch / "key.pub").write_bytes(public.stdout)

    def do_ssh_keygen(self, kind="ed25519", passphrase=""):
        """{scratch}/id and id.pub by ssh-keygen."""
        subprocess.run(
            ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "ada@example", "-f", self.scratch / "id"],
            timeout=DEADLINE_S,
            check=True,
            stdin=subprocess.DEVNULL,
        )

    def do_bend_ssh_key(self, how):
        """The bytes of the private key {scratch}/id: a bit of its seed changed, or all behind the 80th cut off."""
        path = self.scratch / "id"
        lines = path.read_text().splitlines()
        data = bytearray(base64.b64decode("".join(lines[1:-1])))
        if how == "seed":
            data[data.rindex(b"\0\0\0\x40") + 4] ^= 1
        else:
            data = {"cut": data[:80]}[how]
        path.write_text("\n".join([lines[0], base64.b64encode(bytes(data)).decode(), lines[-1]]) + "\n")

    def run_sign_with_state(self, key):
        """sign where {scratch}/state is the folder in which a machine has its own key."""
        environment = dict(self.environment, XDG_STATE_HOME=str(self.scratch / "state"))
        return run(REPORT, "sign", self.run_directory, "--out", self.scratch / "signed", "--key", key, env=environment)

    def run_openssl_verify(self):
        """The dossier's signature by openssl alone."""
        payload, kind = self.payload(), self.envelope()["payloadType"]
        (self.scratch / "message").write_bytes(
            b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)
        )
        (self.scratch / "sig").write_bytes(base64.b64decode(self.envelope()["signatures"][0]["sig"]))
        return run(
            "openssl",
            "pkeyutl",
            "-verify",
            "-pubin",
            "-inkey",
            self.dossier / "signer.pub",
            "-rawin",
            "-in",
            self.scratch / "message",
            "-sigfile",
            self.scratch / "sig",
        )
