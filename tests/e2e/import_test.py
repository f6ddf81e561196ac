"""`assay import`: what other tools printed, laid beside a run and never counted as part of it."""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from harness import DEADLINE_S, Bench, main, requirement

# What docs/tpu_figures.py uses of JAX, which no machine of the tests has: every operation ends at once.
FAKE_JAX = """
import types
__version__ = "0.0"
class Array:
    def block_until_ready(self): return self
    __matmul__ = __add__ = lambda self, other: self
class Device:
    def __init__(self, id): self.id, self.device_kind, self.platform = id, "TPU fake", "tpu"
random = types.SimpleNamespace(PRNGKey=lambda seed: seed, split=lambda key, n: [key] * n, normal=lambda *a: Array())
lax = types.SimpleNamespace(psum=lambda x, axis: x)
local_devices = lambda: [Device(0), Device(1)]
local_device_count, process_count = lambda: 2, lambda: 1
device_put = lambda array, device: array
jit = lambda function: function
pmap = lambda function, axis_name="": function
"""
FAKE_NUMPY = "bfloat16 = float32 = None\nfrom jax import Array\nones = lambda *shape: Array()\n"

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "imports"


class Imports(Bench):
    def imported(self, *arguments):
        done = self.assay("import", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def refused(self, words, *arguments):
        done = self.assay("import", *arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn(words, done.stderr)
        self.assertIn("hint: ", done.stderr)

    def place(self, folder, name="vendor.jsonl"):
        """An import in `folder`, laid there by hand."""
        kept = self.scratch / "kept.jsonl"
        if not kept.exists():
            self.imported("osu", GOLDEN / "osu_bw_7.5.txt", "--out", kept)
        shutil.copy(kept, folder / name)
        return folder / name

    def test_figures_come_with_tool_version_file_and_digest(self):
        source = GOLDEN / "nccl_tests_2.18.txt"
        lines = [json.loads(line) for line in self.imported("nccl-tests", source).stdout.splitlines()]
        self.assertEqual(lines[0]["schema"], "assay.imported/1")
        self.assertEqual(lines[0]["source"]["sha256"], hashlib.sha256(source.read_bytes()).hexdigest())
        self.assertEqual((lines[0]["source"]["tool"], lines[0]["source"]["file"]), ("nccl-tests", source.name))
        self.assertIn("2.18.0", lines[0]["source"]["version"])
        self.assertEqual([line["sequence"] for line in lines], list(range(len(lines))))
        self.assertTrue(all({"source", "imported", "left_out", "end"} & set(line) for line in lines))
        self.assertIn("nothing is accepted by imported figures", self.imported("nccl-tests", source).stderr)

    def test_several_files_are_imported_together_or_not_at_all(self):
        out = self.scratch / "out.jsonl"
        self.refused(
            "has no table below a title",
            "osu",
            GOLDEN / "osu_bw_7.5.txt",
            self.write("cut.txt", "# OSU MPI Bandwidth Test v7.5"),
            "--out",
            out,
        )
        self.assertFalse(out.exists())
        self.imported("osu", GOLDEN / "osu_bw_7.5.txt", GOLDEN / "osu_barrier.txt", "--out", out)
        self.assertEqual(out.read_text().count('"schema":"assay.imported/1"'), 2)

    def test_every_refusal_says_where_and_what_would_help(self):
        taken = self.write("taken.jsonl", "mine")
        self.refused("taken.jsonl", "osu", GOLDEN / "osu_barrier.txt", "--out", taken)
        self.assertEqual(pathlib.Path(taken).read_text(), "mine")
        self.refused("did you mean 'perftest'?", "perftets", GOLDEN / "perftest_lat.txt")
        self.refused("nowhere.txt", "osu", self.scratch / "nowhere.txt")
        self.refused("perftest_bw.json: results.BW_average: has no unit", "perftest", GOLDEN / "perftest_bw.json")
        self.imported("perftest", GOLDEN / "perftest_bw.json", "--command", "ib_write_bw --report_gbits")

    def test_an_import_in_a_run_is_refused_by_judge_and_sign(self):
        self.assertEqual(self.accept(requirement("r")).returncode, 0)
        self.refused(
            "is inside the run",
            "osu",
            GOLDEN / "osu_barrier.txt",
            "--out",
            self.run_directory / "records" / "vendor.jsonl",
        )
        records = next((self.run_directory / "records").glob("*/1"))
        for folder in (self.run_directory, records):
            stray = self.place(folder)
            judged = self.assay("judge", self.run_directory)
            self.assertEqual(judged.returncode, 2, judged.stdout)
            self.assertIn(f"{stray}: was imported from another tool's output", judged.stderr)
            stray.unlink()
        self.place(records)
        signed = self.assay(
            "sign",
            self.run_directory,
            "--key",
            self.scratch / "state/assay/machine.key",
            "--self-signed",
            "--out",
            self.scratch / "dossier",
        )
        self.assertNotEqual(signed.returncode, 0)
        self.assertIn("vendor.jsonl: was imported from another tool's output", signed.stderr)
        self.assertFalse((self.scratch / "dossier").exists())

    def test_an_import_in_the_place_of_a_record_accepts_nothing(self):
        self.assertEqual(self.accept(requirement("r")).returncode, 0)
        record = next((self.run_directory / "records").glob("*/1/0.jsonl"))
        before = hashlib.sha256(record.read_bytes()).hexdigest(), record.stat().st_size
        record.unlink()
        self.place(record.parent, record.name)
        self.assertEqual(self.assay("judge", self.run_directory).returncode, 3)
        # The same with a journal that vouches for it: the record itself is refused.
        journal = self.run_directory / "journal.jsonl"
        after = hashlib.sha256(record.read_bytes()).hexdigest(), record.stat().st_size
        journal.write_text(
            journal.read_text().replace(before[0], after[0]).replace(f'"bytes":{before[1]}', f'"bytes":{after[1]}')
        )
        self.assertEqual(self.assay("judge", self.run_directory).returncode, 3)
        self.assertEqual(set(self.outcomes().values()), {"error"})
        self.assertIn("was imported from another tool's output", next(iter(self.reasons().values())))

    def test_a_node_that_prints_an_import_spoils_its_own_cell_and_nothing_else(self):
        done = self.accept(requirement("good"), requirement("hostile", behaviour="import"))
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertEqual(
            {name: outcome for (name, _), outcome in self.outcomes().items()}, {"good": "pass", "hostile": "error"}
        )
        self.assertIn(
            "was imported from another tool's output",
            next(reason for (name, _), reason in self.reasons().items() if name == "hostile"),
        )
        self.assertEqual(self.verify().returncode, 0)

    def test_a_dossier_with_an_import_does_not_verify(self):
        self.assertEqual(self.accept(requirement("r")).returncode, 0)
        self.assertEqual(self.verify().returncode, 0)
        self.place(self.run_directory / "dossier" / "evidence")
        self.assertEqual(self.verify().returncode, 4)

    def test_beside_a_run_it_is_a_table_for_people_and_changes_nothing(self):
        self.refused(
            "--beside takes the directory of a run",
            "osu",
            GOLDEN / "osu_bw_7.5.txt",
            "--beside",
            self.scratch / "nowhere",
        )
        self.assertEqual(self.accept(requirement("r")).returncode, 0)
        before = sorted((path.name, path.read_bytes()) for path in self.run_directory.rglob("*") if path.is_file())
        out = self.scratch / "vendor.jsonl"
        table = self.imported("osu", GOLDEN / "osu_bw_7.5.txt", "--beside", self.run_directory, "--out", out).stdout
        self.assertIn("are not judged", table)
        self.assertRegex(table, r"(\d+) of \1 figures have no counterpart in this run")
        self.assertEqual(json.loads(out.read_text().splitlines()[0])["schema"], "assay.imported/1")
        self.assertEqual(
            sorted((path.name, path.read_bytes()) for path in self.run_directory.rglob("*") if path.is_file()), before
        )
        (self.run_directory / "verdict.json").unlink()
        self.refused("assay judge RUN", "osu", GOLDEN / "osu_bw_7.5.txt", "--beside", self.run_directory)

    def test_against_a_profile_figures_are_rated_and_never_accepted(self):
        given = ("import", "rccl-tests", GOLDEN / "rccl_tests.txt", "--command", "all_reduce_perf -b 8G -e 16G")
        rated = self.assay(*given, "--against", "amd-mi300x")
        self.assertEqual(rated.returncode, 1, "312.85 GB/s is below the 314 that Azure asks")
        self.assertIn(
            "imported, MISSES requirement rccl.all_reduce.16gib.busbw: 312.9 GB/s, at least 314.0 GB/s", rated.stdout
        )
        self.assertIn("nothing is accepted by them", rated.stdout)
        good = self.write("good.txt", (GOLDEN / "rccl_tests.txt").read_text().replace("312.85", "316.85"))
        rated = self.assay("import", "rccl-tests", good, *given[3:], "--against", "amd-mi300x")
        self.assertEqual(rated.returncode, 3, rated.stdout)
        self.assertIn("imported, meets requirement rccl.all_reduce.16gib.busbw", rated.stdout)
        self.assertNotIn("ACCEPTED", rated.stdout + rated.stderr)
        self.assertEqual(self.assay(*given, "--against", "amd-mi300").returncode, 2)
        rated = self.assay("import", "transferbench", GOLDEN / "transferbench_a2a.csv", "--against", "amd-mi355x")
        self.assertIn("imported, meets requirement transferbench.a2a.average (advisory)", rated.stdout)

    def test_what_the_script_for_tpus_writes_is_imported(self):
        package = self.scratch / "jax"
        package.mkdir()
        (package / "__init__.py").write_text(FAKE_JAX)
        (package / "numpy.py").write_text(FAKE_NUMPY)
        script = GOLDEN.parent.parent.parent / "docs" / "tpu_figures.py"
        done = subprocess.run(
            [sys.executable, script, "--samples", "3"],
            env={**os.environ, "PYTHONPATH": str(self.scratch)},
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(x) for x in self.imported("tpu", self.write("tpu.json", done.stdout)).stdout.splitlines()]
        figures = [line["imported"] for line in lines if "imported" in line]
        self.assertEqual([x["at"]["operation"] for x in figures], ["matmul"] * 2 + ["copy"] * 2 + ["all_reduce"])
        self.assertEqual(figures[-1]["at"]["ranks"], 2)
        self.assertEqual(lines[0]["source"]["facts"]["device_kind"], "TPU fake")

    def test_what_fio_prints_here_is_imported(self):
        if shutil.which("fio") is None:
            self.skipTest("fio is not installed")
        out = self.scratch / "fio.json"
        subprocess.run(
            [
                "fio",
                "--name=tiny",
                f"--filename={self.scratch / 'data'}",
                "--size=1M",
                "--bs=64k",
                "--rw=randrw",
                "--ioengine=psync",
                "--output-format=json+",
                f"--output={out}",
            ],
            check=True,
            timeout=DEADLINE_S,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        said = json.loads(out.read_text()[out.read_text().index("{") :])["jobs"][0]
        lines = [json.loads(line) for line in self.imported("fio", out).stdout.splitlines()]
        bandwidths = {
            line["imported"]["at"]["direction"]: line["imported"]["value"]
            for line in lines
            if line.get("imported", {}).get("metric") == "bandwidth"
        }
        self.assertEqual(bandwidths, {"read": said["read"]["bw_bytes"], "write": said["write"]["bw_bytes"]})


if __name__ == "__main__":
    main()
