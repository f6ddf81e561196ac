// run_command: `assay run`, `judge`, `status` and `accept`.
#include <chrono>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string_view>

#include <unistd.h>

#include <fmt/format.h>

#include "orchestrator/cli/commands.h"
#include "orchestrator/cli/feasible.h"
#include "orchestrator/cli/run_stages.h"
#include "orchestrator/cli/signing.h"
#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/digest.h"
#include "orchestrator/files/own_folder.h"
#include "orchestrator/files/terminal.h"
#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/evidence/run_state.h"
#include "orchestrator/judge/overall/verdict_table.h"
#include "orchestrator/plan/profile_check.h"
#include "orchestrator/plan/programs.h"
#include "probes/core/how_many.h"
#include "probes/core/secret_file.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

/// `path` without the slashes at its end, so that names in it can be shown.
std::string without_slash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

/// "assay-run-20260105T063741Z", the default output, in the working directory.
std::string fresh_directory_name() {
  std::string time = utc_text(std::chrono::system_clock::now());
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  return "assay-run-" + time.substr(0, time.find('.')) + "Z";
}

/// The verdict on stdout: the table as it fits there, or every cell.
std::string table_of(const judge::Verdict& verdict, const judge::Advices& advices, bool every_cell) {
  const files::Terminal terminal = files::terminal_of(STDOUT_FILENO);
  return judge::verdict_table(verdict, {.every_cell = every_cell, .width = terminal.width, .colour = terminal.colour},
                              advices);
}

int finish(const std::string& directory, const RunSettings& settings, judge::KeptRecords records) {
  judge::Advices advices;
  const auto verdict = judge_directory(directory, &advices, std::move(records));
  if (!verdict) return report_error(verdict.error());
  if (settings.json) {
    std::cout << nlohmann::ordered_json{{"event", "verdict"},
                                        {"directory", directory},
                                        {"overall", to_string(verdict->overall)},
                                        {"reason", verdict->reason}}
                     .dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace)
              << std::endl;
  } else {
    std::cout << table_of(*verdict, advices, settings.all) << std::flush;
  }
  return judge::exit_code(verdict->overall);
}

/// A fresh run directory with the plan in it: `out`, or one of a new name if it is empty.
std::expected<std::string, InputError> open_directory(const std::string& out, const std::string& text) {
  std::string directory = out.empty() ? fresh_directory_name() : out;
  if (auto problem = out.empty() ? files::make_private_folder(directory) : files::take_own_folder(directory))
    return std::unexpected(std::move(*problem));
  try {
    files::write_durably(directory + "/plan.json", text);
  } catch (const std::system_error& failure) {
    return std::unexpected(
        InputError{directory, fmt::format("cannot be written: {}", failure.what()), "name another --out"});
  }
  return directory;
}

/// Result of a run.
struct RunResult {
  int code = 0;
  run::RunEnd end = run::RunEnd::finished;
};

std::expected<RunResult, InputError> run_then_judge(const std::string& directory,
                                                    const std::vector<plan::Program>& programs, bool resume,
                                                    const RunSettings& settings) {
  judge::KeptRecords records;
  const auto end = carry_out(directory, programs, resume, settings, records);
  if (!end) return std::unexpected(end.error());
  if (const std::string dossier = directory + "/" + judge::kDossierFolder;
      judge::dossier_state(directory, dossier) == judge::DossierState::earlier) {
    const auto aside = judge::move_dossier_aside(directory);
    if (!aside) return std::unexpected(aside.error());
    std::cerr << fmt::format("{} was signed before the run went on; it is now {}\n", harmless(dossier),
                             harmless(*aside));
  }
  return RunResult{.code = finish(directory, settings, std::move(records)), .end = *end};
}

/// `path` for a command that is shown to people: in quotes where a shell would take it apart.
std::string shown(const std::string& path) { return has_only(path, "/._-+@%,:") ? path : "'" + path + "'"; }

