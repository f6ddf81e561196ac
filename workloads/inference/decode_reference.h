// decode_reference: the step in ring numbers once more, one sum after another in whole numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "workloads/inference/decode_model.h"

namespace assay::inference {

/// The logits of a step in ring numbers, batch x vocab. Nothing of DecodeWalk or its kernels is used; `set` is not
/// changed: the token's own addition to the cache is kept apart.
std::vector<float> ring_logits(const DecodeShape& shape, const DecodeSet& set, std::span<const float> input);

/// A number that changes with any bit of `logits`.
std::uint64_t print_of(std::span<const float> logits);

}  // namespace assay::inference
