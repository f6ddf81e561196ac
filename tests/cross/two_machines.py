"""A site of two nodes, x86-64 and aarch64, from an x86-64 head: each is sent the agent and the probe of its machine. The aarch64 node is
emulated by qemu's user mode: the kernel starts its programs through binfmt_misc, in a user namespace of this test. Exit code 77 where the
kernel has no such namespace (Linux 6.7) or a program is missing.
  ASSAY_BUILD=build/dev [ASSAY_CROSS=build/aarch64] tests/cross/two_machines.py
"""
import hashlib
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["ASSAY_BUILD"]).resolve()
CROSS = pathlib.Path(os.environ.get("ASSAY_CROSS", SOURCE / "build/aarch64")).resolve()
EMULATOR = shutil.which("qemu-aarch64-static")
DEADLINE_S = 900
PROBE = "health_inventory"
# The head of an ELF file for aarch64, as binfmt_misc takes it; O: the program may be an open file without a path, as a sealed probe is.
REGISTER = (
    r":assay-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:"
    r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:{}:OF"
)
NAMESPACE = """set -e
mount -t binfmt_misc none {formats}
printf '%s' '{register}' > {formats}/register
mount -t overlay overlay -o lowerdir=/usr/aarch64-linux-gnu/lib:/usr/lib /usr/lib
exec "$@"
"""
PROFILE = {
    "schema": "assay.profile/1",
    "name": "test",
    "title": "Test",
    "revision": 1,
    "relative_only": "a test",
    "requirements": [
        {
            "id": "cpus",
            "title": "It has a processor",
            "probe": PROBE,
            "metric": "cpus_online",
            "scope": "node",
            "limit": {"at_least": 1, "unit": "1"},
            "statistic": "min",
            "repeat": {"n": 1},
            "source": {"document": "the test", "status": "sourced"},
        }
    ],
}


