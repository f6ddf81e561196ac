// network: figures of one requirement, and of measurements on several nodes.
#include <fmt/format.h>

#include "reports/figures/fault_chart.h"
#include "reports/figures/html.h"
#include "reports/figures/pair_chart.h"
#include "reports/figures/power_curves.h"
#include "reports/figures/rail_chart.h"
#include "reports/figures/soak_chart.h"
#include "reports/figures/training_chart.h"
#include "reports/page/sections.h"

namespace assay::page {
namespace {

std::string figure(const std::string& svg, const std::string& caption) {
  if (svg.empty()) return "";
  return fmt::format("<figure>\n{}<figcaption>{}</figcaption>\n</figure>\n", svg, caption);
}

std::string figures(const std::vector<figures::NetworkCurve>& curves) {
  std::string html;
  for (const auto& one : curves) html += figure(figures::curve_svg(one.curve), one.caption);
  return html;
}

}  // namespace

/// Both directions of the same pairs share one matrix, shown with the first of the two requirements.
std::string pair_figure(const ReportContent& content, const figures::StepIndex& steps,
                        const plan::Requirement& requirement, const figures::ResultsOf& results) {
  const plan::Plan& plan = content.run.plan;
  const plan::Requirement* other = figures::other_direction(plan.profile, requirement);
  if (other != nullptr && other < &requirement)
    return fmt::format("<p class=\"small\">For the matrix of its pairs see {}.</p>\n",
                       figures::requirement_number(content.run.plan.profile, other->id));
  const auto own = results.find(requirement.id);
  if (own == results.end()) return "";
  const auto reverse = other == nullptr ? results.end() : results.find(other->id);
  const figures::Chart chart =
      figures::pair_chart(plan, steps, requirement, own->second,
                          reverse == results.end() ? std::vector<const judge::Result*>() : reverse->second);
  return figure(chart.svg, chart.caption);
}

std::string requirement_charts(const ReportContent& content, const figures::StepIndex& steps,
                               const plan::Requirement& requirement, const figures::ResultsOf& results, bool counter) {
  std::string html;
  if (requirement.scope == plan::JudgedScope::pair && !counter)
    html += pair_figure(content, steps, requirement, results);
  const auto own = results.find(requirement.id);
  if (own == results.end()) return html;
  const figures::Chart rails =
      counter ? figures::Chart{} : figures::rail_chart(content.run.plan, steps, requirement, own->second);
  const figures::Chart faults = figures::fault_chart(content.run.plan, requirement, own->second, content.records);
  html += figure(rails.svg, rails.caption) + figure(faults.svg, faults.caption);
  for (const auto& chart : figures::training_charts(content.run.plan, requirement, own->second, content.records))
    html += figure(chart.svg, chart.caption);
  for (const auto& chart : figures::soak_charts(content.run.plan, requirement, own->second, content.records))
    html += figure(chart.svg, chart.caption);
  for (const auto& chart : figures::heat_curves(content.run.plan, requirement, own->second, content.records))
    html += figure(chart.svg, chart.caption);
  for (const auto& chart :
       figures::step_curves(content.run.plan, requirement, own->second, content.records, content.watches))
    html += figure(chart.svg, chart.caption);
  return html;
}

std::string network_section(const ReportContent& content, const figures::StepIndex& steps,
                            const figures::ResultsOf& results) {
  const figures::CurveSources sources{
      .plan = content.run.plan, .steps = steps, .results = results, .wire_limits = content.wire_limits};
  const std::string sizes = figures(figures::size_curves(sources));
  const std::string groups = figures(figures::scaling_curves(sources));
  std::string html;
  if (!sizes.empty())
    html +=
        "<h3>By message size</h3>\n<p>Requirements that differ only in the message size share a figure.</p>\n" + sizes;
  if (!groups.empty())
    html += "<h3>By number of nodes</h3>\n<p>The same measurement on groups of increasing size shares a figure.</p>\n" +
            groups;
  return html;
}

}  // namespace assay::page
