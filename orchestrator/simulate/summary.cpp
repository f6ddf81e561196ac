// summary: a simulated run against the faults that it was given: found, missed, false alarms.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "orchestrator/judge/searches.h"
#include "orchestrator/simulate/simulate.h"

namespace assay::simulate {
namespace {

using nlohmann::json;

bool is_bad(const judge::Result& result) {
  return result.outcome == judge::Outcome::fail || result.outcome == judge::Outcome::conditional_fail ||
         result.outcome == judge::Outcome::error;
}

std::string pair_name(const std::string& a, const std::string& b) { return a < b ? a + " " + b : b + " " + a; }

/// Everything that cells and searches accuse.
struct Accused {
  std::set<std::string> nodes, pairs;
};

Accused accused_by(const plan::Plan& plan, const judge::Verdict& verdict) {
  Accused all{.nodes = judge::bad_alone(plan, verdict.results), .pairs = {}};
  for (const auto& result : verdict.results) {
    if (result.subject.kind != "pair" || !is_bad(result)) continue;
    const auto plus = result.subject.id.find('+');
    all.pairs.insert(pair_name(result.subject.id.substr(0, plus), result.subject.id.substr(plus + 1)));
  }
  for (const auto& one : verdict.localised) {
    for (const auto& culprit : one.culprits) {
      if (culprit.fault == judge::Fault::pair)
        all.pairs.insert(pair_name(culprit.nodes.front(), culprit.nodes.back()));
      else
        all.nodes.insert(culprit.nodes.begin(), culprit.nodes.end());
    }
  }
  return all;
}

std::string duration(double seconds) {
  const auto whole = static_cast<long>(std::lround(seconds));
  return fmt::format("{}:{:02}:{:02} h", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

SimulationSummary summarise(const plan::Plan& plan, const SimulatedRun& run, const judge::Verdict& verdict) {
  SimulationSummary summary{.nodes = plan.site.nodes.size(),
                            .requirements = plan.profile.requirements.size(),
                            .steps = plan.steps.size(),
                            .cells = plan.coverage.size(),
                            .attempts = static_cast<std::size_t>(std::ranges::count_if(
                                run.journal.attempts, [](const judge::Attempt& one) { return !one.is_extra(); })),
                            .duration_s = run.duration_s,
                            .localisation_s = run.localisation_s,
                            .rounds = run.rounds,
                            .found = {},
                            .missed = {},
                            .false_alarms = {},
                            .accusations = {},
                            .would_be = verdict.reason};
  for (const auto& one : verdict.localised) {
    summary.tests_budget += one.budget;
    summary.tests += one.tests.size();
    for (const auto& culprit : one.culprits)
      summary.accusations.push_back(fmt::format("{}: {}", fmt::join(one.requirements, ", "), culprit.words));
  }
  const Accused accused = accused_by(plan, verdict);
  const plan::Faults& faults = plan.simulation->faults;
  std::set<std::string> bad_nodes(faults.dead.begin(), faults.dead.end());
  std::set<std::string> bad_links;
  for (const auto& name : faults.dead) {
    (accused.nodes.contains(name) ? summary.found : summary.missed).push_back("dead " + name);
  }
  for (const auto& fault : faults.faults) {
    const bool link = !fault.other.empty();
    const std::string name = link ? pair_name(fault.node, fault.other) : fault.node;
    (link ? bad_links : bad_nodes).insert(name);
    // A node with several bad links is rightly accused by itself.
    const bool hit =
        link ? accused.pairs.contains(name) || accused.nodes.contains(fault.node) || accused.nodes.contains(fault.other)
             : accused.nodes.contains(name);
    (hit ? summary.found : summary.missed).push_back((link ? "link " : "node ") + name);
  }
  const auto end_of_link = [&](const std::string& node) {
    return std::ranges::any_of(faults.faults, [&](const plan::SimulatedFault& fault) {
      return !fault.other.empty() && (fault.node == node || fault.other == node);
    });
  };
  for (const auto& node : accused.nodes) {
    if (!bad_nodes.contains(node) && !end_of_link(node)) summary.false_alarms.push_back("node " + node);
  }
  for (const auto& pair : accused.pairs) {
    const auto space = pair.find(' ');
    if (!bad_links.contains(pair) && !bad_nodes.contains(pair.substr(0, space)) &&
        !bad_nodes.contains(pair.substr(space + 1))) {
      summary.false_alarms.push_back("link " + pair);
    }
  }
  return summary;
}

std::string summary_text(const SimulationSummary& summary) {
  std::string text = "SIMULATION: nothing was measured\n";
  text += fmt::format("{} nodes, {} requirements, {} steps, {} cells, {} attempts\n", summary.nodes,
                      summary.requirements, summary.steps, summary.cells, summary.attempts);
  text += fmt::format("expected duration  {}, and {} to localise\n", duration(summary.duration_s),
                      duration(summary.localisation_s));
  text += fmt::format("tests to localise  {} in {} rounds, of {} that the budget has\n", summary.tests, summary.rounds,
                      summary.tests_budget);
  text += fmt::format("faults             {} found, {} missed, {} false alarms\n", summary.found.size(),
                      summary.missed.size(), summary.false_alarms.size());
  constexpr std::size_t kMostLines = 20;
  const auto list = [&](const char* word, const std::vector<std::string>& lines) {
    for (std::size_t i = 0; i < std::min(lines.size(), kMostLines); ++i)
      text += fmt::format("  {:<12} {}\n", word, lines[i]);
    if (lines.size() > kMostLines) text += fmt::format("  {:<12} and {} more\n", word, lines.size() - kMostLines);
  };
  list("found", summary.found);
  list("missed", summary.missed);
  list("false alarm", summary.false_alarms);
  list("accused", summary.accusations);
  return text + summary.would_be + "\n";
}

json to_json(const SimulationSummary& summary) {
  return {{"schema", "assay.simulation/1"},
          {"kind_of_run", plan::kSimulated},
          {"nodes", summary.nodes},
          {"requirements", summary.requirements},
          {"steps", summary.steps},
          {"cells", summary.cells},
          {"attempts", summary.attempts},
          {"duration_s", summary.duration_s},
          {"localisation_s", summary.localisation_s},
          {"tests_budget", summary.tests_budget},
          {"tests", summary.tests},
          {"rounds", summary.rounds},
          {"found", summary.found},
          {"missed", summary.missed},
          {"false_alarms", summary.false_alarms},
          {"accusations", summary.accusations},
          {"would_be", summary.would_be}};
}

}  // namespace assay::simulate
