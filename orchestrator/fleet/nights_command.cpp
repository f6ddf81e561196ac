// nights_command: `assay simulate --nights`: months of a made-up fleet, judged in memory or written to a database.
#include <iostream>
#include <set>

#include <fmt/format.h>

#include "orchestrator/cli/run_stages.h"
#include "orchestrator/files/atomic_file.h"
#include "orchestrator/fleet/drift_command.h"
#include "orchestrator/rehearse/nights.h"
#include "orchestrator/rehearse/rehearsal.h"
#include "probes/core/command.h"
#include "probes/core/how_many.h"
#include "probes/core/text.h"

namespace assay::cli {
namespace {

using drift::date_text;

history::Sweep sweep_of(const drift::Fleet& fleet, const drift::Night& night) {
  history::Sweep sweep{.run_sha256 = night.visits.front().run_sha256,
                       .started = night.visits.front().started,
                       .night = night.date,
                       .origin = history::Origin::simulated,
                       .verdict = "incomplete",
                       .label = "simulated"};
  for (const auto& visit : night.visits)
    sweep.visits.push_back({.unit = fleet.units[visit.unit],
                            .cohort = fleet.cohorts[visit.cohort],
                            .state = visit.state,
                            .retest = visit.retest});
  for (const auto& reading : night.readings)
    sweep.visits[reading.visit].figures.push_back(
        {.metric = fleet.metrics[fleet.series[reading.series].metric], .value = reading.value, .samples = 1});
  return sweep;
}

int simulate(const NightsArguments& given) {
  const auto policy = policy_in(given.policy);
  if (!policy) return report_error(policy.error());
  rehearse::NightFaults faults;
  if (!given.faults.empty()) {
    const auto text = read_file(given.faults);
    if (!text) return report_error(text.error());
    auto read = rehearse::read_night_faults(*text, given.faults);
    if (!read) return report_error(read.error());
    faults = std::move(*read);
  }
  rehearse::Nights nights({.nodes = given.nodes, .metrics = given.metrics, .seed = given.seed}, std::move(faults));
  std::optional<history::History> database;
  if (!given.database.empty()) {
    auto opened = history::History::open(given.database, history::Access::create_simulation);
    if (!opened) return report_failure(opened.error());
    database.emplace(std::move(*opened));
  }
  rehearse::Rehearsal rehearsal(nights, *policy, given.retests, given.threads);
  std::set<std::string> told;
  std::size_t right_flags = 0, false_flags = 0, tests = 0;
  for (int i = 0; i < given.nights; ++i) {
    const auto sweeps = rehearsal.next();
    for (const drift::Night& sweep : sweeps) {
      tests += sweep.visits.front().retest ? sweep.visits.size() : 0;
      if (!database) continue;
      if (const auto added = database->add(sweep_of(nights.fleet(), sweep)); !added)
        return report_failure(added.error());
    }
    for (const auto& flag : rehearsal.report().flags) {
      if (!told.insert(flag.id).second) continue;
      const rehearse::FlagCause cause = nights.cause_of(flag);
      ++(cause == rehearse::FlagCause::fault ? right_flags : false_flags);
      std::cout << harmless(fmt::format("night {:>4} {}: {} {} ({}): {}", i, date_text(sweeps.front().date), flag.unit,
                                        flag.metric, cause, flag.words))
                << "\n";
    }
  }
  const auto& report = rehearsal.report();
  if (!given.out.empty()) {
    if (const auto problem = files::replace_file(given.out, drift::report_text(report))) return report_error(*problem);
  }
  std::cout << harmless_page(drift::summary_text(report) + drift::sight_text(report, &*policy))
            << fmt::format(
                   "SIMULATION of {}, {}, {}; flags: {} of a fault, {} without one; {}, "
                   "limits {:.2f} and {:.2f}. Nothing was measured.\n",
                   how_many(given.nights, "night"), how_many(given.nodes, "node"), how_many(given.metrics, "metric"),
                   right_flags, false_flags, how_many(tests, "fresh test"), report.thresholds.h_small,
                   report.thresholds.h_large);
  return files::kExitSuccess;
}

}  // namespace

void add_nights(Command& app, NightsArguments& given, Action& action) {
  constexpr std::size_t kMostNodes = 100'000, kMostMetrics = 100;
  auto& command = app.add_command("simulate", "rehearse a run, or with --nights months of nightly sweeps");
  command.add_option("--nights", given.nights, "so many nights of a made-up fleet; the options below are for these")
      ->between(1, 3660)
      ->required();
  command.add_option("--nodes", given.nodes, "nodes of the fleet [100]")->between(std::size_t{1}, kMostNodes);
  command.add_option("--metrics", given.metrics, "metrics of each node [10]")->between(std::size_t{1}, kMostMetrics);
  command.add_option("--seed", given.seed, "the same seed gives the same nights [1]");
  add_option(command, "--faults", given.faults, "FILE", "what happens (assay.night-faults/1) [nothing]");
  add_option(command, "--policy", given.policy, "FILE", "policy to try out [the default one]");
  add_option(command, "--db", given.database, "FILE",
             "write the nights to this new database, too; it says that it is a simulation");
  add_option(command, "-o,--out", given.out, "FILE", "file for the last report (assay.drift/3)");
  command
      .add_option("--retests", given.retests,
                  "sets of fresh tests a night, of the nodes that are to be tested again; 0 is none [3]")
      ->between(0, 7);
  command.add_option("--threads", given.threads, "threads to compute with [2]")->between(1U, 64U);
  end_command(command, "Example: assay simulate --nights 120 --nodes 1000 --faults night-faults.json", action,
              [&] { return simulate(given); });
}

}  // namespace assay::cli
