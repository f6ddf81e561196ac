// peer_memory: copies of shards from one node's memory into another's over TCP.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "probes/core/probe.h"
#include "probes/core/rendezvous.h"
#include "probes/host/tcp_streams.h"
#include "workloads/cluster_checkpoint/checkpoint_layout.h"

namespace assay::cluster_checkpoint {

/// The streams that leave this rank, and those that come in, for one shift of all ranks.
struct PeerStreams {
  host::Streams out, in;
};

/// Opens `count` streams from every rank r to rank (r + distance) % world; distance from 1 to world - 1. All ranks call
/// it. Only callers that know the token of the placement are let in. Throws RendezvousError, std::system_error or
/// std::runtime_error.
PeerStreams open_peer_streams(const Placement& placement, Rendezvous& group, int distance, std::size_t count);

/// Sent and received memory of one rank in a turn; either may be nothing.
struct PeerTurn {
  const std::vector<CheckpointShard>* sent = nullptr;
  std::span<const std::byte> from = {};
  const std::vector<CheckpointShard>* received = nullptr;
  std::span<std::byte> into = {};
};

/// Sends and receives at once; each stream has every count-th shard. Both ends give the same shards. Throws when a peer
/// has gone or moves nothing for 30 s.
void exchange_with_peers(const PeerStreams& streams, const PeerTurn& turn, Rendezvous& group);

}  // namespace assay::cluster_checkpoint
