// rank_setup: parts of a rank's program: an engine, its wire, and the start of the process.
#pragma once

#include <csignal>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <cblas.h>
#include <fmt/format.h>

#include "probes/collective/rank_loop.h"
#include "probes/gloo/mesh.h"
#include "probes/host/blas_kernels.h"
#include "workloads/train/engine/ring_wire.h"
#include "workloads/train/step/rank_job.h"

namespace assay::train {

/// An engine and, if there are other ranks, its wire.
class RankSetup {
 public:
  explicit RankSetup(const RankJob& job) : job_(job), engine_(job) {}

  /// Wires the engine to the ranks of `mesh`, which outlives that.
  void connect(gloo::Mesh& mesh) {
    if (job_.plan.world() == 1) return;
    wire_.emplace(mesh, job_.plan, job_.rank, engine_.ops(), engine_.transfers());
    engine_.connect([this](std::size_t op) { wire_->carry(op); });
  }
  /// Before the mesh goes.
  void disconnect() {
    engine_.disconnect();
    wire_.reset();
  }
  HostEngine& engine() { return engine_; }

 private:
  RankJob job_;
  std::optional<RingWire> wire_;  // before the engine, whose second thread uses it until it ends
  HostEngine engine_;
};

/// The main function of a rank's program `name`, which `leader` starts: answers by a Session, made of a RankStart.
template <class Session>
int rank_main(int argc, char** argv, const char* name, const char* leader) {
  host::restart_with_wide_kernels(openblas_get_corename(), argv);
  const std::vector<std::string> arguments(argv, argv + argc);
  const auto start = rank_start(arguments);
  if (!start || !collective::tie_to_leader(arguments.at(1))) {
    std::cerr << fmt::format("{}: only {} starts this program\n", name, leader);
    return 1;
  }
  // Gloo 0.5 writes to connections that a peer has closed without MSG_NOSIGNAL; the rank would die of it and be blamed
  // for its peer.
  if (std::signal(SIGPIPE, SIG_IGN) == SIG_ERR) return 1;
  try {
    Session session(*start);
    collective::answer_leader([&](const nlohmann::json& request) { return session.answer(request); });
    return 0;
  } catch (const std::exception& error) {
    std::cerr << fmt::format("{} {}: {}\n", name, start->job.rank, error.what());
    return 1;
  }
}

}  // namespace assay::train
