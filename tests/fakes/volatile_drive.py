#!/usr/bin/env python3
"""A drive with a volatile write cache, for a virtual machine: SOCKET IMAGE COUNTS KIND SECONDS serves the image by NBD. A write is in the cache until a flush, or
until it is SECONDS old; then it is in the image. KIND is `honest`, or `deaf`: it answers a flush and does nothing. SIGTERM is the power cut: what is in the cache is
gone, and COUNTS tells what that was (JSON). Protocol: the NBD project, doc/proto.md, fixed newstyle and simple replies."""
import collections
import json
import mmap
import os
import pathlib
import select
import signal
import socket
import struct
import sys
import time

KINDS = ("honest", "deaf")
READ, WRITE, DISCONNECT, FLUSH = range(4)
OPTION_ABORT, OPTION_GO = 2, 7
REPLY_ACK, REPLY_INFO, REPLY_UNSUPPORTED = 1, 3, 0x80000001
HAS_FLAGS, SENDS_FLUSH = 1, 4
INVALID = 22  # EINVAL
TICK_S = 0.1


class Drive:
    """Write after write, in order; the older ones are in the image, the newer ones in memory."""

    def __init__(self, image, kind, oldest_s):
        self.file = os.open(image, os.O_RDWR)
        self.size = os.fstat(self.file).st_size
        self.seen = mmap.mmap(
            self.file, self.size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE
        )  # as the machine sees it
        self.kind, self.oldest_s = kind, oldest_s
        self.cache = collections.deque()  # (when, offset, bytes)
        self.flushes = 0

    def write(self, offset, data):
        self.seen[offset : offset + len(data)] = data
        self.cache.append((time.monotonic(), offset, data))

    def flush(self):
        self.flushes += 1
        if self.kind == "honest":
            self.destage(float("inf"))

    def destage(self, until):
        while self.cache and self.cache[0][0] <= until:
            _, offset, data = self.cache.popleft()
            os.pwrite(self.file, data, offset)

    def tick(self):
        self.destage(time.monotonic() - self.oldest_s)


class Connection:
    """One machine's."""

    def __init__(self, client, drive):
        self.client, self.drive = client, drive

    def take(self, size):
        data = bytearray()
        while len(data) < size:
            while not select.select([self.client], [], [], TICK_S)[0]:
                self.drive.tick()
            part = self.client.recv(size - len(data))
            if not part:
                raise EOFError
            data += part
        self.drive.tick()
        return bytes(data)

    def agree(self):
        """The handshake."""
        self.client.sendall(b"NBDMAGIC" + b"IHAVEOPT" + struct.pack(">H", 3))  # fixed newstyle, no zeroes
        self.take(4)
        while True:
            magic, option, size = struct.unpack(">8sII", self.take(16))
            if magic != b"IHAVEOPT":
                raise EOFError
            self.take(size)

            def reply(kind, data=b"", option=option):
                self.client.sendall(struct.pack(">QIII", 0x3E889045565A9, option, kind, len(data)) + data)

            if option == OPTION_GO:
                reply(REPLY_INFO, struct.pack(">HQH", 0, self.drive.size, HAS_FLAGS | SENDS_FLUSH))
                reply(REPLY_ACK)
                return
            if option == OPTION_ABORT:
                reply(REPLY_ACK)
                raise EOFError
            reply(REPLY_UNSUPPORTED)

    def serve(self):
        self.agree()
        while True:
            magic, _, verb, handle, offset, size = struct.unpack(">IHH8sQI", self.take(28))
            data = self.take(size) if verb == WRITE else b""
            if magic != 0x25609513 or verb == DISCONNECT:
                return
            wrong = verb not in (READ, WRITE, FLUSH) or offset + size > self.drive.size
            if not wrong and verb == WRITE:
                self.drive.write(offset, data)
            if not wrong and verb == FLUSH:
                self.drive.flush()
            answer = struct.pack(">II8s", 0x67446698, INVALID if wrong else 0, handle)
            self.client.sendall(
                answer + (self.drive.seen[offset : offset + size] if verb == READ and not wrong else b"")
            )


def main():
    where, image, counts, kind, seconds = sys.argv[1:]
    assert kind in KINDS
    drive = Drive(image, kind, float(seconds))

    def cut(*_):
        gone = {
            "flushes": drive.flushes,
            "dropped_writes": len(drive.cache),
            "dropped_bytes": sum(len(data) for _, _, data in drive.cache),
        }
        pathlib.Path(counts).write_text(json.dumps(gone))
        os._exit(0)

    signal.signal(signal.SIGTERM, cut)
    pathlib.Path(where).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(where)
    listener.listen(1)
    while True:
        client, _ = listener.accept()
        try:
            Connection(client, drive).serve()
        except (EOFError, ConnectionError):
            pass  # the machine has gone; the drive still has power
        client.close()


if __name__ == "__main__":
    main()
