// opening: what every command on runs and dossiers does first: paths, keys, waivers, and the errors that it prints.
#include "reports/cli/opening.h"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/files/exit_codes.h"
#include "orchestrator/judge/evidence/run_state.h"
#include "reports/dossier/sign.h"

namespace assay::report_cli {
namespace {

bool is_there(const std::string& path) {
  std::error_code unknown;  // a path that cannot be looked at is reported when it is used
  return std::filesystem::exists(std::filesystem::symlink_status(path, unknown));
}

}  // namespace

int bad_input(const InputError& error) {
  std::cerr << program_invocation_short_name << ": " << error.text() << '\n';
  return files::kExitBadInput;
}

int refused(const InputError& error) {
  std::cerr << "refused: " << error.text() << '\n';
  return files::kExitRefused;
}

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

bool is_folder(const std::string& path) {
  std::error_code unknown;  // an error means that it is not a readable folder
  return std::filesystem::is_directory(path, unknown);
}

InputError not_a_folder(const std::string& path) {
  return {path, "is not a folder", "name the folder of a run or of a dossier"};
}

std::expected<std::vector<dossier::PublicKey>, InputError> public_keys(const std::vector<std::string>& paths) {
  std::vector<dossier::PublicKey> keys;
  for (const auto& path : paths) {
    auto key = dossier::load_public_key(path);
    if (!key) return std::unexpected(key.error());
    keys.push_back(std::move(*key));
  }
  return keys;
}

std::expected<dossier::Signers, InputError> allowed_signers(const std::vector<std::string>& keys,
                                                            const std::string& policy) {
  auto read = public_keys(keys);
  if (!read) return std::unexpected(read.error());
  dossier::Signers signers{.keys = std::move(*read), .now = std::chrono::system_clock::now()};
  if (policy.empty()) return signers;
  auto trust = dossier::load_trust_policy(policy);
  if (!trust) return std::unexpected(trust.error());
  signers.policy = std::move(*trust);
  return signers;
}

std::expected<std::vector<dossier::Waiver>, InputError> read_waivers(const std::vector<std::string>& paths,
                                                                     const dossier::TrustPolicy& policy,
                                                                     const dossier::WaivedRun& run,
                                                                     dossier::Moment now) {
  std::vector<dossier::Waiver> waivers;
  for (const auto& path : paths) {
    const auto text = read_file(path, dossier::kLargestWaiver);
    if (!text) return std::unexpected(text.error());
    auto waiver = dossier::check_waiver(*text, path, policy, {}, run, now);
    if (!waiver) return std::unexpected(waiver.error());
    waivers.push_back(std::move(*waiver));
  }
  return waivers;
}

std::optional<int> show_waivers(page::ReportContent& content, const std::vector<std::string>& paths,
                                const std::string& policy) {
  const auto trust = dossier::load_trust_policy(policy);
  if (!trust) return bad_input(trust.error());
  const auto waivers = read_waivers(paths, *trust, {content.verdict, content.verdict_sha256, content.run.journal.last},
                                    std::chrono::system_clock::now());
  if (!waivers) return refused(waivers.error());
  for (const auto& waiver : *waivers) content.waivers.push_back(dossier::shown(waiver));
  return std::nullopt;
}

std::optional<InputError> check_run_is_over(const std::string& directory) {
  const auto writer = judge::writer_of(directory);
  if (!writer) return std::nullopt;
  return InputError{
      directory, fmt::format("is a run that is still going on ({})", *writer),
      fmt::format("wait until it ends, or end it with Ctrl-C; `assay status {}` shows how far it is", directory)};
}

std::optional<InputError> check_is_dossier(const std::string& directory) {
  const std::string inner = directory + "/" + judge::kDossierFolder;
  if (is_there(directory + "/" + dossier::kStatementFile) || !is_there(inner + "/" + dossier::kStatementFile))
    return std::nullopt;
  return InputError{directory, "is the folder of a run", fmt::format("did you mean {}?", inner)};
}

}  // namespace assay::report_cli
