// drawn: an unpredictable order of cells, and a plan of the first of them.
#include "reports/spot_check/drawn.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"

namespace assay::spot_check {
bool is_judged(const judge::Result& result) {
  using enum judge::Outcome;
  return !result.each.empty() && (result.outcome == pass || result.outcome == conditional_pass ||
                                  result.outcome == conditional_fail || result.outcome == fail);
}

std::vector<plan::DrawnCell> draw_cells(const plan::Plan& plan, const judge::Verdict& verdict, const std::string& seed,
                                        std::size_t count) {
  std::set<std::pair<std::string_view, std::string_view>> judged;
  for (const auto& result : verdict.results) {
    if (is_judged(result)) judged.emplace(result.requirement, result.step);
  }
  std::vector<std::pair<std::string, plan::DrawnCell>> order;
  for (const auto& cell : plan.coverage) {
    if (cell.step.empty() || !judged.contains({cell.requirement, cell.step})) continue;
    if (!plan.requirement(cell.requirement)->during.empty()) continue;
    order.emplace_back(
        files::sha256(fmt::format("{}\n{}\n{}\n{}\n", seed, cell.requirement, cell.subject.kind, cell.subject.id)),
        plan::DrawnCell{.requirement = cell.requirement, .subject = cell.subject});
  }
  std::ranges::sort(order, {}, &std::pair<std::string, plan::DrawnCell>::first);
  std::vector<plan::DrawnCell> drawn;
  for (std::size_t i = 0; i < std::min(count, order.size()); ++i) drawn.push_back(std::move(order[i].second));
  return drawn;
}

std::expected<plan::Plan, InputError> drawn_plan(const plan::Plan& plan, const std::vector<plan::DrawnCell>& cells,
                                                 const std::string& seed) {
  if (cells.empty())
    return std::unexpected(InputError{"draw", "no cell of this dossier has a figure that was judged", ""});
  std::vector<plan::Program> programs;
  for (const auto& [name, probe] : plan.probes) programs.push_back(plan::program_of(name, probe));
  std::vector<std::string> only;
  for (const auto& cell : cells) {
    if (std::ranges::find(only, cell.requirement) == only.end()) only.push_back(cell.requirement);
  }
  return plan::make_plan(plan.profile, plan.site, programs,
                         {.quick = plan.quick,
                          .only = std::move(only),
                          .localise = false,
                          .challenge = seed,
                          .allow_settings = plan.allow_settings,
                          .drawn = cells});
}

}  // namespace assay::spot_check
