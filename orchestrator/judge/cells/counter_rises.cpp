// counter_rises: increase of a counter between two readings, one before the load and one after it; unknown if it was
// read once or reset.
#include "orchestrator/judge/cells/counter_rises.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace assay::judge {
namespace {

void subtract(Pool& pool, double first) {
  pool.samples.clear();
  for (const Measurement*& measured : pool.measured) {
    Measurement& rise = pool.joined.emplace_back(*measured);
    for (double& sample : rise.samples) sample -= first;
    pool.samples.insert(pool.samples.end(), rise.samples.begin(), rise.samples.end());
    measured = &rise;
  }
}

/// The step that reads what `step` reads, on the same nodes, before their load; nullptr when there is none.
const plan::Step* reading_before(const plan::Plan& plan, const plan::Step& step) {
  const auto found = std::ranges::find_if(plan.steps, [&](const plan::Step& one) {
    return !one.after && one.probe == step.probe && one.nodes == step.nodes && one.rail == step.rail &&
           one.parameters == step.parameters;
  });
  return found == plan.steps.end() ? nullptr : &*found;
}

}  // namespace

UnknownRises make_rises(std::map<Subject, Pool>& after, const std::map<Subject, Pool>& before) {
  UnknownRises unknown;
  for (const auto& [subject, pool] : before) {
    if (after.contains(subject)) continue;
    unknown.emplace(subject,
                    fmt::format("The {} {} was read before the load, and not after it.", subject.kind, subject.id));
  }
  for (auto& [subject, pool] : after) {
    const auto earlier = before.find(subject);
    if (earlier == before.end() || earlier->second.samples.empty()) {
      unknown.emplace(subject,
                      fmt::format("The {} {} was read after the load, and not before it.", subject.kind, subject.id));
      continue;
    }
    const double first = std::ranges::min(earlier->second.samples);
    const double last = std::ranges::min(pool.samples);
    if (last < first) {
      unknown.emplace(subject, fmt::format("The counter was {:g} before the load and {:g} after it: it was reset, so "
                                           "that its rise is not known.",
                                           first, last));
      continue;
    }
    subtract(pool, first);
  }
  for (const auto& [subject, why] : unknown) after.erase(subject);
  return unknown;
}

CounterRises::CounterRises(const plan::Plan& plan, std::function<StepEvidence(const plan::Step&)> evidence_of)
    : plan_(plan), evidence_of_(std::move(evidence_of)) {}

UnknownRises CounterRises::take(const plan::Requirement& requirement, const plan::Step& step,
                                std::map<Subject, Pool>& pools) {
  if (!requirement.rise) return {};
  const plan::Step* const before = reading_before(plan_, step);
  if (before == nullptr) return make_rises(pools, {});
  if (step_ != before->id) {
    before_ = evidence_of_(*before);
    step_ = before->id;
  }
  return make_rises(pools, pooled(before_, requirement, plan_.probes.at(requirement.probe).description));
}

}  // namespace assay::judge
