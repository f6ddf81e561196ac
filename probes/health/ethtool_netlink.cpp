// ethtool_netlink: layout of Documentation/networking/ethtool-netlink.rst and linux/genetlink.h.
#include "probes/health/ethtool_netlink.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include <linux/ethtool.h>
#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "probes/core/descriptor.h"
#include "probes/core/netlink.h"

namespace assay::health {
namespace {

constexpr std::uint32_t kMaxCounters = 65'536;  // mlx5 with a thousand queues has some ten thousand

bool ask(int socket, const std::string& interface, void* request) {
  ifreq envelope = {};
  std::memcpy(envelope.ifr_name, interface.data(), interface.size());
  envelope.ifr_data = static_cast<char*>(request);
  return ioctl(socket, SIOCETHTOOL, &envelope) == 0;
}

/// A request with a fixed head and a tail of `bytes`, zeroed and aligned for the kernel's structures.
std::vector<std::uint64_t> room_for(std::size_t head, std::size_t bytes) {
  return std::vector<std::uint64_t>((head + bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
}

constexpr std::uint64_t kNotSet = ~std::uint64_t{0};  // ETHTOOL_STAT_NOT_SET of the kernel

Asked ask(const Descriptor& socket, unsigned family, unsigned command, const std::string& attributes) {
  genlmsghdr inner = {};
  inner.cmd = static_cast<std::uint8_t>(command);
  inner.version = ETHTOOL_GENL_VERSION;
  const std::string head(reinterpret_cast<const char*>(&inner), sizeof inner);
  auto [answer, cause] = exchange(socket, family, head + attributes, sizeof inner);
  return {cause.empty() ? answer.substr(sizeof inner) : "", cause};
}

/// Asks the family "ethtool", whose number comes from the kernel's controller.
Asked ask_ethtool(unsigned command, const std::string& attributes) {
  const Descriptor socket = netlink_socket(NETLINK_GENERIC);
  if (!socket) return {"", error_words(errno)};
  const auto [found, cause] =
      ask(socket, GENL_ID_CTRL, CTRL_CMD_GETFAMILY,
          netlink_attribute(CTRL_ATTR_FAMILY_NAME, std::string_view(ETHTOOL_GENL_NAME, sizeof ETHTOOL_GENL_NAME)));
  const auto number = find_attribute(found, CTRL_ATTR_FAMILY_ID);
  if (!number || number->size() < sizeof(std::uint16_t))
    return {"", cause.empty() ? "the kernel has no ethtool netlink" : cause};
  std::uint16_t family = 0;
  std::memcpy(&family, number->data(), sizeof family);
  return ask(socket, family, command, attributes);
}

std::string header(unsigned type, const std::string& interface, std::uint32_t flags) {
  std::string inside = netlink_attribute(ETHTOOL_A_HEADER_DEV_NAME, {interface.c_str(), interface.size() + 1});
  if (flags != 0) inside += netlink_attribute_of(ETHTOOL_A_HEADER_FLAGS, flags);
  return netlink_attribute(type | NLA_F_NESTED, inside);
}

/// The numbers of a counter: its total, then one for each lane.
std::vector<std::uint64_t> numbers_of(std::string_view stats, unsigned type) {
  const auto bytes = find_attribute(stats, type);
  if (!bytes) return {};
  std::vector<std::uint64_t> numbers(bytes->size() / sizeof(std::uint64_t));
  std::memcpy(numbers.data(), bytes->data(), numbers.size() * sizeof(std::uint64_t));
  return numbers;
}

}  // namespace

std::vector<std::pair<std::string, std::int64_t>> ethtool_counters(const std::string& interface) {
  if (interface.empty() || interface.size() >= IFNAMSIZ) return {};
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.number() < 0) return {};
  ethtool_drvinfo driver = {};
  driver.cmd = ETHTOOL_GDRVINFO;
  if (!ask(socket.number(), interface, &driver) || driver.n_stats == 0 || driver.n_stats > kMaxCounters) return {};

  // The kernel writes as many as there are by then, not as many as requested: room for those of queues that come
  // meanwhile.
  const std::size_t room = 2 * std::size_t{driver.n_stats};
  auto name_room = room_for(sizeof(ethtool_gstrings), room * ETH_GSTRING_LEN);
  auto* const names = reinterpret_cast<ethtool_gstrings*>(name_room.data());
  names->cmd = ETHTOOL_GSTRINGS;
  names->string_set = ETH_SS_STATS;
  names->len = driver.n_stats;
  auto value_room = room_for(sizeof(ethtool_stats), room * sizeof(std::uint64_t));
  auto* const values = reinterpret_cast<ethtool_stats*>(value_room.data());
  values->cmd = ETHTOOL_GSTATS;
  values->n_stats = driver.n_stats;
  if (!ask(socket.number(), interface, names) || !ask(socket.number(), interface, values)) return {};

  std::vector<std::pair<std::string, std::int64_t>> counters;
  for (std::uint32_t i = 0; i < std::min({driver.n_stats, names->len, values->n_stats}); ++i) {
    const char* const name = reinterpret_cast<const char*>(names->data) + std::size_t{i} * ETH_GSTRING_LEN;
    if (values->data[i] > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) continue;
    counters.emplace_back(std::string(name, strnlen(name, ETH_GSTRING_LEN)),
                          static_cast<std::int64_t>(values->data[i]));
  }
  return counters;
}

FecStatistics parse_fec(std::string_view attributes) {
  FecStatistics result;
  const auto stats = find_attribute(attributes, ETHTOOL_A_FEC_STATS);
  if (!stats) {
    result.absence = "the driver counts no error correction";
    return result;
  }
  const auto total = [](const std::vector<std::uint64_t>& numbers) -> std::optional<std::uint64_t> {
    if (numbers.empty() || numbers.front() == kNotSet) return std::nullopt;
    return numbers.front();
  };
  const auto blocks = numbers_of(*stats, ETHTOOL_A_FEC_STAT_CORRECTED);
  const auto bits = numbers_of(*stats, ETHTOOL_A_FEC_STAT_CORR_BITS);
  result.corrected_blocks = total(blocks);
  result.corrected_bits = total(bits);
  result.uncorrectable_blocks = total(numbers_of(*stats, ETHTOOL_A_FEC_STAT_UNCORR));
  const auto& lanes = bits.size() > 1 ? bits : blocks;
  if (lanes.size() > 1) result.corrected_by_lane.assign(lanes.begin() + 1, lanes.end());
  if (!result.corrected_blocks && !result.corrected_bits && !result.uncorrectable_blocks)
    result.absence = "the driver counts no error correction";
  return result;
}

FecStatistics fec_statistics(const std::string& interface) {
  const auto [attributes, cause] =
      ask_ethtool(ETHTOOL_MSG_FEC_GET, header(ETHTOOL_A_FEC_HEADER, interface, ETHTOOL_FLAG_STATS));
  if (cause.empty()) return parse_fec(attributes);
  FecStatistics nothing;
  nothing.absence = fmt::format("error correction of {} is not reported: {}", interface, cause);
  return nothing;
}

ModuleAnswer module_memory(const std::string& interface, ModulePlace place) {
  constexpr std::uint32_t kHalf = 128;
  constexpr std::uint8_t kAddress = 0x50, kBank = 0;
  const auto [attributes, cause] =
      ask_ethtool(ETHTOOL_MSG_MODULE_EEPROM_GET,
                  header(ETHTOOL_A_MODULE_EEPROM_HEADER, interface, 0) +
                      netlink_attribute_of<std::uint32_t>(ETHTOOL_A_MODULE_EEPROM_OFFSET, place.upper ? kHalf : 0) +
                      netlink_attribute_of<std::uint32_t>(ETHTOOL_A_MODULE_EEPROM_LENGTH, kHalf) +
                      netlink_attribute_of<std::uint8_t>(ETHTOOL_A_MODULE_EEPROM_PAGE, place.page) +
                      netlink_attribute_of<std::uint8_t>(ETHTOOL_A_MODULE_EEPROM_BANK, kBank) +
                      netlink_attribute_of<std::uint8_t>(ETHTOOL_A_MODULE_EEPROM_I2C_ADDRESS, kAddress));
  const auto data = find_attribute(attributes, ETHTOOL_A_MODULE_EEPROM_DATA);
  if (data && data->size() == kHalf) return {.bytes = std::string(*data), .absence = ""};
  return {.bytes = "",
          .absence = fmt::format("the module of {} is not reported: {}", interface,
                                 cause.empty() ? "its memory is not given" : cause)};
}

}  // namespace assay::health
