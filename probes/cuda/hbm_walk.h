// hbm_walk: all available memory of a GPU in slices of one size, each read separately, then walked through from content
// to content (walk_pattern.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "probes/core/probe.h"
#include "probes/core/units.h"
#include "probes/cuda/detection.h"
#include "probes/cuda/device.h"
#include "probes/cuda/device_words.h"
#include "probes/cuda/walk_errors.h"

namespace assay {
class Recorder;
}  // namespace assay

namespace assay::cuda {

/// Conditions that HbmWalk::record_checks() records.
inline constexpr ConditionSpec kWalkConditions[] = {
    if_asked("walk_words", "Words of slices that were compared with their content, if the walk has slices."),
    if_asked("detects_stuck_share",
             "Share of the GPU's memory of which every bit held 0 and 1 and was compared in each: a stuck bit there is "
             "found in every walk."),
    if_asked("detects_flip_rate",
             "Flips in a GiB and hour of stored data (of a single bit, a burst of neighbouring bits or lanes of a warp "
             "alike: every word is compared) of which this walk would have shown one with a probability of 0.95."),
    if_asked("detects_single_bit_low", fault_words::kLow),
    if_asked("detects_single_bit_high", fault_words::kHigh),
    if_asked("detects_single_bit_put", fault_words::kBit),
    if_asked("detects_burst_low", fault_words::kLow),
    if_asked("detects_burst_high", fault_words::kHigh),
    if_asked("detects_burst_put", fault_words::kBurst),
    if_asked("detects_warp_aligned_low", fault_words::kLow),
    if_asked("detects_warp_aligned_high", fault_words::kHigh),
    if_asked("detects_warp_aligned_put", fault_words::kLanes),
    if_asked("detects_rare_stuck_low", fault_words::kLow),
    if_asked("detects_rare_stuck_high", fault_words::kHigh),
    if_asked("detects_rare_stuck_put", fault_words::kStuck),
    if_occurred("mismatch_classes", "Wrong words of slices by class, if any."),
    if_occurred("mismatch_places",
                "Pattern, offset in the walk, words and bits of the first wrong words of slices, if any."),
};

/// The slices of one GPU, each filled with a payload of its own. Calls make the GPU current.
class HbmWalk {
 public:
  /// Takes slices of `slice` (a multiple of kVectorBytes) until `reserve` or little more is left, fills and waits. A
  /// GPU with less free memory than one slice has none.
  HbmWalk(const Device& device, Bytes slice, Bytes reserve = kReserve);

  /// Contexts and the driver's own allocations grow while a probe runs; below this a GPU begins to refuse launches.
  static constexpr Bytes kReserve = {std::uint64_t{256} << 20};

  [[nodiscard]] std::size_t slices() const { return memory_.size(); }
  /// Memory that was free and is not in any slice.
  [[nodiscard]] Bytes left() const { return left_; }
  /// Share, 0..1, of the GPU's memory that lies in slices.
  [[nodiscard]] double coverage() const;

  /// Enqueues one read of each slice from `first` to before `last`, with a mark around each.
  void enqueue(std::size_t first, std::size_t last, const Stream& stream);
  /// Appends the B/s of each slice of the last enqueue to its samples; waits for them.
  void collect(std::size_t first, std::size_t last);
  /// B/s of each slice, in the order of collect().
  [[nodiscard]] const std::vector<std::vector<double>>& samples() const { return samples_; }
  /// 1 when the sum or the fold over all `sweeps` reads of all slices is wrong, else 0.
  std::uint64_t wrong_sums(std::size_t sweeps);

  /// Enqueues the step of slice `slice` that compares content `number` - 1 and writes content `number`, unless that is
  /// `end`.
  void enqueue_step(std::uint64_t number, std::uint64_t end, std::size_t slice, const Stream& stream);
  /// The same of all slices, in a stream of its own.
  void enqueue_content(std::uint64_t number, std::uint64_t end);
  /// Waits for that, and counts how long the content before was held.
  void finish_content();
  /// The word of the device in which wrong words of slices are counted.
  [[nodiscard]] const std::byte* counter() const { return reinterpret_cast<const std::byte*>(wrong_.data()); }
  /// Words of slices that were wrong so far; work on them must be done.
  [[nodiscard]] std::uint64_t mismatches() const { return wrong_.total(); }
  /// Puts faults of every class into slices, each between a step that writes and one that compares, in the first
  /// `contents` contents in turn. Nothing may be enqueued; the slices then hold anything.
  [[nodiscard]] FaultCounts put_faults(std::uint64_t contents) const;
  /// Puts faults in, which ends the walk, and records the conditions of `steps` steps over one slice each, in which
  /// `held_s` s passed.
  void record_checks(Recorder& record, double steps, double held_s) const;
  /// The same of the contents so far.
  void record_checks(Recorder& record) const { record_checks(record, contents_ * slices_count(), held_s_); }

 private:
  [[nodiscard]] double slices_count() const { return static_cast<double>(memory_.size()); }

  Device device_;
  Bytes slice_;
  Bytes left_;
  DeviceWords wrong_, sums_, right_;
  DeviceBuffer errors_;
  std::vector<DeviceBuffer> memory_;
  Stream stream_;
  std::vector<Event> marks_;
  std::vector<std::vector<double>> samples_;
  std::chrono::steady_clock::time_point written_;
  double contents_ = 0, held_s_ = 0;
};

}  // namespace assay::cuda
