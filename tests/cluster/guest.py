"""A virtual machine (QEMU's TCG) with a kernel of Debian and programs of this machine, which does one script and ends. Kinds, paths,
placement and errors are those of real hardware; speeds of an emulated machine mean nothing."""
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))

HERE = pathlib.Path(__file__).parent
NEEDED = ("qemu-system-x86_64", "busybox", "cpio", "depmod", "apt-get", "dpkg")
FOLDERS = ("bin", "dev", "proc", "sys", "run", "tmp", "var/run/netns")
PATIENCE_S = 600  # the kernel comes by the network the first time, and 500 MB of it are kept
IMAGE_S = 1800  # the first time soft_roce builds an image on a slow machine
SKIPPED = 77
DONE = "guest: done"
# Nehalem, since with -cpu max TCG is three times slower; no_timer_check, since a busy machine's timer looks broken.
MACHINE = "-accel tcg,thread=multi -cpu Nehalem -smp 2 -nographic -no-reboot"
KERNEL_WORDS = "console=ttyS0 quiet panic=-1 mitigations=off nokaslr no_timer_check"


def folder_of(test, *programs):
    """A folder for `test`, which is skipped where one of `programs` is not installed."""
    absent = [program for program in (*NEEDED, *programs) if not shutil.which(program)]
    if absent:
        raise unittest.SkipTest(f"not installed: {' '.join(absent)}")
    base = pathlib.Path(tempfile.mkdtemp(prefix="assay-guest-", dir="/var/tmp"))
    test.addClassCleanup(shutil.rmtree, base)
    return base


def boot(base, init, modules, programs, machine, files=(), words="", suite="bookworm"):
    """The lines on the console of a machine of QEMU's options `machine`, whose first process is the script `init` of busybox; it prints
    DONE. It has `programs` in /bin, and `files` where they are here, with their libraries."""
    root = base / "root"
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "init").write_text(init)
    (root / "init").chmod(0o755)
    cache = pathlib.Path(os.environ.get("ASSAY_GUEST_CACHE", "/var/tmp/assay-guest")) / suite
    programs = shlex.join([shutil.which("busybox"), *map(str, programs)])
    shell = f"""set -e; fail() {{ echo "$*" >&2; exit 1; }}; . {HERE}/guest_kernel
mkdir -p {cache}; exec 9>{cache}/lock; flock 9
[ -e {cache}/vmlinuz ] && [ -d {cache}/kernel ] || guest_kernel {cache}/packages {cache} {suite}
guest_modules {cache} {root} {modules}
copy_programs {root} {programs} {shlex.join(map(str, files))}; cp {programs} {root}/bin/
cd {root} && find . | cpio --quiet -o -H newc >{root}.cpio"""
    subprocess.run(["bash", "-c", shell], check=True, timeout=PATIENCE_S)
    command = ["qemu-system-x86_64", *f"{MACHINE} {machine}".split(), "-kernel", cache / "vmlinuz"]
    command += ["-initrd", f"{root}.cpio", "-append", f"{KERNEL_WORDS} rdinit=/init {words}"]
    told = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "errors": "replace"}
    done = subprocess.run(command, cwd=base, timeout=PATIENCE_S, **told)
    lines = done.stdout.splitlines()
    if DONE not in lines:
        raise AssertionError("\n".join(["the guest did not do its work; it said last:", *lines[-9:], done.stderr]))
    return lines


def soft_roce(test, switch):
    """Boots the machines of soft_roce at a `switch`, until `test` ends; its `bed` is their folder, its `namespace` their network's."""
    script = HERE / "soft_roce"
    test.bed = pathlib.Path(f"/var/tmp/assay-soft-roce-{os.getpid()}")
    environment = dict(os.environ, ASSAY_SOFT_ROCE_SWITCH=switch)
    told = {"capture_output": True, "text": True, "timeout": IMAGE_S, "env": environment}
    up = subprocess.run([script, "up", test.bed], **told)
    if up.returncode == SKIPPED:
        raise unittest.SkipTest(up.stderr)
    if up.returncode != 0:
        raise AssertionError(up.stderr)
    test.namespace = up.stdout.strip().splitlines()[-1]
    test.addClassCleanup(subprocess.run, [script, "down", test.bed], timeout=60)


class ProbeGuest(unittest.TestCase):
    """The lines that each of RUNS (probe and flags, by name) recorded in a machine of its own."""

    RUNS, MACHINE, MODULES = {}, "", ""
    MORE = {}  # for boot()
    PROGRAMS = ()  # of this machine, taken along
    BEFORE = ""  # runs first

    @classmethod
    def prepare(cls, base):
        """Makes what MACHINE names below `base`, where QEMU runs."""

    @classmethod
    def setUpClass(cls):
        base = folder_of(cls, *cls.PROGRAMS)
        cls.prepare(base)
        probes = pathlib.Path(os.environ["ASSAY_E2E"]) / "libexec/assay/probes"
        programs = [probes / name for name in sorted({line.split()[0] for line in cls.RUNS.values()})]
        mounts = "mount -t proc x /proc\nmount -t sysfs x /sys\nmount -t devtmpfs x /dev\n"
        modules = "while read -r one; do insmod /modules/$one; done </modules/order\n"
        steps = "".join(f"echo '#{name}'\n{line}\n" for name, line in cls.RUNS.items())
        start = f"#!/bin/busybox sh\n/bin/busybox --install -s /bin\nexport PATH=/bin\n{mounts}{modules}"
        init = f"{start}{cls.BEFORE}{steps}echo '{DONE}'\npoweroff -f\n"
        programs += map(shutil.which, cls.PROGRAMS)
        cls.lines, name = {}, None
        for line in boot(base, init, cls.MODULES, programs, cls.MACHINE, **cls.MORE):
            if "#" in line and line.rsplit("#", 1)[-1] in cls.RUNS:
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
