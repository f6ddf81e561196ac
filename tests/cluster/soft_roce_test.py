#!/usr/bin/env python3
"""The RDMA probes on real verbs: two emulated machines with soft-RoCE, reached over ssh, through `assay accept`.

Run by `ctest --preset dev -L softroce`. It builds its image once (see soft_roce) and boots two guests under TCG, which takes minutes, so it
stands outside of the default suite. Absolute speeds mean nothing there: the limits are far below what it does, and what is held to
account are paths, verified data, records and counters.
"""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import harness  # noqa: E402
from guest import soft_roce  # noqa: E402
from rdma_requirements import FAST, bandwidth, clean, latency, requirement  # noqa: E402

BED = pathlib.Path(__file__).with_name("soft_roce")
ACCEPT_S = 1200
CHECKPOINT_S = 300
# Two processes of guest 1, whose port talks to itself; the store is an ext4 in a file, for the guest's root does no direct I/O.
CHECKPOINT = """cd /root; A="--directory=/var/store --clients=processes --model=llama3-8b --divisor=20000 --tiers=memory,peer --lost=memory --threads=2
  --queue-depth=2 --chunk=1MiB --world=2 --rendezvous=127.0.0.1:5999 --token=0123456789abcdef0123456789abcdef --peer-transport=verbs"
"""


