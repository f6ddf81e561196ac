// page: the comparison in the style of the report.
#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/judge/overall/ranking.h"
#include "probes/core/how_many.h"
#include "reports/compare/shown.h"
#include "reports/figures/html.h"
#include "reports/figures/plot.h"
#include "reports/figures/result_text.h"
#include "reports/page/style.h"

namespace assay::compare {
namespace {

using figures::escape;

constexpr std::size_t kMostListed = 512;                          // rows of a table
constexpr std::size_t kMostStrips = figures::kMostStripRows / 2;  // subjects with a row for each run

constexpr std::string_view kSheet = R"css(
svg .of-a { fill: none; stroke: var(--ink); stroke-width: 1.6; stroke-dasharray: 5 3; } svg .of-b { fill: none; stroke: var(--blue); stroke-width: 2; }
table.runs th, table.runs td:first-child { width: 24mm; white-space: nowrap; } table.runs th + th { width: auto; } table.compared td { white-space: nowrap; } table.compared td:first-child { white-space: normal; }
.finding { font-weight: 600; white-space: nowrap; } .finding.worse { color: var(--bad); } .finding.better { color: var(--good); } .finding.different { color: var(--warn); }
)css";

std::string finding_html(Finding finding) {
  return fmt::format("<span class=\"finding {}\">{}</span>", word_of(finding), finding_words(finding));
}

std::string head_table(const Side& a, const Side& b) {
  std::vector<std::string> rows;
  const auto add = [&](const char* name, auto text) {
    rows.push_back(figures::row({name, escape(text(a)), escape(text(b))}));
  };
  add("Folder", [](const Side& side) { return side.path; });
  add("Standing", [](const Side& side) {
    std::string words = side.standing;
    std::ranges::replace(words, '_', ' ');
    for (const auto& signer : side.signers) words += "; signed by " + signer;
    return words;
  });
  add("Site", [](const Side& side) {
    return fmt::format("{}, {}", side.content.run.plan.site.name,
                       how_many(side.content.run.plan.site.nodes.size(), "node"));
  });
  add("Profile", [](const Side& side) {
    return fmt::format("{} revision {}", side.content.run.plan.profile.name, side.content.run.plan.profile.revision);
  });
  add("Run", [](const Side& side) { return side.content.run.journal.run_id; });
  add("From", [](const Side& side) { return side.content.run.journal.begin; });
  add("To", [](const Side& side) { return side.content.run.journal.last; });
  add("Verdict", [](const Side& side) {
    return fmt::format("{}: {}", judge::to_string(side.content.verdict.overall), side.content.verdict.reason);
  });
  return figures::table("runs", "The two runs", {"", "A", "B"}, rows);
}

std::string list(const std::vector<std::string>& sentences) {
  std::string html = "<ul>\n";
  for (std::size_t i = 0; i < std::min(sentences.size(), kMostListed); ++i)
    html += figures::element("li", sentences[i]) + "\n";
  if (sentences.size() > kMostListed) html += fmt::format("<li>and {} more</li>\n", sentences.size() - kMostListed);
  return html + "</ul>\n";
}

std::string outcomes(const std::map<std::string, std::size_t>& counts) {
  std::string words;
  for (const auto& [outcome, count] : counts)
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", count, outcome);
  return escape(words.empty() ? "—" : words);
}

std::string requirement_table(const Comparison& all) {
  std::vector<std::string> rows;
  for (const auto& pair : all.requirements) {
    const auto [value_a, value_b] = value_words(pair, "—");
    rows.push_back(
        figures::row({fmt::format("<a href=\"#{0}\">{0}</a>", escape(pair.id)), std::to_string(pair.tested),
                      escape(value_a), escape(value_b), escape(change_words(pair)),
                      escape(shift_words(pair.test, pair.unit)), escape(interval_words(pair.test, pair.unit)),
                      pair.test.shift ? fmt::format("{:.2g}", pair.test.p) : "—", finding_html(pair.finding)}));
  }
  return figures::table("compared", "Requirements",
                        {"Requirement", "Subjects", "A", "B", "Change", "Of attempts", "95 % interval", "p", "Finding"},
                        rows);
}

std::string changed_table(const Comparison& all) {
  const auto changed = changed_outcomes(all);
  if (changed.empty()) return "<p>No cell that both runs have changed its outcome.</p>\n";
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < std::min(changed.size(), kMostListed); ++i) {
    const auto& [pair, cell] = changed[i];
    rows.push_back(figures::row({escape(pair->id), escape(name_of(*cell)), figures::outcome_box(cell->a->outcome),
                                 figures::outcome_box(cell->b->outcome), escape(cell->b->reason)}));
  }
  std::string html =
      figures::table("changed", "Outcomes that changed", {"Requirement", "Subject", "A", "B", "Why, in B"}, rows);
  if (changed.size() > kMostListed) html += fmt::format("<p>and {} more</p>\n", changed.size() - kMostListed);
  return html;
}

