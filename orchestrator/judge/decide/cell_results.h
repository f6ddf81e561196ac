// cell_results: the results of all cells, decided as early as they can be.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "orchestrator/files/in_parallel.h"
#include "orchestrator/judge/decide/between_runs.h"
#include "orchestrator/judge/decide/undecided_cell.h"
#include "orchestrator/judge/verdict.h"

namespace assay::judge {

/// The cells as they are looked at, step by step, and their results in the order of the plan. A cell is decided as soon
/// as it can be: an open one takes twice the memory of its result, and a fleet has millions.
class CellResults {
 public:
  /// Cell `place` of the plan; several subjects of one place come in their order.
  void take(std::size_t place, UndecidedCell cell) {
    if (!cell.settled && tells_of_runs(cell.estimate)) {
      waiting_.push_back({.entry = order_.size(), .cell = std::move(cell)});
      order_.push_back({place, kWaits});
      return;
    }
    if (!cell.settled) settle(cell, own_scatter(cell.estimate, cell.stated), factors_);
    order_.push_back({place, results_.size()});
    results_.push_back(std::move(cell.result));
  }

  /// Takes what `later` took, which leaves it empty: as if its cells had been taken after those of this one.
  void take(CellResults&& later) {
    for (; !later.waiting_.empty(); later.waiting_.pop_front()) {
      waiting_.push_back(std::move(later.waiting_.front()));
      waiting_.back().entry += order_.size();
    }
    for (const Entry& entry : later.order_)
      order_.push_back({entry.place, entry.at == kWaits ? kWaits : entry.at + results_.size()});
    for (; !later.results_.empty(); later.results_.pop_front()) results_.push_back(std::move(later.results_.front()));
    later = {};
  }

  /// Decides the cells that wait, with the scatter of runs by the attempts of all of them, on so many threads. Every
  /// cell of their requirements must have been taken.
  void decide(unsigned threads) {
    std::map<std::string_view, BetweenRuns> between;  // by requirement
    for (const auto& [entry, cell] : waiting_) between[cell.requirement->id].add(cell.result.step, cell.estimate);
    for (auto& [requirement, runs] : between) runs.pool();
    std::vector<GuardFactors> factors(threads);
    constexpr std::size_t kAtOnce = 256;  // cells of one thread
    files::in_parallel((waiting_.size() + kAtOnce - 1) / kAtOnce, threads, [&](unsigned thread, std::size_t part) {
      for (std::size_t i = part * kAtOnce; i < std::min((part + 1) * kAtOnce, waiting_.size()); ++i) {
        UndecidedCell& cell = waiting_[i].cell;
        settle(cell, between.at(cell.requirement->id).of(cell.estimate, cell.stated), factors[thread]);
      }
    });
    for (; !waiting_.empty(); waiting_.pop_front()) {
      order_[waiting_.front().entry].at = results_.size();
      results_.push_back(std::move(waiting_.front().cell.result));
    }
  }

  /// The results, when none waits any more.
  Results in_order() && {
    put_in_order();
    return std::move(results_);
  }

 private:
  struct Entry {
    std::size_t place, at;  ///< of the plan, and in results_
  };
  static constexpr std::size_t kWaits = static_cast<std::size_t>(-1);
  struct Waiting {
    std::size_t entry;  ///< in order_
    UndecidedCell cell;
  };

  /// Moves every result to its place without a second list of them.
  void put_in_order() {
    std::ranges::stable_sort(order_, {}, &Entry::place);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (order_[i].at == i) continue;
      Result first = std::move(results_[i]);
      std::size_t to = i;
      while (order_[to].at != i) {
        const std::size_t from = order_[to].at;
        results_[to] = std::move(results_[from]);
        order_[to].at = to;
        to = from;
      }
      results_[to] = std::move(first);
      order_[to].at = to;
    }
  }

  Results results_;
  std::vector<Entry> order_;
  std::deque<Waiting> waiting_;
  GuardFactors factors_;  ///< of cells that need not wait
};

}  // namespace assay::judge
