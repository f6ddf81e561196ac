// peer_verbs: one message a MiB, several in flight on each queue pair, and a word behind the last of each.
#include "workloads/cluster_checkpoint/peer_verbs.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "probes/core/machine_tree.h"
#include "probes/core/probe.h"
#include "probes/verbs/adapter.h"
#include "probes/verbs/endpoint.h"
#include "probes/verbs/endpoint_setup.h"
#include "probes/verbs/introduction.h"
#include "probes/verbs/port_choice.h"

namespace assay::cluster_checkpoint {
namespace {

using PeerClock = std::chrono::steady_clock;

constexpr std::uint64_t kMessage = 1 << 20;  // large enough for the rate of a port, small enough for every device
constexpr std::uint32_t kInFlight = 16;      // on a queue pair
constexpr std::uint32_t kWord = 8;           // B; from the tail of one memory to that of the other
constexpr std::size_t kWordsBegin = 64;      // of the tail: the sent word is before it
constexpr auto kLook = std::chrono::milliseconds(100);
constexpr auto kReasonComes = std::chrono::seconds(2);  // of a rank that ended, through rank 0: a turn or two there
constexpr std::size_t kMostPairs = 256;
static_assert(kWordsBegin + kWord * kMostPairs <= kPeerTail);

/// Why verbs cannot be had, as an error: another transport in silence would be another measurement.
[[noreturn]] void cannot_be_had(const std::string& why) {
  throw std::runtime_error(fmt::format(
      "peer_transport: verbs cannot be had: {}; hint: peer_transport=tcp copies over TCP, and the record says so",
      why));
}

/// Data of one queue pair to send, and its progress.
struct Outgoing {
  std::vector<verbs::Transfer> messages;
  std::size_t posted = 0;
  std::uint32_t in_flight = 0;
  bool told = true;  ///< that all was written; true also where nothing is sent
};

}  // namespace

/// The queue pairs of one connection.
struct PeerConnection {
  const verbs::RegisteredMemory *from = nullptr, *into = nullptr;
  std::unique_ptr<verbs::VerbsEndpoint> out, in;
  std::size_t pairs = 0, target = 0, source = 0;  ///< the ranks that it leads to and comes from

  [[nodiscard]] std::size_t tail(const verbs::RegisteredMemory& memory) const {
    return memory.bytes().size() - kPeerTail;
  }
  /// Room for the word of the queue pair.
  void expect_word(std::uint32_t pair) const {
    const verbs::Transfer room{
        .here = tail(*into) + kWordsBegin + std::size_t{pair} * kWord, .there = 0, .size = kWord};
    in->post_receives(pair, std::span(&room, 1));
  }
  /// Messages of every pairs-th shard, for each queue pair.
  [[nodiscard]] std::vector<Outgoing> outgoing(const std::vector<CheckpointShard>* shards) const {
    std::vector<Outgoing> queues(pairs);
    for (std::size_t i = 0; shards != nullptr && i < shards->size(); ++i) {
      const auto& shard = (*shards)[i];
      for (std::uint64_t done = 0; done < shard.size; done += kMessage) {
        const auto size = static_cast<std::uint32_t>(std::min(kMessage, shard.size - done));
        queues[i % pairs].messages.push_back({.here = shard.offset + done, .there = shard.offset + done, .size = size});
      }
    }
    for (auto& queue : queues) queue.told = shards == nullptr;
    return queues;
  }
  /// Posts as much as there is room for.
  void post(std::uint32_t pair, Outgoing& queue) const {
    while (queue.in_flight < kInFlight && queue.posted < queue.messages.size()) {
      out->post(verbs::VerbsOperation::write, pair, std::span(&queue.messages[queue.posted++], 1));
      ++queue.in_flight;
    }
    if (queue.told || queue.posted < queue.messages.size() || queue.in_flight >= kInFlight) return;
    const verbs::Transfer word{.here = tail(*from), .there = 0, .size = kWord};
    out->post(verbs::VerbsOperation::send, pair, std::span(&word, 1));  // arrives behind all that was written before it
    ++queue.in_flight;
    queue.told = true;
  }
};

struct PeerVerbs::State {
  VerbsWish wish;
  Rendezvous& group;
  std::optional<verbs::Adapter> adapter;
  std::optional<verbs::RegisteredMemory> state, incoming;  // after the adapter: they are given back before it
  std::vector<verbs::Introduction> ranks;
  std::vector<PeerConnection> connections;  // after the memory that they use

  State(VerbsWish wished, Rendezvous& with, std::span<std::byte> own, std::span<std::byte> of_others)
      : wish(std::move(wished)), group(with) {
    const MachineTree tree(wish.root);
    try {
      const auto ports = verbs::candidate_ports(verbs::read_ports(tree), wish.device);
      adapter.emplace(ports.front());
      const verbs::Gid& gid = verbs::choose_gid(adapter->port(), wish.gid_index);
      state.emplace(adapter->memory(own, verbs::Ordering::relaxed));
      incoming.emplace(adapter->memory(of_others, verbs::Ordering::relaxed));
      ranks.push_back(verbs::introduction_of(*adapter, gid, tree));
    } catch (const BadParameter&) {
      throw;
    } catch (const std::runtime_error& why) {
      cannot_be_had(why.what());
    }
    const std::string mine = verbs::packed(ranks.front());
    ranks.clear();
    for (const auto& words : group.all_gather(mine)) ranks.push_back(verbs::unpacked_introduction(words));
  }

