// summary: the searches after a simulated run, and how much of what is wrong was found.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "orchestrator/judge/searches.h"
#include "orchestrator/plan/search_budget.h"
#include "orchestrator/simulate/fleet_model.h"
#include "orchestrator/simulate/simulate.h"

namespace assay::simulate {
namespace {

using nlohmann::json;

bool is_bad(const judge::Result& result) {
  return result.outcome == judge::Outcome::fail || result.outcome == judge::Outcome::conditional_fail ||
         result.outcome == judge::Outcome::error;
}

/// Puts one search through, with the model as the fleet.
void search(const FleetModel& model, const plan::Step& step, const plan::Requirement& requirement,
            Localisation& localisation) {
  const auto names_of = [&](const std::vector<std::size_t>& nodes) {
    std::vector<std::string> names;
    for (const std::size_t node : nodes) names.push_back(localisation.peers[node].name);
    return names;
  };
  const auto outcome_of = [&](const std::vector<std::string>& names) {
    const bool bad = model.falls_short(step, requirement, names,
                                       fmt::format("{}.{}.{}", step.id, requirement.id, ++localisation.tests));
    return bad ? judge::TestOutcome::short_of_limit : judge::TestOutcome::good;
  };
  if (!localisation.excluded.empty()) {
    std::vector<std::size_t> all(localisation.peers.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    ++localisation.rounds;
    if (outcome_of(names_of(all)) == judge::TestOutcome::good) {
      localisation.finding.complete = true;
      return;
    }
  }
  judge::Localiser localiser(localisation.peers, localisation.budget - localisation.tests);
  for (auto round = localiser.next(); !round.empty(); round = localiser.next()) {
    for (const auto& test : round) localiser.take(test, outcome_of(names_of(test.nodes)));
    ++localisation.rounds;
  }
  localisation.finding = localiser.finding();
}

std::string pair_name(const std::string& a, const std::string& b) { return a < b ? a + " " + b : b + " " + a; }

/// Everything that cells and searches accuse.
struct Accused {
  std::set<std::string> nodes, pairs;
};

Accused accused_by(const plan::Plan& plan, const judge::Verdict& verdict, const std::vector<Localisation>& searches) {
  Accused all{.nodes = judge::bad_alone(plan, verdict.results), .pairs = {}};
  for (const auto& result : verdict.results) {
    if (result.subject.kind != "pair" || !is_bad(result)) continue;
    const auto plus = result.subject.id.find('+');
    all.pairs.insert(pair_name(result.subject.id.substr(0, plus), result.subject.id.substr(plus + 1)));
  }
  for (const auto& one : searches) {
    for (const auto& suspect : one.finding.suspects) {
      if (suspect.fault == judge::Fault::pair) {
        all.pairs.insert(pair_name(one.peers[suspect.nodes[0]].name, one.peers[suspect.nodes[1]].name));
        continue;
      }
      for (const std::size_t node : suspect.nodes) all.nodes.insert(one.peers[node].name);
    }
  }
  return all;
}

std::string duration(double seconds) {
  const auto whole = static_cast<long>(std::lround(seconds));
  return fmt::format("{}:{:02}:{:02} h", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

std::vector<Localisation> localise_failures(const plan::Plan& plan, const judge::Verdict& verdict) {
  const FleetModel model(plan);
  std::map<std::string, std::string> leaves;
  for (const auto& node : plan.site.nodes) leaves[node.name] = node.leaf;
  std::set<std::string> known = judge::bad_alone(plan, verdict.results);
  std::vector<Localisation> all;
  for (const auto& result : verdict.results) {
    if ((result.subject.kind != "group" && result.subject.kind != "cluster") || !is_bad(result)) continue;
    const plan::Step& step = *model.step(result.step);
    Localisation one{.requirement = result.requirement,
                     .step = step.id,
                     .budget = plan::test_budget(step.nodes.size()),
                     .excluded = {},
                     .peers = {},
                     .finding = {}};
    for (const auto& node : step.nodes) {
      if (known.contains(node))
        one.excluded.push_back(node);
      else
        one.peers.push_back({.name = node, .leaf = leaves.at(node)});
    }
    if (one.peers.size() < 2) continue;
    search(model, step, *plan.requirement(result.requirement), one);
    one.duration_s = static_cast<double>(one.rounds) * step.typical_s;
    for (const auto& suspect : one.finding.suspects) {
      // One end of a bad pair is enough to leave out for the others to be seen.
      for (const std::size_t node : suspect.nodes) {
        known.insert(one.peers[node].name);
        if (suspect.fault == judge::Fault::pair) break;
      }
    }
    all.push_back(std::move(one));
  }
  return all;
}

SimulationSummary summarise(const plan::Plan& plan, const SimulatedRun& run, const judge::Verdict& verdict,
                            const std::vector<Localisation>& searches) {
  SimulationSummary summary{.nodes = plan.site.nodes.size(),
                            .requirements = plan.profile.requirements.size(),
                            .steps = plan.steps.size(),
                            .cells = plan.coverage.size(),
                            .attempts = run.journal.attempts.size(),
                            .duration_s = run.duration_s,
                            .found = {},
                            .missed = {},
                            .false_alarms = {},
                            .accusations = {},
                            .would_be = verdict.reason};
  for (const auto& one : searches) {
    summary.tests_budget += one.budget;
    summary.tests += one.tests;
    summary.rounds += one.rounds;
    summary.localisation_s += one.duration_s;
    for (const auto& suspect : one.finding.suspects)
      summary.accusations.push_back(fmt::format("{}: {}", one.requirement, judge::suspect_words(suspect, one.peers)));
  }
  const Accused accused = accused_by(plan, verdict, searches);
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
