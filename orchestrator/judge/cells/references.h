// references: the reference of a limit's shares: the profile, the same record, the fleet, or the machine's own figures.
#pragma once

#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orchestrator/judge/cells/pool.h"
#include "orchestrator/judge/decide/decision.h"
#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// A fleet of fewer is no measure of any of its members: nodes, or the parts of a node that are compared.
inline constexpr std::size_t kSmallestFleet = 8;

/// Why there is no reference.
struct NoReference {
  std::string reason;   ///< one sentence
  bool untold = false;  ///< only because the machine does not report the figure
};

/// The references of one plan's requirements.
class References {
 public:
  /// `evidence_of` collects a step's evidence; its captures must outlive this.
  References(const plan::Plan& plan, Demands& demands, std::function<StepEvidence(const plan::Step&)> evidence_of);

  /// Reads the evidence of all steps that are references of others. Without it fleets and smallest groups are not
  /// known.
  void take();
  /// Takes what `other`, of the same plan, took.
  void take(const References& other);

  /// The reference of the limit of `requirement` for `subject` of `step`.
  [[nodiscard]] std::expected<ReferenceValue, NoReference> of(const plan::Requirement& requirement,
                                                              const plan::Step& step, const Subject& subject,
                                                              const Pool& pool);

  /// Why the fleet of `requirement` is no measure although it is large enough: too many of its members are far from the
  /// rest, or all of them are far apart. Empty if it is one, or when no fleet is asked.
  [[nodiscard]] std::string common_cause(const plan::Requirement& requirement) const;

  /// The references of fleets that are large enough and alike, for a later run of a few of their nodes.
  [[nodiscard]] std::vector<plan::EarlierFleet::Reference> lent() const;

  /// The bound of every honest figure of `requirement`; nothing if the machine does not report it.
  [[nodiscard]] std::optional<double> ceiling_of(const plan::Requirement& requirement, const plan::Step& step,
                                                 const Subject& subject, const Pool& pool);

 private:
  using SmallestKey = std::pair<std::string, std::string>;  ///< requirement and rail
  struct Smallest {
    ReferenceValue reference;
    std::size_t nodes = 0;
  };
  /// The medians of one requirement, and the best of each member: a node, or a part of one.
  struct Fleet {
    std::vector<std::vector<double>> of_steps;
    std::map<std::string, double> best;
    std::optional<ReferenceValue> reference;
    std::string common_cause;
  };

  void take_fleets();
  void take_medians(const plan::Requirement& requirement, const plan::Step& step, const StepEvidence& found);
  void settle(const plan::Requirement& requirement, Fleet& fleet);
  void take_smallest();
  [[nodiscard]] std::expected<ReferenceValue, NoReference> fleet_of(const plan::Requirement& requirement) const;
  [[nodiscard]] std::expected<ReferenceValue, NoReference> metric_of(const plan::Requirement& requirement,
                                                                     const Subject& subject, const Pool& pool) const;
  [[nodiscard]] std::expected<ReferenceValue, NoReference> smallest_of(const plan::Requirement& requirement,
                                                                       const plan::Step& step) const;
  [[nodiscard]] std::expected<ReferenceValue, NoReference> derived_of(const std::string& name, const plan::Step& step,
                                                                      const Subject& subject, const Pool& pool);
  [[nodiscard]] std::expected<double, NoReference> inventory_of(const std::string& node, std::string_view metric);
  /// The part of `pool` that is fit to judge others by; nothing if there is none.
  [[nodiscard]] std::optional<FitPool> fit(const plan::Requirement& requirement, const plan::Step& step,
                                           const Subject& subject, const StepEvidence& found, const Pool& pool) const;
  [[nodiscard]] std::optional<ReferenceValue> reference_of(std::span<const Measurement* const> attempts,
                                                           plan::Statistic statistic,
                                                           const Description::OwnMetric& metric,
                                                           const std::optional<plan::Reproducibility>& stated) const;
  [[nodiscard]] const Description& probe_of(const plan::Requirement& requirement) const;

  const plan::Plan& plan_;
  Demands& demands_;
  std::function<StepEvidence(const plan::Step&)> evidence_of_;
  std::map<std::string, Fleet> fleets_;                       ///< by requirement
  std::map<SmallestKey, std::vector<Smallest>> smallest_;     ///< with a knee of all groups, by rising size
  std::map<std::string, std::optional<Record>> inventories_;  ///< by node; nothing: not measured
};

/// The fleet of a run as the reference of `requirements` of `plan`, by its records. None of a rehearsal, of made-up
/// figures, of another site or profile than `plan` has, word for word, and of other revisions of its probes. The digest
/// of the journal is the caller's to add.
plan::EarlierFleet fleet_of_run(const Run& run, const EvidenceReader& evidence, const plan::Plan& plan,
                                const std::vector<std::string>& requirements);

}  // namespace assay::judge
