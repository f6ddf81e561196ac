// payload: payloads in memory of the host.
#pragma once

#include <cstdint>
#include <span>

#include "probes/cuda/payload_words.h"

namespace assay::cuda {

/// Writes the payload `seed` over `target`.
void fill_payload(std::span<std::uint64_t> target, std::uint64_t seed);

/// Writes a poison word into every page of 4 KiB of `target`: enough to show a missing page, and done in no time.
void poison_payload(std::span<std::uint64_t> target, std::uint64_t seed);

/// Number of words of `found` that are not those of the payload `seed`.
std::uint64_t payload_mismatches(std::span<const std::uint64_t> found, std::uint64_t seed);

}  // namespace assay::cuda
