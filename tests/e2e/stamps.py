"""stamps: a time-stamping authority of RFC 3161 (openssl ts) for tests."""
import os
import subprocess

from attacks import DEADLINE_S

CONFIGURATION = """
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
[stamps]
extendedKeyUsage = critical, timeStamping
[tsa]
default_tsa = one
[one]
serial = {folder}/serial
signer_digest = {signer_digest}
default_policy = 1.2.3.4.1
digests = {digests}
ess_cert_id_alg = sha256
"""


class Authority:
    """A time-stamping authority of its own, whose certificate is valid for a day; `shift_s`: by how much its clock is off.
    Weak: `key` rsa:1024, `digest` of its certificate, `signer`, the digest of its signatures."""

    def __init__(self, folder, shift_s=0, digests="sha256", key="ec", digest="sha256", signer="sha256"):
        folder.mkdir()
        self.folder = folder
        self.environment = dict(os.environ, LD_PRELOAD=os.environ["SHIFT_CLOCK"], SHIFT_CLOCK_S=str(shift_s))
        (folder / "conf").write_text(CONFIGURATION.format(folder=folder, digests=digests, signer_digest=signer))
        (folder / "serial").write_text("01\n")
        new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-config", "conf")
        self.openssl(
            "req",
            "-x509",
            *new,
            "-keyout",
            "ca.key",
            "-out",
            "ca.pem",
            "-days",
            "1",
            "-subj",
            "/CN=Root",
            "-extensions",
            "authority",
        )
        if key != "ec":
            new = ("-newkey", key, "-nodes", "-config", "conf")
        self.openssl("req", *new, "-keyout", "tsa.key", "-out", "tsa.csr", "-subj", "/CN=Example Time")
        self.openssl(
            "x509",
            "-req",
            f"-{digest}",
            "-in",
            "tsa.csr",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-out",
            "tsa.pem",
            "-days",
            "1",
            "-extfile",
            "conf",
            "-extensions",
            "stamps",
        )

    def openssl(self, *words):
        done = subprocess.run(
            ["openssl", *map(str, words)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        if done.returncode != 0:
            raise AssertionError(f"{words}: {done.stderr}")

    def answer(self, request):
        self.openssl(
            "ts",
            "-reply",
            "-config",
            "conf",
            "-section",
            "one",
            "-queryfile",
            request,
            "-signer",
            "tsa.pem",
            "-inkey",
            "tsa.key",
            "-out",
            "answer.tsr",
        )
        return self.folder / "answer.tsr"
