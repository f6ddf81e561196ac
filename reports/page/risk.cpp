// risk: what vendor and buyer agreed on before the measurement, and the plan's operating characteristic.
#include <optional>

#include <fmt/format.h>

#include "orchestrator/plan/acceptance.h"
#include "reports/figures/html.h"
#include "reports/page/sections.h"

namespace assay::page {
namespace {

/// Four digits, as small probabilities need them.
std::string probability(double share) {
  constexpr double kLeast = 1e-5;
  return share > 0 && share < kLeast ? "&lt; 0.001 %" : fmt::format("{:.4g} %", share * 100);
}

}  // namespace

std::string agreed_risk_words(const plan::Plan& plan) {
  const plan::AgreedRisk& agreed = *plan.agreed_risk;
  const plan::RiskReached risk = plan::reached_risk(plan, agreed);
  if (risk.cells == 0) return "the plan has no required rate, and its hours under load are what is agreed on";
  return fmt::format(
      "a fleet whose rates are {:g} % beyond their limits is refused with {} (agreed: at most {:g} %); one with {} "
      "of {} nodes {:g} % short in one rate is accepted with {} (agreed: at most {:g} %)",
      agreed.beyond * 100, probability(risk.vendor_risk), agreed.vendor_risk * 100, risk.bad_nodes,
      plan.site.nodes.size(), agreed.short_by * 100, probability(risk.buyer_risk), agreed.buyer_risk * 100);
}

std::string agreed_risk_tables(const plan::Plan& plan) {
  if (!plan.agreed_risk) return "";
  const plan::AgreedRisk& agreed = *plan.agreed_risk;
  const plan::RiskReached risk = plan::reached_risk(plan, agreed);
  std::string html = fmt::format(
      "<p>Agreed before the measurement: {}. This follows from the plan, for figures that scatter normally by {:g} % "
      "between nodes and {:g} % between attempts; findings, conditions and references that are measured are not part "
      "of it.</p>\n",
      agreed_risk_words(plan), agreed.between_nodes * 100, agreed.between_runs * 100);
  std::vector<std::string> margins, nodes;
  for (const auto& point : risk.by_margin)
    margins.push_back(figures::row({fmt::format("{:+g} %", point.beyond * 100), probability(point.accepted)}));
  for (const auto& point : risk.by_bad_nodes)
    nodes.push_back(figures::row({fmt::format("{}", point.bad_nodes), probability(point.accepted)}));
  for (const auto& window : risk.windows) {
    html += fmt::format(
        "<p>{}: {} nodes, {:g} h each, at most {} interruptions a node. Nodes that run {:.3g} h between two on "
        "average, or "
        "less, are accepted with at most {:g} %; from {:.3g} h on they are refused with at most {:g} %.</p>\n",
        figures::escape(window.requirement), window.nodes, window.hours, window.tolerated, window.refused_mtbf_h,
        agreed.buyer_risk * 100, window.accepted_mtbf_h, agreed.vendor_risk * 100);
  }
  if (risk.cells == 0) return html;
  html += figures::table("risk", "Operating characteristic by rates",
                         {"All rates beyond (+) or short of (−) their limits by", "Accepted with"}, margins);
  return html + figures::table(
                    "risk", "Operating characteristic by nodes",
                    {fmt::format("Nodes that are {:g} % short in one rate", agreed.short_by * 100), "Accepted with"},
                    nodes);
}

}  // namespace assay::page
