"""tenant_fabric: tenants in network namespaces behind a router with nftables and over bridges, with their services, and a look at what leaves a node."""
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import threading

FAKES = pathlib.Path(__file__).resolve().parent.parent / "fakes"
DEADLINE_S = 60
# Networks of nodes behind the router: addresses 10.N.0.2 and fd00:N::2, gateways 10.N.0.1 and fd00:N::1. blue1 and red1 try, the others serve.
NODES = {"blue1": 1, "blue2": 2, "red1": 3, "bmc": 4, "mgmt1": 5, "store": 6}
LINK = {"blue1": 1, "blue2": 2, "red1": 3}  # on the bridge of a tenant: 172.16.0.N and fd01::N
PORTS = {
    "tcp": 8080,
    "udp": 9000,
    "nfs": 2049,
    "s3": 9001,
    "bmc_ipmi": 623,
    "bmc_redfish": 443,
    "bmc_ssh": 22,
    "metadata": 80,
    "kube_api": 6443,
    "kubelet": 10250,
    "etcd": 2379,
    "dcgm": 5555,
    "l2": 0,
}
DEAF = 9514  # of UDP on blue2, which answers nobody
MUTE = 8082  # of TCP on blue2, which accepts connections and says nothing
# Servers that not every machine has: without one its paths are not tried.
SERVERS = {"nfs": "ganesha.nfsd", "bmc_ipmi": "ipmi_sim"}
MISSING = {kind: program for kind, program in SERVERS.items() if shutil.which(program) is None}
for absent in MISSING:
    del PORTS[absent]
HOSTS = {"tcp": "blue2", "udp": "blue2", "kubelet": "blue2", "nfs": "store", "s3": "store"}  # others: bmc
ONLY_IPV4 = ("nfs", "bmc_ipmi")  # whose servers here have no other address
BY_ITSELF = {"nfs": "NFS4ERR", "s3": "HTTP status 403 AccessDenied"}  # which all tenants reach; the service refuses
# Ports of TCP on which a connection is accepted, and what is then said: SERVICES ADDRESS CERTIFICATE KEY PORT...
SERVICES = r"""
import http.server, socket, socketserver, ssl, sys, threading
address, certificate, key, *ports = sys.argv[1:]
if ":" in address: socketserver.TCPServer.address_family = socketserver.UDPServer.address_family = socket.AF_INET6
class Web(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
    def log_message(self, *_): pass
class Silent(socketserver.BaseRequestHandler):
    def handle(self): self.request.recv(1)
class Deaf(socketserver.BaseRequestHandler):
    def handle(self): pass
class Mute(socketserver.BaseRequestHandler):
    def handle(self):
        while self.request.recv(4096): pass
class Echo(socketserver.BaseRequestHandler):
    def handle(self): self.request[1].sendto(self.request[0], self.client_address)
servers = []
for port in map(int, ports):
    if port == 9000: server = socketserver.ThreadingUDPServer((address, port), Echo)
    elif port == 9514: server = socketserver.ThreadingUDPServer((address, port), Deaf)
    elif port in (80, 443): server = http.server.ThreadingHTTPServer((address, port), Web)
    else: server = socketserver.ThreadingTCPServer((address, port), Mute if port == 8082 else Silent)
    if port == 443:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
"""
GANESHA = """
NFS_CORE_PARAM {{ NFS_Protocols = 4; Bind_addr = {address}; NFS_Port = 2049; Enable_NLM = false; Enable_RQUOTA = false; }}
NFSv4 {{ Graceless = true; RecoveryRoot = {base}/nfs; Minor_Versions = 0, 1, 2; }}
EXPORT {{ Export_ID = 1; Path = "{base}/closed"; Pseudo = "/closed"; Access_Type = NONE; Protocols = 4; Transports = TCP; SecType = sys; FSAL {{ Name = VFS; }}
  CLIENT {{ Clients = {blue}; Access_Type = RW; }} }}
EXPORT {{ Export_ID = 3; Path = "{base}/near"; Pseudo = "/near"; Access_Type = NONE; Protocols = 4; Transports = TCP; SecType = sys; FSAL {{ Name = VFS; }}
  CLIENT {{ Clients = {red}; Access_Type = RW; }} }}
EXPORT {{ Export_ID = 4; Path = "{base}/apart"; Pseudo = "/apart"; Access_Type = NONE; Protocols = 4; Transports = TCP; SecType = sys; FSAL {{ Name = VFS; }}
  CLIENT {{ Clients = {red}; Access_Type = RW; }} }}
EXPORT {{ Export_ID = 2; Path = "{base}/leak"; Pseudo = "/leak"; Access_Type = RW; Protocols = 4; Transports = TCP; SecType = sys; FSAL {{ Name = VFS; }} }}
"""
IPMI = """name "bmc"
set_working_mc 0x20
  startlan 1
    addr 10.4.0.2 623
    priv_limit admin
    allowed_auths_callback none md2 md5 straight
    allowed_auths_user none md2 md5 straight
    allowed_auths_operator none md2 md5 straight
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  user 1 true "" "test" user 10 none md2 md5 straight
"""


