// driver: the GPUs of a node as NVIDIA's CUDA driver shows them. Opened at run time; needs no CUDA Toolkit to build.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "probes/cuda/driver_api.h"

namespace assay::cuda {

/// One GPU as the driver shows it to this process.
struct DriverGpu {
  int ordinal = 0;              ///< the driver's number, for its calls only; never recorded
  std::string uuid;             ///< "GPU-8f2…", or "MIG-8f2…" of an instance of a partitioned GPU
  std::string pci_bus_id;       ///< "0000:1b:00.0", as under /sys/bus/pci/devices
  std::string name;             ///< "NVIDIA H200"
  bool dma_buf = false;         ///< whether its memory can be shared as a dma-buf
  bool peermem = false;         ///< whether nvidia-peermem could reach its memory (GPUDirect RDMA)
  bool flushes = false;         ///< whether writes from outside are flushed by a call
  bool posix_handles = false;   ///< whether its memory can be shared by file descriptors within the node
  bool fabric_handles = false;  ///< whether it can be shared by handles of the NVLink fabric, with other nodes too
  bool multicast = false;       ///< whether the switches between GPUs multicast
};

/// The CUDA driver, initialised for this process.
class CudaDriver {
 public:
  /// Opens libcuda.so.1 (see Library::open) and initialises it. Throws Skip when the library is missing, is a stub,
  /// lacks a function, or shows no GPU; std::runtime_error with its words when it fails otherwise.
  CudaDriver();
  CudaDriver(CudaDriver&&) noexcept;
  ~CudaDriver();

  /// Every GPU that the driver shows to this process, by PCI bus id.
  [[nodiscard]] std::vector<DriverGpu> gpus() const;
  /// The CUDA version that the driver supports at most, "13.0".
  [[nodiscard]] std::string version() const;
  /// Where the library was found.
  [[nodiscard]] const std::string& path() const;
  /// The functions, for GpuMemory.
  [[nodiscard]] const cuda_api::Functions& functions() const;
  /// The driver's words for a result.
  [[nodiscard]] std::string words(cuda_api::Result code) const;
  /// Throws std::runtime_error "what: words of code" when a call returned `code` other than success.
  void demand(cuda_api::Result code, std::string_view what) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Why a probe that was built for CUDA `needed` ("13.0") skips on a driver that supports CUDA `supported` at most: both
/// versions of CUDA, that of the driver as /sys/module/nvidia/version under `root` tells it, and the oldest driver that
/// will do.
std::string words_for_old_driver(std::string_view supported, std::string_view needed, const std::string& root = "");

/// The GPU of `gpus` whose UUID or PCI bus id is `wanted`, in any spelling. Throws Skip with the GPUs there are when
/// none is named so; a number alone names none, because drivers count GPUs in orders of their own.
const DriverGpu& gpu_named(const std::vector<DriverGpu>& gpus, std::string_view wanted);

}  // namespace assay::cuda
