// token_payload: arithmetic modulo 2^64.
#include "workloads/inference/token_payload.h"

#include <algorithm>

#include "probes/collective/pattern.h"

namespace assay::inference {

void ExpertMap::add(std::uint64_t nonce, std::int64_t expert) {
  const auto number = static_cast<std::uint64_t>(expert);
  factor += collective::mixed(nonce, 2 * number) | 1;
  summand += collective::mixed(nonce, 2 * number + 1);
}

std::uint64_t proof_of(std::uint64_t nonce, std::uint64_t step, std::int64_t token) {
  return collective::mixed(collective::mixed(nonce, step), static_cast<std::uint64_t>(token));
}

void apply(const ExpertMap& map, std::span<const std::uint64_t> token, std::span<std::uint64_t> result) {
  for (std::size_t begin = 0; begin < result.size(); begin += token.size()) {
    const auto part = result.subspan(begin, std::min(token.size(), result.size() - begin));
    for (std::size_t i = 0; i < part.size(); ++i) part[i] = map.factor * token[i] + map.summand;
  }
}

void add_words(std::span<const std::uint64_t> part, std::span<std::uint64_t> sum) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
}

bool is_applied(const ExpertMap& map, std::span<const std::uint64_t> token, std::span<const std::uint64_t> found) {
  std::uint64_t differing = 0;
  for (std::size_t begin = 0; begin < found.size(); begin += token.size()) {
    const auto part = found.subspan(begin, std::min(token.size(), found.size() - begin));
    for (std::size_t i = 0; i < part.size(); ++i) differing |= part[i] ^ (map.factor * token[i] + map.summand);
  }
  return differing == 0;
}

}  // namespace assay::inference