def run(*words, **more):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=DEADLINE_S, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def ganesha(base, address, blue, red):
    """The words of a shell, in mounts of its own, for nfs-ganesha at `address`: below `base` the export closed for the addresses `blue`, near beside it for
    `red`, apart for `red` on a file system of its own, and leak for all."""
    for folder in ("closed", "leak", "near", "apart", "nfs", "run"):
        (base / folder).mkdir(exist_ok=True)
    clients = {"blue": ", ".join(blue), "red": ", ".join(red)}
    (base / "ganesha.conf").write_text(GANESHA.format(base=base, address=address, **clients))
    run("truncate", "-s", "16M", base / "disk")
    run("mkfs.ext4", "-q", base / "disk")
    mounts = f"mkdir -p /var/lib/nfs && mount --bind {base}/nfs /var/lib/nfs && mount -o loop {base}/disk {base}/apart"
    return f"{mounts} && exec ganesha.nfsd -F -f {base}/ganesha.conf -L {base}/ganesha.log -p {base}/run/pid -N EVENT"


def address_of(name, ipv6=False):
    """Of a node behind the router."""
    return f"fd00:{NODES[name]}::2" if ipv6 else f"10.{NODES[name]}.0.2"


def on_link(name, ipv6=False):
    """Of a node on the bridge of a tenant."""
    return f"fd01::{LINK[name]}" if ipv6 else f"172.16.0.{LINK[name]}"


