"""`assay export pdf`: by chromium, where it is installed, the text read back with pdftotext; and without any program that prints."""
import itertools
import json
import re
import shutil
import unittest

from attacks import ASSAY, Bench, main, run
from policy_steps import WaiverSteps

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"))), None
)


# Every sign, and the ends of doubles and counts; all are finite, as a record demands.
EXTREMES = [
    0.0,
    -0.0,
    5e-324,
    2.2250738585072014e-308,
    1e-300,
    0.1,
    1.0,
    2.0**53 + 2,
    1e17,
    2.0**63,
    2.0**64,
    1e30,
    1e300,
    1.797e308,
]
EXTREMES += [-number for number in EXTREMES]

# The widths of page.html at so many pixels: of the page itself, and of the first table of section 1 within its frame.
FRAME = """<iframe src="page.html" style="width:%dpx;height:1500px;border:0" onload="
const page = this.contentDocument, box = page.querySelector('table.conformity').parentElement;
document.body.textContent = ['widths', page.documentElement.scrollWidth, this.clientWidth, box.scrollWidth, box.clientWidth].join(' ');
"></iframe>"""


class Printed(Bench):
    kind = "mixed"

    def export(self, *more, source=None, **environment):
        self.pdf = self.scratch / "a report.pdf"
        return run(
            ASSAY,
            "export",
            "pdf",
            "--run",
            source or self.dossier,
            "-o",
            self.pdf,
            *more,
            env={**self.environment, **environment},
        )

    def pages(self):
        text = run("pdftotext", "-layout", self.pdf, "-").stdout
        return text.split("\f")[:-1]

    def test_a_machine_without_a_browser_is_told_what_to_install(self):
        done = self.export(PATH=str(self.scratch))
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("neither chromium nor weasyprint is installed here", done.stderr)
        self.assertIn("apt-get install chromium", done.stderr)
        self.assertFalse(self.pdf.exists())

    def test_an_altered_dossier_is_not_printed(self):
        self.flip(self.first("records"))
        self.assertEqual(self.export("--key", f"{self.key}.pub").returncode, 4)
        self.assertFalse(self.pdf.exists())

    def test_a_pdf_is_no_text_for_a_terminal(self):
        done = run(ASSAY, "export", "pdf", "--run", self.dossier, env=self.environment)
        self.assertEqual(done.returncode, 2)
        self.assertIn("name the file: -o report.pdf", done.stderr)

    @unittest.skipUnless(BROWSER, "no chromium on this machine")
    @unittest.skipUnless(shutil.which("pdftotext"), "no pdftotext on this machine (apt-get install poppler-utils)")
    def test_each_page_has_verdict_run_fingerprints_and_its_number_and_all_rows_are_there(self):
        done = self.export("--key", f"{self.key}.pub")
        self.assertEqual(done.returncode, 0, done.stderr)
        first = self.pdf.read_bytes()
        fingerprint = self.command("fingerprint", f"{self.key}.pub").stdout.strip()
        pages = self.pages()
        self.assertGreater(len(pages), 3)
        for number, page in enumerate(pages, 1):
            with self.subTest(page=number):
                self.assertRegex(page, r"REJECTED\s+run 5f0c3c1e-8a51-4f0e-9b64-")
                self.assertRegex(page, r"SHA-256 of the verdict [0-9a-f]{64}")
                self.assertIn(f"verified, signed by {fingerprint}", page)
                self.assertIn(f"Page {number} of {len(pages)}", page)
        for words in ("What to do", "Signed by", "End of test"):  # what was decided, what follows, and who signs
            self.assertIn(words, pages[0])
        self.assertIn("end of report", pages[-1])
        text = "\n".join(pages)
        for row in ("n01", "n02", "n03", "memory.copy"):
            self.assertIn(row, text)
        self.assertEqual(sorted(path.name for path in self.scratch.iterdir()), ["a report.pdf", "dossier"])
        self.assertEqual(self.export("--key", f"{self.key}.pub").returncode, 0)
        self.assertEqual(self.pdf.read_bytes(), first, "the same program draws the same bytes")

    @unittest.skipUnless(BROWSER, "no chromium on this machine")
    @unittest.skipUnless(shutil.which("pdftotext"), "no pdftotext on this machine (apt-get install poppler-utils)")
    def test_eight_nodes_need_at_most_twelve_pages(self):
        faults = self.scratch / "faults.json"
        faults.write_text('{"schema": "assay.faults/1", "bad_nodes": [{"node": "n00004", "factor": 0.0625}]}')
        for profile in ("host-network", "host"):
            with self.subTest(profile):
                fleet = self.scratch / profile
                self.command("simulate", "--profile", profile, "--nodes", 8, "--faults", faults, "--out", fleet, code=0)
                self.assertEqual(self.export(source=fleet).returncode, 0)
                pages = self.pages()
                self.assertLessEqual(len(pages), 12)
                text = "\n".join(pages)
                for words in ("What to do", "Statement of conformity", "report.html", "What is not claimed"):
                    self.assertIn(words, text)

    @unittest.skipUnless(BROWSER, "no chromium on this machine")
    def test_the_statement_of_conformity_fits_a_telephone_and_a_tablet(self):
        fleet = self.scratch / "fleet"
        self.command("simulate", "--profile", "host-network", "--nodes", 8, "--out", fleet, code=0)
        page = (fleet / "report.html").read_text()
        (self.scratch / "page.html").write_text(re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page))
        for width in (390, 768):
            with self.subTest(width):
                frame = self.scratch / f"frame-{width}.html"
                frame.write_text(FRAME % width)
                options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
                shown = run(BROWSER, *options, "--virtual-time-budget=20000", "--dump-dom", frame.as_uri()).stdout
                whole, most, inner, frame_width = map(int, re.search(r"widths (\d+) (\d+) (\d+) (\d+)", shown).groups())
                self.assertLessEqual(whole, most)
                self.assertLessEqual(inner, frame_width)

    @unittest.skipUnless(BROWSER, "no chromium on this machine")
    @unittest.skipUnless(shutil.which("pdftotext"), "no pdftotext on this machine (apt-get install poppler-utils)")
    def test_figures_and_counts_at_the_ends_of_their_range_are_printed_on_as_many_pages(self):
        self.assertEqual(self.export("--key", f"{self.key}.pub").returncode, 0)
        most = len(self.pages()) + 3
        count = itertools.count()

        def extreme(line):
            measured = line.get("measurement")
            for name in ("samples", "warmup") if measured else ():
                measured[name] = [EXTREMES[next(count) % len(EXTREMES)] for _ in measured.get(name, [])]
            condition = line.get("condition", {}).get("value")
            if type(condition) in (int, float):
                number = EXTREMES[next(count) % len(EXTREMES)]
                line["condition"]["value"] = 2**63 - 1 if isinstance(condition, int) else number
            return json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n"

        def change(_, directory):
            for path in sorted((directory / "records").rglob("*.jsonl")):
                path.write_text("".join(map(extreme, map(json.loads, path.read_text().splitlines()))))

        directory = self.doctor(change)
        self.assertIn(self.judge(directory).returncode, (1, 3))
        done = self.export(source=directory)
        self.assertEqual(done.returncode, 0, done.stderr)
        pages = self.pages()
        self.assertLessEqual(len(pages), most)
        text = "\n".join(pages)
        for words in ("Statement of conformity", "What is not claimed"):
            self.assertIn(words, text)
        self.assertRegex(text, r"\de\+?[123]\d\d\b", "the extremes are there")
        for word in text.split():
            self.assertLess(len(word), 200, "a number is never printed with all its digits")