class SoftRoce(harness.Bench):
    @classmethod
    def setUpClass(cls):
        soft_roce(cls, "bridge")

    def accept_on_bed(self, *requirements, site=None):
        profile = self.write("profile.json", harness.profile(*requirements))
        return subprocess.run(
            [
                "ip",
                "netns",
                "exec",
                self.namespace,
                harness.BIN / "assay",
                "accept",
                "--profile",
                profile,
                "--site",
                site or self.bed / "site.json",
                "--out",
                self.run_directory,
            ],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=ACCEPT_S,
            stdin=subprocess.DEVNULL,
        )

    def records(self, probe):
        """Every record of `probe`, as lists of lines, by rank."""
        found = []
        for path in sorted((self.run_directory / "records").rglob("*.jsonl")):
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            if lines[0]["start"]["probe"] == probe:
                found.append((int(path.stem), lines))
        return found

    def conditions(self, lines):
        return {line["condition"]["name"]: line["condition"]["value"] for line in lines if "condition" in line}

    def measured(self, lines, metric):
        return [line["measurement"] for line in lines if line.get("measurement", {}).get("metric") == metric]

    def test_write_read_and_send_are_measured_verified_and_accepted(self):
        wanted = []
        for operation in ("write", "read", "send"):
            size = 65536
            for direction in ("forward", "backward", "both"):
                wanted.append(
                    bandwidth(f"{operation}-{direction}", f"bandwidth_{direction}", size, operation=operation, qps=2)
                )
            wanted.append(
                clean(
                    f"{operation}-data",
                    "verbs_bandwidth",
                    size,
                    {"sizes": str(size), **FAST, "operation": operation, "qps": 2},
                )
            )
            for statistic, severity in (
                ("p50", "required"),
                ("p999", "advisory"),
                ("max", "advisory"),
            ):  # emulated machines stand still now and then
                wanted.append(
                    latency(f"{operation}-{statistic}", f"latency_{statistic}", 8, operation=operation)
                    | {"severity": severity}
                )
            wanted.append(
                clean(
                    f"{operation}-latency-data",
                    "verbs_latency",
                    8,
                    {
                        "sizes": "8",
                        "messages": 100,
                        "batches": 10,
                        "warmup": 20,
                        "stall_limit": 30.0,
                        "ack_timeout": 1.0,
                        "operation": operation,
                    },
                )
            )
        done = self.accept_on_bed(*wanted)
        self.assertEqual(
            done.returncode, 0, done.stderr + done.stdout + json.dumps(list(self.reasons().items()), indent=1)
        )
        tails = {name for name, _ in self.outcomes() if name.endswith(("-p999", "-max"))}
        self.assertEqual({outcome for (name, _), outcome in self.outcomes().items() if name not in tails}, {"pass"})
        self.assertTrue(all(one.get("value") for one in self.verdict()["results"] if one["requirement"] in tails))
        self.assertEqual({node for _, node in self.outcomes()}, {"n01+n02"})
        for rank, lines in self.records("verbs_bandwidth"):
            seen = self.conditions(lines)
            self.assertEqual(seen["path"], "fabric")
            self.assertEqual(seen["transport"], "RoCE v2")
            self.assertEqual(seen["gid"], f"10.9.0.{rank + 1}")
            self.assertTrue(seen["peer"].endswith(f"10.9.0.{2 - rank}"), seen["peer"])
            self.assertEqual(seen["mtu"], 4096)
            self.assertGreater(seen["counters_read"], 0)
            self.assertIn("sent_pkts=", seen["counters_changed"])
            self.assertIn("retransmits", seen)
            self.assertNotIn("congestion_marks", seen)  # soft-RoCE has no such counter, and absence is no zero
        for rank, lines in self.records("verbs_latency"):
            if rank == 0:
                self.assertEqual(len(self.measured(lines, "latency")[0]["samples"]), 1000)
                self.assertEqual(
                    max(self.measured(lines, "latency")[0]["samples"]),
                    max(self.measured(lines, "latency_max")[0]["samples"]),
                )
        self.assertEqual(self.verify().returncode, 0)

    def site_with_a_plane(self, addresses=("10.9.0.1", "10.9.0.2")):
        site = json.loads((self.bed / "site.json").read_text())
        for node, address in zip(site["nodes"], addresses):
            node["planes"] = {
                "parameter": [{"device": "rxe0", "interface": "eth0", "address": address, "leaf": "leaf1"}]
            }
        return self.write("site.json", site)

    def on_the_plane(self, one):
        one["plane"] = "parameter"
        one["conditions"].append({"name": "gid", "site": "address"})
        return one

    def traffic(self, name, metric, limit, pattern="permutation", **more):
        """Flows between both guests; windows are long for emulated machines."""
        one = requirement(
            name,
            "verbs_traffic",
            metric,
            0,
            limit,
            {
                "pattern": pattern,
                "window": 0.5,
                "warmup": 2,
                "windows": 12,
                "qps": 2,
                "stall_limit": 30.0,
                "ack_timeout": 1.0,
            },
            **more,
        )
        del one["at"]
        one["scope"] = "cluster"
        return self.on_the_plane(one)

    def test_a_plane_is_measured_through_its_ports_pair_by_pair_and_all_at_once(self):
        done = self.accept_on_bed(
            self.on_the_plane(bandwidth("pair", "bandwidth_forward", 65536, directions="forward", qps=2)),
            self.traffic(
                "permutation", "together_bandwidth", {"at_least": 0.05, "unit": "B/s", "of": "metric:alone_bandwidth"}
            ),
            self.traffic(
                "incast",
                "aggregate_bandwidth",
                {"at_least": 0.5, "unit": "B/s", "of": "metric:alone_mean"},
                pattern="incast",
            ),
            self.traffic("exact", "mismatches", {"at_most": 0, "unit": "1"}, statistic="max", repeat={"n": 1}),
            site=self.site_with_a_plane(),
        )
        self.assertEqual(
            done.returncode, 0, done.stderr + done.stdout + json.dumps(list(self.reasons().items()), indent=1)
        )
        self.assertEqual(set(self.outcomes().values()), {"pass"})
        patterns = set()
        for rank, lines in self.records("verbs_traffic"):
            seen = self.conditions(lines)
            patterns.add(seen["pattern"])
            self.assertEqual((seen["path"], seen["gid"], seen["device"]), ("fabric", f"10.9.0.{rank + 1}", "rxe0/1"))
            if rank == 0 and seen["pattern"] == "permutation":
                self.assertEqual(
                    {one["subject"]["pair"] for one in self.measured(lines, "together_bandwidth")},
                    {f"{a}>{b}" for a, b in (self.hosts(), self.hosts()[::-1])},
                )
                self.assertTrue(seen["sends_to"].endswith("rxe0/1 10.9.0.2"), seen["sends_to"])
        self.assertEqual(patterns, {"permutation", "incast"})
        self.assertEqual(self.verify().returncode, 0)

    def hosts(self):
        """The guests' own names, by rank."""
        names = {rank: lines[0]["start"]["host"]["name"] for rank, lines in self.records("verbs_bandwidth")}
        return [names[rank] for rank in sorted(names)]

    def test_a_port_with_another_address_than_the_site_says_is_not_accepted(self):
        done = self.accept_on_bed(
            self.on_the_plane(bandwidth("pair", "bandwidth_forward", 65536, directions="forward", qps=2)),
            site=self.site_with_a_plane(("10.9.0.1", "10.9.0.3")),
        )
        self.assertEqual(done.returncode, 3, done.stderr + done.stdout)
        self.assertIn("10.9.0.3", self.reasons()[("pair", "n01+n02")])

    def test_lost_packets_show_in_the_counters_and_are_not_accepted(self):
        for number in ("1", "2"):
            subprocess.run(
                [BED, "run", self.bed, number, "modprobe sch_netem && tc qdisc replace dev eth0 root netem loss 0.5%"],
                check=True,
                timeout=60,
            )
            self.addCleanup(subprocess.run, [BED, "run", self.bed, number, "tc qdisc del dev eth0 root"], timeout=60)
        lossless = bandwidth("lossless", "bandwidth_forward", 65536, directions="forward", qps=2)
        lossless["conditions"].append({"name": "retransmits", "at_most": 0})
        done = self.accept_on_bed(lossless)
        self.assertEqual(done.returncode, 3, done.stderr + done.stdout)
        self.assertEqual(
            self.outcomes(), {("lossless", "n01+n02"): "inconclusive", ("exact-0", "n01+n02"): "inconclusive"}
        )
        self.assertRegex(self.reasons()[("lossless", "n01+n02")], r"repeated or lost \d+ packets, at most 0 is allowed")

    def test_a_port_that_goes_down_is_named_by_its_node(self):
        subprocess.run(
            [BED, "run", self.bed, "2", "ip link set eth0 mtu 4200; rdma link delete rxe0"], check=True, timeout=60
        )
        self.addCleanup(
            subprocess.run, [BED, "run", self.bed, "2", "rdma link add rxe0 type rxe netdev eth0"], timeout=60
        )
        done = self.accept_on_bed(bandwidth("fabric", "bandwidth_forward", 65536))
        self.assertEqual(done.returncode, 3, done.stderr + done.stdout)
        self.assertEqual(
            self.outcomes(), {("fabric", "n01+n02"): "not_measured", ("exact-0", "n01+n02"): "not_measured"}
        )
        self.assertIn("rank 1 on n02", self.reasons()[("fabric", "n01+n02")])
        self.assertIn("no RDMA device", self.reasons()[("fabric", "n01+n02")])

    def in_guest(self, command, given=None):
        return subprocess.run(
            [BED, "run", self.bed, "1", command], capture_output=True, input=given, timeout=CHECKPOINT_S
        )

    def with_a_store(self):
        probe = harness.BIN.parent / "libexec/assay/probes/checkpoint_cluster"
        made = self.in_guest(
            "set -e; cat >/root/checkpoint_cluster; chmod 755 /root/checkpoint_cluster; modprobe loop; truncate -s 120M /root/store; "
            "mke2fs -q -t ext4 /root/store; mkdir -p /var/store; mount -o loop /root/store /var/store",
            probe.read_bytes(),
        )
        self.assertEqual(made.returncode, 0, made.stderr)
        self.addCleanup(self.in_guest, "umount /var/store; rm -f /root/store")

    def test_copies_of_a_checkpoint_go_to_a_peers_memory_by_rdma_writes_and_come_back_whole(self):
        self.with_a_store()
        sent = "cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts; "
        done = self.in_guest(
            CHECKPOINT
            + f"{sent} ./checkpoint_cluster $A --repetitions=3 --rank=1 >other & ./checkpoint_cluster $A --repetitions=3 --rank=0; wait; {sent}"
        )
        words = done.stdout.decode().splitlines()
        before, after, lines = int(words[0]), int(words[-1]), [json.loads(line) for line in words[1:-1]]
        seen = self.conditions(lines)
        self.assertEqual(lines[-1]["end"]["status"], "complete", done)
        self.assertEqual(
            (seen["peer_transport"], seen["peer_port"], seen["served_by"]), ("RoCE v2", "rxe0/1 10.9.0.1", "peer")
        )
        for metric in ("mismatches", "fallbacks"):
            self.assertEqual(self.measured(lines, metric)[0]["samples"], [0.0])
        self.assertEqual(len(self.measured(lines, "time_to_peer")[0]["samples"]), 3)
        self.assertGreater(after - before, 3 * seen["checkpoint_size"] / 4096)  # the largest payload of a packet

    def shared_by_both(self):
        """A folder of this machine, mounted by both guests."""
        for number in ("1", "2"):
            subprocess.run(
                [
                    BED,
                    "run",
                    self.bed,
                    number,
                    "modprobe 9p && mkdir -p /var/shared && mount -t 9p -o trans=virtio,version=9p2000.L shared /var/shared",
                ],
                check=True,
                timeout=60,
            )
            self.addCleanup(subprocess.run, [BED, "run", self.bed, number, "umount /var/shared"], timeout=60)
        return "/var/shared"

    def copied(self, name, metric, limit, **more):
        one = requirement(
            name,
            "checkpoint_cluster",
            metric,
            0,
            limit,
            {
                "directory": self.shared,
                "model": "llama3-8b",
                "divisor": 20000,
                "tiers": "memory,peer",
                "lost": "memory",
                "threads": 2,
                "queue_depth": 2,
                "chunk": 1 << 20,
                "repetitions": 3,
                "peer_transport": "verbs",
            },
            **more,
        )
        one["scope"] = "cluster"
        one["conditions"] = [{"name": "peer_transport", "equals": "RoCE v2"}, {"name": "served_by", "equals": "peer"}]
        return one

    def test_copies_of_a_checkpoint_cross_the_fabric_between_two_machines_and_come_back_whole(self):
        self.shared = self.shared_by_both()
        none = {"at_most": 0, "unit": "1"}
        done = self.accept_on_bed(
            self.copied("mismatches", "mismatches", none, statistic="max", at="every", repeat={"n": 1}),
            self.copied("fallbacks", "fallbacks", none, statistic="max", at="every", repeat={"n": 1}),
            self.copied(
                "time_to_peer",
                "time_to_peer",
                {"at_most": 60.0, "unit": "s"},
                statistic="max",
                at="every",
                repeat={"n": 1},
            ),
        )
        self.assertEqual(
            done.returncode, 0, done.stderr + done.stdout + json.dumps(list(self.reasons().items()), indent=1)
        )
        records = self.records("checkpoint_cluster")
        self.assertEqual(
            {(rank, self.conditions(lines)["peer_port"]) for rank, lines in records},
            {(0, "rxe0/1 10.9.0.1"), (1, "rxe0/1 10.9.0.2")},
        )
        self.assertEqual(list((self.bed / "shared").iterdir()), [])
        self.assertEqual(self.verify().returncode, 0)

    def test_a_rank_killed_while_copies_go_to_its_memory_is_named_by_the_other(self):
        self.with_a_store()
        done = self.in_guest(
            CHECKPOINT + "./checkpoint_cluster $A --repetitions=1000 --rank=1 >other 2>&1 & victim=$!; "
            "(for i in $(seq 300); do ls -d /var/store/*/mark-1 && break; sleep 0.1; done >/dev/null 2>&1; sleep 2; kill -9 $victim) & "
            "timeout 60 ./checkpoint_cluster $A --repetitions=1000 --rank=0; echo $?; ls /var/store"
        )
        lines = done.stdout.decode().splitlines()
        self.assertEqual(lines[-2:], ["1", "lost+found"], done)
        self.assertRegex(
            json.loads(lines[-3])["end"]["reason"],
            r"^rank 1 \(127\.0\.0\.1:\d+\) vanished(: Connection reset by peer)?$",
        )


if __name__ == "__main__":
    harness.main()
