"""crossing_refused by RDMA CM, path query, queue pair and NVLink handle over made-up libraries and devices that answer or hold a try open: it ends within five
seconds of a stop, in every question of a try. Sockets: crossing_test."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from held import STOPPED, await_held, stop_held

PROBE = os.environ["ASSAY_CROSSING"]
LASTING = ("--tries=10", "--timeout=4s")  # and the pauses between them: longer than it may take to stop
DEADLINE_S = 60
ROCE, KEY = "0000:0000:0000:0000:0000:ffff:7f00:0001", "0x8005"
PORTS = {
    "fake0": {"link_layer": "Ethernet", "lid": "0x0", "gids/0": ROCE, "gid_attrs/types/0": "RoCE v2"},
    "mlx5_0": {"link_layer": "InfiniBand", "lid": "0x2a", "gids/0": "fe80::1", "pkeys/0": KEY},
}
WORDS = {
    "rdma_cm": ("--address=127.0.0.1", "--port=4420"),
    "ib_path": ("--address=fe80::2", f"--resource={KEY}"),
    "roce": ("--address=127.0.0.1", "--watched=on"),
    "nvlink": ("--watched=on",),
}
ANSWERS = {"rdma_cm": "RDMA CM: the connection was accepted", "ib_path": "the subnet manager gives a path"}
HELD = [
    ("rdma_cm", "address"),
    ("rdma_cm", "route"),
    ("rdma_cm", "request"),
    ("ib_path", "address"),
    ("ib_path", "route"),
]


class Stop(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            raise unittest.SkipTest("needs root, for a /sys of its own")
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="assay-crossing-stop-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.scratch)
        for device, facts in PORTS.items():
            port = self.scratch / "class" / "infiniband" / device / "ports" / "1"
            for name, text in {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec", **facts}.items():
                (port / name).parent.mkdir(parents=True, exist_ok=True)
                (port / name).write_text(text + "\n")
        (self.scratch / "notes").mkdir()

    def start(self, kind, rank=0, **more):
        words = [f"--class={kind}", "--path=p", *WORDS[kind], *LASTING]
        if kind in ("roce", "nvlink"):
            words.append(f"--resource={self.scratch}/notes")
        world = 3 if "--watched=on" in words else 2
        own = f'mount --bind {self.scratch}/class /sys/class && exec "$@"'
        process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", own, "sh"]
            + [PROBE, f"--rank={rank}", f"--world={world}", "--rendezvous=127.0.0.1:1", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "ASSAY_TOKEN": "ab" * 32, **more},
        )
        self.addCleanup(process.stdout.close), self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        return process

    def check_stops(self, *processes):
        for process in processes:
            await_held(process)
        for process in processes:
            out = stop_held(process)
            self.assertIn(STOPPED, out)
            self.assertNotIn("measurement", out)

    def manager(self, silent):
        return {"LD_PRELOAD": os.environ["FAKE_RDMA_CM"], "ASSAY_FAKE_RDMA_CM": silent}

    def test_each_question_of_a_connection_manager_ends_with_a_stop(self):
        for kind, question in HELD:
            with self.subTest(kind=kind, question=question):
                self.check_stops(self.start(kind, **self.manager(question)))

    def test_the_same_tries_are_answered_where_no_question_is_held(self):
        for kind, evidence in ANSWERS.items():
            with self.subTest(kind=kind):
                out, err = self.start(kind, **self.manager("")).communicate(timeout=DEADLINE_S)
                lines = [json.loads(line) for line in out.splitlines()]
                found = {one["condition"]["name"]: one["condition"]["value"] for one in lines if "condition" in one}
                self.assertEqual((found.get("outcome"), found.get("evidence")), ("answered", evidence), (out, err))

    def test_a_write_and_the_offer_of_memory_for_it_end_with_a_stop(self):
        fake = {"ASSAY_LIBRARY_PATH": os.environ["FAKE_VERBS"], "ASSAY_FAKE_VERBS": "lose"}
        self.check_stops(self.start("roce", 2, **fake), self.start("roce", 0, **fake))

    def test_the_wait_for_a_queue_pair_or_a_handle_and_its_offer_end_with_a_stop(self):
        self.check_stops(self.start("roce", ASSAY_LIBRARY_PATH=os.environ["FAKE_VERBS"]))
        for rank in (0, 2):  # one after the other: nobody's handle comes, and nobody takes the one that is offered
            with self.subTest(rank=rank):
                self.check_stops(self.start("nvlink", rank, ASSAY_LIBRARY_PATH=os.environ["FAKE_CUDA"]))
        self.assertEqual(list((self.scratch / "notes").iterdir()), [], "notes are left")


if __name__ == "__main__":
    unittest.main(verbosity=2)
