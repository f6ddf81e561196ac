// exchange_ranks: all ranks of an exchange as threads of this process, over Gloo on loopback.
#pragma once

#include <barrier>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "probes/gloo/addresses.h"
#include "probes/gloo/mesh.h"
#include "workloads/inference/expert_exchange.h"

namespace assay::inference {

/// Calls `work` on every rank of `job`. Throws what one of them threw.
inline void on_exchange_ranks(const ExchangeJob& job, const std::function<void(std::size_t, ExpertExchange&)>& work) {
  const auto ranks = static_cast<std::size_t>(job.routing.ranks);
  std::vector<std::vector<std::string>> ends(ranks);
  std::vector<std::exception_ptr> failures(ranks);
  std::barrier together(static_cast<std::ptrdiff_t>(ranks));
  const auto live = [&](std::size_t rank) {
    const int number = static_cast<int>(rank);
    ExchangeJob mine = job;
    mine.rank = number;
    gloo::Mesh mesh("127.0.0.1", number, static_cast<int>(ranks));
    ends[rank] = mesh.ends();
    together.arrive_and_wait();
    std::vector<std::string> theirs;
    for (int other = 0; other < static_cast<int>(ranks); ++other) {
      if (other != number) theirs.push_back(ends[static_cast<std::size_t>(other)][gloo::end_towards(other, number)]);
    }
    mesh.connect(theirs);
    mesh.barrier();
    {
      ExpertExchange exchange(mesh, mine);
      work(rank, exchange);
      mesh.barrier();
    }
    together.arrive_and_wait();
  };
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
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

}  // namespace assay::inference