class Fabric:
    """Namespaces that end with this process, and their services."""

    def __init__(self, scratch):
        self.scratch, self.holders, self.services = scratch, {}, []
        for name in ("router", *NODES):
            holder = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", "echo up; exec sleep infinity"],
                stdout=subprocess.PIPE,
                text=True,
            )
            holder.stdout.readline()
            self.holders[name] = holder
            # No search for addresses and routers: of IPv6 the kernel then sends only what a test asks for.
            quiet = "cd /proc/sys/net/ipv6/conf/default; echo 1 >addr_gen_mode; echo 0 >accept_dad; echo 0 >router_solicitations"
            self.at(name, "sh", "-c", f"{quiet}; ip link set lo up")
        for name, number in NODES.items():
            self.wire(name, "eth0", f"to{number}", f"10.{number}.0.2/24", f"fd00:{number}::2/64", "fe80::2/64")
            for address in (f"10.{number}.0.1/24", f"fd00:{number}::1/64", "fe80::1/64"):
                self.at("router", "ip", "addr", "add", address, "dev", f"to{number}")
            for gateway in (f"10.{number}.0.1", f"fd00:{number}::1"):
                self.at(name, "ip", "route", "add", "default", "via", gateway)
        forward = "cd /proc/sys/net; echo 1 >ipv4/ip_forward; echo 1 >ipv6/conf/all/forwarding"
        self.at("router", "sh", "-c", f"{forward}; echo 0 >ipv6/icmp/ratelimit")
        for bridge in ("blue", "red"):
            self.at("router", "ip", "link", "add", bridge, "type", "bridge")
            self.at("router", "ip", "link", "set", bridge, "up")
        for name in LINK:
            self.wire(name, "eth1", f"l2-{name}", f"{on_link(name)}/24", f"{on_link(name, True)}/64")
        self.cable("blue1", "blue"), self.cable("blue2", "blue"), self.cable("red1", "red")
        self.serve()

    def at(self, name, *words, **more):
        return run(*self.enter(name), *words, **more)

    def enter(self, name):
        return ["nsenter", f"--net=/proc/{self.holders[name].pid}/ns/net"]

    def wire(self, name, inside, outside, *addresses):
        pid = self.holders[name].pid
        self.at("router", "ip", "link", "add", outside, "type", "veth", "peer", "name", inside, "netns", pid)
        self.at("router", "ip", "link", "set", outside, "up")
        for address in addresses:
            self.at(name, "ip", "addr", "add", address, "dev", inside)
        self.at(name, "ip", "link", "set", inside, "up")

    def cable(self, name, bridge):
        self.at("router", "ip", "link", "set", f"l2-{name}", "master", bridge)

    def start(self, name, *words):
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *self.enter(name), *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.services.append(process)
        return process

    def serve(self):
        certificate, key = self.scratch / "certificate", self.scratch / "key"
        run(
            *"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=bmc -days 2".split(),
            "-keyout",
            key,
            "-out",
            certificate,
        )
        for name, ports in (("blue2", [8080, 9000, DEAF, 10250, MUTE]), ("bmc", [443, 80, 6443, 2379, 5555])):
            for ipv6 in (False, True):
                words = (address_of(name, ipv6), certificate, key, *ports)
                self.start(name, sys.executable, "-c", SERVICES, *words).stdout.readline()
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.scratch / "host_key")
        os.makedirs("/run/sshd", exist_ok=True)
        self.start("bmc", "/usr/sbin/sshd", "-D", "-f", "/dev/null", "-h", self.scratch / "host_key", "-p", 22)
        (self.scratch / "lan.conf").write_text(IPMI)
        (self.scratch / "emu").write_text(
            "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\nmc_enable 0x20\n"
        )
        if "bmc_ipmi" in PORTS:
            files = ("-c", self.scratch / "lan.conf", "-f", self.scratch / "emu", "-s", self.scratch)
            self.start("bmc", "ipmi_sim", *files, "-n")
        for folder in ("objects", "closed", "notes", "elsewhere"):
            (self.scratch / folder).mkdir()
        (self.scratch / "objects" / "secret").write_text("of blue")
        (self.scratch / "closed" / "secret").write_text("of blue")
        objects = (self.scratch / "objects", "blue", "blue-secret")
        for ipv6 in (False, True):
            self.start("store", sys.executable, "-c", self.object_server(), *objects, address_of("store", ipv6))
        if "nfs" in PORTS:
            blue = [address_of("blue1"), address_of("blue2")]
            words = ganesha(self.scratch, address_of("store"), blue, [address_of("red1")])
            self.start("store", "unshare", "--mount", "sh", "-c", words)
        for tenant in ("blue", "red"):
            secret = self.scratch / f"{tenant}.json"
            secret.write_text(json.dumps({"access_key": tenant, "secret_key": f"{tenant}-secret"}))
            secret.chmod(0o600)

    @staticmethod
    def object_server():
        """object_server on an address of the network, which it has no word for."""
        return (
            f"import sys, pathlib, socket, http.server\nsys.path.insert(0, {str(FAKES)!r})\nimport object_server as o\n"
            "o.Service.folder = pathlib.Path(sys.argv[1])\no.Service.access, o.Service.secret = sys.argv[2:4]\n"
            "o.Service.others = {'red': 'red-secret'}\n"
            "server = http.server.ThreadingHTTPServer\nserver.address_family = socket.AF_INET6 if ':' in sys.argv[4] else socket.AF_INET\n"
            "server((sys.argv[4], 9001), o.Service).serve_forever()\n"
        )

    def filter(self, verdict, leaks=(), replies="accept"):
        """What red sends to the other tenants is dropped or rejected, but for the ports of `leaks`; storage is for all. `replies`: what becomes of
        those to red."""
        rules = [f"ip daddr {address_of('store')} accept", f"ip6 daddr {address_of('store', True)} accept"]
        for kind in leaks:
            if kind in ("l2", "nfs", "s3"):
                continue
            protocol = "udp" if kind in ("udp", "deaf", "bmc_ipmi") else "tcp"
            port = DEAF if kind == "deaf" else PORTS[kind]
            rules.append(f"{protocol} dport {port} accept")
        if verdict == "reject":
            rules += ["meta l4proto tcp reject with tcp reset", "reject with icmpx type admin-prohibited"]
        else:
            rules.append("drop")
        red = f"to{NODES['red1']}"
        table = (
            "flush ruleset\ntable inet apart { chain forward { type filter hook forward priority 0; policy accept;\n"
            f"oifname {red} ct direction reply {replies}\nct direction reply accept\n"
        )
        from_red = "".join(f"iifname {red} {rule}\n" for rule in rules)
        self.at("router", "nft", "-f", "-", input=table + from_red + "}\n}\n")
        self.cable("red1", "blue" if "l2" in leaks else "red")

    def close(self):
        for process in [*self.services, *self.holders.values()]:
            process.kill()
        for process in [*self.services, *self.holders.values()]:
            process.wait(DEADLINE_S)
            process.stdout.close()


