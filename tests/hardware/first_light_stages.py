"""One stage at a time, each with a limit, none of which can hold up the others."""
import dataclasses
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
    limit_s: float
    command: list
    wanted: tuple = (0,)  # exit codes that are right
    required: bool = True  # whether it counts for the exit code of the whole
    companion: list = None  # a command that runs beside it and is ended with it


@dataclasses.dataclass
class Result:
    name: str
    outcome: str  # ok, failed, hung, skipped, not run
    required: bool
    seconds: float = 0.0
    code: int = None
    last_words: str = ""


class Budget:
    def __init__(self, seconds):
        self.begin, self.seconds = time.monotonic(), seconds

    def spent(self):
        return time.monotonic() - self.begin

    def left(self):
        return self.seconds - self.spent() - RESERVE_S


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


def start(command, records, name, environment):
    out, err = open(records / f"{name}.out", "wb"), open(records / f"{name}.err", "wb")
    with out, err:
        return subprocess.Popen(
            [str(part) for part in command],
            stdout=out,
            stderr=err,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env=environment,
        )


def run(stage, clock, records, environment, times=1):
    records.mkdir(parents=True, exist_ok=True)
    limit = min(stage.limit_s * times, clock.left() - GRACE_S)
    if limit < min(stage.limit_s * times, 5):
        return Result(stage.name, "not run", stage.required, last_words="out of time")
    begin, companion, code = time.monotonic(), None, None
    try:
        if stage.companion:
            companion = start(stage.companion, records, stage.name + "_companion", environment)
        process = start(stage.command, records, stage.name, environment)
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            end(process)
    except OSError as error:
        return Result(stage.name, "failed", stage.required, time.monotonic() - begin, last_words=str(error))
    finally:
        if companion:
            end(companion)
    words = last_words(records / f"{stage.name}.err") or last_words(records / f"{stage.name}.out")
    return Result(stage.name, outcome_of(code, stage.wanted), stage.required, time.monotonic() - begin, code, words)


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
