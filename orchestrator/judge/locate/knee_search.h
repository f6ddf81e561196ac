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

/// The search, over nodes in the order in which growing groups take them: a group of k nodes is the first k. Groups of
/// numbers halfway are tested until two neighbours are left, or one test. If the last nodes, those of the group that
/// falls out and not of the one before it, have a clear part in the fall, they take the place of as many others in a
/// group as large as the one that keeps the figure: short as well, the fall is theirs; else it is of the count. A fall
/// by nodes is tested again with other companions while the budget lasts.
class KneeSearch {
 public:
  /// `kept` nodes reach `kept_share` of the limit, and `lost`, at most twice as many, reach `lost_share`. At most
  /// `most` tests.
  KneeSearch(std::size_t kept, double kept_share, std::size_t lost, double lost_share, std::size_t most);

  /// The next test; nothing if the search has ended.
  [[nodiscard]] std::optional<Test> next() const;
  /// Takes the result of that one, by its first limit. One that did not run to its end ends the search.
  void take(const Reading& reading);

  [[nodiscard]] std::size_t kept() const { return kept_; }
  [[nodiscard]] std::size_t lost() const { return lost_; }
  /// The cause; open while it is searched.
  [[nodiscard]] FallCause cause() const;
  /// The tests so far; outcome `short` is of a group that falls out.
  [[nodiscard]] const std::vector<Tested>& tests() const { return tests_; }

 private:
  [[nodiscard]] bool is_clear() const;
  [[nodiscard]] bool exchanges() const;  ///< whether the next test, if there is one, has the last nodes for others

  std::size_t kept_, lost_, most_;
  double kept_share_, lost_share_;
  std::vector<Tested> tests_;
  std::size_t bad_ = 0, good_ = 0;  ///< outcomes of groups with the last nodes in place of others
  bool broken_ = false;
};

}  // namespace assay::judge
