"""joints: joint dossiers for tests: runs of several sites, joined, countersigned, and their statement signed again."""
import base64
import json
import shutil

from attacks import MAKE_RUN, TYPE, canonical, encoding, run
from policies import Policies

#        site      run  first count serials     copy bandwidth
RUNS = {
    "old": ("hall-3", 1, 1, 8, "SN-hall3-", 4.62e11),
    "new": ("hall-3", 2, 9, 4, "SN-hall3-", 4.6e11),
    "slow": ("hall-3", 3, 9, 3, "SN-hall3-", 4.2e11),
    "same": ("hall-3", 4, 8, 8, "SN-again-", 4.62e11),
    "south": ("south", 5, 1, 8, "SN-south-", 4.62e11),
    "moved": ("west", 6, 1, 8, "SN-hall3-", 4.62e11),
    "failed": ("east", 7, 1, 8, "SN-east-0", 2.0e11),
    "small": ("small", 8, 1, 2, "SN-small-", 4.62e11),
}


class Joints(Policies):
    """lab.key has signed every part; buyer.key joins them."""

    def folder(self, name):
        """The run of this name, judged, reported and signed once for all tests."""
        directory = self.base / name
        if not directory.exists():
            site, number, first, count, serials, level = RUNS[name]
            made = run(
                MAKE_RUN,
                "fleet",
                directory,
                site,
                f"5f0c3c1e-8a51-4f0e-9b64-0b1d5a7e2c{number:02}",
                first,
                count,
                serials,
                level,
            )
            self.assertEqual(made.returncode, 0, made.stderr)
            self.command("report", directory, code=0)
            self.command("sign", directory, "--key", self.base / "lab.key", "--role", "vendor", "--name", "Ada", code=0)
        return directory / "dossier"

    def join(self, command, *names, by="buyer", keys=("lab",), more=()):
        known = [word for name in keys for word in ("--with-key", self.base / f"{name}.key.pub")]
        return self.command(
            command,
            *(name if "/" in str(name) else self.folder(name) for name in names),
            "--key",
            self.base / f"{by}.key",
            *known,
            "--out",
            self.scratch / "joint",
            *more,
        )

    def joined(self, command, *names):
        """A joint dossier of these runs, made once for all tests."""
        made = self.base / "-".join((command, *names))
        if not made.exists():
            done = self.join(command, *names)
            self.assertEqual(done.returncode, 0, done.stderr)
            (self.scratch / "joint").rename(made)
        shutil.copytree(made, self.scratch / "joint")
        self.part = self.scratch / "joint/parts/01"

    def check(self, *arguments, keys=("lab", "buyer")):
        known = [word for name in keys for word in ("--key", self.base / f"{name}.key.pub")]
        return self.command("verify", self.scratch / "joint", *known, *arguments)

    def countersign(self, name, *arguments):
        return self.command("sign", self.scratch / "joint", "--add", "--key", self.base / f"{name}.key", *arguments)

    def countersigned(self, name, *arguments):
        done = self.countersign(name, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)

    def bent(self, change, by="buyer", payload_type=TYPE):
        """The joint statement after `change`, signed again."""
        path = self.scratch / "joint/joint.dsse.json"
        document = json.loads(base64.b64decode(json.loads(path.read_text())["payload"]))
        change(document)
        payload = canonical(document)
        signature = self.signature(encoding(payload, payload_type), self.base / f"{by}.key")
        path.write_text(
            json.dumps(
                {
                    "payloadType": payload_type,
                    "payload": base64.b64encode(payload).decode(),
                    "signatures": [{"sig": base64.b64encode(signature).decode()}],
                }
            )
        )
