"""site_bench: a site of one node with meters behind real Modbus TCP, for tests of what is judged by them. The plant is simulated: its numbers
are made up."""
import os

from harness import Bench
from plant_device import Device

LOAD = {"hold": "4s", "ramp": "500ms", "grow_hold": "1s", "threads": 1}


class SiteBench(Bench):
    def setUp(self):
        super().setUp()
        self.devices = []
        self.load = None  # the last load that was seen

    def meter(self, name, subject, quantities, registers, way="honest", **more):
        device = Device(registers, way)
        self.addCleanup(device.close)
        self.devices.append(device)
        return {
            "name": name,
            "kind": "modbus",
            "address": "127.0.0.1",
            "port": device.port,
            "subject": subject,
            "timeout_s": 0.5,
            "registers": [
                {"quantity": quantity, "address": 2 * i, "type": "float32", "scale": 1}
                for i, quantity in enumerate(quantities)
            ],
            **more,
        }

    def site(self, meters, **more):
        return self.write(
            "site.json",
            {
                "schema": "assay.site/1",
                "name": "hall",
                "meters": meters,
                "nodes": [{"name": "n01", "launcher": "local", "directory": str(self.work), "rack": "r1"}],
                **more,
            },
        )

    def metered(self, name, metric, scope, limit, unit="1", **more):
        return {
            "id": name,
            "title": name,
            "probe": "power_feed",
            "during": "load_bank",
            "parameters": LOAD,
            "metric": metric,
            "scope": scope,
            "limit": {**limit, "unit": unit},
            "repeat": {"n": 2, "attempts": 1, "more_attempts": 0},
            "reproducibility": {"u": 1e-9, "source": {"document": "the test", "status": "sourced"}},
            "source": {"document": "the test", "status": "sourced"},
            **more,
        }

    def begin(self, site, *requirements):
        profile = {
            "schema": "assay.profile/1",
            "name": "test",
            "title": "Test",
            "revision": 1,
            "relative_only": "a test",
            "companions": ["power_feed"],
            "requirements": requirements,
        }
        return ["accept", "--profile", self.write("profile.json", profile), "--site", site, "--out", self.run_directory]

    def feed(self, name, power, **more):
        return self.meter(
            name,
            "feed",
            ["power", "current", "current_l2", "current_l3"],
            lambda: [power(), 10.0, 11.0, 9.0],
            rack="r1",
            rating_w=5000,
            **more,
        )

    def loads(self):
        """Whether a load_bank of this test is at work."""
        if self.load is None or not self.is_load(self.load):
            self.load = next((pid for pid in os.listdir("/proc") if pid.isdigit() and self.is_load(pid)), None)
        return self.load is not None

    def is_load(self, pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as line, open(f"/proc/{pid}/environ", "rb") as environment:
                return (
                    b"--grow-hold" in line.read()
                    and str(self.scratch).encode() in environment.read() + os.readlink(f"/proc/{pid}/cwd").encode()
                )
        except OSError:
            return False
