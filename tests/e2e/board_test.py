"""A run of eight agents followed on a terminal and on the page of --board, which headless Chromium reads."""
import os
import pty
import re
import shutil
import subprocess
import threading
import unittest

from harness import DEADLINE_S, Bench, keep_agent, main, profile, requirement, wait_for
from kubernetes import start_cluster

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NAMES = [f"n{i}" for i in range(1, 9)]


class Followed(Bench):
    def setUp(self):
        super().setUp()
        self.board = self.scratch / "board.html"
        self.api = start_cluster(self, *NAMES)
        for name in NAMES:
            keep_agent(self.work / name)
        self.site = self.write(
            "site.json",
            {
                "schema": "assay.site/1",
                "name": "hall",
                "nodes": [
                    {"name": name, "launcher": "kubernetes", "pod": f"assay-{name}", "directory": str(self.work / name)}
                    for name in NAMES
                ],
            },
        )

    def words(self, *requirements, more=()):
        return [
            "accept",
            "--profile",
            self.write("profile.json", profile(*requirements)),
            "--site",
            self.site,
            "--out",
            self.run_directory,
            *more,
        ]

    def on_terminal(self, *words, **environment):
        """What assay writes to a terminal of 100 columns."""
        ours, theirs = pty.openpty()
        written = []

        def take():
            try:
                while part := os.read(ours, 65536):
                    written.append(part)
            except OSError:  # the other side is closed
                pass

        reader = threading.Thread(target=take)
        reader.start()
        process = subprocess.Popen(
            [self.installed, *map(str, words)],
            env={**self.environment, "TERM": "xterm", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=theirs,
        )
        os.close(theirs)
        code = process.wait(DEADLINE_S)
        reader.join(DEADLINE_S)
        os.close(ours)
        return code, b"".join(written).decode()

    def dom(self, path):
        """The page as Chromium has it, with what its console says."""
        done = subprocess.run(
            [
                BROWSER,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--enable-logging=stderr",
                f"--user-data-dir={self.scratch / 'browser'}",
                "--dump-dom",
                path.as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("CONSOLE", done.stderr)
        return done.stdout

    def test_a_terminal_shows_each_node_what_failed_and_honours_no_color(self):
        words = self.words(requirement("r", behaviour="slow"), requirement("low", value=7))
        code, text = self.on_terminal(*words)
        self.assertEqual(code, 1, text)
        self.assertRegex(text, r"  8 nodes: \d at work, ")
        for name in NAMES:
            self.assertRegex(text, rf"  {name} +\d/\d +fake_probe  0:0\d of about ")
        self.assertIn("\x1b[31m  failed on ", text)
        shutil.rmtree(self.run_directory)
        code, text = self.on_terminal(*self.words(requirement("low", value=7)), NO_COLOR="1")
        self.assertEqual(code, 1, text)
        self.assertIn("  failed on ", text)
        self.assertNotIn("\x1b[31m", text)

    def test_what_is_no_terminal_gets_one_line_an_event(self):
        done = self.assay(*self.words(requirement("r")))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("\x1b", done.stderr + done.stdout)
        self.assertEqual(len(re.findall(r"^\[ *\d+/8\] .* done after", done.stderr, re.M)), 8)

    @unittest.skipUnless(BROWSER, "no chromium on this machine")
    def test_a_browser_reads_the_page_while_the_run_goes_on_and_after_it(self):
        process = self.start(
            *self.words(
                requirement("low", value=7),
                requirement("h", behaviour="hang"),
                more=["--board", self.board, "--deadline", "10min"],
            )
        )
        wait_for(
            lambda: self.board.exists()
            and "at work" in self.board.read_text()
            and "fake_probe" in self.board.read_text(),
            "the page shows a step",
        )
        page = self.dom(self.board)
        self.assertIn('http-equiv="refresh"', page)
        self.assertEqual(page.count("<i class="), 8)
        self.assertRegex(page, r"\d of 16 attempts, 0:\d\d elapsed, about ")
        wait_for(
            lambda: "fake_probe-n1 done: low 7 fail" in re.sub(r"\d{4}-", "", self.board.read_text()),
            "the page shows what failed",
        )
        self.assertIn('class="bad"', self.dom(self.board))
        self.assertRegex(self.dom(self.board), r"\d+ of 16 steps judged: 0 required cells pass, [1-8] fail, \d open\.")
        process.terminate()
        process.wait(DEADLINE_S)
        over = self.dom(self.board)
        self.assertNotIn('http-equiv="refresh"', over)
        self.assertIn("assay has ended", over)
        self.assertFalse((self.scratch / "board.html.partial").exists())

    def sweep(self, *requirements, load):
        """A sweep of one node whose check reads the others' load from a file."""
        check = {**requirement("idle.cpu", at_least=None), "limit": {"at_most": 50, "unit": "1"}}
        check["parameters"] = {"behaviour": "measure", "value": 1, "script": self.write("load", load)}
        after = {
            **requirement("idle.cpu.after", value=2, at_least=None),
            "limit": {"at_most": 50, "unit": "1"},
            "after": True,
        }
        document = {
            "schema": "assay.profile/1",
            "name": "night",
            "title": "Night",
            "revision": 1,
            "relative_only": "a test",
            "requirements": [check, *requirements, after],
        }
        return self.start(
            "sweep",
            "--profile",
            self.write("night.json", document),
            "--directory",
            self.work,
            "--state",
            self.scratch / "ledger",
            "--out",
            self.scratch / "sweep",
            "--board",
            self.board,
        )

    def test_a_sweep_is_followed_through_its_checks_and_its_figures(self):
        process = self.sweep(requirement("h", behaviour="hang"), load="")
        wait_for(
            lambda: self.board.exists() and "of 2 attempts" in self.board.read_text(),
            "the page shows the figures and not the checks",
        )
        self.assertIn('http-equiv="refresh"', self.board.read_text())
        process.terminate()
        process.wait(DEADLINE_S)
        self.assertIn("assay has ended", self.board.read_text())

    def test_the_page_of_a_sweep_that_only_checks_ends_with_it(self):
        self.assertEqual(self.sweep(requirement("r"), load="99\n").wait(DEADLINE_S), 0)
        self.assertIn("assay has ended", self.board.read_text())
        self.assertIn("of 1 attempts", self.board.read_text())

    def test_a_page_in_a_folder_that_is_not_there_is_refused(self):
        done = self.assay(*self.words(requirement("r"), more=["--board", self.scratch / "nowhere/board.html"]))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--board board.html", done.stderr)


if __name__ == "__main__":
    main()
