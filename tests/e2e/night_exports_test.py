"""What `assay export` writes, read by the programs that it is for: promtool, node_exporter, Prometheus' backfill and Alertmanager. A program
that is not installed (apt-get install prometheus prometheus-node-exporter prometheus-alertmanager) is left out."""
import json
import os
import shutil
import socket
import subprocess
import unittest
import urllib.error
import urllib.request

from harness import main, wait_for
from nightly import NightBench

PATIENCE_S = 30


def tool(name):
    path = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")
    if path is None:
        raise unittest.SkipTest(f"{name} is not installed")
    return path


def fetched(url, document=None):
    """The answer, or nothing while nothing answers."""
    request = urllib.request.Request(
        url, data=document, headers={"Content-Type": "application/json"} if document else {}
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError:
        raise
    except OSError:
        return None


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Exports(NightBench):
    """Sixty nights of eight nodes, made up, of which one falls by eight deviations."""

    def setUp(self):
        super().setUp()
        self.database, self.drift = self.scratch / "history.db", self.scratch / "drift.json"
        faults = self.write(
            "faults.json",
            {
                "schema": "assay.night-faults/1",
                "faults": [{"unit": "n00003", "metric": "simulated.m00", "from_night": 50, "kind": "step", "sigma": 8}],
            },
        )
        self.said(
            "simulate", "--nights", "60", "--nodes", "8", "--metrics", "2", "--faults", faults, "--db", self.database
        )
        judged = self.assay("drift", "judge", "--db", self.database, "-o", self.drift)
        self.assertIn(judged.returncode, (0, 1), judged.stderr)
        self.assertTrue(json.loads(self.drift.read_text())["flags"])

    def said(self, *words):
        done = self.assay(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def export(self, kind, name, *more):
        path = self.scratch / name
        self.said("export", kind, *more, "--drift", self.drift, "-o", path)
        return path

    def serve(self, *words):
        process = subprocess.Popen(
            list(map(str, words)),
            cwd=self.scratch,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(process.wait, PATIENCE_S)
        self.addCleanup(process.kill)

    # Row r of the acceptance tests.
    def test_promtool_finds_nothing_to_say_against_the_textfile(self):
        promtool = tool("promtool")
        text = self.export("prom", "assay.prom", "--db", self.database).read_text()
        done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_node_exporter_serves_the_textfile_without_an_error(self):
        exporter = tool("prometheus-node-exporter")
        folder = self.scratch / "collector"
        folder.mkdir()
        self.export("prom", "collector/assay.prom", "--db", self.database)
        port = free_port()
        self.serve(
            exporter,
            "--collector.disable-defaults",
            "--collector.textfile",
            f"--collector.textfile.directory={folder}",
            f"--web.listen-address=127.0.0.1:{port}",
        )
        wait_for(lambda: fetched(f"http://127.0.0.1:{port}/metrics"), "node_exporter answers", PATIENCE_S)
        lines = fetched(f"http://127.0.0.1:{port}/metrics").splitlines()
        self.assertIn("node_textfile_scrape_error 0", lines)
        ours = [line for line in lines if line.startswith("assay_")]
        written = [line for line in (folder / "assay.prom").read_text().splitlines() if line.startswith("assay_")]
        self.assertEqual(len(ours), len(written))
        self.assertTrue(any(line.startswith("assay_drift_ratio{") for line in ours), ours)

    def test_prometheus_takes_the_nights_as_blocks(self):
        promtool = tool("promtool")
        path = self.export("openmetrics", "nights.om", "--db", self.database)
        blocks = self.scratch / "blocks"
        done = subprocess.run(
            [promtool, "tsdb", "create-blocks-from", "openmetrics", path, blocks], capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        samples = sum(json.loads(meta.read_text())["stats"]["numSamples"] for meta in blocks.glob("*/meta.json"))
        written = [line for line in path.read_text().splitlines() if not line.startswith("#")]
        self.assertEqual(samples, len(written))
        self.assertGreater(samples, 0)

    def test_prometheus_reads_every_query_of_the_dashboard(self):
        promtool = tool("promtool")
        folder = self.scratch / "grafana"
        self.said("export", "grafana", "-o", folder)
        queries = [
            target["expr"]
            for panel in json.loads((folder / "assay-nightly.json").read_text())["panels"]
            for target in panel["targets"]
        ]
        self.assertGreaterEqual(len(queries), 7)
        rules = self.write(
            "rules.json",
            {
                "groups": [
                    {
                        "name": "dashboard",
                        "rules": [{"record": f"panel:{i}", "expr": query} for i, query in enumerate(queries)],
                    }
                ]
            },
        )
        done = subprocess.run([promtool, "check", "rules", rules], capture_output=True, text=True)  # JSON is YAML
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"{len(queries)} rules found", done.stdout)

    def test_alertmanager_takes_the_alerts_and_shows_each_once(self):
        manager = tool("prometheus-alertmanager")
        document = self.export("alertmanager", "alerts.json").read_bytes()
        configuration = self.write(
            "alertmanager.json", {"route": {"receiver": "none"}, "receivers": [{"name": "none"}]}
        )
        port = free_port()
        self.serve(
            manager,
            f"--config.file={configuration}",
            f"--storage.path={self.scratch / 'manager'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--cluster.listen-address=",
        )
        url = f"http://127.0.0.1:{port}/api/v2/alerts"
        wait_for(lambda: fetched(url), "Alertmanager answers", PATIENCE_S)
        for _ in range(2):  # posting again makes no second alert
            fetched(url, document)
        wait_for(lambda: json.loads(fetched(url)), "the alerts are shown", PATIENCE_S)
        shown = json.loads(fetched(url))
        self.assertEqual(
            sorted(json.dumps(one["labels"], sort_keys=True) for one in shown),
            sorted(json.dumps(one["labels"], sort_keys=True) for one in json.loads(document)),
        )


if __name__ == "__main__":
    main()
