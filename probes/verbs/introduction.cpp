// introduction: JSON between the ranks, and the rules of the path.
#include "probes/verbs/introduction.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/json_fields.h"
#include "probes/core/json_io.h"
#include "probes/verbs/port_choice.h"

namespace assay::verbs {

template <class Io, Of<Introduction> I>
void fields(Io& io, I& i) {
  io("host", i.host), io("boot", i.boot), io("parameters", i.parameters), io("port", i.port);
  io("node_guid", i.node_guid), io("link_layer", i.link_layer), io("gid", i.gid), io("gid_type", i.gid_type);
  io("gid_index", i.gid_index), io("lid", i.lid), io("mtu", i.mtu), io("mtu_max", i.mtu_max), io("rate", i.rate);
  io("rate_max", i.rate_max), io("reads_as_initiator", i.reads_as_initiator);
  io("reads_as_responder", i.reads_as_responder);
}

template <class Io, Of<EndpointAddress> A>
void fields(Io& io, A& address) {
  io("queue_pairs", address.queue_pairs), io("packet_sequence", address.packet_sequence);
  io("memory", address.memory), io("remote_key", address.remote_key);
}

namespace {

using nlohmann::json;

constexpr std::size_t kSubnetPrefix = 19;  // characters of the upper half of a GID, "fe80:0000:0000:0000"

constexpr double kAckTimeoutUnit_s = 4.096e-6;

/// Calls `read` on parsed bytes and words the mismatch.
template <class Read>
auto read_json(std::string_view bytes, std::string_view what, const Read& read) {
  try {
    return read(parse_json_or_throw(bytes, std::string(what)));
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format(
        "the other rank's {} cannot be read ({}): is it the same version of this probe?", what, error.what()));
  }
}

}  // namespace

std::string packed(const Introduction& introduction) {
  return json(introduction).dump(-1, ' ', false, json::error_handler_t::replace);
}
Introduction unpacked_introduction(std::string_view bytes) {
  return read_json(bytes, "introduction", [](const json& from) { return from.get<Introduction>(); });
}
std::string packed(const EndpointAddress& address) { return json(address).dump(); }
EndpointAddress unpacked_address(std::string_view bytes) {
  return read_json(bytes, "address", [](const json& from) { return from.get<EndpointAddress>(); });
}

bool one_machine(const Introduction& a, const Introduction& b) { return !a.boot.empty() && a.boot == b.boot; }

void check_pair(const Introduction& mine, const Introduction& other, std::string_view path) {
  if (mine.parameters != other.parameters) throw std::runtime_error("the two ranks were given different parameters");
  const bool same_port = one_machine(mine, other) && mine.port == other.port;
  if (path == "loopback") {
    if (same_port) return;
    throw std::runtime_error(fmt::format("path loopback is one port of one machine, and the ranks are {} {} and {} {}",
                                         mine.host, mine.port, other.host, other.port));
  }
  if (mine.boot.empty() || other.boot.empty()) {
    throw std::runtime_error(
        "a rank does not report its kernel's boot id, so two machines cannot be distinguished from one");
  }
  if (one_machine(mine, other)) {
    throw std::runtime_error(
        fmt::format("both ranks are on one machine (boot {}, {} {} and {} {}): that is no fabric; hint: --path "
                    "loopback measures one port as such",
                    mine.boot, mine.host, mine.port, other.host, other.port));
  }
  if (mine.link_layer != other.link_layer) {
    throw std::runtime_error(fmt::format("{} {} is {}, {} {} is {}", mine.host, mine.port, mine.link_layer, other.host,
                                         other.port, other.link_layer));
  }
  if (mine.gid == other.gid) {
    throw std::runtime_error(
        fmt::format("{} and {} have the same GID {}: two machines with one address, or one machine twice", mine.host,
                    other.host, gid_words(mine.gid)));
  }
  if (mine.gid_type != other.gid_type || holds_ipv4(mine.gid) != holds_ipv4(other.gid)) {
    throw std::runtime_error(fmt::format(
        "{} has GID {} {} ({}), {} has GID {} {} ({}): give gid_index entries of one type and address family",
        mine.host, mine.gid_index, gid_words(mine.gid), mine.gid_type, other.host, other.gid_index,
        gid_words(other.gid), other.gid_type));
  }
}

PathChoice path_between(const Introduction& mine, const Introduction& other, const PathWish& wish) {
  const auto as_byte = [](int value) { return static_cast<std::uint8_t>(std::clamp(value, 0, 255)); };
  const bool another_subnet = mine.gid.substr(0, kSubnetPrefix) != other.gid.substr(0, kSubnetPrefix);
  return {.mtu = choose_mtu(mine.mtu, other.mtu, wish.mtu),
          .global = mine.link_layer == "Ethernet" || another_subnet,
          .gid_index = mine.gid_index,
          .target_gid = other.gid,
          .target_lid = other.lid,
          .traffic_class = wish.traffic_class,
          .service_level = wish.service_level,
          .ack_timeout = wish.ack_timeout,
          .reads_as_initiator = as_byte(std::min(mine.reads_as_initiator, other.reads_as_responder)),
          .reads_as_responder = as_byte(std::min(mine.reads_as_responder, other.reads_as_initiator))};
}

std::optional<std::uint8_t> ack_timeout_code(Seconds wanted) {
  if (wanted.count > kLongestAckTimeout.count) return std::nullopt;
  std::uint8_t code = 1;
  while (ack_timeout_of(code).count < wanted.count) ++code;
  return code;
}

Seconds ack_timeout_of(std::uint8_t code) { return {std::ldexp(kAckTimeoutUnit_s, code)}; }

std::optional<BytesPerSecond> payload_limit_between(const Introduction& a, const Introduction& b,
                                                    const PathWish& wish) {
  const auto most = [](const Introduction& side) { return std::max(side.rate, side.rate_max); };
  if (a.rate <= 0 || b.rate <= 0) return std::nullopt;
  const int mtu = wish.mtu == "auto" ? std::min(std::max(a.mtu, a.mtu_max), std::max(b.mtu, b.mtu_max))
                                     : choose_mtu(a.mtu, b.mtu, wish.mtu);
  return payload_limit({std::min(most(a), most(b))}, mtu,
                       a.link_layer == "Ethernet" ? kRoceHeaders : kInfinibandHeaders);
}

const char* payload_limit_of(const Introduction& a, const Introduction& b) {
  return a.rate_max > 0 && b.rate_max > 0 ? "fastest mode" : "rate now";
}

std::string transport_of(const Introduction& side) {
  if (side.link_layer != "Ethernet") return "InfiniBand";
  return side.gid_type == "RoCE v2" ? "RoCE v2" : "RoCE v1";
}

std::string address_words(const Introduction& side, bool global) {
  return fmt::format("{} {} {}", side.host, side.port, global ? gid_words(side.gid) : fmt::format("LID {}", side.lid));
}

Subject subject_of(const Introduction& first, const Introduction& second) {
  if (one_machine(first, second) && first.port == second.port) return {.kind = "nic", .id = first.port};
  return {.kind = "pair", .id = first.host + "+" + second.host};
}

}  // namespace assay::verbs
