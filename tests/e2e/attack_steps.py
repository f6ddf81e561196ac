"""attack_steps: what the text cases of attacks/*.cases do to a dossier or a run: do_STEP is an edit, run_STEP a command."""
import base64
import datetime
import json
import os
import pathlib
import shutil
import socket

import doctoring
from attacks import ASSAY, Bench, canonical, encoding, run, sha256
from json_edits import edit

ORDER = 2**252 + 27742317777372353535851937790883648493  # of Ed25519's base point
HUGE_B = 100 << 30
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
TODAY = datetime.datetime.now(datetime.timezone.utc).date()
CONSTANTS = {
    "challenge": sha256(b"challenge"),
    "mine": sha256(b"mine"),
    "zeros": "0" * 64,
    "others.sha256": sha256(b"others"),
    "another.sha256": sha256(b"another"),
    "plan-of-hall": sha256(b"the plan of the hall"),
    "next_year": f"{TODAY.year + 1}-01-01",
}


class Fault(Exception):
    """A file of cases that cannot be read; the text says where and why."""


def found(steps, word):
    """The name of the method of a step."""
    for kind in ("do_", "run_"):
        if hasattr(steps, kind + word.replace("-", "_")):
            return kind + word.replace("-", "_")
    raise Fault(f"{steps.__name__} has no step '{word}'")


def data_of(part):
    """The bytes of a part: the contents of the file behind @, or the text."""
    return pathlib.Path(part[1:]).read_bytes() if part.startswith("@/") else part.encode()


