// operation: reads operations and element types by name.
#include "probes/collective/operation.h"

#include <ranges>
#include <stdexcept>
#include <string>

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

}  // namespace assay::collective