class PrintedWithAWaiver(WaiverSteps):
    kind = "mixed"

    def export(self, *more):
        return run(
            ASSAY,
            "export",
            "pdf",
            "--run",
            self.dossier,
            "-o",
            self.scratch / "waived.pdf",
            "--waiver",
            self.scratch / "waiver",
            *more,
            env=self.environment,
        )

    @unittest.skipUnless(BROWSER, "no chromium on this machine")
    @unittest.skipUnless(shutil.which("pdftotext"), "no pdftotext on this machine (apt-get install poppler-utils)")
    def test_the_first_page_has_the_waiver(self):
        self.run_waive("--node", "n03")
        done = self.export("--policy", self.policy_file())
        self.assertEqual(done.returncode, 0, done.stderr)
        first = run("pdftotext", "-l", "1", self.scratch / "waived.pdf", "-").stdout
        self.assertLess(first.index("REJECTED"), first.index("WAIVED"))
        self.assertIn("module comes in March", first)

    def test_a_waiver_that_nothing_counts_is_not_printed(self):
        self.run_waive("--node", "n03")
        for code, words, arguments in (
            (2, "--waiver: needs --policy", []),
            (4, "rule signer_listed", ["--policy", self.write(self.vendor(), require=("vendor",))]),
        ):
            with self.subTest(words):
                done = self.export(*arguments)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(words, done.stderr)
                self.assertFalse((self.scratch / "waived.pdf").exists())


if __name__ == "__main__":
    main()
