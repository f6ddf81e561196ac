// run_state: looks at the lock of the journal, and compares the journal of a dossier with that of the run.
#include "orchestrator/judge/evidence/run_state.h"

#include <filesystem>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fmt/format.h>

#include "orchestrator/judge/evidence/journal.h"

namespace assay::judge {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJournal = "journal.jsonl";

/// Whether there is anything at `path`; a path that cannot be looked at is there.
bool exists(const fs::path& path) {
  std::error_code unknown;
  return fs::symlink_status(path, unknown).type() != fs::file_type::not_found;
}

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

}  // namespace assay::judge
