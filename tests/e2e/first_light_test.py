"""tests/hardware/first_light over stub programs: one that hangs and will not be ended, one that crashes, one that skips; what travels,
what comes back, and what the exit code says. No GPU and no build is needed."""
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import unittest
import unittest.mock

TESTS = pathlib.Path(__file__).resolve().parent.parent
HARDWARE = TESTS / "hardware"
sys.path.insert(0, str(HARDWARE))

import first_light_lists  # noqa: E402
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
        for probe in first_light_pack.probes():
            script(self.tree / "libexec/assay/probes" / probe, RECORD.replace("NAME", probe))
        for program in first_light_pack.PROGRAMS:
            script(self.tree / program, "#!/bin/sh\nexit 0\n")
        script(self.tree / "bin/assay", ACCEPT)
        profiles = self.tree / "share/assay/profiles"
        profiles.mkdir(parents=True)
        for name in ("nvidia-gpu-each.json", "nvidia-gpu.json"):
            shutil.copy2(TESTS.parent / "profiles" / name, profiles)

    def probe(self, name, text):
        script(self.tree / "libexec/assay/probes" / name, text)

    def measure(self, *more):
        command = [sys.executable, HARDWARE / "first_light", "measure", "--tree", self.tree, *map(str, more), self.out]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
        summary = self.out / "summary.md"
        self.summary = summary.read_text() if summary.exists() else ""
        self.outcomes = {
            line.split("|")[1].strip(): line.split("|")[2].strip()
            for line in self.summary.splitlines()
            if line.startswith("| ") and line.count("|") >= 6
        }
        return done

    def test_a_machine_on_which_everything_works_leaves_records_a_signed_run_and_a_table(self):
        done = self.measure("--stages", "health_*,accept,verify,fp*")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.outcomes["fp64"], "ok")
        self.assertEqual(self.outcomes["accept"], "ok", "a verdict of any kind is a result")
        self.assertEqual(self.outcomes["verify"], "ok")
        self.assertNotIn("tf32", self.outcomes)
        self.assertIn("| fp64 | throughput | 710.000 TFLOP/s | 3 |", self.summary)
        self.assertIn("| run/0001-cuda_gemm-n | throughput | 690.000 TFLOP/s | 3 |", self.summary)
        self.assertIn("rejected; 1 cells did not pass. r fail: slow", self.summary)
        self.assertIn("driver_version 580.95", self.summary)
        with tarfile.open(self.out / "first_light.tar.gz") as tar:
            names = tar.getnames()
        for name in (
            "records/fp64.out",
            "run/verdict.json",
            "run/records/0001-cuda_gemm-n/1/0.jsonl",
            "summary.md",
        ):
            self.assertIn("first_light/" + name, names)
        self.assertFalse([name for name in names if "scratch" in name])

    def test_a_stage_that_crashes_costs_its_share_and_no_more(self):
        self.probe("health_gpu", CRASH)
        self.assertEqual(self.measure("--stages", "health_before,accept").returncode, 1)
        self.assertEqual(self.outcomes["health_before"], "failed")
        self.assertEqual(self.outcomes["accept"], "ok", "what comes later is measured all the same")
        self.assertIn("| -11 |", self.summary)

    def test_what_is_skipped_or_out_of_time_is_not_green(self):
        self.probe("cuda_gemm", SKIP)
        self.assertEqual(self.measure("--stages", "fp64,mxfp8").returncode, 3)
        self.assertEqual(self.outcomes["fp64"], "skipped")
        self.assertEqual(self.outcomes["mxfp8"], "ok", "there a skip is an answer")
        self.assertIn("skipped: no such library", self.summary)
        self.assertEqual(self.measure("--seconds", "30", "--stages", "accept,health_after").returncode, 3)
        self.assertEqual(self.outcomes["accept"], "not run")
        self.assertEqual(self.outcomes["health_after"], "ok")

    def test_a_refusal_is_an_answer_and_another_error_of_the_same_code_is_none(self):
        refuses = "#!/bin/sh\necho 'layers_run: 31 layers need 2 B{}' >&2\nexit 1\n"
        self.probe("cuda_train_step", refuses.format("; the nearest that fits: 30"))
        self.assertEqual(self.measure("--stages", "train_31").returncode, 0)
        self.probe("cuda_train_step", refuses.format(""))
        self.assertEqual(self.measure("--stages", "train_31").returncode, 1)
        self.assertEqual(self.outcomes["train_31"], "failed")

    def test_bad_usage_is_refused_before_anything_runs(self):
        done = self.measure("--stages", "accept,fp7")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no stage fp7; there are facts, health_before, accept", done.stderr)
        self.assertFalse((self.out / "records").exists())

    def test_the_seconds_are_said_before_anything_runs(self):
        accept = first_light_stages.choose(next(lists()), ["accept"])[0]
        seconds = str(accept.expected_s + 15)
        done = self.measure("--list", "--stages", "accept,verify,fp8", "--seconds", seconds)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = {line.split()[0]: line for line in done.stdout.splitlines()}
        self.assertTrue(lines["verify"].endswith(f"{accept.expected_s:g} s"), done.stdout)
        self.assertTrue(lines["fp8"].endswith("left out"), done.stdout)
        self.assertFalse((self.out / "records").exists())

    def test_libraries_are_found_in_python_packages_and_given_to_stages_and_agents(self):
        folder = self.root / "site-packages/nvidia/cublas/lib"
        folder.mkdir(parents=True)
        cudnn = self.root / "site-packages/nvidia/cudnn/lib"
        cudnn.mkdir(parents=True)
        for name in ("libcublasLt.so.13", "libnvrtc.so.13"):
            (folder / name).write_text("library")
        for name in ("libcudnn.so.9", "libcudnn_graph.so.9"):
            (cudnn / name).write_text("library")
        self.probe("cuda_gemm", '#!/bin/sh\necho "{\\"path\\": \\"$ASSAY_LIBRARY_PATH\\"}"\n')
        self.measure("--stages", "fp64,no_nvrtc", "--search", self.root / "site-packages")
        self.assertIn(str(folder), (self.out / "records/fp64.out").read_text())
        beside = self.out / "scratch/lib/assay"
        self.assertEqual(os.readlink(beside / "libcublasLt.so.13"), str(folder / "libcublasLt.so.13"))
        self.assertIn(f"libcublasLt.so.13 at {folder}", self.summary)
        self.assertIn(str(cudnn), (self.out / "records/fp64.out").read_text())
        self.assertEqual(os.readlink(beside / "libcudnn_graph.so.9"), str(cudnn / "libcudnn_graph.so.9"))
        alone = self.out / "scratch/no_nvrtc"
        self.assertEqual(json.loads((self.out / "records/no_nvrtc.out").read_text())["path"], str(alone))
        self.assertEqual((alone / "libcublasLt.so.13").read_text(), "library")
        self.assertEqual((alone / "libnvrtc.so.13").read_text(), "")

    def written(self, gpus):
        self.measure("--stages", "health_before", "--gpus", gpus)
        profile = json.loads((self.out / "first-light.json").read_text())
        site = json.loads((self.out / "site.json").read_text())
        return {one["id"]: one for one in profile["requirements"]}, site["nodes"][0]["parts"]

    def test_the_profile_is_that_of_every_gpu_without_what_takes_long(self):
        of, parts = self.written(1)
        self.assertLessEqual(
            {"health.gpus", "after.xid_events", "cuda_gemm.bf16.whole_mismatches", "hbm.mismatches"}, set(of)
        )
        self.assertFalse([one for one in of if "fp16" in one])
        steady = of["cuda_gemm.bf16.steadiness"]
        self.assertEqual((steady["parameters"]["load_least"], steady["repeat"]["attempts"]), ("60s", 1))
        self.assertIn({"name": "watch_s", "at_least": 60}, steady["conditions"])
        self.assertEqual(parts, {"gpu": 1})

    def test_the_profile_of_several_gpus_holds_them_against_each_other(self):
        of, parts = self.written(8)
        self.assertLessEqual({"cuda_gemm.bf16.spread", "hbm.triad.spread", "peer.read.spread"}, set(of))
        self.assertEqual({one["repeat"]["attempts"] for name, one in of.items() if name.endswith("spread")}, {1})
        self.assertFalse([one for one in of if "one_by_one" in one])
        self.assertEqual(parts, {"gpu": 8})

    def test_assay_plans_what_is_written(self):
        if not os.environ.get("ASSAY"):
            self.skipTest("a build without GPU probes")
        for gpus in (1, 8):
            self.written(gpus)
            files = ("--profile", self.out / "first-light.json", "--site", self.out / "site.json")
            command = [os.environ["ASSAY"], "plan", *files, "--out", self.root / f"plan-{gpus}.json"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)

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
            "tests/hardware/train_yardstick.py",
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


