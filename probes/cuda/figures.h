// figures: from the times of the GPU probes to their figures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "probes/core/sampling.h"
#include "probes/core/units.h"
#include "probes/cuda/choice.h"

namespace assay::cuda {

/// When one of several things that run at once began and ended, in s from a common moment.
struct Interval_s {
  double begin = 0;
  double end = 0;
};

/// Share, 0..1, of the time from the first begin to the last end in which all of them ran; 0 when there was no such
/// time. Throws std::invalid_argument when there are none or one ends before it begins.
double overlap_share(std::span<const Interval_s> intervals);

/// The same of things that began at one moment and took `times`.
double overlap_share(std::span<const Seconds> times);

/// Whether all of several things that began at one moment and took `times` still ran `moment` after it. False when
/// there are none.
bool all_ran_at(Seconds moment, std::span<const Seconds> times);

/// Number of copies that make a sample last about `wanted` when one takes `one`: at least 1, at most `cap`.
std::size_t copies_for(Seconds one, Seconds wanted, std::size_t cap);

/// How device memory is walked.
struct SlicePlan {
  std::uint64_t slices = 0;  ///< number of slices of equal size
  Bytes left = {};           ///< the part that stays free
};

/// The most slices of `slice` that leave at least `reserve` of `free`. A slice of 0 gives none.
SlicePlan plan_slices(Bytes free, Bytes slice, Bytes reserve);

/// Size of each of `count` arrays: `wanted`, or less where all of them together would take more than 80 % of `total` or
/// more than `free`; rounded down to a multiple of `granule`. `count` and `granule` must be positive.
Bytes array_size(Bytes wanted, std::size_t count, Bytes total, Bytes free, Bytes granule);

/// The slowest slice's median over the median of all slices' medians, in 1. Nothing without slices or when a slice has
/// no samples.
std::optional<double> slice_worst(std::span<const Sampling> slices);

/// The devices that are measured at once: each separately for one_by_one, all for together (see kScheduleParameter).
std::vector<std::vector<Device>> schedule_groups(const std::vector<Device>& devices, std::string_view schedule);

/// Two devices by their place in a list.
struct DevicePair {
  std::size_t source = 0;
  std::size_t target = 0;
  friend constexpr bool operator==(const DevicePair&, const DevicePair&) = default;
};

/// Every ordered pair of `devices` different devices, by source, then target.
std::vector<DevicePair> ordered_pairs(std::size_t devices);

/// Which of the `devices - 1` landing places of a target belongs to `pair.source`: sources in order, the target left
/// out.
constexpr std::size_t landing_place(DevicePair pair) {
  return pair.source < pair.target ? pair.source : pair.source - 1;
}
static_assert(landing_place({.source = 0, .target = 1}) == 0 && landing_place({.source = 2, .target = 1}) == 1);

/// How many copies each of several lanes makes that begin at one moment, so that all end at about the same: `copies` of
/// the slowest, in proportion more of the others. `times` are those of `copies` in each lane, together. Throws
/// std::invalid_argument when there are none or one is not positive.
std::vector<std::size_t> copies_that_end_together(std::size_t copies, std::span<const Seconds> times);

/// Samples several quantities that one round yields together, such as the bandwidths of GPUs that run at once. `round`
/// gives the same number of values each time, in the same order; the smallest of a round decides when warm-up and
/// sampling end, as sample() has it, and all quantities are cut there. Throws std::logic_error when a round is empty or
/// of another length than the first.
std::vector<Sampling> sample_rounds(const SamplingPlan& plan, const std::function<std::vector<double>()>& round);

}  // namespace assay::cuda