figures::PlotRow plot_row(const char* name, const Side& side, const judge::Result& result) {
  figures::PlotRow row = figures::plot_row(result, side.content.samples(result));
  row.label = fmt::format("{} {}", name, row.label);
  return row;
}

/// The limit that all results of one run share.
std::optional<double> common_limit(const std::vector<const judge::Result*>& results) {
  std::optional<double> common;
  for (const auto* result : results) {
    const auto limit = result->limit_low ? result->limit_low : result->limit_high;
    if (common && limit != common) return std::nullopt;
    common = limit;
  }
  return common;
}

std::string figure(const RequirementPair& pair, const Side& a, const Side& b) {
  std::vector<const judge::Result*> of_a, of_b;
  figures::Plot plot{.title = fmt::format("{} ({})", pair.metric, pair.statistic), .unit = pair.unit};
  for (const auto& cell : pair.cells) {
    if (cell.a != nullptr && cell.a->value) of_a.push_back(cell.a);
    if (cell.b != nullptr && cell.b->value) of_b.push_back(cell.b);
  }
  if (of_a.empty() && of_b.empty()) return "<p class=\"small\">No figure: neither run measured it.</p>\n";
  if (pair.cells.size() <= kMostStrips || of_a.empty() || of_b.empty()) {
    for (const auto& cell : pair.cells) {
      if (plot.rows.size() >= figures::kMostStripRows) break;
      if (cell.a != nullptr && cell.a->value) plot.rows.push_back(plot_row("A", a, *cell.a));
      if (cell.b != nullptr && cell.b->value) plot.rows.push_back(plot_row("B", b, *cell.b));
    }
    return "<figure>\n" + figures::strip_plot(plot) +
           "<figcaption>Dots: samples; bar: judged value; bracket: its interval; solid line: limit; shaded: guard "
           "band.</figcaption>\n</figure>\n";
  }
  const auto values = [](const std::vector<const judge::Result*>& results) {
    std::vector<double> all;
    for (const auto* result : results) all.push_back(*result->value);
    return all;
  };
  return "<figure>\n" +
         figures::two_distributions({.title = plot.title,
                                     .unit = pair.unit,
                                     .a = values(of_a),
                                     .b = values(of_b),
                                     .limit_a = common_limit(of_a),
                                     .limit_b = common_limit(of_b)}) +
         "<figcaption>Share of the subjects whose judged value is at most that. Dashed: A; solid: B.</figcaption>\n"
         "</figure>\n";
}

