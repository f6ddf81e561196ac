// hbm_arrays: what is launched on the arrays, and what is expected of them.
#include "probes/cuda/hbm_arrays.h"

#include <array>
#include <numeric>
#include <span>

#include <cuda_runtime_api.h>

#include "probes/cuda/payload.h"

namespace assay {
namespace {

// read sums this payload; write leaves payload 0, which enqueue_pass names.
constexpr std::uint64_t kReadSeed = 0x5eed, kWriteSeed = 0;

/// `device` made current, for the initialisers of members that belong to it.
const Device& current(const Device& device) {
  use(device);
  return device;
}

void clear(const DeviceBuffer& buffer, const Stream& stream) {
  check(cudaMemsetAsync(buffer.data(), 0, buffer.size().count, stream.get()), "clearing memory of the GPU");
}

}  // namespace

HbmArrays::HbmArrays(const Device& device, Bytes each)
    : device_(current(device)),
      elements_(each.count / sizeof(double)),
      a_(each),
      b_(each),
      c_(each),
      sums_(Bytes{kSumSlots * sizeof(std::uint64_t)}),
      wrong_(Bytes{sizeof(std::uint64_t)}),
      stream_(make_stream()) {}

double* HbmArrays::array(HbmArray which) const {
  return (which == HbmArray::a ? a_ : which == HbmArray::b ? b_ : c_).as<double>();
}

void HbmArrays::prepare(HbmKernel kernel) {
  use(device_);
  clear(sums_, stream_);
  if (kernel == HbmKernel::read || kernel == HbmKernel::write) {
    enqueue_fill(a_.data(), each(), kReadSeed, stream_);
  } else {
    for (const HbmArray which : kHbmArrays) enqueue_start(kernel, which, array(which), elements_, stream_);
  }
  if (kernel == HbmKernel::read) sum_of_pass_ = payload_sum(kReadSeed, elements_);
  if (kernel == HbmKernel::dot) sum_of_pass_ = hbm_dot(elements_);
  wait(stream_);
}

void HbmArrays::enqueue(HbmKernel kernel, std::size_t passes, const Stream& stream) const {
  const HbmPointers pointers{.a = a_.as<double>(), .b = b_.as<double>(), .c = c_.as<double>(), .elements = elements_};
  for (std::size_t i = 0; i < passes; ++i) enqueue_pass(kernel, pointers, sums_.as<std::uint64_t>(), stream);
}

std::uint64_t HbmArrays::wrong_sum(HbmKernel kernel, std::size_t passes) {
  if (kernel != HbmKernel::read && kernel != HbmKernel::dot) return 0;
  use(device_);
  std::array<std::uint64_t, kSumSlots> slots{};
  copy_to_host(std::as_writable_bytes(std::span(slots)), sums_.data());
  clear(sums_, stream_);
  wait(stream_);
  return std::accumulate(slots.begin(), slots.end(), std::uint64_t{0}) == passes * sum_of_pass_ ? 0 : 1;
}

std::uint64_t HbmArrays::mismatches(HbmKernel kernel) {
  use(device_);
  clear(wrong_, stream_);
  auto* const wrong = wrong_.as<std::uint64_t>();
  if (kernel == HbmKernel::read || kernel == HbmKernel::write) {
    enqueue_payload_check(a_.data(), each(), kernel == HbmKernel::read ? kReadSeed : kWriteSeed, wrong, stream_);
  } else {
    for (const HbmArray which : kHbmArrays) enqueue_check(kernel, which, array(which), elements_, wrong, stream_);
  }
  wait(stream_);
  std::uint64_t count = 0;
  copy_to_host(std::as_writable_bytes(std::span(&count, 1)), wrong_.data());
  return count;
}

double HbmArrays::bytes(HbmKernel kernel, std::size_t passes) const {
  return static_cast<double>(hbm_bytes(kernel, each().count)) * static_cast<double>(passes);
}

}  // namespace assay
