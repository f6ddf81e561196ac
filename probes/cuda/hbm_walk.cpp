// hbm_walk: allocation in slices, one payload for each, sums and comparison.
#include "probes/cuda/hbm_walk.h"

#include <algorithm>

#include "probes/cuda/figures.h"
#include "probes/cuda/memory_kernels.h"
#include "probes/cuda/payload.h"

namespace assay::cuda {
namespace {

// Contexts and the driver's own allocations grow while a probe runs; below this a GPU begins to refuse launches.
constexpr Bytes kReserve = {std::uint64_t{256} << 20};

/// A payload of its own for each slice: two slices that answer with each other's memory differ in every word.
std::uint64_t seed_of(std::size_t slice) { return (slice + 1) << 48; }

}  // namespace

HbmWalk::HbmWalk(const Device& device, Bytes slice)
    : device_(made_current(device)), slice_(slice), sums_(kSumSlots), stream_(make_stream()) {
  const SlicePlan plan = plan_slices(free_memory(), slice_, kReserve);
  for (std::uint64_t i = 0; i < plan.slices; ++i) memory_.emplace_back(slice_);
  left_ = free_memory();
  samples_.resize(memory_.size());
  for (std::size_t i = 0; i < memory_.size(); ++i) enqueue_fill(memory_[i].data(), slice_, seed_of(i), stream_);
  sums_.clear(stream_);
  wait(stream_);
}

double HbmWalk::coverage() const {
  return static_cast<double>(slice_.count) * static_cast<double>(memory_.size()) /
         static_cast<double>(device_.memory.count);
}

void HbmWalk::enqueue(std::size_t first, std::size_t last, const Stream& stream) {
  const std::size_t end = std::min(last, memory_.size());
  if (first >= end) return;
  while (marks_.size() <= end - first) marks_.push_back(make_event());
  mark(marks_[0], stream);
  for (std::size_t i = first; i < end; ++i) {
    enqueue_sum(memory_[i].data(), slice_, sums_.data(), stream);
    mark(marks_[i - first + 1], stream);
  }
}

void HbmWalk::collect(std::size_t first, std::size_t last) {
  use(device_);
  for (std::size_t i = first; i < std::min(last, memory_.size()); ++i) {
    samples_[i].push_back((slice_ / elapsed(marks_[i - first], marks_[i - first + 1])).count);
  }
}

std::uint64_t HbmWalk::mismatches(std::size_t sweeps) {
  use(device_);
  const std::uint64_t sum = sums_.total();
  std::uint64_t expected = 0;
  const std::uint64_t words = slice_.count / sizeof(std::uint64_t);
  for (std::size_t i = 0; i < memory_.size(); ++i) expected += payload_sum(seed_of(i), words);
  sums_.clear(stream_);
  for (const std::uint64_t flipped : {std::uint64_t{0}, ~std::uint64_t{0}}) {
    for (std::size_t i = 0; flipped != 0 && i < memory_.size(); ++i) {
      enqueue_fill(memory_[i].data(), slice_, seed_of(i), stream_, flipped);
    }
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      enqueue_payload_check(memory_[i].data(), slice_, seed_of(i), sums_.data(), stream_, flipped);
    }
  }
  wait(stream_);
  return sums_.total() + (sum == sweeps * expected ? 0 : 1);
}

}  // namespace assay::cuda
