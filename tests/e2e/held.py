"""Dossiers signed by keys of other kinds than Ed25519, and looked at by hand."""
import os
import re
import subprocess

from attacks import DEADLINE_S, REPORT, Bench, run


def tool(*command, **more):
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, timeout=DEADLINE_S, stdin=subprocess.DEVNULL, **more
    )
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stderr}")
    return done.stdout


class Held(Bench):
    def sign_as(self, key, *arguments, env=None):
        """A second dossier of the run, signed by `key`; verify then looks at it."""
        out = self.scratch / "signed"
        done = run(
            REPORT, "sign", self.run_directory, "--out", out, "--key", key, *arguments, env=env or self.environment
        )
        if done.returncode == 0:
            self.dossier, self.statement = out, out / "statement.dsse.json"
        return done

    def key_file(self, *words, name="own"):
        """A private key by openssl genpkey, NAME.key, and its public half, NAME.pub."""
        key = self.scratch / f"{name}.key"
        tool("openssl", "genpkey", *words, "-out", key)
        key.chmod(0o600)
        tool("openssl", "pkey", "-in", key, "-pubout", "-out", self.scratch / f"{name}.pub")
        return key

    def on_curve(self, curve="P-256", **more):
        return self.key_file("-algorithm", "EC", "-pkeyopt", f"ec_paramgen_curve:{curve}", **more)

    def by_hand(self, public, **environment):
        """The commands of VERIFY.txt, as a reader would copy them."""
        commands = re.findall(r"^    (.*)$", (self.dossier / "VERIFY.txt").read_text(), re.MULTILINE)
        return run(
            "sh", "-c", "\n".join(commands), cwd=self.dossier, env=dict(os.environ, SIGNER=str(public), **environment)
        )
