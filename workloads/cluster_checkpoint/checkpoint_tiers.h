// checkpoint_tiers: one rank's checkpoint in each of its places, saved into all, restored from the nearest that is
// valid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "probes/core/probe.h"
#include "probes/core/rendezvous.h"
#include "probes/core/words.h"
#include "workloads/cluster_checkpoint/checkpoint_layout.h"
#include "workloads/cluster_checkpoint/peer_memory.h"
#include "workloads/cluster_checkpoint/peer_verbs.h"
#include "workloads/storage/shared/cold_read.h"
#include "workloads/storage/shared/direct_file.h"
#include "workloads/storage/shared/payload.h"

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

/// Where a copy is, nearest first.
enum class Tier { memory, peer, local, shared };
constexpr auto words_of(Tier) { return names_as_words<Tier>(); }

/// The tiers in "memory,peer,shared", in the order of Tier. Throws BadParameter for an unknown or repeated word, and
/// for none.
std::vector<Tier> tiers_in(const std::string& words);

/// Loss before a checkpoint is restored.
enum class Lost { nothing, memory, node };

/// Settings of all repetitions.
struct TierSettings {
  CheckpointModel model;
  std::uint64_t divisor = 1;
  std::vector<Tier> tiers;
  Lost lost = Lost::nothing;
  int shift = 1;  ///< copies go to the rank so many before; a lost node's checkpoint to the one so many after
  std::size_t threads = 1;
  cluster_storage::ChunkPlan plan;
  Seconds wait = {15};
  std::optional<VerbsWish> verbs;  ///< by which copies go to a peer; nothing: over TCP
  std::string shared, local;       ///< directories; empty if the tier is not among `tiers`
  std::uint64_t nonce = 0;

  [[nodiscard]] bool has(Tier tier) const;
};

/// Measurements of one rank of a save, s from the common start.
struct TierSave {
  double bytes = 0, stall_s = 0;
  std::optional<double> peer_s, durable_s;
  std::optional<double> visible_s;  ///< from the moment when all had saved; nothing if it was not seen in time
};

/// Measurements of one rank of a restore.
struct TierRestore {
  double bytes = 0, read_s = 0, resume_s = 0;
  std::uint64_t mismatches = 0;                 ///< bytes, over all copies that were read
  std::uint64_t fallbacks = 0;                  ///< shards that a farther tier than the nearest served
  std::map<std::string, std::uint64_t> served;  ///< shards by tier; "none" where no copy was valid
  std::string first_wrong;
  std::optional<double>
      raw_s;  ///< to read the same files again and look at nothing; where a file was nearest and right
  cluster_storage::ColdReader cold;  ///< of local and shared
};

/// One rank's memory and places.
class CheckpointTiers {
 public:
  /// All ranks make theirs together, with the same settings.
  CheckpointTiers(const Placement& placement, Rendezvous& group, TierSettings settings);

  /// B of memory that a rank takes at most.
  static std::uint64_t memory_of(const TierSettings& settings, int world);

  /// Saves checkpoint `step` into all tiers; all ranks together.
  TierSave save(std::uint64_t step);
  /// Restores it; all ranks together.
  TierRestore restore(std::uint64_t step);
  /// Removes this node's local copy.
  void clear_local(std::uint64_t step) const;
  /// The ways to other nodes' memory; nothing without the tier peer.
  [[nodiscard]] const std::optional<PeerPaths>& peers() const { return peers_; }

 private:
  [[nodiscard]] std::vector<CheckpointShard> shards_of(int rank) const;
  [[nodiscard]] int from_here(int distance) const;
  [[nodiscard]] int restored_rank() const;
  [[nodiscard]] cluster_storage::PayloadKey key_of(const CheckpointShard& shard, std::uint64_t step) const;
  [[nodiscard]] std::string place(Tier tier, std::uint64_t step) const;
  void each(const std::vector<CheckpointShard>& shards, const std::function<void(std::size_t)>& work);
  void save_files(Tier tier, std::uint64_t step);
  [[nodiscard]] std::optional<double> wait_until_seen(std::uint64_t step) const;
  [[nodiscard]] bool shows_first_shard(std::uint64_t step) const;
  bool fetch(Tier tier, std::uint64_t step, const std::vector<char>& pending);
  void fetch_from_peer(const std::vector<char>& pending);
  [[nodiscard]] bool is_left(Tier tier) const;
  [[nodiscard]] std::optional<Tier> nearest_files() const;
  [[nodiscard]] std::optional<double> read_raw(Tier tier, std::uint64_t step);
  void verify(std::uint64_t step, std::vector<char>& pending, Tier tier, TierRestore& taken);
  [[nodiscard]] std::vector<std::string> paths_to_read(std::uint64_t step) const;

  Rendezvous& group_;
  TierSettings settings_;
  std::vector<CheckpointShard> own_, kept_, target_;  ///< of this rank; whose copies it keeps; which it restores
  cluster_storage::DirectMemory state_, snapshot_, incoming_;
  std::vector<cluster_storage::DirectMemory> rings_;  ///< by thread, for raw reads
  std::optional<PeerPaths> peers_;
  std::vector<std::string> failed_;  ///< by shard of target_: why the copy that was read last is none
};

}  // namespace assay::cluster_checkpoint
