"""tests/hardware/first_light over stub programs: one that hangs and will not be ended, one that crashes, one that skips; what travels,
what comes back, and what the exit code says. No GPU and no build is needed."""
import json
import os
import pathlib
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

TESTS = pathlib.Path(__file__).resolve().parent.parent
HARDWARE = TESTS / "hardware"
sys.path.insert(0, str(HARDWARE))

import first_light_pack  # noqa: E402
import first_light_plan  # noqa: E402
import first_light_report  # noqa: E402
import first_light_stages  # noqa: E402

RECORD = r"""#!/bin/sh
echo '{"schema":"assay.record/1","sequence":0,"start":{"probe":"NAME"}}'
echo '{"sequence":1,"measurement":{"metric":"throughput","unit":"FLOP/s","subject":{"gpu":"GPU-1"},"samples":[7.0e14,7.2e14,7.1e14]}}'
echo '{"sequence":2,"measurement":{"metric":"mismatches","unit":"1","subject":{"gpu":"GPU-1"},"samples":[0.0]}}'
echo '{"sequence":3,"condition":{"name":"driver_version","subject":{"node":"n"},"value":"580.95"}}'
echo '{"sequence":4,"end":{"status":"complete"}}'
"""
ACCEPT = r"""#!/bin/sh
while [ $# -gt 0 ]; do case $1 in --out) out=$2 ;; --site) site=$2 ;; --profile) profile=$2 ;; esac; shift; done
[ -f "$site" ] && [ -f "$profile" ] || exit 2
mkdir -p "$out/records/0001-cuda_gemm-n/1" "$out/dossier"
echo '{"sequence":1,"measurement":{"metric":"throughput","unit":"FLOP/s","subject":{"gpu":"GPU-1"},"samples":[6.9e14,6.9e14,6.9e14]}}' \
  >"$out/records/0001-cuda_gemm-n/1/0.jsonl"
echo '{"overall":"rejected","results":[{"requirement":"r","outcome":"fail","reason":"slow"}]}' >"$out/verdict.json"
exit 1
"""
STUBBORN = "#!/bin/sh\ntrap '' TERM INT\nwhile :; do sleep 1; done\n"
CRASH = "#!/bin/sh\nkill -SEGV $$\n"
SKIP = "#!/bin/sh\necho 'skipped: no such library' >&2\nexit 77\n"


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


