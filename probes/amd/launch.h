// launch: a kernel of the compiled text, found by the address of the same function as the host's compiler has it.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>
#include <utility>

#include "probes/amd/hip.h"
#include "probes/cuda/device.h"

namespace assay::amd {

/// The address of a kernel and its name in the text.
using Named = std::pair<const void*, const char*>;
template <class... Parameters>
Named named(void (*kernel)(Parameters...), const char* name) {
  return {reinterpret_cast<const void*>(kernel), name};
}

/// Enqueues `kernel`, one of `names`, on `stream` of the current device. Throws std::runtime_error with the cause.
template <class... Parameters>
void launch(std::span<const Named> names, unsigned blocks, unsigned threads, const cuda::Stream& stream,
            void (*kernel)(Parameters...), Parameters... arguments) {
  const auto found = std::ranges::find(names, reinterpret_cast<const void*>(kernel), &Named::first);
  if (found == names.end()) throw std::logic_error("a kernel without a name");
  std::array<void*, sizeof...(Parameters)> places = {static_cast<void*>(&arguments)...};
  cuda::check(
      hip().launch(amd::kernel(found->second), blocks, 1, 1, threads, 1, 1, 0, stream.get(), places.data(), nullptr),
      "launching a kernel");
}

}  // namespace assay::amd
