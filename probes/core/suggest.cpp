// suggest: the names that begin with the word, else the nearest by Levenshtein distance over short names.
#include "probes/core/suggest.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay {
namespace {

/// Edits, with two neighbours swapped counted as one (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> edits(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) edits[i][0] = i;
  std::iota(edits[0].begin(), edits[0].end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = edits[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      edits[i][j] = std::min({changed, edits[i - 1][j] + 1, edits[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
    }
  }
  return edits[a.size()][b.size()];
}

}  // namespace

std::string suggestion(std::string_view wrong, std::span<const std::string> names) {
  constexpr std::size_t kLongest = 64;  // longer words are not misspelt names, and the distance is quadratic
  if (names.empty()) return "there are none";
  constexpr std::size_t kTyped = 4;  // fewer letters name nothing
  constexpr std::size_t kOffered = 3;
  std::vector<std::string> longer;
  std::ranges::copy_if(names, std::back_inserter(longer),
                       [&](const std::string& name) { return name.starts_with(wrong); });
  if (wrong.size() >= kTyped && !longer.empty() && longer.size() <= kOffered)
    return fmt::format("did you mean '{}'?", fmt::join(longer, "' or '"));
  if (wrong.size() <= kLongest) {
    const auto nearest =
        std::ranges::min_element(names, {}, [&](const std::string& name) { return distance(wrong, name); });
    if (distance(wrong, *nearest) <= std::max<std::size_t>(1, wrong.size() / 3)) {
      return fmt::format("did you mean '{}'?", *nearest);
    }
  }
  constexpr std::size_t kShown = 12;
  const auto shown = names.first(std::min(kShown, names.size()));
  return fmt::format("known are: {}{}", fmt::join(shown, ", "), names.size() > kShown ? ", …" : "");
}

}  // namespace assay
