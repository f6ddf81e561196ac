// peer_paths: this rank's ways to the memory of other nodes, over TCP or by verbs, as the parameters say and never by
// the other.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "workloads/cluster_checkpoint/peer_memory.h"
#include "workloads/cluster_checkpoint/peer_verbs.h"

namespace assay::cluster_checkpoint {

/// Settings of all repetitions.
struct PeerSettings {
  std::optional<VerbsWish> verbs;  ///< nothing: over TCP
  std::size_t streams = 1;         ///< of TCP, or queue pairs
  int shift = 1;                   ///< copies go to the rank so many before
  int back = 1;                    ///< to the rank so many after they come back; 0: that one keeps them itself
};

/// Both ways of one rank.
class PeerPaths {
 public:
  /// All ranks make theirs together. `state`, which is saved and restored, and `incoming`, the copies of another's, end
  /// with kPeerTail bytes that are no payload, and outlive it. Throws as open_peer_streams() and PeerVerbs do.
  PeerPaths(const Placement& placement, Rendezvous& group, const PeerSettings& settings, std::span<std::byte> state,
            std::span<std::byte> incoming);

  /// Copies `own` into the memory of another rank, and takes `kept` of a third; all ranks together, which have met
  /// since any of them used `incoming`: it may be written before this rank calls.
  void save(const std::vector<CheckpointShard>& own, const std::vector<CheckpointShard>& kept);
  /// Whether copies come back from another rank.
  [[nodiscard]] bool come_back() const { return back_tcp_ || back_verbs_; }
  /// Brings copies back: sends `kept`, takes `wanted`; either may be nothing. All ranks together, where come_back(),
  /// which have met since any of them used `state`.
  void restore(const std::vector<CheckpointShard>* kept, const std::vector<CheckpointShard>* wanted);

  /// "tcp", "RoCE v2", "RoCE v1" or "InfiniBand": carrier of the copies.
  [[nodiscard]] std::string transport() const { return verbs_ ? verbs_->transport() : "tcp"; }
  /// This rank's RDMA port and its address; empty over TCP.
  [[nodiscard]] std::string port() const { return verbs_ ? verbs_->port() : ""; }

 private:
  Rendezvous& group_;
  std::span<std::byte> own_, incoming_;
  std::optional<PeerStreams> tcp_, back_tcp_;
  std::optional<PeerVerbs> verbs_;
  std::size_t save_verbs_ = 0;
  std::optional<std::size_t> back_verbs_;
};

}  // namespace assay::cluster_checkpoint
