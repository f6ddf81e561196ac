// action: the first thing that a reader needs: what to do.
#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/judge/overall/next_step.h"
#include "orchestrator/judge/overall/ranking.h"
#include "probes/core/how_many.h"
#include "reports/figures/html.h"
#include "reports/figures/pair_chart.h"
#include "reports/page/sections.h"

namespace assay::page {
namespace {

constexpr std::size_t kMostCulprits = 8;
constexpr std::size_t kMostRequirements = 8, kMostAdvisory = 4;
constexpr std::size_t kMostNodes = 16;
constexpr std::size_t kMostActions = 12, kMostNamed = 3;  // of one action

std::string link_to(const ReportContent& content, const std::string& requirement) {
  const plan::Profile& profile = content.run.plan.profile;
  return fmt::format("<a href=\"#{}\">{}</a>", anchor_of(profile, requirement),
                     figures::requirement_number(profile, requirement));
}

/// "n01, n02 and 3 more".
std::string named(const std::vector<std::string>& subjects) {
  std::string words;
  for (std::size_t i = 0; i < std::min(subjects.size(), kMostNamed); ++i)
    words += (i == 0 ? "" : ", ") + figures::escape(subjects[i]);
  return subjects.size() > kMostNamed ? words + fmt::format(" and {} more", subjects.size() - kMostNamed) : words;
}

/// A line for each action that is known, with its subjects, the most urgent first.
std::string actions(const ReportContent& content) {
  const auto all = judge::to_do(content.verdict, content.advices);
  if (all.empty()) return "";
  const auto& table = profiles::actions();
  std::string html = "<ol class=\"todo\">\n";
  for (std::size_t i = 0; i < std::min(all.size(), kMostActions); ++i) {
    const auto& advice = all[i].advice;
    html += fmt::format("<li><strong>{}</strong> {}: {} <small>{}; {}</small></li>\n", advice.action,
                        named(all[i].subjects), figures::escape(advice.says), named(all[i].findings),
                        figures::escape(table.source_words(advice)));
  }
  html += "</ol>\n";
  if (all.size() > kMostActions)
    html += fmt::format("<p>{} less urgent actions more.</p>\n", all.size() - kMostActions);
  return html + fmt::format("<p class=\"small\">Advice, not evidence: the verdict holds none of it. By the {}.</p>\n",
                            figures::escape(table.age_words(content.advices.today)));
}

/// Who is at fault, with where to look: the words of the searches.
std::string culprits(const ReportContent& content) {
  const auto all = judge::all_accused(content.verdict);
  if (all.empty()) return "";
  std::string html;
  for (std::size_t i = 0; i < std::min(all.size(), kMostCulprits); ++i) {
    std::string shown_by;
    for (const auto& id : all[i].requirements) shown_by += (shown_by.empty() ? "" : ", ") + link_to(content, id);
    const std::string name = name_of(*all[i].culprit);
    std::string_view words = all[i].culprit->words;
    if (words.starts_with(name + ": ")) words.remove_prefix(name.size() + 2);
    html +=
        fmt::format("<li><strong>{}</strong>: {} ({})</li>\n", figures::escape(name), figures::escape(words), shown_by);
  }
  if (all.size() > kMostCulprits)
    html += fmt::format("<li>{} more: see <a href=\"#located\">Located faults</a></li>\n", all.size() - kMostCulprits);
  return html;
}

/// The nodes that miss limits in steps of one node, the worst first, with the requirements; without those that a search
/// accuses.
std::string failing_nodes(const ReportContent& content) {
  constexpr std::size_t kMostShown = 4;                          // requirements of a node
  std::map<std::string, std::vector<std::string>> requirements;  // that a node fails, each once
  std::map<std::string, std::size_t> cells;
  for (const auto& result : content.verdict.results) {
    const plan::Step* const step = content.run.plan.step(result.step);
    if (!result.required || result.outcome != judge::Outcome::fail || step == nullptr || step->nodes.size() != 1)
      continue;
    ++cells[result.node];
    auto& all = requirements[result.node];
    if (all.empty() || all.back() != result.requirement) all.push_back(result.requirement);
  }
  for (const auto& one : judge::all_accused(content.verdict)) {
    if (one.culprit->nodes.size() == 1) cells.erase(one.culprit->nodes.front());
  }
  std::vector<std::string> nodes;
  for (const auto& [node, count] : cells) nodes.push_back(node);
  std::ranges::stable_sort(nodes, std::greater{}, [&](const std::string& node) { return cells[node]; });
  std::string html;
  for (std::size_t i = 0; i < std::min(nodes.size(), kMostNodes); ++i) {
    const auto& all = requirements[nodes[i]];
    std::string links;
    for (std::size_t k = 0; k < std::min(all.size(), kMostShown); ++k)
      links += (k == 0 ? "" : ", ") + link_to(content, all[k]);
    if (all.size() > kMostShown) links += fmt::format(" and {} more", all.size() - kMostShown);
    html += fmt::format("<li>node <strong>{}</strong>: failed, with no other node in the step: {} ({})</li>\n",
                        figures::escape(nodes[i]), how_many(cells[nodes[i]], "required cell"), links);
  }
  if (nodes.size() > kMostNodes)
    html += fmt::format("<li>{} more nodes: see <a href=\"#s1\">section 1</a></li>\n", nodes.size() - kMostNodes);
  return html;
}

/// The nodes that were not reached or were lost, each with the last reason.
std::string lost_nodes(const ReportContent& content) {
  std::map<std::string, std::string> lost;
  for (const auto& event : content.run.journal.node_events) lost[event.node] = event.reason;
  std::string html;
  std::size_t shown = 0;
  for (const auto& [node, reason] : lost) {
    if (++shown > kMostNodes) break;
    html += fmt::format("<li>node <strong>{}</strong>: {}</li>\n", figures::escape(node), figures::escape(reason));
  }
  if (lost.size() > kMostNodes)
    html += fmt::format("<li>{} more nodes: see <a href=\"#s9\">Machines</a></li>\n", lost.size() - kMostNodes);
  return html;
}

/// The requirements that do not pass, the worst first, each with its worst result: those that are required, or those
/// that are advisory.
std::string worst_requirements(const ReportContent& content, const std::vector<judge::RequirementSummary>& all,
                               bool required) {
  std::vector<std::string> rows;
  std::size_t open = 0;
  const std::size_t most = required ? kMostRequirements : kMostAdvisory;
  for (const auto& one : all) {
    if (one.open.empty() || one.required != required || one.worst->unchecked || ++open > most) continue;
    const judge::Result& worst = *one.worst;
    rows.push_back(
        figures::row({fmt::format("{} {}", link_to(content, one.requirement),
                                  figures::escape(content.requirement(one.requirement).title)),
                      fmt::format("{}/{}", one.passed, one.cells), figures::value_html(worst),
                      figures::acceptance_text(figures::column_scale({{&worst}}), worst, " and "),
                      figures::outcome_box(worst.outcome),
                      fmt::format("<strong>{}</strong>: {}{}", figures::escape(figures::subject_words(worst)),
                                  figures::escape(worst.reason), action_words(content, worst))}));
  }
  if (rows.empty()) return "";
  std::string html = required ? "" : "<h3>Advisory: a warning, which accuses no node and decides nothing</h3>\n";
  html += figures::table("action",
                         required ? "Requirements that do not pass, worst first"
                                  : "Advisory figures that do not pass: warnings, which decide nothing",
                         {"Requirement", "Passed", "Worst", "Accepted", "Verdict", "Where and why"}, rows);
  if (open > most) html += fmt::format("<p>{} more: see <a href=\"#s1\">section 1</a>.</p>\n", open - most);
  return html;
}

/// The matrix of the first requirement in `all`, which has the worst first, that has pairs.
std::string matrix(const ReportContent& content, const std::vector<judge::RequirementSummary>& all) {
  figures::ResultsOf results;
  for (const auto& result : content.verdict.results) results[result.requirement].push_back(&result);
  const figures::StepIndex steps = figures::index_of_steps(content.run.plan);
  for (const auto& one : all) {
    const plan::Requirement* shown = &content.requirement(one.requirement);
    if (one.open.empty() || shown->scope != plan::JudgedScope::pair || !one.worst->value ||
        one.worst->outcome == judge::Outcome::not_measured)
      continue;
    // Both directions of the same pairs are drawn once, with the first of the two requirements.
    const auto* other = figures::other_direction(content.run.plan.profile, *shown);
    for (; other != nullptr && other < shown; other = figures::other_direction(content.run.plan.profile, *shown))
      shown = other;
    if (std::string figure = pair_figure(content, steps, *shown, results); !figure.empty()) return figure;
  }
  return "";
}

}  // namespace

std::string action_words(const ReportContent& content, const judge::Result& result) {
  const auto advice = content.advices.of(result);
  return advice ? fmt::format(" <strong>Action: {}</strong>.", figures::escape(short_words(*advice))) : "";
}

std::string action_section(const ReportContent& content) {
  const auto all = judge::summaries(content.verdict);
  const std::string found = culprits(content) + failing_nodes(content) + lost_nodes(content);
  const std::string worst = worst_requirements(content, all, true), warned = worst_requirements(content, all, false);
  std::string html = "<section class=\"action\">\n<h2 id=\"action\">What to do</h2>\n";
  const std::string next = judge::next_step(content.verdict, content.advices);
  if (content.verdict.overall == judge::Overall::incomplete && !next.empty())
    html += fmt::format("<p><strong>Next:</strong> {}</p>\n", figures::escape(next));
  html += actions(content);
  if (found.empty() && worst.empty() && warned.empty()) {
    return html + "<p>Nothing: every judged figure meets its limit" +
           (content.verdict.overall == judge::Overall::accepted ? "."
                                                                : "; the reason above says why it is no acceptance.") +
           "</p>\n</section>\n";
  }
  if (!found.empty()) html += "<ul>\n" + found + "</ul>\n";
  return html + worst + matrix(content, all) + warned + "</section>\n";
}

}  // namespace assay::page
