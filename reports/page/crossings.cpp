// crossings: the matrix of tenants and the paths that their nodes must not reach.
#include <algorithm>
#include <map>

#include <fmt/ranges.h>

#include "orchestrator/plan/crossing_spots.h"
#include "reports/figures/html.h"
#include "reports/page/sections.h"

namespace assay::page {
namespace {

/// The outcome of one crossing: "open" for a fail, the recorded one for a pass, else "not judged".
std::string outcome_of(const judge::Result& result) {
  using enum judge::Outcome;
  if (result.outcome == fail || result.outcome == conditional_fail) return "open";
  const auto list = result.conditions.list();
  const auto seen = std::ranges::find(list, "outcome", &judge::ConditionSeen::name);
  const auto* const word = seen == list.end() || !seen->seen ? nullptr : std::get_if<std::string>(&*seen->seen);
  if (result.outcome != pass && result.outcome != conditional_pass) return "not judged";
  if (word == nullptr) return "closed";
  return *word == "no_answer" ? "no answer" : *word;
}

/// The lines of a cell, open paths first, then what is not judged.
std::string cell_of(const std::map<std::string, std::size_t>& counts) {
  std::vector<std::string> lines(2);
  for (const auto& [outcome, count] : counts) {
    const std::string words = fmt::format("{} {}", figures::escape(outcome), count);
    if (outcome == "open") {
      lines[0] = fmt::format("<span class=\"outcome fail\">{}</span>", words);
    } else if (outcome == "not judged") {
      lines[1] = words;
    } else {
      lines.push_back(words);
    }
  }
  std::erase(lines, "");
  return fmt::format("{}", fmt::join(lines, "<br>"));
}

}  // namespace

std::string crossing_section(const ReportContent& content) {
  const plan::Plan& plan = content.run.plan;
  if (!plan.site.crossings) return "";
  std::map<std::string, std::map<std::string, std::map<std::string, std::size_t>>> counts;  // by path, tenant, outcome
  std::map<std::string_view, const plan::Step*> steps;
  for (const auto& step : plan.steps) steps[step.id] = &step;
  for (const auto& result : content.verdict.results) {
    const auto step = steps.find(result.step);
    if (step == steps.end() || step->second->path.empty() || !result.required) continue;
    ++counts[step->second->path][plan::tenant_of(plan.site, step->second->nodes.front())][outcome_of(result)];
  }
  if (counts.empty()) return "";
  std::vector<std::string> titles = {"Path", "Tenant", "Class", "Address"}, rows;
  for (const auto& [tenant, nodes] : plan.site.crossings->tenants) titles.push_back("From " + tenant);
  for (const auto& path : plan.site.crossings->paths) {
    std::vector<std::string> cells = {
        figures::escape(path.name), figures::escape(path.tenant), std::string(word_of(path.type)),
        figures::escape(path.port == 0 ? path.address : fmt::format("{} port {}", path.address, path.port))};
    for (const auto& [tenant, nodes] : plan.site.crossings->tenants) {
      const auto& seen = counts[path.name][tenant];
      cells.push_back(tenant == path.tenant ? "its own" : seen.empty() ? "not tried" : cell_of(seen));
    }
    rows.push_back(figures::row(cells));
  }
  return "<section id=\"crossings\">\n<h3>Paths between tenants</h3>\n<p>Consent: " +
         figures::escape(plan.site.crossings->consent) + ". " +
         "Numbers are nodes that tried. \"no answer\" is no refusal: nothing came back, while a node of the path's own "
         "tenant was answered.</p>\n" +
         figures::table("crossings", "Paths, and outcomes of attempts by nodes of other tenants", titles, rows) +
         "</section>\n";
}

}  // namespace assay::page
