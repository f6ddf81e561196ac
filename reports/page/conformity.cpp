// conformity: statement of conformity, decision rule and coverage.
#include <algorithm>
#include <map>
#include <set>
#include <span>

#include <fmt/format.h>

#include "orchestrator/judge/overall/ranking.h"
#include "probes/core/how_many.h"
#include "reports/figures/captions.h"
#include "reports/figures/html.h"
#include "reports/page/sections.h"

namespace assay::page {
namespace {

constexpr std::size_t kRowsOfOneRequirement =
    48;                                       // a rack's worth; beyond it, passes are counted and all others listed
constexpr std::size_t kColumnsOfMatrix = 16;  // fit on A4 beside the nodes' names
constexpr std::size_t kRowsOnPaper = 1;       // of one requirement; beyond it, they are counted
constexpr std::size_t kPlacesOnPaper = 24;    // beyond it, those whose cells all pass are left out
constexpr std::size_t kColumns = 8;           // of the statement

std::string value_cell(const Scale& scale, const judge::Result& result) {
  if (result.is_of_demand()) return "<strong>" + figures::value_html(result) + "</strong>";
  if (!result.value) return "—";
  std::string cell = "<strong>" + figures::escape(figures::text_in(scale, result, *result.value)) + "</strong>";
  if (result.interval && result.interval->low < result.interval->high) {
    cell +=
        fmt::format("<br><small>{} – {} ({:.1f} %)</small>", figures::number_text(scale, result, result.interval->low),
                    figures::number_text(scale, result, result.interval->high), result.interval->level * 100);
  }
  return cell;
}

std::string tag(const std::string& word, bool weak) {
  return fmt::format(" <span class=\"tag{}\">{}</span>", weak ? " weak" : "", figures::escape(word));
}

std::string wide_row(std::string_view css_class, const std::string& html) {
  return fmt::format("<tr class=\"{}\"><td colspan=\"{}\">{}</td></tr>\n", css_class, kColumns, html);
}

/// Number, title and tags of a requirement, its figure, then `more`.
std::string requirement_words(const ReportContent& content, const plan::Requirement& requirement,
                              const std::string& more) {
  return fmt::format(
      "<strong>{} {}</strong>{}{}<br><small>{}{}</small>",
      figures::requirement_number(content.run.plan.profile, requirement.id), figures::escape(requirement.title),
      tag(requirement.source.status, requirement.source.status != "sourced"),
      requirement.required ? "" : tag("advisory", true), figures::escape(figures::judged_words(requirement)), more);
}

/// The row that names a requirement over its results.
std::string requirement_row(const ReportContent& content, const plan::Requirement& requirement) {
  const std::string placed = figures::placement_words(requirement);
  const std::string target = figures::escape(figures::target_words(content.run.plan.profile, requirement));
  return wide_row(
      "requirement",
      requirement_words(content, requirement, ": " + target + (placed.empty() ? "" : "; " + figures::escape(placed))));
}

/// The cells of a row behind its first.
std::string number_row(const std::string& first, const Scale& scale, const judge::Result& result, std::size_t samples,
                       const std::string& css_class) {
  return figures::row(
      {first, figures::limit_text(scale, result, "<br>"), figures::acceptance_text(scale, result, "<br>"),
       value_cell(scale, result), fmt::format("{}", samples), result.margin ? figures::percent(*result.margin) : "—",
       result.false_accept ? figures::percent(*result.false_accept) : "—", figures::outcome_box(result.outcome)},
      css_class);
}

/// The results of one requirement, a row each; of neighbours that do not pass for one reason the first has it below.
/// `all` are those that are listed and those that are not.
std::string result_rows(const ReportContent& content, const std::vector<const judge::Result*>& listed,
                        std::size_t all) {
  const Scale scale = figures::column_scale(listed);
  const auto why = [&](const judge::Result* one) { return figures::escape(one->reason) + action_words(content, *one); };
  std::string html;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const judge::Result& result = *listed[i];
    const bool open = result.outcome != judge::Outcome::pass;
    const bool says_why = open && (i == 0 || why(listed[i - 1]) != why(&result));
    const std::string detail = i < kRowsOnPaper ? "" : "detail";
    html += number_row("<strong>" + figures::escape(figures::subject_words(result)) + "</strong>", scale, result,
                       result.samples, says_why ? "open " + detail : detail);
    if (!says_why) continue;
    std::size_t same = 1;
    while (i + same < listed.size() && why(listed[i + same]) == why(&result)) ++same;
    html += wide_row("why " + detail,
                     why(&result) + (same == 1 ? "" : fmt::format(" <em>The next {} alike.</em>", same - 1)));
  }
  if (listed.size() > kRowsOnPaper)
    html += wide_row("on-paper", fmt::format("{} more listed in report.html: {}.", listed.size() - kRowsOnPaper,
                                             figures::outcome_counts(std::span(listed).subspan(kRowsOnPaper))));
  if (listed.size() < all)
    html +=
        wide_row("", fmt::format("{} further subjects pass; evidence/verdict.json lists them.", all - listed.size()));
  return html;
}

/// The one row of a counter that passes on every subject.
std::string counter_row(const ReportContent& content, const plan::Requirement& requirement,
                        const std::vector<const judge::Result*>& results) {
  const judge::Result& first = *results.front();
  const std::string who = results.size() == 1 ? figures::escape(figures::subject_words(first))
                                              : fmt::format("each of {} subjects", results.size());
  const auto fewest = std::ranges::min(results, {}, &judge::Result::samples)->samples;
  return number_row(requirement_words(content, requirement, ", " + who), figures::column_scale(results), first, fewest,
                    "detail");
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
    bool all_pass = true;
    std::string html = "<td>" + figures::escape(place) + "</td>";
    for (std::size_t i = from; i < to; ++i) {
      const auto found = cells.find({requirements[i].id, place});
      if (found == cells.end()) {
        html += "<td></td>";
        continue;
      }
      const auto& cell = found->second;
      all_pass = all_pass && cell.worst == judge::Outcome::pass;
      html += fmt::format("<td class=\"c-{}\" title=\"{}\">{}{}</td>", to_string(cell.worst),
                          figures::outcome_words(cell.worst), figures::outcome_letter(cell.worst),
                          cell.results > 1 ? fmt::format("<small> of {}</small>", cell.results) : "");
    }
    rows.push_back(
        fmt::format("<tr{}>{}</tr>\n", all_pass && places.size() > kPlacesOnPaper ? " class=\"detail\"" : "", html));
  }
  return figures::table("matrix", "Coverage: requirements by place", titles, rows);
}

}  // namespace

