"""Drives that a hypervisor makes up: virtio-blk and NVMe of a virtual machine, through the probes of storage and of drives. What is
written comes back whole, each drive is known by its serial number and kind, and every rate says that it is of no real drive."""
import pathlib
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "e2e")]
from guest import ProbeGuest  # noqa: E402
from harness import main  # noqa: E402

FIO = "--file-size 16MiB --samples 1 --runtime 300ms --ramp 50ms"
CHECKED = "checkpoint --size 16MiB --ranks 1 --repetitions 2"
DISK_B = 256 << 20
KINDS = {
    "nvme": ("nvme QEMU NVMe Ctrl, PCI 1b36:0010", "nvme0n1"),
    "virtio": ("virtio, PCI 1af4:1042", "vda"),
}
SERIALS = {"nvme0n1": "assay-nvme-0001", "vda": "assay-virtio-0002"}


class DrivesGuest(ProbeGuest):
    RUNS = {
        "inventory": "health_inventory",
        "health": "health_drive",
        **{
            f"{kind}_{what}": f"{line} --directory /{kind}"
            for kind in KINDS
            for what, line in {
                "bandwidth": f"storage_bandwidth --queue-depth 8 {FIO}",
                "iops": f"storage_iops --queue-depth 4 {FIO}",
                "checked": CHECKED,
            }.items()
        },
    }
    MACHINE = (
        "-machine q35 -m 1536"
        f" -drive file=nvme,format=raw,if=none,id=d0 -device nvme,drive=d0,serial={SERIALS['nvme0n1']}"
        f" -drive file=virtio,format=raw,if=none,id=d1 -device virtio-blk-pci,drive=d1,serial={SERIALS['vda']},disable-legacy=on"
    )
    MODULES = "virtio_pci virtio_blk nvme ext4 crc32c_generic"
    PROGRAMS = ("fio",)
    BEFORE = """for n in $(seq 100); do [ -b /dev/nvme0n1 ] && [ -b /dev/vda ] && break; sleep 0.1; done
mount -t ext4 /dev/nvme0n1 /nvme
mount -t ext4 /dev/vda /virtio
"""

    @classmethod
    def prepare(cls, base):
        for kind in KINDS:
            (base / "root" / kind).mkdir(parents=True)
            with open(base / kind, "wb") as disk:
                disk.truncate(DISK_B)
            subprocess.run(["mkfs.ext4", "-q", base / kind], check=True, timeout=60)

    def identity(self, run, name):
        """The values of a condition by drive."""
        return {
            one["condition"]["subject"]["drive"]: one["condition"]["value"]
            for one in self.lines[run]
            if one.get("condition", {}).get("name") == name and "drive" in one["condition"]["subject"]
        }

    def test_each_drive_is_known_by_its_serial_number(self):
        self.assertEqual(self.identity("inventory", "serial"), SERIALS)
        self.assertEqual(self.end("health")["status"], "complete")
        self.assertEqual(self.identity("health", "serial"), {"nvme0n1": SERIALS["nvme0n1"]})
        self.assertEqual(self.measured("health", "critical_warnings"), {(): [0]})

    def test_what_is_written_comes_back_past_the_page_cache(self):
        for kind in KINDS:
            for what in ("bandwidth", "iops", "checked"):
                run = f"{kind}_{what}"
                self.assertEqual(self.end(run)["status"], "complete", self.end(run))
                self.assertIs(self.condition(run, "direct_io"), True, run)
            self.assertEqual(self.measured(f"{kind}_checked", "mismatches"), {(): [0]})
            self.assertGreater(min(self.measured(f"{kind}_bandwidth", "read_bandwidth")[()]), 0)
            self.assertGreater(min(self.measured(f"{kind}_iops", "read_iops")[()]), 0)

    def test_its_kind_is_recorded_with_every_rate(self):
        for kind, (device_class, name) in KINDS.items():
            for what in ("bandwidth", "iops", "checked"):
                run = f"{kind}_{what}"
                self.assertEqual(self.condition(run, "device_class"), device_class, run)
                self.assertIn(name, self.condition(run, "device"), run)
                self.assertIs(self.condition(run, "emulated_drive"), True, run)
                self.assertEqual(self.lines[run][0]["start"]["host"]["hypervisor"], "QEMU")


if __name__ == "__main__":
    main()
