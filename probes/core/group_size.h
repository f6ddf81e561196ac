// group_size: the numbers of nodes on which the ranks of a probe can work together, known before it runs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/record.h"
#include "probes/core/words.h"

namespace assay {

/// How the processes of all nodes must stand to the number that a rule names.
enum class SizeDemand { at_least, at_most, multiple_of, exactly };

constexpr auto words_of(SizeDemand) { return names_as_words<SizeDemand>(); }

/// A probe's demands on the number of its processes. All rules hold at once.
struct GroupSizeRule {
  std::string_view when = "";  ///< see holds() in products.h; empty: always
  SizeDemand processes = SizeDemand::at_least;
  std::string_view of = "";      ///< processes, see product_of(); if it is 0, nothing is demanded
  std::string_view each = "1";   ///< processes on each node, the same form; if it is 0, nothing can be said before
  std::string_view reason = "";  ///< a clause: "the model is trained by 64 processes, and each node has one at least"
};

/// A rule as read from a description.
struct OwnGroupSizeRule {
  std::string when, of, each, reason;
  SizeDemand processes = SizeDemand::at_least;
};

/// A number of nodes that a probe cannot use.
struct UnusableSize {
  std::string reason;                         ///< of the first rule that is broken, with its numbers
  std::optional<std::size_t> fewer, greater;  ///< nearest numbers of nodes that keep all rules; of those looked at
};

/// The rule that keeps a probe with these `rules` and `parameters`, which must be resolved, from working on `nodes`
/// nodes, from 1; nothing if it can. Greater numbers are looked for up to 65,536 more.
std::optional<UnusableSize> unusable_size(const std::vector<OwnGroupSizeRule>& rules, const Values& parameters,
                                          std::size_t nodes);

/// Why `rule` cannot be computed with a probe that has these parameters; empty if it can.
std::string group_size_rule_problem(const OwnGroupSizeRule& rule, const std::vector<std::string>& parameters);

}  // namespace assay
