"""switch_counters against snmpd, whose tables of a switch are canned."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading
import time

from harness import BIN, ONCE, Bench, main

FAKES = pathlib.Path(__file__).resolve().parent.parent / "fakes"
IF, IFX, LLDP = "1.3.6.1.2.1.2.2.1", "1.3.6.1.2.1.31.1.1.1", "1.0.8802.1.1.2.1"
OURS = ("1.3.6.1.2.1.2", "1.3.6.1.2.1.31", "1.3.6.1.2.1.10", "1.3.6.1.2.1.47", "1.3.6.1.2.1.99", "1.0.8802")


class Switch(threading.Thread):
    """Tables of leaf1, whose swp1 counts bytes all the time, and in_errors and out_discards as it is told."""

    def __init__(self, path, errors_a_look=0, neighbour="n01", left_out=()):
        super().__init__(daemon=True)
        self.path, self.errors, self.a_look, self.neighbour = path, 4294967290, errors_a_look, neighbour
        self.left_out, self.bytes, self.over = left_out, 10**12, threading.Event()
        self.look()

    def look(self):
        self.bytes += 10**9
        self.errors = (self.errors + self.a_look) % 2**32
        rows = {
            f"{IFX}.1.1": "string swp1",
            f"{IFX}.1.2": "string swp2",
            f"{IFX}.6.1": f"counter64 {self.bytes}",
            f"{IFX}.10.1": f"counter64 {self.bytes}",
            f"{IFX}.15.1": "gauge 400000",
            f"{IFX}.19.1": "timeticks 0",
            f"{IF}.2.1": "string port-one",
            f"{IF}.8.1": "integer 1",
            f"{IF}.9.1": "timeticks 100",
            f"{IF}.13.1": "counter 0",
            f"{IF}.14.1": f"counter {self.errors}",
            f"{IF}.19.1": "counter 7",
            f"{LLDP}.3.7.1.3.1": "string swp1",
            f"{LLDP}.4.1.1.6.0.1.1": "integer 5",
            f"{LLDP}.4.1.1.7.0.1.1": "string ens1",
            f"{LLDP}.4.1.1.9.0.1.1": f"string {self.neighbour}",
            "1.3.6.1.2.1.47.1.3.2.1.2.40.0": f"objectid .{IF}.1.1",
            "1.3.6.1.2.1.47.1.1.1.1.4.41": "integer 40",
            "1.3.6.1.2.1.47.1.1.1.1.7.41": "string RX-power",
            **{
                f"1.3.6.1.2.1.99.1.1.1.{column}.41": f"integer {value}"
                for column, value in enumerate((6, 8, 4, 5012, 1), 1)
            },
        }
        fresh = self.path.with_suffix(".new")
        fresh.write_text("".join(f".{oid} {value}\n" for oid, value in rows.items() if oid not in self.left_out))
        fresh.replace(self.path)

    def run(self):
        while not self.over.wait(0.5):
            self.look()


class Switches(Bench):
    def agent(self, **more):
        """A switch behind snmpd; its port."""
        program = shutil.which("snmpd", path=os.environ["PATH"] + ":/usr/sbin")
        if not program:
            self.skipTest("snmpd is not installed")
        tables = self.scratch / "tables"
        switch = Switch(tables, **more)
        switch.start()
        self.addCleanup(switch.over.set)
        # Its ports are made up: snmpd's own modules of these tables stay out, and pass_persist has all of them.
        passed = "".join(f"pass_persist .{oid} {sys.executable} {FAKES}/fake_strip {tables}\n" for oid in OURS)
        (self.scratch / "snmpd.conf").write_text("rocommunity fabric-7 127.0.0.1\n" + passed)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        child = subprocess.Popen(
            [program, "-f", "-C", "-c", self.scratch / "snmpd.conf", "-Lo", "-p", self.scratch / "pid"]
            + ["-I", "-interfaces,interface,ifTable,ifXTable", f"udp:127.0.0.1:{port}"],
            env={**os.environ, "SNMP_PERSISTENT_DIR": str(self.scratch), "MIBS": ""},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(child.wait, 60)
        self.addCleanup(child.kill)
        limit = time.monotonic() + 60
        while not (self.scratch / "pid").exists():
            self.assertLess(time.monotonic(), limit, "snmpd did not start")
            time.sleep(0.02)
        return port

    def site(self, port, community="fabric-7", switch_port="swp1", timeout_s=10):
        secret = self.scratch / "leaf1.json"
        secret.write_text(json.dumps({"community": community}))
        secret.chmod(0o600)
        ends = [{"interface": "ens1", "leaf": "leaf1", "switch_port": switch_port}]
        node = {"name": "n01", "launcher": "local", "directory": str(self.work), "planes": {"parameter": ends}}
        leaf = {
            "name": "leaf1",
            "address": "127.0.0.1",
            "port": port,
            "credentials": str(secret),
            "timeout_s": timeout_s,
        }
        return self.write("site.json", {"schema": "assay.site/1", "name": "s", "nodes": [node], "switches": [leaf]})

    def counters(self, site, seconds=4):
        """What the program records by itself: its lines."""
        done = subprocess.run(
            [
                BIN.parent / "libexec/assay/probes/switch_counters",
                "--switches",
                site,
                "--interval",
                "500ms",
                "--duration",
                f"{seconds}s",
            ],
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertNotIn("fabric-7", done.stdout + done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def figures(self, record):
        return {
            line["measurement"]["metric"]: line["measurement"]["samples"][0]
            for line in record
            if line.get("measurement", {}).get("subject") == {"switch_port": "leaf1/swp1"}
        }

    def conditions(self, record, subject):
        every = (line["condition"] for line in record if "condition" in line)
        return {one["name"]: one["value"] for one in every if one["subject"] == subject}

    def test_counters_wrap_and_ports_neighbours_and_light_are_named(self):
        record = self.counters(self.site(self.agent(errors_a_look=3)))
        figures = self.figures(record)
        self.assertTrue(6 <= figures["in_errors"] <= 90, figures)  # it wraps in the first second
        self.assertEqual(figures["out_discards"], 0)
        self.assertEqual(figures["link_rate"], 5e10)
        self.assertAlmostEqual(figures["optical_power"], 5.012e-4, 9)
        self.assertNotIn("symbol_errors", figures)
        port = self.conditions(record, {"switch_port": "leaf1/swp1"})
        self.assertEqual((port["neighbour"], port["neighbour_port"]), ("n01", "ens1"))
        self.assertTrue(0.4 < port["refresh_s"] < 5, port)

    def test_an_agent_that_is_silent_or_lacks_the_port_gives_no_figure_and_says_why(self):
        silent = self.counters(self.site(self.agent(), community="another", timeout_s=0.5), 2)
        self.assertEqual(silent[-1]["end"]["status"], "skip")
        self.assertIn("leaf1 at 127.0.0.1: no answer within 0.5 s", silent[-1]["end"]["reason"])

    def test_a_port_that_the_switch_does_not_have_is_named(self):
        record = self.counters(self.site(self.agent(), switch_port="swp9"), 2)
        self.assertEqual(
            self.conditions(record, {"switch_port": "leaf1/swp9"})["unread"],
            "the switch has no port of this name (ifName, ifDescr)",
        )

    def judged(self, site):
        """The cells of a run that holds a load for some seconds."""
        asked = {"metric": None, "scope": "switch_port", "statistic": "max", "when_told": True, **ONCE}
        requirements = [
            {
                **asked,
                "id": metric,
                "title": metric,
                "probe": "switch_counters",
                "during": "host_memory_latency",
                "parameters": {"warmup_least": "8s", "time_limit": "2s"},
                "metric": metric,
                "limit": {"at_most": 0, "unit": "1"},
                "repeat": {"n": 1, "attempts": 1, "more_attempts": 0},
                "source": {"document": "the test", "status": "sourced"},
            }
            for metric in ("in_errors", "out_discards", "symbol_errors", "cabling_wrong")
        ]
        profile = {
            "schema": "assay.profile/1",
            "name": "test",
            "title": "Test",
            "revision": 1,
            "companions": ["switch_counters"],
            "requirements": requirements,
        }
        self.result = self.assay(
            "accept", "--profile", self.write("profile.json", profile), "--site", site, "--out", self.run_directory
        )
        self.assertTrue((self.run_directory / "verdict.json").exists(), self.result.stderr + self.result.stdout)
        return {one["requirement"]: one for one in self.verdict()["results"]}

    def test_a_run_names_the_port_that_counts_errors_and_the_cable_in_the_wrong_port(self):
        cells = self.judged(self.site(self.agent(errors_a_look=1, neighbour="n01.hall")))
        outcomes = {name: (one["outcome"], one["reason"]) for name, one in cells.items()}
        self.assertEqual(cells["in_errors"]["subject"], {"switch_port": "leaf1/swp1"}, outcomes)
        self.assertEqual(cells["in_errors"]["outcome"], "fail", outcomes)
        self.assertIn("Its cable leads to n01 ens1", cells["in_errors"]["reason"])
        self.assertEqual(cells["out_discards"]["outcome"], "pass", outcomes)
        self.assertEqual(cells["cabling_wrong"]["outcome"], "pass", outcomes)
        self.assertIn("does not report symbol_errors", cells["symbol_errors"]["reason"])
        self.assertEqual(self.verify().returncode, 0, self.verify().stderr)
        page = (self.run_directory / "report.html").read_text()
        self.assertIn("Both ends of each link", page)
        everything = "".join(
            path.read_text(errors="replace") for path in self.run_directory.rglob("*") if path.is_file()
        )
        self.assertNotIn("fabric-7", everything)


main()