  [[nodiscard]] const verbs::Introduction& own() const { return ranks[static_cast<std::size_t>(group.rank())]; }

  /// One turn. Throws std::runtime_error with the failure, without the ranks, or RendezvousError.
  void exchange(const PeerConnection& way, const PeerTurn& turn);

  /// The path to a rank. Throws where machines or networks are not as wished.
  [[nodiscard]] verbs::PathChoice path_to(std::size_t rank) const {
    verbs::check_pair(own(), ranks[rank], wish.one_machine ? "loopback" : "fabric");
    return verbs::path_between(
        own(), ranks[rank], {.mtu = "auto", .traffic_class = wish.traffic_class, .service_level = wish.service_level});
  }
};

PeerVerbs::PeerVerbs(const VerbsWish& wish, Rendezvous& group, std::span<std::byte> state,
                     std::span<std::byte> incoming)
    : state_(std::make_unique<State>(wish, group, state, incoming)) {}
PeerVerbs::PeerVerbs(PeerVerbs&&) noexcept = default;
PeerVerbs::~PeerVerbs() = default;

std::size_t PeerVerbs::connect(int distance, bool back, std::size_t pairs) {
  if (pairs < 1 || pairs > kMostPairs)
    throw BadParameter(fmt::format("threads: {} queue pairs to a peer are not from 1 to {}", pairs, kMostPairs));
  auto& self = *state_;
  const int world = self.group.world(), rank = self.group.rank();
  const auto target = static_cast<std::size_t>((rank + distance) % world);
  const auto source = static_cast<std::size_t>((rank - distance + world) % world);
  PeerConnection made{.from = back ? &*self.incoming : &*self.state,
                      .into = back ? &*self.state : &*self.incoming,
                      .out = nullptr,
                      .in = nullptr,
                      .pairs = pairs,
                      .target = target,
                      .source = source};
  const verbs::EndpointPlan plan{
      .queue_pairs = static_cast<std::uint32_t>(pairs), .sends = kInFlight, .receives = 1, .inlined = 0};
  made.out = std::make_unique<verbs::VerbsEndpoint>(*self.adapter, *made.from, plan);
  made.in = std::make_unique<verbs::VerbsEndpoint>(*self.adapter, *made.into, plan);
  const auto outs = self.group.all_gather(verbs::packed(made.out->address()));
  const auto ins = self.group.all_gather(verbs::packed(made.in->address()));
  for (std::uint32_t pair = 0; pair < pairs; ++pair) made.expect_word(pair);
  made.out->connect(verbs::unpacked_address(ins[target]), self.path_to(target));
  made.in->connect(verbs::unpacked_address(outs[source]), self.path_to(source));
  self.group.barrier();  // a message must not arrive at a queue pair that is not connected
  self.connections.push_back(std::move(made));
  return self.connections.size() - 1;
}

void PeerVerbs::exchange(std::size_t connection, const PeerTurn& turn) {
  const auto& way = state_->connections.at(connection);
  try {
    state_->exchange(way, turn);
  } catch (const RendezvousError&) {
    throw;
  } catch (const std::runtime_error& error) {
    // The queue pairs of a rank that ended fail before the group knows of it: its reason is the better one.
    const auto until = PeerClock::now() + kReasonComes;
    while (PeerClock::now() < until && !stop_requested()) {
      state_->group.check();
      std::this_thread::sleep_for(kLook / 10);
    }
    const auto& to = state_->ranks[way.target];
    const auto& from = state_->ranks[way.source];
    throw std::runtime_error(fmt::format("copies from {} {} to rank {} on {} {} and from rank {} on {} {}: {}",
                                         state_->own().host, state_->own().port, way.target, to.host, to.port,
                                         way.source, from.host, from.port, error.what()));
  }
}

void PeerVerbs::State::exchange(const PeerConnection& way, const PeerTurn& turn) {
  auto queues = way.outgoing(turn.sent);
  std::size_t to_hear = turn.received != nullptr ? way.pairs : 0;
  const auto is_open = [](const Outgoing& queue) { return !queue.told || queue.in_flight > 0; };
  std::array<verbs::Completed, 32> done = {};
  auto last = PeerClock::now(), looked = last;
  while (to_hear > 0 || std::ranges::any_of(queues, is_open)) {
    for (std::uint32_t pair = 0; pair < way.pairs; ++pair) way.post(pair, queues[pair]);
    const std::size_t sent = way.out->poll_sends(done);
    for (std::size_t i = 0; i < sent; ++i) queues[done[i].pair].in_flight -= done[i].messages;
    const std::size_t heard = way.in->poll_receives(done);
    for (std::size_t i = 0; i < heard; ++i) way.expect_word(done[i].pair);
    to_hear -= std::min(to_hear, heard);
    const auto now = PeerClock::now();
    if (sent + heard > 0)
      last = now;
    else
      std::this_thread::yield();  // ranks of a rehearsal share processors
    if (now - looked < kLook) continue;
    looked = now;
    group.check();
    if (stop_requested()) throw std::runtime_error("stopped by a signal");
    if (std::chrono::duration<double>(now - last).count() > wish.stall.count)
      throw std::runtime_error(fmt::format("no message was completed for {:g} s", wish.stall.count));
  }
}

std::string PeerVerbs::transport() const { return verbs::transport_of(state_->own()); }

std::string PeerVerbs::port() const {
  const auto& own = state_->own();
  return own.gid.empty() ? own.port : fmt::format("{} {}", own.port, verbs::gid_words(own.gid));
}

}  // namespace assay::cluster_checkpoint
