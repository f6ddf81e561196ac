// roce_settings: DCB over rtnetlink (linux/dcbnl.h), and the files of NVIDIA's drivers for ECN and the traffic class
// (MLNX_OFED documentation, "Explicit Congestion Notification" and "RoCE").
#include "probes/health/roce_settings.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ranges>
#include <sstream>

#include <linux/dcbnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "probes/core/machine_tree.h"
#include "probes/core/netlink.h"
#include "probes/core/whole_number.h"
#include "probes/health/kernel_settings.h"

namespace assay::health {
namespace {

std::optional<int> port_number(std::string_view text) {
  constexpr int kMost = 255;
  const auto number = whole_number<int>(text);
  return number && *number >= 1 && *number <= kMost ? number : std::nullopt;
}

constexpr int kPriorities = IEEE_8021QAZ_MAX_TCS;
constexpr int kMostDscp = 63;

/// The kernel's answer for a port of this machine; empty if its driver has no DCB.
std::string asked_dcb(const std::string& interface) {
  const Descriptor socket = netlink_socket(NETLINK_ROUTE);
  if (!socket) return "";
  const dcbmsg head = {.dcb_family = AF_UNSPEC, .cmd = DCB_CMD_IEEE_GET, .dcb_pad = 0};
  const std::string body = std::string(reinterpret_cast<const char*>(&head), sizeof head) +
                           netlink_attribute(DCB_ATTR_IFNAME, {interface.c_str(), interface.size() + 1});
  const auto [answer, cause] = exchange(socket, RTM_GETDCB, body, sizeof head);
  return cause.empty() ? answer.substr(sizeof head) : "";
}

std::string priorities_in(unsigned bits) {
  std::string all;
  for (int priority = 0; priority < kPriorities; ++priority) {
    if ((bits >> priority & 1U) != 0) all += fmt::format("{}{}", all.empty() ? "" : " ", priority);
  }
  return all.empty() ? "none" : all;
}

std::string dscp_words(const std::map<int, int>& priorities) {
  std::string all;
  for (const auto& [dscp, priority] : priorities) all += fmt::format("{}{}:{}", all.empty() ? "" : " ", dscp, priority);
  return all.empty() ? "none" : all;
}

/// The class that the driver gives to all traffic of a port: "Global tclass=106" in the first line.
std::optional<std::int64_t> traffic_class(const MachineTree& tree, const std::string& device) {
  constexpr std::string_view kKey = "Global tclass=";
  constexpr int kMost = 255;
  const auto text = tree.text("sys/class/infiniband/" + device + "/tc/1/traffic_class");
  if (!text || !text->starts_with(kKey)) return std::nullopt;
  const std::string line = text->substr(kKey.size(), text->find('\n') - kKey.size());
  const auto value = whole_number(line);
  return value && *value >= 0 && *value <= kMost ? value : std::nullopt;
}

}  // namespace

std::vector<Hca> active_hcas(const MachineTree& tree) {
  std::vector<Hca> hcas;
  for (const auto& name : tree.names("sys/class/infiniband")) {
    const std::string directory = "sys/class/infiniband/" + name;
    const auto address = tree.pci_address(directory + "/device");
    if (!address) continue;
    for (const auto& port : tree.names(directory + "/ports")) {
      const auto number = port_number(port);
      if (number && tree.text(directory + "/ports/" + port + "/state").value_or("").ends_with("ACTIVE"))
        hcas.push_back({.name = name, .port = *number, .pci_address = *address});
    }
  }
  return hcas;
}

bool is_left_by(std::string_view filter, const Hca& hca) {
  const bool excludes = filter.starts_with('^');
  if (excludes) filter.remove_prefix(1);
  const bool is_exact = filter.starts_with('=');
  if (is_exact) filter.remove_prefix(1);
  if (filter.empty()) return true;
  const auto names = [&](std::string_view one) {
    const auto colon = one.find(':');
    const auto name = one.substr(0, colon);
    if (colon != std::string_view::npos && port_number(one.substr(colon + 1)) != hca.port) return false;
    return is_exact ? hca.name == name : !name.empty() && hca.name.starts_with(name);
  };
  const auto is_named = std::ranges::any_of(filter | std::views::split(','), [&](const auto& part) {
    return names(std::string_view(part.begin(), part.end()));
  });
  return is_named != excludes;
}

std::optional<std::string> hca_filter_in(const std::string& configuration) {
  constexpr std::string_view kKey = "NCCL_IB_HCA=";
  std::istringstream lines(configuration);
  std::optional<std::string> filter;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kKey)) filter = told(std::string_view(line).substr(kKey.size()));
  }
  return filter;
}

