"""floods: callers of a port who are no part of assay, as many as wanted, in threads of the test."""
import os
import resource
import selectors
import socket
import threading


def descriptors(count):
    """Lets this process have so many open files; False where it may not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        return False
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))
    return True


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Silent(threading.Thread):
    """Keeps `callers` silent connections to `port` open until it is told to end; calls again when one is let go."""

    def __init__(self, port, callers):
        super().__init__(daemon=True)
        self.address, self.callers, self.over, self.full = (
            ("127.0.0.1", port),
            callers,
            threading.Event(),
            threading.Event(),
        )
        self.calls = 0

    def run(self):
        watched = selectors.DefaultSelector()
        while not self.over.is_set():
            while len(watched.get_map()) < self.callers and not self.over.is_set():
                caller = socket.socket()
                caller.setblocking(False)
                if caller.connect_ex(self.address) not in (0, 115):  # EINPROGRESS
                    caller.close()
                    break
                watched.register(caller, selectors.EVENT_READ)
                self.calls += 1
            if self.calls >= self.callers:
                self.full.set()
            for key, _ in watched.select(0.05):
                watched.unregister(key.fileobj)
                key.fileobj.close()
        for key in list(watched.get_map().values()):
            key.fileobj.close()


class Talking(threading.Thread):
    """Calls `port` again and again and lets `speak(socket)` say something, until it is told to end."""

    def __init__(self, port, speak):
        super().__init__(daemon=True)
        self.address, self.speak, self.over, self.calls, self.answers = (
            ("127.0.0.1", port),
            speak,
            threading.Event(),
            0,
            set(),
        )

    def run(self):
        while not self.over.is_set():
            try:
                with socket.create_connection(self.address, timeout=2) as caller:
                    caller.settimeout(2)
                    self.calls += 1
                    answer = self.speak(caller)
                    if answer is not None and len(self.answers) < 100:
                        self.answers.add(answer)
            except OSError:  # no listener yet, or the caller was let go
                self.over.wait(0.005)


def random_bytes(caller):
    caller.sendall(os.urandom(4096))
