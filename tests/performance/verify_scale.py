"""verify_scale: what `assay-report verify` costs for a dossier of many results, beside the check of the same dossier that VERIFY.txt gives for
openssl, jq and coreutils, which judges nothing again.

usage: verify_scale.py BUILD [NODES [REQUIREMENTS]]     (300 and 1000: 300,000 results); needs root

The nodes are namespaces of this machine behind a stand-in for ssh, each with a host name and boot id of its own; the probe is the test's.
"""
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

ROUNDS = 3
KEY = "ssh-ed25519 " + "A" * 68
SSH = """#!/bin/sh
for word in "$@"; do
  case "$word" in *node*.invalid) name=${word##*@}; name=${name%%.*};; esac
  COMMAND=$word
done
export COMMAND
cat /proc/sys/kernel/random/uuid > FOLDER/boot-$name
exec unshare --mount --uts sh -c "mount --make-rprivate /; hostname $name; mount --bind FOLDER/boot-$name /proc/sys/kernel/random/boot_id;"' exec /bin/sh -c "$COMMAND"'
"""


def documents(folder, nodes, requirements):
    names = [f"node{i:04}" for i in range(nodes)]
    (folder / "site.json").write_text(
        json.dumps(
            {
                "schema": "assay.site/1",
                "name": "many",
                "nodes": [
                    {
                        "name": name,
                        "launcher": "ssh",
                        "address": f"{name}.invalid",
                        "host_key": KEY,
                        "directory": str(folder / "agents" / name),
                    }
                    for name in names
                ],
            }
        )
    )
    for name in names:
        (folder / "agents" / name).mkdir(parents=True)
    (folder / "profile.json").write_text(
        json.dumps(
            {
                "schema": "assay.profile/1",
                "name": "many",
                "title": "Many results",
                "revision": 1,
                "relative_only": "made up",
                "requirements": [
                    {
                        "id": f"r{i:04}",
                        "title": f"Number {i}",
                        "probe": "fake_probe",
                        "parameters": {"value": 100},
                        "metric": "number",
                        "scope": "node",
                        "statistic": "min",
                        "limit": {"at_least": 50 + i / 100, "unit": "1"},
                        "repeat": {"n": 1, "attempts": 1, "more_attempts": 0},
                        "source": {"document": "made up", "status": "sourced"},
                    }
                    for i in range(requirements)
                ],
            }
        )
    )


def run_in(folder, build, environment):
    words = [
        build / "e2e/bin/assay",
        "accept",
        "--profile",
        folder / "profile.json",
        "--site",
        folder / "site.json",
        "--out",
        folder / "run",
    ]
    done = subprocess.run([str(word) for word in words], env=environment, capture_output=True, text=True, timeout=3600)
    if done.returncode != 0:
        sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
    return re.search(r"(\d+) of \d+ required cells pass", done.stdout)[0]


def timed(words, cwd):
    """Wall and CPU time in s."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(words, cwd=cwd, check=True, capture_output=True, timeout=3600)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - begin, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    nodes, requirements = (int(word) for word in (sys.argv[2:] + ["300", "1000"][len(sys.argv) - 2 :]))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-verify-"))
    try:
        documents(folder, nodes, requirements)
        tools = folder / "tools"
        tools.mkdir()
        (tools / "ssh").write_text(SSH.replace("FOLDER", shlex.quote(str(folder))))
        (tools / "ssh").chmod(0o755)
        environment = dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}", XDG_STATE_HOME=str(folder / "state"))
        print(run_in(folder, build, environment))
        dossier, key = folder / "run/dossier", folder / "state/assay/machine.key.pub"
        lines = [line[4:] for line in (dossier / "VERIFY.txt").read_text().splitlines() if line.startswith("    ")]
        by_hand = folder / "by_hand"
        by_hand.write_text(f"SIGNER={shlex.quote(str(key))}\n" + "\n".join(lines) + "\n")
        size = sum(path.stat().st_size for path in dossier.rglob("*") if path.is_file())
        print(f"dossier of {size / 1e6:.0f} MB; wall and CPU time in s")
        for _ in range(ROUNDS):
            wall, cpu = timed([str(build / "bin/assay-report"), "verify", ".", "--key", str(key)], dossier)
            hand_wall, hand_cpu = timed(["sh", str(by_hand)], dossier)
            print(
                f"verify {wall:.1f} {cpu:.1f}   VERIFY.txt {hand_wall:.1f} {hand_cpu:.1f}   ratio {wall / hand_wall:.2f} {cpu / hand_cpu:.2f}"
            )
    finally:
        shutil.rmtree(folder)


main()
