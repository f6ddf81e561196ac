// history_command: `assay history`: adding sweeps and events, and reading them.
#include <pwd.h>
#include <algorithm>
#include <ctime>
#include <filesystem>
#include <iostream>

#include <unistd.h>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "orchestrator/cli/run_stages.h"
#include "orchestrator/drift/unit_register.h"
#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/child.h"
#include "orchestrator/fleet/drift_command.h"
#include "orchestrator/history/sweep_of_run.h"
#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/programs.h"
#include "probes/core/command.h"
#include "probes/core/how_many.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"

namespace assay::cli {
namespace {

using drift::date_text;
using history::Access;
using history::History;

/// Seconds by which local time is ahead of UTC at `moment`.
int offset_at(std::chrono::system_clock::time_point moment) {
  const std::time_t time = std::chrono::system_clock::to_time_t(moment);
  std::tm local{};
  (void)::localtime_r(&time, &local);  // a year out of range leaves the offset of UTC
  return static_cast<int>(local.tm_gmtoff);
}

std::string this_user() {
  const passwd* user = ::getpwuid(::geteuid());
  return user == nullptr ? std::to_string(::geteuid()) : printable(user->pw_name);
}

history::Result<history::Sweep> sweep_in(const std::string& directory, bool retest) {
  const auto run = judge::read_run(directory);
  const auto started = run ? utc_time(run->journal.begin) : std::nullopt;
  return history::sweep_of_run(directory, {.retest = retest, .utc_offset_s = started ? offset_at(*started) : 0});
}

int add(const HistoryArguments& given) {
  const auto sweep = sweep_in(given.run, given.retest);
  if (!sweep) return report_failure(sweep.error());
  auto database = History::open(given.database, Access::create);
  if (!database) return report_failure(database.error());
  const auto added = database->add(*sweep);
  if (!added) return report_failure(added.error());
  if (added->already) {
    std::cout << harmless_page(
        fmt::format("night {}: this run is there already; nothing was changed\n", date_text(added->night)));
    return files::kExitSuccess;
  }
  std::size_t without = 0;
  for (const auto& visit : sweep->visits) without += visit.unit.serial ? 0 : 1;
  std::cout << harmless_page(fmt::format(
      "night {}: {}, {}, {}{}\n", date_text(added->night), how_many(added->visits, "visit"),
      how_many(added->values, "figure"), how_many(added->new_units, "new unit"),
      without == 0 ? "" : fmt::format("; by their place, without a serial number: {}", how_many(without, "unit"))));
  return files::kExitSuccess;
}

nlohmann::ordered_json document_of(const std::vector<history::SweepRow>& sweeps,
                                   const std::vector<drift::Event>& events) {
  nlohmann::ordered_json document = {{"sweeps", nlohmann::ordered_json::array()},
                                     {"events", nlohmann::ordered_json::array()}};
  for (const auto& one : sweeps) {
    document["sweeps"].push_back({{"night", date_text(one.night)},
                                  {"started", one.started},
                                  {"origin", word_of(one.origin)},
                                  {"visits", one.visits},
                                  {"values", one.values},
                                  {"verdict", one.verdict},
                                  {"label", one.label},
                                  {"run_sha256", one.run_sha256},
                                  {"raw_records", !one.raw_sha256.empty()}});
  }
  for (const auto& one : events) {
    document["events"].push_back({{"night", date_text(one.night)},
                                  {"time", one.time},
                                  {"kind", word_of(one.kind)},
                                  {"scope", one.scope},
                                  {"text", one.text},
                                  {"who", one.who}});
  }
  return document;
}

int print_json(const nlohmann::ordered_json& document) {
  std::cout << document.dump(1, ' ', true, nlohmann::ordered_json::error_handler_t::replace) << "\n";
  return files::kExitSuccess;
}

/// A visit with its figures.
nlohmann::ordered_json document_of(const drift::Fleet& fleet, const drift::Night& night, std::uint32_t place) {
  const auto& visit = night.visits[place];
  nlohmann::ordered_json figures = nlohmann::ordered_json::array();
  for (const auto& reading : night.readings) {
    if (reading.visit != place) continue;
    const auto& metric = fleet.metrics.at(fleet.series.at(reading.series).metric);
    figures.push_back({{"metric", metric.name}, {"value", reading.value}, {"unit", metric.unit}});
  }
  return {{"night", date_text(night.date)},
          {"unit", fleet.units.at(visit.unit).id},
          {"node", visit.node},
          {"slot", visit.slot},
          {"state", word_of(visit.state)},
          {"retest", visit.retest},
          {"figures", std::move(figures)}};
}

int list(const HistoryArguments& given) {
  const auto database = History::open(given.database, Access::read);
  if (!database) return report_failure(database.error());
  const auto sweeps = database->sweeps();
  if (!sweeps) return report_failure(sweeps.error());
  const auto events = database->events();
  if (!events) return report_failure(events.error());
  if (given.json) return print_json(document_of(*sweeps, *events));
  for (const auto& one : *sweeps) {
    // A sweep and a simulation accept and reject nothing; a run of acceptance that was added did.
    const bool judged = one.verdict != word_of(judge::Overall::incomplete);
    std::cout << harmless(fmt::format("{} {} {:<10} {:>6} visits {:>8} figures  {}{}{}", date_text(one.night),
                                      one.started, one.origin, one.visits, one.values, judged ? one.verdict + "  " : "",
                                      one.label, one.raw_sha256.empty() ? "" : "  raw records"))
              << "\n";
  }
  for (const auto& one : *events)
    std::cout << harmless(fmt::format("{} event {} on {}: {} ({})", date_text(one.night), one.kind, one.scope, one.text,
                                      one.who))
              << "\n";
  return files::kExitSuccess;
}

int show(const HistoryArguments& given) {
  const auto database = History::open(given.database, Access::read);
  if (!database) return report_failure(database.error());
  const auto fleet = database->fleet();
  if (!fleet) return report_failure(fleet.error());
  std::size_t shown = 0;
  nlohmann::ordered_json visits = nlohmann::ordered_json::array();
  const auto done = database->nights(history::kFirstNight, history::kLastNight, [&](const drift::Night& night) {
    for (std::uint32_t i = 0; i < night.visits.size(); ++i) {
      const auto& visit = night.visits[i];
      const auto& unit = fleet->units.at(visit.unit);
      if (unit.id != given.unit && visit.node != given.unit) continue;
      ++shown;
      if (given.json) {
        visits.push_back(document_of(*fleet, night, i));
        continue;
      }
      std::cout << harmless(fmt::format("{} {} on {} {} {}{}", date_text(night.date), unit.id, visit.node, visit.slot,
                                        visit.state, visit.retest ? ", test again" : ""))
                << "\n";
      for (const auto& reading : night.readings) {
        if (reading.visit != i) continue;
        const auto& metric = fleet->metrics.at(fleet->series.at(reading.series).metric);
        std::cout << harmless(fmt::format("  {:<40} {:.6g} {}", metric.name, reading.value, metric.unit)) << "\n";
      }
    }
  });
  if (!done) return report_failure(done.error());
  if (shown > 0) return given.json ? print_json({{"visits", std::move(visits)}}) : files::kExitSuccess;
  return report_error(drift::unknown_unit(*fleet, given.unit));
}

/// The night before which something happened that is told at `now`: this one, or the one after the newest sweep, which
/// saw the state from before; a note changes no state and is of this one. A sweep of tomorrow or later is of a wrong
/// clock, as for `drift judge`.
history::Result<drift::Date> night_of_event(const History& database, drift::EventKind kind,
                                            std::chrono::system_clock::time_point now) {
  const drift::Date tonight = history::night_of(now, offset_at(now));
  if (kind == drift::EventKind::note) return tonight;
  const auto newest = database.newest_night(std::chrono::floor<std::chrono::days>(now));
  if (!newest) return std::unexpected(newest.error());
  return *newest ? std::max(tonight, **newest + std::chrono::days{1}) : tonight;
}

int event(const HistoryArguments& given) {
  const auto kind = from_word<drift::EventKind>(given.kind);
  if (!kind)
    return report_error({"--kind", fmt::format("'{}' is no kind of event", printable(given.kind)),
                         "known are " + words_listed<drift::EventKind>()});
  const auto date = drift::date_from(given.at);
  if (!given.at.empty() && !date) return report_error({"--at", "is no date", "write 2026-03-01"});
  auto database = History::open(given.database, Access::write);
  if (!database) return report_failure(database.error());
  if (given.scope != "fleet") {
    const auto known = database->knows(given.scope);
    if (!known) return report_failure(known.error());
    if (!*known) {
      const auto fleet = database->fleet();
      return fleet ? report_error(drift::unknown_unit(*fleet, given.scope)) : report_failure(fleet.error());
    }
  }
  const auto now = std::chrono::system_clock::now();
  const auto night = date ? history::Result<drift::Date>(*date) : night_of_event(*database, *kind, now);
  if (!night) return report_failure(night.error());
  const auto done = database->add_event({.night = *night,
                                         .time = utc_text(now),
                                         .scope = given.scope,
                                         .kind = *kind,
                                         .text = given.text,
                                         .who = given.who.empty() ? this_user() : given.who});
  if (!done) return report_failure(done.error());
  std::cout << harmless(fmt::format("{} {} on {}", date_text(*night), *kind, given.scope)) << "\n";
  return files::kExitSuccess;
}

int rebuild(const HistoryArguments& given) {
  const auto policy = policy_in(given.policy);
  if (!policy) return report_error(policy.error());
  if (given.from_records) {
    const auto made = history::remake(given.database);
    if (!made) return report_failure(made.error());
    std::cout << harmless_page(fmt::format("made again: {}, {}, {}; before: {}\n", how_many(made->sweeps, "sweep"),
                                           how_many(made->events, "event"), how_many(made->baselines, "baseline"),
                                           made->old));
  }
  auto database = History::open(given.database, Access::write);
  if (!database) return report_failure(database.error());
  if (const auto done = database->forget_saved(); !done) return report_failure(done.error());
  const auto report = judge_history(*database, *policy, history::kLastNight, {});
  if (!report) return report_failure(report.error());
  std::cout << harmless_page(fmt::format("judged anew: {}, {} series, history {}\n", how_many(report->nights, "night"),
                                         report->series, report->history_sha256));
  return files::kExitSuccess;
}

int export_all(const HistoryArguments& given) {
  const auto database = History::open(given.database, Access::read);
  if (!database) return report_failure(database.error());
  if (database->simulated()) std::cerr << "SIMULATION: nothing of this was measured\n";
  const auto done =
      database->export_csv([&](std::string_view piece) { std::cout << harmless_page(std::string(piece)); });
  if (!done) return report_failure(done.error());
  std::cout << std::flush;
  if (!std::cout) return report_error({"stdout", "could not be written completely", "check the free space"});
  return files::kExitSuccess;
}

int prune(const HistoryArguments& given) {
  auto database = History::open(given.database, Access::write);
  if (!database) return report_failure(database.error());
  const auto today = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  const auto count = database->prune(today - std::chrono::days{given.keep_days});
  if (!count) return report_failure(count.error());
  std::cout << harmless_page(fmt::format("raw records of {} sweeps removed; their figures stay\n", *count));
  return files::kExitSuccess;
}

int baseline(const HistoryArguments& given) {
  // A dossier is verified whole before a figure of it is used.
  const std::string program = plan::installation().binaries + "/assay-report";
  constexpr double kLongest_s = 600;
  std::vector<std::string> words = {"verify", given.run, "--accepted"};
  for (const auto& key : given.keys) words.insert(words.end(), {"--key", key});
  const auto verified = files::run_child(program, words, Seconds{kLongest_s});
  if (!verified) return report_error(verified.error());
  if (verified->exit_code != 0) {
    report_error({given.run, "is no dossier of an accepted run that verifies",
                  fmt::format("`assay-report {}` says why", printable(fmt::format("{}", fmt::join(words, " "))))});
    return files::kExitRefused;
  }
  const auto sweep = sweep_in((std::filesystem::path(given.run) / "evidence").string(), false);
  if (!sweep) return report_failure(sweep.error());
  auto database = History::open(given.database, Access::write);
  if (!database) return report_failure(database.error());
  const auto count = database->set_baseline(*sweep, this_user());
  if (!count) return report_failure(count.error());
  std::cout << harmless_page(fmt::format("held against the acceptance of {1}: {0} series\n", *count, sweep->started));
  return *count > 0 ? files::kExitSuccess : files::kExitIncomplete;
}

}  // namespace

void add_history(Command& app, HistoryArguments& given, Action& action) {
  auto& parent = app.add_command("history", "keep the figures of nightly sweeps");
  parent.need_commands(1, 1);
  const auto add_one = [&](const char* name, const char* what, const char* example,
                           int (*work)(const HistoryArguments&)) -> Command& {
    auto& command = parent.add_command(name, what);
    add_option(command, "--db", given.database, "FILE", "database of the nightly sweeps")->required();
    end_command(command, std::string("Example: ") + example, action, [&given, work] { return work(given); });
    return command;
  };
  auto& adding = add_one("add", "add the figures of a judged run; once, however often it is said",
                         "assay history add run --db history.db", add);
  add_option(adding, "run", given.run, "DIR", "run directory")->required();
  adding.add_flag("--retest", given.retest, "the run is a fresh test of flagged units");
  auto& listing = add_one("list", "list sweeps and events", "assay history list --db history.db", list);
  listing.add_flag("--json", given.json, "print JSON");
  auto& showing = add_one("show", "print every visit of a unit or node",
                          "assay history show gpu:1324523049871 --db history.db", show);
  showing.add_flag("--json", given.json, "print JSON");
  add_option(showing, "unit", given.unit, "UNIT|NODE", "id of a unit, or name of a node")->required();
  auto& telling = add_one("event", "tell what was changed on units",
                          "assay history event --kind driver --on n01 --text 580.95 --db history.db", event);
  add_option(telling, "--kind", given.kind, "WORD", words_listed<drift::EventKind>())->required();
  add_option(telling, "--on", given.scope, "SCOPE", "id of a unit, name of a node, or fleet")->required();
  add_option(telling, "--at", given.at, "DATE",
             "the night before which it happened [tonight, or the one after the newest sweep]");
  add_option(telling, "--text", given.text, "TEXT", "version or remark");
  add_option(telling, "--who", given.who, "NAME", "who says so [this user]");
  auto& anew = add_one("rebuild", "forget what was computed, and compute it from the figures",
                       "assay history rebuild --db history.db", rebuild);
  anew.add_flag("--from-records", given.from_records,
                "make a damaged database again from what was added to it; it is kept as FILE.old");
  add_option(anew, "--policy", given.policy, "FILE", "policy to judge by [the default one]");
  add_one("export", "print every figure as CSV", "assay history export --db history.db > all.csv", export_all);
  auto& pruning = add_one("prune", "remove old raw records; figures are kept for ever",
                          "assay history prune --keep-days 90 --db history.db", prune);
  pruning.add_option("--keep-days", given.keep_days, "keep the raw records of so many days [90]")->between(0, 36500);
  auto& accepted = add_one("baseline", "hold the fleet against a signed acceptance",
                           "assay history baseline run/dossier --key lab.key.pub --db history.db", baseline);
  add_option(accepted, "dossier", given.run, "DIR", "dossier of an accepted run")->required();
  add_option(accepted, "--key", given.keys, "FILE", "public key of a required signer; may be repeated")->required();
}

}  // namespace assay::cli
