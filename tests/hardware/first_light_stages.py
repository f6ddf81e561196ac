"""One stage at a time, each with a limit, none of which can hold up the others, all within one time budget."""
import dataclasses
import fnmatch
import os
import signal
import subprocess
import time

RESERVE_S = 8  # for the report and the archive
GRACE_S = 5  # from the request to end until the end by force
SKIPPED = 77


@dataclasses.dataclass
class Stage:
    name: str
    expected_s: float
    limit_s: float
    command: list
    wanted: tuple = (0,)  # exit codes that are right
    refusal: str = ""  # last words with which exit code 1 is right, too
    required: bool = True  # whether it counts for the exit code of the whole
    chosen: bool = True  # whether it runs without being named
    environment: dict = dataclasses.field(default_factory=dict)  # beside that of all stages


@dataclasses.dataclass
class Result:
    name: str
    outcome: str  # ok, failed, hung, skipped, not run
    required: bool
    seconds: float = 0.0
    code: int = None
    last_words: str = ""


class Budget:
    def __init__(self, seconds, now=time.monotonic):
        self.now, self.begin, self.seconds = now, now(), seconds

    def spent(self):
        return self.now() - self.begin

    def left(self):
        return self.seconds - self.spent() - RESERVE_S


def choose(stages, words):
    """The stages that `words` name (patterns), in their own order; those that run unnamed without words."""
    unknown = [word for word in words if not any(fnmatch.fnmatch(stage.name, word) for stage in stages)]
    if unknown:
        raise ValueError(f"no stage {', '.join(unknown)}; there are {', '.join(stage.name for stage in stages)}")
    if not words:
        return [stage for stage in stages if stage.chosen]
    return [stage for stage in stages if any(fnmatch.fnmatch(stage.name, word) for word in words)]


def run_all(stages, budget, run_one):
    """Yields a result for each stage. One whose expected time is not left is passed over. One that is slow gets its limit and as much
    again where the limits of all later ones leave that. run_one(stage, limit_s) runs one.
    """
    for place, stage in enumerate(stages):
        left_s = budget.left()
        spare_s = left_s - sum(later.limit_s for later in stages[place + 1 :])
        if stage.expected_s > left_s:
            words = f"{stage.expected_s:g} s, {left_s:.0f} s left"
            yield Result(stage.name, "not run", stage.required, last_words=words)
        else:
            yield run_one(stage, min(left_s, max(stage.limit_s, min(2 * stage.limit_s, spare_s))))


def listing(stages, seconds):
    """What would run within `seconds` if every stage took what is expected, as lines."""
    lines, begin_s = [f"{'stage':16} {'expected':>9} {'limit':>7} {'begins':>8}"], 0.0
    for stage in stages:
        fits = begin_s + stage.expected_s <= seconds - RESERVE_S
        begins = f"{begin_s:6.0f} s" if fits else "left out"
        lines.append(f"{stage.name:16} {stage.expected_s:7g} s {stage.limit_s:5g} s {begins:>8}")
        begin_s += stage.expected_s if fits else 0
    lines.append(
        f"{begin_s:.0f} s expected; limits add up to {sum(stage.limit_s for stage in stages):g} s; {seconds:g} s given"
    )
    return lines


def end(process):
    """Ends a process and what it started. One that cannot be ended, as one in a call of a driver that hangs, is left behind."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            continue
        if number == signal.SIGKILL:
            return
        # Its children may have ignored what it did not.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        return


def last_words(path):
    try:
        with open(path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 4000))
            lines = file.read().decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""
    except OSError:
        return ""


def run(stage, limit_s, records, environment):
    records.mkdir(parents=True, exist_ok=True)
    begin, code = time.monotonic(), None
    try:
        with open(records / f"{stage.name}.out", "wb") as out, open(records / f"{stage.name}.err", "wb") as err:
            process = subprocess.Popen(
                [str(part) for part in stage.command],
                stdout=out,
                stderr=err,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**environment, **stage.environment},
            )
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            end(process)
    except OSError as error:
        return Result(
            stage.name,
            "failed",
            stage.required,
            time.monotonic() - begin,
            last_words=str(error),
        )
    words = last_words(records / f"{stage.name}.err") or last_words(records / f"{stage.name}.out")
    return Result(
        stage.name,
        outcome_of(code, stage.wanted + ((1,) if stage.refusal and stage.refusal in words else ())),
        stage.required,
        time.monotonic() - begin,
        code,
        words,
    )


def outcome_of(code, wanted):
    if code is None:
        return "hung"
    if code in wanted:
        return "ok"
    return "skipped" if code == SKIPPED else "failed"


def exit_code(results):
    outcomes = {result.outcome for result in results if result.required}
    if outcomes & {"failed", "hung"}:
        return 1
    return 3 if outcomes & {"skipped", "not run"} else 0
