// result_text: texts for outcomes, subjects, targets and placements.
#include "reports/figures/result_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/plan/derived.h"

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

std::string target_words(const plan::Profile& profile, const plan::Requirement& requirement) {
  const plan::Limit& limit = requirement.limit;
  const auto side = [&](double stated) -> std::string {
    const std::string share = fmt::format("{:.15g} × ", stated);
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

Scale result_scale(const judge::Result& result) {
  std::vector<double> side_by_side;
  for (const auto& one :
       {result.value, result.limit_low, result.limit_high, result.acceptance_low, result.acceptance_high}) {
    if (one) side_by_side.push_back(*one);
  }
  return scale_for(side_by_side, result.unit);
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
