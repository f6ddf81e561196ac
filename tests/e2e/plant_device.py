"""plant_device: a meter of a simulated plant behind real Modbus TCP; `plant_device.py FILE NUMBER…` serves these numbers and writes its port
to FILE. Every number is made up."""
import os
import pathlib
import socket
import struct
import sys
import threading
import time


class Device:
    """A Modbus TCP device: `registers()` gives the numbers, each a float32 in two registers. Ways: honest, silent, flood, or what gives one of them."""

    def __init__(self, registers, way="honest"):
        self.registers, self.way, self.over = registers, way, False
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(8)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def close(self):
        self.over = True
        self.listener.close()

    def serve(self):
        while not self.over:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(client,), daemon=True).start()

    def answer(self, client):
        with client:
            try:
                while not self.over and (head := client.recv(12)):
                    way = self.way() if callable(self.way) else self.way
                    if way == "silent":
                        time.sleep(0.2)
                    elif way == "flood":
                        client.sendall(os.urandom(65536))
                    else:
                        self.reply(client, head)
            except OSError:
                return

    def reply(self, client, head):
        transaction, _, _, unit, function, address, count = struct.unpack(">HHHBBHH", head)
        words = b"".join(struct.pack(">f", number) for number in self.registers())
        part = words[2 * address : 2 * (address + count)]
        client.sendall(struct.pack(">HHHBBB", transaction, 0, 3 + len(part), unit, function, len(part)) + part)


if __name__ == "__main__":
    served = Device(lambda: [float(number) for number in sys.argv[2:]])
    pathlib.Path(sys.argv[1]).write_text(str(served.port))
    threading.Event().wait()
