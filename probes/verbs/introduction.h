// introduction: exchange of two ranks before they connect, and the path that follows from it. No verbs in here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "probes/core/record.h"
#include "probes/verbs/adapter.h"
#include "probes/verbs/endpoint.h"

namespace assay::verbs {

/// One rank's side of a pair.
struct Introduction {
  std::string host;        ///< host name
  std::string boot;        ///< the kernel's boot id; empty if it is not reported
  std::string parameters;  ///< of the probe, as JSON; both ranks must have the same
  std::string port;        ///< "mlx5_0/1"
  std::string node_guid;   ///< of the device
  std::string link_layer;  ///< "Ethernet", "InfiniBand"
  std::string gid, gid_type;
  int gid_index = 0;
  int lid = 0;
  int mtu = 0;          ///< active, B
  int mtu_max = 0;      ///< the largest that the port can have, B
  double rate = 0;      ///< signalling rate of the port in one direction, B/s; 0 if it does not report it
  double rate_max = 0;  ///< of the fastest mode that port and driver support, B/s; 0 where the driver lists none
  int reads_as_initiator = 0, reads_as_responder = 0;
};

/// As bytes for the rendezvous.
std::string packed(const Introduction& introduction);
/// Reads packed()'s output. Throws std::runtime_error for anything else.
Introduction unpacked_introduction(std::string_view bytes);

/// The same for the address of an endpoint.
std::string packed(const EndpointAddress& address);
EndpointAddress unpacked_address(std::string_view bytes);

/// Whether the two sides are one machine: they share the kernel's boot id.
bool one_machine(const Introduction& a, const Introduction& b);

/// Throws std::runtime_error unless the pair is what `path` ("fabric" or "loopback") asks for: two machines, or one
/// port of one machine; and when both were not given the same parameters, have different link layers or types of GID,
/// or one GID twice.
void check_pair(const Introduction& mine, const Introduction& other, std::string_view path);

/// The longest time that ack_timeout_code() gives; no wait is seven times as long.
inline constexpr Seconds kLongestAckTimeout = {4.096e-6 * (1 << 22)};
/// The time until a message that was not acknowledged is sent again, as InfiniBand counts it (Architecture
/// Specification, vol. 1, 9.7.6.1.3): 4.096 us * 2^code; the least that is not below `wanted`. Nothing if `wanted` is
/// over kLongestAckTimeout.
std::optional<std::uint8_t> ack_timeout_code(Seconds wanted);
/// The meaning of that code.
Seconds ack_timeout_of(std::uint8_t code);

/// Parameters of the path.
struct PathWish {
  std::string mtu = "auto";
  int traffic_class = 0;
  int service_level = 0;
  std::uint8_t ack_timeout = PathChoice{}.ack_timeout;
};

/// The path from `mine` to `other`: by LID within an InfiniBand subnet, by GID else. Throws as choose_mtu() does.
PathChoice path_between(const Introduction& mine, const Introduction& other, const PathWish& wish);

/// The largest payload rate that two ports could have, by the fastest mode of the slower one and the headers of packets
/// of the MTU that `wish` names, else of the largest that both can have; a port that does not report its fastest mode
/// counts with the rate it has now. Nothing if one does not report its rate either. So a port that came up slower or
/// with smaller packets than it could is short of the limit.
std::optional<BytesPerSecond> payload_limit_between(const Introduction& a, const Introduction& b, const PathWish& wish);

/// Basis of that limit: "fastest mode" when both ports report it, else "rate now".
const char* payload_limit_of(const Introduction& a, const Introduction& b);

/// "RoCE v2", "RoCE v1" or "InfiniBand".
std::string transport_of(const Introduction& side);

/// "n01 mlx5_0/1 10.9.0.1" or "n01 mlx5_0/1 LID 12".
std::string address_words(const Introduction& side, bool global);

/// "pair" n01+n02, or the one port of a loopback.
Subject subject_of(const Introduction& first, const Introduction& second);

}  // namespace assay::verbs