def run(*words, **more):
    return subprocess.run(
        [str(word) for word in words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        **more,
    )


class TwoMachines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="assay-machines-", dir="/var/tmp"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch, ignore_errors=True)
        cls.here = cls.scratch / "installation"
        probes = cls.here / "libexec/assay/probes"
        probes.mkdir(parents=True)
        (cls.here / "bin").mkdir()
        for name in ("assay", "assay-node", "assay-report", "assay-fleet"):
            shutil.copy2(BUILD / "bin" / name, cls.here / "bin")
        shutil.copy2(BUILD / "libexec/assay/probes" / PROBE, probes)
        cls.other = cls.here / "libexec/assay/machines/aarch64"
        (cls.other / "probes").mkdir(parents=True)
        for made, there in (
            (CROSS / "bin/assay-node", cls.other),
            (CROSS / "libexec/assay/probes" / PROBE, cls.other / "probes"),
        ):
            run("aarch64-linux-gnu-strip", "-o", there / made.name, made, check=True)  # as a package has them
        (cls.other / "VERSION").write_text(run(cls.here / "bin/assay", "--version").stdout.split()[-1] + "\n")
        tools = cls.scratch / "tools"
        tools.mkdir()
        (tools / "uname").write_text(
            '#!/bin/sh\ncase $(hostname) in *arm*) echo aarch64;; *) exec /bin/uname "$@";; esac\n'
        )
        (tools / "uname").chmod(0o755)
        (cls.scratch / "formats").mkdir()
        (cls.scratch / "profile.json").write_text(json.dumps(PROFILE))
        cls.environment = dict(
            os.environ, PATH=f"{tools}:{os.environ['PATH']}", XDG_STATE_HOME=str(cls.scratch / "state")
        )

    def setUp(self):
        self.out = self.scratch / self._testMethodName

    def in_namespace(self, *words):
        script = NAMESPACE.format(formats=self.scratch / "formats", register=REGISTER.format(EMULATOR))
        return run(
            "unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", *words, env=self.environment
        )

    def accept(self, *more, **machines):
        nodes = [
            {
                "name": name,
                "launcher": "kubernetes",
                "pod": f"pod-{name}",
                "directory": str(self.scratch / "work" / name),
                **({"machine": machine} if machine else {}),
            }
            for name, machine in machines.items()
        ]
        site = self.scratch / "site.json"
        site.write_text(json.dumps({"schema": "assay.site/1", "name": "hall", "nodes": nodes}))
        pods = ",".join(node["pod"] for node in nodes)
        server = ("python3", SOURCE / "tests/fakes/kube/api.py", self.scratch / "kube", pods)
        return self.in_namespace(
            *server,
            self.here / "bin/assay",
            "accept",
            "--profile",
            self.scratch / "profile.json",
            "--site",
            site,
            "--out",
            self.out,
            *more,
        )

    def host(self, node):
        """What the kernel told the probe of that node of itself."""
        (record,) = (self.out / "records").glob(f"*-{node}/*/*.jsonl")
        return json.loads(record.read_text().splitlines()[0])["start"]["host"]

    def outcomes(self):
        return {
            result["node"]: result["outcome"]
            for result in json.loads((self.out / "verdict.json").read_text())["results"]
        }

    def test_each_node_is_sent_what_runs_on_it(self):
        done = self.accept(x86="", arm="")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.outcomes(), {"x86": "pass", "arm": "pass"})
        builds = json.loads((self.out / "plan.json").read_text())["probes"][PROBE]["builds"]
        self.assertEqual(builds["aarch64"], hashlib.sha256((self.other / "probes" / PROBE).read_bytes()).hexdigest())
        stored = {
            name: {path.name for path in (self.scratch / "work" / name / "agents").iterdir()} for name in ("x86", "arm")
        }
        self.assertEqual(stored["arm"], {hashlib.sha256((self.other / "assay-node").read_bytes()).hexdigest()})
        self.assertEqual(stored["x86"], {hashlib.sha256((self.here / "bin/assay-node").read_bytes()).hexdigest()})
        verified = run(
            self.here / "bin/assay",
            "verify",
            self.out / "dossier",
            "--key",
            self.scratch / "state/assay/machine.key.pub",
            "--json",
            env=self.environment,
        )
        self.assertEqual(verified.returncode, 0, verified.stderr)
        self.assertEqual(json.loads(verified.stdout)["probes"][0]["builds"], builds)

    def test_a_site_that_names_another_machine_than_the_node_is_refused(self):
        done = self.accept(x86="x86_64", arm="x86_64")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertEqual(self.outcomes(), {"x86": "pass", "arm": "not_measured"})
        self.assertIn(
            "this machine is aarch64, and the agents that can be sent are for x86_64",
            (self.out / "journal.jsonl").read_text(),
        )

    def test_a_probe_without_a_build_for_a_node_leaves_its_cells_without_a_step(self):
        kept = self.other / "probes" / PROBE
        kept.rename(self.scratch / "kept")
        self.addCleanup((self.scratch / "kept").rename, kept)
        done = self.accept(x86="x86_64", arm="aarch64")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertEqual(self.outcomes(), {"x86": "pass", "arm": "not_measured"})
        self.assertIn(f"the probe {PROBE} is not part of this build for aarch64", (self.out / "plan.json").read_text())

    def test_a_folder_of_another_version_is_refused(self):
        version = self.other / "VERSION"
        self.addCleanup(version.write_text, version.read_text())
        version.write_text("0.0.1\n")
        done = self.accept(x86="", arm="")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("machines/aarch64/VERSION: '0.0.1' is not ", done.stderr)


def main():
    if platform.machine() != "x86_64" or EMULATOR is None or shutil.which("aarch64-linux-gnu-g++") is None:
        print("two_machines: needs x86-64, g++-aarch64-linux-gnu and qemu-user-static")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        if (
            run(
                "unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "binfmt_misc", "none", folder
            ).returncode
            != 0
        ):
            print("two_machines: the kernel has no binfmt_misc of a user namespace")
            return 77
    built = subprocess.run([SOURCE / "tests/cross/aarch64", "agent"], timeout=5000)
    if built.returncode != 0:
        return built.returncode
    program = unittest.main(exit=False, verbosity=2)
    return 0 if program.result.wasSuccessful() and program.result.testsRun > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
