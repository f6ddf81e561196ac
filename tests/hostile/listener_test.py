#!/usr/bin/env python3
"""Strangers who call the head's listener while the agents of a job connect back: the agents get in, and no stranger. Floods of
thousands are in flood_test.py."""
import hashlib
import pathlib
import socket
import ssl
import subprocess
import threading
import time

import floods
import measured
from rows import Document, harness, row  # noqa: F401: Document is a test

FAKES = pathlib.Path(__file__).resolve().parent.parent / "fakes"


def untrusting():
    """TLS without a look at the certificate, as a stranger has to call."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class Listener(harness.Bench):
    late_s = 1.0  # the agent calls so much later, so that strangers are there before it

    def setUp(self):
        super().setUp()
        tools = self.scratch / "tools"
        tools.mkdir()
        for name in ("srun", "sinfo"):
            (tools / name).symlink_to(FAKES / f"fake_{name}")
        agent = tools / "agent"
        agent.write_text(f"#!/bin/sh\nsleep {self.late_s}\nexec '{harness.BIN}/assay-node' \"$@\"\n")
        agent.chmod(0o755)
        self.environment["PATH"] = f"{tools}:{self.environment['PATH']}"
        self.environment.pop("SLURM_JOB_ID", None)
        self.port = floods.free_port()
        self.site = self.write(
            "site.json",
            {
                "schema": "assay.site/1",
                "name": "fake",
                "slurm": {"agent": str(agent), "wait_s": 40, "port": self.port, "address": "127.0.0.1"},
                "nodes": [{"name": "n01", "launcher": "slurm", "directory": str(self.work)}],
            },
        )

    def accept_under(self, *threads, words=(), requirements=(), **more):
        """A run while the strangers call."""
        for thread in threads:
            thread.start()
        try:
            document = harness.profile(*(requirements or [harness.requirement("number")]))
            return measured.run(
                [
                    *words,
                    harness.BIN / "assay",
                    "accept",
                    "--profile",
                    self.write("profile.json", document),
                    "--site",
                    self.site,
                    "--out",
                    self.run_directory,
                ],
                self.environment,
                **more,
            )
        finally:
            for thread in threads:
                thread.over.set()
            for thread in threads:
                thread.join(10)


class Strangers(Listener):
    @row("T", "T0", "no stranger calls", 0, "ACCEPTED: 1 of 1 required cells pass")
    def test_t0(self):
        return self.accept_under()

    @row("T", "T1", "TLS with a wrong token, without a pause", 0, "ACCEPTED: 1 of 1 required cells pass")
    def test_t1(self):
        def speak(caller):
            with untrusting().wrap_socket(caller) as tls:
                tls.sendall(b"assay-dial/1 " + b"0" * 64 + b" n01\n")
                return tls.recv(1000)

        thread = floods.Talking(self.port, speak)
        done = self.accept_under(thread)
        self.assertGreater(thread.calls, 0)
        self.assertFalse([one for one in thread.answers if b"welcome" in one], thread.answers)
        return done

    @row("T", "T2", "100 TLS callers that send a byte in a while", 0, "ACCEPTED: 1 of 1 required cells pass")
    def test_t2(self):
        def speak(caller):
            with untrusting().wrap_socket(caller) as tls:
                for byte in b"assay-dial/1 ":
                    tls.sendall(bytes([byte]))
                    time.sleep(0.3)

        return self.accept_under(*[floods.Talking(self.port, speak) for _ in range(100)])

    @row("T", "T3", "random bytes, without a pause", 0, "ACCEPTED: 1 of 1 required cells pass")
    def test_t3(self):
        thread = floods.Talking(self.port, floods.random_bytes)
        done = self.accept_under(thread)
        self.assertGreater(thread.calls, 10)
        return done

    @row("T", "T7", "TLS 1.2", 0, "ACCEPTED: 1 of 1 required cells pass")
    def test_t7(self):
        seen = {}

        def speak(caller):
            for version in (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_2):
                context = untrusting()
                context.minimum_version = context.maximum_version = version
                try:
                    with socket.create_connection(("127.0.0.1", self.port), timeout=2) as one, context.wrap_socket(
                        one
                    ) as tls:
                        seen.setdefault(version, set()).add(tls.version())
                except ssl.SSLError as error:
                    seen.setdefault(version, set()).add(error.reason)

        done = self.accept_under(floods.Talking(self.port, speak))
        for words in seen.values():
            words.discard("UNEXPECTED_EOF_WHILE_READING")  # the run ended while it called
        self.assertEqual(
            seen, {ssl.TLSVersion.TLSv1_3: {"TLSv1.3"}, ssl.TLSVersion.TLSv1_2: {"TLSV1_ALERT_PROTOCOL_VERSION"}}
        )
        return done


class Impostor(harness.Bench):
    """A foreign program listens where the agent calls."""

    @row("T", "T8", "a listener with another certificate: it never hears the token", 3, "does not hold the pinned key")
    def test_t8(self):
        key, certificate = self.scratch / "key.pem", self.scratch / "certificate.pem"
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ed25519",
                "-nodes",
                "-subj",
                "/CN=assay",
                "-days",
                "1",
                "-keyout",
                key,
                "-out",
                certificate,
            ],
            check=True,
            capture_output=True,
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        heard, token = [], "ab" * 32
        with socket.create_server(("127.0.0.1", 0)) as server:

            def listen():
                while True:
                    try:
                        caller, _ = server.accept()
                        with context.wrap_socket(caller, server_side=True) as tls:
                            heard.append(tls.recv(1000))
                    except ssl.SSLError as error:
                        heard.append(str(error).encode())
                    except OSError:
                        return

            threading.Thread(target=listen, daemon=True).start()

            def tell(pipe):
                pipe.write(token.encode() + b"\n")
                pipe.close()

            done = measured.run(
                [
                    harness.BIN / "assay-node",
                    "--directory",
                    self.work,
                    "--dial",
                    f"127.0.0.1:{server.getsockname()[1]}",
                    "--pin",
                    hashlib.sha256(b"another").hexdigest(),
                    "--patience",
                    "2",
                ],
                dict(self.environment, SLURMD_NODENAME="n01"),
                feed=tell,
            )
        self.assertTrue(heard)
        self.assertFalse([one for one in heard if token.encode()[:8] in one or b"assay-dial" in one], heard)
        return done


if __name__ == "__main__":
    harness.main()
