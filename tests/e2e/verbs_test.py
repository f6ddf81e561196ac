"""RDMA requirements on two nodes without an adapter: not measured, with the reason, and never accepted."""
import json
import pathlib
import unittest

from harness import main
from loopback import LoopbackBench

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


class WithoutAdapter(LoopbackBench):
    own_names = False

    @classmethod
    def setUpClass(cls):
        if ADAPTERS.exists() and list(ADAPTERS.iterdir()):
            raise unittest.SkipTest(f"this machine has RDMA devices under {ADAPTERS}")
        super().setUpClass()

    def test_every_rdma_requirement_is_not_measured_and_nothing_is_accepted(self):
        size = {"at": {"size": 65536}, "parameters": {"sizes": "65536"}}
        done = self.accept_on_site(
            requirement("bandwidth", "verbs_bandwidth", "bandwidth_forward", "B/s", "pair", **size),
            requirement("latency", "verbs_latency", "latency_p50", "s", "pair", **size),
            requirement("ports", "verbs_port", "ports_active", "1", "node"),
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
