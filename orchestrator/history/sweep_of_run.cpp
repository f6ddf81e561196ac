// sweep_of_run: records of a judged run become visits of units.
#include "orchestrator/history/sweep_of_run.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/files/exit_codes.h"
#include "orchestrator/judge/cells/part_identities.h"
#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/run_verdict.h"
#include "orchestrator/plan/profile.h"
#include "probes/core/statistics.h"
#include "probes/core/utc_time.h"

namespace assay::history {
namespace {

namespace fs = std::filesystem;

/// Facts of a subject of a node: its serial number, model, versions and slot.
using Facts = std::map<std::string, std::string>;

/// Everything that is gathered from the records.
struct CellResults {
  std::map<std::pair<std::string, Subject>, Facts> facts;  ///< by node and subject
  struct Samples {
    Figure figure;
    std::vector<double> medians;  ///< of the attempts
  };
  std::map<std::pair<std::string, Subject>, std::map<std::string, Samples>> figures;
  std::map<std::pair<std::string, Subject>, std::string> partners;  ///< of one of two nodes: the other
  Asked asked;
  std::map<std::pair<std::string, std::string>, bool> complete;  ///< by node and probe: whether every attempt was
  std::string raw;
};

constexpr std::string_view kComplete = ".run.complete";  // behind the probe's name; no metric has points

std::string words(const Value& value) {
  return std::visit(
      [](const auto& one) -> std::string {
        if constexpr (std::is_same_v<std::decay_t<decltype(one)>, std::string>)
          return one;
        else
          return fmt::format("{}", one);
      },
      value);
}

/// The parameters of `step` by its requirements, and the switch of a contrast unless it has the probe's default:
/// figures of one probe with other parameters are other figures.
Values given_parameters(const plan::Plan& plan, const plan::Step& step) {
  Values given;
  const auto usual = plan.probes.at(step.probe).description.resolve({}, plan.quick);
  for (const auto& id : step.requirements) {
    const auto* requirement = plan.requirement(id);
    if (requirement == nullptr) continue;
    given.insert(requirement->parameters.begin(), requirement->parameters.end());
    if (!requirement->contrast) continue;
    const std::string& name = requirement->contrast->parameter;
    if (const Value& value = step.parameters.at(name); !usual || usual->at(name) != value) given.insert({name, value});
  }
  return given;
}

/// "host_gemm.rate", with parameters and coordinates behind: "x.bandwidth{size=8}".
std::string metric_name(const Record& record, const Measurement& measured, const Values& given) {
  std::string at;
  Values all = measured.at;
  all.insert(given.begin(), given.end());
  for (const auto& [name, value] : all) at += (at.empty() ? "" : ",") + name + "=" + words(value);
  return record.start.probe + "." + measured.metric + (at.empty() ? "" : "{" + at + "}");
}

drift::Metric metric_of(const Record& record, const Measurement& measured, const Description& probe,
                        const Values& given) {
  drift::Metric metric{.name = metric_name(record, measured, given),
                       .probe = record.start.probe,
                       .revision = record.start.revision,
                       .unit = measured.unit};
  for (const auto& known : probe.metrics) {
    if (known.name != measured.metric) continue;
    metric.lower_is_better = known.better == "lower";
    metric.fatal = known.kind == MetricKind::fault;
    const bool runs_on = known.course == Course::since_boot || known.course == Course::for_life;
    if (runs_on) metric.course = known.course;
    // A time that runs on is no number of events.
    if (metric.fatal || (runs_on && known.unit == "1")) metric.type = drift::MetricClass::count;
    if (!metric.fatal && known.course == Course::fixed) metric.type = drift::MetricClass::state;
  }
  return metric;
}

/// `nodes`: of the step, in the order of its ranks; the record is of the node `rank` of them. A measurement of two
/// nodes together is a figure of each of them, with the other one as its partner: pairs change from night to night,
/// nodes stay.
void gather(const Record& record, const std::vector<std::string>& nodes, std::size_t rank, const Description& probe,
            const Values& given, CellResults& all) {
  const std::string& node = nodes[rank];
  const auto ends_of = [&](const Subject& subject) {
    std::vector<std::pair<std::string, Subject>> ends;
    if (nodes.size() != 2 || !plan::is_together(subject.kind)) return ends;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      ends.emplace_back(nodes[i], Subject{"pair", nodes[0] + "+" + nodes[1]});
      all.partners[ends.back()] = nodes[1 - i];
    }
    return ends;
  };
  const auto of = [&](const Subject& subject) {
    return std::pair(node, subject.kind == "node" || subject.kind == "rank" ? Subject{"node", node} : subject);
  };
  const bool guest = judge::is_guest(record);
  for (const Condition& condition : record.conditions) {
    const bool made_up = guest && (condition.subject.kind == "node" || condition.subject.kind == "dimm");
    if (made_up && condition.name.ends_with("serial")) continue;  // by the hypervisor
    static constexpr std::string_view kNames[] = {"serial",         "model",          "firmware",
                                                  "driver_version", "product_serial", "product",
                                                  "bios_version",   "pci_address",    "microcode"};
    const bool together = nodes.size() == 2 && plan::is_together(condition.subject.kind);
    if (!together && std::ranges::find(kNames, condition.name) != std::end(kNames))
      all.facts[of(condition.subject)][condition.name] = words(condition.value);
  }
  for (const Measurement& measured : record.measurements) {
    if (measured.samples.empty()) continue;
    auto places = ends_of(measured.subject);
    if (places.empty()) places.push_back(of(measured.subject));
    for (const auto& place : places) {
      auto& samples = all.figures[place][metric_name(record, measured, given)];
      samples.figure.metric = metric_of(record, measured, probe, given);
      samples.figure.samples += static_cast<std::uint32_t>(measured.samples.size());
      samples.medians.push_back(median(measured.samples));
    }
  }
}

std::string fact(const Facts& facts, const char* name) {
  const auto found = facts.find(name);
  return found == facts.end() ? "" : found->second;
}

drift::Unit unit_of(const std::string& node, const Subject& subject, const Facts& facts, const site::Node* place) {
  drift::Unit unit{.kind = subject.kind, .node = node};
  if (place != nullptr) {
    unit.rack = place->rack;
    unit.leaf = place->leaf;
  }
  const std::string serial = fact(facts, subject.kind == "node" ? "product_serial" : "serial");
  const bool whole = subject.kind == "node";
  const std::string address = fact(facts, "pci_address");
  if (!whole) unit.slot = address.find(':') == std::string::npos ? subject.id : address;
  if (judge::is_unique(serial)) {
    unit.serial = true;
    unit.id = fmt::format("{}:{}", subject.kind, serial);
  } else {
    unit.id = whole ? "node:" + node : fmt::format("{}:{}/{}", subject.kind, node, subject.id);
  }
  return unit;
}

std::string cohort_of(const Subject& subject, const Facts& own, const Facts& node) {
  std::string text = subject.kind;
  const std::string model = fact(own, subject.kind == "node" ? "product" : "model");
  if (!model.empty()) text += " " + model;
  for (const char* name : {"firmware", "bios_version", "microcode"}) {
    if (const std::string one = fact(own, name); !one.empty()) text += fmt::format(" | {} {}", name, one);
  }
  if (const std::string driver = fact(node, "driver_version"); !driver.empty()) text += " | driver " + driver;
  return text;
}

/// Whether the probe itself failed or did not: nothing of an attempt that others ended, of a node that went away, and
/// of a probe that found nothing to measure.
std::optional<bool> completed(const judge::Attempt& attempt, const Record* record) {
  switch (attempt.outcome) {
    case AttemptOutcome::exited:
      if (record == nullptr || record->end.status == Status::error) return false;
      return record->end.status == Status::complete ? std::optional(true) : std::nullopt;
    case AttemptOutcome::crashed:
    case AttemptOutcome::deadline:
    case AttemptOutcome::output_limit:
    case AttemptOutcome::memory_limit:
      return false;
    case AttemptOutcome::stopped:
    case AttemptOutcome::lost:
    case AttemptOutcome::refused:
    case AttemptOutcome::interrupted:
      break;
  }
  return std::nullopt;
}

/// Reads every record of every attempt that ended normally.
Result<CellResults> gathered(const judge::Run& run, const judge::EvidenceReader& evidence, bool with_raw) {
  CellResults all;
  for (const judge::Attempt& attempt : run.journal.attempts) {
    const plan::Step* step = run.plan.step(attempt.step);
    if (step == nullptr || attempt.is_extra()) continue;
    const auto note_end = [&](const Record* record) {
      const auto complete = completed(attempt, record);
      if (!complete || step->nodes.size() != 1 || !step->path.empty()) return;
      bool& all_complete = all.complete.try_emplace({step->nodes.front(), step->probe}, true).first->second;
      all_complete = all_complete && *complete;
    };
    if (attempt.outcome != AttemptOutcome::exited) {
      note_end(nullptr);
      continue;
    }
    // Of a path between tenants all is of the node that tried to cross: the control has no figure, and a
    // target's is of the crossing.
    const bool crosses = !step->path.empty();
    const auto nodes = crosses ? std::vector<std::string>{step->nodes.front()} : step->nodes;
    for (std::size_t rank = 0; rank < step->nodes.size(); ++rank) {
      const auto record = judge::record_of(run.plan, *step, attempt, evidence, static_cast<int>(rank));
      note_end(record ? &*record : nullptr);
      if (!record) continue;  // the verdict has the reason
      if (!crosses && record->end.status != Status::error) all.asked[nodes[rank]][step->probe];
      if (record->end.status == Status::complete)
        gather(*record, nodes, crosses ? 0 : rank, run.plan.probes.at(step->probe).description,
               given_parameters(run.plan, *step), all);
    }
    for (const auto& file : attempt.evidence) {
      if (!with_raw || !file.path.ends_with(".jsonl")) continue;
      const auto bytes = evidence(file);
      if (!bytes) return std::unexpected(Failure{bytes.error(), files::kExitRefused});
      all.raw += *bytes;
    }
  }
  return all;
}

/// Figures that were measured where a demanded condition did not hold, such as on a busy machine: by node,
/// "probe.metric".
std::set<std::pair<std::string, std::string>> disturbed(const judge::Run& run, const judge::Verdict& verdict) {
  std::set<std::pair<std::string, std::string>> all;
  for (const judge::Result& result : verdict.results) {
    const auto* requirement = run.plan.requirement(result.requirement);
    const bool unmet =
        std::ranges::any_of(result.conditions, [](const judge::ConditionSeen& seen) { return !seen.met; });
    if (requirement != nullptr && unmet && result.outcome == judge::Outcome::inconclusive)
      all.emplace(result.node, requirement->probe + "." + requirement->metric);
  }
  return all;
}

/// Each judged demand as a state of its subject: 1 is met and expected, 0 is missed.
void add_demands(const judge::Run& run, const judge::Verdict& verdict, CellResults& all) {
  for (const judge::Result& result : verdict.results) {
    const auto* requirement = run.plan.requirement(result.requirement);
    const bool met = result.outcome == judge::Outcome::pass;
    const auto* step = run.plan.step(result.step);
    if (requirement == nullptr || !requirement->demand || (!met && result.outcome != judge::Outcome::fail) ||
        step == nullptr || step->nodes.size() != 1)
      continue;
    const std::string name = fmt::format("{}.demand.{}", requirement->probe, requirement->id);  // no metric has points
    const bool whole = result.subject.kind == "node" || result.subject.id == result.node;
    auto& samples = all.figures[{result.node, whole ? Subject{"node", result.node} : result.subject}][name];
    samples.figure = {.metric = {.name = name,
                                 .probe = requirement->probe,
                                 .revision = run.plan.probes.at(requirement->probe).description.revision,
                                 .unit = "1",
                                 .type = drift::MetricClass::state,
                                 .expected = 1},
                      .samples = 1};
    samples.medians.push_back(met ? 1 : 0);
  }
}

/// Whether every attempt of a probe on a node was complete as a state of the node, which others of its figures do not
/// show: a probe that fails every night has none. Nothing of a node without any figure, which is not measured.
void add_completions(const judge::Run& run, CellResults& all) {
  std::set<std::string> measured;
  for (const auto& [place, figures] : all.figures) measured.insert(place.first);
  for (const auto& [of, complete] : all.complete) {
    const auto& [node, probe] = of;
    if (!measured.contains(node)) continue;
    const std::string name = probe + std::string(kComplete);
    auto& samples = all.figures[{node, Subject{"node", node}}][name];
    samples.figure = {.metric = {.name = name,
                                 .probe = probe,
                                 .revision = run.plan.probes.at(probe).description.revision,
                                 .unit = "1",
                                 .type = drift::MetricClass::state,
                                 .expected = 1},
                      .samples = 1};
    samples.medians.push_back(complete ? 1 : 0);
  }
}

void add_visits(const judge::Run& run, const judge::Verdict& verdict, CellResults& all, bool retest, Sweep& sweep) {
  std::map<std::string, bool> seen;
  const auto left_out = disturbed(run, verdict);
  for (auto& [place, figures] : all.figures) {
    const auto& [node, subject] = place;
    const std::string& name_of_node = node;
    std::set<std::string> probes;
    for (const auto& [name, samples] : figures) probes.insert(samples.figure.metric.probe);
    const bool busy =
        std::erase_if(figures,
                      [&](const auto& one) {
                        return left_out.contains({name_of_node, one.first.substr(0, one.first.find('{'))});
                      }) > 0 &&
        std::ranges::all_of(figures, [](const auto& one) { return one.first.ends_with(kComplete); });
    if (busy) figures.clear();
    const auto known = std::ranges::find(run.plan.site.nodes, node, &site::Node::name);
    const Facts& of_node = all.facts[{node, Subject{"node", node}}];
    const auto partner = all.partners.find(place);
    const bool pair = partner != all.partners.end();
    const Facts& own = pair ? of_node : all.facts[place];
    UnitVisit visit{.unit = unit_of(node, pair ? Subject{"node", node} : subject, own,
                                    known == run.plan.site.nodes.end() ? nullptr : &*known),
                    .cohort = (pair ? "pair of nodes" : cohort_of(subject, own, of_node)) +
                              (run.plan.quick ? " | quick parameters" : ""),
                    .retest = retest,
                    .partner = pair ? partner->second : ""};
    const auto said = run.journal.node_facts.find(node);
    if (said != run.journal.node_facts.end() && said->second.is_object())
      visit.boot = said->second.value("boot_id", "");
    if (busy) {
      visit.state = drift::VisitState::busy;
      visit.reason = "a condition of the measurement did not hold";
    }
    for (auto& [name, samples] : figures) {
      // Of events the worst attempt counts, and of a counter the last: it is the largest.
      samples.figure.value = samples.figure.metric.type == drift::MetricClass::count
                                 ? *std::ranges::max_element(samples.medians)
                                 : median(samples.medians);
      visit.figures.push_back(samples.figure);
    }
    for (auto& [probe, units] : sweep.asked[node]) {
      if (probes.contains(probe)) units.insert(visit.unit.id);
    }
    sweep.visits.push_back(std::move(visit));
    seen[node] = true;
  }
  for (const site::Node& node : run.plan.site.nodes) {
    if (seen.contains(node.name)) continue;
    UnitVisit visit{.unit = unit_of(node.name, {"node", node.name}, {}, &node),
                    .cohort = "node",
                    .state = state_without_figures(run.journal, node.name),
                    .retest = retest,
                    .reason = "no figure was measured"};
    sweep.visits.push_back(std::move(visit));
  }
}

}  // namespace

