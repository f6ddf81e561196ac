// netlink: one request and one answer on a netlink socket, without a library: a probe runs on nodes that have none but
// those of the driver.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "probes/core/descriptor.h"

namespace assay {

/// Bytes of an answer, or why there is none: one of the two is empty.
using Asked = std::pair<std::string, std::string>;

/// One attribute: length, type, and the bytes filled up to four.
std::string netlink_attribute(unsigned type, std::string_view bytes);

/// The same of a number, in the order of this machine.
template <class Number>
std::string netlink_attribute_of(unsigned type, Number value) {
  return netlink_attribute(type, {reinterpret_cast<const char*>(&value), sizeof value});
}

/// The bytes of the first attribute of `type` in a row of attributes, which it shortens to the rest; nothing if there
/// is none.
std::optional<std::string_view> next_attribute(std::string_view& row, unsigned type);

/// The same of a row that stays as it is.
inline std::optional<std::string_view> find_attribute(std::string_view row, unsigned type) {
  return next_attribute(row, type);
}

/// The system's words for an error number.
std::string error_words(int number);

/// A socket of `protocol` whose answers have a deadline; else an empty one, and errno.
Descriptor netlink_socket(int protocol);

/// The bodies of all answers to a request for a whole table (NLM_F_DUMP), each at least `head` bytes; empty if the
/// kernel refuses or is late.
std::optional<std::vector<std::string>> dump(const Descriptor& socket, unsigned type, const std::string& body,
                                             std::size_t head);

/// Sends a message of `type` with `body`, and receives the answer without its header, at least `head` bytes.
Asked exchange(const Descriptor& socket, unsigned type, const std::string& body, std::size_t head);

}  // namespace assay
