"""Benches with the real kubectl and an API server of this machine, whose pods are processes here."""
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "fakes/kube"))
from api import KubeApi


def has_host_names():
    return subprocess.run(["unshare", "--uts", "hostname", "assay-test"], capture_output=True).returncode == 0


def start_cluster(bench, *nodes, namespace="default", pods=True):
    """Starts the server for a test, with a running pod `assay-NODE` on each node, and gives the bench's programs its kubeconfig."""
    if shutil.which("kubectl") is None:
        raise unittest.SkipTest("kubectl is not installed: ./quickstart test does")
    if pods and not has_host_names():
        raise unittest.SkipTest("no host names of their own for the pods here, and without them they are one machine")
    api = KubeApi(bench.scratch / "kube", nodes)
    api.__enter__()
    bench.addCleanup(api.__exit__)
    for name in nodes if pods else ():
        api.add_pod(f"assay-{name}", name, namespace)
    bench.environment = dict(bench.environment, KUBECONFIG=api.kubeconfig, HOME=str(bench.scratch / "kube"))
    return api
