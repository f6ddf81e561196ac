"""crossing_refused between tenants in network namespaces: behind a router with nftables, over a bridge, and at services that refuse by themselves (NFS, S3). Each
leak is found, no closed path is accused, a filter that drops is no refusal, and nothing is sent but to the declared addresses."""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

from held import STOPPED, stop_held
from tenant_fabric import (
    BY_ITSELF,
    DEADLINE_S,
    DEAF,
    HOSTS,
    MISSING,
    MUTE,
    ONLY_IPV4,
    PORTS,
    Fabric,
    Sniffer,
    address_of,
    on_link,
)

PROBE = os.environ["ASSAY_CROSSING"]
ROUNDS = int(os.environ.get("ASSAY_CROSSING_ROUNDS", "2"))
FAKE_CUDA = os.environ["FAKE_CUDA"]
TOKEN = "ab" * 32
# Red's own export, the folder in which it looks for the handle, outcome and evidence.
HANDLES = [
    ("/near", "notes", "answered", "NFS gave its attributes by a handle mixed with that of /near"),
    ("/apart", "notes", "refused", "/apart has another fsid"),
    ("", "notes", "refused", "its handle: NFS4ERR_"),
    ("/near", "elsewhere", "unclear", "no handle of it came into"),
]
AT_ONCE = 20  # cases that take seconds and mostly wait
LASTING = ("--tries=10", "--timeout=4s")  # and the pauses between them: longer than it may take to stop


def words_of(kind, rank, scratch, leak=False, ipv6=False):
    """The path of this class, as a plan gives it to a rank."""
    owner = "blue" if leak or rank == 1 else "red"
    more = {
        "nfs": ["--resource=/leak" if leak else "--resource=/closed"],
        "s3": ["--resource=bucket", "--region=us-east-1", f"--credentials={scratch}/{owner}.json"],
        "udp": ["--resource=assay"],
        "metadata": ["--resource=/latest/meta-data/"],
        "bmc_redfish": ["--resource=/redfish/v1/"],
    }
    address = on_link("blue2", ipv6) if kind == "l2" else address_of(HOSTS.get(kind, "bmc"), ipv6)
    return [
        f"--class={kind}",
        f"--path={kind}-path",
        f"--address={address}",
        f"--port={PORTS.get(kind, 0)}",
        *more.get(kind, []),
    ]


