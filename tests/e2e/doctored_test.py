"""Runs that were bent before the tool judged and signed them: samples, attempts, times, the descriptions of probes."""
import datetime
import json

from attacks import Bench, Document, main, row, sha256  # noqa: F401: Document is a test


def shift(path, years):
    """Gives every line of a record or journal another year."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line["time"] = f"{int(line['time'][:4]) + years}{line['time'][4:]}"
    path.write_text("".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines))


def shift_lines(lines, years):
    for line in lines:
        line["time"] = f"{int(line['time'][:4]) + years}{line['time'][4:]}"


def second(line, seconds):
    """`line` some seconds later."""
    moment = datetime.datetime.fromisoformat(line["time"][:-1]) + datetime.timedelta(seconds=seconds)
    return {**line, "time": moment.isoformat(timespec="milliseconds") + "Z"}


class Runs(Bench):
    """Changed before the tool itself judged, reported and signed."""

    def doctored(self, change, *arguments):
        """What the first step that refuses says, or verify."""
        done = self.sign_run(self.doctor(change))
        return done if done.returncode != 0 else self.verify(*arguments)

    @row("C", "C1",
         "samples invented, every digest redone: the signer's word, which nothing in a dossier can refute", 0, "verified: accepted")
    def test_samples(self):
        def change(lines, directory):
            record = directory / lines[-2]["evidence"][0]["path"]
            record.write_text(record.read_text().replace('"stopped":"stable"', '"stopped":"fixed"'))
        return self.doctored(change, "--accepted")

    def crash(self, lines, directory):
        """The first attempt of the last step crashed, and a second one was good."""
        begin, end = lines[-3], lines[-2]
        again = {**second(end, 1), "attempt": 2, "evidence": []}
        for file in end["evidence"]:
            path = file["path"].replace("/1/", "/2/")
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            (directory / path).write_bytes((directory / file["path"]).read_bytes())
            again["evidence"].append({**file, "path": path})
        end.update(outcome="crashed", reason="killed by signal 11")
        lines[-1:-1] = [{**second(begin, 8), "attempt": 2}, {**again, "time": lines[-1]["time"]}]

    @row("C", "C4a", "a crashed attempt beside a good one", 3, "verified: incomplete")
    def test_crash(self):
        return self.doctored(self.crash, "--accepted")

    @row("C", "C4b", "the crashed attempt taken out before signing: not seen in one dossier", 0, "verified: accepted")
    def test_crash_taken_out(self):
        return self.doctored(lambda lines, directory: None, "--accepted")

    def old_records(self, lines, directory):
        for path in (directory / "records").rglob("*.jsonl"):
            shift(path, -7)

    @row("C", "C6",
         "records of 2019 in a run of 2026: named as a deviation", 0, " s before their attempts: its clock differs from the head node's")
    def test_old_records(self):
        return self.doctored(self.old_records, "--accepted")

    @row("C", "C6-strict",
         "the same with --no-deviations", 4, "evidence/verdict.json: has 3 deviations, first: Node n01: its records are dated up to")
    def test_old_records_refused(self):
        return self.doctored(self.old_records, "--no-deviations")

    @row("C", "C7", "a run of 2091 signed today: sign refuses", 4, "before the run's last line of 2091-01-05T")
    def test_future(self):
        return self.doctored(lambda lines, directory: shift_lines(lines, 65))

    @row("C", "C7b", "a run that ends 56 years before it begins", 2, "the time goes back from 2026-01-05T")
    def test_backwards(self):
        return self.doctored(lambda lines, directory: shift_lines(lines[-1:], -56))

    @row("C", "C7c", "journal times are the word yesterday: judge refuses", 2, "line 1: 'time' is not UTC with milliseconds: 'yesterday'")
    def test_yesterday(self):
        return self.doctored(lambda lines, directory: [line.update(time="yesterday") for line in lines])

    @row("C", "C7c-sign", "the same: sign refuses", 4, "journal.jsonl: line 1: 'time' is not UTC with milliseconds: 'yesterday'")
    def test_yesterday_signed(self):
        directory = self.doctor(lambda lines, directory: [line.update(time="yesterday") for line in lines])
        return self.command("sign", directory, "--key", self.key)

    @row("C", "C8", "a byte order mark before a journal line", 2, "line 2: line 1, column 1: begins with a byte order mark")
    def test_mark(self):
        directory = self.doctor(lambda lines, directory: None)
        path = directory / "journal.jsonl"
        path.write_text(path.read_text().replace("\n", "\n\ufeff", 1))
        return self.judge(directory)

    @row("C", "C8b", "an unknown member in a journal line", 2, "a run_end has no member 'waived'")
    def test_member(self):
        return self.doctored(lambda lines, directory: lines[-1].update(waived=True))

    @row("C", "C9", "two journals spliced", 2, "without a clock_jump")
    def test_spliced(self):
        return self.doctored(lambda lines, directory: lines.extend(dict(line) for line in lines[1:]))

    @row("C", "C9b", "the end of the journal cut off", 3, "the run did not finish, so it cannot be accepted")
    def test_no_end(self):
        return self.doctored(lambda lines, directory: lines.pop(), "--accepted")

    @row("C", "C9c", "a journal line cut in the middle", 2, "line 4: ")
    def test_cut(self):
        directory = self.doctor(lambda lines, directory: None)
        path = directory / "journal.jsonl"
        lines = path.read_text().splitlines()
        path.write_text("\n".join([*lines[:3], lines[3][:20], *lines[4:]]) + "\n")
        return self.judge(directory)

    @row("C", "C10", "an agent that says null of its node", 2, "assay: ")
    def test_null(self):
        def change(lines, directory):
            next(line for line in lines if line["kind"] == "node_up")["facts"] = None
        return self.doctored(change)

    def interrupted(self, lines, directory):
        """Each step was killed three times before the attempt that counts."""
        fresh = []
        for line in lines:
            if line["kind"] == "attempt_begin":
                for number in (1, 2, 3):
                    fresh += [{**line, "attempt": number}, {"time": line["time"], "kind": "run_resume"}]
            if line["kind"].startswith("attempt"):
                line = {**line, "attempt": 4, "evidence": [dict(file) for file in line.get("evidence", [])]}
                if line["kind"] == "attempt_begin":
                    del line["evidence"]
                for file in line.get("evidence", []):
                    path = file["path"].replace("/1/", "/4/")
                    (directory / path).parent.mkdir(parents=True, exist_ok=True)
                    (directory / file["path"]).rename(directory / path)
                    file["path"] = path
            fresh.append(line)
        lines[:] = fresh

    @row("C", "C15",
         "the head killed three times in every step: the deviations come first", 0, "    The run was interrupted and resumed 18 times.")
    def test_interrupted(self):
        return self.doctored(self.interrupted, "--accepted")

    @row("C", "C15-strict", "the same with --no-deviations", 4, "has 19 deviations, first: The run was interrupted and resumed 18 times.")
    def test_interrupted_refused(self):
        return self.doctored(self.interrupted, "--no-deviations")

    def plan(self):
        """The digest of the receiver's own plan."""
        return sha256((self.run_directory / "plan.json").read_bytes())

    @row("C", "C17-c6", "records of 2019 under the receiver's own plan: named", 0, "its clock differs from the head node's")
    def test_planned_old(self):
        return self.doctored(self.old_records, "--accepted", "--plan", self.plan())

    @row("C", "C17-c7", "a run of 2091 under the receiver's own plan", 4, "before the run's last line of 2091")
    def test_planned_future(self):
        return self.doctored(lambda lines, directory: shift_lines(lines, 65))

    @row("C", "C17-c4b", "an attempt taken out under the receiver's own plan: not seen in one dossier", 0, "verified: accepted")
    def test_planned_taken_out(self):
        return self.verify("--plan", self.plan())

    @row("C", "C17-c15", "27 interruptions under the receiver's own plan, --no-deviations", 4, "has 19 deviations")
    def test_planned_interrupted(self):
        return self.doctored(self.interrupted, "--no-deviations", "--plan", self.plan())


