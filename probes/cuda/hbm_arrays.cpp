// hbm_arrays: launches on the arrays, and their expected values.
#include "probes/cuda/hbm_arrays.h"

namespace assay::cuda {
namespace {

// read sums this payload; write leaves payload 0, which enqueue_pass names.
constexpr std::uint64_t kReadSeed = 0x5eed, kWriteSeed = 0;

}  // namespace

HbmArrays::HbmArrays(const Device& device, Bytes each)
    : device_(made_current(device)),
      elements_(each.count / sizeof(double)),
      a_(each),
      b_(each),
      c_(each),
      sums_(kSumWords),
      wrong_(1),
      stream_(make_stream()) {}

double* HbmArrays::array(HbmArray which) const {
  return (which == HbmArray::a ? a_ : which == HbmArray::b ? b_ : c_).as<double>();
}

void HbmArrays::prepare(HbmKernel kernel) {
  use(device_);
  sums_.clear(stream_);
  if (kernel == HbmKernel::read || kernel == HbmKernel::write) {
    enqueue_fill(a_.data(), each(), kReadSeed, stream_);
  } else {
    for (const HbmArray which : kHbmArrays) enqueue_start(kernel, which, array(which), elements_, stream_);
  }
  if (kernel == HbmKernel::read) enqueue_right_sum(each(), kReadSeed, sums_.data(), stream_);
  if (kernel == HbmKernel::dot) enqueue_right_dot(elements_, sums_.data(), stream_);
  wait(stream_);
  // The sum is known without a GPU; the fold is the GPU's own, without its memory.
  of_pass_ = {.sum = kernel == HbmKernel::dot ? hbm_dot(elements_) : payload_sum(kReadSeed, elements_),
              .fold = sums_.total(kSumSlots)};
  sums_.clear(stream_);
  wait(stream_);
}

void HbmArrays::enqueue(HbmKernel kernel, std::size_t passes, const Stream& stream) const {
  const HbmPointers pointers{.a = a_.as<double>(), .b = b_.as<double>(), .c = c_.as<double>(), .elements = elements_};
  for (std::size_t i = 0; i < passes; ++i) enqueue_pass(kernel, pointers, sums_.data(), stream);
}

std::uint64_t HbmArrays::wrong_sum(HbmKernel kernel, std::size_t passes) {
  if (kernel != HbmKernel::read && kernel != HbmKernel::dot) return 0;
  use(device_);
  const Folded found{.sum = sums_.total(0, kSumSlots), .fold = sums_.total(kSumSlots)};
  sums_.clear(stream_);
  wait(stream_);
  return found == Folded{.sum = passes * of_pass_.sum, .fold = passes * of_pass_.fold} ? 0 : 1;
}

std::uint64_t HbmArrays::mismatches(HbmKernel kernel) {
  use(device_);
  wrong_.clear(stream_);
  if (kernel == HbmKernel::read || kernel == HbmKernel::write) {
    enqueue_payload_check(a_.data(), each(), kernel == HbmKernel::read ? kReadSeed : kWriteSeed, wrong_.data(),
                          stream_);
  } else {
    for (const HbmArray which : kHbmArrays)
      enqueue_check(kernel, which, array(which), elements_, wrong_.data(), stream_);
  }
  wait(stream_);
  return wrong_.total();
}

double HbmArrays::bytes(HbmKernel kernel, std::size_t passes) const {
  return static_cast<double>(hbm_bytes(kernel, each().count)) * static_cast<double>(passes);
}

}  // namespace assay::cuda
