"""held: a probe whose attempt is still open when it is told to stop."""
import pathlib
import signal
import time

STOPPED_S = 5  # after SIGTERM, as SECURITY says
DEADLINE_S = 30
WAITS = {"7": "poll", "230": "clock_nanosleep", "232": "epoll_wait", "271": "ppoll"}  # of x86_64
STOPPED = "stopped before the last try was over"


def await_held(process):
    """Until the process waits: at five looks in a row, each 20 ms after the one before, in a call that waits for something to come."""
    deadline, row = time.monotonic() + DEADLINE_S, 0
    while row < 5:
        if process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"its try was not held open: exit code {process.poll()}: {process.communicate()}")
        call = pathlib.Path(f"/proc/{process.pid}/syscall").read_text().split()[0]
        row = row + 1 if call in WAITS else 0
        time.sleep(0.02)


def stop_held(process):
    """What it says until its end, which comes in time."""
    await_held(process)
    process.send_signal(signal.SIGTERM)
    return process.communicate(timeout=STOPPED_S)[0]
