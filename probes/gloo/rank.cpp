// host_collective_rank: one rank of host_collective, linked to Gloo. The leader of the node starts it and asks; it
// answers.
#include <chrono>
#include <csignal>
#include <cstring>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "probes/collective/operation.h"
#include "probes/collective/rank_loop.h"
#include "probes/collective/rank_session.h"
#include "probes/gloo/mesh.h"
#include "probes/gloo/outcome.h"
#include "probes/gloo/rank_check.h"
#include "probes/gloo/rank_mesh.h"
#include "probes/host/buffer.h"

namespace assay::gloo {
namespace {

using nlohmann::json;

/// Buffers in memory of the host, and the mesh that works on them.
class GlooRank {
 public:
  explicit GlooRank(const RankPlace& place)
      : algorithm_(algorithm_of(collective::operation_named(place.operation))),
        mesh_(place.address, place.rank, place.ranks) {}

  static json hello() { return {{"free", available_memory()}}; }
  json introduce() { return mesh_.introduce(); }
  json enter(const json& words) { return mesh_.enter(words); }
  [[nodiscard]] json facts() const { return RankMesh::facts(algorithm_); }

  void allocate(Bytes sent, Bytes received) {
    for (auto [size, buffer] : {std::pair{sent, &source_}, {received, &target_}}) {
      buffer->emplace(size, host::Pages::base);
      std::memset((*buffer)->as<std::byte>().data(), 0, size.count);  // no page is missing while a time is taken
    }
  }
  std::span<std::byte> sent() { return source_.value().as<std::byte>(); }
  std::span<std::byte> received() { return target_.value().as<std::byte>(); }

  std::uint64_t check(const collective::Iteration& at, const collective::Pattern& pattern) {
    constexpr int kAllOnes = 0xff;  // a NaN in every type, which no pattern holds
    fill(at.source, at.shape.sent, at.element, pattern);
    // Bytes that the collective does not write cannot pass.
    std::memset(at.target, kAllOnes, at.shape.received * collective::size_of(at.element));
    run(at);
    return count_mismatches(at.target, at.shape.received, at.element, pattern);
  }

  template <class IterationOf>
  std::vector<double> time(std::int64_t lead, std::int64_t counted, IterationOf iteration) {
    std::vector<double> times;
    for (std::int64_t i = 0; i < lead + counted; ++i) {
      const collective::Iteration at = iteration(i);
      mesh_.mesh().barrier();
      const auto begin = std::chrono::steady_clock::now();
      run(at);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
      if (i >= lead) times.push_back(taken.count());
    }
    return times;
  }

 private:
  void run(const collective::Iteration& at) {
    mesh_.mesh().run(at.operation, at.element, at.shape.chunk, at.source, at.target);
  }

  std::string_view algorithm_;
  std::optional<host::Buffer> source_, target_;  // before the mesh, which is closed first and may still use them
  RankMesh mesh_;
};

}  // namespace
}  // namespace assay::gloo

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  const auto place = assay::gloo::rank_place(arguments);
  if (!place || !assay::collective::tie_to_leader(arguments.at(1))) {
    std::cerr << "host_collective_rank: host_collective starts this program; it is of no use by itself\n";
    return 1;
  }
  // Gloo 0.5 writes to connections that a peer has closed without MSG_NOSIGNAL; the rank would die of it and be blamed
  // for its peer.
  if (std::signal(SIGPIPE, SIG_IGN) == SIG_ERR) return 1;
  try {
    assay::collective::RankSession<assay::gloo::GlooRank> session(place->rank, place->ranks, place->operation,
                                                                  place->type, *place);
    assay::collective::answer_leader([&](const nlohmann::json& request) { return session.answer(request); });
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "host_collective rank " << place->rank << ": " << error.what() << '\n';
    return 1;
  }
}
