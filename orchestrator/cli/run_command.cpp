// run_command: `assay run`, `judge`, `status` and `accept`.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include <fmt/format.h>

#include "orchestrator/cli/commands.h"
#include "orchestrator/cli/stages.h"
#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/child.h"
#include "orchestrator/files/digest.h"
#include "orchestrator/judge/evidence.h"
#include "orchestrator/judge/verdict_table.h"
#include "orchestrator/plan/programs.h"
#include "probes/core/utc_time.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

constexpr Seconds kReportDeadline{300};  // a report of 10,000 nodes takes tens of seconds

/// "assay-run-20260105T063741Z", the default output, in the working directory.
std::string fresh_directory_name() {
  std::string time = utc_text(std::chrono::system_clock::now());
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  return "assay-run-" + time.substr(0, time.find('.')) + "Z";
}

/// This machine's own key, in the user's state directory; made on first use.
std::string machine_key_path() {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  const fs::path base = state != nullptr && *state != '\0'
                            ? fs::path(state)
                            : fs::path(home != nullptr ? home : "/root") / ".local/state";
  return base / "assay/machine.key";
}

/// Runs a command of assay-report; what it printed on stdout, without the final newline.
std::expected<std::string, InputError> call_report(const std::vector<std::string>& arguments) {
  auto child = files::run_child(plan::installation().binaries + "/assay-report", arguments, kReportDeadline);
  if (!child) return std::unexpected(child.error());
  if (child->output.ends_with('\n')) child->output.pop_back();
  if (child->exit_code == 0) return child->output;
  return std::unexpected(InputError{"assay-report " + arguments.front(),
                                    fmt::format("exited with code {}", child->exit_code),
                                    "its error message is printed above"});
}

/// Writes report and dossier; the report states when the key is this machine's own.
std::expected<void, InputError> report_and_sign(const std::string& directory, const std::string& key) {
  const bool self_signed = key.empty();
  const std::string file = self_signed ? machine_key_path() : key;
  if (self_signed && !fs::exists(file)) {
    fs::create_directories(fs::path(file).parent_path());
    if (auto made = call_report({"keygen", file}); !made) return std::unexpected(made.error());
  }
  std::vector<std::string> report = {"report", directory};
  std::vector<std::string> sign = {"sign", directory, "--key", file};
  if (self_signed) {
    const auto fingerprint = call_report({"fingerprint", file + ".pub"});
    if (!fingerprint) return std::unexpected(fingerprint.error());
    report.insert(report.end(), {"--self-signed", *fingerprint});
    sign.emplace_back("--self-signed");
  }
  for (const auto& arguments : {report, sign}) {
    if (auto done = call_report(arguments); !done) return std::unexpected(done.error());
  }
  std::cerr << fmt::format(
      "report   {}/report.html\ndossier  {}/dossier\nverify   assay-report verify {}/dossier --key {}.pub{}\n",
      directory, directory, directory, file,
      self_signed
          ? "\n         SELF-SIGNED with this machine's own key: proves integrity, not the identity of the signer"
          : "");
  return {};
}

int finish(const std::string& directory, bool json) {
  const auto verdict = judge_directory(directory);
  if (!verdict) return report_error(verdict.error());
  if (json) {
    std::cout << nlohmann::ordered_json{{"event", "verdict"},
                                        {"directory", directory},
                                        {"overall", to_string(verdict->overall)},
                                        {"reason", verdict->reason}}
                     .dump()
              << std::endl;
  } else {
    std::cout << judge::verdict_table(*verdict) << std::flush;
  }
  return judge::exit_code(verdict->overall);
}

/// A fresh run directory with the plan in it.
std::expected<void, InputError> open_directory(const std::string& directory, const std::string& text) {
  std::error_code error;
  if (fs::exists(directory) && !fs::is_empty(directory, error)) {
    return std::unexpected(InputError{directory, "exists and is not empty",
                                      "name another --out, or use `assay run --resume` for an interrupted run"});
  }
  try {
    files::write_durably(directory + "/plan.json", text);
  } catch (const std::system_error& failure) {
    return std::unexpected(
        InputError{directory, fmt::format("cannot be written: {}", failure.what()), "name another --out"});
  }
  return {};
}

