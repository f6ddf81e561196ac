"""nightly: profiles, drift reports and policies for tests of sweeps and drains."""
import json

from harness import Bench, requirement


def check(after=False, script=None, **more):
    """The requirement that shows whether others use a node: fake_probe's number is their load in per cent."""
    return {
        **requirement("idle.cpu.after" if after else "idle.cpu", value=1 if not after else 2, at_least=None, **more),
        "parameters": {
            "behaviour": "measure",
            "value": 2 if after else 1,
            **({"script": str(script)} if script else {}),
        },
        "limit": {"at_most": 50, "unit": "1"},
        "after": after,
    }


def nightly(*requirements, before=None, after=None):
    return {
        "schema": "assay.profile/1",
        "name": "night",
        "title": "Night",
        "revision": 1,
        "relative_only": "a test",
        "requirements": [before or check(), *requirements, after or check(after=True)],
    }


def flag(node, ratio=0.9, state="confirmed", raised="2026-01-05", metric="fake_probe.number", **more):
    return {
        "id": ("f" + "".join(c for c in node if c.isdigit()).rjust(11, "0")),
        "unit": f"node:{node}",
        "kind": "node",
        "node": node,
        "slot": "",
        "leaf": "",
        "rack": "",
        "serial": False,
        "metric": metric,
        "class": "level",
        "state": state,
        "rule": "cliff",
        "raised": raised,
        "onset": raised,
        "ratio": ratio,
        "ratio_low": ratio,
        "ratio_high": ratio,
        "last_visit": raised,
        "relapses": 0,
        "evidence": [],
        "retests": [],
        "suspects": [f"node {node}"],
        "words": f"{metric} fell",
        "arithmetic": dict.fromkeys(("x", "shift", "m", "s", "n", "T", "z", "C", "h", "rho"), 0.0) | {"peers": 0},
        **more,
    }


def report(*flags, as_of="2026-01-05", retests=(), with_partner=False, **more):
    """drift.json with these flags, as `assay drift judge` writes it."""
    return {
        "schema": "assay.drift/3",
        "as_of": as_of,
        "simulated": False,
        "policy_sha256": "0" * 64,
        "history_sha256": "0" * 64,
        "nights": 20,
        "series": 8,
        "thresholds": {"visits": 1.0, "arl0": 1.0, "h_small": 1.0, "h_large": 1.0, "cliff_history": 1, "count_p": 0.1},
        "coverage": {
            "units": 8,
            "measured": 8,
            "not_due": 0,
            "busy": 0,
            "preempted": 0,
            "not_measured": 0,
            "unseen": 0,
            "max_age_nights": 0,
            "allowed_nights": 10,
            "silent_nights": 0,
            "overdue": [],
        },
        "units": {},
        "fleet": [],
        "flags": list(flags),
        "groups": [],
        "not_judged": [],
        "states": {},
        "retests_wanted": [
            {
                "unit": f"node:{node}",
                "node": node,
                "metric": "fake_probe.number",
                "probe": "fake_probe",
                "times": 3,
                "tonight": True,
                "other_partner": with_partner,
                "flag": "",
            }
            for node in retests
        ],
        **more,
    }


class NightBench(Bench):
    """Sweeps of this machine with fake_probe, one folder a sweep."""

    def setUp(self):
        super().setUp()
        self.state = self.scratch / "ledger"
        self.sweeps = 0

    def sweep_words(self, document, *more, night="2026-01-05", site=None):
        self.sweeps += 1
        self.sweep_folder = self.scratch / f"sweep-{self.sweeps}"
        place = ["--site", site] if site else ["--directory", self.work]
        return [
            "sweep",
            "--profile",
            self.write("night.json", document),
            *place,
            "--state",
            self.state,
            "--night",
            night,
            "--out",
            self.sweep_folder,
            *more,
        ]

    def sweep(self, document, *more, **how):
        return self.assay(*self.sweep_words(document, *more, **how))

    def visits(self, folder=None):
        document = json.loads(((folder or self.sweep_folder) / "sweep.json").read_text())
        return {visit["node"]: visit["state"] for visit in document["visits"]}

    def reason_of(self, node, folder=None):
        document = json.loads(((folder or self.sweep_folder) / "sweep.json").read_text())
        return next(visit["reason"] for visit in document["visits"] if visit["node"] == node)

    def ledger(self):
        path = self.state / "visits.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
