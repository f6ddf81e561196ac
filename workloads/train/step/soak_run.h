// soak_run: one node trains in segments, each with new processes; a failure ends a segment and not the soak.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "probes/collective/rank_child.h"
#include "probes/core/interruption.h"
#include "probes/core/parameters.h"
#include "probes/core/units.h"
#include "workloads/train/engine/host_engine.h"

namespace assay::train {

/// How long, and how finely.
struct SoakTimes {
  Seconds duration, segment, window, silence;
};

/// Observations of a soak.
struct SoakOutcome {
  std::vector<double> at_s;    ///< middle of each window, since the soak began
  std::vector<double> step_s;  ///< median step of each window, the longest of all ranks
  double load_s = 0;           ///< time in windows
  std::array<std::vector<double>, kInterruptions> interrupted_s;  ///< time under load before each, by class
  std::array<std::vector<double>, kInterruptions> broken_at_s;    ///< since the soak began, of the same
  std::int64_t segments = 0;
  std::uint64_t mismatches = 0;
  bool gave_up = false;            ///< after kMostInterruptions
  std::vector<std::string> notes;  ///< a sentence for each interruption and finding
  nlohmann::json facts;            ///< of rank 0, from the first segment that was whole; null without one
};

/// After so many a soak ends: the machine is broken, and more would show nothing.
inline constexpr std::int64_t kMostInterruptions = 50;

/// Trains for `times.duration` of wall time. `begun` is called once, when the first window is whole, with the time
/// since the begin in s. `job.data` replicated: after each window the gradients of one step are compared between the
/// replicas. Every segment begins and ends with two exact steps. Throws a segment's error before its first window if
/// none has been whole: a machine that cannot begin is no interrupted one; and std::runtime_error when this process is
/// to stop.
SoakOutcome soak(const std::vector<collective::RankProgram>& programs, const Parameters& given, const RankJob& job,
                 const SoakTimes& times, const std::string& node, const std::function<void(double)>& begun);

}  // namespace assay::train
