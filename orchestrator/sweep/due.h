// due: which nodes are visited tonight. A pure function of the site, the visits so far and the night.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orchestrator/sweep/night.h"

namespace assay::sweep {

/// A node as far as the due list asks.
struct DueNode {
  std::string name;
  std::string leaf, rack;           ///< empty: unknown
  std::optional<Night> last_visit;  ///< the last night in which it was measured; nothing: never
  int missed = 0;                   ///< sweeps since then that wanted it and did not get it
  bool watched = false;             ///< watched, or repaired less than 14 days ago
  bool beside_flag = false;         ///< a node on its leaf is flagged
};

/// The rule of the list.
struct DueRule {
  Night tonight = {};
  int rotate = 1;          ///< every node once in so many nights; 1: all nodes every night
  int max_age_nights = 5;  ///< a node that was measured so many nights ago, or never, is due before others
};

/// Sweeps missed in a row after which a node gets a job of its own, and after which it is a finding of coverage.
inline constexpr int kMissedForTarget = 2, kMissedForFinding = 4;

/// One node that is to be visited tonight.
struct DueEntry {
  std::string node;
  int age = 0;            ///< nights since its last visit; of one never visited max_age_nights
  bool never = false;     ///< never visited
  bool overdue = false;   ///< age is max_age_nights or more
  bool targeted = false;  ///< missed so often that it gets a job of its own
  bool finding = false;   ///< missed so often that the sweep has a hole
  double weight = 1;      ///< hazard weight times age
  double stagger = 0;     ///< 0 to 1, by its name and the night: its share of the time over which starts are spread
  friend bool operator==(const DueEntry&, const DueEntry&) = default;
};

/// The hazard weight of `node`: 3 when it is watched, times 2 when a neighbour is flagged.
double hazard(const DueNode& node);

/// The nodes that are due tonight, the most urgent first: all that are overdue, then as many as `rotate` asks, by
/// weight and spread over the leaves (racks where no leaf is known). A node that was visited tonight is not due. Nodes
/// that are missed again and again do not take the place of others. The same for any order of `nodes`.
std::vector<DueEntry> due_list(std::span<const DueNode> nodes, const DueRule& rule);

/// A number from 0 to 1 that depends only on `text`, equally spread.
double share_of_hash(const std::string& text);

/// `names` in such an order that the first round of a tournament (plan/pairing.h) has the pairs of round `night`: over
/// as many nights as there are rounds every node meets every other once.
std::vector<std::string> rotated(std::vector<std::string> names, Night night);

}  // namespace assay::sweep
