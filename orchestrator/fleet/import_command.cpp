// import_command: `assay import`.
#include "orchestrator/fleet/import_command.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>
#include <system_error>

#include <fmt/ranges.h>

#include "orchestrator/cli/run_stages.h"
#include "orchestrator/cli/table_json.h"
#include "orchestrator/files/atomic_file.h"
#include "orchestrator/import/import.h"
#include "orchestrator/import/rate.h"
#include "orchestrator/import/server_counters.h"
#include "orchestrator/plan/profile.h"
#include "probes/core/command.h"
#include "probes/core/how_many.h"
#include "probes/core/text.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

/// The run directory that contains `path`, or nothing.
std::optional<std::string> run_around(const std::string& path) {
  std::error_code unknown;  // an unreadable folder is not a run
  for (fs::path folder = fs::weakly_canonical(fs::absolute(path, unknown), unknown).parent_path(); !folder.empty();
       folder = folder.parent_path()) {
    if (fs::exists(folder / "plan.json", unknown) && fs::exists(folder / "journal.jsonl", unknown))
      return folder.string();
    if (folder == folder.root_path()) break;
  }
  return std::nullopt;
}

/// Plan, results and attempts of a run.
struct JudgedRun {
  plan::Plan plan;
  judge::Verdict verdict;
  judge::Journal journal;
};

std::expected<JudgedRun, InputError> judged_run(const std::string& directory) {
  const auto read = [&](const char* name, const char* hint) -> std::expected<std::string, InputError> {
    auto bytes = read_file((fs::path(directory) / name).string());
    if (!bytes) bytes.error().hint = hint;
    return bytes;
  };
  const auto plan_bytes = read("plan.json", "--beside takes the directory of a run");
  if (!plan_bytes) return std::unexpected(plan_bytes.error());
  const auto verdict_bytes = read("verdict.json", "judge the run first: assay judge RUN");
  if (!verdict_bytes) return std::unexpected(verdict_bytes.error());
  auto plan = plan::read_plan(*plan_bytes, directory + "/plan.json");
  if (!plan) return std::unexpected(plan.error());
  auto verdict = judge::read_verdict(*verdict_bytes, directory + "/verdict.json");
  if (!verdict) return std::unexpected(verdict.error());
  const auto journal_bytes = read("journal.jsonl", "--beside takes the directory of a run");
  if (!journal_bytes) return std::unexpected(journal_bytes.error());
  auto journal = judge::read_journal(*journal_bytes, directory + "/journal.jsonl");
  if (!journal) return std::unexpected(journal.error());
  return JudgedRun{.plan = std::move(*plan), .verdict = std::move(*verdict), .journal = std::move(*journal)};
}

/// A row for each figure with a requirement of the run, and one for each figure without a counterpart.
void add_rows(nlohmann::ordered_json& rows, const judge::Import& import, const JudgedRun& run) {
  using Json = nlohmann::ordered_json;
  const auto theirs = [&](const judge::Figure& figure) {
    return Json{{"imported", true},         {"tool", import.source.tool}, {"file", import.source.file},
                {"from", figure.from},      {"metric", figure.metric},    {"statistic", figure.statistic},
                {"at", to_json(figure.at)}, {"value", figure.value},      {"unit", figure.unit},
                {"requirement", nullptr}};
  };
  std::set<std::size_t> met;
  for (const auto& pair : imports::compare(import, run.plan, run.verdict)) {
    met.insert(pair.figure);
    Json row = theirs(import.figures[pair.figure]);
    row["requirement"] = pair.requirement;
    if (pair.differs.empty()) {
      row["run"] = {{"cells", pair.cells}, {"lowest", pair.lowest}, {"median", pair.median}, {"highest", pair.highest}};
    } else {
      row["not_comparable"] = pair.differs;
    }
    rows.push_back(std::move(row));
  }
  for (std::size_t i = 0; i < import.figures.size(); ++i) {
    if (!met.contains(i)) rows.push_back(theirs(import.figures[i]));
  }
}

/// The text of all files, and their tables.
struct Imported {
  std::string text, table;
  nlohmann::ordered_json rows;
  std::size_t figures = 0, left_out = 0;
  bool misses = false;  ///< a required limit of a profile
};

