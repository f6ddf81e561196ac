// drift_command: `assay drift judge`, `explain` and `replay`.
#include "orchestrator/fleet/drift_command.h"

#include <chrono>
#include <cmath>
#include <future>
#include <iostream>
#include <optional>

#include <fmt/format.h>

#include "orchestrator/cli/run_stages.h"
#include "orchestrator/drift/detector.h"
#include "orchestrator/drift/unit_register.h"
#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/digest.h"
#include "probes/core/command.h"
#include "probes/core/text.h"

namespace assay::cli {
namespace {

using drift::Date;
using drift::date_text;

const Date kFirst = Date{std::chrono::year{1970} / 1 / 1}, kLast = Date{std::chrono::year{9999} / 12 / 31};

std::expected<Date, InputError> date_given(const std::string& text, const char* option, Date otherwise) {
  if (text.empty()) return otherwise;
  if (const auto date = drift::date_from(text)) return *date;
  return std::unexpected(InputError{option, fmt::format("'{}' is no date", printable(text)), "write 2026-03-01"});
}

/// Prints the report, with `sight` (sight_text()), and writes the requested file; gives the exit code.
int conclude(const drift::DriftReport& report, const std::string& sight, const std::string& out, bool json) {
  const std::string text = drift::report_text(report);
  if (!out.empty()) {
    if (const auto problem = files::replace_file(out, text)) return report_error(*problem);
  }
  std::cout << (json ? ascii_json(text) : harmless_page(drift::summary_text(report) + sight)) << std::flush;
  if (!std::cout) return report_error({"stdout", "could not be written completely", "check the free space"});
  return drift::exit_code(report);
}

/// A history that was judged.
struct Judged {
  drift::DriftReport report;
  drift::Policy policy;
  drift::Fleet fleet;
  std::vector<drift::Event> events;
};

/// The history that is named, judged as of the night that is named; or the exit code, after the error was printed. With
/// `access` for writing the state is kept for the next time.
std::expected<Judged, int> judged(const DriftArguments& given, history::Access access) {
  const auto policy = policy_in(given.policy);
  if (!policy) return std::unexpected(report_error(policy.error()));
  const auto as_of = date_given(given.as_of, "--as-of", kLast);
  if (!as_of) return std::unexpected(report_error(as_of.error()));
  auto database = history::History::open(given.database, access);
  if (!database) return std::unexpected(report_failure(database.error()));
  auto report =
      judge_history(*database, *policy, *as_of, {.threads = given.threads, .keep = access == history::Access::write});
  if (!report) return std::unexpected(report_failure(report.error()));
  auto fleet = database->fleet();
  if (!fleet) return std::unexpected(report_failure(fleet.error()));
  auto events = database->events();
  if (!events) return std::unexpected(report_failure(events.error()));
  return Judged{
      .report = std::move(*report), .policy = *policy, .fleet = std::move(*fleet), .events = std::move(*events)};
}

int judge(const DriftArguments& given) {
  auto done = judged(given, history::Access::write);
  if (!done) return done.error();
  // Ages count from the last night of a history, so one whose sweeps have stopped would stay healthy.
  const auto now = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  const auto day = date_given(given.as_of, "--as-of", now).value_or(now);
  const auto silent = static_cast<int>((day - done->report.as_of).count());
  if (!done->report.simulated && silent < -1)  // a night's date is local
    return report_error({given.database,
                         fmt::format("its last night is of {}: from the future", date_text(done->report.as_of)),
                         "correct the clock or the night of that sweep; --as-of judges the nights up to a date"});
  if (!done->report.simulated && done->report.nights > 0 && silent > done->policy.max_age_nights)
    done->report.coverage.silent_nights = silent;
  return conclude(done->report, drift::sight_text(done->report, &done->policy), given.out, given.json);
}

/// What was changed on the unit, its node or the fleet before the flag. A unit is measured once in `max_age_nights`, so
/// a change that much before the onset can be its cause.
std::string changes_before(const Judged& done, const drift::Flag& flag) {
  std::string text;
  for (const auto& event : done.events) {
    const bool near = event.scope == flag.unit || event.scope == flag.node || event.scope == "fleet";
    if (near && event.night <= flag.raised && flag.onset - event.night <= std::chrono::days{done.policy.max_age_nights})
      text += fmt::format("event     {} {} on {}{}{}, by {}\n", date_text(event.night), event.kind, event.scope,
                          event.text.empty() ? "" : ": ", event.text, event.who);
  }
  return text;
}

/// Every term of a flag, for people.
std::string explained(const drift::DriftReport& report, const drift::Policy& policy, const drift::Flag& flag) {
  const drift::Arithmetic& a = flag.arithmetic;
  std::string text = fmt::format(
      "{} {}\nunit      {} ({}) on {} {}\nmetric    {} ({})\nrule      {}, raised {}, onset about {}, last visit {}\n"
      "          {}\n",
      flag.state, flag.id, flag.unit, flag.serial ? "serial number" : "no serial number is known", flag.node, flag.slot,
      flag.metric, flag.type, flag.rule, date_text(flag.raised), date_text(flag.onset), date_text(flag.last_visit),
      flag.words);
  if (flag.type == drift::MetricClass::level) {
    text += fmt::format(
        "numbers   x = {:.6f}: logarithm of the figure without the cohort's shift of {:+.6f}\n"
        "          m = {:.6f}, s = {:.6f} over n = {:g} visits, {} peers in that night\n"
        "          T = (x - m) / (s sqrt(1 + 1/n)) = {:.3f}{}\n"
        "          z = {:.4g}, the score {}; C = {:.3f}{}\n",
        a.x, a.shift, a.m, a.s, a.n, a.peers, a.T,
        a.rho > 0 ? fmt::format(", after a serial correlation of {:.2f} was taken out", a.rho) : "", a.z,
        a.peers >= 100                 ? "by its rank among the peers"
        : std::abs(a.z) >= policy.clip ? "capped"
                                       : "that T has",
        a.C, a.h > 0 ? fmt::format(" over the limit h = {:.3f}", a.h) : "");
  }
  text += fmt::format("limits    h = {:.3f} and {:.3f}: one false flag of a chart in {:.3g} visits\n",
                      report.thresholds.h_small, report.thresholds.h_large, report.thresholds.arl0);
  for (const auto& test : flag.retests)
    text += fmt::format("test      {} {}: {:.2f} % of the reference, {:+.2f} deviations\n", date_text(test.night),
                        test.regular ? "nightly visit" : "fresh test", 100 * test.ratio, test.residual);
  for (const auto& run : flag.evidence) text += "evidence  " + run + "\n";
  for (const auto& suspect : flag.suspects) text += "suspect   " + suspect + "\n";
  const auto action = drift::action_of(flag);
  return text + fmt::format("action    {}{}\nto do     {}\n", short_words(action),
                            action.says.empty() ? "" : ": " + action.says, drift::advice_for(flag));
}

/// The units with this id or on this node, none of which has a flag; nothing if there are none.
std::string explained_units(const Judged& done, const std::string& unit_or_node) {
  std::string text;
  for (const auto& unit : done.fleet.units) {
    if (unit.id != unit_or_node && unit.node != unit_or_node) continue;
    const auto state = done.report.states.find(unit.id);
    text +=
        fmt::format("{:<9} {} on {}: no flag\n",
                    state == done.report.states.end() ? drift::UnitState::steady : state->second, unit.id, unit.node);
  }
  return text.empty() ? text : text + drift::sight_text(done.report, &done.policy);
}

int explain(const DriftArguments& given) {
  const auto done = judged(given, history::Access::read);
  if (!done) return done.error();
  drift::DriftReport chosen = done->report;
  std::erase_if(chosen.flags, [&](const auto& flag) {
    return flag.id != given.flag && flag.unit != given.flag && flag.node != given.flag;
  });
  std::string text;
  for (const auto& flag : chosen.flags)
    text += explained(done->report, done->policy, flag) + changes_before(*done, flag);
  if (text.empty()) text = explained_units(*done, given.flag);
  if (text.empty()) {
    InputError error = drift::unknown_unit(done->fleet, given.flag);
    error.what += ", nor that of a flag";
    return report_error(error);
  }
  std::cout << (given.json ? ascii_json(drift::report_text(chosen)) : harmless_page(text));
  return files::kExitSuccess;
}

int replay(const DriftArguments& given) {
  const auto policy = policy_in(given.policy);
  if (!policy) return report_error(policy.error());
  const auto from = date_given(given.from, "--from", kFirst);
  const auto to = date_given(given.to, "--to", kLast);
  if (!from) return report_error(from.error());
  if (!to) return report_error(to.error());
  const auto database = history::History::open(given.database, history::Access::read);
  if (!database) return report_failure(database.error());
  const auto fleet = database->fleet();
  if (!fleet) return report_failure(fleet.error());
  drift::Detector detector(*fleet, *policy, given.threads);
  const auto done = database->nights(kFirst, *to, [&](const drift::Night& night) {
    detector.add(night);
    if (night.date >= *from) std::cout << harmless_page(drift::summary_text(detector.report()));
  });
  if (!done) return report_failure(done.error());
  const auto report = detector.report();
  return conclude(report, drift::sight_text(report, &*policy), given.out, false);
}

void add_common(Command& command, DriftArguments& given) {
  add_option(command, "--db", given.database, "FILE", "database of the nightly sweeps")->required();
  add_option(command, "--policy", given.policy, "FILE",
             "budget of false flags and limits [one false flag in 30 nights]");
  command.add_option("--threads", given.threads, "threads to compute with; the result is the same [2]")
      ->between(1U, 64U);
}

}  // namespace

int report_failure(const history::Failure& failure) {
  report_error(failure.error);
  return failure.exit_code;
}

std::expected<drift::Policy, InputError> policy_in(const std::string& file) {
  if (file.empty()) return drift::Policy{};
  const auto text = read_file(file);
  if (!text) return std::unexpected(text.error());
  return drift::read_policy(*text, file);
}

history::Result<drift::DriftReport> judge_history(history::History& history, const drift::Policy& policy,
                                                  drift::Date as_of, JudgingHow how) {
  const auto fleet = history.fleet();
  if (!fleet) return std::unexpected(fleet.error());
  const std::string policy_sha256 = files::sha256(drift::policy_text(policy));
  const auto saved = history.saved(policy_sha256);
  if (!saved) return std::unexpected(saved.error());
  drift::Detector detector(*fleet, policy, how.threads);
  Date from = kFirst;
  if (*saved && (*saved)->night < as_of) {
    auto resumed = drift::Detector::resume(*fleet, policy, (*saved)->bytes, how.threads);
    if (resumed) {  // a state of another version is not used
      detector = std::move(*resumed);
      from = (*saved)->night + std::chrono::days{1};
    }
  }
  // One night is held back, so that the saved state is the one before the last. A night is judged while the next is
  // read.
  std::optional<drift::Night> held;
  std::future<void> judging;
  const auto finish = [&judging] {
    if (judging.valid()) judging.get();
  };
  const auto done = history.nights(from, as_of, [&](drift::Night night) {
    finish();
    if (held)
      judging = std::async(std::launch::async, [&detector, before = std::move(*held)] { detector.add(before); });
    held = std::move(night);
  });
  finish();
  if (!done) return std::unexpected(done.error());
  if (held) {
    if (how.keep && detector.last() >= from) {
      if (const auto kept = history.save(policy_sha256, {.night = detector.last(), .bytes = detector.state()}); !kept)
        return std::unexpected(kept.error());
    }
    detector.add(*held);
  }
  return detector.report();
}

void add_drift(Command& app, DriftArguments& given, Action& action) {
  auto& command = app.add_command("drift", "say which units of the nightly sweeps are not as they were");
  command.need_commands(1, 1);
  auto& judged = command.add_command("judge", "judge every unit by its own history");
  add_common(judged, given);
  add_option(judged, "--as-of", given.as_of, "DATE",
             "use no night after this one, and count ages from it [all, today]");
  add_option(judged, "-o,--out", given.out, "FILE", "file for the report (assay.drift/3)");
  judged.add_flag("--json", given.json, "print the report as JSON");
  end_command(judged,
              "Exit codes: 0 no confirmed flag, 1 confirmed flags, 3 units were not measured for too long, 4 the "
              "database is damaged.\nExample: assay drift judge --db history.db --policy policy.json -o drift.json",
              action, [&] { return judge(given); });
  auto& explaining = command.add_command("explain", "print every term of a flag");
  add_option(explaining, "flag", given.flag, "FLAG|UNIT|NODE", "id of a flag, a unit, or a node")->required();
  add_common(explaining, given);
  add_option(explaining, "--as-of", given.as_of, "DATE", "use no night after this one [all]");
  explaining.add_flag("--json", given.json, "print the report of `drift judge --json` with these flags alone");
  end_command(explaining, "Example: assay drift explain 3f9a0c117b2e --db history.db", action,
              [&] { return explain(given); });
  auto& replaying = command.add_command("replay", "judge every night anew, as it would have been then");
  add_common(replaying, given);
  add_option(replaying, "--from", given.from, "DATE", "first night to print [the first]");
  add_option(replaying, "--to", given.to, "DATE", "last night [the last]");
  add_option(replaying, "-o,--out", given.out, "FILE", "file for the last report");
  end_command(replaying, "Example: assay drift replay --db history.db --from 2026-03-01 --policy stricter.json", action,
              [&] { return replay(given); });
}

}  // namespace assay::cli
