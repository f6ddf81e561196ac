// shared_memory: memory of one GPU that several processes map, by handles of the NVLink fabric or by descriptors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "probes/core/descriptor.h"
#include "probes/core/words.h"
#include "probes/cuda/driver.h"

namespace assay::cuda {

/// How processes hand memory over: fabric handles, which are bytes and good in every process of one NVLink fabric, or
/// POSIX descriptors, good within one node.
enum class HandleKind { fabric, posix };

constexpr auto words_of(HandleKind) { return names_as_words<HandleKind>(); }

/// The GPU that maps memory into this process, with its primary context. Outlives all SharedMemory of it.
class SharingGpu {
 public:
  /// Throws Skip with the driver's path when the driver cannot share memory (CUDA 10.2).
  SharingGpu(const CudaDriver& driver, const DriverGpu& gpu, HandleKind kind);
  SharingGpu(const SharingGpu&) = delete;
  SharingGpu& operator=(const SharingGpu&) = delete;
  ~SharingGpu();

  [[nodiscard]] const DriverGpu& gpu() const { return gpu_; }
  [[nodiscard]] HandleKind kind() const { return kind_; }
  /// The functions, with the context current on this thread.
  [[nodiscard]] const cuda_api::Functions& current() const;
  /// CudaDriver::demand(), with a hint where the driver does not permit it.
  void demand(cuda_api::Result code, std::string_view what) const;
  /// `size` in whole pieces that can be mapped, and bound to a multicast object of `devices` GPUs if not 0.
  [[nodiscard]] std::size_t whole(std::size_t size, unsigned devices = 0) const;

 private:
  const CudaDriver& driver_;
  DriverGpu gpu_;
  HandleKind kind_;
  cuda_api::Context context_ = nullptr;
};

/// What another process needs to map memory: the bytes of a fabric handle, or a descriptor.
struct MemoryHandle {
  std::string fabric = {};
  Descriptor posix = {};
};

/// One piece of memory, or one multicast object, as this process holds it. Every call throws std::runtime_error with
/// the driver's words when it fails.
class SharedMemory {
 public:
  /// Memory of `on` itself; `size` is one of SharingGpu::whole().
  static SharedMemory made(const SharingGpu& on, std::size_t size);
  /// A multicast object for `devices` GPUs, each of which brings `size` B.
  static SharedMemory multicast(const SharingGpu& on, std::size_t size, unsigned devices);
  /// Memory or a multicast object of another process. `whose` is named in errors.
  static SharedMemory imported(const SharingGpu& into, const MemoryHandle& handle, std::size_t size,
                               std::string_view whose);
  SharedMemory(SharedMemory&&) noexcept;
  SharedMemory& operator=(SharedMemory&&) noexcept;
  ~SharedMemory();

  /// For another process.
  [[nodiscard]] MemoryHandle handle() const;
  /// Maps it into the GPU's address space, readable and writable by its kernels.
  void map();
  /// Its first address; 0 unless mapped.
  [[nodiscard]] std::uint64_t address() const { return address_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Adds this process' GPU to the multicast object.
  void add_gpu();
  /// Binds `bytes` B at `offset` of `memory`, of this process' GPU, to the multicast object, which all GPUs were added
  /// to.
  void bind(const SharedMemory& memory, std::size_t offset, std::size_t bytes);

 private:
  SharedMemory(const SharingGpu& on, cuda_api::Handle handle, std::size_t size)
      : on_(&on), handle_(handle), size_(size) {}
  const SharingGpu* on_;
  cuda_api::Handle handle_ = 0;
  std::size_t size_ = 0;
  std::uint64_t address_ = 0;
};

}  // namespace assay::cuda
