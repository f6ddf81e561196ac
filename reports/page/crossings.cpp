// crossings: the matrix of tenants and the paths that their nodes must not reach.
#include <algorithm>
#include <array>
#include <map>

#include <fmt/ranges.h>

#include "orchestrator/plan/crossing_spots.h"
#include "reports/figures/html.h"
#include "reports/page/sections.h"

namespace assay::page {
namespace {

/// How a path looks from one node, in the order of a cell's lines.
enum class Seen { open, not_judged, no_answer, refused, closed };
constexpr std::array<std::string_view, 5> kSeenWords = {"open", "not judged", "no answer", "refused", "closed"};

/// Open by a fail; of a pass the recorded outcome.
Seen seen_in(const judge::Result& result) {
  using enum judge::Outcome;
  if (result.outcome == fail || result.outcome == conditional_fail) return Seen::open;
  if (result.outcome != pass && result.outcome != conditional_pass) return Seen::not_judged;
  const auto list = result.conditions.list();
  const auto found = std::ranges::find(list, "outcome", &judge::ConditionSeen::name);
  const auto* const word = found == list.end() || !found->seen ? nullptr : std::get_if<std::string>(&*found->seen);
  if (word == nullptr) return Seen::closed;
  return *word == "no_answer" ? Seen::no_answer : *word == "refused" ? Seen::refused : Seen::closed;
}

/// The lines of a cell.
std::string cell_of(const std::map<Seen, std::size_t>& counts) {
  std::vector<std::string> lines;
  for (const auto& [seen, count] : counts) {
    const std::string words = fmt::format("{} {}", kSeenWords[static_cast<std::size_t>(seen)], count);
    lines.push_back(seen == Seen::open ? fmt::format("<span class=\"outcome fail\">{}</span>", words) : words);
  }
  return fmt::format("{}", fmt::join(lines, "<br>"));
}

}  // namespace

std::string crossing_section(const ReportContent& content) {
  const plan::Plan& plan = content.run.plan;
  if (!plan.site.crossings) return "";
  std::map<std::string, std::map<std::string, std::map<Seen, std::size_t>>> counts;  // by path and tenant
  std::map<std::string_view, const plan::Step*> steps;
  for (const auto& step : plan.steps) steps[step.id] = &step;
  for (const auto& result : content.verdict.results) {
    const auto step = steps.find(result.step);
    if (step == steps.end() || step->second->path.empty() || !result.required) continue;
    ++counts[step->second->path][plan::tenant_of(plan.site, step->second->nodes.front())][seen_in(result)];
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
