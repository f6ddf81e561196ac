// repeat: reads the numbers of attempts and samples of a requirement and sets their defaults; see repeat.h.
#include "orchestrator/plan/repeat.h"

#include <fmt/format.h>

#include "probes/core/json_fields.h"

namespace assay::plan {
namespace {

using nlohmann::json;

// Three runs are the fewest with a useful spread; four more halve the uncertainty of open cells.
constexpr int kAttempts = 3;
constexpr int kMoreAttempts = 4;

}  // namespace

void take_repeat(const json& entry, Requirement& requirement) {
  const bool varies = varies_between_runs(requirement.statistic);
  const json repeat = entry.value("repeat", json::object());
  requirement.repeat_n = repeat.value("n", 10);
  requirement.attempts = repeat.value("attempts", varies ? kAttempts : 1);
  requirement.more_attempts = repeat.value("more_attempts", varies ? kMoreAttempts : 0);
  if (const auto stated = entry.find("reproducibility"); stated != entry.end())
    requirement.reproducibility = Reproducibility{.u = stated->at("u"), .source = stated->at("source").get<Source>()};
}

void put_repeat(const Requirement& requirement, json& object) {
  object["repeat"] = {
      {"n", requirement.repeat_n}, {"attempts", requirement.attempts}, {"more_attempts", requirement.more_attempts}};
  if (const auto& stated = requirement.reproducibility)
    object["reproducibility"] = {{"u", stated->u}, {"source", stated->source}};
}

std::optional<InputError> check_repeat(const Requirement& requirement, const std::string& here) {
  if (requirement.reproducibility && requirement.required &&
      requirement.reproducibility->source.status == "unsourced") {
    return InputError{here + ".reproducibility.source.status", "the reproducibility of a required figure is unsourced",
                      "name the source, or let it be measured: repeat.attempts 3"};
  }
  if (!requirement.required || requirement.attempts > 1 || requirement.reproducibility ||
      !varies_between_runs(requirement.statistic))
    return std::nullopt;
  return InputError{here + ".repeat.attempts",
                    fmt::format("is 1, and the {} of one run does not show how far the next one would be from it",
                                requirement.statistic),
                    "measure it in at least 2 attempts (3 by default), or state `reproducibility` with its source"};
}

}  // namespace assay::plan
