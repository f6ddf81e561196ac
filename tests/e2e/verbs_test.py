"""RDMA requirements on two nodes without an adapter: not measured, with the reason, and never accepted."""
import json
import pathlib
import subprocess
import unittest

from harness import DEADLINE_S, Bench, main

SSH_NODES = pathlib.Path(__file__).resolve().parent.parent / "cluster" / "ssh_nodes"
SKIPPED = 77
ADAPTERS = pathlib.Path("/sys/class/infiniband")


def requirement(name, probe, metric, unit, scope, **more):
    return {
        "id": name,
        "title": name,
        "probe": probe,
        "metric": metric,
        "scope": scope,
        "limit": {"at_least": 1, "unit": unit},
        "source": {"document": "the test", "status": "sourced"},
        **more,
    }


class WithoutAdapter(Bench):
    def setUp(self):
        super().setUp()
        if ADAPTERS.exists() and list(ADAPTERS.iterdir()):
            raise unittest.SkipTest(f"this machine has RDMA devices under {ADAPTERS}")
        self.cluster = self.scratch / "cluster"
        up = subprocess.run([SSH_NODES, "up", "2", self.cluster], capture_output=True, text=True, timeout=DEADLINE_S)
        if up.returncode == SKIPPED:
            raise unittest.SkipTest(up.stderr)
        self.assertEqual(up.returncode, 0, up.stderr)
        self.addCleanup(subprocess.run, [SSH_NODES, "down", self.cluster], timeout=DEADLINE_S)

    def test_every_rdma_requirement_is_not_measured_and_nothing_is_accepted(self):
        size = {"at": {"size": 65536}, "parameters": {"sizes": "65536"}}
        done = self.accept(
            requirement("bandwidth", "verbs_bandwidth", "bandwidth_forward", "B/s", "pair", **size),
            requirement("latency", "verbs_latency", "latency_p50", "s", "pair", **size),
            requirement("ports", "verbs_port", "ports_active", "1", "node"),
            more=["--site", self.cluster / "site.json"],
        )
        self.assertEqual(done.returncode, 3, done.stderr + done.stdout)
        self.assertEqual(
            self.outcomes(),
            {
                ("bandwidth", "n01+n02"): "not_measured",
                ("latency", "n01+n02"): "not_measured",
                ("exact-0", "n01+n02"): "not_measured",
                ("exact-1", "n01+n02"): "not_measured",
                ("ports", "n01"): "not_measured",
                ("ports", "n02"): "not_measured",
            },
        )
        for reason in self.reasons().values():
            self.assertIn("no RDMA device", reason)
        self.assertEqual(json.loads((self.run_directory / "verdict.json").read_text())["overall"], "incomplete")


if __name__ == "__main__":
    main()
