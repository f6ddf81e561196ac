#!/usr/bin/env python3
"""hostile_agent: a node under an enemy's control. It takes ssh's place and speaks the agent's protocol by hand.

usage: hostile_agent.py VERSION ssh-arguments...; the last argument is the command for the node. HOSTILE names the lie; a node whose
address is not `evil` gets the honest agent, started by that command.
"""
import datetime
import hashlib
import json
import os
import random
import re
import struct
import sys
import time

from wire import BYE, DATA, ENDED, HELLO, PING, PONG, PROGRAM, PROTOCOL, RUN, STORED, WELCOME, frame

CHUNK = 60_000
NOW = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def exactly(count):
    bytes_ = b""
    while len(bytes_) < count:
        piece = os.read(0, count - len(bytes_))
        if not piece:
            sys.exit(0)
        bytes_ += piece
    return bytes_


def receive():
    """Type and payload of the next frame."""
    (length,) = struct.unpack(">I", exactly(4))
    body = exactly(length)
    return body[0], body[1:]


def put(bytes_):
    while bytes_:
        bytes_ = bytes_[os.write(1, bytes_) :]


def send(kind, payload):
    put(frame(kind, payload))


def output(run, text):
    text = text if isinstance(text, bytes) else text.encode()
    name = run.encode()
    for at in range(0, len(text), CHUNK):
        send(DATA, bytes([1, len(name)]) + name + text[at : at + CHUNK])


def scalar(text):
    """A parameter as a record has it: a count, a time or a text."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            pass
    return text


def without_end(descriptor, byte):
    """Fills a stream until this process is ended."""
    while True:
        os.write(descriptor, byte * CHUNK)


ESCAPES = "\x1b]0;PWN\x07\x1b[2J\u009b31m\u202e<script>alert(1)</script>"


def before_the_greeting(mode):
    """Lies that need no word of the head's."""
    if mode == "preamble":
        without_end(1, b"A")
    elif mode == "silent":
        time.sleep(3600)
    elif mode == "errors":
        without_end(2, b"E")
    while os.read(0, 1) not in (b"\n", b""):  # the head's first line
        pass
    put(f"assay-bootstrap/1 have {os.uname().machine}\n".encode())
    if mode == "oversize":
        put(b"\xff\xff\xff\xff\x10")
    elif mode == "garbage":
        put(random.Random(2).randbytes(4 << 20))
    elif mode == "drip":
        for byte in struct.pack(">IB", 1 << 20, WELCOME) + b"{" * (1 << 20):
            put(bytes([byte]))
            time.sleep(1)
    elif mode == "pongs":
        while True:
            send(PONG, {})


class Record:
    """A record of fake_probe, line by line."""

    def __init__(self, arguments):
        self.lines = []
        values = dict(word[2:].split("=", 1) for word in arguments if "=" in word)
        values |= {
            word[2:]: "" for word, after in zip(arguments, arguments[1:]) if word.startswith("--") and after == ""
        }
        self.value = int(values.get("value", 100))
        parameters = {name.replace("-", "_"): scalar(text) for name, text in values.items()}
        self.add(
            "start",
            {
                "probe": "fake_probe",
                "revision": 1,
                "parameters": parameters,
                "rank": 0,
                "world": 1,
                "host": {"name": "evil"},
            },
        )

    def add(self, kind, body):
        line = {"sequence": len(self.lines), "time": NOW, kind: body}
        if not self.lines:
            line["schema"] = "assay.record/1"
        self.lines.append(line)

    def measure(self, subject, value, samples=10):
        self.add(
            "measurement",
            {"metric": "number", "unit": "1", "subject": subject, "samples": [value] * samples, "stopped": "fixed"},
        )

    def text(self):
        return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in self.lines)


