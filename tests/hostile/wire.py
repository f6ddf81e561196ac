"""wire: the frames between head and agent, written by hand. The version is read from the header that defines it."""
import json
import pathlib
import re
import struct

HELLO, PROGRAM, DATA, RUN, STOP, KILL, PING, BYE = range(1, 9)
WELCOME, STORED, REFUSED, ENDED, PONG = range(16, 21)
HEADER = pathlib.Path(__file__).resolve().parents[2] / "orchestrator" / "wire" / "protocol.h"
PROTOCOL = int(re.search(r"kProtocol = (\d+);", HEADER.read_text())[1])


def frame(kind, payload):
    """Bytes of one frame; a payload that is not bytes is sent as JSON."""
    payload = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return struct.pack(">IB", len(payload) + 1, kind) + payload
