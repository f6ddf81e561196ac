// evidence_files: reads the files of a run once, checks them against each other and judges again.
#include "reports/evidence/evidence_files.h"

#include <filesystem>

#include "orchestrator/files/difference.h"
#include "orchestrator/files/digest.h"
#include "orchestrator/judge/run_verdict.h"
#include "orchestrator/simulate/simulate.h"
#include "reports/evidence/tree.h"

namespace assay::evidence {
namespace {

using nlohmann::json;

std::expected<std::string_view, InputError> document(const EvidenceFiles& files, const std::string& name) {
  const auto found = files.kept.find(name);
  if (found == files.kept.end())
    return std::unexpected(InputError{name, "is missing", "a run has plan.json, journal.jsonl and verdict.json"});
  return found->second;
}

/// Evidence from the files; of a simulation, generated again.
judge::EvidenceReader reader_for(const plan::Plan& plan, const judge::Journal& journal, const EvidenceFiles& files) {
  return plan.simulation ? simulate::simulated_evidence(plan, journal, files.records) : evidence_in(files);
}

std::optional<InputError> check_journalled(const judge::Journal& journal, const EvidenceFiles& files) {
  const std::string hint = "the file was changed after the run; restore it";
  std::optional<InputError> first;
  journal.each_file([&](const judge::EvidenceFile& file) {
    if (first) return;
    const auto digest = files.digests.find(file.path);
    if (digest == files.digests.end())
      first = {file.path, "was journalled and is missing", hint};
    else if (digest->second != file.sha256 || files.sizes.at(file.path) != file.bytes)
      first = {file.path, "is not the file that was journalled", hint};
  });
  return first;
}

}  // namespace

void EvidenceFiles::add(const std::string& path, std::string bytes) {
  digests[path] = files::sha256(bytes);
  sizes[path] = bytes.size();
  if (path.starts_with("logs/")) return;
  const bool document = path.find('/') == std::string::npos;
  if (!document && kept_bytes + bytes.size() > kMostKept) return;
  kept_bytes += bytes.size();
  kept[path] = std::move(bytes);
}

std::expected<std::string, InputError> EvidenceFiles::read(const std::string& path) const {
  const auto found = kept.find(path);
  if (found != kept.end()) return found->second;
  const auto digest = digests.find(path);
  if (digest == digests.end()) return std::unexpected(InputError{path, "is missing", "restore the run's files"});
  auto bytes = read_plain_file(root, path, sizes.at(path));
  if (bytes && files::sha256(*bytes) != digest->second)
    return std::unexpected(InputError{path, "changed while it was read", "no other process may write to the folder"});
  return bytes;
}

std::expected<EvidenceFiles, InputError> read_evidence_files(const std::string& directory) {
  EvidenceFiles files;
  files.root = directory;
  for (const char* name : {"plan.json", "journal.jsonl", "verdict.json", "report.html"}) {
    std::error_code unknown;  // an unreadable file is reported by the read below
    if (std::string_view(name) == "report.html" && !std::filesystem::exists(directory + "/" + name, unknown)) continue;
    auto bytes = read_plain_file(directory, name, kLargestDocument);
    if (!bytes) {
      bytes.error().where = directory + "/" + bytes.error().where;
      return std::unexpected(bytes.error());
    }
    files.add(name, std::move(*bytes));
  }
  for (const char* folder : {"records", "logs"}) {
    const std::string root = directory + "/" + folder;
    std::error_code unknown;
    if (!std::filesystem::exists(root, unknown)) continue;
    const auto problem =
        walk_tree(root, {}, [&](const std::string& path, std::string bytes) -> std::optional<InputError> {
          files.add(std::string(folder) + "/" + path, std::move(bytes));
          return std::nullopt;
        });
    if (problem) return std::unexpected(InputError{root + "/" + problem->where, problem->what, problem->hint});
  }
  return files;
}

judge::EvidenceReader evidence_in(const EvidenceFiles& files) {
  const auto read = [&files](const judge::EvidenceFile& file) -> std::expected<std::string, InputError> {
    const auto digest = files.digests.find(file.path);
    if (digest == files.digests.end() || digest->second != file.sha256 || files.sizes.at(file.path) != file.bytes) {
      return std::unexpected(
          InputError{file.path, "is not the file that was journalled", "the evidence was changed after the run"});
    }
    return files.read(file.path);
  };
  return {read, files.records};
}

namespace {

/// Differences of the given verdict from the evidence's.
InputError difference_of(std::string_view handed_in, const std::string& judged) {
  const auto given = parse_json(handed_in, "verdict.json", {.max_values = kMostValuesOfRun});
  if (!given) return given.error();
  const auto expected = parse_json(judged, "verdict.json as judged again", {.max_values = kMostValuesOfRun});
  if (!expected) return expected.error();
  return {"verdict.json",
          "differs from the verdict that the evidence gives: " + files::first_difference(*given, *expected),
          "a verdict is never edited: judge again with `assay judge`"};
}

/// `judged`, whose text is `text`, with every text in UTF-8. The tree of a verdict takes ten times its text, so that it
/// is read only where something may have been replaced.
std::expected<judge::Verdict, InputError> as_written(judge::Verdict judged, std::string_view text) {
  constexpr std::string_view kReplaced = "\xEF\xBF\xBD";  // U+FFFD
  if (text.find(kReplaced) == std::string_view::npos) return judged;
  return judge::read_verdict(text, "verdict.json");
}

}  // namespace

std::expected<Examined, InputError> examine(const EvidenceFiles& files) {
  const auto plan_bytes = document(files, "plan.json");
  if (!plan_bytes) return std::unexpected(plan_bytes.error());
  const auto journal_bytes = document(files, "journal.jsonl");
  if (!journal_bytes) return std::unexpected(journal_bytes.error());
  const auto verdict_bytes = document(files, "verdict.json");
  if (!verdict_bytes) return std::unexpected(verdict_bytes.error());
  auto plan = plan::read_plan(*plan_bytes, "plan.json");
  if (!plan) return std::unexpected(plan.error());
  auto journal = judge::read_journal(*journal_bytes, "journal.jsonl");
  if (!journal) return std::unexpected(journal.error());
  const std::string plan_sha256 = files.digests.at("plan.json");
  if (journal->plan_sha256 != plan_sha256) {
    return std::unexpected(InputError{"journal.jsonl", "belongs to another plan than plan.json",
                                      "restore the plan with which the run was started"});
  }
  if (auto problem = judge::check_kind(*plan, *journal)) return std::unexpected(*problem);
  // Simulated records are not stored: the reader generates them again and compares their digests with the journal.
  if (!plan->simulation) {
    if (auto problem = check_journalled(*journal, files)) return std::unexpected(*problem);
  }
  auto judged = judge::judge_run(*plan, plan_sha256, *journal, reader_for(*plan, *journal, files));
  if (!judged) return std::unexpected(judged.error());
  // A verdict of an earlier version is compared with the new judgement in the format of that version.
  const auto format = judge::format_of(*verdict_bytes);
  if (!judge::is_text_of(*judged, *verdict_bytes, format))
    return std::unexpected(difference_of(*verdict_bytes, judge::verdict_text(*judged, format)));
  auto verdict = as_written(std::move(*judged), *verdict_bytes);
  if (!verdict) return std::unexpected(verdict.error());
  return Examined{.run = {.plan = std::move(*plan), .plan_sha256 = plan_sha256, .journal = std::move(*journal)},
                  .verdict = std::move(*verdict),
                  .verdict_sha256 = files.digests.at("verdict.json"),
                  .journal_sha256 = files.digests.at("journal.jsonl")};
}

}  // namespace assay::evidence