std::string requirement_section(const RequirementPair& pair, const Side& a, const Side& b) {
  std::string html = fmt::format("<h3 id=\"{0}\">{0} {1}</h3>\n", escape(pair.id), finding_html(pair.finding));
  html += figures::element("p", pair.reason) + "\n";
  std::vector<std::pair<std::string, std::string>> rows = {
      {"Limit in A", pair.limit_a.empty() ? "no such requirement" : escape(pair.limit_a)},
      {"Limit in B", pair.limit_b.empty() ? "no such requirement" : escape(pair.limit_b)},
      {"Outcomes in A", outcomes(pair.outcomes_a)},
      {"Outcomes in B", outcomes(pair.outcomes_b)}};
  if (pair.left_out > 0)
    rows.emplace_back("Left out", fmt::format("{} cells that are not judged in both runs", pair.left_out));
  std::string shown;
  for (const auto& cell : pair.cells) {
    using enum Finding;
    if (cell.finding != worse && cell.finding != better && cell.finding != different) continue;
    shown += fmt::format("{}{} ({}, {})", shown.empty() ? "" : "; ", escape(name_of(cell)), finding_words(cell.finding),
                         escape(shift_words(cell.test, pair.unit)));
  }
  if (!shown.empty()) rows.emplace_back("Subjects that changed", shown);
  html += figures::facts(pair.id, rows);
  if (!pair.method.empty()) html += list(pair.method);
  return html + figure(pair, a, b);
}

std::string method(const Comparison& all) {
  return fmt::format(
      "<h2>How it was decided</h2>\n<p>Tested are the statistics of the attempts, each a fresh process, and not the "
      "samples within them, which are not independent of each other. The attempts of every subject that both runs have "
      "are ranked within that subject; the ranks of B are added over all subjects and compared with every other way to "
      "deal the same attempts out (stratified rank-sum test, counted out exactly up to {} attempts). It assumes no "
      "distribution. Where the runs share no subject, the values of the subjects take the place of the attempts. The "
      "change is that of A and B as they are shown, medians over the subjects; of attempts, it is the median over all "
      "pairs of attempts of a subject, with its interval.</p>\n<p>Over all requirements and single subjects together, "
      "the "
      "probability to find any difference where there is none is at most {:.2g}: a p of {:.2g} or less counts "
      "(Tarone). Where both changes are below {:.2g} %, it is called small.</p>\n<p>Two runs also differ by "
      "what changed between them beside the hardware: temperature, other load, firmware. A difference that is shown "
      "says "
      "that the runs differ, and not why. One that is not shown may be there.</p>\n",
      kMostExact, all.demands.alpha, all.threshold, 100 * all.demands.smallest_change);
}

std::string banner(const char* word, const char* text) {
  return fmt::format("<div class=\"banner\"><div class=\"word\">{}</div><p>{}</p></div>\n", word, text);
}

}  // namespace

std::string comparison_page(const Comparison& all, const Side& a, const Side& b) {
  const auto is = [&](const char* standing) { return a.standing == standing || b.standing == standing; };
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  html +=
      fmt::format("<title>Comparison: {} and {}</title>\n<style>{}{}{}</style>\n</head>\n<body>\n<main>\n",
                  escape(a.content.run.plan.site.name), escape(b.content.run.plan.site.name),
                  page::style_sheet("Comparison of two runs"), kSheet, is("simulated") ? page::watermark_style() : "");
  if (is("simulated")) html += "<div class=\"watermark\" aria-hidden=\"true\">SIMULATION</div>\n";
  html += "<div class=\"masthead\"><b>ASSAY</b><span>Comparison</span></div>\n<h1>Comparison of two runs</h1>\n";
  if (is("simulated"))
    html += banner("SIMULATION", "At least one of the runs is simulated: its figures were not measured.");
  if (is("unsigned") || is("signature_not_checked"))
    html += banner("NOT VERIFIED", "No signature vouches for at least one of the runs, or none was checked.");
  html += head_table(a, b) + "<h2>What is not the same</h2>\n";
  html += all.notes.empty() ? "<p>Nothing beside the figures.</p>\n" : list(all.notes);
  if (!all.targets.empty()) html += "<p>The targets of B (is), beside those of A (expected):</p>\n" + list(all.targets);
  html += "<h2>Requirements</h2>\n" + requirement_table(all) + "<h2>Outcomes that changed</h2>\n" + changed_table(all);
  html += method(all) + "<h2>Figures</h2>\n";
  for (const auto& pair : all.requirements) html += requirement_section(pair, a, b);
  return html + "<p class=\"end\">— end of comparison —</p>\n</main>\n</body>\n</html>\n";
}

}  // namespace assay::compare
