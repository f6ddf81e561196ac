// search_fleet: a run in memory whose nodes miss a limit in groups that a test names, and the searches of it.
#pragma once

#include <algorithm>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "orchestrator/judge/locate/searches.h"
#include "orchestrator/judge/run_verdict.h"
#include "tests/unit/fixture.h"

namespace assay::fixture {

using Names = std::vector<std::string>;
using IsShort = std::function<bool(const Names& nodes)>;

inline constexpr const char* kByRack =
    R"({"probe": "fabric", "scope": "group", "limit": {"at_least": 100, "unit": "B/s"}})";
inline constexpr const char* kAlone = R"({"limit": {"at_least": 100, "unit": "B/s"}})";
inline constexpr const char* kOfFleet =
    R"({"probe": "fabric", "scope": "group", "limit": {"at_least": 0.9, "unit": "B/s", "of": "fleet_median"}})";

inline bool holds(const Names& nodes, const std::string& name) { return std::ranges::find(nodes, name) != nodes.end(); }
inline IsShort with(const std::string& name) {
  return [name](const Names& nodes) { return holds(nodes, name); };
}
inline IsShort with_both(const std::string& a, const std::string& b) {
  return [a, b](const Names& nodes) { return holds(nodes, a) && holds(nodes, b); };
}

/// A run in memory whose probes give 110 B/s, or 50 where `is_short` says so of their nodes.
struct Fleet : MemoryRun {
  IsShort is_short;
  bool sums;  ///< whether the figure is a sum over the nodes

  Fleet(const std::vector<std::string>& requirements, int nodes, IsShort given, bool is_sum = false)
      : MemoryRun(requirements, nodes), is_short(std::move(given)), sums(is_sum) {
    for (const auto& step : plan.steps) {
      for (int attempt = 0; attempt < step.attempts; ++attempt) make(step, "");
    }
  }
  /// A measured run of another plan.
  Fleet(plan::Plan given_plan, IsShort given) : MemoryRun({kWhole}), is_short(std::move(given)), sums(false) {
    plan = std::move(given_plan);
    for (const auto& node : plan.site.nodes) journal.node_facts[node.name] = {{"name", node.name}};
    for (const auto& step : plan.steps) make(step, "");
  }

  [[nodiscard]] std::string record(const plan::Step& step, std::size_t rank) const {
    std::ostringstream out;
    const bool alone = step.probe == "disk";
    Recorder recorder(out, alone ? kSpec : kFabricSpec,
                      {.probe = step.probe,
                       .revision = 1,
                       .parameters = plan::parameters_of(plan.site, step, rank),
                       .rank = static_cast<int>(rank),
                       .world = static_cast<int>(step.nodes.size()),
                       .host = {{"name", step.nodes[rank]}}});
    const double each = sums ? static_cast<double>(step.nodes.size()) : 1;
    const Sampling sampling{.samples = std::vector<double>(10, each * (is_short(step.nodes) ? 50.0 : 110.0)),
                            .warmup = {},
                            .stopped = "stable"};
    if (alone)
      recorder.measurement("bandwidth", sampling);
    else if (rank == 0)
      recorder.measurement("bandwidth", sampling, {"group", "all"});
    recorder.end({.status = Status::complete, .reason = ""});
    return out.str();
  }

  /// One attempt of a step, or of a test that has a purpose.
  void make(const plan::Step& step, const std::string& purpose) {
    judge::Attempt attempt{.step = step.id,
                           .number = static_cast<int>(journal.attempts.of(step.id).size()) + 1,
                           .node = step.nodes.front(),
                           .outcome = AttemptOutcome::exited,
                           .reason = "",
                           .begin = "b",
                           .end = "e",
                           .evidence = {},
                           .nodes = purpose.empty() ? Names{} : step.nodes,
                           .purpose = purpose};
    for (std::size_t rank = 0; rank < step.nodes.size(); ++rank) {
      const std::string path = judge::record_path(step.id, attempt.number, static_cast<int>(rank));
      files[path] = record(step, rank);
      attempt.evidence.push_back({.path = path, .sha256 = files::sha256(files[path]), .bytes = files[path].size()});
    }
    journal.attempts.push_back(std::move(attempt));
  }

  /// Makes what the searches ask for, as the runner does, but no more than `most` tests.
  Fleet& search(std::size_t most = 1000) {
    judge::Searches searches(plan, judge::judge_run(plan, "digest", journal, reader())->results, journal, reader());
    journal.localising = !searches.open().empty();
    for (auto open = searches.open(); !open.empty() && most > 0; open = searches.open()) {
      for (const auto& test : open) {
        if (most-- == 0) return *this;
        make(test.step, test.test.purpose);
        judge::Journal part;
        part.attempts = {journal.attempts.back()};
        part.node_facts = journal.node_facts;
        searches.take(test.step.id, *searches.shown(test, part, reader()));
      }
    }
    return *this;
  }

  [[nodiscard]] std::expected<judge::Verdict, InputError> judged() const {
    return judge::judge_run(plan, "digest", journal, reader());
  }
};

}  // namespace assay::fixture
