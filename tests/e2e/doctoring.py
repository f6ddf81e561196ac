"""doctoring: what the head of a run can change in it before it is judged.

CHANGES has the changes by name, each a function (lines of the journal, directory, words).
"""
import datetime
import json
import re

from json_edits import edit


def edited(lines, _, *changes):
    edit(lines, *changes)


def shift(lines, years):
    """Gives every line of a record or journal another year."""
    for line in lines:
        line["time"] = f"{int(line['time'][:4]) + int(years)}{line['time'][4:]}"


def later(line, seconds):
    """`line` some seconds later."""
    moment = datetime.datetime.fromisoformat(line["time"][:-1]) + datetime.timedelta(seconds=seconds)
    return {**line, "time": moment.isoformat(timespec="milliseconds") + "Z"}


def old_records(_, directory):
    """Records that are seven years older."""
    for path in (directory / "records").rglob("*.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        shift(lines, -7)
        path.write_text("".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines))


def samples(lines, directory):
    record = directory / lines[-2]["evidence"][0]["path"]
    record.write_text(record.read_text().replace('"stopped":"stable"', '"stopped":"fixed"'))


def crash(lines, directory):
    """The first attempt of the last step crashed, and a second one was good."""
    begin, end = lines[-3], lines[-2]
    again = {**later(end, 1), "attempt": 2, "evidence": []}
    for file in end["evidence"]:
        path = file["path"].replace("/1/", "/2/")
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes((directory / file["path"]).read_bytes())
        again["evidence"].append({**file, "path": path})
    end.update(outcome="crashed", reason="killed by signal 11")
    lines[-1:-1] = [{**later(begin, 8), "attempt": 2}, {**again, "time": lines[-1]["time"]}]


def interrupted(lines, directory):
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


def without_last_attempt(lines, _):
    ends = [i for i, line in enumerate(lines) if line["kind"] == "attempt_end"]
    begins = [i for i, line in enumerate(lines) if line["kind"] == "attempt_begin"]
    for i in sorted((ends[-1], begins[-1]), reverse=True):
        del lines[i]


def bend_probe(_, directory):
    """A time that gets better by growing, an instrument without uncertainty."""
    plan = json.loads((directory / "plan.json").read_text())
    for metric in plan["probes"]["host_memory_latency"]["description"]["metrics"]:
        metric["better"], metric["instrument"] = {"lower": "higher", "higher": "lower"}.get(
            metric["better"], "lower"
        ), 0.0
    (directory / "plan.json").write_text(json.dumps(plan, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def unknown_revision(lines, directory):
    """The same under a revision that no catalogue has, in the records too."""
    bend_probe(lines, directory)
    for path in [directory / "plan.json", *(directory / "records").rglob("*.jsonl")]:
        text = path.read_text()
        if path.suffix == ".json":
            plan = json.loads(text)
            plan["probes"]["host_memory_latency"]["description"]["revision"] = 99
            path.write_text(json.dumps(plan, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
        else:
            path.write_text(re.sub(r'("host_memory_latency"[^}]*"revision":)\d+', r"\g<1>99", text))


def program_of_zeros(_, directory):
    plan = (directory / "plan.json").read_text()
    digest = json.loads(plan)["probes"]["host_memory_latency"]["sha256"]
    (directory / "plan.json").write_text(plan.replace(digest, "0" * 64))


CHANGES = {
    "nothing": lambda lines, directory: None,
    "edit": edited,
    "years": lambda lines, directory, years: shift(lines, years),
    "years-of-end": lambda lines, directory, years: shift(lines[-1:], years),
    "spliced": lambda lines, directory: lines.extend(dict(line) for line in lines[1:]),
    "samples": samples,
    "crash": crash,
    "old-records": old_records,
    "interrupted": interrupted,
    "without-last-attempt": without_last_attempt,
    "bend-probe": bend_probe,
    "unknown-revision": unknown_revision,
    "program-of-zeros": program_of_zeros,
}
