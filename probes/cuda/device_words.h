// device_words: a few words on a GPU in which kernels count and add up.
#pragma once

#include <cstddef>
#include <cstdint>

#include "probes/cuda/device.h"

namespace assay::cuda {

/// Words of the GPU that is current when they are made; it must be current in every call.
class DeviceWords {
 public:
  /// `count` words, not yet cleared.
  explicit DeviceWords(std::size_t count);
  /// Where kernels find them.
  [[nodiscard]] std::uint64_t* data() const { return memory_.as<std::uint64_t>(); }
  /// Sets all to 0, in order with the other work of `stream`.
  void clear(const Stream& stream);
  /// The sum modulo 2^64 of `count` of them from `first` on, by default of all; work on them must be done.
  [[nodiscard]] std::uint64_t total(std::size_t first = 0, std::size_t count = SIZE_MAX) const;

 private:
  DeviceBuffer memory_;
};

/// Makes `device` current and returns it: for the initialisers of members that belong to it.
Device made_current(const Device& device);

}  // namespace assay::cuda
