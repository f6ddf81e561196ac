// sweep_measure: plan, run and judge of a sweep.
#include "orchestrator/fleet/sweep_measure.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iostream>
#include <map>

#include <fmt/format.h>

#include "orchestrator/cli/run_stages.h"
#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/digest.h"
#include "orchestrator/files/own_folder.h"
#include "orchestrator/plan/crossing_spots.h"
#include "orchestrator/plan/programs.h"
#include "orchestrator/run/run.h"
#include "orchestrator/sweep/choice.h"
#include "orchestrator/sweep/outcome.h"
#include "probes/core/text.h"

namespace assay::cli {
namespace {

constexpr const char* kCrossingProfile = "tenants-apart";

volatile std::sig_atomic_t stop_flag = 0;

void on_signal(int) { stop_flag = 1; }

std::optional<InputError> begin_folder(const std::string& folder, const std::string& plan) {
  if (auto problem = files::take_own_folder(folder)) return problem;
  return files::create_file(folder + "/plan.json", plan, 0644);
}

/// Why steps were left out, on stderr: each reason once.
void print_left_out(const judge::Journal& journal) {
  std::map<std::string, std::size_t> steps;
  for (const auto& [step, reason] : journal.left_out) ++steps[reason];
  for (const auto& [reason, count] : steps)
    std::cerr << fmt::format("{} {} left out: {}\n", count, count == 1 ? "step" : "steps", harmless(reason));
}

}  // namespace

SweepStop::SweepStop() { take_signals(); }

void SweepStop::take_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (const int number : {SIGTERM, SIGINT}) (void)::sigaction(number, &action, nullptr);  // fails for no such signal
}

bool SweepStop::requested() const { return stop_flag != 0; }

void SweepStop::note() { stop_flag = 1; }

std::expected<Measured, InputError> measure(const std::string& folder, const SweepTools& tools, const site::Site& site,
                                            const std::vector<std::string>& only, std::optional<Seconds> deadline,
                                            SweepStop& stop, bool last) {
  const auto plan = plan::make_plan(tools.profile, site, tools.programs, {.only = only, .localise = false});
  if (!plan) return std::unexpected(plan.error());
  const std::string text = plan::plan_text(*plan);
  if (auto problem = begin_folder(folder, text)) return std::unexpected(*problem);
  bool interrupted = false;
  const judge::KeptRecords records;
  run::BoardView board;
  {
    run::Progress progress(*plan, tools.quiet ? run::Progress::Mode::quiet : run::Progress::mode_for(false));
    if (!tools.board.empty()) {
      if (auto problem = progress.show_on(tools.board, !last)) return std::unexpected(*problem);
    }
    const run::RunOptions options{.directory = folder,
                                  .agent = plan::installation().binaries + "/assay-node",
                                  .agents = plan::installation().agents(),
                                  .starts_at_once = tools.fan_out,
                                  .deadline = deadline,
                                  // One full disk is no reason to measure no other node tonight.
                                  .leaves_out_what_does_not_fit = true,
                                  .records = records,
                                  .kill_at_signal = true};
    const auto end = run::run(*plan, files::sha256(text), tools.programs, options, progress);
    if (!end) return std::unexpected(end.error());
    interrupted = *end == run::RunEnd::interrupted;
    board = progress.view();
  }
  stop.take_signals();
  if (interrupted) stop.note();
  auto verdict = judge_directory(folder, nullptr, records);
  if (!verdict) return std::unexpected(verdict.error());
  auto run = judge::read_run(folder);
  if (!run) return std::unexpected(run.error());
  print_left_out(run->journal);
  return Measured{
      .run = std::move(*run), .verdict = std::move(*verdict), .interrupted = interrupted, .board = std::move(board)};
}

std::expected<std::vector<sweep::NodeVisit>, InputError> visit_nodes(const std::string& folder, const SweepTools& tools,
                                                                     const site::Site& site,
                                                                     const std::vector<std::string>& chosen,
                                                                     std::optional<Seconds> deadline, SweepStop& stop) {
  const auto begin = std::chrono::steady_clock::now();
  const auto before = sweep::idle_checks(tools.profile, false), after = sweep::idle_checks(tools.profile, true);
  const auto checked = measure(folder + "/check", tools, site, before, deadline, stop, false);
  if (!checked) return std::unexpected(checked.error());
  std::vector<sweep::NodeVisit> visits = sweep::not_idle(checked->run, checked->verdict, before, stop.requested());
  std::vector<std::string> idle;
  for (const auto& node : site.nodes) {
    if (std::ranges::find(visits, node.name, &sweep::NodeVisit::node) == visits.end()) idle.push_back(node.name);
  }
  if (!tools.board.empty() && (idle.empty() || stop.requested())) run::end_board(tools.board, checked->board);
  if (stop.requested()) {
    for (const auto& node : idle)
      visits.push_back({.node = node, .state = drift::VisitState::preempted, .reason = "the sweep was stopped"});
    return visits;
  }
  if (idle.empty()) return visits;
  std::vector<std::string> only = chosen;
  std::erase_if(only, [&](const std::string& id) { return std::ranges::find(before, id) != before.end(); });
  if (deadline) deadline->count -= std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto measured = measure(folder + "/run", tools, site_of(site, idle), only, deadline, stop);
  if (!measured) return std::unexpected(measured.error());
  const auto more = sweep::visits_of(measured->run, measured->verdict, after, measured->interrupted);
  visits.insert(visits.end(), more.begin(), more.end());
  return visits;
}

std::optional<InputError> try_crossings(const std::string& folder, const SweepTools& tools, const site::Site& site,
                                        std::optional<Seconds> deadline, SweepStop& stop) {
  const auto profile = plan::profile_named(kCrossingProfile);
  if (!profile) return profile.error();
  SweepTools own = tools;
  own.profile = sweep::as_sweep(*profile);
  own.board.clear();  // it shows the figures of the nodes
  const auto measured = measure(folder, own, site, {}, deadline, stop);
  return measured ? std::nullopt : std::optional(measured.error());
}

std::expected<std::vector<plan::Program>, InputError> sweep_programs(const plan::Profile& profile) {
  const auto crossings = plan::profile_named(kCrossingProfile);
  if (!crossings) return std::unexpected(crossings.error());
  auto names = plan::probes_of(profile);
  names.merge(plan::probes_of(*crossings));
  return plan::installed_programs(names);
}

std::string crossing_lines(const SweepTools& tools, const site::Site& site) {
  const auto profile = plan::profile_named(kCrossingProfile);
  if (!profile) return profile.error().text();
  const auto plan = plan::make_plan(sweep::as_sweep(*profile), site, tools.programs, {.localise = false});
  return plan ? plan::crossing_words(*plan) : plan.error().text();
}

site::Site site_of(const site::Site& site, const std::vector<std::string>& names) {
  site::Site part = site;
  part.nodes.clear();
  for (const auto& name : names) {
    if (const site::Node* node = site.node(name)) part.nodes.push_back(*node);
  }
  site::keep_nodes(part.crossings, names);
  return part;
}

std::expected<Seconds, InputError> seconds_of(const char* option, const std::string& text) {
  constexpr double kSecondsOfHour = 3600;
  std::optional<Seconds> seconds = parse_seconds(text);
  if (text.ends_with('h')) {
    seconds = parse_seconds(text.substr(0, text.size() - 1) + "s");
    if (seconds) seconds->count *= kSecondsOfHour;
  }
  if (!seconds)
    return std::unexpected(InputError{option, fmt::format("'{}' is not a duration", text), "write 2h, 5min or 600s"});
  return *seconds;
}

}  // namespace assay::cli
