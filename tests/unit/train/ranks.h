// ranks: all ranks of a plan as threads of this process, over Gloo on loopback.
#pragma once

#include <barrier>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "probes/gloo/addresses.h"
#include "probes/gloo/mesh.h"
#include "workloads/train/engine/host_engine.h"
#include "workloads/train/engine/ring_wire.h"

namespace assay::train {

/// Heads, widths and vocabulary that 2, 3 and 4 divide.
inline constexpr ModelShape kDivisible{
    .layers = 4, .hidden = 48, .ffn = 96, .heads = 12, .kv_heads = 12, .head_dim = 8, .vocab = 96};

/// The same with experts, as wide as a quarter of its MLP.
inline constexpr ModelShape kExperts{.layers = 4,
                                     .hidden = 48,
                                     .ffn = 96,
                                     .heads = 12,
                                     .kv_heads = 12,
                                     .head_dim = 8,
                                     .vocab = 96,
                                     .moe = Experts{.experts = 8, .top_k = 2, .ffn = 24, .shared = 1}};

/// Calls `work` on every rank of `job.plan`; job.rank is set. Throws what one of them threw.
inline void on_all_ranks(const RankJob& job, const std::function<void(std::size_t rank, HostEngine&)>& work) {
  const auto world = static_cast<std::size_t>(job.plan.world());
  std::vector<std::vector<std::string>> ends(world);
  std::vector<std::exception_ptr> failures(world);
  std::barrier together(static_cast<std::ptrdiff_t>(world));
  const auto live = [&](std::size_t rank) {
    const int number = static_cast<int>(rank);
    RankJob mine = job;
    mine.rank = number;
    HostEngine engine(mine);
    if (world == 1) return work(rank, engine);
    gloo::Mesh mesh("127.0.0.1", number, static_cast<int>(world));
    ends[rank] = mesh.ends();
    together.arrive_and_wait();
    std::vector<std::string> theirs;
    for (int other = 0; other < static_cast<int>(world); ++other) {
      if (other != number) theirs.push_back(ends[static_cast<std::size_t>(other)][gloo::end_towards(other, number)]);
    }
    mesh.connect(theirs);
    mesh.barrier();
    RingWire wire(mesh, mine.plan, number, engine.ops(), engine.transfers());
    engine.connect([&](std::size_t op) { wire.carry(op); });
    work(rank, engine);
    mesh.barrier();
    together.arrive_and_wait();
  };
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        live(rank);
      } catch (...) {  // thrown on below
        failures[rank] = std::current_exception();
      }
    });
  }
  threads.clear();
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace assay::train
