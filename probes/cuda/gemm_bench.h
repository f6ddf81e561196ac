// gemm_bench: products on one GPU: which algorithm is fastest, how fast it stays, and whether its results are right.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probes/cuda/algorithm_choice.h"
#include "probes/cuda/device.h"
#include "probes/cuda/gemm_check.h"
#include "probes/cuda/gemm_library.h"
#include "probes/cuda/gemm_operands.h"
#include "probes/cuda/gemm_type.h"
#include "probes/cuda/graph.h"

namespace assay::cuda {

/// One algorithm and how long one product took in short trials.
struct Candidate {
  Algorithm algorithm;
  Seconds product{};
};

/// Operands, library and candidates for one type and shape on one device.
class GemmBench {
 public:
  /// Makes the operands and asks for algorithms, on the current device, which is `device`; leaves out those that the
  /// library then refuses to run. Throws Skip naming type and device when the library has no algorithm for them,
  /// AlgorithmRefused when it runs none.
  GemmBench(const Device& device, const GemmLibrary& library, const GemmType& type, const GemmShape& shape,
            Pattern pattern, bool fast_accumulation, std::uint64_t seed);

  /// Times every candidate on rotating sets for some 20 ms, after a second of the library's first: enough to see which
  /// are far behind, not which is the fastest under a load that lasts. Returns rates in the library's order.
  AlgorithmRates time_all();

  /// In the library's order: the first is the best ranked of those that it runs.
  [[nodiscard]] const std::vector<Candidate>& candidates() const { return candidates_; }
  /// How many algorithms the library proposed and refused to run.
  [[nodiscard]] std::size_t refused() const { return refused_; }
  /// The place of `algorithm`, as text() gives it, among the candidates.
  [[nodiscard]] std::optional<std::size_t> place_of(const std::string& algorithm) const;
  /// The candidate in words.
  [[nodiscard]] std::string text(std::size_t candidate) const { return matmul_.text(candidates_[candidate].algorithm); }
  /// See Matmul::stored_parts.
  [[nodiscard]] std::size_t stored_parts(std::size_t candidate) const {
    return matmul_.stored_parts(candidates_[candidate].algorithm);
  }
  [[nodiscard]] const GemmOperands& operands() const { return operands_; }
  [[nodiscard]] const Stream& stream() const { return stream_; }
  [[nodiscard]] const GemmShape& shape() const { return shape_; }

  /// Multiplies whole numbers of every form by this candidate and checks the whole results. Returns the lines that are
  /// not exact. What the first set held is gone.
  [[nodiscard]] std::uint64_t wrong_whole_lines(std::size_t candidate);

  /// A graph of `products` products of one candidate, sets in turn from the first.
  [[nodiscard]] Graph graph(std::size_t candidate, std::size_t products);
  /// Time of one product of `candidate` in its trial; time_all() must have run.
  [[nodiscard]] Seconds product_time(std::size_t candidate) const { return candidates_[candidate].product; }

 private:
  void drop_refused();
  void enqueue_turns(std::size_t candidate, std::size_t products);
  double time_of(const Graph& graph, std::size_t launches);

  GemmShape shape_;
  Stream stream_;
  Event begin_, end_;
  GemmOperands operands_;
  Matmul matmul_;
  std::vector<Candidate> candidates_;
  std::size_t refused_ = 0;
};

/// Products of one candidate without a pause between them: while some are waited for, the next are in the queue.
/// Another series of the same bench may follow this one without a pause.
class GemmSeries {
 public:
  /// Each batch put into the queue lasts at least this long: the resolution of events is far below it, and the
  /// results are compared after each.
  static constexpr Seconds kBatch = {0.1};

  /// `bench` must outlive the series; results of earlier products are forgotten.
  GemmSeries(GemmBench& bench, std::size_t candidate);

  /// FLOP/s over the next batches, of which the time adds up to `least` or more: 2 m n k for each product over the time
  /// of the batches, without the time between them. Keeps one more in the queue.
  double rate_over(Seconds least);
  /// Waits for the one that is left in the queue, and counts its changes too.
  void drain();

  /// Results that differ from the first of the same candidate and set: each set once in each batch.
  [[nodiscard]] std::uint64_t changes() const { return changes_; }
  /// Products in one batch.
  [[nodiscard]] std::size_t products() const { return plan_.products * plan_.launches; }
  /// Starts mean_rate anew.
  void restart_mean();
  /// FLOPs over time from the begin of the first batch since restart_mean to the begin of the one after the last: with
  /// the sums of the results, so that it is the rate that goes with the energy. At least one batch must lie in
  /// between.
  [[nodiscard]] double mean_rate() const { return counted_flop_ / counted_s_; }

  /// FLOPs of everything that was put into the queue so far.
  [[nodiscard]] double enqueued_flop() const { return enqueued_flop_; }
  [[nodiscard]] const Stream& stream() const { return bench_.stream(); }

 private:
  /// One batch in the queue.
  struct Slot {
    Event begin, end, summed;
    DeviceBuffer sums;
    PinnedBuffer copied;
  };
  void enqueue(Slot& slot);
  void look_at_sums(const Slot& slot);

  GemmBench& bench_;
  SamplePlan plan_;
  Graph graph_;
  std::array<Slot, 2> slots_;
  std::size_t turn_ = 0;  ///< the slot that is next to be waited for
  bool queued_ = false;
  std::vector<std::uint64_t> first_sums_;  ///< of each set; empty before the first sample
  std::uint64_t changes_ = 0;
  double counted_flop_ = 0, counted_s_ = 0, enqueued_flop_ = 0;
};

/// Mean rates of `algorithms` of `bench` under a load that does not pause: each for `each` and back again in the
/// opposite order, after a moment in which the controller of power finds the new load. Adds to `changes` results that
/// changed meanwhile. Empty for fewer than two.
AlgorithmRates rates_under_load(GemmBench& bench, const std::vector<std::string>& algorithms, Seconds each,
                                std::uint64_t& changes);

/// The results needed by the check that are in the memory of the device: those of the first sets, as many as are
/// checked in a few seconds.
std::vector<SampledProduct> take_samples(const GemmBench& bench);

}  // namespace assay::cuda
