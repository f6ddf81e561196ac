// contribution: from results to groups, by the record of each.
#include "reports/commons/contribution.h"

#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/judge/evidence/evidence.h"
#include "reports/dossier/sign.h"

namespace assay::commons {
namespace {

/// Why a figure is in no contribution.
struct LeftOut {
  const char* reason;
};

/// Parameters that are not the defaults. Numbers and words of a closed list name nothing; other texts may.
std::expected<Values, LeftOut> parameters_of(const plan::Step& step, const Description& probe) {
  const auto defaults = probe.resolve({}, false);
  if (!defaults) return std::unexpected(LeftOut{"its probe's defaults cannot be read"});
  Values given;
  for (const auto& own : probe.parameters) {
    const auto value = step.parameters.find(own.name);
    if (value == step.parameters.end() || value->second == defaults->at(own.name)) continue;
    if (std::holds_alternative<std::string>(value->second) && own.choices.empty())
      return std::unexpected(LeftOut{"a text among its parameters could name something"});
    given.insert(*value);
  }
  return given;
}

/// The model of the board that `result` is of; empty if the record has none.
std::string model_of(const judge::Result& result, const Record& record) {
  const auto* const name = result.subject.kind == "gpu" ? "device_name" : "cpu_model";
  if (result.subject.kind == "node") {
    const auto found = record.start.host.find(name);
    const auto* text = found == record.start.host.end() ? nullptr : std::get_if<std::string>(&found->second);
    return text == nullptr ? "" : *text;
  }
  const auto seen = conditions_of(record, name, result.subject);
  const auto* text = seen.empty() ? nullptr : std::get_if<std::string>(&seen.front()->value);
  return text == nullptr ? "" : *text;
}

/// A run whose results are looked at.
class Reading {
 public:
  explicit Reading(const dossier::OpenedRun& run)
      : run_(run.content.run),
        evidence_(judge::evidence_in(fmt::format("{}/{}", run.path, dossier::kEvidenceFolder))) {}

  std::expected<Group, LeftOut> group_of(const judge::Result& result) const {
    const auto* requirement = run_.plan.requirement(result.requirement);
    const auto* step = run_.plan.step(result.step);
    if (requirement == nullptr || step == nullptr || requirement->rise || requirement->contrast)
      return std::unexpected(LeftOut{"it is of several figures"});
    if (result.subject.kind != "node" && result.subject.kind != "gpu")
      return std::unexpected(LeftOut{"it is of no node and no accelerator"});
    const auto& probe = run_.plan.probes.at(step->probe).description;
    const auto* metric = probe.metric(requirement->metric);
    if (metric == nullptr || metric->kind != MetricKind::figure || metric->better == "neither")
      return std::unexpected(LeftOut{"it is no rate, time or size of which one side is better"});
    if (*result.value <= 0) return std::unexpected(LeftOut{"it is not above 0"});
    auto parameters = parameters_of(*step, probe);
    if (!parameters) return std::unexpected(parameters.error());
    const auto record = record_of(*step);
    if (!record) return std::unexpected(LeftOut{"its record cannot be read"});
    Group group{.model = model_of(result, *record),
                .probe = step->probe,
                .revision = probe.revision,
                .metric = requirement->metric,
                .unit = result.unit,
                .better = metric->better,
                .statistic = std::string(word_of(requirement->statistic)),
                .at = requirement->at,
                .parameters = std::move(*parameters),
                .conditions = {}};
    if (group.model.empty()) return std::unexpected(LeftOut{"its record has no model"});
    for (const char* name : kGroupConditions) {
      const auto seen = conditions_of(*record, name, result.subject);
      if (!seen.empty()) group.conditions.emplace(name, seen.front()->value);
    }
    return group;
  }

 private:
  /// Of the first attempt of a step that completed.
  std::expected<Record, InputError> record_of(const plan::Step& step) const {
    for (const auto& attempt : run_.journal.attempts.of(step.id)) {
      auto record = judge::record_of(run_.plan, step, attempt, evidence_);
      if (record && record->end.status == Status::complete) return record;
    }
    return std::unexpected(InputError{step.id, "has no complete record", ""});
  }

  const judge::Run& run_;
  judge::EvidenceReader evidence_;
};

std::optional<InputError> check(const dossier::OpenedRun& run) {
  const auto no = [&](const std::string& what, const char* hint) { return InputError{run.path, what, hint}; };
  if (run.standing != "verified")
    return no("is " + run.standing, "figures are of signed dossiers; give the signer's public key with --with-key");
  if (run.content.verdict.overall != judge::Overall::accepted)
    return no("is not accepted", "limits may be taken from accepted boards only");
  if (run.content.run.plan.quick) return no("is a rehearsal", "quick runs are not the figures of a board");
  return std::nullopt;
}

}  // namespace

std::expected<Contribution, InputError> contribution_of(const std::vector<dossier::OpenedRun>& runs) {
  Contribution all;
  std::map<Group, std::map<std::string, double>> by_board;
  for (const auto& run : runs) {
    if (auto problem = check(run)) return std::unexpected(*problem);
    const Reading reading(run);
    for (const auto& result : run.content.verdict.results) {
      if (result.outcome != judge::Outcome::pass || !result.value) continue;
      auto group = reading.group_of(result);
      if (!group) {
        ++all.left_out[group.error().reason];
        continue;
      }
      const auto board = fmt::format("{}/{}/{}", run.content.run.plan.site.name, result.node, result.subject.id);
      by_board[std::move(*group)].insert_or_assign(board, *result.value);
    }
  }
  for (const auto& [group, boards] : by_board) {
    Sketch& sketch = all.figures[group].boards;
    for (const auto& [board, figure] : boards) sketch.add(figure);
  }
  return all;
}

}  // namespace assay::commons
