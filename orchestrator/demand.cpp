// demand: comparing recorded conditions with demanded ones.
#include "orchestrator/demand.h"

#include <algorithm>

#include <fmt/format.h>

#include "probes/core/json_io.h"

namespace assay {
namespace {

std::optional<double> number_in(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nullopt;
}

bool meets(const Demand& demand, const Value& seen) {
  const auto number = number_in(seen);
  if (demand.equals) return number ? number == number_in(*demand.equals) : *demand.equals == seen;
  if (!number) return false;
  return (!demand.at_least || *number >= *demand.at_least) && (!demand.at_most || *number <= *demand.at_most);
}

std::string words(const Demand& demand) {
  if (demand.equals) return "= " + to_json(*demand.equals).dump();
  std::string text;
  if (demand.at_least) text = fmt::format(">= {:g}", *demand.at_least);
  if (demand.at_most) text += fmt::format("{}<= {:g}", text.empty() ? "" : " and ", *demand.at_most);
  return text;
}

/// Takes what one record says of `demand` into `seen`; the first value that does not fit stays. Whether it says anything.
bool look(const Record& record, const Demand& demand, const Subject& subject, ConditionSeen& seen) {
  bool recorded = false;
  for (const auto& condition : record.conditions) {
    if (condition.name != demand.name || (condition.subject != subject && condition.subject.kind != "node")) continue;
    recorded = true;
    if (!seen.met) continue;
    seen.seen = condition.value;
    seen.met = meets(demand, condition.value);
  }
  return recorded;
}

}  // namespace

std::vector<ConditionSeen> check_demands(const Requirement& requirement, const Subject& subject,
                                         std::span<const Record* const> records, std::span<const Record* const> others) {
  std::vector<ConditionSeen> all;
  for (const auto& demand : requirement.conditions) {
    ConditionSeen seen{.name = demand.name, .demanded = words(demand), .seen = std::nullopt, .met = true};
    for (const Record* record : records) {
      if (look(*record, demand, subject, seen)) continue;
      seen.met = false;
      seen.seen = std::nullopt;
    }
    for (const Record* record : others) (void)look(*record, demand, subject, seen);  // a rank may have nothing to say
    all.push_back(std::move(seen));
  }
  return all;
}

std::string first_unmet(std::span<const ConditionSeen> seen) {
  const auto unmet = std::ranges::find(seen, false, &ConditionSeen::met);
  if (unmet == seen.end()) return "";
  return fmt::format("The condition {} {} is {}.", unmet->name, unmet->demanded,
                     unmet->seen ? "not met: it was " + to_json(*unmet->seen).dump() : "not recorded");
}

}  // namespace assay
