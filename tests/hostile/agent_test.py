#!/usr/bin/env python3
"""The agent, fed by something that is no orchestrator: it ends with a reason, soon, and in little memory."""
import hashlib
import os
import random
import time

import measured
from rows import Document, harness, row  # noqa: F401: Document is a test
from wire import BYE, DATA, HELLO, PING, PROGRAM, PROTOCOL, RUN, STOP, frame

MOST_KIB = 64 << 10  # of an agent that runs nothing; its file is mapped
GREETING = frame(HELLO, {"protocol": PROTOCOL})
RUNNING = {
    "id": "a1",
    "sha256": "0" * 64,
    "arguments": [],
    "token": "",
    "deadline_s": 5,
    "limits": {"memory_bytes": 1 << 30, "output_bytes": 1 << 20, "cpu_s": 5},
}


class Agent(harness.Bench):
    def fed(self, feed, silence_s=30, **more):
        """An agent that hears the bytes, or what `feed` writes."""

        def write(pipe):
            pipe.write(feed)
            pipe.close()

        done = measured.run(
            [harness.BIN / "assay-node", "--directory", self.work, "--silence", str(silence_s)],
            self.environment,
            deadline_s=60,
            feed=feed if callable(feed) else write,
            **more,
        )
        self.assertLess(done.kib, MOST_KIB, done)
        self.assertFalse(list((self.work / "scratch").glob("*")) if (self.work / "scratch").exists() else [])
        done.out = ""  # frames, whose text is JSON; what a person reads is on stderr
        return done

    @row("N", "N1", "random bytes", 1, "bytes; 1 to 1048577 are allowed")
    def test_n1(self):
        return self.fed(random.Random(1).randbytes(1 << 20))

    @row("N", "N2", "a frame of 4 GiB announced", 1, "a frame of 4294967295 bytes; 1 to 1048577 are allowed")
    def test_n2(self):
        return self.fed(b"\xff\xff\xff\xff\x01")

    @row("N", "N3", "a frame of no length", 1, "a frame of 0 bytes")
    def test_n3(self):
        return self.fed(GREETING + b"\0\0\0\0\1")

    @row("N", "N4", "a run before the greeting", 1, "does not begin with hello")
    def test_n4(self):
        return self.fed(frame(STOP, {"id": "a1"}) + GREETING)

    @row("N", "N5", "two greetings", 1, "a second hello")
    def test_n5(self):
        return self.fed(GREETING * 2)

    @row(
        "N",
        "N6",
        "a byte of a frame in a row of pauses, then nothing: each byte is a word of the head's",
        1,
        "no message from the orchestrator for 1 s",
    )
    def test_n6(self):
        def drip(pipe):
            for byte in GREETING:
                pipe.write(bytes([byte]))
                pipe.flush()
                time.sleep(0.1)
            time.sleep(30)

        return self.fed(drip, silence_s=1)

    @row("N", "N7", "half a frame, then nothing", 1, "no message from the orchestrator for 1 s")
    def test_n7(self):
        def half(pipe):
            pipe.write(GREETING[:10])
            pipe.flush()
            time.sleep(30)

        return self.fed(half, silence_s=1)

    @row("N", "N8", "300 programs of 1 GiB announced and not sent", 0, "ends: bye")
    def test_n8(self):
        digests = [hashlib.sha256(str(i).encode()).hexdigest() for i in range(300)]
        return self.fed(
            GREETING + b"".join(frame(PROGRAM, {"sha256": one, "size": 1 << 30}) for one in digests) + frame(BYE, {})
        )

    @row("N", "N9", "a program whose bytes are others than announced, and then run", 0, "ends: bye")
    def test_n9(self):
        digest = b"\3" + bytes([64]) + b"0" * 64
        out = self.scratch / "answers"
        with open(out, "wb") as file:
            done = self.fed(
                GREETING
                + frame(PROGRAM, {"sha256": "0" * 64, "size": 4})
                + frame(DATA, digest + b"evil")
                + frame(RUN, RUNNING)
                + frame(BYE, {}),
                stdout=file,
            )
        self.assertIn(b"the bytes do not have the announced SHA-256", out.read_bytes())
        self.assertIn(b"the program was not delivered", out.read_bytes())
        return done

    @row("N", "N10", "a run whose id is a path", 1, "run.id: is not text of the allowed form")
    def test_n10(self):
        return self.fed(GREETING + frame(RUN, dict(RUNNING, id="../../etc")))

    @row("N", "N11", "JSON of 100,000 levels in a frame", 1, "run: deeper than 4 levels")
    def test_n11(self):
        return self.fed(GREETING + frame(RUN, b"[" * 100_000))

    @row("N", "N12", "a key twice in a frame", 1, "the key 'id' is in one object twice")
    def test_n12(self):
        return self.fed(GREETING + frame(STOP, b'{"id":"a1","id":"a2"}'))

    @row("N", "N13", "a data frame with an id of 255 and no bytes", 1, "data: has no bytes after its id")
    def test_n13(self):
        return self.fed(GREETING + frame(DATA, b"\3\xff" + b"a" * 255))

    @row("N", "N14", "200,000 pings", 0, "ends: the stream is closed")
    def test_n14(self):
        return self.fed(GREETING + frame(PING, {}) * 200_000)

    @row("N", "N15", "3,000,000 pings whose answers are not read", 0, "ends: the stream is closed")
    def test_n15(self):
        read, write = os.pipe()
        try:
            return self.fed(GREETING + frame(PING, {}) * 3_000_000, stdout=write)
        finally:
            os.close(read)
            os.close(write)


if __name__ == "__main__":
    harness.main()