class Crossing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("needs root, for namespaces")
        for program in ("nft", "ip", "nsenter", "openssl", "/usr/sbin/sshd"):
            if shutil.which(program) is None:
                raise unittest.SkipTest(f"{program} is not installed: apt-get install nftables openssh-server")
        for kind, program in MISSING.items():
            print(
                f"not tried: {kind}, {program} is not installed: apt-get install nfs-ganesha nfs-ganesha-vfs openipmi"
            )
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="assay-crossing-", dir="/var/tmp"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch, True)
        cls.fabric = Fabric(cls.scratch)
        cls.addClassCleanup(cls.fabric.close)
        cls.fabric.filter("drop")
        deadline = time.monotonic() + DEADLINE_S
        last = (("nfs", False), ("s3", False), ("s3", True), ("bmc_ipmi", False), ("bmc_ssh", True))  # to begin
        while any(cls.tried(kind, False, v6)[1]["tried"] != "control answered" for kind, v6 in last if kind in PORTS):
            if time.monotonic() > deadline:
                raise RuntimeError(f"a service does not answer its own tenant: {[cls.tried(k) for k in PORTS]}")
            time.sleep(0.2)

    @classmethod
    def start(cls, name, rank, words, world=2, token=TOKEN, **more):
        return subprocess.Popen(
            [*cls.fabric.enter(name), PROBE, f"--rank={rank}", f"--world={world}", "--rendezvous=127.0.0.1:1", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "ASSAY_TOKEN": token, **more},
        )

    @classmethod
    def tried(cls, kind, leak=False, ipv6=False, more=("--timeout=700ms", "--tries=1")):
        """The conditions that both ranks record, and the measurements of rank 0 among its own."""
        control = "mgmt1" if HOSTS.get(kind, "bmc") == "bmc" and kind != "l2" else "blue1"
        ranks = [
            cls.start(name, rank, [*words_of(kind, rank, cls.scratch, leak, ipv6), *more])
            for rank, name in enumerate(("red1", control))
        ]
        return cls.records_of(kind, ranks)

    @classmethod
    def watched(cls, kind, port, ipv6):
        """The same of red1, blue1 and the watching target blue2."""
        address = address_of("blue2", ipv6)
        words = [f"--class={kind}", f"--path={kind}-path", f"--address={address}", f"--port={port}", "--watched=on"]
        words += ["--resource=assay", "--timeout=700ms", "--tries=1"]
        token = os.urandom(32).hex()  # ports follow from it
        ranks = [cls.start(name, rank, words, 3, token) for rank, name in enumerate(("red1", "blue1", "blue2"))]
        return cls.records_of(kind, ranks)

    @staticmethod
    def records_of(kind, ranks):
        found = []
        for process in ranks:
            out, err = process.communicate(timeout=DEADLINE_S)
            if process.returncode != 0:
                raise RuntimeError(f"{kind}: exit code {process.returncode}: {out}{err}")
            lines = [json.loads(line) for line in out.splitlines()]
            record = {one["condition"]["name"]: one["condition"]["value"] for one in lines if "condition" in one}
            record.update({one["measurement"]["metric"]: one["measurement"] for one in lines if "measurement" in one})
            found.append(record)
        return found

    def all_tried(self, leak=False, versions=(False, True)):
        """By class and whether over IPv6: the crossing and the control, all at the same time."""
        cases = [(kind, ipv6) for ipv6 in versions for kind in PORTS if not (ipv6 and kind in ONLY_IPV4)]
        with concurrent.futures.ThreadPoolExecutor(len(cases)) as pool:
            return dict(zip(cases, pool.map(lambda case: self.tried(case[0], leak, case[1]), cases)))

    def test_each_leak_is_found_and_named(self):
        self.fabric.filter("drop", leaks=PORTS)
        for (kind, ipv6), (crossing, control) in self.all_tried(leak=True).items():
            with self.subTest(kind=kind, ipv6=ipv6):
                self.assertEqual(control["tried"], "control answered", control)
                self.assertEqual((crossing["tried"], crossing["outcome"]), ("crossing", "answered"), crossing)
                self.assertEqual(crossing["answered"]["samples"], [1])
                self.assertEqual(crossing["answered"]["at"], {"path": f"{kind}-path"})

    def check_watched(self, leaks, replies, expected):
        """`expected`: by class, port and whether over IPv6, the outcome at red1, the word of blue1, and whether red1 arrived at blue2."""
        self.fabric.filter("drop", leaks=leaks, replies=replies)
        with concurrent.futures.ThreadPoolExecutor(len(expected)) as pool:
            for key, found in zip(expected, pool.map(lambda key: self.watched(*key), expected)):
                outcome, control, arrived = expected[key]
                with self.subTest(key=key, leaks=leaks):
                    self.assertEqual((found[0]["outcome"], found[1]["tried"]), (outcome, control), found)
                    self.assertEqual(found[2]["tried"], "control seen", found)
                    self.assertEqual(found[2]["answered"]["samples"], [1 if arrived else 0], found)
                    self.assertEqual(found[2]["answered"]["at"], found[0]["answered"]["at"])
                    self.assertIn(address_of("red1", key[2]) if arrived else "nothing", found[2]["evidence"])

    def test_what_arrives_at_a_watching_target_is_a_leak_though_nothing_comes_back(self):
        one_way = {
            ("tcp", 8080, False): ("no_answer", "control answered", True),
            ("tcp", 8080, True): ("no_answer", "control answered", True),
            ("udp", 9000, False): ("no_answer", "control answered", True),
            ("udp", 9000, True): ("no_answer", "control answered", True),
            ("udp", DEAF, False): ("no_answer", "control sent", True),
        }
        self.check_watched(("tcp", "udp", "deaf"), "drop", one_way)

    def test_a_gateway_whose_entry_in_the_kernel_is_old_is_not_dead(self):
        self.fabric.filter("drop", leaks=("udp",), replies="drop")
        entries = "/proc/sys/net/ipv6/neigh/*"
        age = f"for one in {entries}; do echo 100 > $one/base_reachable_time_ms; echo 0 > $one/delay_first_probe_time; done"
        self.fabric.at("red1", "sh", "-c", f"{age}; ip -6 neigh flush all")
        crossing = self.watched("udp", 9000, True)[0]
        self.assertEqual((crossing["outcome"], crossing["evidence"]), ("no_answer", "nothing came back"))

    def test_a_watching_target_accuses_no_closed_path(self):
        closed = {
            ("tcp", 8080, False): ("no_answer", "control answered", False),
            ("kubelet", 10250, True): ("no_answer", "control answered", False),
            ("udp", DEAF, False): ("no_answer", "control sent", False),
            ("udp", DEAF, True): ("no_answer", "control sent", False),
        }
        self.check_watched((), "accept", closed)

    def test_a_datagram_that_the_target_itself_drops_has_not_arrived(self):
        rule = "table inet own { chain in { type filter hook input priority 0; ip saddr 10.3.0.2 drop; }; }"
        self.fabric.at("blue2", "nft", rule)
        self.addCleanup(self.fabric.at, "blue2", "nft", "delete", "table", "inet", "own")
        self.check_watched(("udp", "tcp"), "accept", {("udp", 9000, False): ("no_answer", "control answered", False)})

    def test_one_leak_opens_no_other_path(self):
        for leak in PORTS:
            if leak in ("nfs", "s3"):
                continue
            self.fabric.filter("reject", leaks=[leak])
            for (kind, _), (crossing, _) in self.all_tried(versions=(False,)).items():
                with self.subTest(leak=leak, kind=kind):
                    self.assertEqual(crossing["outcome"] == "answered", kind == leak, crossing)

    def test_no_closed_path_is_accused_and_a_drop_is_no_refusal(self):
        for number in range(ROUNDS):
            verdict = ("drop", "reject")[number % 2]
            self.fabric.filter(verdict)
            for (kind, ipv6), (crossing, control) in self.all_tried().items():
                with self.subTest(number=number, verdict=verdict, kind=kind, ipv6=ipv6):
                    self.assertEqual(control["tried"], "control answered", control)
                    self.assertEqual(crossing["answered"]["samples"], [0])
                    silent = kind == "l2" or (verdict == "drop" and kind not in BY_ITSELF)
                    self.assertEqual(crossing["outcome"], "no_answer" if silent else "refused", crossing)
                    self.assertEqual(crossing["unrefused"]["samples"], [1 if silent else 0])
                    if kind in BY_ITSELF:
                        self.assertIn(BY_ITSELF[kind], crossing["evidence"])
                    elif kind in ("udp", "bmc_ipmi") and not silent:
                        refusal = "ICMPv6 type 1 code 1 from fd00:3::1" if ipv6 else "ICMP type 3 code 13 from 10.3.0.1"
                        self.assertEqual(crossing["evidence"], refusal)
        self.assertEqual([path.name for path in (self.scratch / "objects").iterdir()], ["secret"])
        self.assertEqual([path.name for path in (self.scratch / "closed").iterdir()], ["secret"])

    def of_memory(self, leak):
        """nvlink over a made-up driver of GPUs, which imports a handle of the other tenant or not, and what memory_residue finds on such a GPU."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.scratch))
        words = [
            "--class=nvlink",
            "--path=nvlink-path",
            f"--resource={folder}",
            "--watched=on",
            "--tries=1",
            "--timeout=700ms",
        ]
        token, ranks = os.urandom(32).hex(), []
        for rank, name in enumerate(("red1", "blue1", "blue2")):
            fault = "foreign_refused" if rank == 0 and not leak else ""
            ranks.append(self.start(name, rank, words, 3, token, ASSAY_LIBRARY_PATH=FAKE_CUDA, ASSAY_FAKE_CUDA=fault))
        residue = {
            "ASSAY_LIBRARY_PATH": FAKE_CUDA,
            "ASSAY_FAKE_CUDA": "residue" if leak else "",
            "ASSAY_FAKE_CUDA_GPUS": "1",
        }
        done = subprocess.run(
            [os.environ["MEMORY_RESIDUE"], "--memory=gpu", "--size=4MiB"],
            env={**os.environ, **residue, "ASSAY_FAKE_CUDA_LEFT": str(folder / "left")},
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        pages = [
            sum(one["measurement"]["samples"])
            for one in lines
            if one.get("measurement", {}).get("metric") == "residue_pages"
        ]
        return self.records_of("nvlink", ranks), pages

    def test_memory_of_another_tenant_is_found_in_every_round_and_only_where_it_is_open(self):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            leaks = [number % 2 == 0 for number in range(2 * ROUNDS)]
            for leak, ((crossing, control, target), pages) in zip(leaks, pool.map(self.of_memory, leaks)):
                with self.subTest(leak=leak):
                    self.assertEqual(
                        (control["tried"], target["tried"]), ("control answered", "control offered"), control
                    )
                    self.assertEqual(crossing["outcome"], "answered" if leak else "refused", crossing)
                    self.assertEqual(crossing["answered"]["samples"], [1 if leak else 0])
                    self.assertEqual(pages, [1 if leak else 0])

    def begin_by_handle(self, own, folder, *more):
        """Both ranks at /closed, by its name and its file handle, which red looks for in `folder`; `own` is an export of red or none ("")."""
        words = ["--class=nfs", "--path=nfs-path", "--address=10.6.0.2", "--port=2049", "--resource=/closed", *more]
        words += [f"--own-export={own}"] if own else []
        token = os.urandom(32).hex()
        return [
            self.start(name, rank, [*words, f"--folder={self.scratch / of_rank}"], 2, token)
            for rank, (name, of_rank) in enumerate((("red1", folder), ("blue1", "notes")))
        ]

    def by_handle(self, own, folder):
        return self.records_of("nfs", self.begin_by_handle(own, folder, "--tries=1", "--timeout=700ms"))

    @unittest.skipIf("nfs" in MISSING, "nfs-ganesha is not installed")
    def test_a_handle_leads_into_the_export_only_beside_one_in_the_same_file_system(self):
        self.fabric.filter("drop")
        cases = HANDLES * ROUNDS
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for case, (crossing, control) in zip(cases, pool.map(lambda case: self.by_handle(*case[:2]), cases)):
                own, folder, outcome, evidence = case
                with self.subTest(own=own, folder=folder):
                    self.assertEqual(control["tried"], "control answered", control)
                    self.assertEqual(crossing["outcome"], outcome, crossing)
                    self.assertEqual(crossing["answered"]["samples"], [1 if outcome == "answered" else 0])
                    self.assertTrue(crossing["evidence"].startswith(BY_ITSELF["nfs"]), crossing)
                    self.assertIn(evidence, crossing["evidence"])
        self.assertEqual(list((self.scratch / "notes").iterdir()), [], "notes are left")

    def test_a_control_that_is_not_answered_says_so(self):
        self.fabric.filter("drop")
        words = ["--class=tcp", "--path=p", "--address=10.2.0.2", "--port=8081", "--tries=1", "--timeout=700ms"]
        control = self.start("blue1", 1, words)
        self.assertIn('"control refused"', control.communicate(timeout=DEADLINE_S)[0])

    def unclear(self, kind, change, back, words):
        """After `change` in red1's namespace or the router's, which `back` takes back, the attempt is unclear for that reason."""
        self.fabric.at(*change)
        self.addCleanup(self.fabric.at, *back)
        crossing, control = self.tried(kind)
        self.assertEqual(control["tried"], "control answered", control)
        self.assertEqual(crossing["outcome"], "unclear", crossing)
        self.assertIn(words, crossing["evidence"])

    def test_a_node_without_a_route_is_unclear_and_not_silent(self):
        route = ("default", "via", "10.3.0.1")
        self.unclear(
            "tcp", ("red1", "ip", "route", "del", *route), ("red1", "ip", "route", "add", *route), "unreachable"
        )

    def test_a_node_without_a_carrier_is_unclear_and_not_silent(self):
        link = ("router", "ip", "link", "set", "l2-red1")
        self.unclear("l2", (*link, "down"), (*link, "up"), "interface eth1 has no carrier")

    def test_a_node_whose_gateway_is_gone_is_unclear_and_not_silent(self):
        link = ("router", "ip", "link", "set", "to3", "arp")
        self.fabric.at("red1", "ip", "neigh", "flush", "all")
        self.unclear("udp", (*link, "off"), (*link, "on"), "its gateway 10.3.0.1 does not answer")

    def test_a_filter_of_the_node_itself_is_no_refusal_by_another(self):
        for kind, rule in (("udp", "udp dport 9000 reject"), ("tcp", "tcp dport 8080 reject")):
            with self.subTest(kind=kind):
                table = f"table inet own_{kind} {{ chain out {{ type filter hook output priority 0; {rule}; }}; }}"
                back = ("red1", "nft", "delete", "table", "inet", f"own_{kind}")
                self.unclear(kind, ("red1", "nft", table), back, "nothing left this node")

    def check_stops(self, process):
        self.addCleanup(process.kill)
        self.assertIn(STOPPED, stop_held(process))

    def test_it_stops_when_nothing_comes_back(self):
        self.fabric.filter("drop")
        for kind in PORTS:  # at an address of storage that the router drops, since all tenants reach the service
            words = [word.replace("10.6.0.2", "10.6.0.3") for word in words_of(kind, 0, self.scratch)]
            with self.subTest(kind=kind):
                self.check_stops(self.start("red1", 0, [*words, *LASTING]))
        words = [*words_of("udp", 2, self.scratch), "--watched=on", *LASTING]
        self.check_stops(self.start("blue2", 2, words, 3))

    def test_it_stops_when_a_service_accepts_and_says_nothing(self):
        for kind in ("nfs", "s3", "metadata", "bmc_redfish"):
            there = ("--address=10.", "--port=")
            words = [word for word in words_of(kind, 0, self.scratch) if not word.startswith(there)]
            words += [f"--address={address_of('blue2')}", f"--port={MUTE}", *LASTING]
            with self.subTest(kind=kind):
                self.check_stops(self.start("blue1", 0, words))

    @unittest.skipIf("nfs" in MISSING, "nfs-ganesha is not installed")
    def test_it_stops_while_a_handle_is_offered_or_waited_for(self):
        self.fabric.filter("drop")
        for process in self.begin_by_handle("/near", "elsewhere", *LASTING):
            self.check_stops(process)
        self.assertEqual(list((self.scratch / "notes").iterdir()), [], "notes are left")

    def test_nothing_is_sent_but_to_the_declared_addresses(self):
        self.fabric.filter("drop")
        sniffer = Sniffer(self.fabric, "red1", "eth0", "eth1")
        tried = self.all_tried()
        for ipv6 in (False, True):
            self.watched("udp", 9000, ipv6)
        if "nfs" in PORTS:
            self.by_handle("/near", "notes")
        seen = sniffer.stop()
        declared = {
            ("udp" if kind in ("udp", "bmc_ipmi") else "tcp", address_of(HOSTS.get(kind, "bmc"), ipv6), PORTS[kind])
            for kind, ipv6 in tried
            if kind != "l2"
        }
        way = {("arp", "10.3.0.1", 0), ("nd", "fd00:3::1", 0), ("nd", "fe80::1", 0)}
        declared |= {("arp", on_link("blue2"), 0), ("nd", on_link("blue2", True), 0)}
        self.assertLessEqual(seen, declared | way)
        self.assertLessEqual(declared, seen, "each attempt leaves the node")


if __name__ == "__main__":
    unittest.main(verbosity=2)
