// gpu_job: three streams of one GPU, and the comparison of their results.
#include "probes/power/gpu_job.h"

#include <algorithm>
#include <span>

#include <cuda_runtime_api.h>

#include "probes/core/recorder.h"
#include "probes/cuda/detection.h"
#include "probes/cuda/memory_kernels.h"

namespace assay::power {
namespace {

constexpr Bytes kJobCopy = {std::uint64_t{256} << 20};              // some 0.2 ms there and back: as long as a product
constexpr Bytes kJobSlice = {std::uint64_t{1} << 30};               // read and written in about a millisecond
constexpr Bytes kJobReserve = {2 * cuda::HbmWalk::kReserve.count};  // kernels of the library are loaded later

}  // namespace

GpuJob::GpuJob(const cuda::Device& device, const cuda::GemmOperands& operands)
    : device_(device), operands_(operands), source_(kJobCopy), target_(kJobCopy), wrong_copies_(1) {
  wrong_copies_.clear(copies_);
  cuda::wait(copies_);
  const std::size_t sums = operands.sets() * sizeof(std::uint64_t);
  for (Turn& turn : turns_) {
    turn.sums = cuda::DeviceBuffer({sums});
    turn.told = cuda::PinnedBuffer({sums + 2 * sizeof(std::uint64_t)});
    std::ranges::fill(std::span(turn.told.as<std::uint64_t>(), operands.sets() + 2), 0);
  }
  walk_.emplace(device, kJobSlice, kJobReserve);
  begin_ = last_ = std::chrono::steady_clock::now();
}

void GpuJob::tell(const std::byte* source, std::size_t words, std::size_t place, Turn& turn,
                  const cuda::Stream& stream) {
  cuda::check(cudaMemcpyAsync(turn.told.as<std::uint64_t>() + place, source, words * sizeof(std::uint64_t),
                              cudaMemcpyDeviceToHost, stream.get()),
              "copying counts of wrong results");
}

void GpuJob::enqueue_copy() {
  const std::uint64_t seed = rounds_;  // another one each time: a copy that did not happen shows
  cuda::enqueue_fill(source_.data(), kJobCopy, seed, copies_);
  if (rounds_ % 2 == 0) {
    cuda::enqueue_copy(target_.data(), source_.data(), kJobCopy, copies_);
  } else {
    cuda::check(
        cudaMemcpyAsync(target_.data(), source_.data(), kJobCopy.count, cudaMemcpyDeviceToDevice, copies_.get()),
        "copying on the GPU");
  }
  cuda::enqueue_payload_check(target_.data(), kJobCopy, seed, wrong_copies_.data(), copies_);
}

void GpuJob::enqueue(const cuda::Stream& products, std::size_t turn) {
  Turn& own = turns_.at(turn);
  const std::size_t sets = operands_.sets();
  operands_.sum_results(products, own.sums.as<std::uint64_t>());
  tell(own.sums.data(), sets, 0, own, products);
  cuda::mark(own.summed, products);
  enqueue_copy();
  tell(reinterpret_cast<const std::byte*>(wrong_copies_.data()), 1, sets, own, copies_);
  cuda::mark(own.copied, copies_);
  if (walk_->slices() > 0) {
    walk_->enqueue_step(1 + walk_steps_ / walk_->slices(), UINT64_MAX, walk_steps_ % walk_->slices(), steps_);
    ++walk_steps_;
    tell(walk_->counter(), 1, sets + 1, own, steps_);
  }
  cuda::mark(own.walked, steps_);
  ++rounds_;
  own.open = true;
}

void GpuJob::finish(std::size_t turn) {
  Turn& own = turns_.at(turn);
  if (!own.open) return;
  own.open = false;
  for (const cuda::Event* event : {&own.summed, &own.copied, &own.walked}) cuda::wait(*event);
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
  record.condition("job_copied_bytes", rounds * static_cast<double>(kJobCopy.count), subject);
  constexpr double kHour_s = 3600;
  if (time_s > 0) record.condition("detects_wrong_rate", cuda::rate_seen(time_s / kHour_s), subject);
  if (time_s > 0)
    cuda::record_faults(record, subject, cuda::kResultFaults, operands_.put_faults(steps_),
                        cuda::hour_of_results(1, rounds * static_cast<double>(operands_.sets()) / time_s * kHour_s,
                                              static_cast<double>(operands_.sets())));
  if (walk_steps_ == 0) return;
  record.condition("walk_slices", static_cast<std::int64_t>(walk_->slices()), subject);
  walk_->record_checks(record, static_cast<double>(walk_steps_), time_s);
}

}  // namespace assay::power
