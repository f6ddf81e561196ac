// peer_memory: one thread for each stream and direction, so that no two ranks wait for each other.
#include "workloads/cluster_checkpoint/peer_memory.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/json_io.h"
#include "workloads/storage/shared/concurrent_work.h"

namespace assay::cluster_checkpoint {
namespace {

constexpr Seconds kStreamsOpen = {30};

}  // namespace

PeerStreams open_peer_streams(const Placement& placement, Rendezvous& group, int distance, std::size_t count) {
  const Endpoint meeting = parse_endpoint(placement.rendezvous);
  const auto until = rendezvous::after(kStreamsOpen);
  const std::string own = group.rank() == 0 ? meeting.host : host::address_towards(meeting);
  const auto listener = host::listen_for_streams({.host = own, .port = meeting.port});
  const nlohmann::json here = {{"host", own}, {"port", host::port_of(listener)}};
  const auto places = group.all_gather(here.dump());
  const auto target = static_cast<std::size_t>((group.rank() + distance) % group.world());
  const auto there = parse_json_or_throw(places[target], fmt::format("address of rank {}", target));
  PeerStreams streams;
  for (std::uint32_t i = 0; i < count; ++i)
    streams.out.push_back(
        host::dial_stream({.host = there.at("host"), .port = there.at("port")}, placement.token, i, until));
  streams.in = host::accept_streams(listener, placement.token, count, until);
  group.barrier();
  return streams;
}

void exchange_with_peers(const PeerStreams& streams, const PeerTurn& turn, Rendezvous& group) {
  const std::size_t count = streams.out.size();
  std::atomic<bool> abandoned = false;
  std::atomic<std::uint64_t> counted = 0;
  cluster_storage::run_concurrently(
      2 * count,
      [&](std::size_t thread) {
        const bool sends = thread < count;
        const std::size_t first = thread % count;
        const auto* shards = sends ? turn.sent : turn.received;
        for (std::size_t i = first; shards != nullptr && i < shards->size(); i += count) {
          const auto& shard = (*shards)[i];
          if (sends) {
            host::send_all(streams.out[first].number(), turn.from.subspan(shard.offset, shard.size), abandoned);
          } else {
            host::receive_all(streams.in[first].number(), turn.into.subspan(shard.offset, shard.size), abandoned,
                              counted);
          }
        }
      },
      [&] { group.check(); }, abandoned);
}

}  // namespace assay::cluster_checkpoint
