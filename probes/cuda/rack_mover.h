// rack_mover: how a rank makes, moves and compares payloads in its own memory and in memory of others that it mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "probes/core/units.h"

namespace assay::cuda {

class SharingGpu;

/// Work of one GPU on addresses of its own address space; each returns when it is done. Sizes are multiples of 16 B.
struct RackMover {
  /// Writes the payload `seed` (payload.h).
  std::function<void(std::uint64_t address, std::size_t size, std::uint64_t seed)> fill;
  /// Writes zeros, which no payload of a rank holds.
  std::function<void(std::uint64_t address, std::size_t size)> clear;
  /// Words that are not those of the payload `seed`.
  std::function<std::uint64_t(std::uint64_t address, std::size_t size, std::uint64_t seed)> mismatches;
  /// Copies so often, one after another; returns the time of all of them.
  std::function<Seconds(std::uint64_t target, std::uint64_t source, std::size_t size, std::size_t copies)> copy;
  /// The same into a multicast object; null if that is not possible.
  std::function<Seconds(std::uint64_t target, std::uint64_t source, std::size_t size, std::size_t copies)> multicast;
};

/// By copy engines, through the driver: times are wall time until the copies are done, and payloads are made
/// and compared on the host. `on` outlives it.
RackMover copy_engine_mover(const SharingGpu& on);

/// By kernels on all multiprocessors of the GPU `uuid`: times are the device's, and payloads are made and compared on
/// the device. Nothing in a build without the CUDA Toolkit.
std::optional<RackMover> kernel_mover(const std::string& uuid);

}  // namespace assay::cuda
