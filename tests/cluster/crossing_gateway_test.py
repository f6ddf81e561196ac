"""crossing_refused of class s3 at a real store: the object gateway of Ceph with two tenants. A bucket is closed to the other tenant's key until a policy or an access
list opens it; of a key that the gateway does not know nothing is judged."""
import json
import os
import subprocess

from clients import PROBES, Servers, main_beside_servers
from harness import main
from rados_gateway_test import ENDPOINT

ROUNDS = int(os.environ.get("ASSAY_CROSSING_ROUNDS", "20"))
TENANTS, UNKNOWN = ("blue", "red"), "unknown"
BUCKET = "of-blue"
POLICY = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"AWS": ["arn:aws:iam:::user/red"]},
            "Action": ["s3:ListBucket"],
            "Resource": [f"arn:aws:s3:::{BUCKET}"],
        }
    ],
}
CLOSED, LISTED, OPEN = "closed", "access list", "policy"


def run(*words):
    subprocess.run(list(map(str, words)), capture_output=True, timeout=60, check=True)


def of_blue(base, *words):
    keys = ("--access_key=blue", "--secret_key=blue-secret", f"--host={ENDPOINT}", f"--host-bucket={ENDPOINT}")
    run("s3cmd", f"--config={base}/none", *keys, "--no-ssl", "--region=us-east-1", *words)


def tried(base, crossing="red", control="blue"):
    """The lines of both ranks, with the keys of these tenants."""
    host, port = ENDPOINT.split(":")
    words = ["--class=s3", "--path=s3-path", f"--address={host}", f"--port={port}", f"--resource={BUCKET}"]
    words += ["--region=us-east-1", "--tries=1", "--timeout=4s", "--world=2", "--rendezvous=127.0.0.1:1"]
    ranks = [
        subprocess.Popen(
            [PROBES / "crossing_refused", f"--rank={rank}", f"--credentials={base}/{tenant}.json", *words],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "ASSAY_TOKEN": "ab" * 32},
        )
        for rank, tenant in enumerate((crossing, control))
    ]
    return [one.communicate(timeout=60)[0] for one in ranks]


def ranks(base, _):
    """By state of the bucket, the outputs of each round."""
    (base / "none").touch()
    for tenant in (*TENANTS, UNKNOWN):
        keys = base / f"{tenant}.json"
        keys.write_text(json.dumps({"access_key": tenant, "secret_key": f"{tenant}-secret"}))
        keys.chmod(0o600)
    for tenant in TENANTS:
        name = (f"--uid={tenant}", f"--display-name={tenant}")
        run("radosgw-admin", "user", "create", *name, f"--access-key={tenant}", f"--secret={tenant}-secret")
    of_blue(base, "mb", f"s3://{BUCKET}")
    of_blue(base, "put", base / "blue.json", f"s3://{BUCKET}/secret")
    (base / "policy").write_text(json.dumps(POLICY))
    found = {CLOSED: [], OPEN: [], LISTED: []}
    for _ in range(ROUNDS):
        found[CLOSED].append(tried(base))
        of_blue(base, "setpolicy", base / "policy", f"s3://{BUCKET}")
        found[OPEN].append(tried(base))
        of_blue(base, "delpolicy", f"s3://{BUCKET}")
        of_blue(base, "setacl", "--acl-public", f"s3://{BUCKET}")
        found[LISTED].append(tried(base))
        of_blue(base, "setacl", "--acl-private", f"s3://{BUCKET}")
    found[UNKNOWN] = [tried(base, crossing=UNKNOWN), tried(base, control=UNKNOWN)]
    return found


class CrossingGateway(Servers):
    script = "rados_gateway"
    programs = ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "ganesha.nfsd", "rpcbind", "s3cmd", "nfs-ls")
    packages = "ceph-mon ceph-osd radosgw ceph-common nfs-ganesha nfs-ganesha-rgw rpcbind s3cmd libnfs-utils"

    @staticmethod
    def conditions(outputs):
        lines = [json.loads(line) for output in outputs for line in output.splitlines()]
        return [(one["condition"]["name"], one["condition"]["value"]) for one in lines if "condition" in one]

    def test_a_bucket_is_open_to_another_tenant_only_by_a_policy_or_an_access_list(self):
        found = self.beside("crossing")["crossing"]
        refused, granted = "HTTP status 403 AccessDenied", "HTTP status 200"
        for state, evidence in ((CLOSED, refused), (OPEN, granted), (LISTED, granted)):
            self.assertEqual(len(found[state]), ROUNDS)
            for number, outputs in enumerate(found[state]):
                with self.subTest(state=state, number=number):
                    outcome = "answered" if evidence == granted else "refused"
                    seen = self.conditions(outputs)
                    self.assertIn(("tried", "control answered"), seen)
                    self.assertIn(("outcome", outcome), seen)
                    self.assertIn(("evidence", evidence), seen)
        crossing, control = map(self.conditions, found[UNKNOWN])
        self.assertIn(("outcome", "unclear"), crossing)
        self.assertIn(("evidence", "HTTP status 403 InvalidAccessKeyId"), crossing)
        self.assertIn(("tried", "control unclear"), control)


if __name__ == "__main__":
    main_beside_servers(ranks, main)
