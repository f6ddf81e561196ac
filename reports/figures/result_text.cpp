// result_text: texts for outcomes, subjects, targets and placements.
#include "reports/figures/result_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "orchestrator/judge/overall/ranking.h"
#include "orchestrator/plan/contrast.h"
#include "orchestrator/plan/derived.h"
#include "probes/core/portable_math.h"
#include "reports/figures/html.h"

namespace assay::figures {
namespace {

/// "450.0 GB/s"; if that is rounded, "449.9 GB/s (449876543210 B/s)".
std::string with_exact(double value, const std::string& unit) {
  if (unit == "1") return exact_text(value, unit);
  const Scale scale = scale_for(std::span(&value, 1), unit);
  constexpr double kSame = 1e-12;  // relative; the product with the prefix may differ in the last bit
  const std::string number = scale.number(value);
  double shown = 0;  // stays so beyond the largest double
  (void)std::from_chars(number.data(), number.data() + number.size(), shown);
  shown *= scale.factor;
  if (std::abs(shown - value) <= kSame * std::abs(value)) return scale.text(value);
  return fmt::format("{} ({})", scale.text(value), exact_text(value, unit));
}

/// Words in a column of numbers.
std::string demand_html(const std::string& text) {
  return fmt::format("<span class=\"demand\">{}</span>", escape(text));
}

}  // namespace

std::string outcome_words(judge::Outcome outcome) {
  std::string words = judge::to_string(outcome);
  std::ranges::replace(words, '_', ' ');
  return words;
}

std::string outcome_box(judge::Outcome outcome) {
  return fmt::format("<span class=\"outcome {}\">{}</span>", judge::to_string(outcome), outcome_words(outcome));
}

std::string outcome_letter(judge::Outcome outcome) {
  switch (outcome) {
    case judge::Outcome::pass:
      return "P";
    case judge::Outcome::conditional_pass:
      return "CP";
    case judge::Outcome::conditional_fail:
      return "CF";
    case judge::Outcome::fail:
      return "F";
    case judge::Outcome::inconclusive:
      return "I";
    case judge::Outcome::not_measured:
      return "N";
    case judge::Outcome::error:
      return "E";
  }
  return "E";
}

std::string requirement_number(const plan::Profile& profile, const std::string& id) {
  const auto& all = profile.requirements;
  return fmt::format("R{}", std::ranges::find(all, id, &plan::Requirement::id) - all.begin() + 1);
}

std::string placement_words(const plan::Requirement& requirement) {
  std::string words = requirement.plane.empty() ? "" : "plane " + requirement.plane;
  const auto add = [&](const std::string& more) { words += (words.empty() ? "" : "; ") + more; };
  if (requirement.scope == plan::JudgedScope::pair) {
    const auto choice = requirement.pairs.value_or(plan::PairChoice::all);
    std::string which = choice == plan::PairChoice::all ? "" : fmt::format(" {}", choice);
    std::ranges::replace(which, '_', ' ');
    add(fmt::format("pairs{}, {}", which, requirement.alone ? "one pair at a time" : "all pairs of a round at once"));
  }
  if (requirement.scope == plan::JudgedScope::group)
    add(fmt::format("groups: {}", requirement.by.value_or(plan::Grouping::rack)));
  if (requirement.scope == plan::JudgedScope::cluster) add("all nodes at once");
  return words;
}

std::string judged_words(const plan::Requirement& requirement) {
  return requirement.demand ? requirement.figure()
                            : fmt::format("{} of {}", requirement.statistic, requirement.figure());
}

std::string target_words(const plan::Profile& profile, const plan::Requirement& requirement) {
  if (const auto& contrast = requirement.contrast)
    return fmt::format("{}, {} against {}, as {} shows", plan::gain_words(*contrast),
                       plan::switch_words(*contrast, true), plan::switch_words(*contrast, false), contrast->shown_by);
  if (requirement.demand)
    return requirement.demand->site.empty() ? words_of(*requirement.demand)
                                            : fmt::format("the {} in the site", requirement.demand->site);
  const plan::Limit& limit = requirement.limit;
  const auto side = [&](double stated) -> std::string {
    std::string share = fmt::format("{:.15g} × ", stated);
    switch (limit.reference) {
      case plan::Reference::none:
        return with_exact(stated, limit.unit);
      case plan::Reference::peak: {
        const plan::Peak& peak = profile.peaks.at(limit.name);
        return fmt::format("{}design peak {} ({})", share, limit.name, with_exact(peak.value, peak.unit));
      }
      case plan::Reference::metric:
        return fmt::format("{}measured {}", share, limit.name);
      case plan::Reference::best_sample:
        return share + "best sample";
      case plan::Reference::fleet_median:
        return share +
               (requirement.scope == plan::JudgedScope::pair ? "90th percentile of the pairs" : "median of the fleet");
      case plan::Reference::derived:
        return fmt::format("{}{} ({})", share, limit.name, plan::derived_figure(limit.name)->meaning);
      case plan::Reference::smallest_group:
        return share + "value of the smallest group";
      case plan::Reference::smallest_group_by_nodes:
        if (!limit.capped_by.empty()) {
          const plan::Peak& peak = profile.peaks.at(limit.capped_by);
          return fmt::format(
              "{}the lesser of the value of the smallest group, scaled to the number of nodes, and {} ({})", share,
              limit.capped_by, with_exact(peak.value, peak.unit));
        }
        return share + "value of the smallest group, scaled to the number of nodes";
    }
    return share;
  };
  std::string words;
  if (limit.at_least) words = "≥ " + side(*limit.at_least);
  if (limit.at_most) words += (words.empty() ? "≤ " : " and ≤ ") + side(*limit.at_most);
  return words;
}

Scale column_scale(std::span<const judge::Result* const> results) {
  constexpr double kFarApart = 1e4;  // in the unit of the smaller one the larger has too many digits to be read
  double smallest = 0, largest = 0;
  const auto take = [&](const std::optional<double>& one) {
    if (!one || *one == 0) return;
    largest = std::max(largest, std::abs(*one));
    smallest = smallest == 0 ? std::abs(*one) : std::min(smallest, std::abs(*one));
  };
  for (const judge::Result* result : results) take(result->value);
  if (largest == 0) {
    for (const judge::Result* result : results) {
      take(result->limit_low);
      take(result->limit_high);
    }
  }
  const double deciding = largest > kFarApart * smallest ? largest : smallest;
  return scale_for({&deciding, 1}, results.empty() ? "1" : results.front()->unit);
}

std::string number_text(const Scale& column, const judge::Result& result, double number) {
  constexpr int kSignificant = 4;
  std::vector<double> others;
  for (const auto& one : {result.limit_low, result.limit_high, result.acceptance_low, result.acceptance_high}) {
    if (one) others.push_back(*one);
  }
  if (result.value && std::ranges::find(others, number) != others.end()) others.push_back(*result.value);
  Scale own = column;
  const bool things = result.unit == "1" && number == std::floor(number);
  own.decimals = number == 0 || things
                     ? 0
                     : std::clamp(kSignificant - 1 - decimal_exponent(std::abs(number) / own.factor), 0, kMostDecimals);
  const auto looks_like = [&](double other) { return other != number && own.number(other) == own.number(number); };
  while (own.decimals < kMostDecimals && std::ranges::any_of(others, looks_like)) ++own.decimals;
  return own.number(number);
}

std::string text_in(const Scale& column, const judge::Result& result, double number) {
  const std::string text = number_text(column, result, number);
  return column.unit.empty() ? text : text + " " + column.unit;
}

std::string value_text(const judge::Result& result) {
  if (result.is_of_demand()) return judge::seen_text(result);
  const judge::Result* const one = &result;
  return result.value ? text_in(column_scale({&one, 1}), result, *result.value) : "—";
}

std::string value_html(const judge::Result& result) {
  return result.is_of_demand() ? demand_html(value_text(result)) : escape(value_text(result));
}

std::string limit_text(const Scale& column, const judge::Result& result, std::string_view separator) {
  if (result.is_of_demand()) return demand_html(judge::demanded_text(result));
  std::string text;
  if (result.limit_low) text = "≥ " + text_in(column, result, *result.limit_low);
  if (result.limit_high)
    text += fmt::format("{}≤ {}", text.empty() ? "" : separator, text_in(column, result, *result.limit_high));
  return text.empty() ? "—" : text;
}

std::string acceptance_text(const Scale& column, const judge::Result& result, std::string_view separator) {
  if (result.is_of_demand()) return demand_html(judge::demanded_text(result));
  std::string text;
  if (result.acceptance_low) text = "≥ " + text_in(column, result, *result.acceptance_low);
  if (judge::guard_exceeds_limit(result))
    return text + (text.empty() ? "" : std::string(separator)) + judge::kNoAcceptance;
  if (result.acceptance_high)
    text += fmt::format("{}≤ {}", text.empty() ? "" : separator, text_in(column, result, *result.acceptance_high));
  return text.empty() ? "—" : text;
}

std::string subject_words(const judge::Result& result) {
  if (result.subject.kind == "node" || result.subject.id == result.node) return result.node;
  return fmt::format("{} · {} {}", result.node, result.subject.kind, result.subject.id);
}

PlotRow plot_row(const judge::Result& result, std::vector<double> samples) {
  return {.label = subject_words(result),
          .samples = std::move(samples),
          .value = result.value,
          .interval = result.interval,
          .limit_low = result.limit_low,
          .limit_high = result.limit_high,
          .acceptance_low = result.acceptance_low,
          .acceptance_high = result.acceptance_high,
          .outcome = outcome_words(result.outcome),
          .passes = result.outcome == judge::Outcome::pass,
          .fails = result.outcome == judge::Outcome::fail || result.outcome == judge::Outcome::error};
}

}  // namespace assay::figures
