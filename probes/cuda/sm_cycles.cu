// sm_cycles: each block writes the counter of the multiprocessor that it runs on.
#include <cstdint>
#include <vector>

#include <cuda_runtime.h>

#include "probes/cuda/sm_cycles.h"

namespace assay::cuda {
namespace {

using Cycles = unsigned long long;

constexpr std::size_t kMostProcessors = 1024;  // numbers of multiprocessors may have gaps
constexpr Cycles kStay = 4000;                 // a block stays until every multiprocessor has one: some microseconds

/// Is launched with more shared memory than half of what a multiprocessor has, and uses none of it.
__global__ void stamp_kernel(Cycles* stamps) {
  unsigned processor = 0;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(processor));
  const auto now = static_cast<Cycles>(clock64());
  if (processor < kMostProcessors) stamps[processor] = now;
  while (static_cast<Cycles>(clock64()) - now < kStay) {
  }
}

}  // namespace

SmCycles::SmCycles(const Device& device)
    : processors_(static_cast<std::size_t>(device.sm_count)),
      stamps_(Bytes{2 * kMostProcessors * sizeof(Cycles)}),
      begin_(make_event()),
      end_(make_event()) {
  constexpr int kMore = 1024;  // B
  int whole = 0;
  check(cudaDeviceGetAttribute(&whole, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device.ordinal),
        "asking for shared memory");
  check(cudaFuncSetAttribute(stamp_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, whole / 2 + kMore),
        "taking shared memory");
  shared_ = {static_cast<std::uint64_t>(whole / 2 + kMore)};
}

void SmCycles::mark_point(const Stream& stream, std::size_t point, const Event& event) {
  Cycles* const stamps = stamps_.as<Cycles>() + point * kMostProcessors;
  check(cudaMemsetAsync(stamps, 0, kMostProcessors * sizeof(Cycles), stream.get()), "clearing stamps");
  stamp_kernel<<<static_cast<unsigned>(processors_), 1, shared_.count, stream.get()>>>(stamps);
  check(cudaGetLastError(), "launching the stamps");
  mark(event, stream);
}

void SmCycles::begin(const Stream& stream) { mark_point(stream, 0, begin_); }
void SmCycles::end(const Stream& stream) { mark_point(stream, 1, end_); }

std::optional<SmCycles::Counted> SmCycles::counted() const {
  wait(end_);
  std::vector<Cycles> stamps(2 * kMostProcessors);
  copy_to_host(std::as_writable_bytes(std::span(stamps)), stamps_.data());
  double sum = 0;
  std::size_t read = 0;
  for (std::size_t i = 0; i < kMostProcessors; ++i) {
    const Cycles first = stamps[i], last = stamps[kMostProcessors + i];
    if (first == 0 || last <= first) continue;
    sum += static_cast<double>(last - first);
    ++read;
  }
  if (read != processors_) return std::nullopt;
  return Counted{.cycles = sum, .clock_hz = sum / static_cast<double>(read) / elapsed(begin_, end_).count};
}

}  // namespace assay::cuda
