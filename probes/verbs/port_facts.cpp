// port_facts: one directory of sysfs for each device, one below it for each port.
#include "probes/verbs/port_facts.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <arpa/inet.h>

#include "probes/core/machine_tree.h"
#include "probes/core/whole_number.h"

namespace assay::verbs {
namespace {

constexpr int kMaxGids = 1024;  // the largest tables have 256 entries

/// "4: ACTIVE" without the number.
std::string after_colon(const std::optional<std::string>& text) {
  if (!text) return "";
  const auto colon = text->find(": ");
  return colon == std::string::npos ? *text : text->substr(colon + 2);
}

bool is_empty_gid(std::string_view value) {
  return std::ranges::all_of(value, [](char c) { return c == '0' || c == ':'; });
}

std::vector<Gid> read_gids(const MachineTree& tree, const std::string& port) {
  std::vector<Gid> gids;
  for (const auto& name : tree.names(port + "/gids")) {
    const auto index = whole_number<int>(name);
    const auto value = tree.text(port + "/gids/" + name);
    if (!index || *index < 0 || *index >= kMaxGids || !value || is_empty_gid(*value)) continue;
    // The kernel refuses the attributes of an entry without an address; the entry itself reads as zeros.
    gids.push_back({.index = *index,
                    .value = *value,
                    .type = tree.text(port + "/gid_attrs/types/" + name).value_or(""),
                    .interface = tree.text(port + "/gid_attrs/ndevs/" + name).value_or("")});
  }
  std::ranges::sort(gids, {}, &Gid::index);
  return gids;
}

PortFacts read_port(const MachineTree& tree, const std::string& device, int number) {
  const std::string directory = "sys/class/infiniband/" + device;
  const std::string port = directory + "/ports/" + std::to_string(number);
  const RateWords rate = parse_rate(tree.text(port + "/rate").value_or(""));
  PortFacts facts{.device = device,
                  .port = number,
                  .state = after_colon(tree.text(port + "/state")),
                  .physical_state = after_colon(tree.text(port + "/phys_state")),
                  .link_layer = tree.text(port + "/link_layer").value_or(""),
                  .rate = rate.rate,
                  .width = rate.width,
                  .speed = rate.speed,
                  .firmware = tree.text(directory + "/fw_ver").value_or(""),
                  .board = tree.text(directory + "/board_id").value_or(""),
                  .node_guid = tree.text(directory + "/node_guid").value_or(""),
                  .pci_address = tree.pci_address(directory + "/device").value_or(""),
                  .gids = read_gids(tree, port)};
  if (const auto node = tree.number(directory + "/device/numa_node"); node && *node >= 0)
    facts.numa_node = static_cast<int>(*node);
  if (const auto lid = tree.text(port + "/lid"); lid && lid->starts_with("0x")) {
    if (const auto value = whole_number<int>(lid->substr(2), 16); value && *value != 0) facts.lid = value;
  }
  const auto named = std::ranges::find_if(facts.gids, [](const Gid& gid) { return !gid.interface.empty(); });
  if (named != facts.gids.end()) facts.interface = named->interface;
  return facts;
}

std::optional<in6_addr> address_of(const std::string& value) {
  in6_addr address = {};
  if (inet_pton(AF_INET6, value.c_str(), &address) != 1) return std::nullopt;
  return address;
}

}  // namespace

RateWords parse_rate(std::string_view text) {
  RateWords words;
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view tail(rest, text.data() + text.size());
  if (error != std::errc{} || !tail.starts_with(" Gb/sec") || !(number > 0)) return words;
  constexpr double kBitsPerByte = 8;
  words.rate = BytesPerSecond{number * 1e9 / kBitsPerByte};
  const auto open = tail.find('('), close = tail.find(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return words;
  const std::string_view inside = tail.substr(open + 1, close - open - 1);
  const auto cross = inside.find('X');
  if (cross == std::string_view::npos) return words;
  words.width = whole_number<int>(inside.substr(0, cross));
  if (cross + 2 <= inside.size() && inside[cross + 1] == ' ') words.speed = inside.substr(cross + 2);
  return words;
}

std::vector<PortFacts> read_ports(const MachineTree& tree) {
  std::vector<PortFacts> ports;
  for (const auto& device : tree.names("sys/class/infiniband")) {
    std::vector<int> numbers;
    for (const auto& name : tree.names("sys/class/infiniband/" + device + "/ports")) {
      if (const auto number = whole_number<int>(name); number && *number > 0) numbers.push_back(*number);
    }
    std::ranges::sort(numbers);
    for (const int number : numbers) ports.push_back(read_port(tree, device, number));
  }
  return ports;
}

std::string gid_words(const std::string& value) {
  const auto address = address_of(value);
  if (!address) return value;
  std::array<char, INET6_ADDRSTRLEN> text = {};
  if (IN6_IS_ADDR_V4MAPPED(&*address)) {
    if (inet_ntop(AF_INET, &address->s6_addr[12], text.data(), text.size()) == nullptr) return value;
  } else if (inet_ntop(AF_INET6, &*address, text.data(), text.size()) == nullptr) {
    return value;
  }
  return text.data();
}

bool holds_ipv4(const std::string& value) {
  const auto address = address_of(value);
  return address && IN6_IS_ADDR_V4MAPPED(&*address);
}

bool is_link_local(const std::string& value) {
  const auto address = address_of(value);
  return address && IN6_IS_ADDR_LINKLOCAL(&*address);
}

}  // namespace assay::verbs
