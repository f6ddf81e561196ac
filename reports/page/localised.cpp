// localised: faults that were located after a group or pair missed a limit, and the extra tests that show them.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "orchestrator/judge/overall/ranking.h"
#include "orchestrator/plan/metered.h"
#include "probes/core/scale.h"
#include "reports/figures/html.h"
#include "reports/page/sections.h"

namespace assay::page {
namespace {

constexpr std::size_t kMostNames = 40;  // of undecided or excluded nodes; the verdict has all

std::string names(const std::vector<std::string>& all) {
  std::string text;
  for (std::size_t i = 0; i < std::min(all.size(), kMostNames); ++i)
    text += (i == 0 ? "" : ", ") + figures::escape(all[i]);
  if (all.size() > kMostNames) text += fmt::format(" and {} more", all.size() - kMostNames);
  return text;
}

std::string share_text(const std::optional<double>& share) { return share ? fmt::format("{:.3f}", *share) : "–"; }

/// Missed limits of the switch ports that the culprit's nodes are cabled to.
std::string ports_text(const ReportContent& content, const judge::Culprit& culprit) {
  std::string text;
  for (const auto& port : plan::cabled_ports(content.run.plan.site)) {
    if (std::ranges::find(culprit.nodes, port.node) == culprit.nodes.end()) continue;
    for (const auto& result : content.verdict.results) {
      if (result.subject != port.subject() || result.outcome == judge::Outcome::pass || !result.value) continue;
      text += fmt::format(" {} of {}: {} at {}.", content.requirement(result.requirement).metric, port.end_words(),
                          for_people(*result.value, result.unit), port.subject().id);
    }
  }
  return text;
}

std::string culprit_row(const ReportContent& content, const judge::Culprit& culprit) {
  return figures::row({std::string(word_of(culprit.fault)),
                       figures::escape(culprit.words + ports_text(content, culprit)), names(culprit.tests)});
}

std::string one_search(const ReportContent& content, const judge::Localised& one) {
  std::string requirements;
  for (const auto& id : one.requirements)
    requirements += (requirements.empty() ? "" : ", ") + figures::requirement_number(content.run.plan.profile, id);
  std::string html =
      fmt::format("<p>{}{}: {}{}</p>\n", requirements,
                  one.step.empty() ? ", over all pairs" : ", step <code>" + figures::escape(one.step) + "</code>",
                  figures::escape(one.reason),
                  judge::is_required(content.verdict, one) ? "" : " The figure is advisory: it accuses no node.");
  if (!one.excluded.empty())
    html += fmt::format("<p>Excluded, because they miss a limit on their own or were already located: {}.</p>\n",
                        names(one.excluded));
  if (!one.undecided.empty()) html += fmt::format("<p>Undecided: {}.</p>\n", names(one.undecided));
  std::vector<std::string> rows;
  for (const auto& culprit : one.culprits) rows.push_back(culprit_row(content, culprit));
  if (!rows.empty()) html += figures::table("culprits", "Located faults", {"Fault", "Location", "Shown by"}, rows);
  rows.clear();
  for (const auto& test : one.tests)
    rows.push_back(figures::row({"<code>" + figures::escape(test.id) + "</code>", figures::escape(test.purpose),
                                 fmt::format("{}", test.nodes), share_text(test.share), share_text(test.control),
                                 std::string(word_of(test.outcome))}));
  if (!rows.empty())
    html += figures::table("tests", "Extra tests of the search",
                           {"Extra test", "Purpose", "Nodes", "Share of the limit", "Controls", "Outcome"}, rows);
  return html;
}

}  // namespace

std::string localised_section(const ReportContent& content) {
  if (content.verdict.localised.empty()) return "";
  std::string html =
      "<h3 id=\"located\">Located faults</h3>\n<p>After a group or pair of nodes misses a limit, extra tests on some "
      "of its nodes locate "
      "the fault; the plan states their maximum number. A test is short when it is below control tests of the same "
      "number of nodes by more than 2 % and four standard deviations. Extra tests change no result: a missed "
      "requirement stays missed.</p>\n";
  for (const auto& one : content.verdict.localised) html += one_search(content, one);
  return html;
}

}  // namespace assay::page
