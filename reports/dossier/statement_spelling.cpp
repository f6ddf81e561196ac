// statement_spelling: every decimal string and time of a statement.
#include "reports/dossier/statement_spelling.h"

#include <charconv>
#include <initializer_list>
#include <system_error>

#include <fmt/format.h>

#include "probes/core/es6_number.h"
#include "probes/core/utc_time.h"

namespace assay::dossier {
namespace {

using nlohmann::json;

/// Members of a result whose numbers are decimal strings.
constexpr std::initializer_list<const char*> kResultNumbers = {
    "value", "u", "reference", "limitLow", "limitHigh", "acceptanceLow", "acceptanceHigh", "margin", "falseAccept"};

bool is_decimal(const std::string& text) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && rest == text.data() + text.size() && es6_number(number) == text;
}

/// Checks that the numbers `names` of `object`, if it has them, are spelt as es6_number does.
std::optional<InputError> check_decimals(const json& object, std::initializer_list<const char*> names,
                                         const std::string& where) {
  for (const char* name : names) {
    const auto found = object.find(name);
    if (found == object.end() || is_decimal(found->get_ref<const std::string&>())) continue;
    return InputError{fmt::format("{}.{}", where, name), fmt::format("{} is not a canonical decimal", found->dump()),
                      "a number in a statement has one spelling, that of ECMAScript"};
  }
  return std::nullopt;
}

std::optional<InputError> check_time(const json& object, const char* name, const std::string& where) {
  const auto found = object.find(name);
  if (found == object.end() || is_utc_text(found->get_ref<const std::string&>())) return std::nullopt;
  return InputError{fmt::format("{}.{}", where, name), fmt::format("{} is not a time", found->dump()),
                    "write UTC with milliseconds: 2026-01-05T06:37:41.211Z"};
}

}  // namespace

std::optional<InputError> check_spelling(const json& predicate, const std::string& where) {
  if (auto problem = check_time(predicate, "issuedAt", where)) return problem;
  if (predicate.contains("supersedes")) {
    if (auto problem = check_time(predicate.at("supersedes"), "issuedAt", where + ".supersedes")) return problem;
  }
  for (const char* name : {"startedAt", "finishedAt"}) {
    if (auto problem = check_time(predicate.at("run"), name, where + ".run")) return problem;
  }
  if (auto problem = check_decimals(predicate.at("decisionRule"), {"guardFactor", "confidence", "maxFalseAccept"},
                                    where + ".decisionRule"))
    return problem;
  if (const auto risk = predicate.at("plan").find("agreedRisk"); risk != predicate.at("plan").end()) {
    if (auto problem = check_decimals(*risk,
                                      {"beyond", "vendorRisk", "shortBy", "buyerRisk", "betweenNodes", "betweenRuns",
                                       "vendorRiskOfPlan", "buyerRiskOfPlan"},
                                      where + ".plan.agreedRisk"))
      return problem;
  }
  if (const auto agreed = predicate.at("plan").find("agreedStability"); agreed != predicate.at("plan").end()) {
    const std::string here = where + ".plan.agreedStability";
    if (auto problem = check_decimals(*agreed,
                                      {"hours", "refusedMtbfHours", "acceptedMtbfHours", "vendorRisk", "buyerRisk",
                                       "vendorRiskOfPlan", "buyerRiskOfPlan"},
                                      here))
      return problem;
    for (const auto& look : agreed->at("looks")) {
      if (auto problem = check_decimals(look, {"hours"}, here + ".looks")) return problem;
    }
  }
  const auto& results = predicate.at("results");
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string here = fmt::format("{}.results[{}]", where, i);
    if (auto problem = check_decimals(results[i], kResultNumbers, here)) return problem;
    const auto interval = results[i].find("ci");
    if (interval == results[i].end()) continue;
    if (auto problem = check_decimals(*interval, {"low", "high", "level"}, here + ".ci")) return problem;
  }
  return std::nullopt;
}

}  // namespace assay::dossier
