// drain_command: `assay drain`: decisions shown, or carried out through the scheduler.
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include <fmt/format.h>

#include "orchestrator/cli/documents.h"
#include "orchestrator/cli/run_stages.h"
#include "orchestrator/cli/table_json.h"
#include "orchestrator/drain/apply.h"
#include "orchestrator/files/state.h"
#include "orchestrator/fleet/nightly.h"
#include "orchestrator/history/history.h"
#include "orchestrator/judge/cells/judge.h"
#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/site/site_file.h"
#include "orchestrator/sweep/outcome.h"
#include "orchestrator/sweep/sweep_file.h"
#include "probes/core/secret_file.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"

namespace assay::cli {
namespace {

using std::chrono::system_clock;

/// Inputs of the command besides the scheduler.
struct Inputs {
  drift::DriftReport report;
  drift::Policy policy;
  site::Site site;
  std::string journal;
  system_clock::time_point now;
};

std::optional<InputError> check_age(const Inputs& inputs, const std::string& path) {
  const auto end = system_clock::time_point(inputs.report.as_of) + std::chrono::days(1);
  const double age_s = std::chrono::duration<double>(inputs.now - end).count();
  if (end - inputs.now > drift::kMostAhead) {
    return InputError{path, fmt::format("is of {}: from the future", drift::date_text(inputs.report.as_of)),
                      "set the clocks right, then judge the history again"};
  }
  if (age_s <= inputs.policy.verdict_max_age_s) return std::nullopt;
  return InputError{
      path, fmt::format("is of {}: older than the policy's verdict_max_age", drift::date_text(inputs.report.as_of)),
      "judge the history again; an old report is not acted on"};
}

std::expected<Inputs, InputError> read_inputs(const DrainArguments& given) {
  Inputs inputs{.now = system_clock::now()};
  if (!given.now.empty()) {
    const auto now = given_time(given.now);
    if (!now) return std::unexpected(InputError{"--now", "is no time", kGivenTimeHint});
    inputs.now = *now;
  }
  auto report = read_document(given.drift, drift::read_report);
  if (!report) return std::unexpected(report.error());
  auto policy = read_document(given.policy, drift::read_policy);
  if (!policy) return std::unexpected(policy.error());
  auto site = site::read_site_file(given.site);
  if (!site) return std::unexpected(site.error());
  inputs.report = std::move(*report);
  inputs.policy = std::move(*policy);
  inputs.site = std::move(*site);
  inputs.journal = given.journal.empty()
                       ? std::filesystem::path(files::machine_key_path()).replace_filename("drain.jsonl").string()
                       : given.journal;
  if (auto problem = check_deciding_file(inputs.journal)) return std::unexpected(*problem);
  if (auto problem = check_age(inputs, given.drift)) return std::unexpected(*problem);
  return inputs;
}

/// Adds the state of each node by the run in `directory`, judged anew from its evidence. A node is good if a planned
/// figure meets its limit, of one node or of several, and bad if one does not or is open or missing.
std::optional<InputError> look_at(const std::string& directory, std::set<std::string>& good, std::set<std::string>& bad,
                                  drain::CleanSweep& clean) {
  const auto verdict = judge_directory(directory);
  if (!verdict) return verdict.error();
  if (verdict->simulated) return InputError{directory, "is a simulation, which shows nothing of a node", ""};
  const auto run = judge::read_run(directory);
  if (!run) return run.error();
  clean.started = std::min(clean.started, run->journal.begin);
  std::map<std::string, std::vector<std::string>> nodes_of;
  for (const auto& step : run->plan.steps) {
    nodes_of[step.id] = step.nodes;
    for (const auto& node : step.nodes) {
      for (const auto& other : step.nodes) {
        if (other != node) clean.partners[node].push_back(other);
      }
    }
  }
  for (const auto& attempt : run->journal.attempts) {
    for (const auto& file : attempt.evidence) {
      if (!file.path.ends_with(".jsonl")) continue;  // logs are often empty
      for (const auto& node : nodes_of[attempt.step]) clean.records[node].insert(file.sha256);
    }
  }
  for (const auto& cell : verdict->results) {
    const auto step = nodes_of.find(cell.step);
    if (step == nodes_of.end() || cell.unchecked) continue;  // not planned, or not reported
    const bool meets = cell.outcome == judge::Outcome::pass || cell.outcome == judge::Outcome::conditional_pass;
    (meets ? good : bad).insert(step->second.begin(), step->second.end());
  }
  return std::nullopt;
}

/// The sweep in `folder` as evidence of clean nodes: measured, with figures that all meet their limits.
std::expected<drain::CleanSweep, InputError> clean_sweep(const std::string& folder) {
  if (auto problem = check_deciding_file(folder)) return std::unexpected(*problem);
  const auto file = read_document(folder + "/sweep.json", sweep::read_sweep);
  if (!file) return std::unexpected(file.error());
  drain::CleanSweep clean{.id = file->plan.id, .started = file->plan.started, .budget_s = file->plan.budget_s};
  std::set<std::string> good, bad;
  for (const auto& run : file->runs) {
    if (auto problem = look_at(folder + "/" + run, good, bad, clean)) return std::unexpected(*problem);
  }
  for (const auto& visit : file->visits) {
    if (visit.state == drift::VisitState::measured && good.contains(visit.node) && !bad.contains(visit.node))
      clean.clean.push_back(visit.node);
  }
  for (auto& [node, partners] : clean.partners) std::ranges::sort(partners);
  return clean;
}

/// Writes the actions into the history; a history that cannot be written does not undo it.
void tell_history(const std::string& path, const drain::Done& done, const Inputs& inputs) {
  if (path.empty()) return;
  auto history = history::History::open(path, history::Access::write);
  for (const auto& one : done.done) {
    const bool drained = one.ruling == drain::Ruling::drain;
    if (history) {
      const auto added = history->add_event({.night = inputs.report.as_of,
                                             .time = utc_text(inputs.now),
                                             .scope = one.node,
                                             .kind = drained ? drift::EventKind::drained : drift::EventKind::released,
                                             .text = one.reason,
                                             .who = "assay drain"});
      if (added) continue;
      history = std::unexpected(added.error());
    }
    std::cerr << fmt::format("the history does not know that {} was {}: {}\n", harmless(one.node),
                             drained ? "drained" : "released", harmless(history.error().error.what));
  }
}

/// The decisions as a table in JSON; `done` if they were carried out.
void print_decisions(const DrainArguments& given, const drain::Decisions& decisions, drift::Mode mode,
                     const drain::Done* done) {
  nlohmann::ordered_json rows;
  for (const auto& one : decisions.nodes) {
    nlohmann::ordered_json row = {{"node", one.node},     {"flag", one.flag}, {"ruling", one.ruling},
                                  {"reason", one.reason}, {"why", one.why},   {"done", nullptr}};
    const auto is_it = [&](const drain::Decision& other) { return other.node == one.node; };
    if (done != nullptr && std::ranges::any_of(done->done, is_it)) row["done"] = true;
    if (done != nullptr) {
      const auto failed = std::ranges::find_if(done->failed, is_it);
      if (failed != done->failed.end()) row.update({{"done", false}, {"why", failed->why}});
    }
    rows.push_back(std::move(row));
  }
  print_table("drain",
              {{"action", given.action},
               {"mode", mode},
               {"alarm", decisions.alarm.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(decisions.alarm)},
               {"applied", done != nullptr}},
              std::move(rows));
}

int carry_out(const DrainArguments& given, const drain::Decisions& decisions, const Inputs& inputs, drain::Actor& actor,
              drain::Books& books) {
  const auto done = drain::apply(decisions, inputs.report.as_of, actor, books, inputs.now);
  if (!done) return report_error(done.error());
  if (given.json) {
    print_decisions(given, decisions, inputs.policy.mode, &*done);
    tell_history(given.history, *done, inputs);
    return done->failed.empty() && decisions.alarm.empty() ? files::kExitSuccess : files::kExitIncomplete;
  }
  for (const auto& one : done->done) std::cout << fmt::format("done: {} {}\n", one.ruling, harmless(one.node));
  for (const auto& one : done->failed)
    std::cout << fmt::format("not done: {} {}: {}\n", one.ruling, harmless(one.node), harmless(one.why));
  tell_history(given.history, *done, inputs);
  return done->failed.empty() && decisions.alarm.empty() ? files::kExitSuccess : files::kExitIncomplete;
}

std::expected<drain::Decisions, InputError> decide(const DrainArguments& given, const drain::Situation& situation) {
  if (given.action != "release") return drain::decide_drains(situation);
  std::vector<drain::CleanSweep> sweeps;
  for (const auto& folder : given.sweeps) {
    auto clean = clean_sweep(folder);
    if (!clean) return std::unexpected(clean.error());
    sweeps.push_back(std::move(*clean));
  }
  return drain::decide_releases(situation, sweeps);
}

}  // namespace

int command_drain(const DrainArguments& given) {
  const auto inputs = read_inputs(given);
  if (!inputs) return report_error(inputs.error());
  const auto kind = from_word<drain::ActorKind>(given.actor);
  if (!kind) return report_error({"--actor", "is no actor", "known are " + words_listed<drain::ActorKind>()});
  const std::string usual = *kind == drain::ActorKind::slurm ? "scontrol" : "kubectl";
  const auto actor = drain::make_actor(*kind, given.program.empty() ? usual : given.program);
  if (!actor) return report_error(actor.error());
  auto books = drain::Books::open(inputs->journal);
  if (!books) return report_error(books.error());
  const auto now = (*actor)->read({});
  if (!now) return report_error(now.error());
  const bool acts = given.action != "plan" && given.apply;
  if (acts) {
    if (auto problem = drain::settle(*books, *now, inputs->now)) return report_error(*problem);
  }
  const auto decisions = decide(given, {.report = inputs->report,
                                        .policy = inputs->policy,
                                        .site = inputs->site,
                                        .now = *now,
                                        .account = books->account(),
                                        .time = inputs->now});
  if (!decisions) return report_error(decisions.error());
  const bool carries_out = acts && inputs->policy.mode == drift::Mode::drain;
  if (!given.json) std::cout << harmless_page(drain::text_of(*decisions, inputs->policy.mode));
  if (carries_out) return carry_out(given, *decisions, *inputs, **actor, *books);
  if (given.json) {
    print_decisions(given, *decisions, inputs->policy.mode, nullptr);
    return decisions->alarm.empty() ? files::kExitSuccess : files::kExitIncomplete;
  }
  if (acts) std::cout << "the policy's mode does not drain: nothing was changed\n";
  if (!acts) std::cout << "dry run: nothing was changed\n";
  return decisions->alarm.empty() ? files::kExitSuccess : files::kExitIncomplete;
}

}  // namespace assay::cli
