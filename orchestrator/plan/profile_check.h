// profile_check: checks of a profile that do not depend on the probes.
#pragma once

#include <optional>
#include <string>

#include "orchestrator/plan/profile.h"
#include "probes/core/error.h"

namespace assay::plan {

/// Members of a requirement that go with `metric`, and not with `demand`.
inline constexpr const char* kOfMetrics[] = {"metric",  "limit", "contrast", "statistic",       "at",
                                             "ceiling", "rise",  "repeat",   "reproducibility", "conditions"};

/// The error of a requirement in JSON that has neither a metric with its limit nor a demand, or members of both.
std::optional<InputError> check_members(const nlohmann::json& entry, const std::string& here);

/// The error of one requirement of `profile`, whose peaks are known; `here` is its place. Refused: a limit without an
/// operator, one that no value meets, one that a lucky sample meets (the max or an upper percentile against a floor,
/// the mirror image against a cap), a reference that is the judged metric itself or that ends there, an unknown peak or
/// derived figure or one of another unit, a required limit without a source, fields that do not go with its scope or a
/// contrast.
std::optional<InputError> check_requirement(const Requirement& requirement, const Profile& profile,
                                            const std::string& here);

/// Whether its probe may change settings of a machine, such as a limit of power.
bool changes_settings(const Requirement& requirement);

/// The first requirement of `only` (empty: of all) that changes settings, as the error of a plan without permission for
/// it.
std::optional<InputError> unallowed_settings(const Profile& profile, const std::vector<std::string>& only);

/// A limit of `profile` that refers to a node's inventory, when no requirement has it read.
std::optional<InputError> unread_inventory(const Profile& profile);

/// The error of the whole profile with everything inherited filled in. Every requirement is checked again, since a peak
/// that was replaced changes limits that were inherited.
std::optional<InputError> check_profile(const Profile& profile, const std::string& where);

/// Ids of the required requirements whose limit is a share of a figure of the same run, without a required limit that
/// is absolute or a share of a peak or derived figure: on the same metric of the same probe, or, with metric:NAME, on
/// that metric. In the profile's order.
std::vector<std::string> relative_alone(const Profile& profile);

/// Whether `other` is an absolute limit for `requirement` in the sense of relative_alone().
bool stands_beside(const Requirement& other, const Requirement& requirement);

}  // namespace assay::plan