class Probes(Bench):
    kind = "known"
    BENT = "probes.host_memory_latency.description: is not that of host_memory_latency revision"

    def bend(self, lines, directory):
        """A time that gets better by growing, an instrument without uncertainty, a program of zeros."""
        plan = json.loads((directory / "plan.json").read_text())
        probe = plan["probes"]["host_memory_latency"]
        for metric in probe["description"]["metrics"]:
            metric["better"], metric["instrument"] = {"lower": "higher", "higher": "lower"}.get(metric["better"], "lower"), 0.0
        (directory / "plan.json").write_text(json.dumps(plan, indent=1, sort_keys=True, ensure_ascii=False) + "\n")

    def zeros(self, lines, directory):
        plan = (directory / "plan.json").read_text()
        digest = json.loads(plan)["probes"]["host_memory_latency"]["sha256"]
        (directory / "plan.json").write_text(plan.replace(digest, "0" * 64))

    @row("C", "C3", "a plan whose probe is described otherwise: judge refuses", 2, BENT)
    def test_judge(self):
        return self.judge(self.doctor(self.bend))

    @row("C", "C3-sign", "the same: sign refuses", 4, BENT)
    def test_sign(self):
        return self.command("sign", self.doctor(self.bend), "--key", self.key)

    @row("C", "C3-zeros", "a program whose SHA-256 is zeros", 2, "is not the SHA-256 of a program")
    def test_zeros(self):
        return self.judge(self.doctor(self.zeros))

    @row("C", "C3p", "only plan.json edited in a dossier, everything sealed again", 4, BENT)
    def test_dossier(self):
        self.bend([], self.dossier / "evidence")
        self.seal()

    @row("C", "C17-c3a", "the same under the receiver's own plan", 4, "statement.dsse.json: has the plan '")
    def test_planned(self):
        self.bend([], self.dossier / "evidence")
        self.seal()
        return self.verify("--plan", sha256((self.run_directory / "plan.json").read_bytes()))

    @row("C", "C3-probes",
         "another program under the probe's name, --probes SHA256SUMS", 4, "used the probe host_memory_latency with the SHA-256 ")
    def test_program(self):
        (self.scratch / "SHA256SUMS").write_text("a" * 64 + "  libexec/assay/probes/host_memory_latency\n")
        return self.verify("--probes", "{scratch}/SHA256SUMS")

    @row("C", "C3-honest", "the same run as it was", 0, "verified: ")
    def test_honest(self):
        self.assertNotIn("described by the signer alone", self.verify().stdout)


if __name__ == "__main__":
    main()
