// hip_over_cuda: the HIP runtime as the AMD probes use it, by the CUDA runtime, so that their host code runs once on
// real streams, events, graphs and memory: on an NVIDIA GPU, in first_light. It is not installed. Kernels are the same
// text, compiled by nvcc; the compiler beside it is tests/fakes/fake_hiprtc. hipBLASLt is left out: its solutions are
// code for AMD GPUs, and a product by cuBLASLt would say nothing of it.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <utility>

#include <cuda_runtime.h>

#include "probes/amd/hip_api.h"
#include "probes/cuda/kernel_words.h"

namespace assay::cuda::words {

/// The words of gate_kernel.cuh: a clock of 1 GHz, and a count that the host sees.
__device__ inline Word ticks() {
  Word now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
__device__ inline Word add_for_host(Word* to, Word value) { return atomicAdd_system(to, value); }

}  // namespace assay::cuda::words

#include "probes/amd/gate_kernel.cuh"  // after its words
#include "probes/cuda/gemm_kernels.cuh"
#include "probes/cuda/memory_kernels.cuh"

namespace {

namespace kernels = assay::cuda::kernels;
using namespace assay::amd::hip_api;  // NOLINT(google-build-using-namespace): all of it over another runtime

constexpr Status kInvalid = 1, kNotFound = 500, kNotSupported = 801;
constexpr int kNanosecondsKhz = 1'000'000;

/// A kernel's address by its name.
const void* kernel_called(const char* name) {
  const auto entry = [](const char* title, auto* kernel) {
    return std::pair(title, reinterpret_cast<const void*>(kernel));
  };
#define KERNEL(name) entry(#name, kernels::name)
  static const std::pair<const char*, const void*> kAll[] = {
      KERNEL(assay_copy),         KERNEL(assay_scale),       KERNEL(assay_add),        KERNEL(assay_fill),
      KERNEL(assay_walk),         KERNEL(assay_start),       KERNEL(assay_chase),      KERNEL(assay_hold),
      KERNEL(assay_dot),          KERNEL(assay_right_dot),   KERNEL(assay_sum),        KERNEL(assay_right_sum),
      KERNEL(assay_check),        KERNEL(assay_gemm_fill),   KERNEL(assay_gemm_sum),   KERNEL(assay_whole_fill),
      KERNEL(assay_whole_halves), KERNEL(assay_whole_terms), KERNEL(assay_whole_check)};
#undef KERNEL
  for (const auto& [title, kernel] : kAll)
    if (std::strcmp(title, name) == 0) return kernel;
  return nullptr;
}

cudaStream_t of(Stream stream) { return stream; }
cudaEvent_t of(Event event) { return event; }

}  // namespace

extern "C" {

Status hipRuntimeGetVersion(int* version) {
  *version = 70'000'000;
  return kSuccess;
}
Status hipGetDeviceCount(int* count) { return cudaGetDeviceCount(count); }
Status hipSetDevice(int ordinal) { return cudaSetDevice(ordinal); }
Status hipDeviceGetAttribute(int* value, int which, int ordinal) {
  switch (which) {
    case kEcc:
      return cudaDeviceGetAttribute(value, cudaDevAttrEccEnabled, ordinal);
    case kL2:
      return cudaDeviceGetAttribute(value, cudaDevAttrL2CacheSize, ordinal);
    case kMajor:
      return cudaDeviceGetAttribute(value, cudaDevAttrComputeCapabilityMajor, ordinal);
    case kMinor:
      return cudaDeviceGetAttribute(value, cudaDevAttrComputeCapabilityMinor, ordinal);
    case kBusWidth:
      return cudaDeviceGetAttribute(value, cudaDevAttrGlobalMemoryBusWidth, ordinal);
    case kMemoryClockKhz:
      return cudaDeviceGetAttribute(value, cudaDevAttrMemoryClockRate, ordinal);
    case kComputeUnits:
      return cudaDeviceGetAttribute(value, cudaDevAttrMultiProcessorCount, ordinal);
    case kWallClockKhz:
      *value = kNanosecondsKhz;
      return kSuccess;
    default:
      return kInvalid;
  }
}
Status hipDeviceGetName(char* name, int room, int ordinal) {
  cudaDeviceProp properties;
  const Status status = cudaGetDeviceProperties(&properties, ordinal);
  if (status == kSuccess) std::snprintf(name, static_cast<std::size_t>(room), "%s (HIP over CUDA)", properties.name);
  return status;
}
Status hipDeviceTotalMem(std::size_t* bytes, int ordinal) {
  cudaDeviceProp properties;
  const Status status = cudaGetDeviceProperties(&properties, ordinal);
  if (status == kSuccess) *bytes = properties.totalGlobalMem;
  return status;
}
/// HIP's are 16 characters.
Status hipDeviceGetUuid(char* uuid, int ordinal) {
  cudaDeviceProp properties;
  const Status status = cudaGetDeviceProperties(&properties, ordinal);
  constexpr char kDigits[] = "0123456789abcdef";
  for (int i = 0; status == kSuccess && i < 16; ++i) {
    const auto byte = static_cast<unsigned char>(properties.uuid.bytes[i / 2]);
    uuid[i] = kDigits[i % 2 == 0 ? byte >> 4 : byte & 0xf];
  }
  return status;
}
Status hipDeviceGetPCIBusId(char* text, int room, int ordinal) { return cudaDeviceGetPCIBusId(text, room, ordinal); }
Status hipStreamCreateWithFlags(Stream* stream, unsigned flags) { return cudaStreamCreateWithFlags(stream, flags); }
Status hipStreamDestroy(Stream stream) { return cudaStreamDestroy(of(stream)); }
Status hipStreamQuery(Stream stream) { return cudaStreamQuery(of(stream)); }
Status hipStreamWaitEvent(Stream stream, Event event, unsigned flags) {
  return cudaStreamWaitEvent(of(stream), of(event), flags);
}
Status hipEventCreate(Event* event) { return cudaEventCreate(event); }
Status hipEventDestroy(Event event) { return cudaEventDestroy(of(event)); }
Status hipEventRecord(Event event, Stream stream) { return cudaEventRecord(of(event), of(stream)); }
Status hipEventQuery(Event event) { return cudaEventQuery(of(event)); }
Status hipEventElapsedTime(float* ms, Event begin, Event end) { return cudaEventElapsedTime(ms, of(begin), of(end)); }
Status hipMalloc(void** pointer, std::size_t size) { return cudaMalloc(pointer, size); }
Status hipFree(void* pointer) { return cudaFree(pointer); }
/// Host memory is coherent here whatever is asked.
Status hipHostMalloc(void** pointer, std::size_t size, unsigned flags) {
  return flags == (kPortable | kMapped | kCoherent)
             ? cudaHostAlloc(pointer, size, cudaHostAllocPortable | cudaHostAllocMapped)
             : kInvalid;
}
Status hipHostFree(void* pointer) { return cudaFreeHost(pointer); }
Status hipMemGetInfo(std::size_t* free, std::size_t* total) { return cudaMemGetInfo(free, total); }
Status hipMemcpy(void* target, const void* source, std::size_t size, int kind) {
  return cudaMemcpy(target, source, size, static_cast<cudaMemcpyKind>(kind));
}
Status hipMemcpyAsync(void* target, const void* source, std::size_t size, int kind, Stream stream) {
  return cudaMemcpyAsync(target, source, size, static_cast<cudaMemcpyKind>(kind), of(stream));
}
static_assert(kHostToDevice == cudaMemcpyHostToDevice && kDeviceToHost == cudaMemcpyDeviceToHost);
static_assert(kPortable == cudaHostRegisterPortable && kMapped == cudaHostRegisterMapped);
static_assert(kNotReady == cudaErrorNotReady && kNoDevice == cudaErrorNoDevice &&
              kInsufficientDriver == cudaErrorInsufficientDriver && kNotInitialised == cudaErrorInitializationError);
Status hipHostRegister(void* memory, std::size_t size, unsigned flags) { return cudaHostRegister(memory, size, flags); }
Status hipHostUnregister(void* memory) { return cudaHostUnregister(memory); }
Status hipHostGetDevicePointer(void** pointer, void* host, unsigned flags) {
  return cudaHostGetDevicePointer(pointer, host, flags);
}
Status hipMemsetAsync(void* target, int value, std::size_t size, Stream stream) {
  return cudaMemsetAsync(target, value, size, of(stream));
}
Status hipDeviceCanAccessPeer(int* can, int ordinal, int peer) { return cudaDeviceCanAccessPeer(can, ordinal, peer); }
Status hipDeviceEnablePeerAccess(int peer, unsigned flags) { return cudaDeviceEnablePeerAccess(peer, flags); }
Status hipMemcpyPeerAsync(void* target, int target_gpu, const void* source, int source_gpu, std::size_t size,
                          Stream stream) {
  return cudaMemcpyPeerAsync(target, target_gpu, source, source_gpu, size, of(stream));
}
/// CUDA does not say it.
Status hipExtGetLinkTypeAndHopCount(int, int, std::uint32_t*, std::uint32_t*) { return kNotSupported; }
Status hipStreamBeginCapture(Stream stream, int mode) {
  return cudaStreamBeginCapture(of(stream), static_cast<cudaStreamCaptureMode>(mode));
}
Status hipStreamEndCapture(Stream stream, Graph* graph) {
  return cudaStreamEndCapture(of(stream), reinterpret_cast<cudaGraph_t*>(graph));
}
Status hipGraphInstantiate(ReadyGraph* ready, Graph graph, void**, char*, std::size_t) {
  return cudaGraphInstantiate(ready, static_cast<cudaGraph_t>(graph), 0);
}
Status hipGraphDestroy(Graph graph) { return cudaGraphDestroy(static_cast<cudaGraph_t>(graph)); }
Status hipGraphExecDestroy(ReadyGraph ready) { return cudaGraphExecDestroy(ready); }
Status hipGraphLaunch(ReadyGraph ready, Stream stream) { return cudaGraphLaunch(ready, of(stream)); }
Status hipModuleLoadData(Module* module, const void* code) {
  *module = const_cast<void*>(code);
  return std::strcmp(static_cast<const char*>(code), "kernels for the host") == 0 ? kSuccess : kInvalid;
}
Status hipModuleGetFunction(Function* function, Module, const char* name) {
  *function = const_cast<void*>(kernel_called(name));
  return *function == nullptr ? kNotFound : kSuccess;
}
Status hipModuleLaunchKernel(Function function, unsigned blocks, unsigned y, unsigned z, unsigned threads, unsigned ty,
                             unsigned tz, unsigned shared, Stream stream, void** places, void**) {
  return cudaLaunchKernel(function, dim3(blocks, y, z), dim3(threads, ty, tz), places, shared, of(stream));
}
const char* hipGetErrorString(Status status) { return cudaGetErrorString(static_cast<cudaError_t>(status)); }
const char* hipGetErrorName(Status status) { return cudaGetErrorName(static_cast<cudaError_t>(status)); }
Status hipGetLastError() { return cudaGetLastError(); }

}  // extern "C"
