"""meter_bench: real services and fakes that power_feed reads as meters."""
import base64
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

FEED = os.environ["POWER_FEED"]
FAKES = pathlib.Path(__file__).resolve().parent.parent / "fakes"
DEADLINE_S = 60
APC, RARITAN = "1.3.6.1.4.1.318.1.1.26", "1.3.6.1.4.1.13742.6"
# A strip that carries 6130 W on one phase: 230 V x 27.2 A x 0.98. Outlet 3 has 1720 W.
STRIP_APC = f""".{APC}.4.3.1.5.1 integer 613
.{APC}.4.3.1.16.1 integer 626
.{APC}.4.3.1.17.1 integer 98
.{APC}.4.3.1.9.1 integer 12345
.{APC}.6.3.1.5.1 integer 272
.{APC}.6.3.1.6.1 integer 230
.{APC}.9.4.3.1.7.3 integer 1720
"""
# 4511 W, of which the old column of power answers 0; volts without digits, amperes with three, the factor with two.
STRIP_RARITAN = "".join(
    f".{RARITAN}.{table}.1.1.{sensor} gauge {value}\n"
    for table, sensor, value in (
        ("5.2.3.1.4", 5, 0),
        ("5.2.3.1.6", 5, 4511),
        ("3.3.4.1.7", 5, 0),
        ("5.2.3.1.4", 4, 231),
        ("3.3.4.1.7", 4, 0),
        ("5.2.3.1.4", 1, 19729),
        ("3.3.4.1.7", 1, 3),
        ("5.2.3.1.4", 7, 99),
        ("3.3.4.1.7", 7, 2),
    )
)
CDU = "/redfish/v1/ThermalEquipment/CDUs/1/PrimaryCoolantConnectors/1"
METRICS = "/redfish/v1/Chassis/1/EnvironmentMetrics"
DETECTOR = "/redfish/v1/ThermalEquipment/CDUs/1/LeakDetection/LeakDetectors/"
HONEST = {
    METRICS: {
        "PowerWatts": {
            "Reading": 5123.0,
            "Implementation": "PhysicalSensor",
            "AveragingInterval": "PT5S",
            "Accuracy": 2.0,
        },
        "EnergykWh": {"Reading": 2.5},
    },
    CDU: {
        "FlowLitersPerMinute": {"Reading": 42},
        "SupplyTemperatureCelsius": {"Reading": 22},
        "ReturnTemperatureCelsius": {"Reading": 32},
        "HeatRemovedkW": {"Reading": 29.1},
    },
}


def free_port(kind):
    with socket.socket(socket.AF_INET, kind) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class MeterBench(unittest.TestCase):
    """Meters of a test, and what power_feed records of them."""

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="assay-meters-"))
        self.children = []
        self.addCleanup(shutil.rmtree, self.scratch, True)
        self.addCleanup(self.end_children)

    def end_children(self):
        for child in self.children:
            child.kill()
            child.wait(DEADLINE_S)

    def start(self, *command):
        log = open(self.scratch / f"log{len(self.children)}", "wb")
        self.children.append(
            subprocess.Popen(
                list(map(str, command)),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "SNMP_PERSISTENT_DIR": str(self.scratch)},
            )
        )
        log.close()

    def program(self, name):
        found = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")
        if not found:
            self.skipTest(f"{name} is not installed")
        return found

    def wait_for(self, path):
        limit = time.monotonic() + DEADLINE_S
        while not path.exists():
            self.assertLess(time.monotonic(), limit, f"{path} did not appear")
            time.sleep(0.02)
        return path.read_text()

    def secret(self, name, **content):
        path = self.scratch / name
        path.write_text(json.dumps(content))
        path.chmod(0o600)
        return str(path)

    def feed(self, *meters, seconds=3):
        """Runs power_feed; its record as a list of lines."""
        site = self.scratch / "site.json"
        site.write_text(json.dumps({"schema": "assay.site/1", "name": "s", "nodes": [], "meters": meters}))
        begin = time.monotonic()
        done = subprocess.run(
            [FEED, "--meters", str(site), "--duration", f"{seconds}s"],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            env={**os.environ, "SNMP_PERSISTENT_DIR": str(self.scratch / "state")},
        )
        self.took_s = time.monotonic() - begin
        self.printed = done.stdout + done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def values(self, record, metric, **at):
        """Every sample of `metric` at the coordinates `at`."""
        return [
            value
            for line in record
            if line.get("measurement", {}).get("metric") == metric
            and all(line["measurement"]["at"].get(name) == wanted for name, wanted in at.items())
            for value in line["measurement"]["samples"]
        ]

    def condition(self, record, name, meter):
        found = [
            line["condition"]["value"]
            for line in record
            if line.get("condition", {}).get("name") == name and line["condition"]["subject"] == {"meter": meter}
        ]
        self.assertEqual(len(found), 1, f"{name} of {meter} in {record}")
        return found[0]

    def snmpd(self, addresses=1):
        """One service on so many ports: to power_feed each is a device of its own."""
        program = self.program("snmpd")
        (self.scratch / "apc").write_text(STRIP_APC)
        (self.scratch / "raritan").write_text(STRIP_RARITAN)
        (self.scratch / "snmpd.conf").write_text(
            f'rocommunity hall-7 127.0.0.1\ncreateUser reader SHA "auth-pass-phrase" AES "priv-pass-phrase"\nrouser reader authpriv\n'
            f"pass_persist .1.3.6.1.4.1.318 {sys.executable} {FAKES}/fake_strip {self.scratch}/apc\n"
            f"pass_persist .1.3.6.1.4.1.13742 {sys.executable} {FAKES}/fake_strip {self.scratch}/raritan\n"
        )
        ports = [free_port(socket.SOCK_DGRAM) for _ in range(addresses)]
        self.start(
            program,
            "-f",
            "-C",
            "-c",
            self.scratch / "snmpd.conf",
            "-Lo",
            "-p",
            self.scratch / "pid",
            *(f"udp:127.0.0.1:{port}" for port in ports),
        )
        self.wait_for(self.scratch / "pid")
        return ports

    def redfish(self, name, tree, way=""):
        folder = self.scratch / name
        folder.mkdir()
        for path, content in tree.items():
            (folder / (path.strip("/").replace("/", ".") + ".json")).write_text(json.dumps(content))
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-subj",
                "/CN=bmc",
                "-days",
                "2",
                "-keyout",
                folder / "key",
                "-out",
                folder / "certificate",
            ],
            check=True,
            capture_output=True,
            timeout=DEADLINE_S,
        )
        der = subprocess.run(
            f"openssl x509 -in {folder}/certificate -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary",
            shell=True,
            check=True,
            capture_output=True,
            timeout=DEADLINE_S,
        ).stdout
        self.start(
            sys.executable,
            FAKES / "fake_redfish",
            folder / "port",
            folder / "certificate",
            folder / "key",
            folder,
            "root",
            "calvin-7",
            way,
        )
        return {
            "name": name,
            "kind": "redfish",
            "address": "127.0.0.1",
            "port": int(self.wait_for(folder / "port")),
            "subject": "cdu",
            "resources": list(tree),
            "public_key": "sha256//" + base64.b64encode(der).decode(),
            "credentials": self.secret(name + ".json", user="root", password="calvin-7"),
        }
