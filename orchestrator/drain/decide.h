// decide: which nodes are taken out of service and which are put back. Pure.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/drain/account.h"
#include "orchestrator/drain/actor.h"
#include "orchestrator/drift/night.h"
#include "orchestrator/drift/policy.h"
#include "orchestrator/drift/report.h"
#include "orchestrator/site/site.h"
#include "probes/core/words.h"

namespace assay::drain {

/// Action on a node.
enum class Ruling {
  drain,    ///< taken out of service now
  release,  ///< put back now
  queue,    ///< later: a cap is reached
  leave,    ///< not touched
};

constexpr auto words_of(Ruling) { return names_as_words<Ruling>(); }

/// One node and why.
struct Decision {
  std::string node, flag;
  Ruling ruling = Ruling::leave;
  std::string reason;  ///< the text that the node carries or would carry
  std::string why;     ///< one sentence for people
};

/// All of them, and their common facts.
struct Decisions {
  std::vector<Decision> nodes;  ///< drains first, then queued ones by severity, then the others
  std::string alarm;            ///< why nothing at all is done; empty: no such reason
  int allowed = 0;              ///< drains that the caps left for tonight
};

/// Inputs of a decision; all outlive it.
struct Situation {
  const drift::DriftReport& report;
  const drift::Policy& policy;
  const site::Site& site;                     ///< the nodes that the shares are of, and their leaves
  const std::map<std::string, NodeNow>& now;  ///< as the scheduler sees them
  const Account& account;
  std::chrono::system_clock::time_point time;  ///< the clock
};

/// Drains within this many days that make a node a lemon at the third.
inline constexpr int kLemonDays = 28, kLemonDrains = 3;

/// Which nodes with a confirmed flag are drained. Nothing at all is done for a simulated report, or where more nodes
/// than policy.fleet_ratio (at least one is allowed) were flagged in one night: that is an event of the tool, the
/// building or a rollout. A node that another user drained, that is down or unknown to the scheduler, or that was put
/// back by other means after a drain for the same flag, is left. Flags whose common element is larger than a node are
/// left to people. Then the caps: the lower of ratio and count (at least 1) for each night and for any 12 hours,
/// per_leaf and total_ratio (at least 1) over all drained nodes, those of other users among them.
Decisions decide_drains(const Situation& situation);

/// A sweep that shows a drained node clean.
struct CleanSweep {
  std::string id, started;  ///< UTC
  double budget_s = 0;
  std::vector<std::string> clean;  ///< nodes that were measured in it and met every limit
  std::map<std::string, std::vector<std::string>> partners = {};  ///< of each, where pairs were measured
  std::map<std::string, std::set<std::string>> records = {};      ///< of each: SHA-256 of its records
};

/// Sweeps that a node must pass before it is put back, and how long they must be.
inline constexpr int kCleanSweeps = 2;
inline constexpr double kCleanBudget_s = 900;

/// Which of our drains end: no flag of the node is open in the report any more, the node was clean in two sweeps of 15
/// minutes that began after its drain and before now (without a record in common, and with different partners if it had
/// any), it is no lemon, no jobs run on it, and it still carries our reason. The alarm of decide_drains does not hold a
/// release up.
Decisions decide_releases(const Situation& situation, const std::vector<CleanSweep>& sweeps);

/// One line for each node, and the alarm, for people.
std::string text_of(const Decisions& decisions, drift::Mode mode);

/// "assay:host_gemm.rate:0123456789ab:20260105".
struct Reason {
  std::string prefix, check, flag;
  drift::Date date = {};
};

/// The text of `reason`; characters of the check other than [A-Za-z0-9._-] become '-', and it is cut at 60.
std::string reason_text(const Reason& reason);

}  // namespace assay::drain
