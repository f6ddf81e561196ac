// session: connects two ranks of two processes, or several in one process.
#include "probes/verbs/session.h"

#include <exception>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/machine_tree.h"
#include "probes/verbs/port_choice.h"

namespace assay::verbs {
namespace {

std::string fresh_token() {
  std::random_device device;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", device());
  return token;
}

}  // namespace

Session::Session(const Parameters& given, Rendezvous& group)
    : group_(group),
      station_(given, group.rank()),
      other_(unpacked_introduction(swap(packed(station_.introduction())))),
      path_(station_.path_to(other_)) {}

std::string Session::swap(std::string_view mine) {
  return group_.all_gather(mine).at(static_cast<std::size_t>(1 - group_.rank()));
}

Subject Session::subject() const {
  return group_.rank() == 0 ? subject_of(station_.introduction(), other_) : subject_of(other_, station_.introduction());
}

std::optional<BytesPerSecond> Session::payload_limit() const {
  return payload_limit_between(station_.introduction(), other_, station_.wish());
}

void Session::connect(VerbsEndpoint& endpoint) {
  const EndpointAddress mine = endpoint.address();
  const EndpointAddress other = unpacked_address(swap(packed(mine)));
  if (pairs_text_.empty())
    pairs_text_ = fmt::format("{} > {}", fmt::join(mine.queue_pairs, ","), fmt::join(other.queue_pairs, ","));
  endpoint.connect(other, path_);
  barrier();  // a message must not arrive at a queue pair that is not connected
}

void Session::record_conditions(Recorder& record, const RegisteredMemory& memory) {
  record.condition("local", address_words(station_.introduction(), path_.global));
  record.condition("peer", address_words(other_, path_.global));
  record.condition("queue_pairs", pairs_text_);
  if (const auto limit = payload_limit()) record.condition("payload_limit", limit->count);
  record.condition("payload_limit_of", std::string(payload_limit_of(station_.introduction(), other_)));
  record.condition("mtu", std::int64_t{path_.mtu});
  record.condition("reads_outstanding", std::int64_t{path_.reads_as_initiator});
  station_.record(record, memory);
}

void run_loopback(int ranks, Recorder& record, const std::function<void(Rendezvous&, Recorder*)>& part,
                  const RendezvousLimits& limits) {
  RendezvousListener listener({.host = "127.0.0.1", .port = 0});
  const Endpoint at{.host = "127.0.0.1", .port = listener.port()};
  const std::string token = fresh_token();
  std::mutex lock;
  std::exception_ptr first;  // the first failure; later ones follow from it
  const auto play = [&](const std::function<Rendezvous()>& join, Recorder* mine) {
    try {
      Rendezvous group = join();
      try {
        part(group, mine);
      } catch (const std::exception& error) {
        {
          const std::lock_guard guard(lock);
          if (!first) first = std::current_exception();
        }
        group.fail(error.what());
      }
    } catch (...) {
      const std::lock_guard guard(lock);
      if (!first) first = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (int rank = 1; rank < ranks; ++rank) {
      others.emplace_back(
          [&, rank] { play([&] { return Rendezvous::dial(at, rank, ranks, token, limits); }, nullptr); });
    }
    play([&] { return std::move(listener).gather(ranks, token, limits); }, &record);
  }
  if (first) std::rethrow_exception(first);
}

void skip_alone(const Parameters& given) {
  (void)candidate_ports(read_ports(MachineTree(given.text("root"))), given.text("device"));
  throw Skip("one rank: a fabric is measured between two machines; hint: --path loopback measures one port as such");
}

void run_pair(const Parameters& given, const Placement& placement, Recorder& record,
              const std::function<void(Rendezvous&, Recorder*)>& part, Seconds exchange) {
  check_place(given);
  const RendezvousLimits limits{.exchange = exchange};
  if (placement.world > 2)
    throw std::runtime_error(fmt::format("{} ranks: a pair has two; hint: scope pair", placement.world));
  if (placement.world == 1 && given.text("path") == "loopback") return run_loopback(2, record, part, limits);
  if (placement.world == 1) skip_alone(given);
  work_together(placement, limits, [&](Rendezvous& group) { part(group, &record); });
}

}  // namespace assay::verbs