def lists():
    for gpus in (1, 2, 8):
        machine = first_light_lists.Machine(pathlib.Path("/tree"), pathlib.Path("/out"), gpus)
        yield first_light_stages.choose(first_light_lists.stages(machine), [])


class Clock:
    """Time that passes only where a stage takes it."""

    def __init__(self):
        self.now_s = 1000.0

    def __call__(self):
        return self.now_s

    def runner(self, taken):
        def run_one(stage, limit_s):
            seconds = min(taken(stage), limit_s)
            self.now_s += seconds
            return first_light_stages.Result(stage.name, "ok", True, seconds)

        return run_one


def probes_of(stages):
    """Names of the probes that the commands of stages run, directly or by a script."""
    words = [pathlib.Path(word) for stage in stages for word in stage.command if isinstance(word, pathlib.Path)]
    return {word.name for word in words if word.parent.name == "probes"}


def ran(stages, seconds, taken):
    """Names of the stages that ran, and when the last one ended, where each takes taken(stage)."""
    clock = Clock()
    budget = first_light_stages.Budget(seconds, clock)
    results = list(first_light_stages.run_all(stages, budget, clock.runner(taken)))
    return [one.name for one in results if one.outcome == "ok"], budget.spent()


class Stages(unittest.TestCase):
    def test_every_stage_runs_within_570_s_though_each_takes_its_whole_limit(self):
        for stages in lists():
            names, ended_s = ran(stages, 570, lambda stage: stage.limit_s)
            self.assertEqual(names, [one.name for one in stages])
            self.assertLessEqual(ended_s, 570 - first_light_stages.RESERVE_S)

    def test_every_probe_of_a_stage_travels(self):
        for gpus in (1, 2):
            machine = first_light_lists.Machine(pathlib.Path("/tree"), pathlib.Path("/out"), gpus)
            needed = probes_of(first_light_lists.stages(machine))
            self.assertIn("cuda_rack_bandwidth", needed)
            self.assertLessEqual(needed, set(first_light_pack.probes()))

    def test_what_is_expected_of_a_stage_is_within_its_limit(self):
        for stages in lists():
            self.assertEqual([one.name for one in stages if one.expected_s > one.limit_s], [])

    def test_what_does_not_fit_is_left_out_and_what_is_short_still_runs(self):
        times = {"first": 60, "second": 30, "third": 20, "last": 1}
        stages = [first_light_stages.Stage(name, seconds, seconds, []) for name, seconds in times.items()]
        names, ended_s = ran(stages, 100 + first_light_stages.RESERVE_S, lambda stage: stage.expected_s)
        self.assertEqual((names, ended_s), (["first", "second", "last"], 91))

    def test_stages_that_hang_take_time_that_others_left_and_never_that_of_a_later_one(self):
        def taken(stage):
            return 1e6 if stage.name in ("accept", "racecheck") else 1

        for stages in lists():
            names, ended_s = ran(stages, 570, taken)
            self.assertEqual(names, [one.name for one in stages])
            self.assertLessEqual(ended_s, 570 - first_light_stages.RESERVE_S)
            self.assertEqual(ran(stages, 570, lambda stage: 1e6)[0], names)
        clock, given = Clock(), []
        two = [first_light_stages.Stage("slow", 5, 20, []), first_light_stages.Stage("later", 5, 30, [])]
        budget = first_light_stages.Budget(73, clock)
        for result in first_light_stages.run_all(two, budget, clock.runner(lambda stage: 1e6)):
            given.append(result.seconds)
        self.assertEqual(given, [73 - first_light_stages.RESERVE_S - 30, 30])

    def test_a_stage_ends_with_the_budget_though_its_own_limit_is_later(self):
        stages = [first_light_stages.Stage("first", 50, 500, []), first_light_stages.Stage("second", 5, 9, [])]
        names, ended_s = ran(stages, 100, lambda stage: 1000)
        self.assertEqual((names, ended_s), (["first"], 100 - first_light_stages.RESERVE_S))

    def test_the_listing_foretells_what_runs(self):
        for stages in lists():
            for seconds in (570, 200, 60):
                lines = first_light_stages.listing(stages, seconds)[1:-1]
                fit = [line.split()[0] for line in lines if not line.endswith("left out")]
                self.assertEqual(fit, ran(stages, seconds, lambda stage: stage.expected_s)[0])

    def test_a_stage_that_hangs_and_will_not_be_ended_is_killed_with_its_children(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            script(folder / "stubborn", STUBBORN)
            stage = first_light_stages.Stage("hangs", 1, 1, [folder / "stubborn"])
            result = first_light_stages.run(stage, 0.3, folder / "records", dict(os.environ))
            self.assertEqual((result.outcome, result.code), ("hung", None))
            self.assertEqual(running(folder), [], "nothing is left behind")

    def test_a_model_with_a_profile_of_its_own_brings_a_stage_that_runs_only_when_it_is_named(self):
        with tempfile.TemporaryDirectory() as scratch:
            tree = pathlib.Path(scratch)
            script(tree / "nvidia-smi", "#!/bin/sh\necho NVIDIA H200\n")
            (tree / "share/assay/profiles").mkdir(parents=True)
            for name in ("nvidia-h100-one.json", "nvidia-h200-one.json"):
                (tree / "share/assay/profiles" / name).write_text("{}")
            with unittest.mock.patch.dict(os.environ, PATH=f"{tree}:{os.environ['PATH']}"):
                stages = first_light_lists.stages(first_light_lists.Machine(tree, tree / "out", 1))
            named = first_light_stages.choose(stages, ["accept_model"])
            self.assertIn(tree / "share/assay/profiles/nvidia-h200-one.json", named[0].command)
            self.assertNotIn("accept_model", [one.name for one in first_light_stages.choose(stages, [])])

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
