"""`assay bundle`: what is packed is whole, works elsewhere, and is the same every time."""
import hashlib
import json
import pathlib
import subprocess
import tarfile

import harness
from harness import Bench, main, profile, requirement

PROBE = "libexec/assay/probes/fake_probe"


class Bundle(Bench):
    def bundle(self, *arguments):
        return self.assay("bundle", *arguments)

    def packed(self, name="assay.tar", *arguments):
        """The archive, packed; the run must succeed."""
        done = self.bundle("--out", self.scratch / name, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.scratch / name

    def unpacked(self, archive):
        """The bundle's folder, unpacked by the system's tar somewhere else."""
        place = self.scratch / "elsewhere"
        place.mkdir()
        subprocess.run(["tar", "--extract", "--file", archive, "--directory", place], check=True)
        (folder,) = place.iterdir()
        return folder

    def library(self, name, content=b"\x7fELF and the rest"):
        folder = self.scratch / "libraries"
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
        return folder

    def refused(self, words, *arguments):
        done = self.bundle(*arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(words, done.stderr)
        self.assertIn("hint: ", done.stderr)
        self.assertEqual(list(self.scratch.glob("*.partial-*")), [])

    def test_what_is_unpacked_elsewhere_finds_its_neighbours_and_measures(self):
        folder = self.unpacked(self.packed())
        listed = subprocess.run(
            [folder / "bin/assay", "list"], capture_output=True, text=True, timeout=harness.DEADLINE_S
        )
        self.assertIn("fake_probe", listed.stdout)
        accepted = subprocess.run(
            [
                folder / "bin/assay",
                "accept",
                "--profile",
                self.write("p.json", profile(requirement("r"))),
                "--out",
                self.run_directory,
                "--directory",
                self.work,
            ],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=harness.DEADLINE_S,
            stdin=subprocess.DEVNULL,
        )
        self.assertEqual(accepted.returncode, 0, accepted.stderr)
        self.assertIn("ACCEPTED", accepted.stdout)
        self.nothing_left()

    def test_sha256sum_confirms_every_file(self):
        folder = self.unpacked(self.packed())
        checked = subprocess.run(
            ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, capture_output=True, text=True, check=False
        )
        self.assertEqual(checked.returncode, 0, checked.stderr)
        files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        self.assertEqual(files, {line.rsplit(": ", 1)[0] for line in checked.stdout.splitlines()} | {"SHA256SUMS"})
        self.assertLessEqual(
            {
                "bin/assay",
                "bin/assay-node",
                "bin/assay-report",
                "bin/assay-fleet",
                PROBE,
                "share/assay/profiles/host.json",
                "VERSION",
                "share/doc/assay/LICENSE",
                "share/doc/assay/FORMATS.md",
            },
            files,
        )

    def test_the_bill_of_materials_names_every_file_by_its_digest_and_what_is_compiled_in(self):
        folder = self.unpacked(self.packed())
        bill = json.loads((folder / "SBOM.cdx.json").read_text())
        self.assertEqual((bill["bomFormat"], bill["specVersion"]), ("CycloneDX", "1.5"))
        named = {one["name"]: one["hashes"] for one in bill["components"] if "hashes" in one}
        lines = [line.split("  ") for line in (folder / "SHA256SUMS").read_text().splitlines()]
        self.assertEqual(
            named, {name: [{"alg": "SHA-256", "content": digest}] for digest, name in lines if name != "SBOM.cdx.json"}
        )
        libraries = {one["name"]: one.get("version", "") for one in bill["components"] if one["type"] == "library"}
        self.assertRegex(libraries["OpenSSL"], r"^3\.\d+\.\d+$")
        self.assertRegex(libraries["nlohmann_json"], r"^3\.\d+\.\d+$")
        self.assertEqual(
            [bill["metadata"]["component"]["name"], *(one["ref"] for one in bill["dependencies"])], ["assay", "assay"]
        )

    def test_packed_twice_it_has_the_same_bytes_and_nothing_of_this_machine(self):
        digests = [hashlib.sha256(self.packed(name).read_bytes()).hexdigest() for name in ("one.tar", "two.tar")]
        self.assertEqual(digests[0], digests[1])
        with tarfile.open(self.scratch / "one.tar") as archive:
            members = archive.getmembers()
        self.assertEqual(
            {(member.uid, member.gid, member.uname, member.gname, member.mtime) for member in members},
            {(0, 0, "", "", 0)},
        )
        self.assertEqual({member.mode for member in members if member.isfile()}, {0o755, 0o644})

    def test_a_folder_has_what_the_archive_has(self):
        folder = self.packed("folder")
        self.assertEqual(
            (folder / "SHA256SUMS").read_bytes(), (self.unpacked(self.packed()) / "SHA256SUMS").read_bytes()
        )

    def test_libraries_come_along_with_a_notice_when_asked_for(self):
        self.library("libcublasLt.so.13")
        folder = self.unpacked(self.packed("a.tar", "--with-libraries", "--library-path", self.library("libnccl.so.2")))
        self.assertEqual(
            {path.name for path in (folder / "lib/assay").iterdir()}, {"libcublasLt.so.13", "libnccl.so.2", "NOTICE"}
        )
        self.assertIn("NVIDIA's", (folder / "lib/assay/NOTICE").read_text())

    def test_a_dry_run_names_every_file_and_writes_none(self):
        done = self.bundle("--out", self.scratch / "assay.tar", "--dry-run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLessEqual({"bin/assay", PROBE, "SHA256SUMS"}, set(done.stdout.split("\n")))
        self.assertIn("would be written to", done.stderr)
        self.assertFalse((self.scratch / "assay.tar").exists())

    def test_every_refusal_says_what_would_help(self):
        taken = pathlib.Path(self.write("taken.tar", "mine"))
        self.refused("exists", "--out", taken)
        self.assertEqual(taken.read_text(), "mine")
        self.refused("compressed archive", "--out", self.scratch / "assay.tar.gz")
        self.refused("did you mean 'fake_probe'?", "--out", self.scratch / "a.tar", "--probe", "fake_prob")
        self.refused(
            "libcublasLt.so.13: is not in " + str(self.scratch),
            "--out",
            self.scratch / "a.tar",
            "--with-libraries",
            "--library-path",
            self.scratch,
        )
        linker_script = self.library("libcublasLt.so.13", b"INPUT(libcublasLt_static.a)")
        self.refused(
            "is not a shared library",
            "--out",
            self.scratch / "a.tar",
            "--with-libraries",
            "--library-path",
            linker_script,
        )
        self.refused("cannot be written", "--out", self.scratch / "nowhere" / "a.tar")


if __name__ == "__main__":
    main()
