// detection: the share of faults that a check finds in an hour, and the rates that a check without a finding excludes.
#pragma once

#include <cmath>
#include <string_view>

#include "probes/core/probe.h"
#include "probes/core/record.h"
#include "probes/cuda/fault_classes.h"

namespace assay {
class Recorder;
}  // namespace assay

namespace assay::cuda {

/// The rate at which events that are seen whenever they happen show at least once in `exposure` with a probability of
/// 0.95: -ln(0.05) / exposure. In events in the unit of the exposure, which must be positive.
inline double rate_seen(double exposure) {
  constexpr double kMissed = 0.05;
  return -std::log(kMissed) / exposure;
}

/// The part of an hour that a check sees: the share of transient faults, and of places where a bit may be stuck, within
/// its data, and how many rounds it makes, each another chance to see a stuck bit.
struct HourOfCheck {
  double transient = 1, stuck = 1, rounds = 1;
};

/// The same of products: `compared` is the share of results that are compared, `products` are made in an hour, of
/// `sets` operands. A bit that is stuck in one of kStuckEvery results meets those of one set again and again.
HourOfCheck hour_of_results(double compared, double products, double sets);

/// Bounds of a share, 0..1.
struct ShareBounds {
  double low = 0, high = 1;
};

/// The share of faults of a class in an hour that the check finds: two-sided 95 % bounds by Clopper and Pearson (1934)
/// from `count`, which has faults, and `hour`.
ShareBounds found_in_hour(FaultClass fault, const FaultCount& count, const HourOfCheck& hour);

/// Records `prefix` + class + "_low", "_high" and "_put" of every class that has faults.
void record_faults(Recorder& record, const Subject& subject, std::string_view prefix, const FaultCounts& counts,
                   const HourOfCheck& hour);

namespace fault_words {
inline constexpr std::string_view kLow =
    "Share of faults of this class in an hour of the check that it finds, lower of two bounds of 95 % (Clopper and "
    "Pearson 1934), by faults that the probe put in between what was written and what is compared.";
inline constexpr std::string_view kHigh = "The upper bound.";
inline constexpr std::string_view kBit = "Faults put in: one bit of a word.";
inline constexpr std::string_view kBurst = "Faults put in: 2 to 8 neighbouring bits of a word.";
inline constexpr std::string_view kLanes = "Faults put in: one bit of the same word in all 32 lanes of a warp.";
inline constexpr std::string_view kStuck = "Faults put in: a bit that is stuck in one of 1000 reads or results.";
}  // namespace fault_words

/// Conditions of faults in results of products.
inline constexpr std::string_view kResultFaults = "detects_result_";
inline constexpr ConditionSpec kResultFaultConditions[] = {
    if_asked("detects_result_single_bit_low", fault_words::kLow),
    if_asked("detects_result_single_bit_high", fault_words::kHigh),
    if_asked("detects_result_single_bit_put", fault_words::kBit),
    if_asked("detects_result_burst_low", fault_words::kLow),
    if_asked("detects_result_burst_high", fault_words::kHigh),
    if_asked("detects_result_burst_put", fault_words::kBurst),
    if_asked("detects_result_warp_aligned_low", fault_words::kLow),
    if_asked("detects_result_warp_aligned_high", fault_words::kHigh),
    if_asked("detects_result_warp_aligned_put", fault_words::kLanes),
    if_asked("detects_result_rare_stuck_low", fault_words::kLow),
    if_asked("detects_result_rare_stuck_high", fault_words::kHigh),
    if_asked("detects_result_rare_stuck_put", fault_words::kStuck),
};

}  // namespace assay::cuda
