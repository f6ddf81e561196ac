// peer_paths: one transport for both ways.
#include "workloads/cluster_checkpoint/peer_paths.h"

namespace assay::cluster_checkpoint {

PeerPaths::PeerPaths(const Placement& placement, Rendezvous& group, const PeerSettings& settings,
                     std::span<std::byte> state, std::span<std::byte> incoming)
    : group_(group), own_(state), incoming_(incoming) {
  const int forth = group.world() - settings.shift, back = settings.back;
  if (settings.verbs) {
    verbs_.emplace(*settings.verbs, group, state, incoming);
    save_verbs_ = verbs_->connect(forth, false, settings.streams);
    if (back != 0) back_verbs_ = verbs_->connect(back, true, settings.streams);
    return;
  }
  tcp_ = open_peer_streams(placement, group, forth, settings.streams);
  if (back != 0) back_tcp_ = open_peer_streams(placement, group, back, settings.streams);
}

void PeerPaths::save(const std::vector<CheckpointShard>& own, const std::vector<CheckpointShard>& kept) {
  const PeerTurn turn{.sent = &own, .from = own_, .received = &kept, .into = incoming_};
  if (verbs_) return verbs_->exchange(save_verbs_, turn);
  exchange_with_peers(*tcp_, turn, group_);
}

void PeerPaths::restore(const std::vector<CheckpointShard>* kept, const std::vector<CheckpointShard>* wanted) {
  const PeerTurn turn{.sent = kept, .from = incoming_, .received = wanted, .into = own_};
  if (back_verbs_) return verbs_->exchange(*back_verbs_, turn);
  exchange_with_peers(*back_tcp_, turn, group_);
}

}  // namespace assay::cluster_checkpoint
