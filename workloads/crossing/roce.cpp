// roce: each rank's note asks with the numbers of its queue pair; the target makes one for it, connects, and answers
// with its own. Then the rank connects and writes. An adapter reports no ICMP message to a queue pair: a raw socket of
// this process hears them if it is allowed to.
#include "workloads/crossing/roce.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <netinet/in.h>

#include <fmt/format.h>

#include "probes/core/machine_tree.h"
#include "probes/core/probe.h"
#include "probes/core/text.h"
#include "probes/verbs/adapter.h"
#include "probes/verbs/endpoint.h"
#include "probes/verbs/endpoint_setup.h"
#include "probes/verbs/introduction.h"
#include "workloads/crossing/rdma.h"

namespace assay::crossing {
namespace {

constexpr int kRocePort = 4791;  // InfiniBand Architecture Specification, Annex A17 (RoCE v2)
constexpr std::chrono::milliseconds kPoll{20};
constexpr std::size_t kLongestWords = 200, kLargestMessage = 1500;
constexpr verbs::EndpointPlan kOnePair{};

/// An active port of RoCE v2 and the entry of its table with an address of this node.
struct Place {
  verbs::PortFacts port;
  verbs::Gid gid;
};

std::optional<Place> place_with(const std::string& address, const MachineTree& tree) {
  for (auto& port : verbs::read_ports(tree)) {
    const auto is_it = [&](const verbs::Gid& gid) {
      return gid.type == "RoCE v2" && verbs::gid_words(gid.value) == address;
    };
    const auto found = port.active() ? std::ranges::find_if(port.gids, is_it) : port.gids.end();
    if (found != port.gids.end()) return Place{port, *found};
  }
  return std::nullopt;
}

/// The address that packets to `target` leave from, as the route has it; nothing is sent for it.
std::optional<std::string> source_towards(const Address& target) {
  const Descriptor socket(::socket(target.bytes.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  Address own{.bytes = {}, .length = sizeof own.bytes};
  if (::connect(socket.number(), target.get(), target.length) != 0 ||
      ::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&own.bytes), &own.length) != 0)
    return std::nullopt;
  return text_of(own.get());
}

/// The content of a note: the own side, the numbers of a queue pair, and why it could not be connected.
struct Handed {
  verbs::Introduction side;
  verbs::EndpointAddress numbers;
  std::string problem;
};

std::string packed(const Handed& handed) {
  return fmt::format("{}\n{}\n{}", verbs::packed(handed.side), verbs::packed(handed.numbers), handed.problem);
}

Handed unpacked(std::string_view text) {
  const auto first = std::min(text.find('\n'), text.size()), second = std::min(text.find('\n', first + 1), text.size());
  return {.side = verbs::unpacked_introduction(text.substr(0, first)),
          .numbers = verbs::unpacked_address(text.substr(std::min(first + 1, second), second - first - 1)),
          .problem = std::string(text.substr(std::min(second + 1, text.size())))};
}

std::string ask_of(int rank) { return fmt::format("queue pair of rank {}", rank); }
std::string answer_to(int rank) { return fmt::format("queue pair for rank {}", rank); }

/// ICMP messages that reach this node while it lives, where the process may see them.
class Complaints {
 public:
  explicit Complaints(const Address& about)
      : socket_(::socket(about.bytes.ss_family, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
                         about.is_v6() ? static_cast<int>(IPPROTO_ICMPV6) : static_cast<int>(IPPROTO_ICMP))) {}

  /// The outcome by the first of them that refuses packets of RoCE v2 to `target`.
  [[nodiscard]] std::optional<Tried> refusal(Target target) const {
    target.port = kRocePort;
    char bytes[kLargestMessage];
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    for (ssize_t size = 0; (size = ::recvfrom(socket_.number(), bytes, sizeof bytes, MSG_DONTWAIT,
                                              reinterpret_cast<sockaddr*>(&from), &length)) > 0;
         length = sizeof from) {
      auto tried = of_icmp_message({bytes, static_cast<std::size_t>(size)},
                                   text_of(reinterpret_cast<const sockaddr*>(&from)), target);
      if (tried && tried->outcome != Outcome::no_answer) return tried;
    }
    return std::nullopt;
  }

