"""One load on several nodes: how near together it begins, that it grows from the first node, and that it ends with the head. The meter that
guards it is simulated."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from bench import START_PATIENCE_S, ClusterBench
from harness import main, wait_for

DEVICE = pathlib.Path(__file__).resolve().parent.parent / "e2e" / "plant_device.py"
END_S = 5
SPREAD_S = 0.05  # on a machine whose CPUs all nodes share; the value is printed


class Load(ClusterBench):
    nodes = max(2, min(3, os.cpu_count()))  # two that share a CPU begin one after the other

    def begin_load(self, **parameters):
        port = self.scratch / "port"
        device = subprocess.Popen([*self.cluster.head, sys.executable, DEVICE, port, "1000"], start_new_session=True)
        self.addCleanup(device.wait)
        self.addCleanup(device.kill)
        wait_for(lambda: port.exists() and port.read_text(), "the meter listens")
        site = json.loads(pathlib.Path(self.cluster.site_file).read_text())
        site["load_test"] = {"consent": "the test itself, on namespaces", "limit_w": 9000}
        site["meters"] = [
            {
                "name": "pdu",
                "kind": "modbus",
                "address": "127.0.0.1",
                "port": int(port.read_text()),
                "subject": "feed",
                "rack": "r1",
                "rating_w": 5000,
                "registers": [{"quantity": "power", "address": 0, "type": "float32", "scale": 1}],
            }
        ]
        load = {"shape": "soak", "hold": "4s", "ramp": "500ms", "grow_hold": "1s", "threads": 1, **parameters}
        common = {
            "parameters": load,
            "statistic": "max",
            "repeat": {"n": 1, "attempts": 1, "more_attempts": 0},
            "reproducibility": {"u": 1e-9, "source": {"document": "the test", "status": "sourced"}},
            "source": {"document": "the test", "status": "sourced"},
        }
        requirements = [
            {
                "id": "spread",
                "title": "spread",
                "probe": "load_bank",
                "metric": "start_spread",
                "scope": "cluster",
                "limit": {"at_most": SPREAD_S, "unit": "s"},
                **common,
            },
            {
                "id": "budget",
                "title": "budget",
                "probe": "power_feed",
                "during": "load_bank",
                "metric": "total_power",
                "scope": "rack",
                "limit": {"at_most": 2000, "unit": "W"},
                **common,
            },
        ]
        profile = {
            "schema": "assay.profile/1",
            "name": "test",
            "title": "Test",
            "revision": 1,
            "relative_only": "a test",
            "companions": ["power_feed"],
            "requirements": requirements,
        }
        return [
            "accept",
            "--profile",
            self.write("profile.json", profile),
            "--site",
            self.write("site.json", site),
            "--out",
            self.run_directory,
        ]

    def loads(self):
        """Nodes on which a load works."""
        found = set()
        for name, pids in self.cluster.process_ids().items():
            for pid in pids:
                try:
                    if b"--grow-hold" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                        found.add(name)
                except OSError:
                    pass  # it has just ended
        return found

    def test_all_nodes_begin_within_a_spread_that_is_recorded_and_the_feed_is_judged(self):
        done = self.assay(*self.begin_load())
        spread, budget = self.verdict()["results"]
        self.assertIsNotNone(spread.get("value"), (spread, done.stderr))
        print(f"start_spread of {self.nodes} nodes: {1000 * spread['value']:.3f} ms", file=sys.stderr)
        self.assertLess(spread["value"], SPREAD_S)
        self.assertEqual((budget["outcome"], budget["value"]), ("pass", 1000), budget)
        record = next((self.run_directory / "records").glob("*load_bank*/1/0.jsonl")).read_text().splitlines()
        conditions = {
            line["condition"]["name"]: line["condition"]["value"]
            for line in map(json.loads, record)
            if "condition" in line
        }
        self.assertEqual((conditions["groups_before"], conditions["engine"]), (self.nodes - 1, "cpu_gemm"))
        self.check_aftermath()

    def test_the_load_of_every_node_ends_within_five_seconds_of_the_head_killed(self):
        head = self.start(*self.begin_load(hold="60s"))
        wait_for(lambda: len(self.loads()) == self.nodes, "the load runs on every node", START_PATIENCE_S)
        time.sleep(1)  # it works, beyond its start
        os.killpg(head.pid, signal.SIGKILL)  # nsenter and the head behind it
        wait_for(lambda: not self.loads(), "the load has ended on every node", END_S)


if __name__ == "__main__":
    main()
