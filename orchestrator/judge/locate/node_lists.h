// node_lists: lists of nodes by index, as the files of the localiser put them together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace assay::judge::nodes {

using Nodes = std::vector<std::size_t>;

// g++ 12 mixes up the frames of coroutines with braced temporaries in them; these have names. Delete the first two with
// g++ 13.

/// Only `node`.
inline Nodes just(std::size_t node) { return Nodes(1, node); }
/// `a` and `b`.
inline Nodes pair_of(std::size_t a, std::size_t b) { return {a, b}; }

/// `second` after `first`.
inline Nodes joined(Nodes first, const Nodes& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// The first `count` of `all`.
inline Nodes front(const Nodes& all, std::size_t count) {
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)};
}

/// Whether `node` is one of `all`.
inline bool holds(const Nodes& all, std::size_t node) { return std::ranges::find(all, node) != all.end(); }

}  // namespace assay::judge::nodes
