// stages: reading, planning, running and judging, shared by several commands.
#include "orchestrator/cli/stages.h"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include <fmt/format.h>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/digest.h"
#include "orchestrator/judge/import_guard.h"
#include "orchestrator/judge/run_verdict.h"
#include "orchestrator/plan/programs.h"
#include "orchestrator/simulate/simulate.h"

namespace assay::cli {
namespace {

std::expected<site::Site, InputError> site_for(const PlanRequest& request) {
  if (request.site.empty()) {
    site::Site site = site::this_machine();
    if (!request.directory.empty()) site.nodes.front().directory = std::filesystem::absolute(request.directory);
    return site::read_site(to_json(site).dump(), "this machine");
  }
  const auto text = read_file(request.site);
  if (!text) return std::unexpected(text.error());
  return site::read_site(*text, request.site);
}

/// The duration in `text`, the value of `option`: what parse_seconds reads, or hours. Nothing when it is empty.
std::expected<std::optional<Seconds>, InputError> duration_of(const char* option, const std::string& text) {
  constexpr double kSecondsOfHour = 3600;
  if (text.empty()) return std::nullopt;
  std::optional<Seconds> duration = parse_seconds(text);
  if (text.ends_with('h')) {
    duration = parse_seconds(text.substr(0, text.size() - 1) + "s");
    if (duration) duration->count *= kSecondsOfHour;
  }
  if (!duration || duration->count <= 0)
    return std::unexpected(InputError{option, fmt::format("'{}' is not a duration", text), "write 2h, 90min or 600s"});
  return duration;
}

}  // namespace

std::expected<Prepared, InputError> prepare(const PlanRequest& request) {
  const auto profile = plan::profile_named(request.profile);
  if (!profile) return std::unexpected(profile.error());
  const auto site = site_for(request);
  if (!site) return std::unexpected(site.error());
  auto programs = plan::find_programs(plan::installation().probes);
  if (!programs) return std::unexpected(programs.error());
  auto plan = plan::make_plan(*profile, *site, *programs,
                              {.quick = request.quick, .only = request.only, .localise = request.localise});
  if (!plan) return std::unexpected(plan.error());
  return Prepared{.plan = std::move(*plan), .programs = std::move(*programs)};
}

std::string plan_summary(const plan::Plan& plan) {
  const double longest = plan::Forecast(plan).remaining_s(0);
  std::string text =
      fmt::format("{} steps on {} nodes, {} cells, about {}:{:02}\n", plan.steps.size(), plan.site.nodes.size(),
                  plan.coverage.size(), static_cast<int>(longest) / 60, static_cast<int>(longest) % 60);
  std::size_t tests = 0;
  for (const auto& search : plan.searches) tests += search.budget;
  if (tests > 0) text += fmt::format("if groups miss a limit: at most {} extra tests to locate the fault\n", tests);
  std::map<std::string, std::size_t> reasons;
  for (const auto& cell : plan.coverage) {
    if (cell.step.empty()) ++reasons[fmt::format("{}: {}", cell.requirement, cell.reason)];
  }
  for (const auto& [reason, cells] : reasons) text += fmt::format("not planned ({} cells): {}\n", cells, reason);
  return text;
}

std::expected<run::RunEnd, InputError> carry_out(const std::string& directory,
                                                 const std::vector<plan::Program>& programs, bool resume,
                                                 const RunSettings& settings) {
  const auto times = times_of(settings);
  if (!times) return std::unexpected(times.error());
  const auto bytes = read_file(directory + "/plan.json");
  if (!bytes) return std::unexpected(bytes.error());
  const auto plan = plan::read_plan(*bytes, directory + "/plan.json");
  if (!plan) return std::unexpected(plan.error());
  run::Progress progress(*plan, run::Progress::mode_for(settings.json));
  run::RunOptions options{.directory = directory,
                          .agent = plan::installation().binaries + "/assay-node",
                          .resume = resume,
                          .starts_at_once = settings.fan_out,
                          .deadline = times->deadline,
                          .stop_on_fail = settings.stop_on_fail};
  if (times->patience) options.patience = *times->patience;
  return run::run(*plan, files::sha256(*bytes), programs, options, progress);
}

std::expected<RunTimes, InputError> times_of(const RunSettings& settings) {
  const auto deadline = duration_of("--deadline", settings.deadline);
  if (!deadline) return std::unexpected(deadline.error());
  const auto patience = duration_of("--patience", settings.patience);
  if (!patience) return std::unexpected(patience.error());
  return RunTimes{.deadline = *deadline, .patience = *patience};
}

std::expected<judge::Verdict, InputError> judge_directory(const std::string& directory) {
  const auto read = judge::read_run(directory);
  if (!read) return std::unexpected(read.error());
  if (auto problem = judge::find_imported_files(directory, read->journal)) return std::unexpected(*problem);
  const judge::EvidenceReader evidence =
      read->plan.simulation ? simulate::simulated_evidence(read->plan, read->journal) : judge::evidence_in(directory);
  auto verdict = judge::judge_run(read->plan, read->plan_sha256, read->journal, evidence);
  if (!verdict) {
    verdict.error().where = directory + "/" + verdict.error().where;
    return verdict;
  }
  try {
    files::write_durably(directory + "/verdict.json", judge::verdict_text(*verdict));
  } catch (const std::system_error& error) {
    return std::unexpected(InputError{directory, fmt::format("the verdict cannot be written: {}", error.what()),
                                      "check free space and permissions, then run `assay judge`"});
  }
  return verdict;
}

int report_error(const InputError& error) {
  std::cerr << "assay: " << error.text() << '\n';
  return files::kExitBadInput;
}

}  // namespace assay::cli
