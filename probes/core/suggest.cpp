// suggest: Levenshtein distance over short names.
#include "probes/core/suggest.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay {
namespace {

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string suggestion(std::string_view wrong, std::span<const std::string> names) {
  constexpr std::size_t kLongest = 64;  // longer words are not misspelt names, and the distance is quadratic
  if (names.empty()) return "there are none";
  if (wrong.size() <= kLongest) {
    const auto nearest = std::ranges::min_element(names, {}, [&](const std::string& name) { return distance(wrong, name); });
    if (distance(wrong, *nearest) <= std::max<std::size_t>(1, wrong.size() / 3)) {
      return fmt::format("did you mean '{}'?", *nearest);
    }
  }
  constexpr std::size_t kShown = 12;
  const auto shown = names.first(std::min(kShown, names.size()));
  return fmt::format("known are: {}{}", fmt::join(shown, ", "), names.size() > kShown ? ", …" : "");
}

}  // namespace assay
