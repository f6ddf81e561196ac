// search_budget: arithmetic alone; the plan states the number, the search keeps to it.
#include "orchestrator/plan/search_budget.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace assay::plan {
namespace {

/// Per bisection step: five nodes take about four each with their confirmation, a pair about three; the rest is for
/// outcomes that contradict each other.
constexpr std::size_t kTestsPerStep = 12;
constexpr std::size_t kSmallestChunk = 8;

}  // namespace

std::size_t screening_chunks(std::size_t nodes) {
  const auto size = std::max<double>(kSmallestChunk, std::round(2 * std::sqrt(static_cast<double>(nodes))));
  return std::max<std::size_t>(1, static_cast<std::size_t>(std::round(static_cast<double>(nodes) / size)));
}

std::size_t test_budget(std::size_t nodes) {
  return screening_chunks(nodes) + kTestsPerStep * static_cast<std::size_t>(std::bit_width(nodes));
}

}  // namespace assay::plan
