"""TPMs of nodes: swtpm with tpm2-tools stands for the real one. A quote is made, bound, verified, relayed, stale and foreign."""
import json
import pathlib
import shutil
import socket
import subprocess
import unittest

from answering import CHALLENGE, EARLIER, Answering
from harness import main, wait_for

PROFILE = pathlib.Path(__file__).parents[2] / "profiles/node-identity.json"
PROGRAMS = ("swtpm", "swtpm_setup", "swtpm_localca", "tpm2_quote", "tpm2_activatecredential")


@unittest.skipUnless(all(map(shutil.which, PROGRAMS)), "UNDECIDED: swtpm, swtpm-tools or tpm2-tools is not installed")
class Tpm(Answering):
    def maker(self, name):
        """A maker of TPMs with a root of its own; the file with its certificates."""
        folder = self.scratch / name
        folder.mkdir()
        (folder / "localca.conf").write_text(
            f"statedir = {folder}\nsigningkey = {folder}/key.pem\nissuercert = {folder}/issuer.pem\n"
            f"certserial = {folder}/serial\n"
        )
        (folder / "options").write_text(
            "--platform-manufacturer Example\n--platform-version 1\n--platform-model Example\n"
        )
        (folder / "setup.conf").write_text(
            "create_certs_tool = /usr/bin/swtpm_localca\n"
            f"create_certs_tool_config = {folder}/localca.conf\ncreate_certs_tool_options = {folder}/options\n"
            "active_pcr_banks = sha256\n"
        )
        return folder

    def tpm(self, name, maker):
        """A TPM by `maker` that runs until the end of the test; the way to it, as the tools name it."""
        state = self.scratch / name
        state.mkdir()
        subprocess.run(
            ["swtpm_setup", "--tpm2", "--tpmstate", state, "--create-ek-cert", "--config", maker / "setup.conf"],
            check=True,
            capture_output=True,
            timeout=60,
        )
        path = self.scratch / f"{name}.s"
        process = subprocess.Popen(
            ["swtpm", "socket", "--tpm2", "--tpmstate", f"dir={state}", "--flags", "not-need-init,startup-clear"]
            + ["--ctrl", f"type=unixio,path={path}.ctrl", "--server", f"type=unixio,path={path}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(process.wait, 30)
        self.addCleanup(process.kill)
        wait_for(path.exists, f"{path} is there")
        return f"swtpm:path={path}"

    def ask(self, tcti, challenge=CHALLENGE, out="run", **parameters):
        profile = json.loads(PROFILE.read_text())
        profile["name"] = "mine"
        profile["requirements"][0]["parameters"] = {"tcti": tcti, **parameters}
        return self.accept(profile, challenge, out)

    def key(self):
        return json.loads(self.check("--json"))["nodes"][0]["tpm"]["key"]

    def listed(self, key):
        return self.write("keys", f"{self.node()} {key}\n")

    def roots(self, maker):
        return str(maker / "issuer.pem")

    def test_an_honest_tpm_answers_and_a_relayed_stale_or_foreign_answer_is_refused(self):
        maker, other = self.maker("maker"), self.maker("other")
        mine, neighbour, foreign = (
            self.tpm("mine", maker),
            self.tpm("neighbour", maker),
            self.tpm("foreign", other),
        )
        got = self.ask(mine)
        self.assertEqual(got.returncode, 0, got.stdout + got.stderr)
        own = self.key()
        text = self.check("--challenge", CHALLENGE, "--tpm-roots", self.roots(maker), "--tpm-keys", self.listed(own))
        self.assertIn(f"TPM answered with the key {own}, bound to its endorsement key", text)
        self.assertIn("TPMs", text)
        page = (self.run_directory / "dossier/evidence/report.html").read_text()
        self.assertIn("TPMs of the nodes", page)
        text = self.check("--tpm-roots", self.roots(other), status=4)
        self.assertIn("other_root: the certificate of its endorsement key has no chain to a given root", text)

        # Another node's TPM answers: only the list knows which one is this node's.
        self.assertEqual(self.ask(neighbour, out="relayed").returncode, 0)
        self.check("--tpm-roots", self.roots(maker))
        text = self.check("--tpm-keys", self.listed(own), status=4)
        self.assertIn("unknown_key: it answered with the key", text)

        # A TPM of a maker whom the receiver does not know.
        self.assertEqual(self.ask(foreign, out="foreign-run").returncode, 0)
        self.assertIn("other_root", self.check("--tpm-roots", self.roots(maker), status=4))

        # The head puts an earlier answer of the same TPM in the place of this one's.
        self.assertEqual(self.ask(mine, challenge=EARLIER, out="earlier").returncode, 0)
        self.assertEqual(self.key(), own, "the key is the same each time")
        earlier = self.said()
        self.assertEqual(self.ask(mine, out="stale").returncode, 0)
        self.assertEqual(self.assay("judge", self.run_directory).returncode, 0)
        self.replace({text: earlier[name] for name, text in self.said().items() if name in ("quote", "signature")})
        got = self.assay("judge", self.run_directory)
        self.assertEqual(got.returncode, 3, got.stdout + got.stderr)
        self.assertIn("the TPM: its quote answers another question than that of this attempt", got.stdout)

    def test_no_tpm_is_not_measured_and_informs_or_is_refused_as_the_receiver_demands(self):
        got = self.ask(f"device:{self.scratch / 'no-tpm'}")
        self.assertNotEqual(got.returncode, 0)
        (reason,) = self.reasons().values()
        self.assertIn("no-tpm is not there: the machine has no TPM 2.0", reason)
        self.assertIn("TPM no_tpm", self.check())
        maker = self.maker("maker")
        self.tpm("any", maker)
        self.assertIn("no_tpm", self.check("--tpm-roots", self.roots(maker), status=4))

    def test_a_tpm_that_hangs_is_given_up_at_its_deadline(self):
        path = str(self.scratch / "hung.s")
        for name in (path, path + ".ctrl"):
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(name)
            listener.listen(16)
            self.addCleanup(listener.close)
        got = self.ask(f"swtpm:path={path}", tool_deadline="500ms")
        self.assertNotEqual(got.returncode, 0)
        (reason,) = self.reasons().values()
        self.assertIn("tpm2_createek did not end within 0.5 s: the TPM does not answer", reason)
        self.nothing_left()


if __name__ == "__main__":
    main()
