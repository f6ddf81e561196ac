"""A certificate of the signer's organisation, checked by the issuer and subject that a policy names."""
import shutil

from attacks import Document, main, row  # noqa: F401: Document is a test
from held import Held, tool
from policies import EVER, Policies


class Certificates(Held, Policies):
    """A vendor whose policy entry names a CA and a subject, and no key."""

    def setUp(self):
        super().setUp()
        self.authority("ca")
        self.leaf("own", "ca")

    def authority(self, name, issuer=None, subject="Example CA", digest="sha256"):
        self.on_curve(name=name)
        if issuer is None:
            tool(
                "openssl",
                "req",
                "-x509",
                "-key",
                self.scratch / f"{name}.key",
                "-subj",
                f"/O=Example/CN={subject}",
                "-days",
                "3650",
                "-addext",
                "keyUsage=critical,keyCertSign",
                "-out",
                self.scratch / f"{name}.pem",
                f"-{digest}",
            )
        else:
            self.issued(
                name,
                issuer,
                f"/O=Example/CN={subject}",
                "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n",
            )

    def issued(self, name, issuer, subject, extensions, digest="sha256", dates=()):
        folder = self.scratch / f"{issuer}.files"
        folder.mkdir(exist_ok=True)
        (folder / "index").touch()
        (folder / "conf").write_text(
            f"[ca]\ndefault_ca=own\n[own]\ndatabase={folder}/index\nnew_certs_dir={folder}\npolicy=any\n"
            "rand_serial=yes\nunique_subject=no\n[any]\norganizationName=optional\ncommonName=supplied\n"
        )
        (folder / "ext").write_text("subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n" + extensions)
        tool(
            "openssl", "req", "-new", "-key", self.scratch / f"{name}.key", "-subj", subject, "-out", folder / "request"
        )
        tool(
            "openssl",
            "ca",
            "-batch",
            "-notext",
            "-config",
            folder / "conf",
            "-cert",
            self.scratch / f"{issuer}.pem",
            "-keyfile",
            self.scratch / f"{issuer}.key",
            "-in",
            folder / "request",
            "-out",
            self.scratch / f"{name}.pem",
            "-extfile",
            folder / "ext",
            "-md",
            digest,
            *(dates or ("-days", "365")),
        )

    def leaf(
        self, name, issuer, subject="/O=Example vendor/CN=Ada Example", usage="digitalSignature", purpose="", **more
    ):
        self.on_curve(name=name)
        extensions = f"basicConstraints=critical,CA:FALSE\nkeyUsage=critical,{usage}\n"
        if purpose:
            extensions += f"extendedKeyUsage={purpose}\n"
        self.issued(name, issuer, subject, extensions, **more)

    def certified(self, issuers="ca", subject="CN=Ada Example,O=Example vendor", when=EVER, keys=()):
        signer = {
            "name": "Ada",
            "certificates": {"issuers": str(self.scratch / f"{issuers}.pem"), "subject": subject, **when},
        }
        if keys:
            signer["keys"] = list(keys)
        return {"name": "Example vendor", "role": "vendor", "threshold": 1, "signers": [signer]}

    def signed(self, name="own", chain=None):
        arguments = ["--certificate", chain or self.scratch / f"{name}.pem"] if chain != "" else []
        done = self.sign_as(self.scratch / f"{name}.key", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)

    @row(
        "certificates",
        "A-cert",
        "signed with the certificate that the policy's CA issued",
        0,
        "signed as vendor: Ada of Example vendor",
    )
    def test_signed(self):
        self.signed()
        return self.by(self.certified())

    @row(
        "certificates",
        "A-cert-between",
        "issued by a CA between, which the signature brings along",
        0,
        "signed as vendor: Ada of Example vendor",
    )
    def test_between(self):
        self.authority("between", issuer="ca", subject="Example issuing CA")
        self.leaf("own", "between")
        (self.scratch / "chain.pem").write_text(
            (self.scratch / "own.pem").read_text() + (self.scratch / "between.pem").read_text()
        )
        self.signed(chain=self.scratch / "chain.pem")
        return self.by(self.certified())

    @row(
        "certificates",
        "A-cert-absent",
        "the same key without its certificate",
        4,
        "rule required_role: no signature of a vendor counts",
    )
    def test_absent(self):
        self.signed(chain="")
        return self.by(self.certified())

    @row(
        "certificates",
        "A-cert-subject",
        "a certificate of another subject by the same CA",
        4,
        "the certificate is of 'CN=Eve Example,O=Example vendor', and the policy has",
    )
    def test_subject(self):
        self.leaf("own", "ca", subject="/O=Example vendor/CN=Eve Example")
        self.signed()
        return self.by(self.certified())

    @row(
        "certificates",
        "A-cert-authority",
        "a CA of the same name and another key",
        4,
        "has no chain that holds to the issuers of Ada (vendor)",
    )
    def test_authority(self):
        self.authority("false")
        self.leaf("own", "false")
        self.signed()
        return self.by(self.certified())

    @row(
        "certificates",
        "A-cert-exchanged",
        "somebody's true certificate beside another key's signature",
        4,
        "rule required_role",
    )
    def test_exchanged(self):
        self.on_curve(name="eve")
        self.signed("eve", chain="")
        envelope = self.envelope()
        envelope["signatures"][0]["cert"] = (self.scratch / "own.pem").read_text()
        self.put(envelope)
        return self.by(self.certified())

    @row("certificates", "A-cert-ended", "a certificate that has run out", 4, "rule key_valid_until")
    def test_ended(self):
        self.leaf("own", "ca", dates=("-startdate", "20200101000000Z", "-enddate", "20210101000000Z"))
        self.signed()
        return self.by(self.certified())

    @row("certificates", "A-cert-early", "a rule of the policy that begins later", 4, "rule key_valid_from")
    def test_early(self):
        self.signed()
        return self.by(self.certified(when={"valid_from": "2090-01-01", "valid_until": "2100-01-01"}))

    @row("certificates", "A-cert-revoked", "a certified key that the policy lists as revoked", 4, "rule key_revoked")
    def test_revoked(self):
        self.signed()
        listed = {
            "fingerprint": self.command("fingerprint", self.scratch / "own.pub").stdout.strip(),
            "file": str(self.scratch / "own.pub"),
            **EVER,
            "revoked": {"at": "2026-02-01", "reason": "a lost token"},
        }
        return self.by(self.certified(keys=[listed]))

    @row(
        "certificates",
        "A-cert-server",
        "a certificate for TLS servers only, critical",
        4,
        "is of a CA or not for signatures of documents",
    )
    def test_server(self):
        self.leaf("own", "ca", purpose="critical,serverAuth")
        self.signed()
        return self.by(self.certified())

    @row(
        "certificates",
        "A-cert-purpose",
        "a certificate for TLS clients, not critical, and for documents",
        0,
        "signed as vendor: Ada of Example vendor",
    )
    def test_purpose(self):
        codes = {"clientAuth": 4, "OCSPSigning,timeStamping": 4, "1.3.6.1.5.5.7.3.36": 0, "anyExtendedKeyUsage": 0}
        for purpose, code in {**codes, "clientAuth,emailProtection": 0}.items():
            shutil.rmtree(self.scratch / "signed", ignore_errors=True)
            self.leaf("own", "ca", purpose=purpose)
            self.signed()
            done = self.by(self.certified())
            self.assertEqual(done.returncode, code, purpose + done.stderr)
        return done

    @row("certificates", "A-cert-usage", "a certificate for key agreement alone", 4, "is of a CA or not for signatures")
    def test_usage(self):
        self.leaf("own", "ca", usage="keyAgreement")
        self.signed()
        return self.by(self.certified())

    @row("certificates", "A-cert-ca", "the CA itself signs", 4, "rule required_role")
    def test_ca_signs(self):
        self.signed("ca")
        return self.by(self.certified(subject="CN=Example CA,O=Example"))

    @row("certificates", "A-cert-sha1", "a certificate that was signed over SHA-1", 4, "rule required_role")
    def test_sha1(self):
        self.leaf("own", "ca", digest="sha1")
        self.signed()
        return self.by(self.certified())

    @row(
        "certificates",
        "A-cert-other-key",
        "a certificate of another key than the one that signs",
        2,
        "is the certificate of another key than",
    )
    def test_other_key(self):
        self.leaf("second", "ca")
        return self.sign_as(self.scratch / "own.key", "--certificate", self.scratch / "second.pem")

    @row("certificates", "A-cert-no-ca", "a policy whose issuer is no CA", 2, "which is no CA")
    def test_no_ca(self):
        self.signed()
        return self.by(self.certified(issuers="own"))

    @row(
        "certificates",
        "A-cert-twice",
        "a policy with the same certificates for two signers",
        2,
        "has certificates of 'CN=Ada Example,O=Example vendor' twice",
    )
    def test_twice(self):
        other = {**self.certified(), "name": "Example buyer", "role": "buyer"}
        return self.by(self.certified(), other)

    @row(
        "certificates",
        "A-cert-garbage",
        "a certificate that is none, in the envelope",
        4,
        "a certificate beside a signature cannot be read",
    )
    def test_garbage(self):
        self.signed()
        envelope = self.envelope()
        envelope["signatures"][0]["cert"] = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        self.put(envelope)
        return self.by(self.certified())

    @row(
        "certificates",
        "A-cert-countersigns",
        "a buyer countersigns with a certificate, vendor and buyer are required",
        0,
        "signed as buyer: Ada of Example buyer",
    )
    def test_countersigns(self):
        buyer = {**self.certified(), "name": "Example buyer", "role": "buyer"}
        policy = self.write(self.vendor(), buyer, require=("vendor", "buyer"))
        done = self.command(
            "sign",
            self.dossier,
            "--add",
            "--key",
            self.scratch / "own.key",
            "--certificate",
            self.scratch / "own.pem",
            "--policy",
            policy,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.command("verify", self.dossier, "--policy", policy)


if __name__ == "__main__":
    main()
