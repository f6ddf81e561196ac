// agreed_stability: the agreement of a vendor and a buyer on hours under load before they begin: how many interruptions
// of all nodes are tolerated, and the mean times between them that must be refused and accepted.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/plan/stability_test.h"
#include "probes/core/error.h"
#include "probes/core/interruption.h"

namespace assay::plan {

struct Plan;
struct Requirement;
struct Step;

/// When the test ends: with its hours, or at the first look at which both risks are kept.
enum class StabilityStop { end, early };

constexpr auto words_of(StabilityStop) { return names_as_words<StabilityStop>(); }

/// Mean times are under load, between interruptions of one node.
struct AgreedStability {
  double hours = 0;            ///< of each node under load: a whole number of attempts
  int tolerated = 0;           ///< interruptions of all nodes together
  double refused_mtbf_h = 0;   ///< nodes with this mean time, or less, are accepted with at most the buyer's risk
  double accepted_mtbf_h = 0;  ///< nodes with this one, or more, are refused with at most the vendor's risk
  double vendor_risk = 0, buyer_risk = 0;
  StabilityStop stop = StabilityStop::end;
  std::vector<Interruption> counts = {Interruption::ended, Interruption::silent, Interruption::error};
  bool operator==(const AgreedStability&) const = default;
};

/// The members in JSON.
template <class Io, Of<AgreedStability> S>
void fields(Io& io, S& one) {
  io("hours", one.hours), io("tolerated", one.tolerated), io("refused_mtbf_h", one.refused_mtbf_h);
  io("accepted_mtbf_h", one.accepted_mtbf_h), io("vendor_risk", one.vendor_risk), io("buyer_risk", one.buyer_risk);
  io("stop", one.stop), io("counts", one.counts);
}

/// Reads "hours=72,tolerated=3,refused=400,accepted=4000,vendor=5,buyer=5,stop=early,counts=ended+silent": hours but
/// for `tolerated`, and the risks in per cent. `stop` is end by default, `counts` every class. Errors:
/// an unknown, repeated or missing name, and as check_agreed_stability.
std::expected<AgreedStability, InputError> read_agreed_stability(std::string_view text, const std::string& where);

/// Refuses numbers out of their ranges (hours: above 0, at most 8760; tolerated: a whole number to kMostTolerated; mean
/// times: above 0, at most 1e9; risks: 0.01 % to 50 %), means that cross, and classes that are none or given twice.
std::expected<void, InputError> check_agreed_stability(const AgreedStability& agreed, const std::string& where);

/// Whether `requirement` is on the count of interruptions that such an agreement is of.
bool counts_interruptions(const Requirement& requirement);

/// The requirement that `plan`'s agreement is of; nullptr if it has none.
const Requirement* window_requirement(const Plan& plan);

/// The attempts of a step with these hours each that the agreement asks for, as far as they are a whole number of at
/// most kMostLooks; else 1, and check_stability refuses the plan.
int looks_wanted(const AgreedStability& agreed, const Step& step);

/// The least share of its hours that a node must be under load, as the plan requires it.
double least_load_share(const Plan& plan);

/// The test of `plan`, whose agreement was checked.
StabilityDesign stability_design(const Plan& plan);

/// The looks of a plan with steps and coverage. Errors: nothing that counts interruptions on every node, hours that are
/// no whole number of attempts, a limit of a node below the number tolerated of all, other classes than those that
/// are judged, no required share of time under load, an early stop of one attempt, a rehearsal, and risks that are not
/// kept, with the hours and interruptions that would.
std::expected<std::vector<Look>, InputError> check_stability(const Plan& plan);

/// The probability of acceptance and the hours until then for nodes of a mean time between interruptions, under full
/// load: by rising mean time, with both agreed ones.
struct StabilityPoint {
  double mtbf_h = 0, accepted = 0, hours = 0;
};
std::vector<StabilityPoint> stability_curve(const Plan& plan);

/// The agreement in one sentence without a full stop.
std::string stability_words(const Plan& plan);

/// It, its boundaries and its curve, for people; empty if nothing was agreed on.
std::string stability_text(const Plan& plan);

}  // namespace assay::plan
