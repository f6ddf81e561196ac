"""An API server of Kubernetes for tests, over HTTPS on this machine: nodes, pods, DaemonSets, Jobs and JobSets, as far as kubectl
uses them. Its "containers" are processes of this machine, each under its pod's host name.

    with KubeApi(folder, ["n01", "n02"]) as api:
        subprocess.run(["kubectl", "get", "nodes"], env=dict(os.environ, KUBECONFIG=api.kubeconfig))

As a program: `api.py FOLDER POD,POD COMMAND...` runs the command beside a server with these pods, one on each node.
"""
import http.server
import json
import os
import pathlib
import shutil
import socketserver
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import controllers
import schema
import streams
from store import Store, selected

USERS = {"commissioning": "all", "viewer": "read"}  # by token
WATCH_S = 300


class Refused(Exception):
    """An answer that is a Status of Kubernetes."""

    def __init__(self, code, reason, message, details=None):
        super().__init__(message)
        self.code, self.reason, self.details = code, reason, details or {}


def not_found(plural, name):
    group = schema.group_kind(plural)["group"]
    return Refused(404, "NotFound", f'{plural}{"." + group if group else ""} "{name}" not found')


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    @property
    def api(self):
        return self.server.api

    def answer(self, document, code=200, kind="application/json"):
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle_one(self):
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length)
        url = urllib.parse.urlsplit(self.path)
        self.query = {key: value for key, value in urllib.parse.parse_qsl(url.query)}
        self.words = urllib.parse.parse_qsl(url.query)
        try:
            self.allowed(url.path)
            self.route([urllib.parse.unquote(part) for part in url.path.strip("/").split("/")])
        except Refused as refused:
            status = {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": str(refused),
                "reason": refused.reason,
                "details": refused.details,
                "code": refused.code,
            }
            self.answer(status, refused.code)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_one

    def allowed(self, path):
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in USERS:
            raise Refused(401, "Unauthorized", "Unauthorized")
        writes = self.command != "GET" or path.endswith("/exec")
        if writes and (USERS[token] == "read" or self.api.fault == "refuse"):
            raise Refused(403, "Forbidden", f'{path} is forbidden: User "{token}" cannot {self.command.lower()} it')
        if writes and self.api.fault == "slow":
            time.sleep(0.05)

    def route(self, parts):
        if parts in (["version"], ["api"], ["apis"], ["openapi", "v2"]) or parts[:2] == ["openapi", "v3"]:
            return self.answer(*self.api.documents(parts))
        size = 2 if parts[0] == "api" else 3
        version, rest = "/".join(parts[1:size]), parts[size:]
        if parts[0] not in ("api", "apis") or version not in {one[0] for one in schema.RESOURCES.values()}:
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        if not rest:
            return self.answer(self.api.resources(version))
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        plural = rest[0]
        if schema.RESOURCES.get(plural, ("",))[0] != version:
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        if len(rest) == 3 and plural == "pods":
            return self.pod(namespace, rest[1], rest[2])
        self.objects(plural, namespace, rest[1] if len(rest) > 1 else "")

    def objects(self, plural, namespace, name):
        store = self.api.store
        if self.command == "GET" and not name:
            if self.query.get("watch") in ("1", "true"):
                return self.watch(plural, namespace)
            version, kind, _, _ = schema.RESOURCES[plural]
            items = [one for one in store.list(plural, namespace) if selected(one, self.query)]
            meta = {"resourceVersion": str(len(store.changes))}
            return self.answer({"kind": f"{kind}List", "apiVersion": version, "metadata": meta, "items": items})
        if self.command == "POST":
            return self.answer(self.stored(plural, namespace, json.loads(self.body), new=True), 201)
        old = store.get(plural, namespace, name)
        if self.command == "PATCH":
            change = json.loads(self.body)
            if old is None and "apply-patch" not in self.headers["Content-Type"]:
                raise not_found(plural, name)
            return self.answer(self.stored(plural, namespace, schema.merged(old or {}, change), new=old is None))
        if old is None:
            raise not_found(plural, name)
        if self.command == "PUT":
            return self.answer(self.stored(plural, namespace, json.loads(self.body), new=False))
        if self.command == "DELETE":
            self.api.delete(plural, namespace, name)
        self.answer(old)

    def stored(self, plural, namespace, document, new):
        """Checks and keeps a document; with `dryRun=All` it is checked alone."""
        document.setdefault("metadata", {})
        if schema.RESOURCES[plural][3]:
            if document["metadata"].setdefault("namespace", namespace) != namespace:
                raise Refused(400, "BadRequest", "the namespace of the object does not match that of the request")
            if not self.api.store.get("namespaces", "", namespace):
                raise not_found("namespaces", namespace)
        name = document["metadata"].get("name", "")
        if new and self.api.store.get(plural, namespace, name):
            raise Refused(409, "AlreadyExists", f'{plural} "{name}" already exists')
        unknown, others = schema.problems(plural, document)
        if unknown and self.query.get("fieldValidation", "Strict") == "Strict":
            raise Refused(400, "BadRequest", f"strict decoding error: {', '.join(unknown)}")
        if others:
            kind = schema.RESOURCES[plural][1]
            causes = [
                {"reason": "FieldValueInvalid", "message": words, "field": words.split(":")[0]} for words in others
            ]
            details = {"name": name, "kind": kind, "causes": causes}
            raise Refused(422, "Invalid", f'{kind} "{name}" is invalid: {", ".join(others)}', details)
        if self.query.get("dryRun") == "All":
            return document
        document = self.api.store.put(plural, document)
        self.api.log.append((self.command, plural, name))
        controllers.settle(self.api.store)
        return document

    def watch(self, plural, namespace):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        store, seen = self.api.store, int(self.query.get("resourceVersion") or 0)
        until = time.monotonic() + min(WATCH_S, float(self.query.get("timeoutSeconds", WATCH_S)))
        while not self.api.stopping and time.monotonic() < until:
            with store.changed:
                if seen == len(store.changes):
                    store.changed.wait(0.2)
                fresh, seen = store.changes[seen:], len(store.changes)
            for kind, one, document in fresh:
                if (
                    one == plural
                    and namespace in ("", document["metadata"].get("namespace"))
                    and selected(document, self.query)
                ):
                    line = json.dumps({"type": kind, "object": document}).encode() + b"\n"
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                    self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def pod(self, namespace, name, action):
        pod = self.api.store.get("pods", namespace, name)
        if pod is None:
            raise not_found("pods", name)
        containers = [one["name"] for one in pod["spec"]["containers"]]
        container = self.query.get("container", containers[0])
        if container not in containers:
            raise Refused(400, "BadRequest", f"container {container} is not valid for pod {name}")
        if pod["status"]["phase"] != "Running":
            raise Refused(400, "BadRequest", f"container {container} in pod {name} is not running")
        if action == "log":
            return self.answer(f"agent pod of {pod['spec']['nodeName']}\n".encode(), kind="text/plain")
        if action != "exec":
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        self.execute(pod)

    def execute(self, pod):
        command = [value for key, value in self.words if key == "command"]
        wanted = [name for name in ("stdin", "stdout", "stderr") if self.query.get(name) in ("1", "true")]
        protocols = self.headers.get("Sec-WebSocket-Protocol", "")
        if self.headers.get("Upgrade", "").lower() == "websocket":
            if self.api.carrier == "spdy" or streams.WEBSOCKET_PROTOCOL not in protocols:
                raise Refused(400, "BadRequest", "unable to upgrade: this server has no such protocol")
            carrier, used = streams.WebSocket(self), "websocket"
        elif self.headers.get("Upgrade", "").upper() == "SPDY/3.1":
            carrier, used = streams.Spdy(self, self.api.dictionary, ["error", *wanted]), "spdy"
        else:
            raise Refused(400, "BadRequest", "Upgrade request required")
        self.api.carriers.add(used)
        self.close_connection = True
        name = pod["metadata"]["name"]
        if self.api.host_names:
            command = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', name, *command]
        streams.serve(carrier, command, "stdin" in wanted)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads, request_queue_size = True, 256

    def handle_error(self, *_):  # a client that is killed breaks its connection
        if os.environ.get("KUBE_API_ERRORS"):
            super().handle_error(*_)


