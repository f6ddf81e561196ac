"""power_feed against real components: snmpd, ipmi_sim, a device of libmodbus, HTTPS; and against meters that hang, flood and lie."""
import json
import os
import pathlib
import socket
import unittest

from meter_bench import CDU, DETECTOR, HONEST, METRICS, STRIP_APC, MeterBench, free_port


class Meters(MeterBench):
    def test_strips_of_two_makers_are_read_by_v2c_and_v3_in_their_own_scales(self):
        first, second, third = self.snmpd(3)
        strip = {
            "kind": "snmp",
            "address": "127.0.0.1",
            "port": first,
            "subject": "feed",
            "accuracy": 0.01,
            "accuracy_source": "data sheet",
        }
        community = self.secret("v2c.json", community="hall-7")
        user = self.secret("v3.json", user="reader", password="auth-pass-phrase", privacy_password="priv-pass-phrase")
        record = self.feed(
            {
                **strip,
                "name": "apc",
                "model": "apc-rpdu2",
                "outlets": {"3": "n01", "4": "n02"},
                "credentials": community,
            },
            {**strip, "name": "raritan", "port": second, "model": "raritan-pdu2", "credentials": user},
            {
                **strip,
                "name": "refused",
                "port": third,
                "model": "apc-rpdu2",
                "timeout_s": 0.5,
                "credentials": self.secret("wrong.json", community="other"),
            },
        )
        self.assertEqual(set(self.values(record, "power", meter="apc") + [6130, 1720]), {6130, 1720})
        self.assertEqual(set(self.values(record, "power", meter="apc", outlet=3)), {1720})
        self.assertEqual(self.values(record, "power", meter="apc", outlet=4), [])
        self.assertAlmostEqual(self.values(record, "current", meter="apc")[0], 27.2)
        self.assertEqual(self.values(record, "energy", meter="apc")[0], 12345 * 3.6e5)
        self.assertEqual(set(self.values(record, "power", meter="raritan")), {4511})
        self.assertAlmostEqual(self.values(record, "current", meter="raritan")[0], 19.729)
        self.assertEqual(self.condition(record, "meter_doubts", "apc"), "none")
        self.assertEqual(self.condition(record, "meter_doubts", "raritan"), "none")
        self.assertTrue(self.condition(record, "scale_checked", "raritan"))
        self.assertEqual(self.condition(record, "accuracy_declared", "apc"), 0.01)
        self.assertIn("refused at 127.0.0.1: no answer within 0.5 s", self.printed)
        for secret in ("hall-7", "auth-pass", "priv-pass"):
            self.assertNotIn(secret, self.printed)

    def test_snmp_leaves_no_folder_and_says_nothing_of_its_own(self):
        self.feed(
            {
                "kind": "snmp",
                "name": "apc",
                "model": "apc-rpdu2",
                "address": "127.0.0.1",
                "port": free_port(socket.SOCK_DGRAM),
                "subject": "feed",
                "accuracy": 0.01,
                "accuracy_source": "data sheet",
                "timeout_s": 0.5,
                "credentials": self.secret("v2c.json", community="hall-7"),
            },
            seconds=1,
        )
        self.assertIn("apc at 127.0.0.1: no answer within 0.5 s", self.printed)
        self.assertNotIn("Created directory", self.printed)
        self.assertFalse((self.scratch / "state").exists())

    def test_a_strip_that_tells_tens_of_watts_as_watts_is_mis_scaled(self):
        [port] = self.snmpd()
        (self.scratch / "apc").write_text(STRIP_APC.replace("integer 613", "integer 6130"))
        record = self.feed(
            {
                "name": "apc",
                "kind": "snmp",
                "model": "apc-rpdu2",
                "address": "127.0.0.1",
                "port": port,
                "subject": "feed",
                "credentials": self.secret("v2c.json", community="hall-7"),
            }
        )
        self.assertEqual(
            self.condition(record, "meter_doubts", "apc"),
            "mis_scaled: power is 61300 W, and voltage x current x power factor 6130.88 W: 10 times",
        )

    def test_a_bmc_tells_its_node_by_ipmi(self):
        program = self.program("ipmi_sim")
        if not os.environ.get("FAKE_DCMI"):
            self.skipTest("libopenipmi-dev was not there when this was built")
        (self.scratch / "watts").write_text("813\n")
        port = free_port(socket.SOCK_DGRAM)
        (self.scratch / "lan.conf").write_text(
            f"""name "n01"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {port}
    priv_limit admin
    allowed_auths_callback none md2 md5 straight
    allowed_auths_user none md2 md5 straight
    allowed_auths_operator none md2 md5 straight
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  user 1 true "" "test" user 10 none md2 md5 straight
  user 2 true "admin" "secret-7" admin 10 none md2 md5 straight
loadlib "{os.environ["FAKE_DCMI"]}" "{self.scratch}/watts"
"""
        )
        (self.scratch / "n01.emu").write_text(
            "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\nmc_enable 0x20\n"
        )
        self.start(program, "-c", self.scratch / "lan.conf", "-f", self.scratch / "n01.emu", "-s", self.scratch, "-n")
        bmc = {
            "name": "bmc",
            "kind": "ipmi",
            "address": "127.0.0.1",
            "port": port,
            "subject": "node",
            "nodes": ["n01"],
            "credentials": self.secret("bmc.json", user="admin", password="secret-7"),
        }
        record = self.feed(bmc)
        self.assertEqual(set(self.values(record, "power", meter="bmc")), {813}, self.printed)
        self.assertEqual(self.condition(record, "meter_doubts", "bmc"), "none")
        self.assertLess(abs(self.condition(record, "clock_offset_s", "bmc")), 5)
        self.assertNotIn("secret-7", self.printed)
        self.feed(
            {**bmc, "name": "stranger", "credentials": self.secret("b.json", user="admin", password="wrong-7")},
            seconds=6,
        )
        self.assertIn("stranger at 127.0.0.1: no session", self.printed)
        self.assertNotIn("wrong-7", self.printed)
        (self.scratch / "watts").write_text("65535\n")
        self.assertIn("wrapped", self.condition(self.feed(bmc), "meter_doubts", "bmc"))

    def test_registers_are_read_from_a_modbus_device(self):
        if not os.environ.get("FAKE_MODBUS"):
            self.skipTest("libmodbus-dev was not there when this was built")
        self.start(os.environ["FAKE_MODBUS"], self.scratch / "port", 91500)
        port = int(self.wait_for(self.scratch / "port"))
        record = self.feed(
            {
                "name": "main",
                "kind": "modbus",
                "address": "127.0.0.1",
                "port": port,
                "subject": "meter",
                "registers": [
                    {
                        "quantity": "power",
                        "address": 3059,
                        "type": "float32",
                        "scale": 1000,
                        "table": "input",
                        "word_order": "low_first",
                    },
                    {"quantity": "frequency", "address": 10, "type": "uint16", "scale": 0.01},
                ],
            }
        )
        self.assertEqual(set(self.values(record, "power")), {91500})
        self.assertAlmostEqual(self.values(record, "frequency")[0], 49.98)

    def test_redfish_is_read_from_the_pinned_service_alone(self):
        honest, other = self.redfish("cdu", HONEST), self.redfish("other", HONEST)
        record = self.feed(honest, {**other, "public_key": honest["public_key"]})
        self.assertEqual(set(self.values(record, "power", meter="cdu")), {5123})
        self.assertAlmostEqual(self.values(record, "flow", meter="cdu")[0], 42 / 60000)
        self.assertEqual(self.condition(record, "implementation", "cdu"), "measured")
        self.assertEqual(self.condition(record, "averaging_s", "cdu"), 5)
        self.assertEqual(self.condition(record, "meter_doubts", "cdu"), "none")
        self.assertIn(
            "other at 127.0.0.1: its certificate has another key than the site's public_key; nothing was sent",
            self.printed,
        )
        self.assertFalse((self.scratch / "other" / "unauthorised").exists())
        self.assertNotIn("calvin-7", self.printed)

    def test_a_service_that_lies_about_heat_computes_its_power_or_has_none_is_named(self):
        cdu = {**HONEST[CDU], "HeatRemovedkW": {"Reading": 25.48}}
        lies = self.redfish(
            "lies", {CDU: cdu, METRICS: {"PowerWatts": {"Reading": 300, "Implementation": "Synthesized"}}}
        )
        empty = self.redfish("empty", {METRICS: {"PowerWatts": {"Reading": None}}})
        record = self.feed(lies, empty)
        doubts = self.condition(record, "meter_doubts", "lies")
        self.assertIn("synthesised", doubts)
        self.assertIn("heat is 25480 W", doubts)
        self.assertIn("absent", self.condition(record, "meter_doubts", "empty"))

    def test_leak_detectors_count_when_they_work_and_are_told_apart_by_their_state(self):
        detector = lambda state, status: {
            "DetectorState": state,
            "LeakDetectorType": "Moisture",
            "Status": {"State": status, "Health": "OK"},
        }
        states = {
            "dry": detector("OK", "Enabled"),
            "wet": detector("Critical", "Enabled"),
            "off": detector("OK", "Disabled"),
            "gone": detector("OK", "Absent"),
            "mute": detector(None, "Enabled"),
        }
        service = self.redfish("leaks", {**HONEST, **{DETECTOR + name: one for name, one in states.items()}})
        record = self.feed(service)
        self.assertEqual(set(self.values(record, "leak_detectors", meter="leaks")), {2}, self.printed)  # dry and wet
        self.assertEqual(set(self.values(record, "leaks", meter="leaks")), {1})
        self.assertEqual(self.condition(record, "meter_doubts", "leaks"), "none")
        for name, state in (("wet", "OK"), ("dry", "Warning")):
            (self.scratch / "leaks" / f"{(DETECTOR + name).strip('/').replace('/', '.')}.json").write_text(
                json.dumps(detector(state, "Enabled"))
            )
        self.assertEqual(set(self.values(self.feed(service), "leaks", meter="leaks")), {1})  # a warning is a leak too
        dry = (DETECTOR + "dry").strip("/").replace("/", ".") + ".json"
        (self.scratch / "leaks" / dry).write_text(json.dumps(detector("OK", "Enabled")))
        record = self.feed(service)
        self.assertEqual(set(self.values(record, "leaks", meter="leaks")), {0})
        self.assertEqual(set(self.values(record, "leak_detectors", meter="leaks")), {2})

    def test_meters_that_hang_flood_or_drip_harm_no_other(self):
        good = self.redfish("good", HONEST)
        flood, slow, redirect = (self.redfish(way, HONEST, way) for way in ("flood", "slow", "redirect"))
        silent = socket.socket()  # takes connections and says nothing
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        self.addCleanup(silent.close)
        hang = {
            "name": "hang",
            "kind": "modbus",
            "address": "127.0.0.1",
            "port": silent.getsockname()[1],
            "subject": "meter",
            "timeout_s": 1,
            "registers": [{"quantity": "power", "address": 1, "type": "uint16", "scale": 1}],
        }
        record = self.feed(good, flood, slow, redirect, hang, seconds=5)
        self.assertGreaterEqual(len(self.values(record, "power", meter="good")), 4)
        self.assertEqual(self.condition(record, "faults", "good"), 0)
        for name in ("flood", "slow", "redirect", "hang"):
            self.assertEqual(self.values(record, "power", meter=name), [])
            self.assertIn(f"{name} at 127.0.0.1: ", self.printed)
        self.assertLess(self.took_s, 20)

    def test_credentials_that_others_can_read_are_not_used(self):
        meter = self.redfish("cdu", HONEST)
        pathlib.Path(meter["credentials"]).chmod(0o644)
        record = self.feed(meter)
        self.assertEqual(record[-1]["end"]["status"], "skip")
        self.assertIn("has mode 0644: others than its owner may use it", record[-1]["end"]["reason"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
