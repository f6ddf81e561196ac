#!/usr/bin/env python3
"""Strangers and a hostile rank at the meeting of the ranks of a step: rank 1 gets in, and the others end with a reason, soon. Floods of
thousands are in flood_test.py."""
import hashlib
import hmac
import json
import os
import socket
import struct
import subprocess
import threading
import time

import floods
import measured
from rows import Document, harness, row  # noqa: F401: Document is a test

PROBE = harness.BIN.parent / "libexec/assay/probes/fake_fabric"
TOKEN = "0123456789abcdef" * 2
HELLO, CHALLENGE, PROOF, WELCOME, REFUSED, GATHER, SPREAD, FAILED = range(1, 9)
MAGIC = b"ARV2"
COMPLETE = '"end":{"status":"complete"}'


class Hand:
    """A caller that speaks the ranks' protocol by hand."""

    def __init__(self, port):
        end = time.monotonic() + 20
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
                return
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)

    def put(self, kind, sequence, payload, length=None):
        self.socket.sendall(
            MAGIC + struct.pack("<III", kind, sequence, len(payload) if length is None else length) + payload
        )

    def take(self):
        data = b""
        while len(data) < 16 or len(data) < 16 + struct.unpack("<I", data[12:16])[0]:
            piece = self.socket.recv(65536)
            if not piece:
                raise OSError("hung up")
            data += piece
        return struct.unpack("<I", data[4:8])[0], data[16:]

    def join(self, rank, world, token=TOKEN):
        """The last answer of rank 0."""
        mine = os.urandom(32)
        self.put(HELLO, 0, struct.pack("<II", rank, world) + mine)
        kind, theirs = self.take()
        if kind != CHALLENGE:
            return kind, theirs
        message = b"assay rendezvous 2 C" + struct.pack("<II", rank, world) + mine + theirs
        self.put(PROOF, 0, hmac.new(token.encode(), message, hashlib.sha256).digest())
        return self.take()


class Ranks(harness.Bench):
    def setUp(self):
        super().setUp()
        self.port = floods.free_port()
        self.environment["ASSAY_TOKEN"] = TOKEN

    def words(self, rank, world=2, join="15s", port=None):
        return [
            PROBE,
            f"--rank={rank}",
            f"--world={world}",
            f"--rendezvous=127.0.0.1:{port or self.port}",
            f"--join={join}",
        ]

    def start(self, rank, **more):
        process = subprocess.Popen(
            [str(word) for word in self.words(rank, **more)], env=self.environment, stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, 60)
        self.addCleanup(process.kill)
        return process

    def met_under(self, *threads, join="90s"):
        """Rank 0, while these threads call it and rank 1 comes a second later."""

        def later(process):
            for thread in threads:
                thread.start()
            time.sleep(1)
            second = self.start(1, join=join)
            threading.Thread(target=second.communicate, daemon=True).start()

        try:
            return measured.run(self.words(0, join=join), self.environment, meanwhile=later)
        finally:
            for thread in threads:
                thread.over.set()

    def against(self, behave, world=2):
        """Rank 0, while `behave(hand)` has joined as rank 1 with the token."""

        def enemy(process):
            def act():
                hand = Hand(self.port)
                self.assertEqual(hand.join(1, world)[0], WELCOME)
                behave(hand)

            thread = threading.Thread(target=act, daemon=True)
            thread.start()

        return measured.run(self.words(0, world=world), self.environment, meanwhile=enemy)


class Strangers(Ranks):
    @row("R", "R0", "no stranger calls", 0, COMPLETE)
    def test_r0(self):
        return self.met_under()

    @row("R", "R1", "random bytes, without a pause", 0, COMPLETE)
    def test_r1(self):
        return self.met_under(floods.Talking(self.port, floods.random_bytes))

    @row("R", "R2", "wrong tokens, without a pause", 0, COMPLETE)
    def test_r2(self):
        thread = floods.Talking(self.port, lambda caller: None)
        answers = set()

        def speak(caller):
            hand = Hand.__new__(Hand)
            hand.socket = caller
            answers.add(hand.join(1, 2, "f" * 32)[0])

        thread.speak = speak
        done = self.met_under(thread)
        self.assertEqual(answers - {REFUSED}, set())
        return done

    @row("R", "R3", "300 silent callers, renewed", 0, COMPLETE)
    def test_r3(self):
        return self.met_under(floods.Silent(self.port, 300))

    @row("R", "R6", "a listener on the path between the ranks: no token to hear", 0, COMPLETE)
    def test_r6(self):
        heard = []
        relay = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(relay.close)

        def copy(one, other):
            try:
                while piece := one.recv(65536):
                    heard.append(piece)
                    other.sendall(piece)
            except OSError:
                pass
            other.close()

        def pass_on():
            caller, _ = relay.accept()
            hand = Hand(self.port)
            threading.Thread(target=copy, args=(hand.socket, caller), daemon=True).start()
            copy(caller, hand.socket)

        threading.Thread(target=pass_on, daemon=True).start()
        done = measured.run(
            self.words(0), self.environment, meanwhile=lambda _: self.start(1, port=relay.getsockname()[1])
        )
        self.assertGreater(len(b"".join(heard)), 100)
        self.assertNotIn(TOKEN.encode(), b"".join(heard))
        return done


class Hostile(Ranks):
    """Rank 1 has the token, and is an enemy."""

    @row("R", "R7", "a last word of 1 MiB with escapes", 1, "rank 1: ")
    def test_r7(self):
        done = self.against(
            lambda hand: hand.put(FAILED, 0, (b"\x1b[2J\x1b[Hverified: accepted\xff\xc2\x9b" * 50_000)[: 1 << 20])
        )
        end = json.loads(done.out.splitlines()[-1])["end"]
        self.assertLess(len(done.out), 64 << 10)
        self.assertNotIn("\x1b", end["reason"])
        return done

    @row("R", "R9", "frames out of step", 1, "rank 1 is out of step with rank 0")
    def test_r9(self):
        return self.against(lambda hand: hand.put(GATHER, 7, b"x"))

    @row("R", "R10", "a frame of 4 GiB announced", 1, "over the limit")
    def test_r10(self):
        return self.against(lambda hand: hand.put(GATHER, 0, b"", 0xFFFFFFFF))

    @row("R", "R8", "silence after joining", 1, "rank 1 sent nothing for ")
    def test_r8(self):
        return self.against(lambda hand: time.sleep(60))

    @row(
        "R",
        "R-place",
        "a rank takes another's place as well: that one is refused, and its record is an error",
        1,
        "refuses rank 2",
    )
    def test_place(self):
        def enemy(process):
            hands = []

            def act():
                for rank in (1, 2):
                    hands.append(Hand(self.port))
                    self.assertEqual(hands[-1].join(rank, 4)[0], WELCOME)
                taken.set()
                time.sleep(60)

            threading.Thread(target=act, daemon=True).start()

        taken = threading.Event()
        first = self.start(0, world=4)
        enemy(first)
        self.assertTrue(taken.wait(30))
        return measured.run(self.words(2, world=4), self.environment)


if __name__ == "__main__":
    harness.main()