class Steps(Bench):
    """Of the signer lab.key; buyer.key is another's. {scratch}, {base}, {dossier}, {run}; {lab.pub}, {lab.key}, {lab.fingerprint}."""

    def place(self, name):
        """What {name} stands for."""
        if name in CONSTANTS:
            return CONSTANTS[name]
        stem, _, ending = name.rpartition(".")
        if ending in ("pub", "key") and stem:
            return self.base / (f"{stem}.key" if ending == "key" else f"{stem}.key.pub")
        if ending == "fingerprint":
            public = self.base / f"{stem}.key.pub"
            return self.command(
                "fingerprint", public if public.exists() else self.scratch / f"{stem}.pub", code=0
            ).stdout.strip()
        if stem == "verify":
            return json.loads(self.verify("--json").stdout)[ending]
        return {
            "scratch": lambda: self.scratch,
            "base": lambda: self.base,
            "dossier": lambda: self.dossier,
            "run": lambda: self.run_directory,
            "record": lambda: self.first("records"),
            "record-9": lambda: self.first("records").replace("/1/", "/9/"),
            "log": lambda: self.first("logs"),
            "doctored": lambda: self.scratch / "doctored",
            "older": lambda: self.older,
            "profiles": lambda: pathlib.Path(__file__).parents[2] / "profiles",
            "plan.sha256": lambda: sha256((self.run_directory / "plan.json").read_bytes()),
        }[name]()

    # Commands.

    def run_verify(self, *words):
        """By lab.key.pub unless a --key is given."""
        return self.verify(*words)

    def run_assay_report(self, *words):
        return self.command(*words)

    def run_assay(self, *words):
        return run(ASSAY, *words, env=self.environment)

    def run_sign_add(self, name, *words):
        return self.command("sign", self.dossier, "--add", "--key", self.base / f"{name}.key", *words)

    def run_sign_with(self, key, *words):
        """A second dossier of the run, {scratch}/signed."""
        return self.command("sign", self.run_directory, "--out", self.scratch / "signed", "--key", key, *words)

    def run_judge(self):
        return self.judge(self.scratch / "doctored")

    def run_sign_run(self):
        """Judges, reports and signs the doctored run; the first that refuses answers."""
        return self.sign_run(self.scratch / "doctored")

    # Files.

    def do_flip(self, name):
        self.flip(name)

    def do_write(self, path, *parts):
        path = pathlib.Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(data_of(part) for part in parts))

    def do_copy(self, source, target):
        if os.path.isdir(source):
            shutil.copytree(source, target)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(source, target)

    def do_rename(self, source, target):
        os.rename(source, target)

    def do_remove(self, path):
        if os.path.isdir(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)

    def do_replace(self, path, old, new, count="-1"):
        path = pathlib.Path(path)
        path.write_bytes(path.read_bytes().replace(old.encode(), new.encode(), int(count)))

    def do_replace_first(self, path, old, new):
        self.do_replace(path, old, new, "1")

    def do_cut_line(self, path, number, length):
        path = pathlib.Path(path)
        lines = path.read_text().splitlines()
        lines[int(number) - 1] = lines[int(number) - 1][: int(length)]
        path.write_text("\n".join(lines) + "\n")

    def do_drop_last_line(self, path):
        path = pathlib.Path(path)
        path.write_text("".join(line + "\n" for line in path.read_text().splitlines()[:-1]))

    def do_edit_json(self, path, *changes):
        document = json.loads(pathlib.Path(path).read_text())
        edit(document, *changes)
        pathlib.Path(path).write_text(json.dumps(document))

    def do_folder(self, path):
        pathlib.Path(path).mkdir(parents=True)

    def do_deep_folder(self, path, levels):
        pathlib.Path(path, *"d" * int(levels)).mkdir(parents=True)

    def do_link_to_moved(self, name):
        """A symbolic link in the dossier in place of `name`, to the same bytes elsewhere."""
        path = self.dossier / name
        path.rename(self.scratch / "moved")
        path.symlink_to(self.scratch / "moved")

    def do_symlink(self, path, target):
        os.symlink(target, path)

    def do_hard_link(self, path):
        os.link(path, self.scratch / "second")

    def do_pipe(self, path):
        os.mkfifo(path)

    def do_replace_by_pipe(self, path):
        os.unlink(path)
        os.mkfifo(path)

    def do_device(self, path):
        try:
            os.mknod(path, 0o020666, os.makedev(1, 5))
        except PermissionError:  # only root makes devices
            socket.socket(socket.AF_UNIX).bind(os.path.relpath(path))

    def do_sparse(self, path):
        with open(path, "wb") as file:
            file.truncate(HUGE_B)

    def do_chmod(self, path, mode):
        os.chmod(path, int(mode, 8))

    def do_keep(self, path):
        """Its bytes, for the check `unchanged`."""
        self.kept = {path: pathlib.Path(path).read_bytes()}

    # The envelope, which anybody can change.

    def do_look_at(self, dossier):
        self.dossier = pathlib.Path(dossier)
        self.statement = self.dossier / "statement.dsse.json"

    def do_envelope(self, *changes):
        envelope = self.envelope()
        edit(envelope, *changes)
        self.put(envelope)

    def do_statement(self, *parts):
        """The envelope's text anew: @ is the present one, @1 that without its first character."""
        text = self.statement.read_text()
        self.put("".join({"@": text, "@1": text[1:]}.get(part, part) for part in parts))

    def do_statement_deep(self, levels):
        self.do_statement('{"x":' + "[" * int(levels) + "]" * int(levels) + ",", "@1")

    def do_statement_indented(self):
        self.put(json.dumps(self.envelope(), indent=2))

    def do_replace_payload(self, path, old, new):
        """Inside the payload of an envelope, not signed again."""
        path = pathlib.Path(path)
        envelope = json.loads(path.read_text())
        payload = base64.b64decode(envelope["payload"]).replace(old.encode(), new.encode())
        path.write_text(json.dumps({**envelope, "payload": base64.b64encode(payload).decode()}))

    def do_edit_payload(self, *changes):
        """The statement's document, not signed again."""
        document = json.loads(self.payload())
        edit(document, *changes)
        self.put({**self.envelope(), "payload": base64.b64encode(canonical(document)).decode()})

    def do_signatures(self, *kinds):
        """Signatures of these kinds alone."""
        good = base64.b64decode(self.envelope()["signatures"][0]["sig"])
        made = {
            "good": lambda: good,
            "zeros": lambda: bytes(64),
            "flipped": lambda: bytes([good[0] ^ 1]) + good[1:],
            "buyer": lambda: self.signature(encoding(self.payload()), self.base / "buyer.key"),
            "longer": lambda: good + b"\0",
            "unreduced": lambda: good[:32] + (int.from_bytes(good[32:], "little") + ORDER).to_bytes(32, "little"),
        }
        self.put(
            {**self.envelope(), "signatures": [{"sig": base64.b64encode(made[kind]()).decode()} for kind in kinds]}
        )

    def do_signature_text(self, kind):
        """The base64 of the only signature, spelt otherwise."""
        spelt = {
            "bits": lambda text: text[:-3] + LETTERS[LETTERS.index(text[-3]) | 1] + "==",
            "blank": lambda text: text[:8] + " " + text[8:],
            "no-padding": lambda text: text.rstrip("="),
        }[kind]
        self.put({**self.envelope(), "signatures": [{"sig": spelt(self.envelope()["signatures"][0]["sig"])}]})

    def do_url_alphabet(self):
        def other(text):
            return text.replace("+", "-").replace("/", "_")

        self.put(
            {
                **self.envelope(),
                "payload": other(self.envelope()["payload"]),
                "signatures": [{"sig": other(self.envelope()["signatures"][0]["sig"])}],
            }
        )

    def do_bytes_of(self, member_of_it, kind):
        """The bytes of a member of the first signature: one flipped, one behind them."""
        envelope = self.envelope()
        data = bytearray(base64.b64decode(envelope["signatures"][0][member_of_it]))
        if kind == "flipped":
            data[-10] ^= 1
        else:
            data += {"longer": b"\0"}[kind]
        envelope["signatures"][0][member_of_it] = base64.b64encode(data).decode()
        self.put(envelope)

    # The statement, signed again by lab.key.

    def do_spell(self, old, new):
        """Other characters in the payload's text."""
        text = self.payload().decode()
        self.assertIn(old, text)
        self.sign(text.replace(old, new, 1).encode())

    def do_behind_payload(self, text):
        self.sign(self.payload() + text.encode())

    def do_sign_type(self, payload_type):
        self.sign(self.payload(), payload_type)

    def do_sign_without_type(self):
        self.sign(self.payload(), message=self.payload())

    def do_state(self, *changes):
        document = json.loads(self.payload())
        edit(document, *changes)
        self.sign(canonical(document))

    def do_claim(self, *changes):
        """The same of the statement's predicate."""
        self.claim(lambda predicate: edit(predicate, *changes))

    def do_seal(self, *changes):
        """Manifest, digests and statement in line with the files that lie there; `changes` of the predicate."""
        self.seal(lambda predicate: edit(predicate, *changes))

    # The run, before the tool itself judges, reports and signs it.

    def do_doctor(self, name="nothing", *words):
        """A copy, {doctored}, changed by a function of doctoring.CHANGES, with every digest redone."""
        self.doctor(lambda lines, directory: doctoring.CHANGES[name](lines, directory, *words))

    def do_bend_probe(self, directory):
        doctoring.bend_probe([], pathlib.Path(directory))

    # What a receiver expects.

    def do_site_file_with(self, name):
        """The run's site with one more node, {scratch}/site.json."""
        site = json.loads((self.run_directory / "plan.json").read_text())["site"]
        site["nodes"].append({"name": name, "launcher": "ssh"})
        (self.scratch / "site.json").write_text(
            json.dumps({key: value for key, value in site.items() if value not in (None, "")})
        )

    def run_agreed(self, *changes):
        """verify by the run's own profile after these changes, {scratch}/agreed.json."""
        profile = json.loads((self.run_directory / "plan.json").read_text())["profile"]
        edit(profile, *changes)
        path = self.scratch / "agreed.json"
        path.write_text(
            json.dumps({name: value for name, value in profile.items() if name not in ("ancestors", "loosened")})
        )
        return self.verify("--profile", path)
