"""Attestation of made-up GPUs: reports are made, verified, relayed, stale, foreign, revoked and not there."""
import json
import os
import pathlib
import subprocess

from answering import CHALLENGE, EARLIER, Answering
from harness import main

TESTS = pathlib.Path(__file__).resolve().parent.parent
PROFILE = json.loads((TESTS.parent / "profiles/gpu-identity.json").read_text())
CA = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n"
LEAF = "keyUsage=critical,digitalSignature\n"


def uuid(index):
    return f"GPU-0000000{index}-5afe-4000-8000-00000000000{index}"


class GpuAttestation(Answering):
    def openssl(self, *arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, cwd=self.scratch, timeout=60)

    def certificate(self, name, issuer=None, extensions=CA):
        """A key and a certificate of it by `issuer`, or by itself; their names."""
        self.openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384", "-out", f"{name}.key")
        self.openssl("req", "-new", "-key", f"{name}.key", "-subj", f"/CN={name}", "-out", f"{name}.csr")
        self.write(f"{name}.ext", extensions)
        by = ["-CA", f"{issuer}.pem", "-CAkey", f"{issuer}.key", "-CAcreateserial"] if issuer else []
        by = by or ["-signkey", f"{name}.key"]
        self.openssl(
            *("x509", "-req", "-in", f"{name}.csr", "-sha384", "-days", "30", "-extfile", f"{name}.ext", *by),
            *("-out", f"{name}.pem"),
        )

    def gpu(self, name, maker):
        """A GPU by `maker`, as the made-up driver is told of it."""
        self.certificate(f"{name}-identity", maker)
        self.certificate(name, f"{name}-identity", LEAF)
        chain = [(self.scratch / f"{part}.pem").read_text() for part in (name, f"{name}-identity", maker)]
        return {
            "attestation_key": str(self.scratch / f"{name}.key"),
            "certificates": str(self.write(f"{name}.chain", "".join(chain))),
        }

    def node(self, name, *gpus, **more):
        """A node with these GPUs; the path of its NVML."""
        folder = self.scratch / name
        folder.mkdir()
        (folder / "libnvidia-ml.so.1").symlink_to(os.environ["ASSAY_FAKE_NVML_LIBRARY"])
        state = {"base": str(TESTS / "fakes/nvml/healthy.json"), "confidential_computing": 1, **more}
        state["gpus"] = {str(i): None for i in range(8)} | {str(i): gpu for i, gpu in enumerate(gpus)}
        (folder / "state.json").write_text(json.dumps(state))
        return str(folder / "libnvidia-ml.so.1")

    def ask(self, library, challenge=CHALLENGE, out="run", beside=()):
        profile = dict(PROFILE, name="mine", requirements=[dict(PROFILE["requirements"][0]), *beside])
        if beside:
            profile["node"] = {"gpu": 2}
        profile["requirements"][0]["parameters"] = {"nvml_library": library}
        return self.accept(profile, challenge, out)

    def keys(self):
        (node,) = json.loads(self.check("--json"))["nodes"]
        return {gpu["uuid"]: gpu["key"] for gpu in node["gpu_attestation"]["gpus"]}

    def revoked(self, issuer, certificate):
        """The list of `issuer` with this certificate, or none."""
        serial = subprocess.check_output(
            ["openssl", "x509", "-noout", "-serial", "-in", self.scratch / f"{certificate}.pem"], text=True, timeout=60
        )
        self.write("index", f"R\t300101000000Z\t260101000000Z\t{serial.strip().split('=')[1]}\tunknown\t/CN=x\n")
        self.write("ca.conf", "[ca]\ndefault_ca=x\n[x]\ndatabase=index\ndefault_md=sha384\ndefault_crl_days=30\n")
        self.openssl(
            *("ca", "-gencrl", "-config", "ca.conf", "-cert", f"{issuer}.pem", "-keyfile", f"{issuer}.key"),
            *("-out", "list.pem"),
        )
        return self.scratch / "list.pem"

    def test_honest_gpus_answer_and_relayed_stale_foreign_or_revoked_ones_are_refused(self):
        for maker in ("maker", "other"):
            self.certificate(maker)
        first, second, third = (self.gpu(name, "maker") for name in ("first", "second", "third"))
        root, foreign = self.scratch / "maker.pem", self.scratch / "other.pem"
        got = self.ask(self.node("honest", first, second))
        self.assertEqual(got.returncode, 0, got.stdout + got.stderr)
        own = self.keys()
        self.assertEqual(sorted(own), [uuid(0), uuid(1)])
        mine = self.write("keys", "".join(f"{name} {key}\n" for name, key in own.items()))
        text = self.check("--challenge", CHALLENGE, "--gpu-roots", root, "--gpu-keys", mine)
        self.assertIn("; 2 GPUs answered", text)
        self.assertIn("GPUs", text)
        page = (self.run_directory / "dossier/evidence/report.html").read_text()
        for word in ("Attestation of the GPUs", "575.57.08", "96.00.89.00.01"):
            self.assertIn(word, page)
        text = self.check("--gpu-roots", foreign, status=4)
        self.assertIn("other_root: " + uuid(0) + ": the certificate of its key has no chain to a given root", text)
        self.check("--gpu-roots", root, "--crls", self.revoked("maker", "third-identity"))
        text = self.check("--gpu-roots", root, "--crls", self.revoked("maker", "second-identity"), status=4)
        self.assertIn(uuid(1) + ": the certificate of its key has no chain", text)
        self.assertIn("(certificate revoked)", text)
        self.assertIn("needs --tpm-roots or --gpu-roots", self.check("--crls", self.scratch / "list.pem", status=2))
        self.assertIn("has no list of revoked certificates", self.check("--gpu-roots", root, "--crls", root, status=2))
        text = self.check("--gpu-keys", self.write("bad", f"{uuid(0)} x\n"), status=2)
        self.assertIn(f"has 'x' for the GPU {uuid(0)}, which is no SHA-256", text)

        # Another node's GPU answers in the place of the second: only the list knows which one it is.
        self.assertEqual(self.ask(self.node("relayed", first, third), out="relayed-run").returncode, 0)
        self.check("--gpu-roots", root)
        text = self.check("--gpu-keys", mine, status=4)
        self.assertIn("unknown_key: " + uuid(1) + ": it answered with the key", text)

        # One GPU answers for two.
        got = self.ask(self.node("twice", first, first), out="twice-run")
        self.assertEqual(got.returncode, 3, got.stdout)
        self.assertIn(f"the GPU {uuid(1)}: it answered with the key of the GPU {uuid(0)}", got.stdout)

        # The head puts an earlier answer of the same GPU in the place of this one's.
        node = self.node("alone", first)
        self.assertEqual(self.ask(node, challenge=EARLIER, out="earlier").returncode, 0)
        earlier = self.said()
        self.assertEqual(self.ask(node, out="stale").returncode, 0)
        self.replace({self.said()["attestation_report"]: earlier["attestation_report"]})
        got = self.assay("judge", self.run_directory)
        self.assertEqual(got.returncode, 3, got.stdout + got.stderr)
        self.assertIn("its report answers another question than that of this attempt and GPU", got.stdout)

    def test_gpus_without_a_report_fail_and_those_that_were_left_out_are_refused(self):
        self.certificate("maker")
        gpu = self.gpu("first", "maker")
        got = self.ask(self.node("some", gpu, {}))
        self.assertEqual(got.returncode, 1, got.stdout + got.stderr)
        self.assertIn("Some of the GPUs gave an attestation report", got.stdout)
        # Its inventory has two GPUs, and the one without a report was kept from the question.
        inventory = {
            "id": "inventory",
            "title": "GPUs",
            "probe": "health_gpu",
            "parameters": {
                "nvml_library": self.node("whole", gpu, {}),
                "kernel_log": str(TESTS / "fakes/nvml/quiet.log"),
            },
            "metric": "gpus",
            "scope": "node",
            "limit": {"at_least": 2, "unit": "1"},
            "statistic": "min",
            "repeat": {"n": 1},
            "source": {"document": "the test", "status": "sourced"},
        }
        beside = [inventory] + [
            dict(inventory, id=metric, metric=metric, scope="gpu", limit={"at_most": 0, "unit": "1"}, statistic="max")
            for metric in ("query_errors", "ecc_uncorrected", "remapping_failed", "xid_events")
        ]
        got = self.ask(self.node("shown", gpu), out="left-out", beside=beside)
        self.assertEqual(got.returncode, 0, got.stdout + got.stderr)
        text = self.check("--gpu-roots", self.scratch / "maker.pem", status=4)
        self.assertIn(f"no_answer: {uuid(1)}: a record of the node names it, and no report was asked of it", text)

    def test_without_confidential_computing_the_reason_is_given(self):
        self.ask(self.node("off", {}, confidential_computing=0))
        (reason,) = self.reasons().values()
        self.assertIn("confidential computing is off in the driver: GPUs give no attestation reports", reason)
        self.assertIn("GPUs no_answer: confidential computing is off", self.check())
        self.certificate("maker")
        self.assertIn("no_answer", self.check("--gpu-roots", self.scratch / "maker.pem", status=4))
        self.ask(self.node("closed", {"attestation_result": 4}), out="closed-run")
        self.assertIn("the driver gives this user no attestation report: run as root", *self.reasons().values())


if __name__ == "__main__":
    main()
