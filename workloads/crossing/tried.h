// tried: one attempt to reach an address, and its outcome. All waits end by a deadline and with stop_requested().
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <sys/socket.h>

#include "probes/core/descriptor.h"
#include "probes/core/units.h"
#include "probes/core/words.h"

namespace assay::crossing {

/// The outcome of an attempt. refused: something said no, by a TCP reset, an ICMP message of a filter or a closed port,
/// or the service itself. no_answer: the attempt left this node and nothing came back, as where a filter drops it.
/// answered: the path is open. unclear: nothing left this node, or the answer neither grants nor refuses.
enum class Outcome { refused, no_answer, answered, unclear };

constexpr auto words_of(Outcome) { return names_as_words<Outcome>(); }

/// An outcome and its evidence: "ICMP type 3 code 13 from 10.0.0.1".
struct Tried {
  Outcome outcome = Outcome::unclear;
  std::string evidence;
};

/// Where to: a numeric address and a port, and how long to wait for one answer.
struct Target {
  std::string address;
  int port = 0;
  Seconds timeout{2};
  int from_port = 0;  ///< that packets leave from, by which a watching target knows them; 0: any
};

/// An address as the kernel takes it.
struct Address {
  sockaddr_storage bytes{};
  socklen_t length = 0;
  [[nodiscard]] bool is_v6() const { return bytes.ss_family == AF_INET6; }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

/// That of `target`. Throws std::runtime_error when it is not numeric.
Address address_of(const Target& target);

/// "10.0.0.1", of IPv4 or IPv6.
std::string text_of(const sockaddr* address);

using Clock = std::chrono::steady_clock;

/// `time` from now.
Clock::time_point after(Seconds time);

/// Waits for `events` of poll(2); false when the time is over or the probe is to stop.
bool wait_for(int descriptor, short events, Clock::time_point until);

/// The outcome where no neighbour took the packet: on the link the target did not, else the gateway, and nothing left.
Tried no_neighbour(const Target& target);

/// A TCP connection to `target`, if one was accepted; else only the outcome. With `reserved` from a port below 1024
/// if that is allowed, as servers of NFS ask for.
std::pair<Descriptor, Tried> open_tcp(const Target& target, bool reserved = false);

/// A TCP connection, and the first words of the other end, if they come within half a second.
Tried try_tcp(const Target& target);

/// One datagram with `payload`; answered if one comes back that begins with `answer`.
Tried try_udp(const Target& target, std::string_view payload, std::string_view answer = "");

/// Sends all of `bytes`, then receives until `wanted` bytes came, the other end closes, or the time is over.
std::string exchange(const Descriptor& connection, std::string_view bytes, std::size_t wanted, Seconds timeout);

/// The outcome by an ICMP message of `type` and `code` (of IPv6 with `v6`) from `from`: refused by codes of filters and
/// closed ports, else no_answer.
Tried of_icmp(bool v6, int type, int code, const std::string& from);

/// The same by a message that a raw socket received, of IPv4 with its IP header: unclear where `from` is this node.
/// Nothing if it is not about a datagram to `target`.
std::optional<Tried> of_icmp_message(std::string_view message, const std::string& from, const Target& target);

}  // namespace assay::crossing
