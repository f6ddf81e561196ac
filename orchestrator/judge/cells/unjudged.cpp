// unjudged: finds faults above 0, and loads shorter than asked for, that no requirement of the step judges.
#include "orchestrator/judge/cells/unjudged.h"

#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/plan/lint.h"
#include "probes/core/json_io.h"

namespace assay::judge {

constexpr double kLeastLoadShare = 0.9;  // of the load that was asked for, as soak-host demands

bool is_judged_of_other(const Measurement& measured, const plan::Requirement& requirement) {
  return measured.metric == requirement.metric && (requirement.at_every || measured.at == requirement.at);
}

std::string unjudged_fault(const StepEvidence& step, const std::vector<const plan::Requirement*>& requirements,
                           const Description& probe) {
  const auto unjudged = [&](const Measurement& measured, bool of_other) -> std::string {
    const auto* metric = probe.metric(measured.metric);
    if (metric == nullptr) return "";
    const bool is_load = measured.metric == "load_share";
    const double worst = is_load ? std::ranges::min(measured.samples) : std::ranges::max(measured.samples);
    if (is_load ? worst >= kLeastLoadShare : metric->kind != MetricKind::fault || !(worst > 0)) return "";
    const bool judged = std::ranges::any_of(requirements, [&](const plan::Requirement* one) {
      return of_other ? is_judged_of_other(measured, *one) : is_judged(measured, *one);
    });
    if (judged) return "";
    return fmt::format("{} of {} {} is {:g}{}, and no requirement judges it there.", measured.metric,
                       measured.subject.kind, measured.subject.id, worst,
                       measured.at.empty() ? "" : " at " + assay::to_json(measured.at).dump());
  };
  for (std::size_t attempt = 0; attempt < step.records.size(); ++attempt) {
    for (const auto& measured : step.records[attempt].measurements) {
      if (auto words = unjudged(measured, false); !words.empty()) return words;
    }
    for (const auto& other : step.others[attempt]) {
      for (const auto& measured : other.measurements) {
        if (auto words = unjudged(measured, true); !words.empty()) return words;
      }
    }
  }
  return "";
}

bool is_owed(const Description& probe, const plan::Requirement& requirement, const plan::Step& step) {
  const auto* metric = requirement.demand ? nullptr : probe.metric(requirement.metric);
  const bool whole = requirement.scope == plan::JudgedScope::node || step.nodes.size() > 1;
  return whole && metric != nullptr && assay::is_owed(metric->recorded);
}

std::optional<std::int64_t> size_not_measured(const plan::Step& planned, const plan::Requirement& requirement,
                                              const Pool& pool) {
  if (!requirement.at_every) return std::nullopt;
  for (const std::int64_t size : plan::sizes_in(planned.parameters)) {
    const bool everywhere = std::ranges::all_of(pool.records, [&](const Record* record) {
      return std::ranges::any_of(record->measurements, [&](const Measurement& measured) {
        const auto at = measured.at.find("size");
        return measured.metric == requirement.metric && at != measured.at.end() && at->second == Value{size};
      });
    });
    if (!everywhere) return size;
  }
  return std::nullopt;
}

}  // namespace assay::judge
