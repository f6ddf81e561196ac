// conformity: statement of conformity, decision rule and coverage.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "orchestrator/judge/overall/ranking.h"
#include "reports/figures/html.h"
#include "reports/page/sections.h"

namespace assay::page {
namespace {

constexpr std::size_t kRowsOfOneRequirement =
    48;                                       // a rack's worth; beyond it, passes are counted and all others listed
constexpr std::size_t kColumnsOfMatrix = 16;  // fit on A4 beside the nodes' names

/// "≥ 450.0 GB/s", "≤ 3.0 us", or both.
std::string bounds(const Scale& scale, const std::optional<double>& low, const std::optional<double>& high) {
  std::string text;
  if (low) text = "≥ " + scale.text(*low);
  if (high) text += (text.empty() ? "≤ " : "<br>≤ ") + scale.text(*high);
  return text.empty() ? "—" : text;
}

std::string value_cell(const Scale& scale, const judge::Result& result) {
  if (!result.value) return "—";
  std::string cell = "<strong>" + figures::escape(scale.text(*result.value)) + "</strong>";
  if (result.interval) {
    cell += fmt::format("<br><small>{} – {} ({:.1f} %)</small>", scale.number(result.interval->low),
                        scale.number(result.interval->high), result.interval->level * 100);
  }
  return cell;
}

std::string tag(const std::string& word, bool weak) {
  return fmt::format(" <span class=\"tag{}\">{}</span>", weak ? " weak" : "", figures::escape(word));
}

/// The row that names a requirement over its results.
std::string requirement_row(const ReportContent& content, const plan::Requirement& requirement) {
  const std::string placed = figures::placement_words(requirement);
  return fmt::format(
      "<tr class=\"requirement\"><td colspan=\"7\"><strong>{} {}</strong>{}{}<br><small>{} of {}: "
      "{}{}</small></td></tr>\n",
      figures::requirement_number(content.run.plan.profile, requirement.id), figures::escape(requirement.title),
      tag(requirement.source.status, requirement.source.status != "sourced"),
      requirement.required ? "" : tag("advisory", true), std::string(word_of(requirement.statistic)),
      figures::escape(requirement.figure()),
      figures::escape(figures::target_words(content.run.plan.profile, requirement)),
      placed.empty() ? "" : "; " + figures::escape(placed));
}

/// Two rows: subject and reason, then the numbers.
std::string result_rows(const judge::Result& result) {
  const Scale scale = figures::result_scale(result);
  const std::string who = fmt::format("<tr class=\"who\"><td colspan=\"7\"><strong>{}</strong> {}</td></tr>\n",
                                      figures::escape(figures::subject_words(result)), figures::escape(result.reason));
  return who + figures::row({bounds(scale, result.limit_low, result.limit_high),
                             bounds(scale, result.acceptance_low, result.acceptance_high), value_cell(scale, result),
                             fmt::format("{}", result.samples), result.margin ? figures::percent(*result.margin) : "—",
                             result.false_accept ? figures::percent(*result.false_accept) : "—",
                             figures::outcome_box(result.outcome)});
}

/// The row in place of passes that are too many to be listed.
std::string counted_row(std::size_t passes) {
  return fmt::format("<tr><td colspan=\"7\">{} further subjects pass; evidence/verdict.json lists them.</td></tr>\n",
                     passes);
}

/// The results of one requirement that have a row, those that do not pass first: all when they are few; else those that
/// do not pass and the passes with the smallest margins.
std::vector<const judge::Result*> listed_results(std::vector<const judge::Result*> results) {
  const auto is_open = [](const judge::Result* one) { return one->outcome != judge::Outcome::pass; };
  if (results.size() <= kRowsOfOneRequirement) {
    std::ranges::stable_partition(results, is_open);
    return results;
  }
  std::ranges::stable_sort(results, [&](const judge::Result* a, const judge::Result* b) {
    if (is_open(a) != is_open(b)) return is_open(a);
    return a->margin.value_or(0) < b->margin.value_or(0);
  });
  const auto open = static_cast<std::size_t>(std::ranges::count_if(results, is_open));
  results.resize(std::max(open, kRowsOfOneRequirement));
  return results;
}

struct MatrixCell {
  judge::Outcome worst = judge::Outcome::pass;
  std::size_t results = 0;
};

/// The rows of the matrix: every node with results of its own, then pairs, groups and the whole where they were
/// planned. Of too many nodes, or too many of the others, only those that are open; `left_out` counts the rest.
std::vector<std::string> places_of(const ReportContent& content, std::size_t& left_out) {
  std::set<std::string_view> with_results;
  for (const auto& result : content.verdict.results) with_results.insert(result.node);
  std::vector<std::string> nodes;
  for (const auto& node : content.run.plan.site.nodes) {
    if (with_results.contains(node.name)) nodes.push_back(node.name);
  }
  std::set<std::string> seen(nodes.begin(), nodes.end());
  std::vector<std::string> together;
  std::set<std::string> open;
  for (const auto& result : content.verdict.results) {
    if (result.outcome != judge::Outcome::pass) open.insert(result.node);
    if (seen.insert(result.node).second) together.push_back(result.node);
  }
  std::vector<std::string> places;
  for (const auto* some : {&nodes, &together}) {
    std::ranges::copy_if(*some, std::back_inserter(places),
                         [&](const std::string& place) { return some->size() <= kMostListed || open.contains(place); });
  }
  left_out = nodes.size() + together.size() - places.size();
  return places;
}

std::string matrix_block(const ReportContent& content, const std::vector<std::string>& places,
                         const std::map<std::pair<std::string, std::string>, MatrixCell>& cells, std::size_t from) {
  const auto& requirements = content.run.plan.profile.requirements;
  const std::size_t to = std::min(from + kColumnsOfMatrix, requirements.size());
  std::vector<std::string> titles = {"Place"};
  for (std::size_t i = from; i < to; ++i) titles.push_back(fmt::format("R{}", i + 1));
  std::vector<std::string> rows;
  for (const auto& place : places) {
    std::string html = "<tr><td>" + figures::escape(place) + "</td>";
    for (std::size_t i = from; i < to; ++i) {
      const auto found = cells.find({requirements[i].id, place});
      if (found == cells.end()) {
        html += "<td></td>";
        continue;
      }
      const auto& cell = found->second;
      html += fmt::format("<td class=\"c-{}\" title=\"{}\">{}{}</td>", to_string(cell.worst),
                          figures::outcome_words(cell.worst), figures::outcome_letter(cell.worst),
                          cell.results > 1 ? fmt::format("<small> of {}</small>", cell.results) : "");
    }
    rows.push_back(html + "</tr>\n");
  }
  return figures::table("matrix", "Coverage: requirements by place", titles, rows);
}

}  // namespace

std::string conformity_section(const ReportContent& content) {
  std::string html = heading(1);
  html += fmt::format(
      "<p>Overall: <strong>{}</strong>. {} Section 2 states the decision rule. n: number of samples; margin: distance "
      "to the limit as a share of it; risk: probability that a unit exactly at the limit shows a value as good as "
      "this.</p>\n",
      to_string(content.verdict.overall), figures::escape(content.verdict.reason));
  std::map<std::string, std::vector<const judge::Result*>> by_requirement;
  for (const auto& result : content.verdict.results) by_requirement[result.requirement].push_back(&result);
  std::vector<std::string> rows;
  for (const auto& one : judge::summaries(content.verdict)) {
    const plan::Requirement& requirement = content.requirement(one.requirement);
    const auto& all = by_requirement[requirement.id];
    const auto listed = listed_results(all);
    rows.push_back(requirement_row(content, requirement));
    for (const judge::Result* result : listed) rows.push_back(result_rows(*result));
    if (listed.size() < all.size()) rows.push_back(counted_row(all.size() - listed.size()));
  }
  return html + figures::table("conformity", "Statement of conformity, failures first",
                               {"Limit", "Acceptance limit", "Value, interval", "n", "Margin", "Risk", "Verdict"},
                               rows);
}

std::string decision_section(const ReportContent& content) {
  const plan::Profile& profile = content.run.plan.profile;
  const double risk = normal_cdf(-profile.guard_factor);
  std::string html = heading(2);
  html += fmt::format(
      "<p>The unit of the decision is the attempt: a fresh process. The judged value <i>y</i> is the mean over the "
      "attempts of the statistic named with each requirement (by default the median); of minimum and maximum it is the "
      "worst of all samples. No measurement is repeated until it passes. Intervals are distribution-free, from order "
      "statistics of all samples, with a coverage of at least {:.4g} %.</p>\n",
      profile.confidence * 100);
  html += fmt::format(
      "<p>The standard uncertainty <i>u</i> is the root of the sum of squares of the repeatability (the standard "
      "deviation between attempts, or what the samples within them show where that is more, over the root of their "
      "number), the instrument, and the measured reference where the limit refers to one. The guard band is <i>w</i> = "
      "<i>g u</i>, with <i>g</i> the quantile of Student's t for a risk of {:.2g} %; where a second stage is planned, "
      "each of the two decisions takes half of it (Bonferroni). A pass, and a fail, also need the one-sided "
      "order-statistic bound of all samples on the same side of the limit.</p>\n"
      "<p>The claim: a unit whose long-run median over fresh runs under the recorded conditions lies exactly at the "
      "limit "
      "is accepted with a probability of at most {:.2g} %. It says nothing of what changes more slowly than the "
      "attempts.</p>\n",
      risk * 100, risk * 100);
  std::vector<std::string> rows = {
      figures::row(
          {"P", figures::outcome_box(judge::Outcome::pass), "y ≥ L + w", "y ≤ L − w", "the requirement is met"}),
      figures::row({"CP", figures::outcome_box(judge::Outcome::conditional_pass), "L ≤ y &lt; L + w",
                    "L − w &lt; y ≤ L", "better than the limit by less than the guard band: not accepted"}),
      figures::row({"CF", figures::outcome_box(judge::Outcome::conditional_fail), "L − w &lt; y &lt; L",
                    "L &lt; y &lt; L + w",
                    "worse than the limit by less than the guard band: neither accepted nor rejected"}),
      figures::row(
          {"F", figures::outcome_box(judge::Outcome::fail), "y ≤ L − w", "y ≥ L + w", "the requirement is missed"}),
      figures::row({"I", figures::outcome_box(judge::Outcome::inconclusive), "", "",
                    "too few attempts or samples, samples that are not steady with the limit within their reach, or a "
                    "required condition that is not met or not recorded"}),
      figures::row({"N", figures::outcome_box(judge::Outcome::not_measured), "", "", "no measurement"}),
      figures::row({"E", figures::outcome_box(judge::Outcome::error), "", "",
                    "the measurement failed or its record was refused"})};
  html += figures::table("rule", "Outcomes by the decision rule",
                         {"", "Verdict", "Lower limit L", "Upper limit L", "Meaning"}, rows);
  return html +
         "<p>Overall: accepted if every required cell passes, rejected if any fails, incomplete otherwise. Advisory "
         "requirements do not count. The procedure follows the guarded acceptance of ILAC-G8 and JCGM 106.</p>\n";
}

std::string coverage_section(const ReportContent& content) {
  std::map<std::pair<std::string, std::string>, MatrixCell> cells;
  for (const auto& result : content.verdict.results) {
    MatrixCell& cell = cells[{result.requirement, result.node}];
    // Outcomes are declared from best to worst.
    cell.worst = cell.results == 0 ? result.outcome : std::max(cell.worst, result.outcome);
    ++cell.results;
  }
  std::size_t left_out = 0;
  const auto places = places_of(content, left_out);
  std::string html = heading(3);
  html += fmt::format(
      "<p>{} planned cells, {} results. {}; a cell with several results (one per device) shows the worst of them. "
      "Section 2 explains the letters.</p>\n",
      content.run.plan.coverage.size(), content.verdict.results.size(),
      left_out == 0
          ? "Every planned cell is shown"
          : fmt::format("{} places whose cells all pass are omitted; evidence/verdict.json lists them", left_out));
  for (std::size_t from = 0; from < content.run.plan.profile.requirements.size(); from += kColumnsOfMatrix)
    html += matrix_block(content, places, cells, from);
  return html;
}

}  // namespace assay::page
