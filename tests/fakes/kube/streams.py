"""Remote commands of the Kubernetes API: stdin, stdout, stderr and the end of a process over one upgraded connection.

Two carriers, chosen by the client: WebSocket with `v5.channel.k8s.io` (kubectl 1.31 and later, 1.30 and 1.29 if asked), and
SPDY/3.1 with `v4.channel.k8s.io` (every kubectl). Source: KEP-4006 and the SPDY draft 3.1; read 2026-11-28.
"""
import base64
import hashlib
import json
import pathlib
import struct
import subprocess
import threading
import time
import zlib

START_S = 0.2  # from the request for a command without stdin to its start
STDIN, STDOUT, STDERR, ERROR = 0, 1, 2, 3
CLOSE = 255  # WebSocket: the next byte names the channel that the client has closed
WEBSOCKET_PROTOCOL, SPDY_PROTOCOL = "v5.channel.k8s.io", "v4.channel.k8s.io"
WEBSOCKET_KEY = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3
DICTIONARY_START, DICTIONARY_BYTES, DICTIONARY_ADLER = b"\0\0\0\x07options\0\0\0\x04head", 1423, 0xE3C6A7C2
PIECE = 32768


def spdy_dictionary(kubectl):
    """The table with which SPDY packs headers. It is a constant of the protocol, and part of every client: read from there."""
    program = pathlib.Path(kubectl).read_bytes()
    start = program.find(DICTIONARY_START)
    table = program[start : start + DICTIONARY_BYTES]
    if start < 0 or zlib.adler32(table) != DICTIONARY_ADLER:
        raise ValueError(f"{kubectl}: contains no dictionary of SPDY/3")
    return table


def exactly(stream, size):
    data = stream.read(size)
    if len(data) != size:
        raise EOFError
    return data


