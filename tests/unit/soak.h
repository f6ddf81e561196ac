// soak: a probe that loads a node for hours, a profile that judges its interruptions, and runs of it in memory.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/fixture.h"

namespace assay::fixture {

inline constexpr Parameter kSoakParameters[] = {
    {.name = "load_least", .unit = "s", .fallback = "720min", .quick = "4s", .meaning = "wall time", .spent = 1}};
inline constexpr Metric kSoakMetrics[] = {
    {.name = "interruptions", .unit = "1", .better = Better::lower, .meaning = "by class", .kind = MetricKind::fault},
    {.name = "load_share", .unit = "1", .meaning = "time under load", .kind = MetricKind::share},
};
inline constexpr ProbeSpec kSoakSpec{.name = "soak",
                                     .measures = "Hours.",
                                     .method = "None.",
                                     .source = "None.",
                                     .parameters = kSoakParameters,
                                     .metrics = kSoakMetrics};

/// Its requirements, the limit of a node as given, and others.
inline std::vector<std::string> soak_requirements(int at_most = 9, const std::vector<std::string>& more = {}) {
  std::vector<std::string> all = {
      R"({"probe": "soak", "metric": "interruptions", "at": "every", "statistic": "max", "repeat": {"n": 1, "attempts": 1,
        "more_attempts": 0}, "limit": {"unit": "1", "at_most": )" +
          std::to_string(at_most) + "}}",
      R"({"probe": "soak", "metric": "load_share", "statistic": "min", "repeat": {"n": 1, "attempts": 1,
        "more_attempts": 0}, "limit": {"unit": "1", "at_least": 0.9}})"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

inline std::vector<plan::Program> soak_programs() {
  auto all = programs();
  all.push_back({.name = "soak",
                 .sha256 = std::string(64, 'd'),
                 .path = "/p/soak",
                 .description = *read_description(describe(kSoakSpec).dump(), "soak")});
  return all;
}

/// The plan of such a soak on `nodes` nodes by the agreement `text`, or the error of either.
inline std::expected<plan::Plan, InputError> soak_plan(
    const std::string& text, int nodes = 4, const std::vector<std::string>& requirements = soak_requirements(),
    bool quick = false) {
  auto agreed = plan::read_agreed_stability(text, "--stability");
  if (!agreed) return std::unexpected(agreed.error());
  return plan::make_plan(profile(requirements), site(nodes), soak_programs(),
                         {.quick = quick, .agreed_stability = *agreed});
}

/// What one attempt of one node records; a class is left out where its count is below 0.
struct SoakRecord {
  int ended = 0, silent = 0, error = 0;
  double load_share = 0.98;
};

/// A run of a soak on four nodes: 6 attempts of 12 hours, at most 4 interruptions, and an early stop.
struct SoakRun : MemoryRun {
  explicit SoakRun(
      const std::string& agreed = "hours=72,tolerated=4,refused=28,accepted=180,vendor=8,buyer=8,stop=early")
      : MemoryRun({R"({"limit": {"at_least": 1, "unit": "B/s"}})"}, 4) {  // whose plan is replaced
    auto made = soak_plan(agreed);
    if (!made) throw std::runtime_error(made.error().text());
    plan = std::move(*made);
  }

  /// The next attempt of the node with this index.
  void add(std::size_t node, const SoakRecord& shown, const std::string& outcome = "exited") {
    const auto step = plan.steps.at(node);
    std::ostringstream out;
    Recorder recorder(
        out, kSoakSpec,
        {.probe = "soak", .revision = 1, .parameters = step.parameters, .host = {{"name", step.nodes[0]}}});
    for (const auto& [word, count] :
         {std::pair{"ended", shown.ended}, {"silent", shown.silent}, {"error", shown.error}}) {
      if (count >= 0) recorder.measurement("interruptions", count * 1.0, {}, {{"class", std::string(word)}});
    }
    recorder.measurement("load_share", shown.load_share);
    recorder.end({.status = Status::complete, .reason = ""});
    attempt(node, outcome, outcome == "exited" ? out.str() : "", outcome == "exited" ? "" : "killed");
  }
  /// One attempt of every node, the first with so many interruptions.
  void add_all(int interruptions = 0) {
    for (std::size_t node = 0; node < plan.steps.size(); ++node) add(node, {.ended = node == 0 ? interruptions : 0});
  }
};

}  // namespace assay::fixture
