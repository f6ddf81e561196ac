// verbs_tree: a made-up machine with RDMA ports.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/fake_tree.h"

namespace assay::verbs {

/// What a test says of a port; the rest is that of a healthy 400 Gb/s RoCE port with RoCE v2 over IPv4 at index 3.
struct MadeUpPort {
  std::string device = "mlx5_0";
  int port = 1;
  std::string state = "4: ACTIVE";
  std::string rate = "400 Gb/sec (4X NDR)";
  std::string link_layer = "Ethernet";
  std::vector<std::pair<std::string, std::string>> gids = {{"fe80:0000:0000:0000:5054:00ff:fe00:0001", "IB/RoCE v1"},
                                                           {"fe80:0000:0000:0000:5054:00ff:fe00:0001", "RoCE v2"},
                                                           {"0000:0000:0000:0000:0000:ffff:0a09:0001", "IB/RoCE v1"},
                                                           {"0000:0000:0000:0000:0000:ffff:0a09:0001", "RoCE v2"}};
  std::string route = {};  ///< of its PCI function from the host bridge on: "pci0000:17/0000:17:01.0/0000:18:00.0"
  int numa_node = -1;
};

/// Adds a PCI function at the end of `route` to `tree`.
inline void add_function(const FakeTree& tree, const std::string& route, int numa_node = -1) {
  tree.link("sys/bus/pci/devices/" + route.substr(route.rfind('/') + 1), "sys/devices/" + route);
  tree.file("sys/devices/" + route + "/numa_node", std::to_string(numa_node) + "\n");
}

/// Adds the port to `tree`, with a boot id for the machine.
inline void add_port(const FakeTree& tree, const MadeUpPort& made) {
  const std::string device = "sys/class/infiniband/" + made.device + "/";
  const std::string port = device + "ports/" + std::to_string(made.port) + "/";
  if (!made.route.empty()) {
    add_function(tree, made.route, made.numa_node);
    tree.link(device + "device", "sys/devices/" + made.route);
  }
  tree.file("proc/sys/kernel/random/boot_id", "5f9d3c1e-0000-4000-8000-000000000001\n");
  tree.file(device + "fw_ver", "28.39.1002\n");
  tree.file(device + "board_id", "MT_0000000838\n");
  tree.file(device + "node_guid", "5054:00ff:fe00:0001\n");
  tree.file(port + "state", made.state + "\n");
  tree.file(port + "phys_state", "5: LinkUp\n");
  tree.file(port + "rate", made.rate + "\n");
  tree.file(port + "link_layer", made.link_layer + "\n");
  tree.file(port + "lid", made.link_layer == "Ethernet" ? "0x0\n" : "0x2a\n");
  for (std::size_t i = 0; i < made.gids.size(); ++i) {
    const std::string index = std::to_string(i);
    tree.file(port + "gids/" + index, made.gids[i].first + "\n");
    if (made.gids[i].second.empty()) continue;
    tree.file(port + "gid_attrs/types/" + index, made.gids[i].second + "\n");
    tree.file(port + "gid_attrs/ndevs/" + index, "eth0\n");
  }
}

}  // namespace assay::verbs