def lie(mode, record):
    """The record that the mode tells."""
    name, _, detail = mode.partition(":")
    if name == "reason":
        text = "\x1b[2J\x1b[Hverified: accepted\r\n 2 of 2 required cells pass.\u009b31m\u202e"
        record.add("end", {"status": "error", "reason": text})
        return record.text()
    if (
        name == "polite_reason"
    ):  # within the grammar of a record: no control, but lines of its own and a mark for direction
        record.add("end", {"status": "error", "reason": "broken\n\nACCEPTED: 2 of 2 required cells pass.\u202e"})
        return record.text()
    if name == "big_reason":
        record.add("end", {"status": "error", "reason": "x" * (8 << 20)})
        return record.text()
    if name == "nodes":
        for i in range(int(detail)):
            record.measure({"node": f"made-up-{i}"}, 1000.0)
    elif name == "drives":
        count, value = detail.split(",")
        for i in range(int(count)):
            record.measure({"drive": f"made-up-{i}"}, float(value))
    elif name == "samples":
        for i in range(8):
            record.measure({"drive": f"d{i}"}, 1, 1_900_000)
    elif name == "values":
        record.measure({"node": "evil"}, 0)
        record.lines[-1]["measurement"]["samples"] = [float(value) for value in detail.split(",")] * 5
    elif name == "conditions":
        for i in range(int(detail)):
            record.add("condition", {"name": "behaved", "subject": {"drive": f"d{i}"}, "value": True})
        record.measure({"node": "evil"}, record.value)
    elif name == "median":  # made-up nodes beside its own
        count, value = detail.split(",")
        for i in range(int(count)):
            record.measure({"node": f"made-up-{i}"}, float(value))
        record.measure({"node": "evil"}, record.value)
    elif name == "subject":
        record.measure({"node": ESCAPES}, record.value)
    elif name == "long_subjects":
        for i in range(int(detail)):
            record.measure({"node": f"{i:0500}"}, 1000.0, 1)
            record.add("condition", {"name": "behaved", "subject": {"node": f"{i:0500}"}, "value": True})
    else:
        record.measure({"node": "evil"}, record.value)
        record.add(
            "condition",
            {"name": "behaved", "subject": {"node": "evil"}, "value": ESCAPES if name == "condition" else True},
        )
    record.add("end", {"status": "complete"})
    return record.text()


def run_it(mode, said):
    """Answers one run as the mode says."""
    if mode == "output_flood":
        while True:
            output(said["id"], b"x" * CHUNK)
    if mode == "error_flood":
        name = said["id"].encode()
        while True:
            send(DATA, bytes([2, len(name)]) + name + b"x" * CHUNK)
    text = lie(mode, Record(said["arguments"]))
    output("no-such-run" if mode == "other_run" else said["id"], text)
    code = 0 if '"status":"complete"' in text[-200:] else 1
    send(
        ENDED,
        {
            "id": said["id"],
            "outcome": "exited",
            "exit_code": code,
            "elapsed_s": -1 if mode == "elapsed" else 0.1,
            "left_behind": 2**31 - 1 if mode == "left_behind" else 0,
        },
    )


def main():
    version, command = sys.argv[1], sys.argv[-1]
    if "evil" not in sys.argv[2:-1]:
        os.execv("/bin/sh", ["sh", "-c", command])
    mode = os.environ.get("HOSTILE", "honest")
    digest = re.search(r" s=([0-9a-f]{64});", command)[1]
    facts = json.loads(mode[6:]) if mode.startswith("facts:") else {"name": "evil", "memory": 1 << 34, "cpus": 4}
    if mode == "many_facts":
        facts |= {f"fact{i}": "x" * 100 for i in range(8000)}
    before_the_greeting(mode)
    while True:
        kind, payload = receive()
        if kind == HELLO:
            send(WELCOME, {"protocol": PROTOCOL, "assay_version": version, "agent_sha256": digest, "facts": facts})
        elif kind == PROGRAM:
            said = json.loads(payload)
            left, hash_ = said["size"], hashlib.sha256()
            while left > 0:
                _, data = receive()
                data = data[2 + data[1] :]
                hash_.update(data)
                left -= len(data)
            send(STORED, {"sha256": hash_.hexdigest()})
        elif kind == RUN:
            run_it(mode, json.loads(payload))
        elif kind == PING:
            send(PONG, {})
        elif kind == BYE:
            return


main()
