// algorithm_choice: the one algorithm that all GPUs of a run take, from the rates of their trials. Needs no CUDA.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "probes/cuda/barrier.h"

namespace assay::cuda {

/// An algorithm in the library's numbers and the rate of one GPU with it, in FLOP/s.
struct AlgorithmRate {
  std::string algorithm;
  double rate = 0;
};

/// Those of one GPU in the library's order, its first proposal first; never empty.
using AlgorithmRates = std::vector<AlgorithmRate>;

/// The choice and its candidates.
struct AlgorithmChoice {
  std::string algorithm;
  AlgorithmRates tried = {};       ///< under load, summed over the GPUs, in the library's order; empty without trials
  std::optional<double> margin{};  ///< rate of the chosen over that of the best other, less 1, if there was another
};

/// Rates of the algorithms that every one of `gpus` has, summed, in the order of the first.
AlgorithmRates summed(std::span<const AlgorithmRates> gpus);

/// The algorithms of `rates` to be tried under load, in their order: the library's first and the fastest others, at
/// most `most` (1 or more), none slower than the fastest by kNear or more, which a short trial cannot err by.
std::vector<std::string> shortlist(const AlgorithmRates& rates, std::size_t most);
inline constexpr double kNear = 1.3;

/// The fastest of `rates` and those within 1 % of it, at most three, in their order: trials of a second or so decide no
/// closer.
std::vector<std::string> still_close(const AlgorithmRates& rates);

/// The fastest of `rates`; of those within 0.3 % of it, which repeat no better, the earliest in the library's order.
AlgorithmChoice choose(const AlgorithmRates& rates);

/// Where the GPUs of a run leave the rates of their trials for each other.
class TrialBoard {
 public:
  /// For `gpus` GPUs, measured `together` or one after the other.
  TrialBoard(std::size_t gpus, bool together) : entries_(gpus), together_(together) {}

  /// Leaves `rates` of GPU `place` of `model` and returns the sums over all GPUs of that model that are measured at
  /// once; its own if they have no algorithm in common. All that meet at `barrier` call this equally often.
  AlgorithmRates exchange(std::size_t place, const std::string& model, const AlgorithmRates& rates, Barrier& barrier);

  /// The choice of an earlier GPU of `model`, if GPUs are measured one after the other.
  [[nodiscard]] std::optional<AlgorithmChoice> earlier(const std::string& model) const;
  void keep(const std::string& model, const AlgorithmChoice& choice);

 private:
  struct Entry {
    std::string model;
    AlgorithmRates rates;
  };
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  std::map<std::string, AlgorithmChoice> chosen_;
  bool together_;
};

}  // namespace assay::cuda
