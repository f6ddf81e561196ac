// shell: head, banner and the table of flags.
#include "reports/nightly/shell.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "probes/core/words.h"
#include "reports/figures/html.h"
#include "reports/page/style.h"

namespace assay::nightly {
namespace {

using figures::escape;

constexpr std::string_view kSheet = R"css(
body { max-width: 270mm; }
svg .unseen { fill: var(--paper); } svg #hatch path { stroke: var(--soft); stroke-width: 0.9; } svg .not_due { fill: #eef1f5; } svg .busy { fill: #d5dbe4; } svg .preempted { fill: #c3cad6; }
svg .not_measured { fill: url(#hatch); } svg .measured { fill: #cfe5d7; } svg .watch { fill: #f0dfb4; }
svg .flagged { fill: #d98a1f; } svg .confirmed { fill: #9b1c1c; }
svg .night-value { fill: var(--blue); } svg .retest { stroke: var(--blue); stroke-width: 1.4; }
svg .cohort { stroke: var(--soft); stroke-width: 1; fill: none; } svg .expected { fill: var(--blue); fill-opacity: 0.16; } svg .onset { stroke: var(--bad); stroke-width: 1.4; stroke-dasharray: 3 2; }
svg .event { stroke: var(--ink); stroke-width: 0.8; stroke-dasharray: 1 2; } svg .accepted { stroke: var(--good); stroke-width: 1.2; stroke-dasharray: 5 3; }
@media screen and (max-width: 640px) { .scroll > table.flags { min-width: 210mm; } }
table.flags td:nth-child(-n+3), table.flags td:nth-child(5), table.flags td:last-child { white-space: nowrap; }
.state { font-weight: 600; white-space: nowrap; } .state.confirmed, .state.draining, .state.lemon { color: var(--bad); } .state.flagged, .state.stale { color: var(--warn); }
)css";

int weight(drift::UnitState state) {
  using enum drift::UnitState;
  constexpr std::array kOrder = {lemon, confirmed, draining, flagged, stale, repaired, watch};
  return static_cast<int>(std::ranges::find(kOrder, state) - kOrder.begin());
}

}  // namespace

std::string page_of(std::string_view title, bool simulated, const std::string& body) {
  std::string page =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">";
  page += fmt::format("<title>{}</title><style>{}{}{}</style></head><body>\n", escape(title),
                      page::style_sheet("assay"), kSheet, simulated ? page::watermark_style() : "");
  if (simulated) {
    page +=
        "<div class=\"watermark\" aria-hidden=\"true\">SIMULATION</div>"
        "<div class=\"banner\"><div class=\"word\">SIMULATION</div><p>No figure on this page was measured.</p></div>\n";
  }
  page += fmt::format("<h1>{}</h1>\n", escape(title));
  return page + body + "</body></html>\n";
}

std::vector<const drift::Flag*> by_weight(const std::vector<drift::Flag>& flags) {
  std::vector<const drift::Flag*> order;
  for (const auto& flag : flags) order.push_back(&flag);
  std::ranges::stable_sort(order, {}, [](const drift::Flag* flag) {
    return std::pair(weight(flag->state), flag->type == drift::MetricClass::level ? flag->ratio : 0.0);
  });
  return order;
}

std::string action_words(const drift::Flag& flag, drift::Date today) {
  const auto& table = profiles::actions();
  const auto advice = drift::action_of(flag);
  const std::string age = table.age_words(drift::date_text(today));
  if (advice.says.empty()) return fmt::format("{} ({})", short_words(advice), age);
  return fmt::format("{}: {} ({}; {})", short_words(advice), advice.says, table.source_words(advice), age);
}

std::string change_words(const drift::Flag& flag) {
  if (flag.type == drift::MetricClass::count) return fmt::format("{:.0f} events", flag.ratio);
  if (flag.type == drift::MetricClass::state) return "not as expected";
  const auto percent = [](double ratio) { return 100 * (ratio - 1); };
  return fmt::format("{:+.1f} % ({:+.1f} to {:+.1f} %)", percent(flag.ratio), percent(flag.ratio_low),
                     percent(flag.ratio_high));
}

std::string flags_table(const std::vector<const drift::Flag*>& flags) {
  if (flags.empty()) return "";
  std::vector<std::string> rows;
  for (const auto* flag : flags) {
    const std::string state(word_of(flag->state));
    std::string place = escape(flag->node);
    if (!flag->slot.empty()) place += ", " + escape(flag->slot);
    std::string suspects;
    for (const auto& one : flag->suspects) suspects += (suspects.empty() ? "" : "; ") + escape(one);
    rows.push_back(figures::row(
        {fmt::format("<span class=\"state {0}\">{0}</span>", state),
         fmt::format("{}<br><small>{}{}</small>", place, escape(flag->unit), flag->serial ? "" : " (no serial number)"),
         escape(flag->metric), change_words(*flag), drift::date_text(flag->onset),
         fmt::format("{} re-tests", flag->retests.size()),
         escape(flag->words) + (suspects.empty() ? "" : "<br><small>in common: " + suspects + "</small>") +
             "<br><small>action: " + escape(short_words(drift::action_of(*flag))) + "</small>",
         fmt::format("<code>{}</code>", escape(flag->id))}));
  }
  return figures::table("flags", "Flags",
                        {"State", "Where", "Metric", "Change", "Since", "Tests", "What it means", "Flag"}, rows);
}

}  // namespace assay::nightly
