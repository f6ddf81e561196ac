// network: figures of what nodes do together.
#include <fmt/format.h>

#include "reports/figures/html.h"
#include "reports/figures/pair_chart.h"
#include "reports/figures/rail_chart.h"
#include "reports/page/sections.h"

namespace assay {
namespace {

std::string figure(const std::string& svg, const std::string& caption) {
  if (svg.empty()) return "";
  return fmt::format("<figure>\n{}<figcaption>{}</figcaption>\n</figure>\n", svg, caption);
}

std::string figures(const std::vector<NetworkCurve>& curves) {
  std::string html;
  for (const auto& one : curves) html += figure(curve_svg(one.curve), one.caption);
  return html;
}

/// Both directions of the same pairs are one matrix, which stands with the one that is promised first.
std::string pair_figure(const ReportContent& content, const StepIndex& steps, const Requirement& requirement,
                        const ResultsOf& results) {
  const Plan& plan = content.run.plan;
  const Requirement* other = other_direction(plan.profile, requirement);
  if (other != nullptr && other < &requirement)
    return fmt::format("<p class=\"small\">The matrix of its pairs stands under {}.</p>\n",
                       requirement_number(content, other->id));
  const auto own = results.find(requirement.id);
  if (own == results.end()) return "";
  const auto reverse = other == nullptr ? results.end() : results.find(other->id);
  const Chart chart = pair_chart(plan, steps, requirement, own->second,
                                 reverse == results.end() ? std::vector<const Result*>() : reverse->second);
  return figure(chart.svg, chart.caption);
}

}  // namespace

std::string requirement_charts(const ReportContent& content, const StepIndex& steps, const Requirement& requirement,
                               const ResultsOf& results) {
  std::string html;
  if (requirement.scope == "pair") html += pair_figure(content, steps, requirement, results);
  const auto own = results.find(requirement.id);
  if (own == results.end()) return html;
  const Chart rails = rail_chart(content.run.plan, steps, requirement, own->second);
  return html + figure(rails.svg, rails.caption);
}

std::string network_section(const ReportContent& content, const StepIndex& steps, const ResultsOf& results) {
  const CurveSources sources{
      .plan = content.run.plan, .steps = steps, .results = results, .wire_limits = content.wire_limits};
  const std::string sizes = figures(size_curves(sources));
  const std::string groups = figures(scaling_curves(sources));
  std::string html;
  if (!sizes.empty())
    html +=
        "<h3>Over the size of messages</h3>\n<p>Requirements that differ in the size of the message alone, in one "
        "figure.</p>\n" +
        sizes;
  if (!groups.empty())
    html +=
        "<h3>Over the size of groups</h3>\n<p>The same measurement on growing groups of nodes, in one figure.</p>\n" +
        groups;
  return html;
}

}  // namespace assay
