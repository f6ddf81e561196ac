// peer_verbs: copies of shards from one node's memory into another's by RDMA write.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "probes/core/rendezvous.h"
#include "probes/core/units.h"
#include "workloads/cluster_checkpoint/peer_memory.h"

namespace assay::cluster_checkpoint {

/// Which port, and how packets go; the words are those of the probes of verbs.
struct VerbsWish {
  std::string device = "auto", gid_index = "auto";
  int traffic_class = 0, service_level = 0;
  bool one_machine = false;  ///< ranks are processes of one machine, which use one port
  std::string root = "/";    ///< where /sys and /proc of the machine are; for tests
  Seconds stall = {30};      ///< without a completion for so long an exchange fails
};

/// After the payload of every memory that takes part: words that show the other end that all is there.
inline constexpr std::size_t kPeerTail = 4096;

/// This rank's port, its memory as peers reach it, and its connections.
class PeerVerbs {
 public:
  /// All ranks make theirs together. `state` and `incoming` end with kPeerTail bytes that are no payload, and outlive
  /// it. Throws std::runtime_error with a hint where verbs cannot be had: no library, device, active port or lockable
  /// memory, or a build without verbs; and where ranks are not on machines as `wish` says, or on unlike networks.
  PeerVerbs(const VerbsWish& wish, Rendezvous& group, std::span<std::byte> state, std::span<std::byte> incoming);
  PeerVerbs(PeerVerbs&&) noexcept;
  ~PeerVerbs();

  /// Connects every rank r with rank (r + distance) % world by `pairs` queue pairs, at most 256; distance from 1 to
  /// world - 1. Copies go from state to incoming, or with `back` from incoming to state. All ranks call it. Returns the
  /// connection's number.
  std::size_t connect(int distance, bool back, std::size_t pairs);

  /// Writes the sent data and waits for the received, at once; spans of `turn` are not looked at. Both ends give the
  /// same shards. The sender writes into the other's memory without asking: since the last use of that memory all ranks
  /// have met. Throws when a peer has gone or nothing is completed for the stall limit.
  void exchange(std::size_t connection, const PeerTurn& turn);

  /// "RoCE v2", "RoCE v1" or "InfiniBand".
  [[nodiscard]] std::string transport() const;
  /// "mlx5_0/1 10.9.0.1".
  [[nodiscard]] std::string port() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::cluster_checkpoint
