"""`assay accept` on this machine: from a profile to a verdict, with probes that behave and probes that do not."""
import json
import os
import re
import shutil
import subprocess
import unittest

from harness import BIN, DAEMON_S, Bench, main, processes, profile, requirement, wait_for


TOKEN_MODULE = next(
    (
        path
        for path in ("/usr/lib/softhsm/libsofthsm2.so", "/usr/lib/x86_64-linux-gnu/softhsm/libsofthsm2.so")
        if os.path.exists(path)
    ),
    "libsofthsm2.so",
)


class Accept(Bench):
    def test_a_healthy_machine_is_accepted_and_its_dossier_verifies(self):
        done = self.accept(requirement("r"))
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertIn("ACCEPTED: 1 of 1 required cells pass.", done.stdout)
        self.assertIn("SELF-SIGNED", done.stderr)
        self.assertTrue((self.run_directory / "report.html").read_text().startswith("<!DOCTYPE html>"))
        verified = self.verify()
        self.assertEqual(verified.returncode, 0, verified.stderr)
        self.nothing_left()

    def test_a_missed_limit_is_rejected(self):
        done = self.accept(requirement("r", at_least=200), requirement("s"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("REJECTED", done.stdout)
        self.assertEqual(self.verify().returncode, 0)

    def test_a_probe_that_is_not_there_is_not_measured_and_the_whole_incomplete(self):
        done = self.accept(requirement("r"), dict(requirement("gpu"), probe="cuda_gemm", parameters={}))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(self.outcomes()[("gpu", self.node())], "not_measured")
        self.assertIn("cuda_gemm is not part of this build", done.stdout)

    def test_every_misbehaviour_is_named_and_nothing_else_is_lost(self):
        behaviours = {
            "hang": "error",
            "stubborn": "error",
            "crash": "error",
            "exit3": "error",
            "flood": "error",
            "garbage": "error",
            "truncate": "error",
            "error": "error",
            "skip": "not_measured",
            "daemon": "pass",
            "measure": "pass",
        }
        done = self.accept(*(requirement(name, name, value=DAEMON_S) for name in behaviours))
        self.assertEqual(done.returncode, 3, done.stderr)
        node = self.node()
        self.assertEqual(self.outcomes(), {(name, node): outcome for name, outcome in behaviours.items()})
        reasons = self.reasons()
        for name, words in {
            "hang": "deadline",
            "stubborn": "deadline",
            "crash": "crashed",
            "exit3": "exit code 3",
            "flood": "output_limit",
            "garbage": "line 2",
            "truncate": "'end' is missing",
            "error": "answered with an error",
            "skip": "no such hardware",
        }.items():
            self.assertIn(words, reasons[(name, node)])
        self.nothing_left()
        self.assertEqual(processes(f"sleep {DAEMON_S}"), [])
        self.assertEqual(self.verify().returncode, 0)

    def test_a_directory_with_a_run_in_it_is_refused(self):
        self.accept(requirement("r"))
        again = self.accept(requirement("r"))
        self.assertEqual(again.returncode, 2)
        self.assertIn("exists and is not empty", again.stderr)

    def test_judging_again_gives_the_same_bytes(self):
        self.accept(requirement("r"))
        before = (self.run_directory / "verdict.json").read_bytes()
        self.assertEqual(self.assay("judge", self.run_directory).returncode, 0)
        self.assertEqual((self.run_directory / "verdict.json").read_bytes(), before)

    def test_a_rehearsal_accepts_nothing(self):
        done = self.accept(requirement("r"), more=["--quick"])
        self.assertEqual(done.returncode, 3)
        self.assertIn("rehearsal", done.stdout)

    def test_a_dry_run_does_nothing(self):
        done = self.accept(requirement("r"), more=["--dry-run"])
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"^steps .*\n0001 +fake_probe +\S+ +\d+ of .* +r\n$")
        self.assertFalse(self.run_directory.exists())

    def tool(self, *command):
        done = subprocess.run(
            [str(word) for word in command],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_an_agent_signs_and_one_without_the_key_is_refused_before_anything_is_measured(self):
        self.environment.update(re.findall(r"(SSH_\w+)=([^;]+);", self.tool("ssh-agent", "-s")))
        self.addCleanup(self.tool, "ssh-agent", "-k")
        key = self.scratch / "id"
        self.tool("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
        refused = self.accept(requirement("r"), more=["--key", f"{key}.pub"])
        self.assertEqual(refused.returncode, 2)
        self.assertIn("ssh-add", refused.stderr)
        self.assertFalse(self.run_directory.exists())
        self.tool("ssh-add", key)
        key.unlink()
        done = self.accept(requirement("r"), more=["--key", f"{key}.pub"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"--key {key}.pub\n", done.stderr)
        self.assertNotIn("SELF-SIGNED", done.stderr)
        self.assertEqual(self.verify(key=f"{key}.pub").returncode, 0)

    def test_a_certificate_goes_along_and_one_of_another_key_is_refused_before_anything_is_measured(self):
        for name in ("own", "other"):
            self.tool(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-noenc",
                "-subj",
                "/O=Example/CN=Ada",
                "-keyout",
                self.scratch / f"{name}.key",
                "-out",
                self.scratch / f"{name}.pem",
            )
        key = self.scratch / "own.key"
        refused = self.accept(requirement("r"), more=["--key", key, "--certificate", self.scratch / "other.pem"])
        self.assertEqual(refused.returncode, 2)
        self.assertIn("is the certificate of another key", refused.stderr)
        self.assertFalse(self.run_directory.exists())
        done = self.accept(requirement("r"), more=["--key", key, "--certificate", self.scratch / "own.pem"])
        self.assertEqual(done.returncode, 0, done.stderr)
        (signature,) = json.loads((self.run_directory / "dossier/statement.dsse.json").read_text())["signatures"]
        self.assertEqual(signature["cert"], (self.scratch / "own.pem").read_text())

    def test_a_token_signs(self):
        (self.scratch / "hsm.conf").write_text(
            f"directories.tokendir = {self.scratch}/tokens\nobjectstore.backend = file\n"
        )
        (self.scratch / "tokens").mkdir()
        self.environment["SOFTHSM2_CONF"] = str(self.scratch / "hsm.conf")
        self.tool("softhsm2-util", "--init-token", "--free", "--label", "hall", "--pin", "1234", "--so-pin", "5678")
        key = self.scratch / "p256.pem"
        self.tool("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key)
        self.tool("openssl", "pkey", "-in", key, "-pubout", "-out", self.scratch / "token.pub")
        self.tool("softhsm2-util", "--import", key, "--token", "hall", "--pin", "1234", "--label", "lab", "--id", "01")
        key.unlink()
        (self.scratch / "pin").write_text("1234\n")
        name = f"pkcs11:token=hall;object=lab?module-path={TOKEN_MODULE}"
        done = self.accept(requirement("r"), more=["--key", name, "--passphrase-file", self.scratch / "pin"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("--key PUBLIC_KEY_OF_THE_TOKEN\n", done.stderr)
        self.assertEqual(self.verify(key=self.scratch / "token.pub").returncode, 0)

    def test_a_key_that_cannot_be_opened_is_refused_before_anything_is_measured(self):
        (self.scratch / "pass").write_text("open sesame\n")
        key = self.scratch / "lab.key"
        made = self.assay("keygen", key, "--passphrase-file", self.scratch / "pass")
        self.assertIn("lab.key.pub: the public key, for those who verify", made.stderr)
        refused = self.accept(requirement("r"), more=["--key", key])
        self.assertEqual(refused.returncode, 2)
        self.assertIn("is encrypted", refused.stderr)
        self.assertIn("--passphrase-file", refused.stderr)
        self.assertFalse(self.run_directory.exists())
        signed = self.accept(requirement("r"), more=["--key", key, "--passphrase-file", self.scratch / "pass"])
        self.assertEqual(signed.returncode, 0, signed.stderr)
        self.assertEqual(self.verify(key=f"{key}.pub").returncode, 0)

    def test_a_state_directory_that_cannot_be_written_is_refused_before_anything_is_measured(self):
        self.environment["XDG_STATE_HOME"] = "/proc/nowhere"
        refused = self.accept(requirement("r"))
        self.assertEqual(refused.returncode, 2)
        self.assertIn("cannot be created for this machine's own key", refused.stderr)
        self.assertIn("hint: name a key with --key", refused.stderr)
        self.assertFalse(self.run_directory.exists())

    def test_the_verdict_has_a_line_for_each_requirement_and_all_shows_each_cell(self):
        done = self.accept(requirement("good"), requirement("bad", at_least=200))
        lines = done.stdout.splitlines()
        self.assertLess(
            next(i for i, line in enumerate(lines) if line.startswith("bad")),
            next(i for i, line in enumerate(lines) if line.startswith("good")),
        )
        self.assertIn("0/1", done.stdout)
        self.assertNotIn("\x1b", done.stdout)
        self.assertIn("subject", self.assay("judge", self.run_directory, "--all").stdout)

    def test_what_only_leaves_out_is_said_once(self):
        done = self.accept(requirement("r"), requirement("s"), requirement("t"), more=["--only", "r"])
        self.assertEqual(done.stderr.count("left out by --only"), 1, done.stderr)
        self.assertEqual(done.stdout.count("left out by --only: s, t"), 1, done.stdout)

    def test_a_step_that_ends_tells_what_it_measured(self):
        done = self.accept(requirement("r"))
        self.assertRegex(done.stderr, r"0001-fake_probe-\S+ done after [0-9.]+ s: r 100 pass")


class CommandLine(Bench):
    def refused(self, words, *arguments):
        done = self.assay(*arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(words, done.stderr)

    def test_misspelt_names_get_the_nearest(self):
        self.refused("did you mean 'accept'?", "acept")
        self.refused("did you mean '--profile'?", "accept", "--profil", "host")
        self.refused("did you mean 'host'?", "accept", "--profile", "hots")
        self.refused("did you mean 'fake_probe'?", "describe", "fake_prob")

    def test_without_a_command_the_usage_is_shown(self):
        alone = self.assay()
        self.assertEqual(alone.returncode, 2)
        self.assertIn("accept", alone.stderr)
        asked = self.assay("help")
        self.assertEqual(asked.returncode, 0)
        self.assertIn("verify       check a dossier", asked.stdout)
        self.assertEqual(self.assay("help", "accept").stdout, self.assay("accept", "--help").stdout)

    def test_values_have_names_and_examples_fit_their_command(self):
        for command in ("accept", "plan", "run", "bundle", "sign", "keygen", "verify", "report", "simulate"):
            text = self.assay(command, "--help").stdout
            self.assertIn(f"Example: assay {command}", text)
            self.assertNotRegex(text, r"--(key|out|site|profile|passphrase-file)[^\n]* TEXT")

    def test_profiles_are_listed_and_described(self):
        self.assertRegex(self.assay("list", "profiles").stdout, r"(?m)^host +\S.*requirements$")
        described = self.assay("describe", "host").stdout
        self.assertIn("host_gemm", described)
        self.assertIn("(advisory)", described)
        self.refused("did you mean 'host'?", "describe", "hots")

    def test_completion_and_manual_have_every_command_and_option(self):
        script = self.write("assay.bash", self.assay("completion").stdout)
        complete = (
            'source "$1"; COMP_WORDS=("${@:2}"); COMP_CWORD=$(($# - 2)); _${2//-/_}; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        environment = dict(os.environ, PATH=f"{BIN}:{os.environ['PATH']}")
        for line, expected in (
            ("assay acc", "accept"),
            ("assay verif", "verify"),
            ("assay accept --pass", "--passphrase-file"),
            ("assay verify --acc", "--accepted"),
            ("assay simulate --rai", "--rails"),
            ("assay-report fing", "fingerprint"),
            ("assay-report sign --with-k", "--with-key"),
            ("assay-report --ver", "--version"),
        ):
            words = line.split()
            done = subprocess.run(
                ["bash", "-c", complete, "bash", script, *words],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            self.assertEqual(done.stdout.split(), [expected], words)
        for program, words in (("assay-report", r".B \-\-waiver FILE"), ("assay-node", r".B \-\-silence")):
            self.assertIn(
                words, subprocess.run([BIN / program, "--manual"], capture_output=True, text=True, check=True).stdout
            )
        manual = self.assay("manual").stdout
        self.assertIn(".SS assay accept", manual)
        self.assertIn(r".B \-\-deadline TIME", manual)

    # What zsh's own functions would show, as lines.
    ZSH = """autoload -Uz compinit 2>/dev/null; compdef() { :; }; _files() { :; }
_describe() { print -rl -- ${(P)3%%:*}; }
source "$1"; words=("${@:2}"); CURRENT=$#words; _assay"""

    @unittest.skipUnless(shutil.which("zsh"), "no zsh on this machine")
    def test_zsh_completes_the_same_words(self):
        script = self.write("_assay", self.assay("completion", "zsh").stdout)
        environment = dict(os.environ, PATH=f"{BIN}:{os.environ['PATH']}")
        for words, expected in (
            (["assay", ""], {"accept", "verify", "--version"}),
            (["assay", "accept", ""], {"--profile", "--deadline"}),
            (["assay", "verify", ""], {"--accepted"}),
            (["assay-report", ""], {"sign", "--version"}),
            (["assay-report", "sign", ""], {"--with-key"}),
            (["assay", "site", ""], {"check", "--from"}),
        ):
            done = subprocess.run(
                ["zsh", "-fc", self.ZSH, "zsh", script, *words],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            self.assertLessEqual(expected, set(done.stdout.split()), f"{words}: {done.stderr}")

    @unittest.skipUnless(shutil.which("fish"), "no fish on this machine")
    def test_fish_completes_the_same_words(self):
        script = self.write("assay.fish", self.assay("completion", "fish").stdout)
        environment = dict(os.environ, PATH=f"{BIN}:{os.environ['PATH']}", HOME=str(self.scratch))
        for line, expected in (
            ("assay acc", "accept"),
            ("assay accept --pass", "--passphrase-file"),
            ("assay verify --acc", "--accepted"),
            ("assay-report fing", "fingerprint"),
            ("assay-report sign --with-k", "--with-key"),
            ("assay site che", "check"),
        ):
            done = subprocess.run(
                ["fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", script, line],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            self.assertEqual(
                [one.split("\t")[0] for one in done.stdout.splitlines()], [expected], f"{line}: {done.stderr}"
            )

    def test_a_probe_that_does_not_exist_is_refused_when_planning(self):
        wrong = self.write("wrong.json", profile(dict(requirement("r"), probe="fake_prob")))
        self.refused("requirements[0].probe: there is no probe 'fake_prob'", "plan", "--profile", wrong)
        self.refused("did you mean 'fake_probe'?", "accept", "--profile", wrong, "--dry-run")
        self.assertEqual(self.assay("plan", "--profile", wrong, "--allow-missing", "--dry-run").returncode, 0)

    def test_dry_runs_print_the_same(self):
        ours = self.write("p.json", profile(requirement("r")))
        planned, accepted = (self.assay(command, "--profile", ours, "--dry-run") for command in ("plan", "accept"))
        self.assertEqual(planned.stdout, accepted.stdout)
        self.assertEqual(planned.stderr.splitlines()[0], accepted.stderr.splitlines()[0])
        fits = self.assay("accept", "--profile", ours, "--dry-run", "--deadline", "1h").stderr
        self.assertIn("fits into the deadline of 1 h 0 min", fits)
        self.refused("no such file: nosuch.key", "accept", "--profile", ours, "--dry-run", "--key", "nosuch.key")
        self.assertIn(
            "does not fit", self.assay("accept", "--profile", ours, "--dry-run", "--deadline", "100ms").stderr
        )

    def test_every_command_that_is_passed_on_exists_in_assay_report(self):
        self.refused("unknown command or option 'contrast'", "contrast")
        for command in (
            "report",
            "sign",
            "verify",
            "waive",
            "compare",
            "draw",
            "timestamp",
            "witness",
            "keygen",
            "simulate",
            "trend",
            "export",
            "rma",
        ):
            self.assertEqual(self.assay(command, "--help").returncode, 0, command)

    def test_help_fits_a_screen_and_ends_with_an_example(self):
        for command in ([], ["accept"], ["plan"], ["run"], ["judge"], ["status"], ["list"], ["describe"], ["bundle"]):
            text = self.assay(*command, "--help").stdout.rstrip()
            self.assertLessEqual(len(text.split("\n")), 47, command)
            self.assertIn("Example: assay", text.split("\n")[-1])
            self.assertNotIn("{false}", text)
        self.assertNotIn("passes on", self.assay("history", "--help").stdout)

    def test_a_profile_with_a_fault_is_refused_with_its_place(self):
        bad = requirement("r")
        bad["limit"]["unit"] = "GB/s"
        done = self.accept(requirement("q"), bad)
        self.assertEqual(done.returncode, 2)
        self.assertIn("requirements[1].limit.unit: 'GB/s' is not one of", done.stderr)

    def test_list_and_describe_tell_of_every_probe(self):
        self.assertIn("fake_probe", self.assay("list").stdout)
        self.assertIn("repeats the parameter value", self.assay("describe", "fake_probe").stdout)


if __name__ == "__main__":
    main()
