// decode_room: the memory of a GPU that decode_step takes: counted to the byte before any is taken. Needs no CUDA.
#pragma once

#include <cstdint>
#include <string>

#include "workloads/inference/decode_pointers.h"
#include "workloads/inference/decode_run.h"

namespace assay::inference {

/// The places of all but one set of weights and cache, behind each other from `begin` on.
struct DecodeWork {
  DecodePointers at;
  std::uint64_t results = 0;  ///< offset in B from which on all is written anew by every step: h and all after it
  std::uint64_t size = 0;     ///< of all, B
};
DecodeWork lay_out(const DecodeSizes& sizes, std::byte* begin);

/// The shape as kernels take it.
DecodeSizes sizes_of(const DecodeShape& shape, DecodeNumbers numbers);

/// Memory that `plan` takes on a GPU, B: sets of weights and caches, and the rest, each allocation in whole 2 MiB.
std::uint64_t decode_room(const DecodePlan& plan);

/// Throws BadParameter for sizes that no kernel takes, with the nearest that one does; and where `plan` takes
/// more than `free` of the GPU `title`, with the most layers that fit. A reserve stays free for the driver.
void check_kernels_take(const DecodePlan& plan);
void check_room(const DecodePlan& plan, Bytes free, const std::string& title);

}  // namespace assay::inference
