"""What the Kubernetes API says about the objects that assay makes: fields and types, checked as a server does with
`fieldValidation=Strict`, and given to clients as OpenAPI 2 (protocol buffers) and 3 (JSON).

A transcription of names and types from the published OpenAPI of Kubernetes 1.31 and the definition of JobSet v1alpha2 (0.8), read
2026-11-28, of all that a pod of assay could need; a field that is not here is refused, also where a cluster knows it. Names, types and needed fields from JobSetSpec down were compared with the
published definition that day.
"""
import re

STRING, INT, BOOL, MAP, QUANTITY, FREE = "string", "integer", "boolean", "map", "quantity", "free"


def strings(words):
    return dict.fromkeys(words.split(), STRING)


# A name that ends with `!` must be given. A list has one member, the type of its elements.
TYPES = {
    "Meta": {
        **strings("name generateName namespace uid resourceVersion creationTimestamp deletionTimestamp"),
        "generation": INT,
        "labels": MAP,
        "annotations": MAP,
        "ownerReferences": [FREE],
        "managedFields": [FREE],
    },
    "Requirement": {"key!": STRING, "operator!": STRING, "values": [STRING]},
    "Selector": {"matchLabels": MAP, "matchExpressions": ["Requirement"]},
    "PodAffinityTerm": {"labelSelector": "Selector", "topologyKey!": STRING, "namespaces": [STRING]},
    "WeightedTerm": {"weight!": INT, "podAffinityTerm!": "PodAffinityTerm"},
    "PodAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": ["PodAffinityTerm"],
        "preferredDuringSchedulingIgnoredDuringExecution": ["WeightedTerm"],
    },
    "NodeTerm": {"matchExpressions": ["Requirement"], "matchFields": ["Requirement"]},
    "NodeSelector": {"nodeSelectorTerms!": ["NodeTerm"]},
    "NodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": "NodeSelector"},
    "Affinity": {"nodeAffinity": "NodeAffinity", "podAffinity": "PodAffinity", "podAntiAffinity": "PodAffinity"},
    "Toleration": {**strings("key operator value effect"), "tolerationSeconds": INT},
    "Capabilities": {"add": [STRING], "drop": [STRING]},
    "SecurityContext": {
        "privileged": BOOL,
        "runAsUser": INT,
        "runAsGroup": INT,
        "allowPrivilegeEscalation": BOOL,
        "capabilities": "Capabilities",
    },
    "Mount": {"name!": STRING, "mountPath!": STRING, **strings("subPath mountPropagation"), "readOnly": BOOL},
    "Resources": {"limits": QUANTITY, "requests": QUANTITY},
    "Variable": {"name!": STRING, "value": STRING, "valueFrom": FREE},
    "Container": {
        "name!": STRING,
        **strings("image imagePullPolicy workingDir terminationMessagePolicy terminationMessagePath"),
        "command": [STRING],
        "args": [STRING],
        "env": ["Variable"],
        "resources": "Resources",
        "securityContext": "SecurityContext",
        "volumeMounts": ["Mount"],
        "stdin": BOOL,
        "tty": BOOL,
    },
    "HostPath": {"path!": STRING, "type": STRING},
    "EmptyDirectory": {"medium": STRING, "sizeLimit": STRING},
    "Claim": {"claimName!": STRING, "readOnly": BOOL},
    "Volume": {
        "name!": STRING,
        "hostPath": "HostPath",
        "emptyDir": "EmptyDirectory",
        "persistentVolumeClaim": "Claim",
        "configMap": FREE,
        "secret": FREE,
    },
    "PodSpec": {
        "containers!": ["Container"],
        "initContainers": ["Container"],
        "volumes": ["Volume"],
        "affinity": "Affinity",
        "tolerations": ["Toleration"],
        "nodeSelector": MAP,
        **strings(
            "restartPolicy dnsPolicy nodeName hostname subdomain serviceAccountName serviceAccount schedulerName"
        ),
        **strings("priorityClassName runtimeClassName"),
        **dict.fromkeys(("hostNetwork", "hostPID", "hostIPC", "automountServiceAccountToken"), BOOL),
        **dict.fromkeys(("terminationGracePeriodSeconds", "activeDeadlineSeconds"), INT),
        "imagePullSecrets": [FREE],
        "securityContext": FREE,
    },
    "PodTemplate": {"metadata": "Meta", "spec": "PodSpec"},
    "DaemonSetSpec": {
        "selector!": "Selector",
        "template!": "PodTemplate",
        "updateStrategy": FREE,
        "minReadySeconds": INT,
        "revisionHistoryLimit": INT,
    },
    "JobSpec": {
        "template!": "PodTemplate",
        "selector": "Selector",
        "completionMode": STRING,
        "podReplacementPolicy": STRING,
        "podFailurePolicy": FREE,
        **dict.fromkeys(("manualSelector", "suspend"), BOOL),
        **dict.fromkeys(
            ("completions", "parallelism", "backoffLimit", "backoffLimitPerIndex", "maxFailedIndexes"), INT
        ),
        **dict.fromkeys(("activeDeadlineSeconds", "ttlSecondsAfterFinished"), INT),
    },
    "JobTemplate": {"metadata": "Meta", "spec": "JobSpec"},
    "CronJobSpec": {
        "schedule!": STRING,
        "jobTemplate!": "JobTemplate",
        **strings("concurrencyPolicy timeZone"),
        "suspend": BOOL,
        **dict.fromkeys(("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"), INT),
    },
    "ReplicatedJob": {
        "name!": STRING,
        "groupName": STRING,
        "replicas": INT,
        "template!": "JobTemplate",
        "dependsOn": [FREE],
    },
    "Network": {"enableDNSHostnames": BOOL, "subdomain": STRING, "publishNotReadyAddresses": BOOL},
    "FailurePolicy": {"maxRestarts": INT, "restartStrategy": STRING, "rules": [FREE]},
    "SuccessPolicy": {"operator!": STRING, "targetReplicatedJobs": [STRING]},
    "JobSetSpec": {
        "replicatedJobs": ["ReplicatedJob"],
        "network": "Network",
        "failurePolicy": "FailurePolicy",
        "successPolicy": "SuccessPolicy",
        "startupPolicy": FREE,
        "suspend": BOOL,
        "managedBy": STRING,
        "ttlSecondsAfterFinished": INT,
    },
    "NodeSpec": {"taints": [FREE], "unschedulable": BOOL, **strings("podCIDR providerID"), "podCIDRs": [STRING]},
}
# plural: (group and version, kind, type of .spec, is within a namespace)
RESOURCES = {
    "nodes": ("v1", "Node", "NodeSpec", False),
    "namespaces": ("v1", "Namespace", FREE, False),
    "pods": ("v1", "Pod", "PodSpec", True),
    "daemonsets": ("apps/v1", "DaemonSet", "DaemonSetSpec", True),
    "jobs": ("batch/v1", "Job", "JobSpec", True),
    "cronjobs": ("batch/v1", "CronJob", "CronJobSpec", True),
    "jobsets": ("jobset.x-k8s.io/v1alpha2", "JobSet", "JobSetSpec", True),
    "priorityclasses": ("scheduling.k8s.io/v1", "PriorityClass", FREE, False),
}
# Fields beside metadata, spec and status.
BESIDE = {"priorityclasses": {"value!": INT, "description": STRING, "preemptionPolicy": STRING, "globalDefault": BOOL}}
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
AMOUNT = re.compile(r"[0-9.]+([munpkKMGTPE]i?)?")
CHOICES = {
    "dnsPolicy": ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "completionMode": ("Indexed", "NonIndexed"),
}
BASIC = {STRING: str, INT: int, BOOL: bool}


