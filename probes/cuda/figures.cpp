// figures: pure functions, tested without a GPU.
#include "probes/cuda/figures.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "probes/core/statistics.h"

namespace assay::cuda {
namespace {

// The rest belongs to the driver, to contexts and to fragments that no array fits into.
constexpr double kMemoryShare = 0.8;

struct Bounds {
  double first_begin, last_begin, first_end, last_end;
};

Bounds bounds(std::span<const Interval_s> intervals) {
  if (intervals.empty()) throw std::invalid_argument("no intervals: nothing ran");
  Bounds result{intervals[0].begin, intervals[0].begin, intervals[0].end, intervals[0].end};
  for (const Interval_s& one : intervals) {
    if (!(one.begin <= one.end)) throw std::invalid_argument("an interval ends before it begins");
    result = {.first_begin = std::min(result.first_begin, one.begin),
              .last_begin = std::max(result.last_begin, one.begin),
              .first_end = std::min(result.first_end, one.end),
              .last_end = std::max(result.last_end, one.end)};
  }
  return result;
}

}  // namespace

double overlap_share(std::span<const Interval_s> intervals) {
  const Bounds all = bounds(intervals);
  const double whole = all.last_end - all.first_begin;
  return whole > 0 ? std::max(0.0, all.first_end - all.last_begin) / whole : 0;
}

double overlap_share(std::span<const Seconds> times) {
  std::vector<Interval_s> intervals;
  for (const Seconds time : times) intervals.push_back({.begin = 0, .end = time.count});
  return overlap_share(intervals);
}

bool all_ran_at(Seconds moment, std::span<const Seconds> times) {
  return !times.empty() && std::ranges::all_of(times, [&](Seconds time) { return moment.count < time.count; });
}

std::size_t copies_for(Seconds one, Seconds wanted, std::size_t cap) {
  if (!(one.count > 0)) return cap;
  const double copies = std::ceil(wanted.count / one.count);
  return copies >= static_cast<double>(cap) ? cap : std::max<std::size_t>(1, static_cast<std::size_t>(copies));
}

SlicePlan plan_slices(Bytes free, Bytes slice, Bytes reserve) {
  if (slice.count == 0 || free <= reserve) return {.slices = 0, .left = free};
  const std::uint64_t slices = (free.count - reserve.count) / slice.count;
  return {.slices = slices, .left = {free.count - slices * slice.count}};
}

Bytes array_size(Bytes wanted, std::size_t count, Bytes total, Bytes free, Bytes granule) {
  const auto share = static_cast<std::uint64_t>(static_cast<double>(total.count) * kMemoryShare);
  const std::uint64_t most = std::min(share, free.count) / count;
  return {std::min(wanted.count, most) / granule.count * granule.count};
}

std::optional<double> slice_worst(std::span<const Sampling> slices) {
  std::vector<double> medians;
  for (const Sampling& slice : slices) {
    if (slice.samples.empty()) return std::nullopt;
    medians.push_back(median(slice.samples));
  }
  if (medians.empty()) return std::nullopt;
  return *std::ranges::min_element(medians) / median(medians);
}

std::vector<std::vector<Device>> schedule_groups(const std::vector<Device>& devices, std::string_view schedule) {
  if (schedule == "together") return {devices};
  std::vector<std::vector<Device>> groups;
  groups.reserve(devices.size());
  for (const Device& device : devices) groups.push_back({device});
  return groups;
}

std::vector<DevicePair> ordered_pairs(std::size_t devices) {
  std::vector<DevicePair> pairs;
  for (std::size_t source = 0; source < devices; ++source) {
    for (std::size_t target = 0; target < devices; ++target) {
      if (source != target) pairs.push_back({.source = source, .target = target});
    }
  }
  return pairs;
}

std::vector<std::size_t> copies_that_end_together(std::size_t copies, std::span<const Seconds> times) {
  if (times.empty()) throw std::invalid_argument("no lanes: nothing ran");
  const double slowest_s = std::ranges::max_element(times, {}, &Seconds::count)->count;
  std::vector<std::size_t> result;
  for (const Seconds time : times) {
    if (!(time.count > 0)) throw std::invalid_argument("a lane took no time");
    result.push_back(static_cast<std::size_t>(std::lround(static_cast<double>(copies) * slowest_s / time.count)));
  }
  return result;
}

std::vector<Sampling> sample_rounds(const SamplingPlan& plan, const std::function<std::vector<double>()>& round) {
  std::vector<std::vector<double>> rounds;
  const Sampling lead = sample(plan, [&] {
    rounds.push_back(round());
    if (rounds.back().empty() || rounds.back().size() != rounds.front().size()) {
      throw std::logic_error("a round has another number of values than the first, or none");
    }
    return *std::ranges::min_element(rounds.back());
  });
  std::vector<Sampling> result(rounds.front().size());
  for (std::size_t quantity = 0; quantity < result.size(); ++quantity) {
    Sampling& one = result[quantity];
    one.stopped = lead.stopped;
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      (i < lead.warmup.size() ? one.warmup : one.samples).push_back(rounds[i][quantity]);
    }
  }
  return result;
}

}  // namespace assay::cuda
