"""The Debian packages that CPack makes of this build: what is in which, what they depend on, and that what they hold runs."""
import os
import pathlib
import platform
import shutil
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["ASSAY_BUILD"])
CUDA = os.environ["ASSAY_WITH_CUDA"] == "ON"
DEADLINE_S = 1200


def run(*command, **more):
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=DEADLINE_S, check=True, **more
    ).stdout


ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
MACHINE = f"assay-machine-{ARCHITECTURE}"


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-packages-", dir="/var/tmp"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        run(
            "cpack",
            "--config",
            BUILD / "CPackConfig.cmake",
            "-B",
            cls.folder / "made",
            "-D",
            f"CPACK_PACKAGE_DIRECTORY={cls.folder}/made",
        )
        cls.packages = {
            run("dpkg-deb", "-f", path, "Package").strip(): path for path in (cls.folder / "made").glob("*.deb")
        }

    def files(self, package):
        return {
            line.split(None, 5)[5].removeprefix(".")
            for line in run("dpkg-deb", "-c", self.packages[package]).splitlines()
            if not line.startswith("d")
        }

    def field(self, package, name):
        return run("dpkg-deb", "-f", self.packages[package], name).strip()

    def test_there_is_a_package_for_the_head_one_for_nodes_and_one_for_gpus(self):
        self.assertEqual(
            set(self.packages), {"assay", "assay-node", MACHINE} | ({"assay-probes-cuda"} if CUDA else set())
        )

    def test_no_file_is_in_two_packages(self):
        seen = {}
        for package in self.packages:
            for path in self.files(package):
                self.assertNotIn(path, seen, f"in {package} and {seen.get(path)}")
                seen[path] = package

    def test_what_is_in_which(self):
        head, node = self.files("assay"), self.files("assay-node")
        self.assertEqual(
            node,
            {
                "/usr/bin/assay-node",
                "/usr/share/doc/assay-node/changelog.gz",
                "/usr/share/doc/assay-node/copyright",
                "/usr/share/lintian/overrides/assay-node",
                "/usr/share/man/man1/assay-node.1.gz",
            },
        )
        folder = f"/usr/libexec/assay/machines/{platform.machine()}"
        for path in (f"{folder}/assay-node", f"{folder}/VERSION", f"{folder}/probes/host_gemm"):
            self.assertIn(path, self.files(MACHINE))
        self.assertEqual(self.field(MACHINE, "Architecture"), "all")
        self.assertNotIn("libc6", self.field(MACHINE, "Depends"), "its programs do not run on the head")
        for path in (
            "/usr/bin/assay",
            "/usr/bin/assay-report",
            "/usr/bin/assay-fleet",
            "/usr/share/man/man1/assay.1.gz",
            "/usr/share/man/man1/assay-report.1.gz",
            "/usr/share/man/man1/assay-fleet.1.gz",
            "/usr/share/zsh/vendor-completions/_assay",
            "/usr/share/fish/vendor_completions.d/assay.fish",
            "/usr/share/bash-completion/completions/assay",
            "/usr/libexec/assay/probes/host_gemm",
            "/usr/share/assay/profiles/host.json",
            "/usr/share/doc/assay/copyright",
        ):
            self.assertIn(path, head)
        self.assertFalse([path for path in head if "/cuda_" in path or "/nccl_" in path])
        if CUDA:
            self.assertIn("/usr/libexec/assay/probes/cuda_gemm", self.files("assay-probes-cuda"))

    def test_libraries_are_dependencies_and_those_of_gpus_are_not(self):
        depends = self.field("assay", "Depends")
        for name in ("libssl3", "libc6", "assay-node (= "):
            self.assertIn(name, depends)
        self.assertEqual(self.field("assay-node", "Depends"), "", "a static program")
        if CUDA:
            self.assertNotIn("nvidia", self.field("assay-probes-cuda", "Depends"))

    @unittest.skipUnless(shutil.which("lintian"), "lintian is not installed")
    def test_lintian_finds_nothing(self):
        found = subprocess.run(
            [
                "lintian",
                "--allow-root",
                "--fail-on",
                "error,warning",
                "--tag-display-limit",
                "0",
                *map(str, self.packages.values()),
            ],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        print(found.stdout)
        self.assertEqual(found.returncode, 0, found.stdout + found.stderr)

    def test_what_was_unpacked_runs(self):
        root = self.folder / "root"
        for path in self.packages.values():
            run("dpkg-deb", "-x", path, root)
        environment = dict(os.environ, XDG_STATE_HOME=str(self.folder / "state"))
        self.assertIn("assay", run(root / "usr/bin/assay", "--version", env=environment))
        self.assertIn("host_gemm", run(root / "usr/bin/assay", "list", env=environment))
        self.assertRegex(
            run(root / "usr/bin/assay", "accept", "--profile", "host", "--dry-run", env=environment, cwd=self.folder),
            r"\d{4} +host_gemm ",
        )
        self.assertIn("sweep", run(root / "usr/bin/assay", "sweep", "--help", env=environment))
        self.assertFalse((root / "usr/bin/assay").stat().st_mode & 0o022)


if __name__ == "__main__":
    unittest.main(verbosity=2)