/// Adds one import to `all`, with its table for a given run or profile.
void add_import(Imported& all, const judge::Import& import, const std::optional<JudgedRun>& run,
                const std::optional<plan::Profile>& profile, bool json) {
  all.text += judge::import_text(import);
  if (run && json) add_rows(all.rows, import, *run);
  if (run && !json)
    all.table += imports::comparison_text(import, run->plan, run->verdict) +
                 imports::server_text(import, run->verdict, run->journal.attempts);
  if (profile) {
    const auto rated = imports::rate(import, *profile);
    all.table += imports::rating_text(import, *profile, rated);
    all.misses = all.misses || std::ranges::any_of(rated, [](const imports::Rated& one) {
                   return one.required && one.differs.empty() && !one.meets;
                 });
  }
  all.figures += import.figures.size();
  all.left_out += import.left_out.size();
}

/// Writes the figures of another tool's outputs as JSON Lines, or with a run as a table on stdout, with the JSON Lines
/// in `out`; with a profile, how the figures stand to its limits. Nothing is written unless every file is read without
/// an error. Returns the process's exit code: against a profile kExitRejected when a required limit is missed, else
/// kExitIncomplete, because imported figures accept nothing.
int command_import(const ImportArguments& given) {
  if (given.json && given.beside.empty())
    return report_error({"--json", "needs --beside", "without it the import itself is printed, as JSON Lines"});
  if (!given.out.empty()) {
    if (const auto run = run_around(given.out)) {
      return report_error({"--out", fmt::format("{} is inside the run {}", given.out, *run),
                           "imported figures are not evidence of a run: choose a path outside of it"});
    }
  }
  std::optional<JudgedRun> run;
  if (!given.beside.empty()) {
    auto judged = judged_run(given.beside);
    if (!judged) return report_error(judged.error());
    run = std::move(*judged);
  }
  std::optional<plan::Profile> profile;
  if (!given.against.empty()) {
    auto named = plan::profile_named(given.against);
    if (!named) return report_error(named.error());
    profile = std::move(*named);
  }
  Imported all;
  for (const auto& file : given.files) {
    const auto bytes = read_file(file);
    if (!bytes) return report_error(bytes.error());
    const auto import =
        imports::import_output({.tool = given.tool, .bytes = *bytes, .path = file, .command = given.command});
    if (!import) return report_error(import.error());
    add_import(all, *import, run, profile, given.json);
  }
  if (given.out.empty() && !run && !profile) std::cout << ascii_json(all.text);
  if (!given.out.empty()) {
    try {
      files::write_new_durably(given.out, all.text);
    } catch (const std::system_error& error) {
      return report_error({"--out", fmt::format("cannot be written: {}", error.what()),
                           "--out must not exist yet; check free space and permissions"});
    }
  }
  if (given.json) {
    print_table("import",
                {{"run_id", run->verdict.run_id},
                 {"simulated", run->verdict.simulated},
                 {"judged", false},
                 {"left_out", all.left_out}},
                std::move(all.rows));
  }
  std::cout << harmless_page(all.table) << std::flush;
  std::cerr << fmt::format("{} of {} imported, {} skipped; nothing is accepted by imported figures\n",
                           how_many(all.figures, "figure"), given.tool, how_many(all.left_out, "item"));
  if (!std::cout) return report_error({"stdout", "could not be written completely", "check the free space"});
  if (profile) return all.misses ? files::kExitRejected : files::kExitIncomplete;
  return files::kExitSuccess;
}

}  // namespace

void add_import(Command& app, ImportArguments& given, Action& action) {
  auto& command = app.add_command(
      "import", "read another tool's output, to compare it with a run or a profile; nothing is accepted by it");
  add_option(command, "tool", given.tool, "NAME", fmt::format("{}", fmt::join(imports::kImportTools, ", ")))
      ->required();
  add_option(command, "files", given.files, "FILE", "output files of the tool, one run per file")->required();
  add_option(command, "--out", given.out, "FILE", "new file [stdout]");
  add_option(command, "--command", given.command, "TEXT",
             "the command that was run, where the output does not state it");
  add_option(command, "--beside", given.beside, "DIR", "a judged run: print a table of both instead of JSON Lines");
  add_option(command, "--against", given.against, "PROFILE",
             "a profile: print which of its limits the figures meet; exit 1 or 3");
  command.add_flag("--json", given.json, "with --beside: print the table as JSON");
  end_command(command,
              "Example: assay import perftest bw.json --command 'ib_write_bw --report_gbits' --out vendor.jsonl",
              action, [&] { return command_import(given); });
}

}  // namespace assay::cli