class WebSocket:
    """Frames of RFC 6455, the first byte of each message being the channel."""

    def __init__(self, handler):
        key = handler.headers["Sec-WebSocket-Key"] + WEBSOCKET_KEY
        handler.send_response(101)
        handler.send_header("Upgrade", "websocket")
        handler.send_header("Connection", "Upgrade")
        handler.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        handler.send_header("Sec-WebSocket-Protocol", WEBSOCKET_PROTOCOL)
        handler.end_headers()
        self.input, self.output, self.lock = handler.rfile, handler.wfile, threading.Lock()

    def frame(self, opcode, payload):
        size = len(payload)
        head = bytes([0x80 | opcode]) + (
            bytes([size])
            if size < 126
            else b"\x7e" + struct.pack(">H", size)
            if size < 65536
            else b"\x7f" + struct.pack(">Q", size)
        )
        with self.lock:
            self.output.write(head + payload)
            self.output.flush()

    def send(self, channel, data):
        self.frame(2, bytes([channel]) + data)

    def end(self):
        self.frame(8, struct.pack(">H", 1000))

    def received(self):
        """(channel, data) for each message, data None where the client closed the channel; ends with the connection."""
        message = b""
        while True:
            first, second = exactly(self.input, 2)
            size = second & 0x7F
            if size > 125:
                size = struct.unpack(">H" if size == 126 else ">Q", exactly(self.input, 2 if size == 126 else 8))[0]
            mask = exactly(self.input, 4) if second & 0x80 else bytes(4)
            data = exactly(self.input, size)
            data = bytes(a ^ b for a, b in zip(data, mask * (size // 4 + 1))) if size < 64 else unmasked(data, mask)
            opcode = first & 0x0F
            if opcode == 8:
                return
            if opcode == 9:
                self.frame(10, data)
            if opcode in (0, 1, 2):
                message += data
                if first & 0x80:
                    channel, rest, message = message[0], message[1:], b""
                    yield (rest[0], None) if channel == CLOSE else (channel, rest)


def unmasked(data, mask):
    size = len(data)
    whole = int.from_bytes(mask * (size // 4 + 1), "big") >> (8 * (4 - size % 4))
    return (int.from_bytes(data, "big") ^ whole).to_bytes(size, "big")


class Spdy:
    """Streams of SPDY/3.1, each named in its header `streamtype`."""

    CHANNELS = {"stdin": STDIN, "stdout": STDOUT, "stderr": STDERR, "error": ERROR}

    def __init__(self, handler, dictionary, wanted):
        handler.send_response(101)
        handler.send_header("Upgrade", "SPDY/3.1")
        handler.send_header("Connection", "Upgrade")
        handler.send_header("X-Stream-Protocol-Version", SPDY_PROTOCOL)
        handler.end_headers()
        self.input, self.output, self.lock = handler.rfile, handler.wfile, threading.Lock()
        self.unpack, self.pack = zlib.decompressobj(zdict=dictionary), zlib.compressobj(zdict=dictionary)
        self.streams, self.numbers, self.complete = {}, {}, threading.Event()
        self.wanted = {self.CHANNELS[name] for name in wanted}

    def control(self, kind, flags, payload):
        with self.lock:
            self.output.write(struct.pack(">HHI", 0x8003, kind, flags << 24 | len(payload)) + payload)
            self.output.flush()

    def data(self, channel, flags, payload):
        with self.lock:
            self.output.write(struct.pack(">II", self.numbers[channel], flags << 24 | len(payload)) + payload)
            self.output.flush()

    def send(self, channel, data):
        self.complete.wait(30)
        self.data(channel, 0, data)

    def end(self):
        for channel in (STDOUT, STDERR, ERROR):
            if channel in self.numbers:
                self.data(channel, 1, b"")

    def headers(self, block):
        plain, place = self.unpack.decompress(block), 4
        words = []
        for _ in range(2 * struct.unpack(">I", plain[:4])[0]):
            size = struct.unpack(">I", plain[place : place + 4])[0]
            words.append(plain[place + 4 : place + 4 + size].decode())
            place += 4 + size
        return dict(zip(words[::2], words[1::2]))

    def opened(self, payload):
        number = struct.unpack(">I", payload[:4])[0]
        channel = self.CHANNELS[self.headers(payload[10:])["streamtype"]]
        self.streams[number], self.numbers[channel] = channel, number
        empty = self.pack.compress(struct.pack(">I", 0)) + self.pack.flush(zlib.Z_SYNC_FLUSH)
        self.control(2, 0, struct.pack(">I", number) + empty)
        if self.wanted <= set(self.numbers):
            self.complete.set()

    def received(self):
        while True:
            first, second = struct.unpack(">II", exactly(self.input, 8))
            flags, payload = second >> 24, exactly(self.input, second & 0xFFFFFF)
            if not first & 0x80000000:
                channel = self.streams[first]
                if payload:
                    yield channel, payload
                if flags & 1:
                    yield channel, None
            elif (kind := first & 0xFFFF) == 1:
                self.opened(payload)
            elif kind == 6:
                self.control(6, 0, payload)
            elif kind == 7:
                return


def copied(source, carrier, channel, heard):
    while data := source.read1(PIECE):
        try:
            if heard.is_set():
                carrier.send(channel, data)
        except OSError:  # the client is gone; the process is not told, as in a cluster
            return


def status_of(code):
    if code == 0:
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def serve(carrier, command, with_stdin):
    """Runs `command` with its streams on the carrier, and tells its end. A client that goes closes its stdin, no more.

    kubectl from 1.31 on may discard output that comes before it has registered its streams, and passes stdin on after that. Here
    nothing that a command prints before it has its first input arrives; one without stdin starts after a while.
    """
    heard = threading.Event()
    if not with_stdin:
        time.sleep(START_S)
        heard.set()
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE if with_stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )

    def fed():
        try:
            for channel, data in carrier.received():
                if channel == STDIN and data is not None and with_stdin:
                    heard.set()
                    process.stdin.write(data)
                    process.stdin.flush()
                elif channel == STDIN and with_stdin:
                    process.stdin.close()
        except (EOFError, OSError, ValueError):
            pass
        if with_stdin:
            try:
                process.stdin.close()
            except OSError:
                pass

    feeding = threading.Thread(target=fed, daemon=True)
    feeding.start()
    copies = [
        threading.Thread(target=copied, args=(source, carrier, channel, heard), daemon=True)
        for source, channel in ((process.stdout, STDOUT), (process.stderr, STDERR))
    ]
    for copy in copies:
        copy.start()
    code = process.wait()
    for copy in copies:
        copy.join()
    try:
        carrier.send(ERROR, json.dumps(status_of(code if code >= 0 else 128 - code)).encode())
        carrier.end()
    except (OSError, KeyError):
        pass
    feeding.join(5)
