// simulate_command: `assay simulate`. It is part of assay-report because it renders the report from memory.
#include <filesystem>
#include <functional>
#include <iostream>
#include <system_error>

#include <fmt/format.h>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/digest.h"
#include "orchestrator/judge/run_verdict.h"
#include "orchestrator/plan/programs.h"
#include "orchestrator/simulate/simulate.h"
#include "probes/core/text.h"
#include "reports/cli/commands.h"
#include "reports/dossier/sign.h"
#include "reports/page/render.h"

namespace assay::report_cli {
namespace {

std::expected<plan::Plan, InputError> simulated_plan(const SimulateArguments& given) {
  const auto profile = plan::profile_named(given.profile);
  if (!profile) return std::unexpected(profile.error());
  plan::Simulation simulation{.seed = given.seed};
  site::Site site = simulate::simulated_site(simulate::shape_for(
      *profile, {.nodes = given.nodes, .per_rack = given.per_rack, .per_leaf = given.per_leaf, .rails = given.rails}));
  simulate::tell_parts(*profile, site);
  if (!given.faults.empty()) {
    const auto text = read_file(given.faults);
    if (!text) return std::unexpected(text.error());
    auto faults = plan::read_faults(*text, given.faults);
    if (!faults) return std::unexpected(faults.error());
    if (auto problem = plan::check_faults(*faults, site, given.faults)) return std::unexpected(*problem);
    if (auto problem = simulate::check_metrics(*faults, *profile, given.faults)) return std::unexpected(*problem);
    simulation.faults = std::move(*faults);
  }
  const auto programs = plan::simulated_programs();
  if (!programs) return std::unexpected(programs.error());
  auto plan = plan::make_plan(*profile, site, *programs, {});
  if (plan) plan->simulation = std::move(simulation);
  return plan;
}

/// Writes what `write` hands over to the file `name` of `out`, if there is one. Returns its digest.
std::string written(const std::string& out, const char* name,
                    const std::function<void(const files::TextSink&)>& write) {
  files::Sha256 digest;
  const auto with_digest = [&](const files::TextSink& sink) {
    write([&](std::string_view piece) {
      digest.add(piece);
      sink(piece);
    });
  };
  if (out.empty())
    with_digest([](std::string_view) {});
  else
    files::write_durably(fmt::format("{}/{}", out, name), with_digest);
  return digest.text();
}

/// Simulates `plan` and writes what that leaves. Plan and journal are written as soon as they are known: of a large
/// fleet each is 100 MB.
std::expected<simulate::SimulationSummary, InputError> simulated(plan::Plan plan, const std::string& out) {
  const std::string digest =
      written(out, "plan.json", [&](const files::TextSink& sink) { sink(plan::plan_text(plan)); });
  simulate::SimulatedRun run;
  const std::string journal_sha256 =
      written(out, "journal.jsonl", [&](const files::TextSink& sink) { run = simulate::simulate(plan, digest, sink); });
  auto verdict =
      judge::judge_run(plan, digest, run.journal, simulate::simulated_evidence(plan, run.journal, run.records),
                       judge::JournalOrigin::own);
  if (!verdict) return std::unexpected(std::move(verdict.error()));
  auto summary = simulate::summarise(plan, run, *verdict);
  if (out.empty()) return summary;
  const std::string verdict_sha256 =
      written(out, "verdict.json", [&](const files::TextSink& sink) { judge::write_verdict(*verdict, sink); });
  files::write_durably(out + "/simulation.json", to_json(summary).dump(1) + "\n");
  evidence::Examined examined{
      .run = {.plan = std::move(plan), .plan_sha256 = digest, .journal = std::move(run.journal)},
      .verdict = std::move(*verdict),
      .verdict_sha256 = verdict_sha256,
      .journal_sha256 = journal_sha256};
  // The records go before the page is made: it keeps what it shows.
  const auto content = page::report_content(std::move(examined), {nullptr, std::move(run.records)}, "");
  files::write_durably(out + "/" + dossier::kReportFile, page::render_html(content));
  return summary;
}

}  // namespace

int run_simulate(const SimulateArguments& given) {
  std::error_code unknown;  // an unreadable path is reported when it is written
  if (!given.out.empty() && std::filesystem::exists(given.out, unknown) &&
      !std::filesystem::is_empty(given.out, unknown)) {
    return bad_input({given.out, "exists and is not empty", "name another --out"});
  }
  auto plan = simulated_plan(given);
  if (!plan) return bad_input(plan.error());
  try {
    const auto summary = simulated(std::move(*plan), given.out);
    if (!summary) return bad_input(summary.error());
    std::cout << (given.json ? to_json(*summary).dump(1, ' ', true) + "\n"
                             : harmless_page(simulate::summary_text(*summary)));
    return files::kExitSuccess;
  } catch (const std::system_error& error) {
    return bad_input({given.out, error.what(), "check free space and permissions, then simulate again"});
  }
}

}  // namespace assay::report_cli
