// simulate_command: `assay simulate`. It is part of assay-report because it renders the report from memory.
#include <filesystem>
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
  plan::Simulation simulation{.seed = given.seed, .faults = {}};
  site::Site site = simulate::simulated_site(simulate::shape_for(
      *profile, {.nodes = given.nodes, .per_rack = given.per_rack, .per_leaf = given.per_leaf, .rails = given.rails}));
  simulate::tell_parts(*profile, site);
  if (!given.faults.empty()) {
    const auto text = read_file(given.faults);
    if (!text) return std::unexpected(text.error());
    auto faults = plan::read_faults(*text, given.faults);
    if (!faults) return std::unexpected(faults.error());
    if (auto problem = plan::check_faults(*faults, site, given.faults)) return std::unexpected(*problem);
    simulation.faults = std::move(*faults);
  }
  const auto programs = plan::find_programs(plan::installation().probes);
  if (!programs) return std::unexpected(programs.error());
  auto plan = plan::make_plan(*profile, site, *programs, {});
  if (plan) plan->simulation = std::move(simulation);
  return plan;
}

/// Writes `text`, which is let go, to the file `name` of `out`, if there is one.
std::optional<InputError> write(const std::string& out, const char* name, std::string text) {
  try {
    if (!out.empty()) files::write_durably(fmt::format("{}/{}", out, name), text);
    return std::nullopt;
  } catch (const std::system_error& error) {
    return InputError{out, error.what(), "check free space and permissions, then simulate again"};
  }
}

/// Writes what judging leaves of a simulation. The report is rendered from `examined`, which is moved from and gets the
/// verdict's digest.
std::optional<InputError> write_all(const std::string& out, const simulate::SimulationSummary& summary,
                                    judge::KeptRecords&& records, evidence::Examined&& examined) {
  try {
    files::Sha256 digest;
    files::write_durably(out + "/verdict.json", [&](const files::TextSink& sink) {
      judge::write_verdict(examined.verdict, [&](std::string_view piece) {
        digest.add(piece);
        sink(piece);
      });
    });
    examined.verdict_sha256 = digest.text();
    files::write_durably(out + "/simulation.json", to_json(summary).dump(1) + "\n");
    // The records go before the page is made: it keeps what it shows.
    const auto content = page::report_content(std::move(examined), {nullptr, std::move(records)}, "");
    files::write_durably(out + "/" + dossier::kReportFile, page::render_html(content));
    return std::nullopt;
  } catch (const std::system_error& error) {
    return InputError{out, error.what(), "check free space and permissions, then simulate again"};
  }
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
  // Plan and journal are written as soon as they are known: of a large fleet each is 100 MB.
  std::string text = plan::plan_text(*plan);
  const std::string digest = files::sha256(text);
  if (const auto problem = write(given.out, "plan.json", std::move(text))) return bad_input(*problem);
  simulate::SimulatedRun run = simulate::simulate(*plan, digest);
  const std::string journal_sha256 = files::sha256(run.journal_text);
  if (const auto problem = write(given.out, "journal.jsonl", std::move(run.journal_text))) return bad_input(*problem);
  auto judged =
      judge::judge_run(*plan, digest, run.journal, simulate::simulated_evidence(*plan, run.journal, run.records),
                       judge::JournalOrigin::own);
  if (!judged) return bad_input(judged.error());
  judge::Verdict verdict = std::move(*judged);
  const auto summary = simulate::summarise(*plan, run, verdict);
  if (!given.out.empty()) {
    evidence::Examined examined{
        .run = {.plan = std::move(*plan), .plan_sha256 = digest, .journal = std::move(run.journal)},
        .verdict = std::move(verdict),
        .journal_sha256 = journal_sha256};
    if (const auto problem = write_all(given.out, summary, std::move(run.records), std::move(examined)))
      return bad_input(*problem);
  }
  std::cout << (given.json ? to_json(summary).dump(1, ' ', true) + "\n"
                           : harmless_page(simulate::summary_text(summary)));
  return files::kExitSuccess;
}

}  // namespace assay::report_cli
