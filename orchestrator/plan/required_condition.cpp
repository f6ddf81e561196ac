// required_condition: comparison, wording and checks of demands on conditions.
#include "orchestrator/plan/required_condition.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "orchestrator/plan/advisories.h"
#include "probes/core/record.h"
#include "probes/core/suggest.h"

namespace assay::plan {
namespace {

bool is_same(const Value& demanded, const Value& seen) {
  const auto number = number_in(seen);
  return number ? number == number_in(demanded) : demanded == seen;
}

/// A version that meets `range`: one of those it names, if any of them does.
std::optional<Value> meeting(const VersionRange& range) {
  std::vector<std::string> tried = range.one_of;
  if (!range.at_least.empty()) tried.push_back(range.at_least);
  for (const auto& span : range.outside) tried.push_back(span.below);
  for (const auto& one : range.known_bad) tried.push_back(one.span.below);
  tried.emplace_back("0");
  const auto found = std::ranges::find_if(tried, [&](const std::string& one) { return missed_of(range, one).empty(); });
  return found == tried.end() ? std::nullopt : std::optional<Value>(*found);
}

std::optional<InputError> check_version(const VersionRange& range, const std::string& here) {
  if (range == VersionRange{}) return InputError{here, "is empty, and any version would do", "give at_least, say"};
  if (const auto odd = odd_version(range)) {
    return InputError{fmt::format("{}.{}", here, odd->member),
                      fmt::format("'{}' is not a version, or not below the end of its range", odd->text),
                      "whole numbers with points between, and perhaps a suffix: 580.82.07, 5.15.0-113-generic"};
  }
  if (range.advisories.empty() != range.known_bad.empty() || range.known_bad.empty() != range.dated.empty()) {
    if (!range.advisories.empty()) return unknown_component(range.advisories, here + ".advisories");
    return InputError{here + ".known_bad", "is of no component", "give `advisories`; assay fills in the rest"};
  }
  if (range.dated == advisories().dated && range.known_bad != advisories_on(range.advisories))
    return InputError{here + ".known_bad", "is not what the table of advisories of " + range.dated + " has",
                      "leave it out with `dated`; assay fills in both"};
  if (meeting(range)) return std::nullopt;
  return InputError{here, "is met by none of the versions that it names", "at_least, below and ranges exclude all"};
}

}  // namespace

std::string version_in(const Value& seen) {
  if (const auto* text = std::get_if<std::string>(&seen)) return *text;
  const auto* number = std::get_if<std::int64_t>(&seen);
  return number == nullptr ? "" : std::to_string(*number);
}

Fit fit_of(const RequiredCondition& demand, const Value& seen) {
  const auto fit = [](bool met) { return met ? Fit::met : Fit::missed; };
  if (demand.equals) return fit(is_same(*demand.equals, seen));
  if (!demand.one_of.empty())
    return fit(std::ranges::any_of(demand.one_of, [&](const Value& one) { return is_same(one, seen); }));
  if (demand.version) {
    const std::string text = version_in(seen);
    return is_version(text) ? fit(missed_of(*demand.version, text).empty()) : Fit::unknown;
  }
  const auto number = number_in(seen);
  return fit(number && (!demand.at_least || *number >= *demand.at_least) &&
             (!demand.at_most || *number <= *demand.at_most));
}

std::string words_of(const RequiredCondition& demand) {
  if (demand.equals) return "= " + assay::to_json(*demand.equals).dump();
  if (demand.version) return words_of(*demand.version);
  std::string text;
  for (const auto& one : demand.one_of)
    text += fmt::format("{}{}", text.empty() ? "one of " : ", ", assay::to_json(one).dump());
  if (demand.at_least) text = fmt::format(">= {:g}", *demand.at_least);
  if (demand.at_most) text += fmt::format("{}<= {:g}", text.empty() ? "" : " and ", *demand.at_most);
  return text;
}

std::optional<Value> meeting(const RequiredCondition& demand) {
  if (demand.equals) return demand.equals;
  if (!demand.one_of.empty()) return demand.one_of.front();
  if (demand.version) return meeting(*demand.version);
  if (demand.at_least && demand.at_most) return (*demand.at_least + *demand.at_most) / 2;
  return demand.at_least ? demand.at_least : demand.at_most;
}

std::optional<InputError> check_condition(const RequiredCondition& demand, const std::string& here) {
  const int kinds = (demand.equals ? 1 : 0) + (demand.at_least || demand.at_most ? 1 : 0) +
                    (demand.one_of.empty() ? 0 : 1) + (demand.version ? 1 : 0) + (demand.site.empty() ? 0 : 1);
  if (kinds != 1)
    return InputError{here,
                      kinds == 0 ? "demands nothing of it" : "has two of equals, a bound, one_of, version and site",
                      "use one of them"};
  if (demand.at_least && demand.at_most && *demand.at_least > *demand.at_most)
    return InputError{here, "at_least is above at_most", "no value could meet it"};
  return demand.version ? check_version(*demand.version, here + ".version") : std::nullopt;
}

std::optional<InputError> check_recorded(const RequiredCondition& demand, const Description& probe,
                                         const std::string& here) {
  if (probe.has_condition(demand.name)) return std::nullopt;
  std::vector<std::string> names;
  for (const auto& condition : probe.conditions) names.push_back(condition.name);
  return InputError{here + ".name", fmt::format("{} records no '{}'", probe.name, demand.name),
                    suggestion(demand.name, names)};
}

}  // namespace assay::plan
