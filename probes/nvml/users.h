// users: how many processes besides this one use a GPU, as far as that can be proved.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "probes/nvml/nvml_gpu.h"

namespace assay::nvml {

/// Users of a GPU.
struct GpuUsers {
  std::span<const GpuProcess> listed;        ///< by the driver
  std::optional<unsigned> own;               ///< number of this process when it has a context on the GPU
  bool outermost = false;                    ///< whether this process sees every process of the machine
  std::optional<std::uint64_t> memory_used;  ///< of the whole GPU, by processes
};

/// Less memory than any process needs for a context of its own, in bytes: contexts take some 200 MB and more, and what
/// the driver counts besides its processes is a few MB (inferred; NVIDIA states neither).
inline constexpr std::uint64_t kLeastContext = std::uint64_t{128} << 20;

/// Processes besides `own` on the GPU. A list without `own` lacks others too, and in a process namespace of its own a
/// list never has those of others: then memory that none of the listed processes has counts as one more, and without
/// that figure nothing is known but those that are listed. Nothing if there may be others that nothing shows.
std::optional<std::int64_t> other_processes(const GpuUsers& users);

/// Whether this process sees every process of the machine, by the number of its process namespace.
bool in_outermost_namespace();

/// The same of `gpu`, asked now; `own_context` says whether this process has one on it. A failure is in the code.
Answer<std::int64_t> other_processes_of(const NvmlGpu& gpu, bool own_context);

}  // namespace assay::nvml
