// captions: texts that several captions share.
#include "reports/figures/captions.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <map>
#include <variant>

#include <fmt/format.h>

#include "probes/core/portable_math.h"
#include "reports/figures/html.h"
#include "reports/figures/result_text.h"
#include "reports/figures/shade.h"

namespace assay::figures {

std::string upper_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

StepIndex index_of_steps(const plan::Plan& plan) {
  StepIndex steps;
  steps.reserve(plan.steps.size());
  for (const auto& step : plan.steps) steps.emplace(step.id, &step);
  return steps;
}

std::string outcome_counts(std::span<const judge::Result* const> results) {
  std::map<judge::Outcome, std::size_t> counts;
  for (const judge::Result* one : results) ++counts[one->outcome];
  std::string words;
  for (const auto& [outcome, count] : counts)
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", count, outcome_words(outcome));
  return words;
}

std::vector<const judge::Result*> worst_of(std::span<const judge::Result* const> results, std::size_t most) {
  std::vector<const judge::Result*> worst;
  for (const judge::Result* one : results) {
    if (worst.size() == most && (most == 0 || !is_worse(*one, *worst.back()))) continue;
    if (worst.size() == most) worst.pop_back();
    worst.insert(std::ranges::upper_bound(
                     worst, one, [](const judge::Result* a, const judge::Result* b) { return is_worse(*a, *b); }),
                 one);
  }
  return worst;
}

std::string worst_words(std::span<const judge::Result* const> results) {
  constexpr std::size_t kNamed = 3;
  std::string words;
  for (const judge::Result* one : worst_of(results, kNamed)) {
    words += fmt::format("{}{} ({}{})", words.empty() ? "Worst: " : ", ", escape(subject_words(*one)),
                         outcome_words(one->outcome), one->value ? ", " + escape(value_text(*one)) : "");
  }
  return words.empty() ? words : words + ".";
}

std::string line_of(std::string_view name, const judge::Result& result) {
  return fmt::format("{} {}", name,
                     result.value ? for_people(*result.value, result.unit) : outcome_words(result.outcome));
}

std::vector<std::string> worst_lines(std::span<const judge::Result* const> results) {
  std::vector<std::string> lines;
  for (const judge::Result* one : worst_of(results, kWorstLines)) {
    if (lines.empty()) lines.emplace_back(kWorstHeading);
    lines.push_back(line_of(one->subject.kind == "pair" ? one->subject.id : subject_words(*one), *one));
  }
  return lines;
}

std::string setting_words(const plan::Requirement& requirement) {
  std::string words = requirement.plane.empty() ? "" : fmt::format(", plane {}", requirement.plane);
  if (const auto pairs = requirement.pairs.value_or(plan::PairChoice::all); pairs != plan::PairChoice::all)
    words += fmt::format(", pairs {}", pairs);
  for (const auto* values : {&requirement.at, &requirement.parameters}) {
    for (const auto& [name, value] : *values) {
      if (name == "sizes") continue;  // every measured size; the figure shows one
      const auto* text = std::get_if<std::string>(&value);
      const auto* whole = std::get_if<std::int64_t>(&value);
      const bool size = name == "size" && whole != nullptr;
      words += fmt::format(", {} {}", name,
                           size              ? size_words(static_cast<double>(*whole))
                           : text != nullptr ? *text
                                             : to_json(value).dump());
    }
  }
  return words;
}

Scale cell_scale(std::span<const judge::Result* const> results, std::string_view unit) {
  double largest = 0;
  for (const judge::Result* one : results) largest = std::max(largest, one->value ? std::abs(*one->value) : 0);
  constexpr double kSmallShare = 0.1;
  if (unit != "1" || largest == 0 || largest >= kSmallShare) return scale_for({&largest, 1}, unit);
  const int exponent = decimal_exponent(largest);
  return {.factor = power_of_ten(exponent), .unit = fmt::format("10^{}", exponent), .decimals = 3};
}

std::string cell_text(const judge::Result& result, const Scale& scale) {
  return result.value && result.outcome != judge::Outcome::inconclusive ? scale.number(*result.value) : "";
}

std::string kind_words(const plan::Plan& plan) { return plan.simulation ? "Simulated, not measured. " : ""; }

bool is_first_of_measurement(const plan::Plan& plan, const plan::Requirement& requirement) {
  const auto first = std::ranges::find_if(plan.profile.requirements, [&](const auto& one) {
    return !one.demand && one.probe == requirement.probe && one.scope == requirement.scope &&
           one.during == requirement.during && one.parameters == requirement.parameters;
  });
  return first != plan.profile.requirements.end() && first->id == requirement.id;
}

std::set<std::string> steps_of(const std::vector<const judge::Result*>& results) {
  std::set<std::string> steps;
  for (const auto* result : results) steps.insert(result->step);
  return steps;
}

std::string place_of(const plan::Plan& plan, const std::string& step, const Record& record) {
  const plan::Step* planned = plan.step(step);
  if (planned != nullptr && planned->nodes.size() == 1) return planned->nodes.front();
  const auto host = record.start.host.find("name");
  const auto* name = host == record.start.host.end() ? nullptr : std::get_if<std::string>(&host->second);
  return name == nullptr ? step : *name;
}

std::optional<double> number_of(const Record& record, std::string_view name) {
  const auto found = std::ranges::find(record.conditions, name, &Condition::name);
  return found == record.conditions.end() ? std::nullopt : number_in(found->value);
}

}  // namespace assay::figures
