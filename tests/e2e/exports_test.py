"""`assay export KIND --run`: from folders and dossiers, and, where ASSAY_FOREIGN_SCHEMAS names a folder, against the schemas that OCP and
CTRF publish (ocp/*.json from ocp-diag-core's json_spec/output, ctrf.schema.json), and promtool where it is installed."""
import csv
import json
import os
import pathlib
import shutil
import unittest
import xml.etree.ElementTree

from attacks import ASSAY, Bench, main, run

SCHEMAS = os.environ.get("ASSAY_FOREIGN_SCHEMAS")


class Exports(Bench):
    kind = "mixed"

    def export(self, kind, *more, source=None):
        return run(ASSAY, "export", kind, "--run", source or self.run_directory, *more, env=self.environment)

    def verdict(self):
        return json.loads((self.run_directory / "verdict.json").read_text())

    def streams(self):
        folder = self.scratch / "ocp"
        done = self.export("ocp", "--out", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {path.name: [json.loads(line) for line in path.read_text().splitlines()] for path in folder.iterdir()}

    def test_junit_is_xml_with_a_test_for_each_cell(self):
        path = self.scratch / "junit.xml"
        done = self.export("junit", "-o", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        tree = xml.etree.ElementTree.parse(path).getroot()
        cases = list(tree.iter("testcase"))
        self.assertEqual(len(cases), len(self.verdict()["results"]) + 1)
        self.assertEqual(int(tree.get("failures")), len(list(tree.iter("failure"))))
        self.assertEqual(int(tree.get("errors")), len(list(tree.iter("error"))))
        plain = [
            case for case in cases if not any(case.find(tag) is not None for tag in ("failure", "error", "skipped"))
        ]
        self.assertEqual(len(plain), self.verdict()["counts"]["pass"])

    def test_csv_is_read_back(self):
        printed = self.export("csv").stdout
        self.assertEqual(self.export("csv", "-o", self.scratch / "cells.csv").returncode, 0)
        self.assertEqual((self.scratch / "cells.csv").read_text(), printed)
        rows = list(csv.DictReader(printed.splitlines()))
        self.assertEqual(rows[0]["reason"], self.verdict()["results"][0]["reason"])
        self.assertEqual([row["outcome"] for row in rows], [one["outcome"] for one in self.verdict()["results"]])
        for row, one in zip(rows, self.verdict()["results"]):
            self.assertEqual(row["value"] and float(row["value"]), one.get("value", ""))

    def test_a_dossier_is_exported_when_its_key_signed_it(self):
        done = self.export("ctrf", "--key", f"{self.key}.pub", source=self.dossier)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["results"]["extra"]["standing"], "verified")
        done = self.export("ctrf", "--key", self.base / "buyer.key.pub", source=self.dossier)
        self.assertEqual(done.returncode, 4, done.stdout)

    def test_ocp_has_a_stream_for_each_node_and_its_folder_is_new(self):
        self.assertEqual(sorted(self.streams()), ["n01.jsonl", "n02.jsonl", "n03.jsonl"])
        done = self.export("ocp", "--out", self.scratch / "ocp")
        self.assertEqual(done.returncode, 2)
        self.assertIn("exists already", done.stderr)
        self.assertEqual(self.export("ocp").returncode, 2)

    def test_a_format_of_nights_takes_no_run_and_one_of_a_run_needs_it(self):
        done = self.export("prom")
        self.assertEqual(done.returncode, 2)
        self.assertIn("is of nights, not of a run", done.stderr)
        done = run(ASSAY, "export", "junit", env=self.environment)
        self.assertEqual(done.returncode, 2)
        self.assertIn("needs --run", done.stderr)

    @unittest.skipUnless(SCHEMAS, "ASSAY_FOREIGN_SCHEMAS names no folder")
    def test_the_streams_are_valid_by_the_schemas_of_ocp(self):
        import jsonschema
        import referencing

        documents = [json.loads(path.read_text()) for path in sorted((pathlib.Path(SCHEMAS) / "ocp").glob("*.json"))]
        registry = referencing.Registry().with_resources(
            (one["$id"], referencing.Resource.from_contents(one)) for one in documents
        )
        root = next(one for one in documents if one["$id"].endswith("/output"))
        validator = jsonschema.Draft202012Validator(root, registry=registry)
        checked = 0
        for name, lines in self.streams().items():
            for line in lines:
                errors = [error.message for error in validator.iter_errors(line)]
                self.assertEqual(errors, [], f"{name}: {line}")
                checked += 1
        self.assertGreater(checked, 30)
        self.assertTrue(list(validator.iter_errors(dict(lines[0], unknown=1))), "the validator refuses nothing")

    @unittest.skipUnless(SCHEMAS, "ASSAY_FOREIGN_SCHEMAS names no folder")
    def test_ctrf_is_valid_by_its_schema(self):
        import jsonschema

        validator = jsonschema.Draft7Validator(json.loads((pathlib.Path(SCHEMAS) / "ctrf.schema.json").read_text()))
        self.assertEqual([error.message for error in validator.iter_errors(json.loads(self.export("ctrf").stdout))], [])

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
    def test_openmetrics_is_read_by_promtool(self):
        path = self.scratch / "metrics"
        path.write_text(self.export("openmetrics").stdout)
        done = run("promtool", "tsdb", "create-blocks-from", "openmetrics", path, self.scratch / "blocks")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    main()
