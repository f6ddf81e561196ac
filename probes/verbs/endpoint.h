// endpoint: connected queue pairs of one process with their completion queues.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "probes/verbs/adapter.h"
#include "probes/verbs/messages.h"

namespace assay::verbs {

/// How large the queues of an endpoint are.
struct EndpointPlan {
  std::uint32_t queue_pairs = 1;
  std::uint32_t sends = 1;     ///< posted on one queue pair at most
  std::uint32_t receives = 1;  ///< posted on one queue pair at most
  std::uint32_t inlined = 0;   ///< largest message that is copied into the work request, B; granted or less
};

/// Facts of an endpoint for its peer.
struct EndpointAddress {
  std::vector<std::uint32_t> queue_pairs;  ///< numbers
  std::uint32_t packet_sequence = 0;       ///< first of every queue pair, 24 bits
  std::uint64_t memory = 0;                ///< where its memory begins
  std::uint32_t remote_key = 0;
};

/// How packets get from one port to the other.
struct PathChoice {
  int mtu = 0;             ///< B
  bool global = true;      ///< by GID; else by LID
  int gid_index = 0;       ///< of the own port
  std::string target_gid;  ///< as sysfs writes it
  int target_lid = 0;
  int traffic_class = 0;  ///< of the global route header; its upper six bits are the DSCP of RoCE v2
  int service_level = 0;
  std::uint8_t ack_timeout = 14;                                ///< code of ack_timeout_code()
  std::uint8_t reads_as_initiator = 1, reads_as_responder = 1;  ///< outstanding on one queue pair
};

/// One message: its offset here and there, counted from the begin of each memory, and its size in B.
struct Transfer {
  std::size_t here = 0, there = 0;
  std::uint32_t size = 0;
};

/// Messages of one queue pair that are done.
struct Completed {
  std::uint32_t pair = 0;
  std::uint32_t messages = 0;
};

/// How often a message is sent before a queue pair gives up: with the default of 67 ms seven retries are half a second;
/// a retry that a healthy fabric never needs is then an error with the peer's name, and lost packets show in the
/// counters.
inline constexpr int kRetries = 7;

/// Queue pairs of the reliable connection (RC). Every call throws std::runtime_error, where a call of the library
/// failed VerbsError with that call; a message that ends in an error throws VerbsError with the queue pair and the
/// library's words for it.
class VerbsEndpoint {
 public:
  /// Makes the queue pairs. `adapter` and `memory` must outlive the endpoint.
  VerbsEndpoint(const Adapter& adapter, const RegisteredMemory& memory, const EndpointPlan& plan);
  VerbsEndpoint(const VerbsEndpoint&) = delete;
  VerbsEndpoint& operator=(const VerbsEndpoint&) = delete;
  ~VerbsEndpoint();

  [[nodiscard]] EndpointAddress address() const;
  /// Largest message that is inlined, B.
  [[nodiscard]] std::uint32_t inlined() const;
  /// Connects queue pair i to the peer's i. Receives may be posted before it, messages only after both sides are
  /// connected.
  void connect(const EndpointAddress& peer, const PathChoice& path);

  /// Posts `transfers` (1 to `sends` of the plan) on one queue pair, in order; the last one's completion covers
  /// all.
  void post(VerbsOperation operation, std::uint32_t pair, std::span<const Transfer> transfers);
  /// Posts room for `transfers` that the peer sends; each has a completion.
  void post_receives(std::uint32_t pair, std::span<const Transfer> transfers);
  /// Takes completions, at most done.size() entries; the number taken.
  std::size_t poll_sends(std::span<Completed> done);
  std::size_t poll_receives(std::span<Completed> done);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::verbs
