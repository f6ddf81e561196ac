"""What encrypts a stream, by the stock kernel of a virtual machine: nothing, TLS, IPsec, and nothing where the probe's sockets pass
IPsec by; and what its filters of tc count. The kernel encrypts and forwards in software: no adapter stands behind it, and speeds mean
nothing."""
import collections
import json
import os
import pathlib
import shutil
import unittest

from guest import boot, folder_of
from harness import main

MODULES = (
    "aes_generic ctr ghash-generic sha512_generic "
    "jitterentropy_rng drbg gcm seqiv esp4 xfrm_user tls veth sch_ingress cls_flower act_gact"
)


class Encryption(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        base = folder_of(cls, "ip", "tc")
        init = pathlib.Path(__file__).with_name("encryption_init").read_text()
        files = [shutil.which("ip"), shutil.which("tc")]
        lines = boot(base, init, MODULES, [os.environ["HOST_TCP_BANDWIDTH"]], "-machine q35 -m 640", files)
        cls.records = collections.defaultdict(list)
        for line in lines:
            if line.startswith("record "):
                _, case, rank, text = line.split(" ", 3)
                cls.records[case, int(rank)].append(json.loads(text))

    def states(self, case):
        """The conditions of encryption of both ranks, which must be alike."""
        states = []
        for rank in (0, 1):
            lines = self.records[case, rank]
            self.assertEqual(lines[-1]["end"]["status"], "complete", lines[-1])
            conditions = {
                line["condition"]["name"]: line["condition"]["value"] for line in lines if "condition" in line
            }
            states.append((conditions.get("encryption"), conditions.get("encryption_offload")))
            for line in lines:
                if "measurement" in line and line["measurement"]["metric"] == "mismatches":
                    self.assertEqual(line["measurement"]["samples"], [0])
        self.assertEqual(states[0], states[1])
        return states[0]

    def test_filters_of_tc_offload_nothing_and_without_them_there_is_no_share(self):
        for rank in (0, 1):
            for case, expected in (("filter", (0, "tc")), ("no-filter", (None, None))):
                lines = self.records[case, rank]
                found = {line["condition"]["name"]: line["condition"]["value"] for line in lines if "condition" in line}
                self.assertEqual((found.get("offloaded_share"), found.get("offload_source")), expected, case)

    def test_a_stream_in_the_clear_is_not_encrypted(self):
        self.assertEqual(self.states("clear"), ("none", None))
        self.assertEqual(self.states("clear-off"), ("none", None))

    def test_tls_of_the_kernel_carries_every_byte_and_is_done_in_software(self):
        self.assertEqual(self.states("tls"), ("ktls", "none"))

    def test_ipsec_of_the_node_is_seen_by_its_counters_and_in_software(self):
        self.assertEqual(self.states("ipsec"), ("ipsec", "none"))

    def test_sockets_that_ipsec_passes_by_are_in_the_clear(self):
        self.assertEqual(self.states("ipsec-off"), ("none", None))


if __name__ == "__main__":
    main()
