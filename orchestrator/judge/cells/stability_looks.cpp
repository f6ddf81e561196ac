// stability_looks: sums the recorded interruptions and follows their path along the plan's looks.
#include "orchestrator/judge/cells/stability_looks.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/judge/cells/judge_inputs.h"

namespace assay::judge {
namespace {

/// The interruptions of the agreed classes in `record`; nothing if one of these classes has no single whole number. A
/// simulation has no classes.
std::optional<int> interruptions_in(const plan::Plan& plan, const Record& record) {
  const plan::Requirement& requirement = *plan::window_requirement(plan);
  std::set<Interruption> seen;
  double sum = 0;
  for (const auto& measured : record.measurements) {
    if (!is_judged(measured, requirement)) continue;
    const auto at = measured.at.find("class");
    const auto* word = at == measured.at.end() ? nullptr : std::get_if<std::string>(&at->second);
    const auto known = word == nullptr ? std::nullopt : from_word<Interruption>(*word);
    if (!plan.simulation && (!known || !seen.insert(*known).second)) return std::nullopt;
    sum = std::accumulate(measured.samples.begin(), measured.samples.end(), sum);
  }
  const auto& counts = plan.agreed_stability->counts;
  const bool all = plan.simulation || std::ranges::equal(seen, counts);
  constexpr double kMost = 1e6;
  if (!all || !(sum >= 0 && sum <= kMost) || sum != std::floor(sum)) return std::nullopt;
  return static_cast<int>(sum);
}

double load_share_in(const Record& record) {
  const auto share = std::ranges::find(record.measurements, "load_share", &Measurement::metric);
  return share == record.measurements.end() || share->samples.empty() ? 0 : share->samples.front();
}

}  // namespace

bool is_of_stability(const plan::Plan& plan, const plan::Step& step) {
  const plan::Requirement* requirement = plan::window_requirement(plan);
  return requirement != nullptr && std::ranges::find(step.requirements, requirement->id) != step.requirements.end();
}

void StabilityLooks::look(const plan::Plan& plan, const plan::Step& step, const StepEvidence& found) {
  if (!is_of_stability(plan, step)) return;
  Node& node = nodes_[step.id];
  node.name = step.nodes.front();
  node.reason = found.records.empty() || found.broken ? found.reason : "";
  bool ended = false;
  for (std::size_t i = 0; i < found.records.size(); ++i) {
    // A number that is missing is of an attempt without a whole record.
    const bool next = found.numbers[i] == static_cast<int>(node.interruptions.size()) + 1;
    const auto count = interruptions_in(plan, found.records[i]);
    const double share = load_share_in(found.records[i]), least = plan::least_load_share(plan);
    if (!ended && next && count && share >= least) {
      node.interruptions.push_back(*count);
      node.load_h += share * plan.looks.front().hours;
      continue;
    }
    node.others += count.value_or(0);
    if (std::exchange(ended, true)) continue;
    if (!next)
      node.reason = fmt::format("Attempt {} is no whole one", node.interruptions.size() + 1);
    else if (!count)
      node.reason = fmt::format("Attempt {} has no count of interruptions of each class", found.numbers[i]);
    else
      node.reason = fmt::format("Attempt {} was under load for {:.4g} of its time, and {:.4g} are required",
                                found.numbers[i], share, least);
  }
}

Result StabilityLooks::result(const plan::Plan& plan) const {
  const plan::Requirement& requirement = *plan::window_requirement(plan);
  const int tolerated = plan.agreed_stability->tolerated;
  Result cell{.requirement = requirement.id,
              .subject = {.kind = "cluster", .id = plan.site.name},
              .node = plan.site.name,
              .required = true,
              .outcome = Outcome::inconclusive,
              .unit = "1"};
  cell.limit_high = cell.acceptance_high = tolerated;
  int total = 0;
  std::size_t made = plan.looks.size();
  double load_h = 0;
  std::string reason;
  for (const auto& step : plan.steps) {
    if (!is_of_stability(plan, step)) continue;
    const auto found = nodes_.find(step.id);
    const Node node = found == nodes_.end() ? Node{.name = step.nodes.front()} : found->second;
    total += std::accumulate(node.interruptions.begin(), node.interruptions.end(), node.others);
    load_h += node.load_h;
    cell.samples += node.interruptions.size();
    if (node.interruptions.size() >= made) continue;
    made = node.interruptions.size();
    reason =
        fmt::format("; {} has {} whole attempts{}", node.name, made, node.reason.empty() ? "" : ": " + node.reason);
  }
  std::vector<int> path(made);
  for (const auto& [step, node] : nodes_) {
    for (std::size_t i = 0; i < made; ++i) path[i] += node.interruptions[i];
  }
  std::partial_sum(path.begin(), path.end(), path.begin());
  cell.value = total;
  cell.each.assign(path.begin(), path.end());
  cell.attempts = static_cast<int>(made);
  const auto crossed = plan::crossing(plan.looks, path);
  const std::string seen = fmt::format("{} interruptions in {:.4g} h under load", total, load_h);
  if (total > tolerated) {
    cell.outcome = Outcome::fail;
    cell.reason = fmt::format("{}; at most {} are tolerated.", seen, tolerated);
  } else if (crossed) {
    const plan::Look& look = plan.looks[crossed->look];
    cell.outcome = crossed->accepted ? Outcome::pass : Outcome::fail;
    cell.reason = fmt::format("{}: look {} of {}, after {:g} h of each node, {} {}.", seen, crossed->look + 1,
                              plan.looks.size(), look.hours, crossed->accepted ? "accepts up to" : "refuses from",
                              crossed->accepted ? look.accept : look.reject);
  } else {
    cell.reason = fmt::format("{} decide nothing after {} of {} looks{}.", seen, made, plan.looks.size(), reason);
  }
  return cell;
}

Result judge_stability(const plan::Plan& plan, const Journal& journal, const EvidenceReader& evidence) {
  const JudgeInputs given(plan, journal, evidence);
  StabilityLooks looks;
  for (const auto& step : plan.steps) {
    if (is_of_stability(plan, step))
      looks.look(plan, step, collect(plan, step, given.attempts_of(step), journal, given.machines, evidence));
  }
  return looks.result(plan);
}

}  // namespace assay::judge