std::optional<NearestHca> nearest_hca(const MachineTree& tree, const std::string& gpu, const std::vector<Hca>& hcas) {
  std::optional<NearestHca> nearest;
  for (const Hca& hca : hcas) {
    const PciWay way = pci_way(tree, gpu, hca.pci_address);
    if (way.nearness != Nearness::unknown && (!nearest || way < nearest->way)) nearest = {.hca = hca, .way = way};
  }
  return nearest;
}

DcbSettings parse_dcb(std::string_view attributes) {
  DcbSettings settings;
  const auto ieee = find_attribute(attributes, DCB_ATTR_IEEE);
  if (!ieee) return settings;
  const auto flow_control = find_attribute(*ieee, DCB_ATTR_IEEE_PFC);
  if (flow_control && flow_control->size() >= offsetof(ieee_pfc, mbc))
    settings.lossless = static_cast<unsigned char>((*flow_control)[offsetof(ieee_pfc, pfc_en)]);
  auto table = find_attribute(*ieee, DCB_ATTR_IEEE_APP_TABLE);
  if (!table) return settings;
  while (const auto entry = next_attribute(*table, DCB_ATTR_IEEE_APP)) {
    dcb_app app = {};
    if (entry->size() < sizeof app) return {.lossless = settings.lossless, .priorities = {}};
    std::memcpy(&app, entry->data(), sizeof app);
    if (app.selector != IEEE_8021QAZ_APP_SEL_DSCP || app.protocol > kMostDscp || app.priority >= kPriorities) continue;
    if (!settings.priorities) settings.priorities.emplace();
    settings.priorities->insert_or_assign(app.protocol, app.priority);
  }
  return settings;
}

Values roce_settings(const MachineTree& tree, const Nic& nic) {
  constexpr std::size_t kMostSaved = 64 << 10;
  Values values;
  if (!nic.rdma_device) return values;
  const auto layer = line_of(tree, "sys/class/infiniband/" + *nic.rdma_device + "/ports/1/link_layer");
  if (layer != "Ethernet") return values;
  const auto dcb = parse_dcb(
      tree.is_this_machine() ? asked_dcb(nic.name) : tree.bytes("saved/" + nic.name + ".dcb", kMostSaved).value_or(""));
  if (dcb.lossless) values["pfc_priorities"] = priorities_in(*dcb.lossless);
  if (dcb.priorities) values["dscp_priorities"] = dscp_words(*dcb.priorities);
  const std::string ecn = "sys/class/net/" + nic.name + "/ecn/";
  const auto answers = numbers_on(tree, ecn + "roce_np/enable"), slows = numbers_on(tree, ecn + "roce_rp/enable");
  if (answers) values["ecn_notification_priorities"] = *answers;
  if (slows) values["ecn_reaction_priorities"] = *slows;
  const auto whole_class = traffic_class(tree, *nic.rdma_device);
  if (!whole_class) return values;
  values["traffic_class"] = *whole_class;
  constexpr int kDscpShift = 2;  // the two bits below are those of ECN
  const int dscp = static_cast<int>(*whole_class) >> kDscpShift;
  // A DSCP outside of the table keeps the driver's own priority, which nothing shows.
  if (!dcb.priorities || !dcb.priorities->contains(dscp)) return values;
  const int priority = dcb.priorities->at(dscp);
  if (dcb.lossless) values["traffic_class_lossless"] = (*dcb.lossless >> priority & 1U) != 0;
  const auto has = [&](const std::string& numbers) {
    return numbers.find(fmt::format("{}", priority)) != std::string::npos;
  };
  if (answers && slows) values["traffic_class_ecn"] = has(*answers) && has(*slows);
  return values;
}

}  // namespace assay::health
