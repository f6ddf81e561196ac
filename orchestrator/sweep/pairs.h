// pairs: which nodes are measured together tonight by a job of two nodes, and their results. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/plan/plan.h"
#include "orchestrator/sweep/ledger.h"

namespace assay::sweep {

/// Two nodes that a step joins, in its order: rank 0 runs on the first.
struct NightPair {
  std::string first, second;
  friend auto operator<=>(const NightPair&, const NightPair&) = default;
};

/// Result of a pair in a sweep.
struct PairVisit {
  NightPair pair;
  drift::VisitState state = drift::VisitState::not_measured;
  std::string reason = {};  ///< empty if it was measured
  friend bool operator==(const PairVisit&, const PairVisit&) = default;
};

/// "n01+n02", the name of the pair's folder.
std::string name_of(const NightPair& pair);

/// The pair of such a name, or of "n01,n02"; nothing for a text that names no two different nodes.
std::optional<NightPair> pair_named(std::string_view name, char between = '+');

/// The pairs that steps of `plan` join, each once, in the order of the steps. With the due nodes in the order of
/// rotated() they are those of a sweep that visits all nodes at once.
std::vector<NightPair> pairs_of(const plan::Plan& plan);

/// Ids of the requirements of `plan` that a step of several nodes measures.
std::vector<std::string> joint_requirements(const plan::Plan& plan);

/// The visit of a pair whose nodes ended as `visits`: preempted, busy or not measured if one of them is, in this order;
/// nothing if both were measured.
std::optional<PairVisit> hindered(const NightPair& pair, const std::vector<NodeVisit>& visits);

/// The nodes among `measured` that no pair of `pairs` joins with another one of them.
std::vector<std::string> without_partner(const std::vector<std::string>& measured, const std::vector<NightPair>& pairs);

}  // namespace assay::sweep
