// operation: reads operations and element types by name.
#include "probes/collective/operation.h"

#include <ranges>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay::collective {
namespace {

int position(std::string_view words, std::string_view wanted) {
  int at = 0;
  for (const auto word : words | std::views::split(' ')) {
    if (std::string_view(word.begin(), word.end()) == wanted) return at;
    ++at;
  }
  throw std::logic_error("'" + std::string(wanted) + "' is not one of " + std::string(words));
}

}  // namespace

Operation operation_named(std::string_view word) { return static_cast<Operation>(position(kOperations, word)); }
Element element_named(std::string_view word) { return static_cast<Element>(position(kElements, word)); }
namespace {

std::string bytes_list(const std::vector<Bytes>& sizes) {
  std::vector<std::uint64_t> counts;
  counts.reserve(sizes.size());
  for (const auto size : sizes) counts.push_back(size.count);
  return fmt::format("{}", fmt::join(counts, ","));
}

}  // namespace

FittingSizes fit_sizes(const std::vector<Bytes>& sizes, Operation operation, Element element, int ranks, Bytes memory) {
  FittingSizes fitting;
  for (const Bytes size : sizes) {
    const Shape shape = shape_of(operation, size.count, size_of(element), ranks);
    if (shape.chunk == 0)
      fitting.too_small.push_back(size);
    else if ((shape.sent + shape.received) * size_of(element) > memory.count)
      fitting.too_large.push_back(size);
    else
      fitting.kept.push_back(size);
  }
  return fitting;
}

std::string left_out(const FittingSizes& sizes) {
  std::string text;
  if (!sizes.too_large.empty()) text += "too_large=" + bytes_list(sizes.too_large);
  if (!sizes.too_small.empty()) text += (text.empty() ? "too_small=" : " too_small=") + bytes_list(sizes.too_small);
  return text.empty() ? "none" : text;
}

}  // namespace assay::collective
