// moe_dispatch_rank: one rank of moe_dispatch, linked to Gloo. The leader of the node starts it and asks; it answers.
#include <chrono>
#include <csignal>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "probes/collective/rank_loop.h"
#include "probes/gloo/rank_mesh.h"
#include "workloads/inference/moe_evidence.h"
#include "workloads/inference/moe_job.h"

namespace assay::inference {
namespace {

using nlohmann::json;

/// The state of one rank between requests.
class Session {
 public:
  explicit Session(const MoeStart& start)
      : job_(start.job),
        mesh_(start.address, static_cast<int>(start.job.rank), static_cast<int>(start.job.routing.ranks)) {}

  json answer(const json& request) {
    const std::string what = request.at("do");
    if (what == "hello") return {{"free", gloo::available_memory()}};
    if (what == "introduce") return mesh_.introduce();
    if (what == "enter") return mesh_.enter(request.at("words"));
    if (what == "prepare") return prepare(request.at("nonce").get<std::uint64_t>());
    if (what == "steps") return steps(request);
    if (what == "edges") return edges();
    if (what == "facts") return gloo::RankMesh::facts("own_point_to_point");
    throw std::runtime_error(fmt::format("'{}' is no request", what));
  }

 private:
  json prepare(std::uint64_t nonce) {
    job_.nonce = nonce;
    exchange_.emplace(mesh_.mesh(), job_);
    return json::object();
  }

  ExpertExchange& exchange() {
    if (!exchange_) throw std::logic_error("the leader has not asked this rank to prepare");
    return *exchange_;
  }

  json steps(const json& request) {
    const Router router(job_.routing, request.at("family").get<Family>());
    const auto first = request.at("first").get<std::uint64_t>(), count = request.at("count").get<std::uint64_t>();
    std::this_thread::sleep_for(std::chrono::duration<double>(request.at("rest_s").get<double>()));
    MoeSteps taken;
    for (std::uint64_t number = first; number < first + count; ++number) taken.add(exchange().step(router, number));
    return to_words(taken);
  }

  json edges() {
    return {{"edges", edges_of(
                          job_, [&] { mesh_.mesh().barrier(); },
                          [&](std::int64_t peer) { return exchange().round_trip(peer); })}};
  }

  ExchangeJob job_;
  gloo::RankMesh mesh_;  // before the exchange, which has windows on it
  std::optional<ExpertExchange> exchange_;
};

}  // namespace
}  // namespace assay::inference

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  const auto start = assay::inference::moe_start(arguments);
  if (!start || !assay::collective::tie_to_leader(arguments.at(1))) {
    std::cerr << "moe_dispatch_rank: moe_dispatch starts this program; it is of no use by itself\n";
    return 1;
  }
  // Gloo 0.5 writes to connections that a peer has closed without MSG_NOSIGNAL; the rank would die of it and be blamed
  // for its peer.
  if (std::signal(SIGPIPE, SIG_IGN) == SIG_ERR) return 1;
  try {
    assay::inference::Session session(*start);
    assay::collective::answer_leader([&](const nlohmann::json& request) { return session.answer(request); });
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "moe_dispatch rank " << start->job.rank << ": " << error.what() << '\n';
    return 1;
  }
}
