"""fabric: a parameter plane for a test cluster: every node gets ports fab0, fab1, … of its own, one rail each, on leaf switches that are joined by an uplink."""
import json
import pathlib

from node import SHAPE, command

KEEP_ORDER = pathlib.Path(__file__).parent / "keep_order"


class Fabric:
    """Wires `rails` ports of every node. The first half of the nodes hangs on leaf l1, the others on l2; each rail has leaves of its own, joined to each other
    by one link. Rail R of node K has the address 10.78.R.K."""

    def __init__(self, cluster, rails=1):
        self.cluster = cluster
        self.rails = range(rails)
        self.wired = {}  # (node, interface) -> (leaf, switch port), as the cables really are
        for rail in self.rails:
            self._leaves(rail)
            for node in cluster.nodes:
                self.wire(node, rail, f"fab{rail}", self.leaf_of(node, rail))

    def leaf_of(self, node, rail):
        half = "l1" if self.cluster.nodes.index(node) < len(self.cluster.nodes) // 2 else "l2"
        return half if len(self.rails) == 1 else f"{half}r{rail}"

    def address(self, node, rail):
        return f"10.78.{rail}.{1 + self.cluster.nodes.index(node)}"

    def _leaves(self, rail):
        names = [f"{half}" if len(self.rails) == 1 else f"{half}r{rail}" for half in ("l1", "l2")]
        up = [f"up{rail}{side}" for side in "ab"]
        lines = [f"link add {name} type bridge\nlink set {name} up" for name in names]
        lines.append(f"link add {up[0]} type veth peer name {up[1]}")
        lines += [f"link set {port} master {name}\nlink set {port} up" for port, name in zip(up, names)]
        self.cluster.at_switch("ip", "-batch", "-", input="\n".join(lines) + "\n")
        self.cluster.at_switch("unshare", "--mount", KEEP_ORDER, *up)

    def wire(self, node, rail, interface, leaf):
        """Makes a port of the node with the rail's address, its cable on `leaf`."""
        port = f"f{1 + self.cluster.nodes.index(node)}x{interface[3:]}"
        command(
            "nsenter",
            f"--net=/proc/{node.init}/ns/net",
            "--",
            "ip",
            "link",
            "add",
            interface,
            "type",
            "veth",
            "peer",
            "name",
            port,
            "netns",
            str(self.cluster.switch.pid),
        )
        node.run("ip", "addr", "add", f"{self.address(node, rail)}/24", "dev", interface)
        node.run("ip", "link", "set", interface, "up")
        self.cluster.at_switch("ip", "link", "set", port, "master", leaf, "up")
        command("nsenter", f"--net=/proc/{node.init}/ns/net", "--", "unshare", "--mount", KEEP_ORDER, interface)
        self.cluster.at_switch("unshare", "--mount", KEEP_ORDER, port)
        self.wired[(node.name, interface)] = (leaf, port)

    def swap(self, node, one=0, other=1):
        """Two cables of the node are in each other's place: each port is on the other's rail, and has that one's address."""
        for rail in (one, other):
            node.run("ip", "link", "delete", f"fab{rail}")
        self.wire(node, other, f"fab{one}", self.leaf_of(node, other))
        self.wire(node, one, f"fab{other}", self.leaf_of(node, one))

    def port_at_switch(self, node, rail=0):
        return self.wired[(node.name, f"fab{rail}")][1]

    def rate_from(self, node, rate, rail=0):
        """Holds what the node sends to `rate`, such as 200mbit."""
        node.run("tc", "qdisc", "replace", "dev", f"fab{rail}", "root", "tbf", "rate", rate, *SHAPE)

    def rate_to(self, node, rate, rail=0):
        """Holds what the node receives to `rate`."""
        self.cluster.at_switch(
            "tc", "qdisc", "replace", "dev", self.port_at_switch(node, rail), "root", "tbf", "rate", rate, *SHAPE
        )

    def rates(self, rate, rail=0):
        """Holds every port of the rail to `rate`, and what streams may have under way to what the ports' queues hold."""
        for node in self.cluster.nodes:
            self.rate_from(node, rate, rail)
            self.rate_to(node, rate, rail)
            node.bound_streams(f"fab{rail}")

    def uplink(self, rate, rail=0):
        """Holds both directions of the link between the leaves to `rate`."""
        for side in "ab":
            self.cluster.at_switch(
                "tc", "qdisc", "replace", "dev", f"up{rail}{side}", "root", "tbf", "rate", rate, *SHAPE
            )

    def lose(self, node, share, source, rail=0):
        """Loses this share of the packets that come to `node` from `source`, 0 to 1."""
        node.run(
            "iptables",
            "-A",
            "INPUT",
            "-i",
            f"fab{rail}",
            "-s",
            self.address(source, rail),
            "-m",
            "statistic",
            "--mode",
            "random",
            "--probability",
            share,
            "-j",
            "DROP",
        )

    def tell_speed(self, node, megabits, rail=0):
        """The node's kernel tells this rate of the port, as after a negotiation that went wrong."""
        path = f"/tmp/speed{rail}"
        node.run("sh", "-c", f"echo {megabits} >{path} && mount --bind {path} /sys/devices/virtual/net/fab{rail}/speed")

    def lldp_client(self):
        """A program that says what each node's ports hear, as `lldpctl -f json` does: its answers follow the cables as they are now."""
        folder = self.cluster.path / "lldp"
        folder.mkdir(exist_ok=True)
        for node in self.cluster.nodes:
            heard = [
                {
                    interface: {
                        "via": "LLDP",
                        "chassis": {leaf: {"id": {"type": "mac", "value": "02:00:00:00:00:01"}}},
                        "port": {"id": {"type": "ifname", "value": port}, "descr": port},
                    }
                }
                for (name, interface), (leaf, port) in self.wired.items()
                if name == node.name
            ]
            (folder / f"{node.name}.json").write_text(json.dumps({"lldp": {"interface": heard}}))
        client = folder / "lldpctl"
        client.write_text(f"#!/bin/sh\nexec cat {folder}/$(hostname).json\n")
        client.chmod(0o755)
        return str(client)

    def site(self):
        """The cluster's site with its planes, as it was meant to be wired."""
        site = self.cluster.site()
        for node, entry in zip(self.cluster.nodes, site["nodes"]):
            ports = [
                {"interface": f"fab{rail}", "address": self.address(node, rail), "leaf": self.leaf_of(node, rail)}
                for rail in self.rails
            ]
            if len(ports) > 1:
                for rail, port in zip(self.rails, ports):
                    port["rail"] = str(rail)
            entry["planes"] = {"parameter": ports, "management": [{"interface": "eth0", "address": node.address}]}
        return site
