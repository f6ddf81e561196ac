"""Tenants of a cluster, judged by the built-in profile: nftables on each node keeps them apart; a leak is named with its path, and a control without an answer opens
its cell."""
import json
import shutil
import unittest

from bench import ClusterBench
from harness import main, requirement, wait_for
from nightly import nightly
from node import command
from tenant_fabric import MISSING, ganesha

CONSENT = "the test, today, its own namespaces"
PORT = 22  # of the sshd that every node has
CLOSED = ("n01", "n02")  # of blue: its nodes drop what red sends to that port


class Tenants(ClusterBench):
    nodes = 4

    def setUp(self):
        if shutil.which("nft") is None:
            raise unittest.SkipTest("nft is not installed: apt-get install nftables")
        super().setUp()
        self.addresses = {node.name: node.address for node in self.cluster.nodes}
        self.filter(red=("n03", "n04"))

    def filter(self, red):
        for name in CLOSED:
            rules = "\n".join(f"ip saddr {self.addresses[one]} tcp dport {PORT} drop" for one in red)
            table = f"flush ruleset\ntable inet apart {{ chain input {{ type filter hook input priority 0; policy accept;\n{rules}\n}}\n}}\n"
            command(*self.cluster[name].inside("nft", "-f", "-"), input=table)

    def site_with(self, *paths, **more_of_all):
        site = self.cluster.site()
        site["crossings"] = {
            "consent": CONSENT,
            "tenants": {"blue": ["n01", "n02"], "red": ["n03", "n04"]},
            "paths": [
                {"name": name, "class": kind, "tenant": "blue", "address": address, **more}
                for name, kind, address, more in paths
            ],
            **more_of_all,
        }
        return self.write("tenants.json", site)

    def run_apart(self, *paths, out="run"):
        self.run_directory = self.scratch / out
        words = [
            "accept",
            "--profile",
            "tenants-apart",
            "--site",
            self.site_with(*paths),
            "--out",
            self.run_directory,
        ]
        return self.assay(*words)

    def cells(self):
        return {
            (result["requirement"], next(iter(result["subject"].values()))): (result["outcome"], result["reason"])
            for result in self.verdict()["results"]
            if result["step"]
        }


