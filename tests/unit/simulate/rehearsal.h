// rehearsal: a simulation from its plan to its summary, for tests.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/judge/run_verdict.h"
#include "orchestrator/simulate/simulate.h"
#include "tests/unit/fixture.h"

namespace assay::simulate {

inline constexpr const char* kAlone =
    R"({"limit": {"at_least": 100, "unit": "B/s"}, "conditions": [{"name": "direct_io", "equals": true}]})";
inline constexpr const char* kClean =
    R"({"metric": "mismatches", "statistic": "max", "repeat": {"n": 1}, "limit": {"at_most": 0, "unit": "1"}})";
inline constexpr const char* kTogether =
    R"({"probe": "fabric", "scope": "cluster", "limit": {"at_least": 100, "unit": "B/s"}})";
inline constexpr const char* kByRack =
    R"({"probe": "fabric", "scope": "group", "by": "rack", "limit": {"at_least": 100, "unit": "B/s"}})";
inline constexpr const char* kFleet =
    R"({"metric": "raw_bandwidth", "limit": {"at_least": 0.9, "of": "fleet_median", "unit": "B/s"}})";

inline plan::Plan plan_of(const std::vector<std::string>& requirements, const FleetShape& shape,
                          const plan::Faults& faults = {}, std::uint64_t seed = 1) {
  plan::Plan plan = *plan::make_plan(fixture::profile(requirements), simulated_site(shape), fixture::programs(), {});
  plan.simulation = plan::Simulation{.seed = seed, .faults = faults};
  return plan;
}

/// A simulation from plan to summary.
struct Rehearsal {
  plan::Plan plan;
  SimulatedRun run;
  judge::Verdict verdict;
  SimulationSummary summary;

  explicit Rehearsal(plan::Plan given) : plan(std::move(given)), run(simulate(plan, "digest")) {
    auto judged = judge::judge_run(plan, "digest", run.journal, simulated_evidence(plan, run.journal, run.records));
    if (!judged) throw std::runtime_error(judged.error().text());
    verdict = std::move(*judged);
    summary = summarise(plan, run, verdict);
  }
};

/// A test as its search asked for it.
struct Asked {
  std::string id, purpose;
  std::vector<std::string> nodes;
  friend bool operator==(const Asked&, const Asked&) = default;
};

inline std::vector<Asked> tests_in(const judge::Journal& journal) {
  std::vector<Asked> all;
  for (const auto& attempt : journal.attempts) {
    if (attempt.is_extra()) all.push_back({.id = attempt.step, .purpose = attempt.purpose, .nodes = attempt.nodes});
  }
  return all;
}

}  // namespace assay::simulate
