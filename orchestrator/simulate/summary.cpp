// summary: a simulated run against the faults that it was given: found, missed, false alarms.
#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "orchestrator/judge/locate/searches.h"
#include "orchestrator/simulate/simulate.h"
#include "probes/core/how_many.h"
#include "probes/core/scale.h"

namespace assay::simulate {
namespace {

using nlohmann::json;

bool is_bad(const judge::Result& result) {
  return result.outcome == judge::Outcome::fail || result.outcome == judge::Outcome::conditional_fail ||
         result.outcome == judge::Outcome::error;
}

std::string pair_name(const std::string& a, const std::string& b) { return a < b ? a + " " + b : b + " " + a; }

/// Everything that cells and searches accuse.
struct AccusedNodes {
  std::set<std::string> nodes, pairs;
};

AccusedNodes accused_by(const plan::Plan& plan, const judge::Verdict& verdict) {
  AccusedNodes all{.nodes = judge::bad_alone(plan, verdict.results)};
  std::map<std::string_view, const plan::Step*> pairs;
  for (const auto& step : plan.steps) {
    if (step.nodes.size() == 2) pairs.emplace(step.id, &step);
  }
  for (const auto& result : verdict.results) {
    const auto step = pairs.find(result.step);
    if (step == pairs.end() || !is_bad(result)) continue;
    const plan::Step& one = *step->second;
    if (result.subject.kind == "pair" || !one.path.empty())
      all.pairs.insert(pair_name(one.nodes.front(), one.path.empty() ? one.nodes.back() : one.path));
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

/// Whether a pair with this node is accused.
bool in_pair(const AccusedNodes& accused, const std::string& node) {
  return std::ranges::any_of(accused.pairs, [&](const std::string& pair) {
    return pair.starts_with(node + " ") || pair.ends_with(" " + node);
  });
}

/// Whether a step of the plan has both ends of the link; an extra test has fewer nodes than its step.
bool is_tried(const plan::Plan& plan, const plan::SimulatedFault& link) {
  const auto has = [](const plan::Step& step, const std::string& end) {
    return step.path == end || std::ranges::find(step.nodes, end) != step.nodes.end();
  };
  return std::ranges::any_of(plan.steps,
                             [&](const plan::Step& step) { return has(step, link.node) && has(step, link.other); });
}

/// Faults of nodes and links, whose names `bad_nodes` and `bad_links` then have.
void take_faults(const plan::Plan& plan, const AccusedNodes& accused, SimulationSummary& summary,
                 std::set<std::string>& bad_nodes, std::set<std::string>& bad_links) {
  for (const auto& fault : plan.simulation->faults.faults) {
    const bool link = !fault.other.empty();
    const std::string name = link ? pair_name(fault.node, fault.other) : fault.node;
    (link ? bad_links : bad_nodes).insert(name);
    // A node with several bad links is rightly accused as a node, and one that only pairs show by its pairs.
    const bool hit =
        link ? accused.pairs.contains(name) || accused.nodes.contains(fault.node) || accused.nodes.contains(fault.other)
             : accused.nodes.contains(name) || in_pair(accused, name);
    (hit                              ? summary.found
     : link && !is_tried(plan, fault) ? summary.untried
                                      : summary.missed)
        .push_back((link ? "link " : "node ") + name);
  }
}

/// Switches that contrasts show to do nothing, or if they are stuck, to be inconclusive. With a node of `bad_nodes` any
/// contrast may fail.
void take_switches(const plan::Plan& plan, const judge::Verdict& verdict, SimulationSummary& summary,
                   std::set<std::string>& bad_nodes) {
  const auto& switches = plan.simulation->faults.switches;
  for (const auto& one : switches) {
    if (!one.stuck) bad_nodes.insert(one.node);
  }
  std::map<std::pair<std::string, std::string>, std::set<judge::Outcome>> seen;  // by node and parameter
  for (const auto& result : verdict.results) {
    const auto& contrast = plan.requirement(result.requirement)->contrast;
    const auto* step = contrast ? plan.step(result.step) : nullptr;
    if (step == nullptr) continue;
    const auto& nodes = step->nodes;
    for (const auto& node : nodes) seen[{node, contrast->parameter}].insert(result.outcome);
    const bool expected = std::ranges::any_of(nodes, [&](const std::string& node) { return bad_nodes.contains(node); });
    if (result.required && is_bad(result) && !expected)
      summary.false_alarms.push_back("switch " + result.node + " " + contrast->parameter);
  }
  for (const auto& one : switches) {  // of a parameter that no contrast switches: missed
    using enum judge::Outcome;
    const auto& outcomes = seen[{one.node, one.parameter}];
    const bool shown =
        one.stuck ? outcomes.contains(inconclusive) : outcomes.contains(fail) || outcomes.contains(conditional_fail);
    (shown ? summary.found : summary.missed).push_back("switch " + one.node + " " + one.parameter);
  }
}

/// "plane 5", "n00003/gpu2", "n00003/gpu2 link 5".
std::string part_name(const plan::SimulatedPart& part) {
  if (part.node.empty()) return fmt::format("plane {}", part.link.value_or(0));
  return fmt::format("{}/gpu{}{}", part.node, part.gpu.value_or(0),
                     part.link ? fmt::format(" link {}", *part.link) : "");
}

/// Parts of a rack: a plane is found by its own result, any other part by its node, which `bad_nodes` then has.
void take_parts(const plan::Plan& plan, const judge::Verdict& verdict, const AccusedNodes& accused,
                SimulationSummary& summary, std::set<std::string>& bad_nodes) {
  std::set<std::string> planes;
  for (const auto& result : verdict.results) {
    if (is_bad(result) && result.subject.id.starts_with("plane ")) planes.insert(result.subject.id);
  }
  for (const auto& part : plan.simulation->faults.parts) {
    const std::string name = part_name(part);
    const bool hit = part.node.empty() ? planes.erase(name) > 0 : accused.nodes.contains(part.node);
    if (!part.node.empty()) bad_nodes.insert(part.node);
    (hit ? summary.found : summary.missed).push_back("part " + name);
  }
  for (const auto& plane : planes) summary.false_alarms.push_back("part " + plane);
}

/// Knees: found within a factor of two of their number of nodes.
void take_knees(const plan::Plan& plan, const judge::Verdict& verdict, SimulationSummary& summary) {
  std::set<const judge::KneeFound*> known;
  for (const auto& fault : plan.simulation->faults.knees) {
    const auto full = static_cast<std::size_t>(fault.nodes);
    bool hit = false;
    for (const auto& knee : verdict.knees) {
      if (knee.state != judge::KneeState::found || 2 * knee.kept < full || knee.kept > 2 * full) continue;
      known.insert(&knee);
      hit = true;
    }
    (hit ? summary.found : summary.missed).push_back(fmt::format("knee {}", fault.nodes));
  }
  for (const auto& knee : verdict.knees) {
    if (knee.state == judge::KneeState::found && !known.contains(&knee))
      summary.false_alarms.push_back(fmt::format("knee {} of {}", knee.kept, knee.requirement));
  }
}

}  // namespace

std::optional<InputError> check_metrics(const plan::Faults& faults, const plan::Profile& profile,
                                        const std::string& where) {
  std::set<std::string> judged;
  for (const auto& requirement : profile.requirements) {
    judged.insert(requirement.judged());
    if (requirement.limit.reference == plan::Reference::metric) judged.insert(requirement.limit.name);
  }
  const auto check = [&](const std::string& metric) -> std::optional<InputError> {
    if (metric.empty() || metric == kComputation || metric == kMessages || judged.contains(metric)) return std::nullopt;
    return InputError{where, fmt::format("the profile {} judges no metric '{}'", profile.name, metric),
                      fmt::format("it judges {}", fmt::join(judged, ", "))};
  };
  for (const auto& one : faults.faults) {
    if (auto problem = check(one.metric)) return problem;
  }
  for (const auto& one : faults.knees) {
    if (auto problem = check(one.metric)) return problem;
  }
  return std::nullopt;
}

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
                            .missed = {},
                            .healthy = plan.simulation->faults.healthy,
                            .would_be = verdict.reason};
  for (const auto& one : verdict.localised) {
    summary.tests_budget += one.budget;
    summary.tests += one.tests.size();
    for (const auto& culprit : one.culprits)
      summary.accusations.push_back(fmt::format("{}: {}", fmt::join(one.requirements, ", "), culprit.words));
  }
  const AccusedNodes accused = accused_by(plan, verdict);
  const plan::Faults& faults = plan.simulation->faults;
  std::set<std::string> bad_nodes(faults.dead.begin(), faults.dead.end());
  std::set<std::string> bad_links;
  for (const auto& name : faults.dead) {
    const bool told =
        std::ranges::any_of(run.journal.node_events, [&](const auto& event) { return event.node == name; });
    (told || accused.nodes.contains(name) ? summary.found : summary.missed).push_back("dead " + name);
  }
  take_faults(plan, accused, summary, bad_nodes, bad_links);
  take_parts(plan, verdict, accused, summary, bad_nodes);
  take_knees(plan, verdict, summary);
  take_switches(plan, verdict, summary, bad_nodes);
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
  text += fmt::format("{}, {}, {}, {}, {}\n", how_many(summary.nodes, "node"),
                      how_many(summary.requirements, "requirement"), how_many(summary.steps, "step"),
                      how_many(summary.cells, "planned cell"), how_many(summary.attempts, "attempt"));
  text += fmt::format("expected duration  {}, and {} to localise\n", duration_words(summary.duration_s),
                      duration_words(summary.localisation_s));
  text += fmt::format("tests to localise  {} in {} rounds, of {} that the budget has\n", summary.tests, summary.rounds,
                      summary.tests_budget);
  text += fmt::format("faults             {} found, {} missed, {} false alarms{}\n", summary.found.size(),
                      summary.missed.size(), summary.false_alarms.size(),
                      summary.untried.empty() ? "" : "; untried: of links whose two ends no step of the plan has");
  constexpr std::size_t kMostLines = 20;
  const auto list = [&](const char* word, const std::vector<std::string>& lines) {
    for (std::size_t i = 0; i < std::min(lines.size(), kMostLines); ++i)
      text += fmt::format("  {:<12} {}\n", word, lines[i]);
    if (lines.size() > kMostLines) text += fmt::format("  {:<12} and {} more\n", word, lines.size() - kMostLines);
  };
  list("found", summary.found);
  list("missed", summary.missed);
  list("untried", summary.untried);
  list("false alarm", summary.false_alarms);
  list("accused", summary.accusations);
  text += fmt::format(
      "Simulated healthy nodes lie {:g} % beyond their limits, differ by {:g} %, and runs of one node by "
      "{:g} % (standard deviations); the outcome rests on that.\n",
      summary.healthy.margin * 100, summary.healthy.spread * 100, summary.healthy.run_to_run * 100);
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
          {"untried", summary.untried},
          {"false_alarms", summary.false_alarms},
          {"accusations", summary.accusations},
          {"healthy", plan::to_json(summary.healthy)},
          {"would_be", summary.would_be}};
}

}  // namespace assay::simulate