def fields_of(kind):
    fields = kind if isinstance(kind, dict) else TYPES[kind]
    return {name.rstrip("!"): (kind_of, name.endswith("!")) for name, kind_of in fields.items()}


def faults(value, kind, place):
    """What is wrong with `value`: (place, words), the words as an API server writes them."""
    if kind == FREE:
        return
    if isinstance(kind, list):
        if not isinstance(value, list):
            yield place, "must be a list"
            return
        for number, element in enumerate(value):
            yield from faults(element, kind[0], f"{place}[{number}]")
    elif isinstance(kind, str) and kind in BASIC:
        if not isinstance(value, BASIC[kind]) or (kind == INT and isinstance(value, bool)):
            yield place, f"must be a {kind}"
        elif (name := place.rpartition(".")[2]) in CHOICES and value not in CHOICES[name]:
            yield place, f'Unsupported value: "{value}"'
    elif isinstance(kind, str) and kind in (MAP, QUANTITY):
        for key, text in value.items() if isinstance(value, dict) else [("", None)]:
            if kind == QUANTITY and AMOUNT.fullmatch(str(text)):
                continue
            if kind == QUANTITY or not isinstance(text, str):
                yield f"{place}.{key}", "must be a " + ("quantity" if kind == QUANTITY else "string")
            elif place.endswith("abels") and not LABEL.fullmatch(text):
                yield f"{place}.{key}", f'Invalid value: "{text}"'
    elif not isinstance(value, dict):
        yield place, "must be an object"
    else:
        known = fields_of(kind)
        for name in value:
            if name not in known:
                yield f"{place}.{name}".lstrip("."), "unknown field"
            elif value[name] is not None:
                yield from faults(value[name], known[name][0], f"{place}.{name}".lstrip("."))
        for name, (_, needed) in known.items():
            if needed and not value.get(name):
                yield f"{place}.{name}".lstrip("."), "Required value"


