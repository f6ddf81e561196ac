"""storage_protocols on a folder that an object server shows over S3: an honest one has no fault, and each way to misbehave is found in its class. The server
checks every signature, with an implementation of its own that is held against the examples that AWS published."""
import importlib.util
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

from harness import main, wait_for

PROBE = os.environ["STORAGE_PROTOCOLS"]
SERVER = pathlib.Path(__file__).resolve().parents[1] / "fakes/object_server.py"
SPECIFICATION = importlib.util.spec_from_file_location("object_server", SERVER)
object_server = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(object_server)
EMPTY = object_server.sha256(b"")
FAULTS = ("stale_reads", "wrong_reads", "false_successes", "failures")
RANKS = 2


class Signature(unittest.TestCase):
    """The examples of "Signature Calculations for the Authorization Header" in AWS' API Reference of S3."""

    def signed(self, method, path, query, payload_hash, **headers):
        known = {
            "host": "examplebucket.s3.amazonaws.com",
            "x-amz-content-sha256": payload_hash,
            "x-amz-date": "20130524T000000Z",
            **headers,
        }
        return object_server.signature(
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            method,
            path,
            query,
            {**known, " region": "us-east-1"},
            sorted(known),
            payload_hash,
        )

    def test_of_get_object(self):
        self.assertEqual(
            self.signed("GET", "/test.txt", "", EMPTY, range="bytes=0-9"),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        )

    def test_of_put_object(self):
        body = object_server.sha256(b"Welcome to Amazon S3.")
        more = {"date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"}
        self.assertEqual(
            self.signed("PUT", "/test%24file.text", "", body, **more),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        )

    def test_of_list_objects(self):
        self.assertEqual(
            self.signed("GET", "/", "max-keys=2&prefix=J", EMPTY),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        )


