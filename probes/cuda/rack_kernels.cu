// rack_kernels: the mover of multiprocessors: kernels of memory_kernels.h on mapped addresses, and one that writes into
// a multicast object, which no plain store may (PTX ISA, multimem.st, from sm_90 on).
#include <memory>

#include <cuda_runtime.h>

#include "probes/cuda/device_words.h"
#include "probes/cuda/lanes.h"
#include "probes/cuda/memory_kernels.h"
#include "probes/cuda/rack_mover.h"

namespace assay::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr int kFirstMulticast = 9;  // compute capability

__global__ void __launch_bounds__(kThreads)
    multicast_kernel(const float4* __restrict__ from, float4* to, std::uint64_t vectors) {
#if __CUDA_ARCH__ >= 900
  const std::uint64_t i = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= vectors) return;
  const float4 x = from[i];
  asm volatile("multimem.st.weak.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to + i), "f"(x.x), "f"(x.y), "f"(x.z),
               "f"(x.w)
               : "memory");
#endif
}

std::byte* pointer(std::uint64_t address) { return reinterpret_cast<std::byte*>(address); }

/// Shared by the functions of the mover.
struct Kernels {
  explicit Kernels(const Device& of) : device(made_current(of)), lanes({of}, 1) {}

  template <class Enqueue>
  Seconds timed(Enqueue enqueue) {
    const StreamWork lane{.device = 0, .enqueue = enqueue};
    return lanes.run(std::span(&lane, 1)).front();
  }

  Device device;
  StreamSet lanes;
  Stream stream = make_stream();
  DeviceWords wrong = DeviceWords(1);
};

}  // namespace

std::optional<RackMover> kernel_mover(const std::string& uuid) {
  // Shared, because a std::function is copied.
  const auto own = std::make_shared<Kernels>(choose_devices(all_devices(), uuid).front());
  RackMover mover{.fill =
                      [own](std::uint64_t address, std::size_t size, std::uint64_t seed) {
                        enqueue_fill(pointer(address), {size}, seed, own->stream);
                        wait(own->stream);
                      },
                  .clear =
                      [own](std::uint64_t address, std::size_t size) {
                        check(cudaMemsetAsync(pointer(address), 0, size, own->stream.get()),
                              "clearing memory of the GPU");
                        wait(own->stream);
                      },
                  .mismatches =
                      [own](std::uint64_t address, std::size_t size, std::uint64_t seed) {
                        own->wrong.clear(own->stream);
                        enqueue_payload_check(pointer(address), {size}, seed, own->wrong.data(), own->stream);
                        wait(own->stream);
                        return own->wrong.total();
                      },
                  .copy =
                      [own](std::uint64_t target, std::uint64_t source, std::size_t size, std::size_t copies) {
                        return own->timed([=](const Stream& stream) {
                          for (std::size_t i = 0; i < copies; ++i)
                            enqueue_copy(pointer(target), pointer(source), {size}, stream);
                        });
                      },
                  .multicast = nullptr};
  if (own->device.compute_major < kFirstMulticast) return mover;
  mover.multicast = [own](std::uint64_t target, std::uint64_t source, std::size_t size, std::size_t copies) {
    return own->timed([=](const Stream& stream) {
      const std::uint64_t vectors = size / sizeof(float4);
      const auto blocks = static_cast<unsigned>((vectors + kThreads - 1) / kThreads);
      for (std::size_t i = 0; i < copies; ++i) {
        multicast_kernel<<<blocks, kThreads, 0, stream.get()>>>(reinterpret_cast<const float4*>(source),
                                                                reinterpret_cast<float4*>(target), vectors);
        check(cudaGetLastError(), "launching a kernel");
      }
    });
  };
  return mover;
}

}  // namespace assay::cuda