class KubeApi:
    """The server and what a client needs of it: `kubeconfig` (a path). `fault`: "", "refuse" (changes are forbidden) or "slow".
    `carrier`: "" takes WebSocket and SPDY, "spdy" is a server before 1.29. `carriers`: which were used. `log`: changes.
    """

    def __init__(self, folder, nodes=(), kubectl=None, resources=None):
        self.folder, self.store = pathlib.Path(folder), Store()
        self.fault, self.carrier, self.carriers, self.log, self.stopping = "", "", set(), [], False
        self.host_names = subprocess.run(["unshare", "--uts", "true"], capture_output=True).returncode == 0
        program = kubectl or shutil.which("kubectl")
        self.dictionary = streams.spdy_dictionary(program)
        for name in ("default", "lab", "assay"):
            self.store.put("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for name in nodes:
            self.add_node(name, resources or {})
        self.folder.mkdir(parents=True, exist_ok=True)
        self.certify()
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.api = self
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "server.pem", self.folder / "server.key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.kubeconfig = str(self.folder / "kubeconfig")
        self.write_configuration()

    def certify(self):
        made = (
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=kubernetes".split()
        )
        files = ["-keyout", self.folder / "server.key", "-out", self.folder / "server.pem"]
        name = ["-addext", "subjectAltName=IP:127.0.0.1"]
        subprocess.run([*made, *name, *files], check=True, capture_output=True, timeout=60)

    def write_configuration(self):
        cluster = {
            "server": f"https://127.0.0.1:{self.server.server_address[1]}",
            "certificate-authority": str(self.folder / "server.pem"),
        }
        contexts = [
            {"name": f"{user}@hall", "context": {"cluster": "hall", "user": user}} for user in (*USERS, "stranger")
        ]
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "hall", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": user}} for user in (*USERS, "stranger")],
            "contexts": contexts,
            "current-context": contexts[0]["name"],
        }
        pathlib.Path(self.kubeconfig).write_text(json.dumps(document))

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.stopping = True
        self.server.shutdown()
        self.server.server_close()

    def add_node(self, name, resources=(), ready=True, **spec):
        self.store.put("nodes", controllers.node(name, dict(resources), ready, **spec))

    def add_pod(self, name, node, namespace="default", container="assay"):
        """A pod that runs, as a DaemonSet starts it."""
        template = {"metadata": {"labels": {"app": "assay"}}, "spec": {"containers": [{"name": container}]}}
        self.store.put("pods", controllers.pod(name, namespace, node, template))

    def delete(self, plural, namespace, name):
        document = self.store.remove(plural, namespace, name)
        self.log.append(("DELETE", plural, name))
        controllers.collect(self.store, document)
        controllers.settle(self.store)

    def resources(self, version):
        entries = [
            {"name": plural, "singularName": kind.lower(), "namespaced": inside, "kind": kind}
            | {"verbs": ["create", "delete", "get", "list", "patch", "update", "watch"]}
            for plural, (one, kind, _, inside) in schema.RESOURCES.items()
            if one == version
        ]
        if version == "v1":
            for action in ("exec", "log"):
                entries.append(
                    {"name": f"pods/{action}", "singularName": "", "namespaced": True, "kind": "Pod", "verbs": ["get"]}
                )
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": entries}

    def documents(self, parts):
        """(document, code, content type) of discovery and OpenAPI."""
        versions = sorted({one[0] for one in schema.RESOURCES.values()})
        if parts == ["version"]:
            return ({"major": "1", "minor": "31", "gitVersion": "v1.31.0", "platform": "linux/amd64"},)
        if parts == ["api"]:
            return ({"kind": "APIVersions", "versions": ["v1"]},)
        if parts == ["apis"]:
            groups = []
            for version in (one for one in versions if "/" in one):
                entry = {"groupVersion": version, "version": version.split("/")[1]}
                groups.append({"name": version.split("/")[0], "versions": [entry], "preferredVersion": entry})
            return ({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups},)
        if parts == ["openapi", "v2"]:
            return schema.openapi_2(), 200, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
        roots = {schema.root_of(plural).strip("/"): one[0] for plural, one in schema.RESOURCES.items()}
        if len(parts) == 2:
            return ({"paths": {root: {"serverRelativeURL": f"/openapi/v3/{root}"} for root in roots}},)
        root = "/".join(parts[2:])
        if root not in roots:
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        return (schema.openapi_3(roots[root]),)


def main(folder, pods, *command):
    with KubeApi(folder) as api:
        for number, name in enumerate(pods.split(",")):
            api.add_pod(name, f"node{number}")
        return subprocess.run(command, env=dict(os.environ, KUBECONFIG=api.kubeconfig, HOME=str(folder))).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
