"""What the controllers and the scheduler of Kubernetes make of DaemonSets, Jobs and JobSets: pods on nodes, at once.

Rules kept: a DaemonSet has one pod on every node whose taints it tolerates; an Indexed Job has one pod for each index, placed
where its required anti-affinity by host name and the node's extended resources allow it, otherwise Pending; a JobSet has one Job
for each replica; what owns others takes them along when it is deleted.
"""
import hashlib

HOST_NAME = "kubernetes.io/hostname"


def node(name, resources=None, ready=True, **spec):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOST_NAME: name}, "annotations": {}},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "8", "memory": "64Gi", **(resources or {})},
            "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}],
        },
    }


def pod(name, namespace, where, template, owner=None, labels=None):
    meta = template.get("metadata", {})
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {**meta.get("labels", {}), **(labels or {})},
            "annotations": dict(meta.get("annotations", {})),
        },
        "spec": {**template["spec"], **({"nodeName": where} if where else {})},
        "status": {"phase": "Running" if where else "Pending"},
    }
    if owner is not None:
        document["metadata"]["ownerReferences"] = [
            {"kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        ]
    return document


def suffix(*words):
    return hashlib.sha256("/".join(words).encode()).hexdigest()[:5]


def owned(store, plural, owner):
    return [
        one
        for one in store.list(plural)
        if any(ref["uid"] == owner["metadata"]["uid"] for ref in one["metadata"].get("ownerReferences", []))
    ]


def tolerates(template, machine):
    """Of the operators only Exists without a key is known: it tolerates all."""
    taints = [one for one in machine["spec"].get("taints", []) if one["effect"] in ("NoSchedule", "NoExecute")]
    return not taints or {"operator": "Exists"} in template["spec"].get("tolerations", [])


def demands(spec):
    """Extended resources of a pod."""
    wanted = {}
    for one in spec["containers"]:
        for name, amount in one.get("resources", {}).get("limits", {}).items():
            if "/" in name:
                wanted[name] = wanted.get(name, 0) + int(amount)
    return wanted


def fits(store, template, machine):
    here = [one for one in store.list("pods") if one["spec"].get("nodeName") == machine["metadata"]["name"]]
    for name, amount in demands(template["spec"]).items():
        used = sum(demands(one["spec"]).get(name, 0) for one in here)
        if used + amount > int(machine["status"]["allocatable"].get(name, 0)):
            return False
    terms = template["spec"].get("affinity", {}).get("podAntiAffinity", {})
    for term in terms.get("requiredDuringSchedulingIgnoredDuringExecution", []):
        labels = term.get("labelSelector", {}).get("matchLabels", {})
        if term["topologyKey"] == HOST_NAME and any(
            labels.items() <= one["metadata"]["labels"].items() for one in here
        ):
            return False
    return tolerates(template, machine) and not machine["spec"].get("unschedulable")


def settle_daemon_set(store, owner):
    namespace, template = owner["metadata"]["namespace"], owner["spec"]["template"]
    there = {one["spec"]["nodeName"] for one in owned(store, "pods", owner)}
    for machine in store.list("nodes"):
        name = machine["metadata"]["name"]
        if name not in there and tolerates(template, machine):
            made = f"{owner['metadata']['name']}-{suffix(owner['metadata']['uid'], name)}"
            store.put("pods", pod(made, namespace, name, template, owner))


def settle_job(store, owner):
    meta, spec = owner["metadata"], owner["spec"]
    there = {
        one["metadata"]["annotations"].get("batch.kubernetes.io/job-completion-index")
        for one in owned(store, "pods", owner)
    }
    for index in map(str, range(min(spec.get("parallelism", 1), spec.get("completions", 1)))):
        if index in there:
            continue
        template = spec["template"]
        where = next((one["metadata"]["name"] for one in store.list("nodes") if fits(store, template, one)), None)
        labels = {"batch.kubernetes.io/job-name": meta["name"], "job-name": meta["name"]}
        made = pod(
            f"{meta['name']}-{index}-{suffix(meta['uid'], index)}", meta["namespace"], where, template, owner, labels
        )
        made["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] = index
        store.put("pods", made)


def settle_job_set(store, owner):
    meta = owner["metadata"]
    there = {one["metadata"]["name"] for one in owned(store, "jobs", owner)}
    for replicated in owner["spec"]["replicatedJobs"]:
        for number in range(replicated.get("replicas", 1)):
            name = f"{meta['name']}-{replicated['name']}-{number}"
            if name not in there:
                job = {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "metadata": {
                        "name": name,
                        "namespace": meta["namespace"],
                        "ownerReferences": [{"uid": meta["uid"]}],
                    },
                    "spec": replicated["template"]["spec"],
                }
                store.put("jobs", job)


def settle(store):
    """Makes what is missing; nothing changes where all is there."""
    for plural, act in (("daemonsets", settle_daemon_set), ("jobsets", settle_job_set), ("jobs", settle_job)):
        for owner in store.list(plural):
            act(store, owner)


def collect(store, owner):
    """Deletes what a deleted object owned."""
    for plural in ("jobs", "pods"):
        for one in owned(store, plural, owner) if owner else []:
            store.remove(plural, one["metadata"]["namespace"], one["metadata"]["name"])
            collect(store, one)
