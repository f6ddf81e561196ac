// required_condition: demands on recorded conditions, with a figure or in place of one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orchestrator/plan/version.h"
#include "probes/core/description.h"
#include "probes/core/error.h"
#include "probes/core/fields.h"
#include "probes/core/json_io.h"

namespace assay::plan {

/// A demand on one recorded condition. With a figure an absent or unmet one makes the result inconclusive; as the
/// `demand` of a requirement it is judged itself.
struct RequiredCondition {
  std::string name;
  std::optional<Value> equals = {};
  std::optional<double> at_least = {};
  std::optional<double> at_most = {};
  std::vector<Value> one_of = {};
  std::optional<VersionRange> version = {};
  std::string site = {};      ///< field of the site's port of this plane: interface, device, address, leaf,
                              ///< switch_port; empty: one of those above
  bool surroundings = false;  ///< state of the surroundings, not of the machine: load by others, stolen time
  bool operator==(const RequiredCondition&) const = default;
};

template <class Io, Of<RequiredCondition> C>
void fields(Io& io, C& demand) {
  io("name", demand.name), io("equals", demand.equals), io("at_least", demand.at_least);
  io("at_most", demand.at_most), io.sparse("one_of", demand.one_of), io("version", demand.version);
  io.sparse("site", demand.site), io.sparse("surroundings", demand.surroundings);
}

/// Whether a recorded value meets a demand. unknown: the value is no version.
enum class Fit { met, missed, unknown };
Fit fit_of(const RequiredCondition& demand, const Value& seen);

/// The version in `seen`: a text, or a whole number in decimal digits; empty for anything else.
std::string version_in(const Value& seen);

/// "= true", ">= 0.9", "one of \"off\", \"on\"", "version at least 580.82"; empty for a demand to be as the site says.
std::string words_of(const RequiredCondition& demand);

/// A value that meets `demand`, for records that are made up; nothing for one to be as the site says, or if none was
/// found.
std::optional<Value> meeting(const RequiredCondition& demand);

/// Refuses a demand of two kinds, or of none, one with a text that is no version, and one on advisories that there are
/// none of. `here` is the place of the demand in the profile.
std::optional<InputError> check_condition(const RequiredCondition& demand, const std::string& here);

/// Refuses a demand on a condition that `probe` does not record, with the nearest name.
std::optional<InputError> check_recorded(const RequiredCondition& demand, const Description& probe,
                                         const std::string& here);

}  // namespace assay::plan