class Served(unittest.TestCase):
    """A folder with an object server beside it, and the probe's ranks as processes."""

    def setUp(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="assay-protocols-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.base)
        self.data = self.base / "data"
        self.data.mkdir()
        self.keys("key", "secret")

    def keys(self, access, secret):
        self.credentials = self.base / "s3.json"
        self.credentials.write_text(json.dumps({"access_key": access, "secret_key": secret}))
        self.credentials.chmod(0o600)

    def ranks(self, lie, prefix="data/"):
        """Rank 0's record; the ranks are processes beside a server that misbehaves so."""
        port_file = self.base / "port"
        port_file.unlink(missing_ok=True)
        server = subprocess.Popen([sys.executable, SERVER, port_file, self.base, "key", "secret", lie])
        try:
            wait_for(port_file.exists, "the server listens")
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                meeting = free.getsockname()[1]
            command = [
                PROBE,
                "--quick",
                f"--directory={self.data}",
                f"--endpoint=http://127.0.0.1:{port_file.read_text()}",
                "--bucket=bucket",
                f"--prefix={prefix}",
                f"--credentials={self.credentials}",
                "--wait=600ms",
                "--rounds=1",
                "--clients=processes",
                f"--rendezvous=127.0.0.1:{meeting}",
                f"--world={RANKS}",
                "--token=" + 8 * "90ab",
            ]
            running = [
                subprocess.Popen(
                    [*command, f"--rank={rank}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
                )
                for rank in range(RANKS)
            ]
            output = [one.communicate(timeout=120)[0] for one in running][0]
        finally:
            server.kill()
            server.wait(30)
        return [json.loads(line) for line in output.splitlines()]

    def found(self, lie):
        """Faults that are not 0, by class, with the cases in which they are; what the notes say."""
        lines = self.ranks(lie)
        self.assertEqual(lines[-1]["end"]["status"], "complete", lines[-1])
        self.assertEqual(list(self.data.iterdir()), [])
        faults = {}
        for one in (line["measurement"] for line in lines if "measurement" in line):
            if one["metric"] in FAULTS and one["samples"][0] != 0:
                faults.setdefault(one["metric"], set()).add(one["at"]["case"])
        return faults, "\n".join(line["note"]["text"] for line in lines if "note" in line)


class Protocols(Served):
    def test_an_honest_server_has_no_fault_in_any_case(self):
        lines = self.ranks("honest")
        cases = {
            one["at"]["case"]: one["samples"][0]
            for one in (line["measurement"] for line in lines if "measurement" in line)
            if one["metric"] == "checks"
        }
        acts = ("new", "listing", "overwrite", "size", "remove")
        self.assertEqual(
            set(cases),
            {f"{pair}.{act}" for pair in ("posix_to_s3", "s3_to_posix", "s3_to_s3") for act in acts}
            | {"s3_to_s3.etag"},
        )
        self.assertEqual(self.found("honest"), ({}, ""))
        declared = json.loads(subprocess.run([PROBE, "--describe"], capture_output=True, text=True, check=True).stdout)
        recorded = {line["measurement"]["metric"] for line in lines if "measurement" in line} | {
            line["condition"]["name"] for line in lines if "condition" in line
        }
        of_probe = {one["name"] for one in declared["metrics"] + declared["conditions"]}
        self.assertLessEqual(of_probe - recorded, {"cpu_load_by_others", "cpu_steal", "clock_synchronised"})

    def test_objects_that_are_empty_for_a_while_are_stale_reads_with_the_time(self):
        faults, notes = self.found("empty")
        self.assertEqual(set(faults), {"stale_reads"})
        self.assertIn("posix_to_s3.new", faults["stale_reads"])
        self.assertIn("the file ends after 0 of 16384 B", notes)

    def test_a_redirection_and_a_wrong_key_end_the_run_with_the_answer(self):
        self.assertIn("HTTP status 307", self.ranks("redirect")[-1]["end"]["reason"])
        self.keys("key", "another")
        self.assertIn("HTTP status 403 SignatureDoesNotMatch", self.ranks("honest")[-1]["end"]["reason"])
        self.keys("another", "secret")
        self.assertIn("HTTP status 403 InvalidAccessKeyId", self.ranks("honest")[-1]["end"]["reason"])

    def test_a_bucket_of_another_folder_and_credentials_that_others_may_read_are_errors(self):
        self.assertIn(
            "does not show under elsewhere/assay-storage-", self.ranks("honest", "elsewhere/")[-1]["end"]["reason"]
        )
        self.credentials.chmod(0o644)
        self.assertIn("s3.json", self.ranks("honest")[-1]["end"]["reason"])
        self.assertEqual(list(self.data.iterdir()), [])

    def test_parameters_that_do_not_fit_are_errors_that_name_them(self):
        for word, reason in (
            ("--endpoint=127.0.0.1", "endpoint: '127.0.0.1' is not http://HOST:PORT"),
            ("--endpoint=http://h/b", "has more than a host and a port"),
            ("--bucket=a/b", "bucket: 'a/b' is not a name"),
            ("--prefix=a b", "prefix: 'a b' is not of letters"),
            ("--region=a b", "region: 'a b' is not a name"),
            ("--size=4097B", "size: 4097 B is not a multiple of 16 B"),
            ("--rounds=0", "rounds: 0 is not from 1"),
        ):
            done = subprocess.run([PROBE, "--quick", word], capture_output=True, text=True, timeout=60)
            self.assertIn(reason, done.stdout, word)


class Lies(Served):
    def test_each_way_to_misbehave_is_found_in_its_class(self):
        for lie, fault, case, words in (
            ("cut", "false_successes", "posix_to_s3.new", "the file ends after 16383 of 16384 B"),
            ("flipped", "wrong_reads", "posix_to_s3.overwrite", "1 of 8192 B differ from B 100 on"),
            ("short_body", "failures", "posix_to_s3.new", "refused: GET /data/"),
            ("stale", "stale_reads", "s3_to_s3.overwrite", "are what was there before"),
            ("listing", "stale_reads", "posix_to_s3.listing", "it is not listed"),
            ("slow_down", "failures", "", "HTTP status 503 SlowDown"),
            ("wrong_etag", "wrong_reads", "s3_to_s3.etag", "its ETag is "),
            ("drop_put", "false_successes", "s3_to_posix.new", "there is no such file"),
            ("keep", "false_successes", "s3_to_posix.remove", "the file is still there"),
        ):
            with self.subTest(lie):
                faults, notes = self.found(lie)
                self.assertIn(fault, faults, notes)
                self.assertTrue(not case or case in faults[fault], faults)
                self.assertIn(words, notes)


if __name__ == "__main__":
    main()
