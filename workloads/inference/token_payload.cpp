// token_payload: arithmetic modulo 2^64.
#include "workloads/inference/token_payload.h"

#include <algorithm>

namespace assay::inference {

void apply(const ExpertMap& map, std::span<const std::uint64_t> token, std::span<std::uint64_t> result) {
  for (std::size_t begin = 0; begin < result.size(); begin += token.size()) {
    const auto part = result.subspan(begin, std::min(token.size(), result.size() - begin));
    for (std::size_t i = 0; i < part.size(); ++i) part[i] = map.of(token[i]);
  }
}

void add_words(std::span<const std::uint64_t> part, std::span<std::uint64_t> sum) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
}

bool is_applied(const ExpertMap& map, std::span<const std::uint64_t> token, std::span<const std::uint64_t> found) {
  std::uint64_t differing = 0;
  for (std::size_t begin = 0; begin < found.size(); begin += token.size()) {
    const auto part = found.subspan(begin, std::min(token.size(), found.size() - begin));
    for (std::size_t i = 0; i < part.size(); ++i) differing |= part[i] ^ map.of(token[i]);
  }
  return differing == 0;
}

}  // namespace assay::inference
