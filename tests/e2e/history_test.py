"""`assay history` and `assay drift` from the outside: what was added is shown, exported, kept and judged; what is damaged is refused."""
import contextlib
import csv
import datetime
import io
import json
import pathlib
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

from harness import main, requirement
from nightly import NightBench, nightly

DAMAGED = 4  # exit code of evidence that cannot be trusted


class Histories(NightBench):
    """Eight nights of this machine: the figure is 100, and 60 in the last three of them."""

    kept = None  # folder with the history of those nights, and with the figure of the next measurement

    def setUp(self):
        super().setUp()
        self.database = self.scratch / "history.db"
        if Histories.kept is None:
            Histories.kept = pathlib.Path(tempfile.mkdtemp(prefix="assay-e2e-", dir="/var/tmp"))
            self.addClassCleanup(shutil.rmtree, Histories.kept, ignore_errors=True)
            self.measure_nights()
            shutil.copytree(self.scratch, Histories.kept / "scratch")
        for part in (Histories.kept / "scratch").glob("history.db*"):
            shutil.copytree(part, self.scratch / part.name, dirs_exist_ok=True) if part.is_dir() else shutil.copy(
                part, self.scratch
            )
        self.policy = self.write("policy.json", {"schema": "assay.policy/1", "warmup": 3})

    def figure(self):
        one = requirement("r")
        one["parameters"]["script"] = str(Histories.kept / "numbers")
        return one

    def measure_nights(self):
        for night, number in enumerate((100, 100, 100, 100, 100, 60, 60, 60), 1):
            (Histories.kept / "numbers").write_text(f"{number}\n")
            done = self.sweep(nightly(self.figure()), "--history", self.database, night=f"2026-01-0{night}")
            self.assertEqual(done.returncode, 0, done.stderr)
            if night == 6:
                self.said(
                    self.assay("drift", "judge", "--db", self.database, "--json", "--as-of", "2026-01-06")
                )  # and no journal of it is left
                shutil.copy(self.database, self.scratch / "six.db")

    def history(self, command, *words):
        return self.assay("history", command, *words, "--db", self.database)

    def said(self, done, code=0):
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done.stdout

    def exported(self):
        return list(csv.DictReader(io.StringIO(self.said(self.history("export")))))

    def unit(self):
        return self.exported()[0]["unit"]

    def drift(self, command, *words):
        as_of = () if command != "judge" or "--as-of" in words else ("--as-of", "2026-01-08")
        return self.assay("drift", command, *words, *as_of, "--db", self.database, "--policy", self.policy)

    def test_a_history_whose_sweeps_have_stopped_is_not_healthy(self):
        self.said(self.drift("judge", "--as-of", "2026-01-18"))
        for day in ("--as-of", "2026-01-19"), ():
            done = self.assay("drift", "judge", *day, "--db", self.database, "--policy", self.policy)
            self.assertEqual(done.returncode, 3)
            self.assertIn("nothing is known since", done.stdout)
        told = self.assay("drift", "judge", "--json", "--as-of", "2026-01-19", "--db", self.database)
        self.assertEqual(json.loads(told.stdout)["coverage"]["silent_nights"], 11)

    def test_a_night_of_the_future_hides_no_stopped_sweeps(self):
        self.said(self.sweep(nightly(self.figure()), "--history", self.database, night="2099-01-01"))
        done = self.assay("drift", "judge", "--db", self.database)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("its last night is of 2099-01-01: from the future", done.stderr)
        self.said(self.drift("judge", "--as-of", "2026-01-10"))

    def test_a_fleet_whose_every_unit_is_retired_is_not_healthy(self):
        self.said(self.history("event", "--kind", "retired", "--on", "fleet", "--at", "2026-01-09", "--who", "Kim"))
        done = self.drift("judge", "--as-of", "2026-01-10")
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn("nothing is watched", done.stdout)

    def test_every_night_is_listed_shown_and_exported(self):
        listed = self.said(self.history("list")).splitlines()
        self.assertEqual([line.split()[0] for line in listed], [f"2026-01-0{night}" for night in range(1, 9)])
        rows = self.exported()
        self.assertEqual(
            [(row["night"], float(row["value"])) for row in rows if "value=100" in row["metric"]],
            [(f"2026-01-0{night}", 100 if night < 6 else 60) for night in range(1, 9)],
        )
        shown = self.said(self.history("show", self.unit()))
        self.assertEqual(shown.count("value=100"), 8)
        self.assertIn("2026-01-06", shown)
        self.assertEqual(self.history("show", "elsewhere").returncode, 2)
        sweeps = json.loads(self.said(self.history("list", "--json")))["sweeps"]
        self.assertEqual([one["night"] for one in sweeps], [f"2026-01-0{night}" for night in range(1, 9)])
        visits = json.loads(self.said(self.history("show", self.unit(), "--json")))["visits"]
        figures = [
            figure["value"] for visit in visits for figure in visit["figures"] if "value=100" in figure["metric"]
        ]
        self.assertEqual(figures, [100] * 5 + [60] * 3)

    def test_an_event_is_listed_and_another_part_begins_the_series_anew(self):
        flags = json.loads(self.said(self.drift("judge", "--json"), 0))["flags"]
        self.assertEqual([flag["state"] for flag in flags], ["flagged"])
        self.said(
            self.history(
                "event",
                "--kind",
                "part_swap",
                "--on",
                self.unit(),
                "--at",
                "2026-01-06",
                "--text",
                "board",
                "--who",
                "Kim",
            )
        )
        self.assertIn("(Kim)", self.said(self.history("list")))
        (event,) = json.loads(self.said(self.history("list", "--json")))["events"]
        self.assertEqual((event["kind"], event["who"], event["text"]), ("part_swap", "Kim", "board"))
        states = [flag["state"] for flag in json.loads(self.said(self.drift("judge", "--json")))["flags"]]
        self.assertNotIn("flagged", states)
        for words in (["--kind", "wish", "--on", "n01"], ["--kind", "driver", "--on", "n01", "--at", "soon"]):
            self.assertEqual(self.history("event", *words).returncode, 2)

    def test_an_event_without_a_night_is_of_the_night_after_the_newest_sweep(self):
        self.environment["TZ"] = "UTC"
        today = datetime.datetime.now(datetime.timezone.utc).date()
        tonight, next_one = today.isoformat(), (today + datetime.timedelta(days=1)).isoformat()
        self.said(self.sweep(nightly(self.figure()), "--history", self.database, night=tonight))
        self.said(self.sweep(nightly(self.figure()), "--history", self.database, night="2099-01-01"))
        told = self.history("event", "--kind", "repaired", "--on", self.unit())
        self.assertEqual(self.said(told), f"{next_one} repaired on {self.unit()}\n")
        self.assertNotIn(
            next_one, self.said(self.history("event", "--kind", "note", "--on", "fleet", "--text", "seen"))
        )
        self.assertIn(f"{next_one} event repaired on {self.unit()}", self.said(self.history("list")))
        described = " ".join(self.said(self.assay("history", "event", "--help")).split())
        self.assertIn("[tonight, or the one after the newest sweep]", described)

    def test_an_event_of_a_unit_that_there_is_not_is_refused_with_the_nearest_name(self):
        done = self.history("event", "--kind", "repaired", "--on", self.unit() + "x")
        self.assertEqual(done.returncode, 2)
        self.assertIn("is neither the id of a unit nor the name of a node in this history", done.stderr)
        self.assertIn(f"did you mean '{self.unit()}'", done.stderr)
        self.assertEqual(json.loads(self.said(self.history("list", "--json")))["events"], [])
        self.said(self.history("event", "--kind", "note", "--on", self.exported()[0]["node"]))

    def test_explain_prints_every_term_of_a_flag_and_replay_every_night(self):
        (flag,) = json.loads(self.said(self.drift("judge", "--json")))["flags"]
        explained = self.said(self.drift("explain", flag["id"]))
        for word in (
            "rule",
            "onset about 2026-01-06",
            "x = ",
            "m = ",
            "s = ",
            "n = ",
            "T = ",
            "z = ",
            "limits",
            "evidence",
        ):
            self.assertIn(word, explained)
        self.assertTrue(explained.splitlines()[-1].startswith("to do     Test it again"), explained)
        self.assertEqual(self.said(self.drift("explain", flag["node"])), explained)
        before = self.said(self.drift("explain", flag["node"], "--as-of", "2026-01-02"))
        self.assertIn(f"learning  {flag['unit']} on {flag['node']}: no flag\n", before)
        self.assertIn("judged from their visit 4 on", before)
        self.assertEqual(json.loads(self.said(self.drift("explain", flag["id"], "--json")))["flags"], [flag])
        self.assertEqual(self.drift("explain", "0" * 12, "--json").returncode, 2)
        replayed = self.said(self.drift("replay", "--from", "2026-01-05", "--to", "2026-01-06"))
        self.assertIn("2026-01-05", replayed)
        self.assertIn("2026-01-06", replayed)
        self.assertNotIn("2026-01-07", replayed)

    def test_a_night_of_the_past_is_judged_as_it_was_then(self):
        then = self.assay(
            *("drift", "judge", "--json", "--as-of", "2026-01-08"),
            *("--db", Histories.kept / "scratch/six.db", "--policy", self.policy),
        )
        self.assertEqual(then.returncode, 0, then.stderr)
        self.assertEqual(json.loads(then.stdout)["as_of"], "2026-01-06")
        self.assertNotEqual(self.said(self.drift("judge", "--json")), then.stdout)
        self.assertEqual(self.said(self.drift("judge", "--json", "--as-of", "2026-01-06")), then.stdout)

    def test_a_rebuild_gives_the_same_report(self):
        before = self.said(self.drift("judge", "--json"))
        self.said(self.history("rebuild"))
        self.assertEqual(self.said(self.drift("judge", "--json")), before)

    def test_a_damaged_database_is_made_again_from_the_records_and_gives_the_same_report(self):
        self.said(self.history("event", "--kind", "moved", "--on", self.unit(), "--at", "2026-01-07", "--who", "Kim"))
        self.said(self.history("prune", "--keep-days", "0"))
        before = self.said(self.drift("judge", "--json")), self.said(self.history("list")), self.exported()
        self.database.write_bytes(self.database.read_bytes()[:4096] + b"\xff" * 8192)
        self.assertEqual(self.drift("judge", "--json").returncode, DAMAGED)
        made = self.said(self.history("rebuild", "--from-records"))
        self.assertIn("made again: 8 sweeps, 1 event, 0 baselines", made)
        self.assertEqual(
            (self.said(self.drift("judge", "--json")), self.said(self.history("list")), self.exported()), before
        )
        self.assertTrue((self.scratch / "history.db.old").exists())
        again = self.history("rebuild", "--from-records")
        self.assertEqual(again.returncode, 2, again.stderr)
        self.assertIn("history.db.old", again.stderr)

    def test_raw_records_go_after_their_time_and_figures_stay(self):
        rows = self.exported()
        self.assertEqual(
            self.said(self.history("prune", "--keep-days", "36500")),
            "raw records of 0 sweeps removed; their figures stay\n",
        )
        self.assertEqual(
            self.said(self.history("prune", "--keep-days", "0")),
            "raw records of 8 sweeps removed; their figures stay\n",
        )
        self.assertEqual(self.exported(), rows)

    def test_a_signed_acceptance_is_the_baseline_and_a_run_that_is_none_is_refused(self):
        (Histories.kept / "numbers").write_text("100\n")
        self.said(self.accept(self.figure()))
        key = ["--key", self.scratch / "state/assay/machine.key.pub"]
        done = self.history("baseline", self.run_directory / "dossier", *key)
        self.assertIn("held against the acceptance", self.said(done))
        self.assertFalse(done.stdout.startswith("0 "), done.stdout)
        (self.run_directory / "dossier/report.html").write_text("ACCEPTED")
        done = self.history("baseline", self.run_directory / "dossier", *key)
        self.assertEqual(done.returncode, DAMAGED, done.stderr)
        self.assertIn("no dossier of an accepted run that verifies", done.stderr)

    def test_a_damaged_database_and_one_of_another_program_are_refused_and_not_changed(self):
        with contextlib.closing(sqlite3.connect(self.scratch / "other.db")) as other:
            other.execute("create table visit(mine integer)")
        whole = self.database.read_bytes()
        newer = self.scratch / "newer.db"
        newer.write_bytes(whole)
        with contextlib.closing(sqlite3.connect(newer)) as database:
            database.execute("pragma user_version = 999")
            database.execute("pragma wal_checkpoint(truncate)")
        damaged = self.scratch / "damaged.db"
        damaged.write_bytes(whole[:4096] + b"\xff" * 8192 + whole[12288:])
        for path in (self.scratch / "other.db", newer, damaged):
            before = path.read_bytes()
            for command in (
                ["history", "list"],
                ["drift", "judge"],
                ["history", "event", "--kind", "note", "--on", "n01"],
            ):
                done = self.assay(*command, "--db", path)
                self.assertEqual(done.returncode, DAMAGED, f"{path} {command}: {done.stderr}")
                self.assertIn(path.name, done.stderr)
            self.assertEqual(path.read_bytes(), before)

    def test_a_second_writer_is_told_so_and_adds_nothing(self):
        with contextlib.closing(sqlite3.connect(self.database, isolation_level=None)) as other:
            other.execute("begin immediate")
            done = self.history("event", "--kind", "note", "--on", "fleet")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("history.db", done.stderr)
            other.execute("rollback")
        self.said(self.history("event", "--kind", "note", "--on", "fleet"))

    def test_a_full_disk_is_told_and_what_was_there_is_whole(self):
        disk = self.scratch / "disk"
        disk.mkdir()
        size = self.database.stat().st_size // 4096 + 24
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size * 4}k", "assay-test", disk], capture_output=True, text=True
        )
        if mounted.returncode != 0:
            raise unittest.SkipTest("no small disk can be mounted on this machine: " + mounted.stderr)
        self.addCleanup(subprocess.run, ["umount", "-l", disk])
        rows = self.exported()
        self.database = pathlib.Path(shutil.copy(self.database, disk))
        with open(disk / "filler", "wb", buffering=0) as filler, self.assertRaises(OSError):
            while True:
                filler.write(b"x" * 4096)
        done = self.history("event", "--kind", "note", "--on", "fleet", "--text", "x" * 400)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("history.db", done.stderr)
        (disk / "filler").unlink()
        self.assertEqual(self.exported(), rows)


if __name__ == "__main__":
    main()