def rules(plural, document):
    """What types cannot say."""
    spec = document.get("spec") or {}
    name = document["metadata"].get("name", "")
    if not NAME.fullmatch(name):
        yield "metadata.name", f'Invalid value: "{name}"'
    if plural == "daemonsets":
        labels = spec["template"].get("metadata", {}).get("labels", {})
        if not (spec["selector"].get("matchLabels") or {}).items() <= labels.items():
            yield "spec.template.metadata.labels", "`selector` does not match template `labels`"
    jobs = {
        "jobs": lambda: [("spec", spec)],
        "cronjobs": lambda: [("spec.jobTemplate.spec", spec["jobTemplate"]["spec"])],
        "jobsets": lambda: [
            (f"spec.replicatedJobs[{number}].template.spec", one["template"]["spec"])
            for number, one in enumerate(spec["replicatedJobs"])
        ],
    }
    for place, job in jobs.get(plural, list)():
        pod = job["template"]["spec"]
        if pod.get("restartPolicy", "Always") == "Always":
            yield f"{place}.template.spec.restartPolicy", 'Required value: valid values: "OnFailure", "Never"'
        if job.get("completionMode") == "Indexed" and not job.get("completions"):
            yield f"{place}.completions", "Required value: when completion mode is Indexed"
    pods = [spec["template"]["spec"]] if plural in ("daemonsets", "jobs") else []
    for pod in pods:
        for one in pod["containers"]:
            for mount in one.get("volumeMounts", []):
                if mount["name"] not in {volume["name"] for volume in pod.get("volumes", [])}:
                    yield "spec.template.spec.containers[0].volumeMounts", f'Not found: "{mount["name"]}"'


def problems(plural, document):
    """(unknown fields, all other faults) of a document; lists of words."""
    version, kind, spec, _ = RESOURCES[plural]
    if (document.get("apiVersion"), document.get("kind")) != (version, kind):
        return [], [f"is not a {kind} of {version}"]
    top = {key: value for key, value in document.items() if key not in ("apiVersion", "kind", "status")}
    with_spec = "spec!" if plural in ("daemonsets", "jobs", "cronjobs") else "spec"
    found = list(faults(top, {"metadata!": "Meta", with_spec: spec, **BESIDE.get(plural, {})}, ""))
    unknown = [f'unknown field "{place}"' for place, words in found if words == "unknown field"]
    others = [f"{place}: {words}" for place, words in found if words != "unknown field"]
    if not others:
        others = [f"{place}: {words}" for place, words in rules(plural, document)]
    return unknown, others


def merged(old, change):
    """A merge patch; lists of named objects by name, as a strategic merge patch takes the lists of a pod."""
    if not isinstance(old, dict) or not isinstance(change, dict):
        return change
    result = dict(old)
    for key, value in change.items():
        if key.startswith("$"):
            continue
        before = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(value, list) and isinstance(before, list) and key in ("containers", "volumes", "env"):
            by_name = {one["name"]: one for one in before}
            for one in value:
                by_name[one["name"]] = merged(by_name.get(one["name"], {}), one)
            gone = {one["name"] for one in value if one.get("$patch") == "delete"}
            result[key] = [one for name, one in by_name.items() if name not in gone]
        else:
            result[key] = merged(before, value)
    return result


def definition_names():
    return {kind: f"io.assay.test.{kind}" for kind, fields in TYPES.items() if isinstance(fields, dict)}


