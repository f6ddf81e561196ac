// join: several constant lists as one, for the parameters, metrics and conditions of a spec.
#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <type_traits>

#include "probes/core/probe.h"

namespace assay {

/// How many elements a list of this type has, which is an array of either kind.
template <class List>
inline constexpr std::size_t list_size = std::extent_v<List>;
template <class Element, std::size_t n>
inline constexpr std::size_t list_size<std::array<Element, n>> = n;

/// The elements of `lists`, in order.
template <class First, class... Others>
constexpr auto join(const First& first, const Others&... others) {
  using Item = std::remove_cvref_t<decltype(*std::begin(first))>;
  std::array<Item, (list_size<First> + ... + list_size<Others>)> joined;
  auto* to = joined.data();
  const auto append = [&to](const auto& list) {
    for (const auto& element : list) *to++ = element;
  };
  append(first);
  (append(others), ...);
  return joined;
}

/// The conditions of a part that only certain parameters bring into a record: none of them is owed by every record.
template <class List>
constexpr auto asked(const List& list) {
  auto all = join(list);
  for (ConditionSpec& one : all) {
    if (is_owed(one.recorded)) one.recorded = Recorded::if_asked;
  }
  return all;
}

}  // namespace assay