drift::VisitState state_without_figures(const judge::Journal& journal, const std::string& node) {
  const bool killed = std::ranges::any_of(journal.attempts, [&](const judge::Attempt& attempt) {
    return attempt.node == node && attempt.outcome == AttemptOutcome::interrupted;
  });
  return killed ? drift::VisitState::preempted : drift::VisitState::not_measured;
}

Result<Sweep> sweep_of_run(const std::string& directory, const SweepOptions& options) {
  const auto run = judge::read_run(directory);
  if (!run) {
    const bool there = fs::exists(fs::path(directory) / "journal.jsonl");
    return std::unexpected(Failure{run.error(), there ? files::kExitRefused : files::kExitBadInput});
  }
  if (run->plan.simulation || run->journal.simulated)
    return std::unexpected(Failure{{directory, "is a simulation: nothing was measured",
                                    "`assay simulate --nights N --db NEW` makes a history to rehearse with"},
                                   files::kExitBadInput});
  const auto evidence = judge::evidence_in(directory);
  const auto verdict = judge::judge_run(run->plan, run->plan_sha256, run->journal, evidence);
  if (!verdict) return std::unexpected(Failure{verdict.error(), files::kExitRefused});
  const auto journal = read_file((fs::path(directory) / "journal.jsonl").string());
  if (!journal) return std::unexpected(Failure{journal.error(), files::kExitBadInput});
  auto all = gathered(*run, evidence, options.with_raw);
  if (!all) return std::unexpected(all.error());
  const auto started = utc_time(run->journal.begin);
  if (!started)
    return std::unexpected(Failure{{directory, "its journal does not say when it began", ""}, files::kExitRefused});
  Sweep sweep{.run_sha256 = files::sha256(*journal),
              .started = run->journal.begin,
              .utc_offset_s = options.utc_offset_s,
              .night = night_of(*started, options.utc_offset_s),
              .verdict = std::string(word_of(verdict->overall)),
              .label = run->plan.profile.name + " on " + run->plan.site.name,
              .asked = std::move(all->asked),
              .raw = std::move(all->raw)};
  add_demands(*run, *verdict, *all);
  add_completions(*run, *all);
  add_visits(*run, *verdict, *all, options.retest, sweep);
  return sweep;
}

}  // namespace assay::history
