// gpu_job: three streams of one GPU, and the comparison of their results.
#include "probes/power/gpu_job.h"

#include <algorithm>
#include <span>

#include "probes/core/recorder.h"
#include "probes/cuda/detection.h"
#include "probes/cuda/memory_kernels.h"
#include "probes/cuda/mixed.h"

namespace assay::cuda {
namespace {

constexpr std::uint64_t kCopySeed = 0x636f7079;
constexpr std::uint64_t kSliceOfCopies = 4;                   // 1 GiB at full size: written in about a millisecond
constexpr Bytes kJobReserve = {2 * HbmWalk::kReserve.count};  // kernels of the library are loaded later

}  // namespace

GpuJob::GpuJob(const Device& device, const GemmOperands& operands, Bytes copied)
    : device_(device), copied_(copied), operands_(operands), source_(copied), target_(copied), wrong_copies_(1) {
  wrong_copies_.clear(copies_);
  wait(copies_);
  const std::size_t sums = operands.sets() * sizeof(std::uint64_t);
  for (Turn& turn : turns_) {
    turn.sums = DeviceBuffer({sums});
    turn.told = PinnedBuffer({sums + 2 * sizeof(std::uint64_t)});
    std::ranges::fill(std::span(turn.told.as<std::uint64_t>(), operands.sets() + 2), 0);
  }
  walk_.emplace(device, Bytes{kSliceOfCopies * copied.count}, kJobReserve);
  begin_ = last_ = std::chrono::steady_clock::now();
}

void GpuJob::tell(const std::byte* source, std::size_t words, std::size_t place, Turn& turn, const Stream& stream) {
  copy_down(turn.told.data() + place * sizeof(std::uint64_t), source, {words * sizeof(std::uint64_t)}, stream);
}

void GpuJob::enqueue_checked_copy() {
  const std::uint64_t seed = mixed(kCopySeed, rounds_);  // other bytes each time: one that was not copied shows
  enqueue_fill(source_.data(), copied_, seed, copies_);
  if (rounds_ % 2 == 0) {
    enqueue_copy(target_.data(), source_.data(), copied_, copies_);
  } else {
    copy_within(target_.data(), source_.data(), copied_, copies_);
  }
  enqueue_payload_check(target_.data(), copied_, seed, wrong_copies_.data(), copies_);
}

void GpuJob::enqueue(const Stream& products, std::size_t turn) {
  Turn& own = turns_.at(turn);
  const std::size_t sets = operands_.sets();
  operands_.sum_results(products, own.sums.as<std::uint64_t>());
  tell(own.sums.data(), sets, 0, own, products);
  mark(own.summed, products);
  enqueue_checked_copy();
  tell(reinterpret_cast<const std::byte*>(wrong_copies_.data()), 1, sets, own, copies_);
  mark(own.copied, copies_);
  if (walk_->slices() > 0) {
    walk_->enqueue_step(1 + walk_steps_ / walk_->slices(), UINT64_MAX, walk_steps_ % walk_->slices(), steps_);
    ++walk_steps_;
    tell(walk_->counter(), 1, sets + 1, own, steps_);
  }
  mark(own.walked, steps_);
  ++rounds_;
  own.open = true;
}

void GpuJob::finish(std::size_t turn) {
  Turn& own = turns_.at(turn);
  if (!own.open) return;
  own.open = false;
  for (const Event* event : {&own.summed, &own.copied, &own.walked}) wait(*event);
  last_ = std::chrono::steady_clock::now();
  const std::span<const std::uint64_t> told(own.told.as<std::uint64_t>(), operands_.sets() + 2);
  const auto sums = told.first(operands_.sets());
  if (first_sums_.empty()) first_sums_.assign(sums.begin(), sums.end());
  for (std::size_t i = 0; i < sums.size(); ++i) wrong_results_ += sums[i] != first_sums_[i] ? 1 : 0;
  wrong_words_ = told[sums.size()] + told[sums.size() + 1];
}

void GpuJob::record(Recorder& record) const {
  const Subject subject = device_.subject();
  const double time_s = std::chrono::duration<double>(last_ - begin_).count(), rounds = static_cast<double>(rounds_);
  record.measurement("mismatches", static_cast<double>(mismatches()), subject);
  record.condition("job_s", time_s, subject);
  record.condition("job_products", rounds * static_cast<double>(operands_.sets()), subject);
  record.condition("job_copied_bytes", rounds * static_cast<double>(copied_.count), subject);
  constexpr double kHour_s = 3600;
  if (time_s > 0) record.condition("detects_wrong_rate", rate_seen(time_s / kHour_s), subject);
  if (time_s > 0)
    record_faults(record, subject, kResultFaults, operands_.put_faults(steps_),
                  hour_of_results(1, rounds * static_cast<double>(operands_.sets()) / time_s * kHour_s,
                                  static_cast<double>(operands_.sets())));
  if (walk_steps_ == 0) return;
  record.condition("walk_slices", static_cast<std::int64_t>(walk_->slices()), subject);
  walk_->record_checks(record, static_cast<double>(walk_steps_), time_s);
}

}  // namespace assay::cuda