def as_json(kind):
    """OpenAPI 3 of a type."""
    if isinstance(kind, list):
        return {"type": "array", "items": as_json(kind[0])}
    if kind in (MAP, QUANTITY):
        return {"type": "object", "additionalProperties": {"type": "string"}}
    if kind in BASIC:
        return {"type": kind}
    if kind == FREE:
        return {"type": "object"}
    return {"$ref": f"#/components/schemas/{definition_names()[kind]}"}


def group_kind(plural):
    version, kind, _, _ = RESOURCES[plural]
    group, _, name = version.rpartition("/")
    return {"group": group, "version": name, "kind": kind}


def root_of(plural):
    version = RESOURCES[plural][0]
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def collection_path(plural):
    inside = "/namespaces/{namespace}" if RESOURCES[plural][3] else ""
    return f"{root_of(plural)}{inside}/{plural}"


def top_fields(plural):
    beside = {name.rstrip("!"): one for name, one in BESIDE.get(plural, {}).items()}
    named = {"apiVersion": STRING, "kind": STRING, "metadata": "Meta", "spec": RESOURCES[plural][2], "status": FREE}
    return {**named, **beside}


def openapi_3(version):
    """The OpenAPI 3 document of a group and version."""
    here = [plural for plural, resource in RESOURCES.items() if resource[0] == version]
    question = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
    dry = {"name": "dryRun", "in": "query", "schema": {"type": "string"}}
    schemas = {
        definition_names()[kind]: {
            "type": "object",
            "properties": {name: as_json(one) for name, (one, _) in fields_of(kind).items()},
        }
        for kind in definition_names()
    }
    paths = {}
    for plural in here:
        action = {"parameters": [question, dry], "x-kubernetes-group-version-kind": group_kind(plural)}
        paths[collection_path(plural)] = {"post": action}
        paths[collection_path(plural) + "/{name}"] = {"patch": action, "put": action}
        kind = RESOURCES[plural][1]
        schemas[f"io.assay.test.{kind}"] = {
            "type": "object",
            "properties": {name: as_json(one) for name, one in top_fields(plural).items()},
            "x-kubernetes-group-version-kind": [group_kind(plural)],
        }
    return {
        "openapi": "3.0.0",
        "info": {"title": "test", "version": "1"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def packed(*fields):
    """A message of protocol buffers: (number, bytes or text) each, all of wire type 2."""
    message = b""
    for number, value in fields:
        data = value.encode() if isinstance(value, str) else value
        for count in (number << 3 | 2, len(data)):
            while count > 127:
                message += bytes([count & 0x7F | 0x80])
                count >>= 7
            message += bytes([count])
        message += data
    return message


def as_schema(kind):
    """Message Schema of OpenAPI 2 as gnostic numbers it: 1 $ref, 21 additional properties, 22 type, 23 items, 25 properties."""
    if isinstance(kind, list):
        return packed((22, packed((1, "array"))), (23, packed((1, as_schema(kind[0])))))
    if kind in (MAP, QUANTITY):
        return packed((21, packed((1, as_schema(STRING)))), (22, packed((1, "object"))))
    if kind in BASIC:
        return packed((22, packed((1, kind))))
    if kind == FREE:
        return packed((22, packed((1, "object"))))
    return packed((1, f"#/definitions/{definition_names()[kind]}"))


def openapi_2():
    """The whole API as OpenAPI 2 in protocol buffers, the form that kubectl before 1.27 checks documents against."""
    definitions = b""

    def add(name, properties, *more):
        nonlocal definitions
        members = packed(*((1, packed((1, key), (2, as_schema(one)))) for key, one in properties.items()))
        schema = packed((22, packed((1, "object"))), (25, members), *more)
        definitions += packed((1, packed((1, name), (2, schema))))

    for kind, name in definition_names().items():
        add(name, {key: one for key, (one, _) in fields_of(kind).items()})
    for plural, (_, kind, _, _) in RESOURCES.items():
        words = group_kind(plural)
        text = "".join(f'{"- " if not i else "  "}{key}: "{value}"\n' for i, (key, value) in enumerate(words.items()))
        extension = packed((1, "x-kubernetes-group-version-kind"), (2, packed((2, text))))
        add(f"io.assay.test.{kind}", top_fields(plural), (31, extension))
    return packed((1, "2.0"), (2, packed((1, "test"), (2, "1"))), (8, b""), (9, definitions))
