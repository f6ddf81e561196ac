// hbm_walk: allocation in slices, sums of reads, steps from content to content, and their record.
#include "probes/cuda/hbm_walk.h"

#include <algorithm>
#include <span>

#include "probes/core/recorder.h"
#include "probes/cuda/figures.h"
#include "probes/cuda/fold.h"
#include "probes/cuda/memory_kernels.h"
#include "probes/cuda/mixed.h"

namespace assay::cuda {
namespace {

constexpr std::uint64_t kListed = 4096;         // errors that are noted: enough to see a lane, a warp, a stuck bit
constexpr std::uint64_t kStuckReads = 160'000;  // that stuck bits are put into: some 160 of them act

/// The payload with which every slice begins.
std::uint64_t seed_of(std::size_t slice) { return walk_words(0, slice, 0).seed; }

}  // namespace

HbmWalk::HbmWalk(const Device& device, Bytes slice, Bytes reserve)
    : device_(made_current(device)),
      slice_(slice),
      wrong_(1),
      sums_(kSumWords),
      right_(kSumWords),
      errors_({kListed * sizeof(WalkError)}),
      stream_(make_stream()) {
  const SlicePlan plan = plan_slices(free_memory(), slice_, reserve);
  for (std::uint64_t i = 0; i < plan.slices; ++i) memory_.emplace_back(slice_);
  left_ = free_memory();
  samples_.resize(memory_.size());
  for (DeviceWords* words : {&wrong_, &sums_, &right_}) words->clear(stream_);
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    enqueue_fill(memory_[i].data(), slice_, seed_of(i), stream_);
    enqueue_right_sum(slice_, seed_of(i), right_.data(), stream_);
  }
  wait(stream_);
  written_ = std::chrono::steady_clock::now();
}

double HbmWalk::coverage() const {
  return static_cast<double>(slice_.count) * slices_count() / static_cast<double>(device_.memory.count);
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

std::uint64_t HbmWalk::wrong_sums(std::size_t sweeps) {
  use(device_);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < memory_.size(); ++i) sum += payload_sum(seed_of(i), slice_.count / sizeof(std::uint64_t));
  const Folded right{.sum = sweeps * sum, .fold = sweeps * right_.total(kSumSlots)};
  return Folded{.sum = sums_.total(0, kSumSlots), .fold = sums_.total(kSumSlots)} == right ? 0 : 1;
}

void HbmWalk::enqueue_step(std::uint64_t number, std::uint64_t end, std::size_t slice, const Stream& stream) {
  const WalkLog log{.wrong = wrong_.data(), .errors = errors_.as<WalkError>(), .room = kListed};
  enqueue_walk(memory_[slice].data(), slice_, walk_step(number, end, slice, slice_.count), log, stream);
}

void HbmWalk::enqueue_content(std::uint64_t number, std::uint64_t end) {
  use(device_);
  for (std::size_t i = 0; i < memory_.size(); ++i) enqueue_step(number, end, i, stream_);
}

void HbmWalk::finish_content() {
  use(device_);
  wait(stream_);
  const auto now = std::chrono::steady_clock::now();
  held_s_ += std::chrono::duration<double>(now - written_).count();
  written_ = now;
  contents_ += 1;
}

FaultCounts HbmWalk::put_faults(std::uint64_t contents) const {
  use(device_);
  const Bytes window = {kFaultWords * sizeof(std::uint64_t)};
  const PinnedBuffer host(window);
  DeviceWords wrong(1);
  wrong.clear(stream_);
  const auto is_found = [&](FaultClass fault, std::uint64_t number, std::uint64_t content) {
    const std::size_t slice = number % memory_.size();
    const WalkWords words = walk_words(content, slice, slice_.count);
    std::byte* const memory = memory_[slice].data();
    enqueue_walk(memory, window, {.expected = {}, .next = words, .checks = false}, {.wrong = wrong.data()}, stream_);
    copy_down(host.data(), memory, window, stream_);
    wait(stream_);
    put_fault({host.as<std::uint64_t>(), kFaultWords}, fault, number);
    const std::uint64_t before = wrong.total();
    copy_up(memory, host.data(), window, stream_);
    enqueue_walk(memory, window, {.expected = words, .next = {}, .writes = false}, {.wrong = wrong.data()}, stream_);
    wait(stream_);
    return wrong.total() != before;
  };
  return count_faults(kStuckReads / contents, [&](FaultClass fault, std::uint64_t number) {
    if (fault != FaultClass::rare_stuck) return is_found(fault, number, number % contents);
    bool found = false;
    for (std::uint64_t content = 0; content < contents && !found; ++content)
      found = mixed(number, content) % kStuckEvery == 0 && is_found(fault, number, content);
    return found;
  });
}

void HbmWalk::record_checks(Recorder& record, double steps, double held_s) const {
  use(device_);
  const Subject subject = device_.subject();
  constexpr double kGib = 1 << 30, kHour_s = 3600;
  const double bytes = static_cast<double>(slice_.count);
  record.condition("walk_words", steps * bytes / sizeof(std::uint64_t), subject);
  const double rounds = steps / slices_count();  // every bit has held 0 and 1 after two
  record.condition("detects_stuck_share", coverage() * std::min(1.0, rounds / kPayloadContents), subject);
  if (held_s > 0)
    record.condition("detects_flip_rate", rate_seen(bytes * slices_count() / kGib * held_s / kHour_s), subject);
  const auto all = static_cast<std::uint64_t>(rounds);  // contents that every slice held
  if (held_s > 0 && all > 0) {
    const std::uint64_t contents = std::min(all, walk_contents(1));
    const double in_hour = rounds / held_s * kHour_s / static_cast<double>(contents);
    record_faults(record, subject, "detects_", put_faults(contents),
                  {.transient = coverage(), .stuck = coverage(), .rounds = in_hour});
  }
  const std::uint64_t wrong = mismatches();
  if (wrong == 0) return;
  std::vector<WalkError> errors(std::min(wrong, kListed));
  copy_to_host(std::as_writable_bytes(std::span(errors)), errors_.data());
  std::ranges::sort(errors, {}, [](const WalkError& error) { return std::pair(error.content, error.offset); });
  record.condition("mismatch_classes", words_of(classes_of(errors), errors.size(), wrong), subject);
  record.condition("mismatch_places", places_of(errors), subject);
}

}  // namespace assay::cuda
