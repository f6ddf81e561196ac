"""crossing_refused by RDMA CM, path query, queue pair and NVLink handle over made-up libraries and devices that answer or hold a try open: it ends within five
seconds of a stop, in every question of a try. Sockets: crossing_test."""
import os

from held import STOPPED, await_held, stop_held
from harness import main
from made_up_ports import MadeUpPorts, manager

LASTING = ("--tries=10", "--timeout=4s")  # and the pauses between them: longer than it may take to stop
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


class Stop(MadeUpPorts):
    ports = PORTS

    def start(self, kind, rank=0, **more):
        words = [f"--class={kind}", "--path=p", *WORDS[kind], *LASTING]
        if kind in ("roce", "nvlink"):
            words.append(f"--resource={self.notes}")
        return self.begin(rank, words, world=3 if "--watched=on" in words else 2, **more)

    def check_stops(self, *processes):
        for process in processes:
            await_held(process)
        for process in processes:
            out = stop_held(process)
            self.assertIn(STOPPED, out)
            self.assertNotIn("measurement", out)

    def test_each_question_of_a_connection_manager_ends_with_a_stop(self):
        for kind, question in HELD:
            with self.subTest(kind=kind, question=question):
                self.check_stops(self.start(kind, **manager(question)))

    def test_the_same_tries_are_answered_where_no_question_is_held(self):
        for kind, evidence in ANSWERS.items():
            with self.subTest(kind=kind):
                found = self.record_of(self.start(kind, **manager("")))
                self.assertEqual((found.get("outcome"), found.get("evidence")), ("answered", evidence), found)

    def test_a_write_and_the_offer_of_memory_for_it_end_with_a_stop(self):
        fake = {"ASSAY_LIBRARY_PATH": os.environ["FAKE_VERBS"], "ASSAY_FAKE_VERBS": "lose"}
        self.check_stops(self.start("roce", 2, **fake), self.start("roce", 0, **fake))

    def test_the_wait_for_a_queue_pair_or_a_handle_and_its_offer_end_with_a_stop(self):
        self.check_stops(self.start("roce", ASSAY_LIBRARY_PATH=os.environ["FAKE_VERBS"]))
        for rank in (0, 2):  # one after the other: nobody's handle comes, and nobody takes the one that is offered
            with self.subTest(rank=rank):
                self.check_stops(self.start("nvlink", rank, ASSAY_LIBRARY_PATH=os.environ["FAKE_CUDA"]))
        self.assertEqual(list(self.notes.iterdir()), [], "notes are left")


if __name__ == "__main__":
    main()
