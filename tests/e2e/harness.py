"""harness: runs the real binaries of an installation that holds fake_probe, and reads what they leave."""
import functools
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BIN = pathlib.Path(os.environ["ASSAY_E2E"]) / "bin"
DEADLINE_S = (
    600  # of one command: it takes seconds, on a loaded machine a minute; one that hangs is a failure all the same
)
DAEMON_S = (
    10_000_000 + os.getpid()
)  # what a child that fake_probe leaves sleeps: no other process here has it in its arguments


ONCE = {
    "repeat": {"attempts": 1, "more_attempts": 0},  # of a requirement that one process is to measure
    "reproducibility": {"u": 1e-9, "source": {"document": "the test", "status": "sourced"}},
}


def requirement(name, behaviour="measure", value=100, at_least=50, **more):
    """One requirement on fake_probe, measured once unless `more` says otherwise; its id is `name`."""
    more["repeat"] = {**ONCE["repeat"], **more.get("repeat", {})}
    return {
        "id": name,
        "title": name,
        "probe": "fake_probe",
        "parameters": {"behaviour": behaviour, "value": value},
        "metric": "number",
        "scope": "node",
        "limit": {"at_least": at_least, "unit": "1"},
        "source": {"document": "the test", "status": "sourced"},
        **ONCE,
        **more,
    }


CHECKING = (
    "host_tcp_",
    "host_collective",
    "verbs_bandwidth",
    "verbs_latency",
    "verbs_traffic",
    "storage_cluster",
    "train_step",
    "moe_dispatch",
    "kv_transfer",
)  # probes that check their payload


def exact(requirements):
    """One requirement on what was found wrong for each step that has none yet: a plan in which no requirement judges that is refused."""

    def place(one):
        return [one["probe"], one.get("parameters"), one["scope"]] + [
            one.get(name) for name in ("plane", "pairs", "rounds", "alone", "by")
        ]

    def sides(one):
        """A contrast with its feature on, and off; any other requirement as it is."""
        contrast = one.get("contrast")
        rest = {name: value for name, value in one.items() if name != "contrast"}
        return [
            rest
            | {
                "parameters": {
                    **one.get("parameters", {}),
                    **({contrast["parameter"]: contrast[side]} if contrast else {}),
                }
            }
            for side in (("on", "off") if contrast else ("",))
        ]

    judged = [place(one) for one in requirements if one["metric"] == "mismatches"]
    more = []
    for one in (side for requirement in requirements for side in sides(requirement)):
        if not one["probe"].startswith(CHECKING) or place(one) in judged:
            continue
        judged.append(place(one))
        more.append(
            {name: value for name, value in one.items() if name not in ("at", "repeat", "reproducibility", "severity")}
            | {
                "id": f"exact-{len(more)}",
                "metric": "mismatches",
                "at": "every",
                "statistic": "max",
                "limit": {"at_most": 0, "unit": "1"},
                "repeat": {"n": 1},
            }
        )
    return more


def profile(*requirements):
    return {
        "schema": "assay.profile/1",
        "name": "test",
        "title": "Test",
        "revision": 1,
        "relative_only": "a test",
        "requirements": [*requirements, *exact(requirements)],
    }


@functools.cache
def agent_digest():
    return hashlib.sha256((BIN / "assay-node").read_bytes()).hexdigest()


def keep_agent(directory):
    """Puts the agent where a node of `directory` keeps it, so that a test of something else does not send 10 MB to each node."""
    (directory / "agents").mkdir(parents=True)
    shutil.copy(BIN / "assay-node", directory / "agents" / agent_digest())


def processes(marker):
    """Command lines of every process that has `marker` among its arguments, this one left out."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if marker in line:
            found.append(line)
    return found


def wait_for(condition, what, deadline_s=120):
    """Polls until `condition()` is true; fails with `what` after the deadline, which times nothing: it is for what never
    becomes true."""
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError(f"still not so after {deadline_s} s: {what}")


class Bench(unittest.TestCase):
    """A scratch directory, a state directory of its own, and shorthands for the commands."""

    deadline_s = DEADLINE_S  # of one command

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="assay-e2e-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)
        self.work = self.scratch / "work"
        self.run_directory = self.scratch / "run"
        self.environment = dict(os.environ, XDG_STATE_HOME=str(self.scratch / "state"))
        self.prefix = []  # words before every command, such as those that run it elsewhere
        self.installed = BIN / "assay"

    def write(self, name, document):
        path = self.scratch / name
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return str(path)

    def assay(self, *arguments):
        return subprocess.run(
            [*self.prefix, self.installed, *map(str, arguments)],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=self.deadline_s,
            stdin=subprocess.DEVNULL,
        )

    def start(self, *arguments):
        """The same in the background, in a process group of its own."""
        process = subprocess.Popen(
            [*self.prefix, self.installed, *map(str, arguments)],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.addCleanup(process.wait, DEADLINE_S)
        self.addCleanup(process.kill)
        return process

    def accept(self, *requirements, more=()):
        arguments = [
            "accept",
            "--profile",
            self.write("profile.json", profile(*requirements)),
            "--out",
            self.run_directory,
        ]
        if "--site" not in more:
            arguments += ["--directory", self.work]
        return self.assay(*arguments, *more)

    def verify(self, dossier=None, key=None):
        return self.assay(
            "verify",
            dossier or self.run_directory / "dossier",
            "--key",
            key or self.scratch / "state/assay/machine.key.pub",
        )

    def verdict(self):
        return json.loads((self.run_directory / "verdict.json").read_text())

    def outcomes(self):
        return {(result["requirement"], result["node"]): result["outcome"] for result in self.verdict()["results"]}

    def reasons(self):
        return {(result["requirement"], result["node"]): result["reason"] for result in self.verdict()["results"]}

    def journal(self):
        path = self.run_directory / "journal.jsonl"
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text().split("\n")[:-1]]

    def node(self):
        return json.loads((self.run_directory / "plan.json").read_text())["site"]["nodes"][0]["name"]

    def nothing_left(self):
        """No agent, no probe and no scratch directory of this test is left."""
        wait_for(lambda: not processes(str(self.scratch)), "processes of this test are gone")
        scratch = self.work / "scratch"
        wait_for(lambda: not scratch.exists() or not list(scratch.iterdir()), "scratch directories are gone")


def main():
    """Runs the file's tests; zero tests are a failure. A test that this machine could not decide makes the whole a skip,
    so that it is seen."""
    program = unittest.main(exit=False, verbosity=2)
    ran = program.result.testsRun - len(program.result.skipped)
    undecided = [reason for _, reason in program.result.skipped if reason.startswith("UNDECIDED")]
    if not program.result.wasSuccessful():
        sys.exit(1)
    sys.exit(0 if ran > 0 and not undecided else 77)
