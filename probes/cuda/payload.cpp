// payload: the host's side. Plain loops that the compiler turns into vectors.
#include "probes/cuda/payload.h"

#include <cstddef>

namespace assay::cuda {
namespace {

constexpr std::size_t kPageWords = 4096 / sizeof(std::uint64_t);

}  // namespace

void fill_payload(std::span<std::uint64_t> target, std::uint64_t seed) {
  for (std::size_t i = 0; i < target.size(); ++i) target[i] = payload_word(seed, i);
}

void poison_payload(std::span<std::uint64_t> target, std::uint64_t seed) {
  for (std::size_t i = 0; i < target.size(); i += kPageWords) target[i] = payload_poison(seed);
}

std::uint64_t payload_mismatches(std::span<const std::uint64_t> found, std::uint64_t seed) {
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < found.size(); ++i) wrong += found[i] != payload_word(seed, i) ? 1 : 0;
  return wrong;
}

}  // namespace assay::cuda
