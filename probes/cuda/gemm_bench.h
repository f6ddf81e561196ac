// gemm_bench: products on one GPU: which algorithm is fastest, how fast it stays, and whether its results are right.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "probes/cuda/cublaslt.h"
#include "probes/cuda/device.h"
#include "probes/cuda/gemm_check.h"
#include "probes/cuda/gemm_operands.h"
#include "probes/cuda/gemm_type.h"

namespace assay::cuda {

/// One algorithm and how long it took in the trials.
struct Candidate {
  Algorithm algorithm;
  std::vector<double> times_s;  ///< of one product, one for each trial
};

/// Operands, library and candidates for one type and shape on one device.
class GemmBench {
 public:
  /// Makes the operands and asks for algorithms, on the current device, which is `device`; leaves out those that the
  /// library then refuses to run. Throws Skip naming type and device when the library has no algorithm for them,
  /// AlgorithmRefused when it runs none.
  GemmBench(const Device& device, const CublasLt& library, const GemmType& type, const GemmShape& shape,
            Pattern pattern, bool fast_accumulation);

  /// Times every candidate on rotating sets: warms the device up with the library's first, then takes a short time
  /// of each, then longer ones in turn of those near the fastest. Returns the index of the fastest.
  std::size_t try_all();

  /// In the library's order: the first is the best ranked of those that it runs.
  [[nodiscard]] const std::vector<Candidate>& candidates() const { return candidates_; }
  /// How many algorithms the library proposed and refused to run.
  [[nodiscard]] std::size_t refused() const { return refused_; }
  /// The candidate in words.
  [[nodiscard]] std::string text(std::size_t candidate) const { return matmul_.text(candidates_[candidate].algorithm); }
  /// See Matmul::stored_parts.
  [[nodiscard]] std::size_t stored_parts(std::size_t candidate) const {
    return matmul_.stored_parts(candidates_[candidate].algorithm);
  }
  [[nodiscard]] const GemmOperands& operands() const { return operands_; }
  [[nodiscard]] const Stream& stream() const { return stream_; }
  [[nodiscard]] const GemmShape& shape() const { return shape_; }

  /// Multiplies whole numbers by this candidate and checks the whole result. Returns the lines that are not exact. What
  /// the first set held is gone.
  [[nodiscard]] std::uint64_t wrong_whole_lines(std::size_t candidate);

  /// A graph of `products` products of one candidate, sets in turn from the first.
  [[nodiscard]] Graph graph(std::size_t candidate, std::size_t products);
  /// Time of one product of `candidate` in its trials; try_all() must have run.
  [[nodiscard]] Seconds product_time(std::size_t candidate) const;

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

/// Samples of one candidate without a pause between them: while one is waited for, the next is in the queue.
class GemmSeries {
 public:
  /// A sample lasts at least this long: the resolution of events is far below it, and the clock's governor sees a
  /// steady load.
  static constexpr Seconds kSample = {0.1};

  /// `bench` must outlive the series; results of earlier products are forgotten.
  GemmSeries(GemmBench& bench, std::size_t candidate);

  /// FLOP/s of the next sample. Keeps one more in the queue.
  double next();
  /// Waits for the one that is left in the queue, and counts its changes too.
  void drain();

  /// Results that differ from the first of the same candidate and set: each set once in each sample.
  [[nodiscard]] std::uint64_t changes() const { return changes_; }
  /// Products in one sample.
  [[nodiscard]] std::size_t products() const { return plan_.products * plan_.launches; }
  /// Forgets what mean_rate has seen.
  void restart_mean();
  /// FLOPs over time from the begin of the first sample since restart_mean to the begin of the one after the last: with
  /// the sums of the results, so that it is the rate that goes with the energy. At least one sample must lie in
  /// between.
  [[nodiscard]] double mean_rate() const { return counted_flop_ / counted_s_; }

 private:
  /// One sample in the queue.
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
  double counted_flop_ = 0, counted_s_ = 0;
};

/// What the check needs of the results that are in the memory of the device: those of the first sets, as many as are
/// checked in a few seconds.
std::vector<SampledProduct> take_samples(const GemmBench& bench);

}  // namespace assay::cuda
