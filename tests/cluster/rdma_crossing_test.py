"""Attempts over RDMA CM and by queue pairs of RoCE v2 without it, on the soft-RoCE port of a virtual machine with the stock kernel: each open path is found in every
round, no closed one is accused, a port without a listener or a router that prohibits refuses, and silence is no refusal."""
import collections
import glob
import json
import os
import pathlib
import shutil
import unittest

from guest import boot, folder_of
from harness import main

MODULES = "crc32_generic veth rdma_rxe rdma_ucm sch_ingress cls_flower act_gact"
LIBRARIES = ("/usr/lib/*/libibverbs.so.1", "/usr/lib/*/libibverbs/librxe-rdmav*.so", "/etc/libibverbs.d/rxe.driver")
ROUNDS = int(os.environ.get("ASSAY_CROSSING_ROUNDS", "2"))
STOPPED_S = 5  # after SIGTERM, as SECURITY says


class RdmaCrossing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        base = folder_of(cls, "ip", "rdma", "tc")
        libraries = [path for pattern in LIBRARIES for path in glob.glob(pattern)]
        if len(libraries) < len(LIBRARIES):
            raise unittest.SkipTest("not installed: ibverbs-providers")
        init = pathlib.Path(__file__).with_name("rdma_crossing_init").read_text()
        files = [*libraries, *map(shutil.which, ("ip", "rdma", "tc"))]
        probe = [os.environ["ASSAY_CROSSING"]]
        lines = boot(base, init, MODULES, probe, "-machine q35 -m 640", files, f"rounds={ROUNDS}")
        cls.records = collections.defaultdict(dict)
        cls.errors, cls.sent, cls.stopped = [], {}, {}
        for line in lines:
            if line.startswith("sent "):
                cls.sent = cls.counted(json.loads(line.removeprefix("sent ")))
            elif line.startswith("stopped "):
                _, case, rank, took_s = line.split()
                cls.stopped[case, int(rank)] = float(took_s)
            if not line.startswith("record "):
                cls.errors.append(line)
                continue
            _, case, number, rank, text = line.split(" ", 4)
            entry = json.loads(text)
            found = cls.records[case, int(number), int(rank)]
            if "condition" in entry:
                found[entry["condition"]["name"]] = entry["condition"]["value"]
            if "measurement" in entry:
                found[entry["measurement"]["metric"]] = entry["measurement"]["samples"]
            if "end" in entry and entry["end"]["status"] != "complete":
                found["end"] = entry["end"]

    @staticmethod
    def counted(filters):
        """Packets by the number of their filter."""
        return {
            one["pref"]: action["stats"]["packets"]
            for one in filters
            for action in one.get("options", {}).get("actions", [])
        }

    def check(self, case, outcome, evidence, number=0):
        found, *others = [self.records[case, number, rank] for rank in (0, 1, 2)]
        self.assertEqual(found.get("outcome"), outcome, (found, others, self.errors[-20:]))
        self.assertIn(evidence, found["evidence"])
        self.assertEqual(found["answered"], [1 if outcome == "answered" else 0])

    def check_target(self, case, evidence, number=0):
        """The control was answered and seen; the crossing was seen where there is evidence."""
        control, target = self.records[case, number, 1], self.records[case, number, 2]
        self.assertEqual(control.get("tried"), "control answered", control)
        self.assertEqual(
            (target.get("tried"), target.get("answered")), ("control seen", [1 if evidence else 0]), target
        )
        self.assertEqual(target["evidence"], evidence or "nothing of the other tenant arrived")

    def test_nothing_that_comes_back_is_no_refusal(self):
        self.check("silent", "no_answer", "nothing came back")
        self.check("absent", "no_answer", "10.9.0.77 is on this node's link")
        self.check("roce-silent", "no_answer", "nothing came back to the write")
        self.check("roce-absent", "no_answer", "10.9.0.77 is on this node's link")
        for case in ("roce-silent", "roce-absent"):
            self.check_target(case, "")

    def test_without_a_target_nothing_was_tried(self):
        self.check("no-target", "unclear", "no queue pair came into /notes")

    def test_an_open_path_is_found_and_seen_in_every_round(self):
        for number in range(ROUNDS):
            with self.subTest(number=number):
                self.check("rdma_cm-open", "answered", "RDMA CM: the connection was accepted", number)
                self.check_target("rdma_cm-open", "a request of RDMA CM for a connection arrived", number)
                self.check("roce-open", "answered", "RoCE v2: the write was acknowledged", number)
                self.check_target("roce-open", "an RDMA write of RoCE v2 arrived", number)

    def test_a_closed_path_is_accused_in_no_round(self):
        for number in range(ROUNDS):
            with self.subTest(number=number):
                self.check("rdma_cm-closed", "refused", "RDMA CM: rejected, reason 8", number)
                self.check("roce-closed", "refused", "ICMP type 3 code 13 from 10.9.0.2", number)
                for case in ("rdma_cm-closed", "roce-closed"):
                    self.check_target(case, "", number)

    def test_a_held_try_and_its_target_end_with_a_stop(self):
        for case, rank in (("stop-rdma_cm", 0), ("stop-watch", 2), ("stop-roce", 0), ("stop-roce", 2)):
            with self.subTest(case=case, rank=rank):
                self.assertLess(self.stopped[case, rank], STOPPED_S)
                end = self.records[case, 0, rank].get("end", {})
                self.assertEqual(end.get("reason"), "stopped before the last try was over", self.errors[-20:])

    def test_nothing_is_sent_but_to_the_declared_targets(self):
        silent, behind_router, neighbours, others = (66, 67, 68, 69), range(101, 101 + ROUNDS), (202, 277), 999
        self.assertEqual(self.sent[others], 0, self.sent)
        for declared in (*silent, *behind_router, *neighbours):
            with self.subTest(declared=declared):
                self.assertGreater(self.sent[declared], 0, "its attempt left by the link")


if __name__ == "__main__":
    main()
