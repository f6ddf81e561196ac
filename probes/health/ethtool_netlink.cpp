// ethtool_netlink: one request and one answer on a generic netlink socket, without a library: a probe runs on nodes
// that have none but those of the driver. Layout: Documentation/networking/ethtool-netlink.rst and linux/genetlink.h.
#include "probes/health/ethtool_netlink.h"

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <fmt/format.h>

#include "probes/core/descriptor.h"

namespace assay::health {
namespace {

constexpr timeval kAnswerWithin = {.tv_sec = 5, .tv_usec = 0};  // a module's memory is read over I2C at 400 kHz
constexpr std::size_t kMostAnswer = 64 << 10;
constexpr std::size_t kAlign = 4;
constexpr std::uint64_t kNotSet = ~std::uint64_t{0};  // ETHTOOL_STAT_NOT_SET of the kernel

std::size_t aligned(std::size_t size) { return (size + kAlign - 1) / kAlign * kAlign; }

/// One attribute: length, type, and the bytes filled up to four.
std::string attribute(unsigned type, std::string_view bytes) {
  nlattr head = {};
  head.nla_len = static_cast<std::uint16_t>(sizeof head + bytes.size());
  head.nla_type = static_cast<std::uint16_t>(type);
  std::string all(reinterpret_cast<const char*>(&head), sizeof head);
  all.append(bytes);
  all.resize(aligned(all.size()));
  return all;
}

template <class Number>
std::string attribute_of(unsigned type, Number value) {
  return attribute(type, {reinterpret_cast<const char*>(&value), sizeof value});
}

/// The bytes of the first attribute of `type` in a row of attributes; nothing if there is none.
std::optional<std::string_view> find_attribute(std::string_view row, unsigned type) {
  while (row.size() >= sizeof(nlattr)) {
    nlattr head = {};
    std::memcpy(&head, row.data(), sizeof head);
    if (head.nla_len < sizeof head || head.nla_len > row.size()) return std::nullopt;
    if ((head.nla_type & NLA_TYPE_MASK) == type) return row.substr(sizeof head, head.nla_len - sizeof head);
    row.remove_prefix(std::min(row.size(), aligned(head.nla_len)));
  }
  return std::nullopt;
}

/// Attributes of an answer, or why there is none.
using Asked = std::pair<std::string, std::string>;

std::string words_of(int number) { return std::error_code(number, std::generic_category()).message(); }

Asked ask(int socket, unsigned family, unsigned command, const std::string& attributes) {
  nlmsghdr outer = {};
  genlmsghdr inner = {};
  outer.nlmsg_len = static_cast<std::uint32_t>(sizeof outer + sizeof inner + attributes.size());
  outer.nlmsg_type = static_cast<std::uint16_t>(family);
  outer.nlmsg_flags = NLM_F_REQUEST;
  inner.cmd = static_cast<std::uint8_t>(command);
  inner.version = ETHTOOL_GENL_VERSION;
  std::string request(reinterpret_cast<const char*>(&outer), sizeof outer);
  request.append(reinterpret_cast<const char*>(&inner), sizeof inner).append(attributes);
  if (send(socket, request.data(), request.size(), 0) < 0) return {"", words_of(errno)};
  std::string answer(kMostAnswer, '\0');
  const ssize_t got = recv(socket, answer.data(), answer.size(), 0);
  if (got < 0) return {"", words_of(errno)};
  if (static_cast<std::size_t>(got) < sizeof outer) return {"", "the answer is cut off"};
  std::memcpy(&outer, answer.data(), sizeof outer);
  answer.resize(std::min<std::size_t>(static_cast<std::size_t>(got), outer.nlmsg_len));
  if (outer.nlmsg_type == NLMSG_ERROR && answer.size() >= sizeof outer + sizeof(int)) {
    int error = 0;
    std::memcpy(&error, answer.data() + sizeof outer, sizeof error);
    return {"", words_of(-error)};
  }
  if (answer.size() < sizeof outer + sizeof inner) return {"", "the answer is cut off"};
  return {answer.substr(sizeof outer + sizeof inner), ""};
}

/// Asks the family "ethtool", whose number comes from the kernel's controller.
Asked ask_ethtool(unsigned command, const std::string& attributes) {
  const Descriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC));
  if (!socket) return {"", words_of(errno)};
  if (setsockopt(socket.number(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerWithin, sizeof kAnswerWithin) != 0)
    return {"", words_of(errno)};
  const auto [found, cause] =
      ask(socket.number(), GENL_ID_CTRL, CTRL_CMD_GETFAMILY,
          attribute(CTRL_ATTR_FAMILY_NAME, std::string_view(ETHTOOL_GENL_NAME, sizeof ETHTOOL_GENL_NAME)));
  const auto number = find_attribute(found, CTRL_ATTR_FAMILY_ID);
  if (!number || number->size() < sizeof(std::uint16_t))
    return {"", cause.empty() ? "the kernel has no ethtool netlink" : cause};
  std::uint16_t family = 0;
  std::memcpy(&family, number->data(), sizeof family);
  return ask(socket.number(), family, command, attributes);
}

std::string header(unsigned type, const std::string& interface, std::uint32_t flags) {
  std::string inside = attribute(ETHTOOL_A_HEADER_DEV_NAME, {interface.c_str(), interface.size() + 1});
  if (flags != 0) inside += attribute_of(ETHTOOL_A_HEADER_FLAGS, flags);
  return attribute(type | NLA_F_NESTED, inside);
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
                      attribute_of<std::uint32_t>(ETHTOOL_A_MODULE_EEPROM_OFFSET, place.upper ? kHalf : 0) +
                      attribute_of<std::uint32_t>(ETHTOOL_A_MODULE_EEPROM_LENGTH, kHalf) +
                      attribute_of<std::uint8_t>(ETHTOOL_A_MODULE_EEPROM_PAGE, place.page) +
                      attribute_of<std::uint8_t>(ETHTOOL_A_MODULE_EEPROM_BANK, kBank) +
                      attribute_of<std::uint8_t>(ETHTOOL_A_MODULE_EEPROM_I2C_ADDRESS, kAddress));
  const auto data = find_attribute(attributes, ETHTOOL_A_MODULE_EEPROM_DATA);
  if (data && data->size() == kHalf) return {.bytes = std::string(*data), .absence = ""};
  return {.bytes = "",
          .absence = fmt::format("the module of {} is not reported: {}", interface,
                                 cause.empty() ? "its memory is not given" : cause)};
}

}  // namespace assay::health
