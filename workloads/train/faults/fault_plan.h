// fault_plan: which fault strikes which rank in which part of which step, and the times of a recovery.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/words.h"
#include "workloads/train/graph/step_graph.h"

namespace assay::train {

/// kill: SIGKILL. hang: SIGSTOP. cut: the kernel drops all that arrives over the network. slow: computes at an eighth
/// of its speed, which is no reason to be replaced.
enum class FaultKind { kill, hang, cut, slow };
constexpr auto words_of(FaultKind) { return names_as_words<FaultKind>(); }
/// The part of a step in which it strikes; save: while the rank's state is written.
enum class StepPhase { forward, backward, reduce, optimizer, save };
constexpr auto words_of(StepPhase) { return names_as_words<StepPhase>(); }

inline constexpr std::string_view kFaultWords = "all kill hang cut slow";
inline constexpr std::string_view kPhaseWords = "all forward backward reduce optimizer save";

/// One injected fault.
struct FaultCase {
  FaultKind kind = FaultKind::kill;
  StepPhase phase = StepPhase::forward;
  std::int64_t step = 0;  ///< in which it strikes; of save: that follows the state which is saved
  std::int64_t rank = 0;
  friend bool operator==(const FaultCase&, const FaultCase&) = default;
};
/// "kill of rank 2 in backward of step 4".
std::string text_of(const FaultCase& one);

/// "kill:backward": kind and phase, for programs; neither word has a colon or a comma.
std::string key_of(const FaultCase& one);

/// A run: steps from 0 on, saved after every `save_every` steps, and its faults in order.
struct FaultPlan {
  std::int64_t save_every = 3;
  std::int64_t steps = 0;
  std::vector<FaultCase> cases;
  /// Steps that one case takes: up to a save, into the fault, and on to the next save.
  [[nodiscard]] std::int64_t steps_per_case() const { return 2 * save_every; }
};
/// Every phase of every kind, as the two words pick them, each `rounds` times; the ranks take turns. Precondition: both
/// words are among the above, save_every at least 2.
FaultPlan fault_plan(std::string_view kinds, std::string_view phases, std::int64_t rounds, std::int64_t save_every,
                     std::int64_t ranks);

/// The operation before which a fault of `phase` strikes: in the middle of the forward or backward pass or of the
/// updates, or the first collective of gradients; a rank that has none of those: its last other collective. Nothing for
/// save.
std::optional<std::size_t> op_of(StepPhase phase, const std::vector<Op>& ops);

/// Where a state is restored from, the nearest first. own: this rank's memory. memory: that of the rank after it.
/// local: a file on its node. shared: a file that every node can read.
enum class Tier { own, memory, local, shared };
constexpr auto words_of(Tier) { return names_as_words<Tier>(); }

/// Time from a fault to the step that it struck being done again, part by part, in s.
struct Recovery {
  double detect_s = 0;     ///< until the leader of rank 0 knows
  double abort_s = 0;      ///< until no rank waits for the lost one any longer
  double rebuild_s = 0;    ///< until a spare has its place and all are connected
  double restore_s = 0;    ///< until all have the state of the last save, checked
  double recompute_s = 0;  ///< until the step is done
  /// Mean time to repair of one fault.
  [[nodiscard]] constexpr double repair_s() const { return detect_s + abort_s + rebuild_s + restore_s + recompute_s; }
  /// The part of these that does not depend on the time of the last save.
  [[nodiscard]] constexpr double restart_s() const { return detect_s + abort_s + rebuild_s + restore_s; }
};

/// Best time between saves of `save_s` each where a job is interrupted every `mtbf_s` (Young 1974).
inline double best_interval_s(double save_s, double mtbf_s) { return std::sqrt(2 * save_s * mtbf_s); }

/// Effective training time ratio: the share of wall time that ends up in the model, saving every `interval_s` for
/// `save_s` and losing `restart_s` and half an interval at every interruption. To first order; at least 0.
inline double effective_share(double save_s, double interval_s, double restart_s, double mtbf_s) {
  return std::max(0.0, 1 - save_s / interval_s - (restart_s + interval_s / 2) / mtbf_s);
}

}  // namespace assay::train