/// The options that sign as `key` does.
std::string signing_options(const KeyRequest& key) {
  if (!key.is_named()) return " --sign";
  return " --key " + shown(key.key) +
         (key.passphrase_file.empty() ? "" : " --passphrase-file " + shown(key.passphrase_file)) +
         (key.certificate.empty() ? "" : " --certificate " + shown(key.certificate));
}

/// How to continue a run that did not end.
void tell_how_to_resume(const std::string& directory, run::RunEnd end, const std::string& options) {
  std::cerr << fmt::format(
      "{}; to resume{}: assay run --resume {}{}\n",
      end == run::RunEnd::interrupted ? "interrupted by you, and not signed" : "stopped before the end of the plan",
      options.empty() ? "" : ", report and sign", shown(directory), options);
}

/// The requested key, opened; nothing without one.
std::expected<std::optional<SigningKey>, InputError> key_for(const KeyRequest& request) {
  if (!request.is_wanted()) return std::nullopt;
  auto opened = open_key(request);
  if (!opened) return std::unexpected(opened.error());
  return std::move(*opened);
}

/// Runs or resumes; then reports and signs with a key, else says how to.
int run_and_sign(const std::string& directory, const std::vector<plan::Program>& programs, bool resume,
                 const RunSettings& settings, const KeyRequest& request, const std::optional<SigningKey>& key) {
  const auto result = run_then_judge(directory, programs, resume, settings);
  if (!result) return report_error(result.error());
  if (result->code == files::kExitBadInput) return result->code;
  if (result->end != run::RunEnd::interrupted && key) {
    if (auto written = report_and_sign(directory, *key); !written) return report_error(written.error());
  }
  if (result->end != run::RunEnd::finished) {
    tell_how_to_resume(directory, result->end, key ? signing_options(request) : "");
  } else if (!key) {
    std::cerr << fmt::format("to report and sign: assay report {0} && assay sign {0} --key FILE\n",
                             harmless(shown(directory)));
  }
  return result->code;
}

}  // namespace

int command_accept(const PlanRequest& request, const RunSettings& settings, std::string out, KeyRequest key) {
  const auto times = times_of(settings);
  if (!times) return report_error(times.error());
  const auto prepared = prepare(request);
  if (!prepared) return report_error(prepared.error());
  if (!request.dry_run) {
    if (auto problem = no_gpu_here(prepared->plan)) return report_error(*problem);
  }
  std::cerr << harmless_page(plan_summary(*prepared, times->deadline));
  key.sign = !request.dry_run;
  const auto opened = key_for(key);  // before anything is measured
  if (!opened) return report_error(opened.error());
  if (request.dry_run) {
    if (settings.json) {
      print_steps_json("accept", *prepared, "");
    } else {
      print_steps(prepared->plan);
    }
    std::cerr << fmt::format("dry run: would write to {}\n", out.empty() ? fresh_directory_name() : harmless(out));
    return files::kExitSuccess;
  }
  const auto directory = open_directory(out, plan::plan_text(prepared->plan));
  if (!directory) return report_error(directory.error());
  return run_and_sign(without_slash(*directory), prepared->programs, false, settings, key, *opened);
}

int command_run(const std::string& plan_file, const std::string& out, const RunSettings& settings,
                const KeyRequest& request) {
  if (const auto times = times_of(settings); !times) return report_error(times.error());
  const auto text = read_deciding_file(plan_file);
  if (!text) return report_error(text.error());
  const auto plan = plan::read_plan(*text, plan_file);
  if (!plan) return report_error(plan.error());
  if (auto problem = no_gpu_here(*plan)) return report_error(*problem);
  // A plan holds the consent of its author, not of the user.
  const auto changes = plan::unallowed_settings(plan->profile, plan->only);
  if (changes && !settings.allow_settings) return report_error(*changes);
  const auto programs = plan::installed_programs(plan::probes_of(*plan));
  if (!programs) return report_error(programs.error());
  const auto key = key_for(request);
  if (!key) return report_error(key.error());
  const auto directory = open_directory(out, *text);
  if (!directory) return report_error(directory.error());
  return run_and_sign(without_slash(*directory), *programs, false, settings, request, *key);
}

