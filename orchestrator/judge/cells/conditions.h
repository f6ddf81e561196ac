// conditions: whether the conditions that a requirement demands were recorded with its number, and met.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"
#include "probes/core/record.h"

namespace assay::judge {

/// Whether `condition` is of `subject`, or of the node that wrote `record`; that of another node does not count here.
bool is_about(const Condition& condition, const Subject& subject, const Record& record);

/// Whether the rank that wrote `record` says that it had no part in the traffic.
bool is_idle(const Record& record);

/// Compares demanded conditions with recorded ones. It keeps the findings of one subject for the next ones of the same
/// records if it is the same: a step of 16,384 ranks has as many subjects and thousands of records.
class Demands {
 public:
  /// `site` must outlive it.
  explicit Demands(const site::Site& site) : site_(site) {}

  /// The state of each condition that `requirement`, on a metric of `probe`, demands of records of `step`, in its
  /// order. A demand is met when every one of `records` recorded it, on `subject` or on the node, and each value fits;
  /// an absent one is not met. The values of `others`, the records of the other ranks, must fit too, and they must have
  /// it if the probe's description declares it `always` recorded. A demand to be as `site` says is looked up for the
  /// node of each record: of a subject nic the port of that name, else the port of the step's rail; a fact missing in
  /// the site is not met. The records must live until forget().
  std::vector<ConditionSeen> check(const plan::Step& step, const plan::Requirement& requirement,
                                   const Description& probe, const Subject& subject,
                                   std::span<const Record* const> records, std::span<const Record* const> others);
  /// Those records' values of `demand`, each different value once, in the order of the records; one without a value
  /// counts for all records that should have it and do not.
  std::vector<ConditionSeen> states(const plan::Step& step, const plan::RequiredCondition& demand,
                                    const Description& probe, const Subject& subject,
                                    std::span<const Record* const> records,
                                    std::span<const Record* const> others) const;
  /// To be called when other records take the place of those.
  void forget() { kept_.clear(); }

 private:
  /// Findings of subjects of one kind.
  struct Kept {
    const plan::Step* step;
    std::string requirement, kind;
    std::size_t demands;  ///< how many of the requirement's were looked at
    std::vector<const Record*> records, others;
    std::vector<ConditionSeen> seen;
  };

  const site::Site& site_;
  std::deque<Kept> kept_;  ///< the latest
};

/// The first of `seen` that is not met, in one sentence with advice; empty if all are. `seen` is the result of
/// check_demands for `requirement`, and `probe` its probe.
std::string first_unmet(const plan::Requirement& requirement, std::span<const ConditionSeen> seen,
                        const Description& probe);

/// Why a promised rate, in B/s or 1/s by a limit that is no share, may not pass: one of `records` is of a drive that a
/// hypervisor makes up. Empty if none is, or `requirement` demands emulated_drive or device_class and so says which
/// drive it is of.
std::string emulated_drive(const plan::Requirement& requirement, std::span<const Record* const> records);

/// Whether all of `seen` are met.
bool all_met(std::span<const ConditionSeen> seen);

}  // namespace assay::judge
