// repeat: how often a requirement is measured.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "orchestrator/plan/profile.h"

namespace assay::plan {

/// The deviation between attempts is pooled over the steps of a requirement from so many on: 16 degrees of freedom with
/// three attempts, so that Student's t is within 8 % of the normal quantile.
inline constexpr std::size_t kFewestPooledSteps = 8;

/// Whether a second process may give another figure than the first: true of medians and percentiles. An extreme of the
/// samples is mostly a count of errors, for which one run is enough.
constexpr bool varies_between_runs(Statistic statistic) {
  return statistic != Statistic::min && statistic != Statistic::max;
}

/// Takes `repeat` and `reproducibility` of a requirement in a profile, or their defaults; its statistic is known.
void take_repeat(const nlohmann::json& entry, Requirement& requirement);

/// Puts both into the JSON form of the requirement.
void put_repeat(const Requirement& requirement, nlohmann::json& object);

/// Refuses a required figure that would be measured once, and of which no document says how far another run may be.
std::optional<InputError> check_repeat(const Requirement& requirement, const std::string& here);

}  // namespace assay::plan
