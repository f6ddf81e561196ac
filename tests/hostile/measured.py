"""measured: runs a command and says how much memory it, or a child of its, took at most."""
import contextlib
import os
import subprocess
import tempfile
import threading
import time

MOST_KIB = 1 << 20  # 1 GiB: what a reader of hostile input may take on the head


class Done:
    def __init__(self, code, out, err, kib, seconds):
        self.code, self.out, self.err, self.kib, self.seconds = code, out, err, kib, seconds

    def __repr__(self):
        return f"exit {self.code}, {self.kib >> 10} MiB, {self.seconds:.1f} s\n{self.out[-2000:]}\n{self.err[-2000:]}"


def run(command, environment=None, deadline_s=300, feed=None, meanwhile=None, **more):
    """Ends the command after the deadline; wait4 counts the largest of it and the children that it has waited for. `feed(pipe)` writes
    the command's stdin in a thread and may leave it open; `meanwhile(process)` is called while it runs."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.monotonic()
        more = {"stdout": out, **more}
        process = subprocess.Popen(
            [str(word) for word in command],
            env=environment,
            stderr=err,
            stdin=subprocess.PIPE if feed else subprocess.DEVNULL,
            **more,
        )
        if feed:

            def write():
                with contextlib.suppress(OSError, ValueError):  # the command has ended
                    feed(process.stdin)

            threading.Thread(target=write, daemon=True).start()
        if meanwhile:
            meanwhile(process)
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() - begin > deadline_s:
                process.kill()
            time.sleep(0.02)
        process.returncode = os.waitstatus_to_exitcode(status)
        if feed:
            with contextlib.suppress(OSError):
                process.stdin.close()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="surrogateescape"))
        return Done(process.returncode, *texts, usage.ru_maxrss, time.monotonic() - begin)
