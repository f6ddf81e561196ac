#!/usr/bin/env python3
"""virtual_network between two virtual machines whose ports (virtio-net) are at Open vSwitch in user space: no adapter forwards, so that
the cell of the profile dpu-node fails. Run by `ctest --preset dev -C softroce -L softroce`; the machines are those of soft_roce.

A guest sees no counter of its switch: without those of the host there is no share, and the cell stays open. With them, handed into the
guests by ssh, the share is 0. The machines are emulated: their rates mean nothing, and the record says what they are."""
import json
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import harness  # noqa: E402
from guest import soft_roce  # noqa: E402

BED = pathlib.Path(__file__).with_name("soft_roce")
CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
ACCEPT_S = 600
CELL = "virtual.offload"
SHORT = {"window": 2, "min_samples": 3, "max_samples": 3}  # an emulated machine may take no packet for 100 ms
# What a site does that shows a guest the switch of its host: the program, and the socket of the switch behind it.
SHOW_SWITCH = """set -e
mkdir -p /mnt/shared /run/openvswitch
mount -t 9p -o trans=virtio,version=9p2000.L shared /mnt/shared
cat >/usr/local/bin/ovs-appctl <<'END'
#!/bin/sh
LD_LIBRARY_PATH=/mnt/shared exec /mnt/shared/ovs-appctl -t /run/openvswitch/host.ctl "$@"
END
chmod 755 /usr/local/bin/ovs-appctl
touch /run/openvswitch/ovs-vswitchd.pid"""


class SwitchedGuests(harness.Bench):
    @classmethod
    def setUpClass(cls):
        soft_roce(cls, "open_vswitch")

    def accept_cell(self):
        """The result of CELL, and the conditions and host of the record of each rank."""
        profile = {"schema": "assay.profile/1", "name": "guests", "title": "Guests", "revision": 1}
        judged = json.loads((CHECKOUT / "profiles/dpu-node.json").read_text())["requirements"]
        profile["requirements"] = [dict(one, parameters=SHORT) for one in judged if one["id"] == CELL]
        command = ["ip", "netns", "exec", self.namespace, harness.BIN / "assay", "accept"]
        command += ["--profile", self.write("profile.json", profile), "--site", self.bed / "site.json"]
        done = subprocess.run(
            [*command, "--out", self.run_directory],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=ACCEPT_S,
            stdin=subprocess.DEVNULL,
        )
        self.assertIn(done.returncode, (1, 3), done.stdout + done.stderr)
        results = [one for one in self.verdict()["results"] if one["requirement"] == CELL]
        self.assertEqual(len(results), 1, done.stdout + done.stderr)
        said = []
        for path in sorted((self.run_directory / "records").rglob("*.jsonl")):
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            self.assertEqual(lines[-1]["end"]["status"], "complete", lines[-1])
            conditions = {one["condition"]["name"]: one["condition"]["value"] for one in lines if "condition" in one}
            said.append((conditions, lines[0]["start"]["host"]))
        self.assertEqual(len(said), 2)
        return done, results[0], said

    def show_switch(self):
        """Hands the counters of the host's switch to both guests, until the test ends."""
        program = shutil.which("ovs-appctl")
        shutil.copy(program, self.bed / "shared")
        for line in subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.splitlines():
            if "=> /" in line and "/libc.so" not in line:
                shutil.copy(line.split()[2], self.bed / "shared")
        switch = self.bed / "switch"
        control = switch / f"ovs-vswitchd.{(switch / 'ovs-vswitchd.pid').read_text().strip()}.ctl"
        for number in (1, 2):
            subprocess.run([BED, "run", self.bed, str(number), SHOW_SWITCH], check=True, timeout=ACCEPT_S)
            forward = f"/run/openvswitch/host.ctl:{control}"
            ssh = ["ssh", "-N", "-o", "BatchMode=yes", "-o", "ExitOnForwardFailure=yes", "-o", "IdentitiesOnly=yes"]
            ssh += ["-o", f"UserKnownHostsFile={self.bed}/known_hosts", "-i", self.bed / "client_key", "-R", forward]
            forwarding = subprocess.Popen(["ip", "netns", "exec", self.namespace, *ssh, f"root@10.9.0.{number}"])
            self.addCleanup(forwarding.wait, 60)
            self.addCleanup(forwarding.terminate)
            until = "for i in $(seq 100); do ovs-appctl version && exit 0; sleep 1; done; exit 1"
            subprocess.run(
                [BED, "run", self.bed, str(number), until], check=True, timeout=ACCEPT_S, capture_output=True
            )

    def test_a_guest_alone_knows_no_share_and_a_switch_in_software_fails(self):
        done, result, said = self.accept_cell()
        self.assertEqual((done.returncode, result["outcome"]), (3, "not_measured"), done.stdout + done.stderr)
        for conditions, host in said:
            self.assertNotIn("offloaded_share", conditions)
            self.assertEqual((conditions["path"], host["hypervisor"]), ("fabric", "QEMU"))
        self.show_switch()
        shutil.rmtree(self.run_directory)
        done, result, said = self.accept_cell()
        self.assertEqual((done.returncode, result["outcome"]), (1, "fail"), done.stdout + done.stderr)
        self.assertIn("The adapter's hardware forwarded 0 %", result["reason"])
        for conditions, host in said:
            self.assertEqual((conditions["offloaded_share"], conditions["offload_source"]), (0, "ovs"))
            self.assertEqual((conditions["path"], host["hypervisor"]), ("fabric", "QEMU"))


if __name__ == "__main__":
    harness.main()