class Judged(Tenants):
    def test_closed_paths_pass_and_the_report_has_their_matrix(self):
        done = self.run_apart(
            ("blue-ssh", "tcp", self.addresses["n01"], {"port": PORT}),
            ("blue-closed", "etcd", self.addresses["n02"], {"port": PORT}),
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(
            set(self.cells()),
            {("apart.tcp", f"{node}>blue-ssh") for node in ("n03", "n04")}
            | {("apart.etcd", f"{node}>blue-closed") for node in ("n03", "n04")},
        )
        self.assertEqual({outcome for outcome, _ in self.cells().values()}, {"pass"})
        self.assertIn("2 nodes of red try blue-ssh of blue: a TCP connection, on which nothing is sent", done.stderr)
        page = next(self.run_directory.rglob("report.html")).read_text()
        self.assertIn(CONSENT, page)
        self.assertIn("no answer 2", page)
        self.check_aftermath()

    def test_a_leak_is_named_with_node_and_path_and_is_a_flag_of_the_first_night(self):
        self.filter(red=("n03",))
        done = self.run_apart(("blue-ssh", "tcp", self.addresses["n01"], {"port": PORT}))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        cells = self.cells()
        self.assertEqual(cells["apart.tcp", "n03>blue-ssh"][0], "pass")
        outcome, reason = cells["apart.tcp", "n04>blue-ssh"]
        self.assertEqual(outcome, "fail")
        self.assertIn("path blue-ssh", reason)
        self.assertIn(
            '<span class="outcome fail">open 1</span>', next(self.run_directory.rglob("report.html")).read_text()
        )
        added = self.assay("history", "add", self.run_directory, "--db", self.scratch / "history.db")
        self.assertEqual(added.returncode, 0, added.stdout + added.stderr)
        told = ("--kind", "note", "--on", "fleet", "--text", "new rules on leaf 3", "--db", self.scratch / "history.db")
        self.assertEqual(self.assay("history", "event", *told).returncode, 0)
        judged = self.assay("drift", "judge", "--json", "--db", self.scratch / "history.db")
        flags = json.loads(judged.stdout)["flags"]
        self.assertEqual([(one["node"], one["slot"]) for one in flags], [("n04", "blue-ssh")], judged.stdout)
        self.assertIn("crossing_refused.answered", flags[0]["metric"])
        explained = self.assay("drift", "explain", "n04", "--db", self.scratch / "history.db")
        self.assertIn("note on fleet: new rules on leaf 3", explained.stdout)

    def test_without_an_answered_control_nothing_is_judged(self):
        done = self.run_apart(("nobody", "tcp", "10.77.200.1", {"port": PORT}))
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        for outcome, reason in self.cells().values():
            self.assertEqual(outcome, "inconclusive")
            self.assertIn("The same attempt by a node of the path's own tenant ended in control no_answer", reason)


class Swept(Tenants):
    def sweep(self, night, site):
        words = (
            "--profile",
            self.write("night.json", nightly(requirement("r"))),
            "--site",
            site,
            "--state",
            self.scratch / "ledger",
        )
        times = ("--night", night, "--now", f"{night}T23:00:00.000Z", "--rotate", 4)
        history = ("--history", self.scratch / "history.db", "--out", self.scratch / night)
        done = self.assay("sweep", *words, *times, *history)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("2 nodes of red try blue-ssh of blue: a TCP connection, on which nothing is sent", done.stderr)
        judged = self.assay("drift", "judge", "--json", "--db", self.scratch / "history.db")
        return json.loads(judged.stdout)["flags"]

    def test_a_sweep_tries_the_paths_from_all_nodes_and_flags_the_first_night_one_is_open(self):
        site = self.site_with(("blue-ssh", "tcp", self.addresses["n01"], {"port": PORT}), nightly=True)
        self.assertEqual(self.sweep("2026-01-05", site), [])
        self.filter(red=("n03",))
        opened = self.sweep("2026-01-06", site)
        self.assertEqual(
            [(one["node"], one["slot"], one["raised"]) for one in opened], [("n04", "blue-ssh", "2026-01-06")]
        )
        self.filter(red=("n03", "n04"))
        closed = self.sweep("2026-01-07", site)
        self.assertEqual([one["node"] for one in closed], ["n04"])
        self.assertTrue(closed[0]["words"].endswith("None since 2026-01-07."), closed)


class ByHandle(Tenants):
    @unittest.skipIf("nfs" in MISSING, "nfs-ganesha is not installed")
    def test_an_export_is_open_by_its_handle_to_the_tenant_with_one_beside_it(self):
        (self.scratch / "notes").mkdir()
        addresses = list(self.addresses.values())
        words = ganesha(self.scratch, addresses[0], addresses[:2], addresses[2:])
        server = self.cluster["n01"].start("unshare", "--mount", "sh", "-c", words)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        log = self.scratch / "ganesha.log"
        wait_for(lambda: log.exists() and "NFS SERVER INITIALIZED" in log.read_text(), "nfs-ganesha serves", 60)
        done = self.run_apart(
            ("blue-home", "nfs", addresses[0], {"resource": "/closed", "folder": str(self.scratch / "notes")}),
            ("red-home", "nfs", addresses[0], {"resource": "/near", "tenant": "red"}),
            out="judged",  # the server has "run"
        )
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("by that tenant's file handle and by at most four mixed of it", done.stderr)
        cells = {cell: outcome for cell, (outcome, _) in self.cells().items() if cell[0] == "apart.nfs"}
        closed = {("apart.nfs", f"{node}>red-home"): "pass" for node in ("n01", "n02")}
        self.assertEqual(cells, {("apart.nfs", f"{node}>blue-home"): "fail" for node in ("n03", "n04")} | closed)
        self.assertIn("path blue-home", self.cells()["apart.nfs", "n03>blue-home"][1])
        self.assertEqual(self.verify().returncode, 0)


if __name__ == "__main__":
    main()
