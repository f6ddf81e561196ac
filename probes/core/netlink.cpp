// netlink: layout as linux/netlink.h has it.
#include "probes/core/netlink.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>

#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>

namespace assay {
namespace {

constexpr timeval kAnswerWithin = {.tv_sec = 5, .tv_usec = 0};  // a module's memory is read over I2C at 400 kHz
constexpr std::size_t kMostAnswer = 64 << 10;
constexpr std::size_t kMostTable = 64 << 20;  // bytes of a whole table: a hundred thousand entries
constexpr std::size_t kAlign = 4;

std::size_t aligned(std::size_t size) { return (size + kAlign - 1) / kAlign * kAlign; }

bool send_request(const Descriptor& socket, unsigned type, unsigned flags, const std::string& body) {
  nlmsghdr outer = {};
  outer.nlmsg_len = static_cast<std::uint32_t>(sizeof outer + body.size());
  outer.nlmsg_type = static_cast<std::uint16_t>(type);
  outer.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  std::string request(reinterpret_cast<const char*>(&outer), sizeof outer);
  request.append(body);
  return send(socket.number(), request.data(), request.size(), 0) >= 0;
}

}  // namespace

std::string netlink_attribute(unsigned type, std::string_view bytes) {
  nlattr head = {};
  head.nla_len = static_cast<std::uint16_t>(sizeof head + bytes.size());
  head.nla_type = static_cast<std::uint16_t>(type);
  std::string all(reinterpret_cast<const char*>(&head), sizeof head);
  all.append(bytes);
  all.resize(aligned(all.size()));
  return all;
}

std::optional<std::string_view> next_attribute(std::string_view& row, unsigned type) {
  while (row.size() >= sizeof(nlattr)) {
    nlattr head = {};
    std::memcpy(&head, row.data(), sizeof head);
    if (head.nla_len < sizeof head || head.nla_len > row.size()) return std::nullopt;
    const auto bytes = row.substr(sizeof head, head.nla_len - sizeof head);
    row.remove_prefix(std::min(row.size(), aligned(head.nla_len)));
    if ((head.nla_type & NLA_TYPE_MASK) == type) return bytes;
  }
  return std::nullopt;
}

std::string error_words(int number) { return std::error_code(number, std::generic_category()).message(); }

Descriptor netlink_socket(int protocol) {
  Descriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
  if (socket && setsockopt(socket.number(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerWithin, sizeof kAnswerWithin) != 0)
    return Descriptor(-1);
  return socket;
}

std::optional<std::vector<std::string>> dump(const Descriptor& socket, unsigned type, const std::string& body,
                                             std::size_t head) {
  if (!send_request(socket, type, NLM_F_DUMP, body)) return std::nullopt;
  std::vector<std::string> bodies;
  std::string part(kMostAnswer, '\0');
  for (std::size_t all = 0; all < kMostTable;) {
    const ssize_t got = recv(socket.number(), part.data(), part.size(), 0);
    if (got <= 0) return std::nullopt;
    all += static_cast<std::size_t>(got);
    std::string_view rest(part.data(), static_cast<std::size_t>(got));
    while (rest.size() >= sizeof(nlmsghdr)) {
      nlmsghdr outer = {};
      std::memcpy(&outer, rest.data(), sizeof outer);
      if (outer.nlmsg_len < sizeof outer || outer.nlmsg_len > rest.size()) return std::nullopt;
      if (outer.nlmsg_type == NLMSG_DONE) return bodies;
      if (outer.nlmsg_type == NLMSG_ERROR || outer.nlmsg_len < sizeof outer + head) return std::nullopt;
      bodies.emplace_back(rest.substr(sizeof outer, outer.nlmsg_len - sizeof outer));
      rest.remove_prefix(std::min(rest.size(), aligned(outer.nlmsg_len)));
    }
  }
  return std::nullopt;
}

Asked exchange(const Descriptor& socket, unsigned type, const std::string& body, std::size_t head) {
  nlmsghdr outer = {};
  if (!send_request(socket, type, 0, body)) return {"", error_words(errno)};
  std::string answer(kMostAnswer, '\0');
  const ssize_t got = recv(socket.number(), answer.data(), answer.size(), 0);
  if (got < 0) return {"", error_words(errno)};
  if (static_cast<std::size_t>(got) < sizeof outer) return {"", "the answer is cut off"};
  std::memcpy(&outer, answer.data(), sizeof outer);
  answer.resize(std::min<std::size_t>(static_cast<std::size_t>(got), outer.nlmsg_len));
  if (outer.nlmsg_type == NLMSG_ERROR && answer.size() >= sizeof outer + sizeof(int)) {
    int error = 0;
    std::memcpy(&error, answer.data() + sizeof outer, sizeof error);
    return {"", error_words(-error)};
  }
  if (answer.size() < sizeof outer + head) return {"", "the answer is cut off"};
  return {answer.substr(sizeof outer), ""};
}

}  // namespace assay