 private:
  Descriptor socket_;
};

/// The end of the write; nothing in `timeout`.
std::optional<Tried> end_of_write(verbs::VerbsEndpoint& endpoint, Seconds timeout) {
  const auto until = after(timeout);
  std::array<verbs::Completed, 1> done = {};
  try {
    while (Clock::now() < until && !stop_requested()) {
      if (endpoint.poll_sends(done) > 0) return Tried{Outcome::answered, "RoCE v2: the write was acknowledged"};
      sleep_until_stopped(kPoll);
    }
  } catch (const verbs::VerbsError& error) {
    return of_completion(error.completion, error.what());
  }
  return std::nullopt;
}

/// The target's side of one rank.
struct Served {
  std::unique_ptr<verbs::VerbsEndpoint> endpoint;
  Note answer;
};

Served serve(const verbs::Adapter& adapter, const verbs::RegisteredMemory& memory, const verbs::Introduction& own,
             const NoteFolder& notes, int rank, std::string_view asked) {
  const Handed peer = unpacked(asked);
  auto endpoint = std::make_unique<verbs::VerbsEndpoint>(adapter, memory, kOnePair);
  std::string problem;
  try {
    endpoint->connect(peer.numbers, verbs::path_between(own, peer.side, {}));
  } catch (const std::runtime_error& error) {
    problem = printable(error.what(), kLongestWords);
  }
  const std::string answer = packed({.side = own, .numbers = endpoint->address(), .problem = problem});
  return {std::move(endpoint), Note(notes, answer_to(rank), answer)};
}

}  // namespace

Tried try_roce(const Target& target, const NoteFolder& notes, int rank, Clock::time_point until,
               const std::string& root) {
  const MachineTree tree(root);
  const Address address = address_of(target);
  const auto source = source_towards(address);
  if (!source) return {Outcome::unclear, "nothing left this node: no route"};
  const auto place = place_with(*source, tree);
  if (!place)
    return {Outcome::unclear, fmt::format("nothing left this node: {} is on no active port of RoCE v2", *source)};
  const verbs::Adapter adapter(place->port);
  const auto memory = adapter.memory(kMark, verbs::Ordering::strict);
  std::memcpy(memory.bytes().data(), mark_of_rank(notes.token, rank).data(), kMark);
  verbs::VerbsEndpoint endpoint(adapter, memory, kOnePair);
  const auto own = verbs::introduction_of(adapter, place->gid, tree);
  const Note ask(notes, ask_of(rank), packed({.side = own, .numbers = endpoint.address(), .problem = ""}));
  const auto answer = await_note(notes, answer_to(rank), until);
  if (!answer) return {Outcome::unclear, fmt::format("nothing was tried: no queue pair came into {}", notes.folder)};
  const Handed peer = unpacked(*answer);
  const Complaints complaints(address);
  try {
    auto path = verbs::path_between(own, peer.side, {});
    path.target_gid = (address.is_v6() ? "" : "::ffff:") + text_of(address.get());  // the declared one and no other
    endpoint.connect(peer.numbers, path);
  } catch (const verbs::VerbsError& error) {
    if (error.call == ETIMEDOUT || error.call == EHOSTUNREACH) return no_neighbour(target);
    return {Outcome::unclear, fmt::format("nothing left this node: {}", error.what())};
  }
  if (!peer.problem.empty())
    return {Outcome::unclear, fmt::format("nothing was tried: at the target {}", peer.problem)};
  const verbs::Transfer write{.here = 0, .there = static_cast<std::size_t>(rank) * kMark, .size = kMark};
  endpoint.post(verbs::VerbsOperation::write, 0, std::span(&write, 1));
  const auto ended = end_of_write(endpoint, target.timeout);
  if (ended && ended->outcome != Outcome::no_answer) return *ended;
  return complaints.refusal(target).value_or(Tried{Outcome::no_answer, "nothing came back to the write"});
}

Arrivals watch_roce(const Target& at, const NoteFolder& notes, Clock::time_point until, const std::string& root) {
  const MachineTree tree(root);
  const auto place = place_with(text_of(address_of(at).get()), tree);
  if (!place)
    throw std::runtime_error(fmt::format(
        "{} is on no active port of RoCE v2\nhint: the target of a path holds its address on such a port", at.address));
  const verbs::Adapter adapter(place->port);
  const auto memory = adapter.memory(2 * kMark, verbs::Ordering::strict);
  const auto own = verbs::introduction_of(adapter, place->gid, tree);
  std::array<std::optional<Served>, 2> served;
  const auto wrote = [&](std::size_t rank) {
    const auto mark = mark_of_rank(notes.token, static_cast<int>(rank));
    return std::memcmp(memory.bytes().data() + rank * kMark, mark.data(), kMark) == 0;
  };
  Arrivals found;
  while (!(found.control && found.crossing) && Clock::now() < until && !stop_requested()) {
    for (int rank = 0; rank < 2; ++rank) {
      auto& one = served[static_cast<std::size_t>(rank)];
      const auto asked = one ? std::nullopt : note_in(notes, ask_of(rank));
      if (asked) one.emplace(serve(adapter, memory, own, notes, rank, *asked));
    }
    sleep_until_stopped(kPoll);
    found.control = wrote(1);
    found.crossing = wrote(0);
  }
  if (found.crossing) found.evidence = "an RDMA write of RoCE v2 arrived";
  sleep_until_stopped(kForReplies);  // a queue pair that is gone acknowledges no repetition
  return found;
}

}  // namespace assay::crossing
