// pair_matrix: which nodes and pairs are at fault among pairs that were measured, and nothing of requirements.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orchestrator/judge/verdict.h"
#include "probes/core/probe.h"

namespace assay::judge {

/// A pair that was measured, by index of its nodes. Data went from `a` to `b` where `direction` is forward, from `b` to
/// `a` if it is backward.
struct SeenPair {
  std::size_t a = 0, b = 0;
  PairDirection direction = PairDirection::both;
  bool bad = false;
  bool sure = true;                      ///< not within the guard band, where the measurement cannot decide
  bool broken = false;                   ///< bad because it was not measured: it misses no limit
  double share = 1;                      ///< of the limit that it reaches, as share_of(); 0 if broken
  std::size_t attempts = 1, missed = 0;  ///< attempts, and those of them that are short without others
  std::string_view step;
};

/// The pairs of one figure on one rail (another rail is other ports and cables), in both directions if it has them. A
/// node then has two ends, one that sends and one that receives, each with pairs of its own: a port that is slow one
/// way is the first of some pairs and the second of others.
class PairMatrix {
 public:
  /// Whether pairs are of nodes, or of parts of nodes; for the words that name them.
  enum class Of { nodes, parts };
  PairMatrix() = default;
  explicit PairMatrix(Of of) : of_(of) {}

  void add(const SeenPair& pair);

  [[nodiscard]] bool has_bad() const;

  /// Accuses nodes, and returns them. Suspects are those that are short in more than half of the pairs of one of their
  /// ends, of which two partners at least are good with others; pairs of a suspect are left out for the next one.
  /// A cause without regard to nodes makes suspects, too. So they are accused only if they explain
  /// everything (all of their pairs are short, none of the others is, and they are half of the nodes at most), or if
  /// each of them, and all together, are worse than the pairs without any of them by more than chance gives: Fisher's
  /// exact test on how many are short, or Mann and Whitney's (1947) on how far, with as many choices as there were. The
  /// suspect that chance explains best is let go until that holds.
  const std::set<std::size_t>& accuse();

  /// The final result: the accused, and pairs that are short while both of their ends are good with others, unless
  /// there are so many of them that a path is no cause. Such a pair is named only if it is short again whenever it is
  /// measured again: in each of two attempts or more, and by Fisher's test oftener than chance gives to one of all
  /// pairs without an accused node. Where most of the pairs without the accused are short there is
  /// a common cause, and nothing else is named. Of a pair with a node of `known_bad`, suspected because of another
  /// test, it is that node that is named.
  [[nodiscard]] Localised found(const std::vector<std::string>& nodes, const std::set<std::size_t>& known_bad) const;

 private:
  /// A node's end: of pairs without direction there is one, `both`.
  using End = std::pair<std::size_t, PairDirection>;
  struct Share {
    std::size_t bad = 0, good = 0;
    std::size_t shown = 0;  ///< of the bad ones: with a partner that is good with others
    bool sure = false;      ///< one of those shown is beyond the guard band
  };
  struct Accused {
    End end;
    std::size_t bad = 0, broken = 0, all = 0;
    std::vector<std::string> steps;  ///< that show it
  };
  /// Pairs that are short without an accused node.
  struct Left {
    std::size_t all = 0, bad = 0;                               ///< pairs without an accused node
    std::size_t unsure = 0;                                     ///< of the bad: within the guard band
    std::set<std::size_t> open;                                 ///< nodes of pairs that may be the fault of either
    std::map<std::size_t, std::vector<std::string>> explained;  ///< steps by the known node that explains them
    std::vector<const SeenPair*> isolated;                      ///< both of whose nodes are good with others
    std::size_t unconfirmed = 0;                                ///< like them, but not short again and again
    [[nodiscard]] bool is_common() const;
    [[nodiscard]] bool is_scattered() const;
  };

  static End first(const SeenPair& pair);
  static End second(const SeenPair& pair);
  [[nodiscard]] bool counts(const SeenPair& pair) const;
  [[nodiscard]] std::map<End, Share> shares() const;
  static std::optional<End> worst(const std::map<End, Share>& shares);
  [[nodiscard]] Accused accused_at(const End& end, const std::map<End, Share>& shares) const;
  [[nodiscard]] Culprit culprit_of(std::size_t node, const std::string& name) const;
  [[nodiscard]] bool explains_all() const;
  [[nodiscard]] double chance_of(const End* suspect) const;
  [[nodiscard]] bool stand_out(std::size_t& weakest) const;
  [[nodiscard]] Left left(const std::set<std::size_t>& known_bad) const;
  [[nodiscard]] std::string reason(const Left& left) const;

  Of of_ = Of::nodes;
  std::vector<SeenPair> pairs_;
  std::vector<const SeenPair*> by_share_;  ///< the same, the worst first; from accuse() on
  std::vector<Accused> accused_;           ///< in the order found
  std::set<std::size_t> at_fault_;         ///< their nodes
};

}  // namespace assay::judge
