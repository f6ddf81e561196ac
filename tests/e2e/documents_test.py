"""The documents: links lead somewhere, the table of probes is current, and every `assay` command that README and GUIDE show works."""
import datetime
import difflib
import json
import os
import pathlib
import re
import shutil
import subprocess
import textwrap
import unittest

from document_commands import PREPARE, REFUSED, REHEARSE, sweep_without_visits
from harness import BIN, Bench, main
from kubernetes import start_cluster
from nightly import report

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden"
DOCUMENTS = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("orchestrator/**/README.md"),
        *ROOT.glob("reports/**/README.md"),
        *ROOT.glob("probes/**/README.md"),
        *ROOT.glob("workloads/**/README.md"),
    ]
)
MOST_LINES = {"README.md": 120, "docs/ARCHITECTURE.md": 110, "docs/GLOSSARY.md": 80}
MOST_LINES_OF_A_ROOM, MOST_LINES_OF_ROOMS_WITHIN = 20, 31  # the latter name the units of each room that they hold
MOST_COLUMNS = 140


def name_of(path):
    return str(path.relative_to(ROOT))


def blocks(path):
    """The fenced blocks of a document: pairs of language and text."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL)


def prose(path):
    """Numbered lines outside of code and tables."""
    fenced = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("|"):
            yield number, line


def anchors(path):
    """Of every heading, as a repository's web page names them."""
    headings = [line.lstrip("#").strip() for _, line in prose(path) if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class Text(unittest.TestCase):
    def test_no_document_is_longer_than_it_may_be(self):
        for path in DOCUMENTS:
            most = MOST_LINES.get(name_of(path))
            if most is None and path.name == "README.md":
                most = MOST_LINES_OF_ROOMS_WITHIN if any(path.parent.glob("*/*.cpp")) else MOST_LINES_OF_A_ROOM
            if most is not None:
                with self.subTest(name_of(path)):
                    self.assertLessEqual(len(path.read_text().splitlines()), most)

    def test_no_line_of_prose_is_wider_than_a_page(self):
        wide = [
            f"{name_of(path)}:{number}: {len(line)} columns"
            for path in DOCUMENTS
            for number, line in prose(path)
            if len(line) > MOST_COLUMNS
        ]
        self.assertEqual(wide, [])

    def test_the_changelog_has_one_change_an_item(self):
        lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
        changes = lines[next(number for number, line in enumerate(lines) if line.startswith("## ")) + 1 :]
        odd = [
            line
            for line in changes
            if line and not re.match(r"- \[(METHOD|FEATURE|CHANGE|FIX)\] \S|  \S|##+ ", line) or " - [" in line
        ]
        self.assertEqual(odd, [])

    def test_every_link_to_a_file_or_heading_leads_there(self):
        lost = []
        for path in DOCUMENTS:
            for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
                if "://" in target:
                    continue
                file, _, anchor = target.partition("#")
                there = (path.parent / file).resolve() if file else path
                if not there.exists() or (anchor and anchor not in anchors(there)):
                    lost.append(f"{name_of(path)}: {target}")
        self.assertEqual(lost, [])

    def test_the_probe_that_contributing_shows_is_laid_out_as_the_tree_is(self):
        (example,) = [text for language, text in blocks(ROOT / "CONTRIBUTING.md") if language == "cpp"]
        done = subprocess.run(
            ["clang-format-14", "--style=file", "--assume-filename", ROOT / "probes/host/example.cpp"],
            input=example,
            capture_output=True,
            text=True,
            check=True,
        )
        self.assertEqual(done.stdout, example)

    def test_the_readme_of_a_room_allows_what_the_map_allows(self):
        rows = re.findall(
            r"^\| `((?:orchestrator|reports)/\w+)` \| (.+) \|$",
            (ROOT / "docs/ARCHITECTURE.md").read_text(),
            re.MULTILINE,
        )
        self.assertGreater(len(rows), 10)
        for room, allowed in rows:
            path = ROOT / room / "README.md"
            stated = re.search(r"^\*\*May include\.\*\* (.*?)\n\n", path.read_text(), re.MULTILINE | re.DOTALL)
            paragraph = textwrap.fill(
                f"**May include.** {allowed}.", MOST_COLUMNS - 2, break_long_words=False, break_on_hyphens=False
            )
            if os.environ.get("ASSAY_BLESS") == "1":
                path.write_text(path.read_text().replace(stated.group(0), paragraph + "\n\n"))
            else:
                self.assertEqual(
                    stated.group(0),
                    paragraph + "\n\n",
                    f"{name_of(path)}: ASSAY_BLESS=1 writes it from docs/ARCHITECTURE.md",
                )

    def test_the_guide_names_every_profile(self):
        table = (
            (ROOT / "docs/GUIDE.md")
            .read_text()
            .split("\n| profile | nodes, and what is judged |\n")[1]
            .split("\n\n")[0]
        )
        named = []
        for row in table.splitlines():
            for name in re.findall(r"`([^`]+)`", row.split("|")[1]):
                # `-405b` stands for the name before with another end.
                named.append(named[-1].rsplit("-", 1)[0] + name if name.startswith("-") else name)
        profiles = {path.stem for path in (ROOT / "profiles").glob("*.json")} - {"actions", "advisories", "probes"}
        self.assertEqual(sorted(named), sorted(profiles))


# Lines of probes that a build may be without.
PARTS = {
    "ASSAY_WITH_CUDA": ("| `cuda_", "| `nccl_"),
    "ASSAY_WITH_VERBS": ("| `verbs_bandwidth", "| `verbs_latency", "| `verbs_traffic"),
}
MARKER = '<!-- probes: written by "assay list --markdown" -->\n'


class ProbeTable(unittest.TestCase):
    def test_the_table_is_what_the_probes_say_of_themselves(self):
        text = (ROOT / "docs/PROBES.md").read_text()
        shown = text.split(MARKER)[1].split("<!-- /probes -->")[0].splitlines()
        absent = [
            beginning for part, beginnings in PARTS.items() if os.environ[part] != "ON" for beginning in beginnings
        ]
        shown = [line for line in shown if not line.startswith(tuple(absent))]
        listed = subprocess.run(
            [BIN / "assay", "list", "--markdown"], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        if os.environ.get("ASSAY_BLESS") == "1" and not absent:
            begin, rest = text.split(MARKER)
            (ROOT / "docs/PROBES.md").write_text(
                begin + MARKER + "\n".join(listed) + "\n<!-- /probes -->" + rest.split("<!-- /probes -->")[1]
            )
            return
        differences = "\n".join(
            difflib.unified_diff(shown, listed, "docs/PROBES.md", "assay list --markdown", lineterm="")
        )
        self.assertEqual(differences, "", "ASSAY_BLESS=1 writes it, in a build with the Toolkit and RDMA")


def commands_in(path):
    """Every line of a block of shell commands that starts a program of assay, without its comment."""
    for language, text in blocks(path):
        for line in text.splitlines() if language == "sh" else []:
            command = re.sub(r"\s+#.*$", "", line).removeprefix("bin/")
            if re.match(r"assay(-report)? ", command):
                yield command


def node(name, number, **more):
    return {
        "name": name,
        "launcher": "ssh",
        "address": f"10.0.0.{number}",
        "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA",
        **more,
    }


def wired_node(number):
    ports = [
        {"interface": f"eth{rail + 1}", "device": f"mlx5_{rail}", "address": f"10.1.{rail}.{number}", "rail": str(rail)}
        for rail in range(2)
    ]
    return node(f"n{number}", number, planes={"parameter": ports})


def site(*nodes):
    return {"schema": "assay.site/1", "name": "hall-2", "nodes": list(nodes)}


class Commands(Bench):
    """Each command runs alone in a folder with the files that it names."""

    def setUp(self):
        super().setUp()
        self.folder = self.scratch / "folder"
        self.folder.mkdir()
        tools = self.scratch / "tools"
        tools.mkdir()
        self.api = start_cluster(self, pods=False)
        self.api.add_pod("assay-x7", "n01")
        (tools / "scontrol").write_text("#!/bin/sh\necho NodeName=n01 NodeAddr=n01 State=IDLE Partitions=gpu\n")
        (tools / "scontrol").chmod(0o755)
        self.environment.update(
            PATH=f"{BIN}:{tools}:{os.environ['PATH']}",
            HOME=str(self.folder),
        )
        for name in ("SLURM_JOB_ID", "SLURM_JOB_NODELIST"):
            self.environment.pop(name, None)
        self.fill()

    def put(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))

    def fill(self):
        self.put("hosts", "n[01-04]\n")
        self.put("known_hosts", "")
        self.put(".ssh/config", "Host n01\n  HostName 10.0.0.11\n")
        self.put("site.json", site(*(node(f"n0{number}", number) for number in range(1, 9))))
        self.put("local.json", site({"name": "here", "launcher": "local", "directory": str(self.work)}))
        self.put("slurm.json", site({"name": "n01", "launcher": "slurm"}))
        self.put("uncabled.json", site(*(wired_node(number) for number in range(1, 5))))
        self.put("cabled.json", site(*(dict(wired_node(number), leaf=f"l{number % 2}") for number in range(1, 9))))
        self.put("faults.json", {"schema": "assay.faults/1", "bad_nodes": [{"node": "n00003", "factor": 0.8}]})
        self.put("lldp/n1.json", (GOLDEN / "fabric/lldpctl.json").read_text())
        for number in range(2, 5):
            self.put(f"lldp/n{number}.json", '{"lldp": {}}')
        for library in ("libcublasLt.so.13", "libnccl.so.2"):
            self.put(f"libraries/{library}", "\x7fELF")
        shutil.copy(GOLDEN / "imports/nccl_tests_2.18.txt", self.folder / "all_reduce.txt")
        shutil.copy(GOLDEN / "fabric/ibnetdiscover.txt", self.folder / "fabric.txt")
        self.put("drift.json", report(as_of=datetime.date.today().isoformat()))
        self.put("policy.json", {"schema": "assay.policy/1"})
        for name in ("clean1", "clean2"):
            self.put(f"{name}/sweep.json", sweep_without_visits(name))
        self.put("mine.json", self.profile_of_a_second())
        self.put("here.json", site({"name": "n3", "launcher": "local", "directory": str(self.work)}))
        done = self.shell(
            "assay keygen lab.key && assay keygen buyer.key && assay plan --profile mine.json --out plan.json &&"
            " assay accept --profile mine.json --site here.json --out run --key lab.key &&"
            " assay history add run --db history.db && rm here.json"
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        plan = json.loads((self.folder / "run/plan.json").read_text())
        self.put("nodes", plan["site"]["nodes"][0]["name"] + "\n")
        self.put("trust.json", self.trust_policy({"vendor": "lab.key.pub", "buyer": "buyer.key.pub"}))

    def trust_policy(self, keys):
        """Both parties are required, each by this key of its."""
        ever = {"valid_from": "2020-01-01", "valid_until": "2100-01-01"}
        parties = [
            {
                "name": role,
                "role": role,
                "threshold": 1,
                "signers": [
                    {
                        "name": role,
                        "keys": [
                            {
                                "fingerprint": self.shell(f"assay-report fingerprint {file}").stdout.strip(),
                                "file": file,
                                **ever,
                            }
                        ],
                    }
                ],
            }
            for role, file in keys.items()
        ]
        return {"schema": "assay.trust/1", "name": "both", **ever, "require": list(keys), "parties": parties}

    def profile_of_a_second(self):
        """What any machine passes, from a probe that takes no time."""
        return {
            "schema": "assay.profile/1",
            "name": "mine",
            "title": "Any machine",
            "revision": 1,
            "requirements": [
                {
                    "id": "cpus",
                    "title": "It has a processor",
                    "probe": "health_inventory",
                    "metric": "cpus_online",
                    "scope": "node",
                    "statistic": "min",
                    "repeat": {"n": 1},
                    "limit": {"at_least": 1, "unit": "1"},
                    "source": {"document": "the test", "status": "sourced"},
                }
            ],
        }

    def shell(self, command):
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=self.deadline_s,
            stdin=subprocess.DEVNULL,
        )

    def test_every_command_in_the_documents_works(self):
        shown = {
            command: name_of(path)
            for path in (ROOT / "README.md", ROOT / "docs/GUIDE.md")
            for command in commands_in(path)
        }
        self.assertGreater(len(shown), 30)
        pristine = self.scratch / "pristine"
        self.folder.rename(pristine)
        for command, document in shown.items():
            shutil.rmtree(self.folder, ignore_errors=True)
            shutil.copytree(pristine, self.folder)
            for beginning, preparation in PREPARE.items():
                if command.startswith(beginning):
                    self.assertEqual(self.shell(preparation).returncode, 0, preparation)
            word = command.split()[1]
            if "--resume" in command:  # an interrupted run is not signed
                shutil.rmtree(self.folder / "run/dossier", ignore_errors=True)
            run = command if "--dry-run" in command else command + REHEARSE.get(word, "")
            refusal = next((words for beginning, words in REFUSED.items() if command.startswith(beginning)), None)
            with self.subTest(command, document=document):
                done = self.shell(run)
                if refusal:
                    self.assertIn(refusal, done.stderr)
                    continue
                self.assertEqual(done.returncode, 0, f"{run}\n{done.stdout}{done.stderr}")

    def test_every_json_document_in_the_guide_is_taken(self):
        options = {"assay.profile/1": "--profile", "assay.site/1": "--site"}
        taken = set()
        for language, text in blocks(ROOT / "docs/GUIDE.md"):
            if language == "json":
                self.put("known_hosts", "")
                self.put("shown.json", text.replace("/etc/assay/known_hosts", "known_hosts"))
                schema = json.loads(text)["schema"]
                taken.add(schema)
                command = (
                    "simulate --nodes 20 --faults shown.json"
                    if schema == "assay.faults/1"
                    else f"plan {options[schema]} shown.json --out p.json"
                )
                done = self.shell("assay " + command)
                self.assertEqual(done.returncode, 0, f"{schema}: {done.stderr}")
        self.assertEqual(taken, {"assay.profile/1", "assay.site/1", "assay.faults/1"})

    def test_every_command_in_running_text_exists(self):
        for path in DOCUMENTS:
            for program, word in set(re.findall(r"`(assay|assay-report) ([a-z]+)[ `]", path.read_text())):
                with self.subTest(f"{program} {word}", document=name_of(path)):
                    self.assertEqual(self.shell(f"{program} {word} --help").returncode, 0)


if __name__ == "__main__":
    main()
