"""Memory nodes of a virtual machine: one without CPUs, with distances and ratings (HMAT), and a CXL device of type 3. Placement and kinds are those of real hardware; speeds of an
emulated machine mean nothing, and the records say that it is a guest."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))
from harness import main  # noqa: E402

HERE = pathlib.Path(__file__).parent
PROBES = pathlib.Path(os.environ["ASSAY_E2E"]) / "libexec/assay/probes"
NEEDED = ("qemu-system-x86_64", "busybox", "cpio", "depmod", "apt-get", "dpkg")
MODULES = "cxl_acpi cxl_pci cxl_mem"
CACHE = pathlib.Path(os.environ.get("ASSAY_MEMORY_GUEST_CACHE", "/var/tmp/assay-memory-guest"))  # 400 MB
PATIENCE_S = 600  # the kernel comes by the network the first time
QUICK = "--min-samples 6 --max-samples 6 --time-limit 1s --warmup-limit 10ms"
RUNS = {
    "health": "health_memory",
    "bound": f"host_memory_latency --memory-node tier --size 16MiB {QUICK}",
    "shared": f"host_memory_latency --memory-node 0-1 --policy interleave --size 16MiB {QUICK}",
    "loaded": f"host_loaded_latency --memory-node 1 --size 16MiB --array 16MiB --delays-ns 0,10000 {QUICK}",
    "too_large": f"host_memory_latency --memory-node 1 --size 4GiB {QUICK}",
    "no_cpus": f"host_memory_latency --cpu-node 1 --size 16MiB {QUICK}",
}
MOUNTS = "proc:/proc sysfs:/sys devtmpfs:/dev"
MACHINE = (
    "-machine q35,hmat=on,cxl=on,accel=tcg -smp 2 -m 768M -nographic -no-reboot"
    " -object memory-backend-ram,id=m0,size=512M -object memory-backend-ram,id=m1,size=256M"
    " -numa node,nodeid=0,memdev=m0,cpus=0-1,initiator=0 -numa node,nodeid=1,memdev=m1,initiator=0"
    " -numa dist,src=0,dst=1,val=25"
    " -numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-latency,latency=300"
    " -numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-bandwidth,bandwidth=2000M"
    " -object memory-backend-ram,id=c0,size=256M -object memory-backend-ram,id=labels,size=1M"
    " -device pxb-cxl,bus_nr=12,bus=pcie.0,id=cxl.1 -device cxl-rp,port=0,bus=cxl.1,id=rp,chassis=0,slot=2"
    " -device cxl-type3,bus=rp,memdev=c0,lsa=labels,id=tier -M cxl-fmw.0.targets.0=cxl.1,cxl-fmw.0.size=256M"
)


def guest(root):
    """An initrd that runs every line of RUNS, and its kernel."""
    for folder in ("bin", "dev", "proc", "sys"):
        (root / folder).mkdir(parents=True)
    names = sorted({line.split()[0] for line in RUNS.values()})
    programs = " ".join(str(PROBES / name) for name in names)
    steps = "".join(f"echo '#{name}'\n/bin/{line}\n" for name, line in RUNS.items())
    mounts = "".join(f"/bin/busybox mount -t {kind.replace(':', ' x ')}\n" for kind in MOUNTS.split())
    modules = "while read -r one; do /bin/busybox insmod /modules/$one; done </modules/order\n"
    (root / "init").write_text(f"#!/bin/busybox sh\n{mounts}{modules}{steps}/bin/busybox poweroff -f\n")
    (root / "init").chmod(0o755)
    shell = f"""set -e; fail() {{ echo "$*" >&2; exit 1; }}; . {HERE}/guest_kernel
[ -e {CACHE}/vmlinuz ] && [ -d {CACHE}/kernel ] || guest_kernel {CACHE}/packages {CACHE}
guest_modules {CACHE} {root} {MODULES}
copy_programs {root} {programs}; cp {programs} "$(command -v busybox)" {root}/bin/
cd {root} && find . | cpio --quiet -o -H newc >{root}.cpio"""
    subprocess.run(["bash", "-c", shell], check=True, timeout=PATIENCE_S)


class MemoryGuest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        absent = [program for program in NEEDED if not shutil.which(program)]
        if absent:
            raise unittest.SkipTest(f"not installed: {' '.join(absent)}")
        base = pathlib.Path(tempfile.mkdtemp(prefix="assay-memory-guest-", dir="/var/tmp"))
        cls.addClassCleanup(shutil.rmtree, base)
        guest(base / "root")
        command = ["qemu-system-x86_64", *MACHINE.split(), "-kernel", str(CACHE / "vmlinuz"), "-initrd"]
        command += [f"{base / 'root'}.cpio", "-append", "console=ttyS0 quiet panic=-1 rdinit=/init"]
        out = subprocess.run(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=PATIENCE_S).stdout
        cls.lines, name = {}, None
        for line in out.decode(errors="replace").splitlines():
            if "#" in line and line.rsplit("#", 1)[-1] in RUNS:
                name = line.rsplit("#", 1)[-1]  # before the first one the firmware clears the screen
            elif name and line.startswith('{"s'):
                cls.lines.setdefault(name, []).append(json.loads(line))

    def condition(self, run, name):
        found = [one["condition"]["value"] for one in self.lines[run] if one.get("condition", {}).get("name") == name]
        return found[0] if found else None

    def measured(self, run, metric):
        found = [one["measurement"] for one in self.lines[run] if one.get("measurement", {}).get("metric") == metric]
        return {tuple(sorted(one.get("at", {}).items())): one["samples"] for one in found}

    def end(self, run):
        return self.lines[run][-1]["end"]

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


if __name__ == "__main__":
    main()
