// peer_verbs_absent: stand-in for peer_verbs in a build without verbs: it reports that.
#include <stdexcept>

#include "workloads/cluster_checkpoint/peer_verbs.h"

namespace assay::cluster_checkpoint {

struct PeerVerbs::State {};

PeerVerbs::PeerVerbs(const VerbsWish&, Rendezvous&, std::span<std::byte>, std::span<std::byte>) {
  throw std::runtime_error(
      "peer_transport: verbs cannot be had: this build was configured with ASSAY_VERBS=OFF; hint: peer_transport=tcp "
      "copies over TCP, and the record says so");
}
PeerVerbs::PeerVerbs(PeerVerbs&&) noexcept = default;
PeerVerbs::~PeerVerbs() = default;
std::size_t PeerVerbs::connect(int, bool, std::size_t) { return 0; }
void PeerVerbs::exchange(std::size_t, const PeerTurn&) {}
std::string PeerVerbs::transport() const { return ""; }
std::string PeerVerbs::port() const { return ""; }

}  // namespace assay::cluster_checkpoint
