// decode_launch: the kernels of a step, enqueued in a stream of the current GPU. No CUDA header is needed to include
// this. Throws std::runtime_error when a launch fails.
#pragma once

#include <cstdint>
#include <functional>

#include "probes/cuda/device.h"
#include "workloads/inference/decode_pointers.h"

namespace assay::inference {

/// Enqueues a product by other means than our kernels, and says whether it did.
using Multiply = std::function<bool(const StepProduct&)>;

/// Enqueues one step: the logits of x, which is changed.
void enqueue_step(const DecodeSizes& sizes, const DecodePointers& at, const Multiply& multiply,
                  const cuda::Stream& stream);
/// Fills weights and cache with numbers out of `seed`.
void enqueue_draw(const DecodeSizes& sizes, const DecodePointers& at, std::uint64_t seed, const cuda::Stream& stream);
/// Adds to *wrong how many weights, and numbers of the cache, are not those that were drawn; the token that is being
/// made is left out.
void enqueue_drawn_check(const DecodeSizes& sizes, const DecodePointers& at, std::uint64_t seed, std::uint64_t* wrong,
                         const cuda::Stream& stream);
/// The step in ring numbers from `input` by plain sums of whole numbers; adds to *wrong how many logits of the step
/// before it differ.
void enqueue_whole_check(const DecodeSizes& sizes, const DecodePointers& at, std::uint64_t seed, const float* input,
                         std::uint64_t* wrong, const cuda::Stream& stream);
/// Adds a number that changes with any bit of the logits to *print.
void enqueue_print(const DecodeSizes& sizes, const DecodePointers& at, std::uint64_t* print,
                   const cuda::Stream& stream);

}  // namespace assay::inference