int run_then_judge(const std::string& directory, const std::vector<plan::Program>& programs, bool resume,
                   const RunSettings& settings) {
  const auto end = carry_out(directory, programs, resume, settings);
  if (!end) return report_error(end.error());
  const int code = finish(directory, settings.json);
  if (*end != run::RunEnd::finished) {
    std::cerr << fmt::format("{}; to resume: assay run --resume {}\n",
                             *end == run::RunEnd::interrupted ? "interrupted" : "stopped before the end of the plan",
                             directory);
  }
  return code;
}

}  // namespace

int command_accept(const PlanRequest& request, const RunSettings& settings, std::string out, const std::string& key) {
  const auto prepared = prepare(request);
  if (!prepared) return report_error(prepared.error());
  if (out.empty()) out = fresh_directory_name();
  std::cerr << fmt::format("profile {}: {}", prepared->plan.profile.name, plan_summary(prepared->plan));
  if (request.dry_run) {
    for (const auto& step : prepared->plan.steps) std::cout << step.id << '\n';
    std::cerr << fmt::format("dry run: would write to {}\n", out);
    return files::kExitSuccess;
  }
  if (!key.empty() && !fs::exists(key))
    return report_error({"--key", fmt::format("no such file: {}", key), "make one with `assay-report keygen FILE`"});
  if (const auto times = times_of(settings); !times) return report_error(times.error());
  if (auto opened = open_directory(out, plan::plan_text(prepared->plan)); !opened) return report_error(opened.error());
  const int code = run_then_judge(out, prepared->programs, false, settings);
  if (code == files::kExitBadInput) return code;
  if (auto written = report_and_sign(out, key); !written) return report_error(written.error());
  return code;
}

int command_run(const std::string& plan_file, const std::string& out, const RunSettings& settings) {
  if (const auto times = times_of(settings); !times) return report_error(times.error());
  const auto text = read_file(plan_file);
  if (!text) return report_error(text.error());
  if (const auto plan = plan::read_plan(*text, plan_file); !plan) return report_error(plan.error());
  const auto programs = plan::find_programs(plan::installation().probes);
  if (!programs) return report_error(programs.error());
  const std::string directory = out.empty() ? fresh_directory_name() : out;
  if (auto opened = open_directory(directory, *text); !opened) return report_error(opened.error());
  return run_then_judge(directory, *programs, false, settings);
}

int command_resume(const std::string& directory, const RunSettings& settings) {
  const auto programs = plan::find_programs(plan::installation().probes);
  if (!programs) return report_error(programs.error());
  return run_then_judge(directory, *programs, true, settings);
}

int command_judge(const std::string& directory, bool json) {
  const auto verdict = judge_directory(directory);
  if (!verdict) return report_error(verdict.error());
  std::cout << (json ? judge::verdict_text(*verdict) : judge::verdict_table(*verdict));
  return judge::exit_code(verdict->overall);
}

int command_status(const std::string& directory, bool json) {
  const auto run = judge::read_run(directory);
  if (!run) return report_error(run.error());
  std::map<std::string, std::size_t> outcomes;
  std::map<std::string_view, const judge::Attempt*> last;
  std::set<std::string_view> tests;
  for (const auto& attempt : run->journal.attempts) {
    if (attempt.is_extra())
      tests.insert(attempt.step);
    else
      last[attempt.step] = &attempt;
  }
  const auto ended =
      std::ranges::count_if(last, [](const auto& one) { return one.second->outcome != AttemptOutcome::interrupted; });
  for (const auto& attempt : run->journal.attempts) ++outcomes[std::string(word_of(attempt.outcome))];
  if (json) {
    std::cout << nlohmann::ordered_json{{"run_id", run->journal.run_id},   {"finished", run->journal.finished},
                                        {"steps", run->plan.steps.size()}, {"ended", ended},
                                        {"extra_tests", tests.size()},     {"attempts", outcomes},
                                        {"resumed", run->journal.resumed}}
                     .dump()
              << '\n';
    return files::kExitSuccess;
  }
  std::cout << fmt::format("run {} of plan {}\n{} of {} steps ended, {}\n", run->journal.run_id, run->plan_sha256,
                           ended, run->plan.steps.size(),
                           run->journal.finished ? "the run is finished" : "the run is not finished");
  if (!tests.empty()) std::cout << fmt::format("{} extra tests to locate faults\n", tests.size());
  for (const auto& [outcome, count] : outcomes) std::cout << fmt::format("  {:<14} {}\n", outcome, count);
  for (const auto& event : run->journal.node_events)
    std::cout << fmt::format("  node {}: {}\n", event.node, event.reason);
  return files::kExitSuccess;
}

}  // namespace assay::cli