class FirstLight(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.root = pathlib.Path(self.scratch.name)
        self.tree, self.out = self.root / "tree", self.root / "out"
        for probe in first_light_pack.PROBES:
            script(self.tree / "libexec/assay/probes" / probe, RECORD.replace("NAME", probe))
        for program in first_light_pack.PROGRAMS:
            script(self.tree / program, "#!/bin/sh\nexit 0\n")
        script(self.tree / "bin/assay", ACCEPT)
        profiles = self.tree / "share/assay/profiles"
        profiles.mkdir(parents=True)
        (profiles / "nvidia-gpu-each.json").write_text((TESTS.parent / "profiles/nvidia-gpu-each.json").read_text())

    def probe(self, name, text):
        script(self.tree / "libexec/assay/probes" / name, text)

    def measure(self, *more):
        command = [sys.executable, HARDWARE / "first_light", "measure", "--tree", self.tree, *map(str, more), self.out]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
        self.summary = (self.out / "summary.md").read_text()
        self.outcomes = {
            line.split("|")[1].strip(): line.split("|")[2].strip()
            for line in self.summary.splitlines()
            if line.startswith("| ") and line.count("|") >= 6
        }
        return done

    def test_a_machine_on_which_everything_works_leaves_records_a_signed_run_and_a_table(self):
        done = self.measure("--times", "0.2")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.outcomes["gemm_fp64"], "ok")
        self.assertEqual(self.outcomes["accept"], "ok", "a verdict of any kind is a result")
        self.assertIn("| gemm_fp64 | throughput | 710.000 TFLOP/s | 3 |", self.summary)
        self.assertIn("| run/0001-cuda_gemm-n | throughput | 690.000 TFLOP/s | 3 |", self.summary)
        self.assertIn("rejected; 1 cells did not pass. r fail: slow", self.summary)
        self.assertIn("driver_version 580.95", self.summary)
        with tarfile.open(self.out / "first_light.tar.gz") as tar:
            names = tar.getnames()
        for name in (
            "records/gemm_fp64.out",
            "run/verdict.json",
            "run/records/0001-cuda_gemm-n/1/0.jsonl",
            "summary.md",
        ):
            self.assertIn("first_light/" + name, names)
        self.assertFalse([name for name in names if "scratch" in name])

    def test_a_stage_that_hangs_and_one_that_crashes_cost_their_share_and_no_more(self):
        self.probe("cuda_gemm", STUBBORN)
        self.probe("health_gpu", CRASH)
        begin = time.monotonic()
        done = self.measure("--times", "0.02", "--seconds", "200")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertLess(time.monotonic() - begin, 200)
        self.assertEqual(self.outcomes["gemm_fp64"], "hung")
        self.assertEqual(self.outcomes["health_before"], "failed")
        self.assertEqual(self.outcomes["accept"], "ok", "what comes later is measured all the same")
        self.assertIn("| -11 |", self.summary)
        self.assertEqual([line for line in running(self.tree) if "cuda_gemm" in line], [], "nothing is left behind")

    def test_what_is_skipped_or_out_of_time_is_not_green(self):
        self.probe("cuda_gemm", SKIP)
        done = self.measure("--times", "0.2")
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertEqual(self.outcomes["gemm_fp64"], "skipped")
        self.assertEqual(self.outcomes["gemm_mxfp8"], "ok", "there a skip is an answer")
        self.assertIn("skipped: no such library", self.summary)
        self.assertEqual(self.measure("--seconds", "9").returncode, 3)
        self.assertEqual(self.outcomes["accept"], "not run")

    def test_libraries_are_found_in_python_packages_and_given_to_stages_and_agents(self):
        folder = self.root / "site-packages/nvidia/cublas/lib"
        folder.mkdir(parents=True)
        (folder / "libcublasLt.so.13").write_text("")
        self.probe("cuda_gemm", '#!/bin/sh\necho "{\\"path\\": \\"$ASSAY_LIBRARY_PATH\\"}"\n')
        self.measure("--times", "0.2", "--search", self.root / "site-packages")
        self.assertIn(str(folder), (self.out / "records/gemm_fp64.out").read_text())
        self.assertEqual(
            os.readlink(self.out / "scratch/lib/assay/libcublasLt.so.13"), str(folder / "libcublasLt.so.13")
        )
        self.assertIn(f"libcublasLt.so.13 at {folder}", self.summary)

    def test_the_profile_is_that_of_every_gpu_without_what_takes_long(self):
        self.measure("--times", "0.2")
        profile = json.loads((self.out / "first-light.json").read_text())
        ids = {one["id"] for one in profile["requirements"]}
        self.assertLessEqual(
            {"health.gpus", "after.xid_events", "cuda_gemm.bf16.whole_mismatches", "hbm.mismatches"}, ids
        )
        self.assertFalse([one for one in ids if "fp16" in one])
        loads = {
            one["parameters"]["load_least"] for one in profile["requirements"] if one["id"].startswith("cuda_gemm.bf16")
        }
        self.assertEqual(loads, {"2min"})
        site = json.loads((self.out / "site.json").read_text())
        self.assertEqual(site["nodes"][0]["parts"], {"gpu": 1})

    def test_what_travels_is_stripped_named_where_it_is_missing_and_refused_where_it_is_large(self):
        archive = self.root / "a.tar.gz"
        pack = [sys.executable, HARDWARE / "first_light", "pack", "--build", self.tree]
        done = subprocess.run([*pack, archive], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        with tarfile.open(archive) as tar:
            names = tar.getnames()
        for name in (
            "bin/assay",
            "libexec/assay/probes/cuda_gemm",
            "share/assay/profiles/nvidia-gpu-each.json",
            "tests/hardware/first_light",
            "tests/hardware/yardstick.py",
        ):
            self.assertIn("first_light/" + name, names)
        large = subprocess.run(
            [*pack, "--most", "100", archive], capture_output=True, text=True, timeout=120, check=False
        )
        self.assertNotEqual(large.returncode, 0)
        self.assertIn("the most is 100 B", large.stderr)
        (self.tree / "bin/assay-node").unlink()
        missing = subprocess.run([*pack, archive], capture_output=True, text=True, timeout=120, check=False)
        self.assertIn("lacks bin/assay-node", missing.stderr)


class Stages(unittest.TestCase):
    def test_exit_codes_of_the_whole(self):
        def code(*outcomes, required=True):
            return first_light_stages.exit_code([first_light_stages.Result("s", one, required) for one in outcomes])

        self.assertEqual(code("ok", "ok"), 0)
        self.assertEqual(code("ok", "skipped"), 3)
        self.assertEqual(code("not run"), 3)
        self.assertEqual(code("skipped", "hung"), 1)
        self.assertEqual(code("failed", required=False), 0)

    def test_numbers_for_people(self):
        self.assertEqual(first_light_report.value_text(4.2e12, "B/s"), "4.200 TB/s")
        self.assertEqual(first_light_report.value_text(55.4e9, "B/s"), "55.4 GB/s")
        self.assertEqual(first_light_report.value_text(0, "1"), "0")

    def test_no_library_is_looked_for_twice_and_folders_that_are_not_there_do_no_harm(self):
        found = first_light_plan.find_libraries(["/nonexistent", ""])
        self.assertLessEqual(set(found), set(first_light_plan.LIBRARIES))


def running(tree):
    lines = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(tree) in line:
            lines.append(line)
    return lines


if __name__ == "__main__":
    unittest.main()
