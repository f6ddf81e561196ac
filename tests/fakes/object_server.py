#!/usr/bin/env python3
"""Objects of one bucket over HTTP, which are the files of a folder: PORT_FILE FOLDER ACCESS_KEY SECRET_KEY [LIE]. It is honest, or misbehaves in one way. Every
request must be signed (AWS Signature Version 4), which is checked here without any library that signs."""
import hashlib
import hmac
import http.server
import os
import pathlib
import sys
import time
import urllib.parse

LIES = (
    "honest",
    "empty",
    "cut",
    "short_body",
    "flipped",
    "stale",
    "listing",
    "slow_down",
    "wrong_etag",
    "redirect",
    "drop_put",
    "keep",
)
STALE_S = 0.3  # "empty", "stale", "listing": so long after a change it shows what is not there
BUCKET = "bucket"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def signature(secret, method, path, query, headers, signed, payload_hash):
    """The signature of a request; `headers` by lower-case name, `signed` their names in order, `query` as it stands in the URL."""
    pairs = sorted(
        (urllib.parse.quote(name, safe="-_.~"), urllib.parse.quote(value, safe="-_.~"))
        for name, value in urllib.parse.parse_qsl(query, keep_blank_values=True)
    )
    canonical = "\n".join(
        [
            method,
            urllib.parse.quote(urllib.parse.unquote(path), safe="/-_.~"),
            "&".join(f"{name}={value}" for name, value in pairs),
            *(f"{name}:{' '.join(headers[name].split())}" for name in signed),
            "",
            ";".join(signed),
            payload_hash,
        ]
    )
    time_of, region = headers["x-amz-date"], headers[" region"]
    scope = f"{time_of[:8]}/{region}/s3/aws4_request"
    key = b"AWS4" + secret.encode()
    for word in (time_of[:8], region, "s3", "aws4_request"):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    return hmac.new(
        key, f"AWS4-HMAC-SHA256\n{time_of}\n{scope}\n{sha256(canonical.encode())}".encode(), hashlib.sha256
    ).hexdigest()


class Service(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder, access, secret, lie = pathlib.Path(), "", "", "honest"
    others = {}  # secrets by key of those whom the bucket is denied
    before = {}  # "stale": content that an object had, and until when it is shown
    requests = 0

    def unsigned(self, body):
        """Why the request is not signed by the owner of the keys; empty when it is."""
        kind, _, rest = self.headers.get("Authorization", "").partition(" ")
        parts = dict(part.strip().split("=", 1) for part in rest.split(",") if "=" in part)
        credential = parts.get("Credential", "").split("/")
        signed = parts.get("SignedHeaders", "").split(";")
        known = {**self.others, self.access: self.secret}
        if kind != "AWS4-HMAC-SHA256" or len(credential) != 5 or credential[0] not in known or credential[3] != "s3":
            return "InvalidAccessKeyId"
        if not {"host", "x-amz-date", "x-amz-content-sha256"} <= set(signed):
            return "AccessDenied"
        headers = {name.lower(): value for name, value in self.headers.items()} | {" region": credential[2]}
        if headers["x-amz-content-sha256"] != sha256(body):
            return "XAmzContentSHA256Mismatch"
        if not set(signed) <= set(headers):
            return "AccessDenied"
        path, _, query = self.path.partition("?")
        right = signature(known[credential[0]], self.command, path, query, headers, signed, sha256(body))
        if not hmac.compare_digest(right, parts.get("Signature", "")):
            return "SignatureDoesNotMatch"
        return "AccessDenied" if credential[0] in self.others else ""

    def answer(self, status, body=b"", headers=(), announced=None):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body) if announced is None else announced))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status, code):
        self.answer(status, f"<Error><Code>{code}</Code></Error>".encode())

    def begin(self):
        """The body and the path of the object's file, or None after an answer."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        Service.requests += 1
        why = self.unsigned(body)
        if why:
            return self.refuse(403, why)
        if self.lie == "redirect":
            return self.answer(307, headers=[("Location", "http://127.0.0.1:1/")])
        if self.lie == "slow_down" and Service.requests % 5 == 0:
            return self.refuse(503, "SlowDown")
        path, _, query = self.path.partition("?")
        bucket, _, key = path.lstrip("/").partition("/")
        if bucket != BUCKET or ".." in key:
            return self.refuse(404, "NoSuchBucket")
        return body, self.folder / key if key else None, dict(urllib.parse.parse_qsl(query))

    @staticmethod
    def is_data(path):
        """Not what a run needs to begin with."""
        return path.parent.name.startswith("assay-storage-") and "_to_" in path.name

    def lies_about(self, path, lie):
        return self.lie == lie and self.is_data(path)

    @staticmethod
    def is_fresh(path):
        return time.time() - path.stat().st_mtime < STALE_S

    def etag(self, content, path):
        return f'"{hashlib.md5(content + (b"!" if self.lies_about(path, "wrong_etag") and self.command == "GET" else b"")).hexdigest()}"'

    def do_PUT(self):
        begun = self.begin()
        if not begun:
            return
        body, path, _ = begun
        if path.exists() and self.lies_about(path, "stale"):
            Service.before[path] = (path.read_bytes(), time.time() + STALE_S)
        if not self.lies_about(path, "drop_put"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_name(path.name + ".part").write_bytes(body)
            path.with_name(path.name + ".part").rename(path)
        self.answer(200, headers=[("ETag", self.etag(body, path))])

    def do_GET(self):
        begun = self.begin()
        if not begun:
            return
        _, path, query = begun
        if path is None:
            return self.list(query.get("prefix", ""))
        if not path.is_file():
            return self.refuse(404, "NoSuchKey")
        content = path.read_bytes()
        etag = self.etag(content, path)
        old, until = Service.before.get(path, (b"", 0))
        if time.time() < until:
            content = old
        if self.lies_about(path, "empty") and self.is_fresh(path):
            content = b""
        if self.lies_about(path, "cut"):
            content = content[:-1]
        if self.lies_about(path, "flipped"):
            content = content[:100] + bytes([content[100] ^ 1]) + content[101:]
        headers = [("ETag", etag)]
        if self.lies_about(path, "short_body"):
            self.close_connection = True
            return self.answer(200, content[:-1], headers, len(content))
        self.answer(200, content, headers)

    do_HEAD = do_GET

    def do_DELETE(self):
        begun = self.begin()
        if not begun:
            return
        if not self.lies_about(begun[1], "keep"):
            begun[1].unlink(missing_ok=True)
        self.answer(204)

    def list(self, prefix):
        folder = (self.folder / (prefix or "_")).parent
        names = (
            [path for path in folder.iterdir() if str(path.relative_to(self.folder)).startswith(prefix)]
            if folder.is_dir()
            else []
        )
        shown = [path for path in names if not (self.lies_about(path, "listing") and self.is_fresh(path))]
        rows = "".join(f"<Contents><Key>{path.relative_to(self.folder)}</Key></Contents>" for path in shown)
        self.answer(200, f"<ListBucketResult>{rows}</ListBucketResult>".encode())

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    port_file, folder, Service.access, Service.secret = sys.argv[1:5]
    Service.folder = pathlib.Path(folder)
    Service.lie = sys.argv[5] if len(sys.argv) > 5 else "honest"
    assert Service.lie in LIES
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    server.handle_error = lambda *_: None  # a client that leaves is what some tests want
    pathlib.Path(port_file + ".new").write_text(str(server.server_address[1]))
    os.rename(port_file + ".new", port_file)
    server.serve_forever()
