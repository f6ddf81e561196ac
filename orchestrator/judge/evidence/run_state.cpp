// run_state: looks at the lock of the journal, compares the journal of a dossier with that of the run, and counts
// attempts by step, stage and pass.
#include "orchestrator/judge/evidence/run_state.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <unordered_map>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fmt/format.h>

namespace assay::judge {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJournal = "journal.jsonl";

/// Whether there is anything at `path`; a path that cannot be looked at is there.
bool exists(const fs::path& path) {
  std::error_code unknown;
  return fs::symlink_status(path, unknown).type() != fs::file_type::not_found;
}

/// Attempts of one step that ended.
struct Ended {
  int first = 0, second = 0;
  bool broke = false;  ///< the last stage's, so that no more are made in it
};

}  // namespace

std::optional<std::string> writer_of(const std::string& directory) {
  const std::string path = directory + "/" + kJournal;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  const bool in_use = ::flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(file);
  if (!in_use) return std::nullopt;
  const auto text = read_file(path);
  const auto journal = text ? read_journal(*text, path) : std::unexpected(InputError{});
  return journal && !journal->by.empty() ? journal->by : "another process";
}

DossierState dossier_state(const std::string& directory, const std::string& dossier) {
  const auto run = read_file(directory + "/" + kJournal);
  const auto signed_one = read_file(dossier + "/evidence/" + kJournal);
  if (!run || !signed_one) return DossierState::absent;
  if (*run == *signed_one) return DossierState::current;
  return run->starts_with(*signed_one) ? DossierState::earlier : DossierState::other;
}

std::optional<std::string> run_gone_on(const std::string& dossier) {
  std::error_code unknown;  // a dossier whose place is unknown is in no run
  const fs::path place = fs::weakly_canonical(fs::absolute(dossier, unknown), unknown);
  if (unknown) return std::nullopt;
  std::string run = place.parent_path().string();
  if (dossier_state(run, place.string()) != DossierState::earlier) return std::nullopt;
  return run;
}

std::expected<std::string, InputError> move_dossier_aside(const std::string& directory) {
  const std::string from = directory + "/" + kDossierFolder;
  std::string to;
  for (int i = 1; to.empty() || exists(to); ++i) to = fmt::format("{}-{}", from, i);
  std::error_code error;
  fs::rename(from, to, error);
  if (error)
    return std::unexpected(InputError{from, fmt::format("cannot be renamed to {}: {}", to, error.message()),
                                      "it is of the run as it was before it was resumed: move it away"});
  return to;
}

RunProgress progress_of(const plan::Plan& plan, const Journal& journal) {
  RunProgress progress{.stage = journal.second_stage ? plan::Stage::second : plan::Stage::first};
  const bool second = journal.second_stage;
  std::unordered_map<std::string, Ended> ended;
  std::set<std::string> tests;
  for (const auto& attempt : journal.attempts) {
    ++progress.outcomes[std::string(word_of(attempt.outcome))];
    if (attempt.is_extra()) tests.insert(attempt.step);
    if (attempt.is_extra() || attempt.outcome == AttemptOutcome::interrupted) continue;
    Ended& mine = ended[attempt.step];
    ++(attempt.second_stage ? mine.second : mine.first);
    mine.broke = mine.broke || (attempt.second_stage == second && attempt.outcome != AttemptOutcome::exited);
  }
  progress.tests = tests.size();
  const plan::Passes passes(plan);
  progress.pass = progress.passes = passes.count(progress.stage);
  for (const auto& step : plan.steps) {
    const Ended& mine = ended[step.id];
    const bool again = second && journal.more_attempts.contains(step.id);
    const int planned = step.attempts + (again ? step.more_attempts : 0);
    progress.attempts += planned;
    progress.attempts_ended += mine.first + mine.second;
    const int due = second ? (again ? step.more_attempts : 0) : step.attempts;
    const int made = second ? mine.second : mine.first;
    if (mine.broke || made >= due) {
      ++progress.steps_ended;
      continue;
    }
    // A step to be measured after the load begins in a later pass.
    const int before = step.after ? progress.passes - due : 0;
    progress.pass = std::min(progress.pass, before + made + 1);
  }
  return progress;
}

}  // namespace assay::judge
