// risk: what vendor and buyer agreed on before the measurement, and the plan's operating characteristic.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/plan/acceptance.h"
#include "reports/figures/html.h"
#include "reports/page/sections.h"

namespace assay::page {
namespace {

/// Four digits, as small probabilities need them.
std::string probability(double share) {
  constexpr double kLeast = 1e-5;
  return share < kLeast ? "&lt; 0.001 %" : fmt::format("{:.4g} %", share * 100);
}

/// The cell of all nodes, which the judge adds for an agreement; nullptr in a verdict without it.
const judge::Result* stability_cell(const plan::Plan& plan, const judge::Results& results) {
  const auto found = std::ranges::find_if(results.rbegin(), results.rend(), [&](const judge::Result& one) {
    return one.subject.kind == "cluster" && one.requirement == plan::window_requirement(plan)->id;
  });
  return found == results.rend() ? nullptr : &*found;
}

}  // namespace

std::string stability_outcome(const plan::Plan& plan, const judge::Results& results) {
  const judge::Result* cell = stability_cell(plan, results);
  return figures::escape(plan::stability_words(plan)) +
         (cell == nullptr ? "" : fmt::format(". Outcome: {}: {}", cell->outcome, figures::escape(cell->reason)));
}

std::string stability_tables(const plan::Plan& plan, const judge::Results& results) {
  if (!plan.agreed_stability) return "";
  const judge::Result* cell = stability_cell(plan, results);
  const std::vector<double> path = cell == nullptr ? std::vector<double>{} : cell->each;
  const auto crossed = plan::crossing(plan.looks, std::vector<int>(path.begin(), path.end()));
  std::vector<std::string> looks, curve;
  for (std::size_t i = 0; i < plan.looks.size(); ++i) {
    const plan::Look& look = plan.looks[i];
    const bool here = crossed && crossed->look == i;
    looks.push_back(figures::row({fmt::format("{:g} h", look.hours), look.accept < 0 ? "" : std::to_string(look.accept),
                                  std::to_string(look.reject), i < path.size() ? fmt::format("{:g}", path[i]) : "",
                                  !here               ? ""
                                  : crossed->accepted ? "accepted"
                                                      : "refused"}));
  }
  for (const auto& point : plan::stability_curve(plan))
    curve.push_back(figures::row(
        {fmt::format("{:.4g} h", point.mtbf_h), probability(point.accepted), fmt::format("{:.4g} h", point.hours)}));
  return fmt::format(
             "<p>Agreed before the measurement: {}. Interruptions are taken to come at one constant rate on all nodes; "
             "nodes differ from each other only by chance. Without an early stop, at most <i>c</i> in the time "
             "<i>T</i> under load of all nodes accept a mean time <i>m</i> with P(χ²(2<i>c</i> + 2) &gt; "
             "2<i>T</i>/<i>m</i>); the boundaries of an early stop are Wald's lines for both mean times, and the risks "
             "are computed for these looks. The buyer's is of the least time under load that counts.</p>\n",
             figures::escape(plan::stability_words(plan))) +
         figures::table("risk", "Path of the interruptions",
                        {"Hours of each node", "Accepted up to", "Refused from", "Interruptions of all", ""}, looks) +
         figures::table("risk", "Operating characteristic by mean time between interruptions",
                        {"Mean time of a node", "Accepted with", "Ends on average after"}, curve);
}

std::string agreed_risk_words(const plan::Plan& plan) {
  const plan::AgreedRisk& agreed = *plan.agreed_risk;
  const plan::RiskReached risk = plan::reached_risk(plan, agreed);
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
      "between nodes and {:g} % between attempts, and by the stated uncertainty of their instruments; findings, "
      "conditions and references that are measured are not part of it.</p>\n",
      agreed_risk_words(plan), agreed.between_nodes * 100, agreed.between_runs * 100);
  std::vector<std::string> margins, nodes;
  for (const auto& point : risk.by_margin)
    margins.push_back(figures::row({fmt::format("{:+g} %", point.beyond * 100), probability(point.accepted)}));
  for (const auto& point : risk.by_bad_nodes)
    nodes.push_back(figures::row({fmt::format("{}", point.bad_nodes), probability(point.accepted)}));
  html += figures::table("risk", "Operating characteristic by rates",
                         {"All rates beyond (+) or short of (−) their limits by", "Accepted with"}, margins);
  return html + figures::table(
                    "risk", "Operating characteristic by nodes",
                    {fmt::format("Nodes that are {:g} % short in one rate", agreed.short_by * 100), "Accepted with"},
                    nodes);
}

}  // namespace assay::page
