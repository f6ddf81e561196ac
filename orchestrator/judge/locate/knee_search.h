// knee_search: between a number of nodes that keeps a figure and one that does not, the largest number that does, and
// whether the number matters or the nodes that came last.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "orchestrator/judge/locate/localiser.h"

namespace assay::judge {

/// Cause of a fall. open: the tests do not show it.
enum class FallCause { open, count, nodes };

/// Two groups that a fall is between, by their numbers of nodes and their figures over the limit.
struct KneeEnds {
  std::size_t kept = 0;
  double kept_share = 0;
  std::size_t lost = 0;  ///< at most twice as many as kept
  double lost_share = 0;
  double scatter = 0;  ///< relative standard deviation between attempts of one group
};

/// The search, over nodes in the order in which growing groups take them: a group of k nodes is the first k. Groups of
/// numbers halfway are tested until two neighbours are left, or one test. If the last nodes, those of the group that
/// falls out and not of the one before it, have a clear part in the fall, they take the place of as many others in a
/// group as large as the one that keeps the figure: short as well, the fall is theirs; else it is of the count. A fall
/// by nodes is tested again with other companions while the budget lasts. It is one only if it is wider than single
/// attempts scatter: a bisection ends between a test that came out well and one that came out badly.
class KneeSearch {
 public:
  /// At most `most` tests.
  KneeSearch(const KneeEnds& ends, std::size_t most) : ends_(ends), most_(most) {}

  /// The next test; nothing if the search has ended.
  [[nodiscard]] std::optional<Test> next() const;
  /// Takes the result of that one, by its first limit. One that did not run to its end ends the search.
  void take(const Reading& reading);

  [[nodiscard]] std::size_t kept() const { return ends_.kept; }
  [[nodiscard]] std::size_t lost() const { return ends_.lost; }
  /// The cause; open while it is searched.
  [[nodiscard]] FallCause cause() const;
  /// The tests so far; outcome `short` is of a group that falls out.
  [[nodiscard]] const std::vector<Tested>& tests() const { return tests_; }

 private:
  [[nodiscard]] bool is_clear() const;
  [[nodiscard]] bool exchanges() const;  ///< whether the next test, if there is one, has the last nodes for others

  KneeEnds ends_;
  std::size_t most_;
  std::vector<Tested> tests_;
  std::size_t bad_ = 0, good_ = 0;  ///< outcomes of groups with the last nodes in place of others
  bool broken_ = false;
};

}  // namespace assay::judge
