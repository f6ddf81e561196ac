// run_checks: the lock of the journal, and the places of dossier and run.
#include "reports/cli/run_checks.h"

#include <filesystem>
#include <iostream>

#include <fmt/format.h>

#include "orchestrator/judge/evidence/run_state.h"
#include "probes/core/text.h"
#include "reports/dossier/sign.h"

namespace assay::report_cli {
namespace {

namespace fs = std::filesystem;

bool exists(const std::string& path) {
  std::error_code unknown;  // a path that cannot be looked at is reported when it is used
  return fs::exists(fs::symlink_status(path, unknown));
}

}  // namespace

std::optional<InputError> check_run_is_over(const std::string& directory) {
  const auto writer = judge::writer_of(directory);
  if (!writer) return std::nullopt;
  return InputError{
      directory, fmt::format("is a run that is still going on ({})", *writer),
      fmt::format("wait until it ends, or end it with Ctrl-C; `assay status {}` shows how far it is", directory)};
}

std::optional<InputError> make_room(const std::string& directory, const std::string& dossier) {
  if (!exists(dossier)) return std::nullopt;
  if (dossier == directory + "/" + judge::kDossierFolder &&
      judge::dossier_state(directory, dossier) == judge::DossierState::earlier) {
    const auto aside = judge::move_dossier_aside(directory);
    if (!aside) return aside.error();
    std::cerr << fmt::format("{} was signed before the run went on; it is now {}\n", harmless(dossier),
                             harmless(*aside));
    return std::nullopt;
  }
  return InputError{dossier, "exists already",
                    fmt::format("a dossier is never overwritten; name another folder with --out {}-2", dossier)};
}

std::optional<InputError> check_is_dossier(const std::string& directory) {
  const std::string inner = directory + "/" + judge::kDossierFolder;
  if (exists(directory + "/" + dossier::kStatementFile) || !exists(inner + "/" + dossier::kStatementFile))
    return std::nullopt;
  return InputError{directory, "is the folder of a run", fmt::format("did you mean {}?", inner)};
}

std::string gone_on_note(const std::string& dossier) {
  const auto run = judge::run_gone_on(dossier);
  if (!run) return "";
  return fmt::format(
      "the run in {} went on after this dossier was signed; its verdict may be another: `assay sign` makes "
      "a new dossier",
      *run);
}

}  // namespace assay::report_cli