std::string conformity_section(const ReportContent& content) {
  std::string html = heading(1);
  html += fmt::format(
      "<p>Overall: <strong>{}</strong>. {} Section 2 states the decision rule. n: number of samples, the fewest where "
      "a "
      "row is of several subjects; margin: distance to the limit as a share of it; risk: probability that a unit "
      "exactly at the limit shows a value as good as "
      "this.</p>\n",
      to_string(content.verdict.overall), figures::escape(content.verdict.reason));
  figures::ResultsOf by_requirement;
  for (const auto& result : content.verdict.results) by_requirement[result.requirement].push_back(&result);
  std::vector<std::string> rows, counters;
  std::set<std::size_t> numbers;  // of the counters
  std::map<std::string_view, std::size_t> places;
  for (const auto& one : content.run.plan.profile.requirements) places.emplace(one.id, places.size() + 1);
  for (const auto& one : judge::summaries(content.verdict)) {
    const plan::Requirement& requirement = content.requirement(one.requirement);
    const auto& all = by_requirement[requirement.id];
    if (one.open.empty() && is_counter(content, requirement, all)) {
      counters.push_back(counter_row(content, requirement, all));
      numbers.insert(places.at(requirement.id));
      continue;
    }
    rows.push_back(requirement_row(content, requirement) + result_rows(content, listed_results(all), all.size()));
  }
  if (!counters.empty())
    rows.push_back(wide_row("requirement", "<strong>Counters that pass, with one value on every subject</strong>"));
  rows.insert(rows.end(), counters.begin(), counters.end());
  if (!counters.empty()) rows.push_back(wide_row("on-paper", number_ranges(numbers) + ": section 4 has their values."));
  return html +
         figures::table("conformity", "Statement of conformity, failures first",
                        {"Subject", "Limit", "Acceptance limit", "Value, interval", "n", "Margin", "Risk", "Verdict"},
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
         "requirements do not count. The procedure follows the guarded acceptance of ILAC-G8 and JCGM 106.</p>\n" +
         agreed_risk_tables(content.run.plan) + stability_tables(content.run.plan, content.verdict.results);
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
      "<p>{}, {}. {}; a cell with several results (one per device) shows the worst of them. "
      "Section 2 explains the letters.</p>\n",
      how_many(content.run.plan.coverage.size(), "planned cell"), how_many(content.verdict.results.size(), "result"),
      left_out == 0 ? "Every planned cell is shown"
                    : fmt::format("Omitted, with cells that all pass: {}; evidence/verdict.json lists them",
                                  how_many(left_out, "place")));
  if (places.size() > kPlacesOnPaper)
    html += "<p class=\"on-paper\">On paper only places with an open cell have a row.</p>\n";
  for (std::size_t from = 0; from < content.run.plan.profile.requirements.size(); from += kColumnsOfMatrix)
    html += matrix_block(content, places, cells, from);
  return html;
}

}  // namespace assay::page
