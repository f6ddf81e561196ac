// site_agreement: two meters of one boundary over three levels of load: a node's BMC and its outlets, a rack's nodes
// and its feeds.
#pragma once

#include <array>
#include <expected>
#include <map>
#include <string>
#include <vector>

#include "orchestrator/judge/metering/site_readings.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// The metrics of power_feed that the judge joins from two sides.
/// agreement_power is of one side (at.side, meter or reference) at one level (at.load, in %).
inline constexpr std::string_view kAgreementPower = "agreement_power", kAgreementRatio = "agreement_ratio",
                                  kAgreementGain = "agreement_gain", kAgreementOffset = "agreement_offset";

/// The levels of load at which sides are compared, in %.
inline constexpr std::array kAgreementLoads = {0, 50, 100};

/// Two sides compared, by MLCommons' procedure for two meters.
struct SidesAgreement {
  double ratio = 1;                          ///< the one farthest from 1 over the levels
  double gain = 1, offset_w = 0;             ///< of the line through the levels, the meter over its reference
  std::vector<double> meter_w, reference_w;  ///< at each level, idle first
  std::string words;                         ///< the sides and the reading of each at each level
};

/// For every node with a meter of its own and with outlets, and every rack of which each node has such a meter and
/// which has meters of its feeds, shelves or the whole: how the two sides agree at idle, half and full load; else why
/// that is not known. Needs a load of shape stairs whose stairs last six minutes: one to settle and five windows.
std::map<Subject, std::expected<SidesAgreement, std::string>> agreements(const site::Site& site, const HeldLoad& load,
                                                                         const std::map<int, Record>& watches);

}  // namespace assay::judge
