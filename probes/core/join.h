// join: several constant lists as one, for the parameters and conditions of a spec.
#pragma once

#include <array>
#include <cstddef>

namespace assay {

/// The elements of `lists`, in order.
template <class Element, std::size_t... N>
constexpr auto join(const Element (&... lists)[N]) {
  std::array<Element, (N + ...)> joined;
  auto* to = joined.data();
  const auto append = [&to](const auto& list) {
    for (const auto& element : list) *to++ = element;
  };
  (append(lists), ...);
  return joined;
}

}  // namespace assay