int command_resume(const std::string& directory, const RunSettings& settings, const KeyRequest& request) {
  if (auto problem = files::check_own_folder(directory)) return report_error(*problem);
  const std::string plan_file = directory + "/plan.json";
  const auto text = read_file(plan_file);
  if (!text) return report_error(text.error());
  const auto plan = plan::read_plan(*text, plan_file);
  if (!plan) return report_error(plan.error());
  const auto programs = plan::installed_programs(plan::probes_of(*plan));
  if (!programs) return report_error(programs.error());
  const auto key = key_for(request);
  if (!key) return report_error(key.error());
  return run_and_sign(without_slash(directory), *programs, true, settings, request, *key);
}

int command_judge(const std::string& directory, bool json, bool all) {
  if (const auto writer = judge::writer_of(directory))
    std::cerr << fmt::format("assay: the run is still going on ({}): this judges what has ended so far\n",
                             harmless(*writer));
  judge::Advices advices;
  const auto verdict = judge_directory(directory, &advices);
  if (!verdict) return report_error(verdict.error());
  std::cout << (json ? ascii_json(judge::verdict_text(*verdict)) : table_of(*verdict, advices, all));
  return judge::exit_code(verdict->overall);
}

int command_status(const std::string& directory, bool json) {
  const auto run = judge::read_run(directory);
  if (!run) return report_error(run.error());
  const judge::RunProgress progress = judge::progress_of(run->plan, run->journal);
  const auto writer = judge::writer_of(directory);
  const bool stale = judge::run_gone_on(directory + "/" + judge::kDossierFolder).has_value();
  if (json) {
    std::cout << nlohmann::ordered_json{{"run_id", run->journal.run_id},
                                        {"finished", run->journal.finished},
                                        {"steps", run->plan.steps.size()},
                                        {"ended", progress.steps_ended},
                                        {"planned_attempts", progress.attempts},
                                        {"ended_attempts", progress.attempts_ended},
                                        {"stage", progress.stage},
                                        {"pass", progress.pass},
                                        {"passes", progress.passes},
                                        {"extra_tests", progress.tests},
                                        {"attempts", progress.outcomes},
                                        {"resumed", run->journal.resumed},
                                        {"running", writer.has_value()},
                                        {"dossier_is_earlier", stale}}
                     .dump(-1, ' ', true)
              << '\n';
    return files::kExitSuccess;
  }
  std::cout << fmt::format("run {} of plan {}\n{} of {} attempts of {} ended, {}\n", harmless(run->journal.run_id),
                           run->plan_sha256, progress.attempts_ended, progress.attempts,
                           how_many(run->plan.steps.size(), "step"),
                           run->journal.finished ? "the run is finished"
                           : writer              ? fmt::format("the run is going on ({})", harmless(*writer))
                                                 : "the run is not finished: assay run --resume goes on with it");
  if (!run->journal.finished) {
    std::cout << fmt::format("pass {} of {}{}\n", progress.pass, progress.passes,
                             progress.stage == plan::Stage::second ? " of the second stage" : "");
  }
  if (run->journal.second_stage)
    std::cout << fmt::format("measured again in the second stage: {}\n",
                             how_many(run->journal.more_attempts.size(), "step"));
  if (stale) std::cout << "the dossier was signed before the run went on: `assay sign` makes a new one\n";
  if (progress.tests > 0) std::cout << fmt::format("{} to locate faults\n", how_many(progress.tests, "extra test"));
  // An attempt without an end is one that runs, or one that an earlier process left.
  const std::string_view open = !writer ? "interrupted" : run->journal.resumed ? "running or interrupted" : "running";
  for (const auto& [outcome, count] : progress.outcomes)
    std::cout << fmt::format("  {:<14} {}\n", outcome == "interrupted" ? open : outcome, count);
  for (const auto& event : run->journal.node_events)
    std::cout << fmt::format("  node {}: {}\n", harmless(event.node), harmless(event.reason));
  return files::kExitSuccess;
}

}  // namespace assay::cli
