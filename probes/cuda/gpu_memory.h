// gpu_memory: memory of one GPU that a network adapter can access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "probes/core/units.h"
#include "probes/cuda/driver.h"

namespace assay::cuda {

/// Memory of `gpu` that is free, in its primary context. Throws std::runtime_error with the driver's words.
Bytes free_memory_of(const CudaDriver& driver, const DriverGpu& gpu);

/// Zeroed memory of one GPU, in whole pages of its own, in the GPU's primary context. Calls may come from any thread,
/// one at a time. Every call throws std::runtime_error with the driver's words when it fails.
class GpuMemory {
 public:
  /// Allocates `size`, rounded up to 2 MiB, so that no page is shared with others. `driver` must outlive this. What
  /// does not fit is refused with what is free, before anything is allocated.
  GpuMemory(const CudaDriver& driver, const DriverGpu& gpu, Bytes size);
  GpuMemory(GpuMemory&&) noexcept;
  GpuMemory& operator=(GpuMemory&&) = delete;
  ~GpuMemory();

  /// Its first address in the GPU's address space; a host cannot read it.
  [[nodiscard]] std::uint64_t address() const;
  /// B, as was asked for.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] const DriverGpu& gpu() const;

  /// Copies `bytes` to `begin` and returns when they are there for every device to read.
  void write(std::size_t begin, std::span<const std::byte> bytes) const;
  /// Copies from `begin` into `bytes`, after all that devices have written before.
  void read(std::size_t begin, std::span<std::byte> bytes) const;

  /// Lends the memory as a dma-buf to `use`, which is given its file descriptor and where in it the memory begins, B;
  /// the descriptor is closed afterwards. Empty when it was lent, else why there is none; `use` is not called then.
  [[nodiscard]] std::string lend_dma_buf(const std::function<void(int descriptor, std::uint64_t offset)>& use) const;

 private:
  friend Bytes free_memory_of(const CudaDriver& driver, const DriverGpu& gpu);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::cuda
