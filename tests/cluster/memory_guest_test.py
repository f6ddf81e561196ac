"""Memory nodes of a virtual machine: one without CPUs, with distances and ratings (HMAT), and a CXL device of type 3. Placement and kinds
are those of real hardware; speeds of an emulated machine mean nothing, and the records say that it is a guest."""
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "e2e")]
from guest import ProbeGuest  # noqa: E402
from harness import main  # noqa: E402

QUICK = "--min-samples 6 --max-samples 6 --time-limit 1s --warmup-limit 10ms"
RUNS = {
    "health": "health_memory",
    "bound": f"host_memory_latency --memory-node tier --size 16MiB {QUICK}",
    "shared": f"host_memory_latency --memory-node 0-1 --policy interleave --size 16MiB {QUICK}",
    "loaded": f"host_loaded_latency --memory-node 1 --size 16MiB --array 16MiB --delays-ns 0,10000 {QUICK}",
    "too_large": f"host_memory_latency --memory-node 1 --size 4GiB {QUICK}",
    "no_cpus": f"host_memory_latency --cpu-node 1 --size 16MiB {QUICK}",
}
WEIGHTED = {
    "weighted": f"host_memory_latency --memory-node 0-1 --policy weighted_interleave --size 16MiB {QUICK}",
    "weighted_rate": f"host_memory_bandwidth --memory-node all --policy weighted_interleave --array 8MiB {QUICK}",
    "one_node": f"host_memory_latency --memory-node 1 --policy weighted_interleave --size 16MiB {QUICK}",
}
MACHINE = (
    "-machine q35,hmat=on -m 768M"
    " -object memory-backend-ram,id=m0,size=512M -object memory-backend-ram,id=m1,size=256M"
    " -numa node,nodeid=0,memdev=m0,cpus=0-1,initiator=0 -numa node,nodeid=1,memdev=m1,initiator=0"
    " -numa dist,src=0,dst=1,val=25"
    " -numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-latency,latency=300"
    " -numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-bandwidth,bandwidth=2000M"
)
CXL = (
    " -M cxl=on -object memory-backend-ram,id=c0,size=256M -object memory-backend-ram,id=labels,size=1M"
    " -device pxb-cxl,bus_nr=12,bus=pcie.0,id=cxl.1 -device cxl-rp,port=0,bus=cxl.1,id=rp,chassis=0,slot=2"
    " -device cxl-type3,bus=rp,memdev=c0,lsa=labels,id=tier -M cxl-fmw.0.targets.0=cxl.1,cxl-fmw.0.size=256M"
)


class MemoryGuest(ProbeGuest):
    RUNS, MACHINE = RUNS, MACHINE + CXL
    MODULES = "cxl_acpi cxl_pci cxl_mem"

    def test_kinds_distances_and_ratings_are_those_of_the_firmware(self):
        self.assertEqual(self.end("health")["status"], "complete")
        self.assertIn("1 without_cpus", self.condition("health", "memory_kinds"))
        self.assertEqual(self.measured("health", "numa_distance")[(("from", 0), ("to", 1))], [25])
        self.assertEqual(self.measured("health", "rated_read_bandwidth")[(("memory_node", 1),)], [2e9])
        self.assertIs(self.condition("health", "bare_metal"), False)

    def test_a_device_of_cxl_is_counted_and_what_it_does_not_answer_is_named(self):
        self.assertEqual(self.measured("health", "cxl_devices"), {(): [1]})
        self.assertIn("absent", self.condition("health", "cxl_health"))

    def test_bound_memory_is_on_the_node_without_cpus_and_of_its_rating(self):
        for run, pages in (("bound", 4096), ("loaded", 8192)):
            self.assertEqual(self.condition(run, "pages_by_node"), f"1: {pages}", run)
            self.assertEqual(self.condition(run, "misplaced_pages"), 0, run)
            self.assertEqual(self.condition(run, "memory_kind"), "without_cpus", run)
            self.assertEqual(self.condition(run, "rated_read_bandwidth"), 2e9, run)
            self.assertIs(self.condition(run, "bare_metal"), False, run)
        self.assertTrue(self.measured("bound", "local_latency"))
        self.assertEqual(len(self.measured("loaded", "rate")), 2)

    def test_interleaved_memory_is_on_both_nodes_alike(self):
        self.assertEqual(self.condition("shared", "pages_by_node"), "0: 2048, 1: 2048")
        self.assertEqual(self.condition("shared", "misplaced_pages"), 0)

    def test_a_size_beyond_the_node_is_cut_and_cores_that_it_lacks_are_a_skip(self):
        self.assertEqual(self.end("too_large")["status"], "complete")
        self.assertLess(self.condition("too_large", "size_bytes"), 256 << 20)
        self.assertEqual(self.condition("too_large", "misplaced_pages"), 0)
        self.assertEqual(self.end("no_cpus")["status"], "skip")
        self.assertIn("node 1 has no CPUs", self.end("no_cpus")["reason"])


class WeightedGuest(ProbeGuest):
    """A kernel that interleaves by weights, since 6.9; the CXL device of QEMU 7.2 does not show there."""

    RUNS, MACHINE = WEIGHTED, MACHINE
    MORE = {"suite": "bookworm-backports"}
    BEFORE = "echo 3 >/sys/kernel/mm/mempolicy/weighted_interleave/node0\n"

    def test_weights_share_pages_out_as_the_kernel_has_them(self):
        self.assertEqual(self.condition("weighted", "pages_by_node"), "0: 3072, 1: 1024")
        for run in ("weighted", "weighted_rate"):
            self.assertEqual(self.end(run)["status"], "complete", run)
            self.assertEqual(self.condition(run, "policy"), "weighted_interleave", run)
            self.assertEqual(self.condition(run, "weights"), "3:1", run)
            self.assertEqual(self.condition(run, "misplaced_pages"), 0, run)
        self.assertEqual(self.end("one_node")["status"], "skip")
        self.assertIn("over one node shares nothing out", self.end("one_node")["reason"])


if __name__ == "__main__":
    main()
