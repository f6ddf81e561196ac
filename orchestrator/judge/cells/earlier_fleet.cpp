// earlier_fleet: the references of a whole run, without judging its cells; declared in references.h.
#include <algorithm>

#include "orchestrator/judge/cells/references.h"

namespace assay::judge {

std::vector<plan::EarlierFleet::Reference> References::lent() const {
  std::vector<plan::EarlierFleet::Reference> all;
  for (const auto& [id, fleet] : fleets_) {
    if (fleet.reference && fleet.common_cause.empty() && fleet.reference->value > 0)
      all.push_back({.requirement = id,
                     .value = fleet.reference->value,
                     .uncertainty = fleet.reference->uncertainty,
                     .members = fleet.best.size()});
  }
  return all;
}

plan::EarlierFleet fleet_of_run(const Run& run, const EvidenceReader& evidence, const plan::Plan& plan,
                                const std::vector<std::string>& requirements) {
  if (run.plan.quick || run.plan.simulation || run.journal.simulated || run.plan.site.name != plan.site.name ||
      to_json(run.plan.profile) != to_json(plan.profile))
    return {};
  const AttemptsByStep attempts(run.journal.attempts);
  const Machines machines(run.journal);
  Demands demands(run.plan.site);
  References references(run.plan, demands, [&](const plan::Step& step) {
    demands.forget();
    return collect(run.plan, step, attempts.of(step.id), run.journal, machines, evidence);
  });
  references.take();
  plan::EarlierFleet fleet{.run_id = run.journal.run_id,
                           .ended = run.journal.end.empty() ? run.journal.last : run.journal.end,
                           .references = references.lent()};
  std::erase_if(fleet.references, [&](const plan::EarlierFleet::Reference& one) {
    const std::string& probe = plan.requirement(one.requirement)->probe;
    const auto before = run.plan.probes.find(probe), now = plan.probes.find(probe);
    return std::ranges::find(requirements, one.requirement) == requirements.end() || before == run.plan.probes.end() ||
           now == plan.probes.end() || before->second.description.revision != now->second.description.revision;
  });
  return fleet;
}

}  // namespace assay::judge