class Sniffer:
    """Where the packets went that left a namespace: (protocol, address, port), of ARP and neighbour discovery ("arp" or "nd", whom they are about, 0)."""

    def __init__(self, fabric, name, *interfaces):
        self.sockets, self.seen = [], set()
        own = os.open("/proc/self/ns/net", os.O_RDONLY)
        there = os.open(f"/proc/{fabric.holders[name].pid}/ns/net", os.O_RDONLY)

        def opened():
            import ctypes

            ctypes.CDLL(None).setns(there, 0)
            for interface in interfaces:
                one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
                one.bind((interface, 0))
                self.sockets.append(one)
            ctypes.CDLL(None).setns(own, 0)

        thread = threading.Thread(target=opened)  # a namespace is a thread's
        thread.start()
        thread.join(DEADLINE_S)

    def stop(self):
        for one in self.sockets:
            one.setblocking(False)
            while True:
                try:
                    packet, place = one.recvfrom(2048)
                except BlockingIOError:
                    break
                if place[2] == socket.PACKET_OUTGOING:
                    self.take(packet)
            one.close()
        return self.seen

    def take(self, packet):
        kind, body = struct.unpack("!H", packet[12:14])[0], packet[14:]
        if kind == 0x0806:
            self.seen.add(("arp", socket.inet_ntoa(body[24:28]), 0))
        elif kind == 0x0800:
            header = (body[0] & 15) * 4
            port = struct.unpack("!H", body[header + 2 : header + 4])[0] if body[9] in (6, 17) else 0
            self.seen.add(({6: "tcp", 17: "udp"}.get(body[9], str(body[9])), socket.inet_ntoa(body[16:20]), port))
        elif kind == 0x86DD:
            self.take_ipv6(body)
        else:
            self.seen.add((hex(kind), "", 0))

    def take_ipv6(self, body):
        protocol, content = body[6], body[40:]
        if protocol == 0 and content[0] == 58 and content[8] == 143:
            return  # reports of multicast groups: the kernel's own, after an address was added (RFC 3810)
        if protocol == 58 and content[0] in (135, 136):
            asked = (
                content[8:24] if content[0] == 135 else body[24:40]
            )  # a reply is counted as a question to whom it goes
            self.seen.add(("nd", socket.inet_ntop(socket.AF_INET6, asked), 0))
            return
        port = struct.unpack("!H", content[2:4])[0] if protocol in (6, 17) else 0
        name = {6: "tcp", 17: "udp", 58: f"icmpv6 {content[0]}"}.get(protocol, str(protocol))
        self.seen.add((name, socket.inet_ntop(socket.AF_INET6, body[24:40]), port))
