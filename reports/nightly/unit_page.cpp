// unit_page: from trends to HTML.
#include "reports/nightly/unit_page.h"

#include <algorithm>

#include <fmt/format.h>

#include "probes/core/scale.h"
#include "probes/core/words.h"
#include "reports/figures/html.h"
#include "reports/nightly/night_chart.h"
#include "reports/nightly/shell.h"

namespace assay::nightly {
namespace {

using figures::escape;

/// Four significant digits of a number without a unit.
std::string number(double value) { return for_people(value, "1"); }

std::string identity(const UnitTrend& one) {
  std::vector<std::pair<std::string, std::string>> rows = {
      {"State", fmt::format("<span class=\"state {0}\">{0}</span>", word_of(one.state))},
      {"Unit", fmt::format("{} <small>{}</small>", escape(one.unit.id),
                           one.unit.serial ? "by its serial number" : "no serial number is known")},
      {"Kind", escape(one.unit.kind)},
      {"Place", escape(one.unit.node) + (one.unit.slot.empty() ? "" : ", " + escape(one.unit.slot))}};
  if (!one.unit.leaf.empty()) rows.emplace_back("Leaf", escape(one.unit.leaf));
  if (!one.unit.rack.empty()) rows.emplace_back("Rack", escape(one.unit.rack));
  return figures::facts("Unit", rows);
}

std::string events_of(const UnitTrend& one) {
  if (one.events.empty()) return "";
  std::vector<std::string> rows;
  for (const auto& event : one.events)
    rows.push_back(figures::row({drift::date_text(event.night), escape(word_of(event.kind)), escape(event.scope),
                                 escape(event.text), escape(event.who)}));
  return figures::table("events", "Events", {"Night", "Kind", "Of", "Text", "By"}, rows);
}

std::string series_of(const SeriesTrend& series, const UnitTrend& unit, const drift::DriftReport& report,
                      drift::Date from) {
  const drift::Flag* flag = series.flag ? &report.flags[*series.flag] : nullptr;
  std::string out = fmt::format("<h3>{}</h3>\n", escape(series.metric.name));
  if (series.nights.empty()) return out + "<p>No figure in these nights.</p>\n";
  out += fmt::format(
      "<figure>{}<figcaption>{}; {} is better. Dots: nights; crosses: re-tests; line: median of comparable units; "
      "band: what the flag's reference expects.</figcaption></figure>\n",
      night_chart(series, flag, unit.events, from, report.as_of), escape(series.metric.probe),
      series.metric.lower_is_better ? "lower" : "higher");
  return flag == nullptr ? out : out + flag_details(*flag);
}

}  // namespace

std::string flag_details(const drift::Flag& flag) {
  const auto& terms = flag.arithmetic;
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"Flag", fmt::format("<code>{}</code>, {}, raised {}, rule {}", escape(flag.id), word_of(flag.state),
                           drift::date_text(flag.raised), word_of(flag.rule))},
      {"Meaning", escape(flag.words)},
      {"Change", change_words(flag)},
      {"Tonight, cohort's shift", fmt::format("x = {}, shift = {} (logarithms)", number(terms.x), number(terms.shift))},
      {"Reference", fmt::format("m = {}, s = {}, of n = {:.0f} visits, serial correlation {} taken out",
                                number(terms.m), number(terms.s), terms.n, number(terms.rho))},
      {"Residual, score", fmt::format("T = {}, z = {} among {} peers", number(terms.T), number(terms.z), terms.peers)},
      {"Chart",
       terms.h > 0 ? fmt::format("C = {} beyond h = {}", number(terms.C), number(terms.h)) : "not used by this rule"},
      {"Relapses in 28 nights", std::to_string(flag.relapses)}};
  std::string out = figures::facts("The numbers behind the flag", rows);
  if (flag.retests.empty()) return out;
  std::vector<std::string> tests;
  for (const auto& one : flag.retests)
    tests.push_back(
        figures::row({drift::date_text(one.night), one.regular ? "nightly visit" : "re-test", number(one.ratio),
                      number(one.residual), escape(one.partner), figures::digest_html(one.run_sha256)}));
  return out + figures::table("retests", "Re-tests", {"Night", "Kind", "Ratio", "Residual", "Partner", "Run"}, tests);
}

std::string unit_page(const std::string& name, const std::vector<UnitTrend>& units, const drift::DriftReport& report,
                      std::size_t most) {
  const auto from = report.as_of - std::chrono::days(most - 1);
  std::string body = fmt::format("<p class=\"subtitle\">Nights {} to {}</p>\n", drift::date_text(from),
                                 drift::date_text(report.as_of));
  for (const auto& one : units) {
    if (units.size() > 1) body += fmt::format("<h2>{}</h2>\n", escape(one.unit.id));
    body += identity(one) + events_of(one);
    for (const auto& series : one.series) body += series_of(series, one, report, from);
  }
  return page_of(name, report.simulated, body);
}

}  // namespace assay::nightly
