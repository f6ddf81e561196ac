// signing: calls assay-report, the only program that knows keys and dossiers.
#include "orchestrator/cli/signing.h"

#include <filesystem>
#include <iostream>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/files/child.h"
#include "orchestrator/files/state.h"
#include "orchestrator/plan/programs.h"
#include "probes/core/text.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

constexpr Seconds kReportDeadline{300};  // a report of 10,000 nodes takes tens of seconds

/// Runs a command of assay-report; its stdout, without the final newline.
std::expected<std::string, InputError> call_report(const std::vector<std::string>& arguments) {
  auto child = files::run_child(plan::installation().binaries + "/assay-report", arguments, kReportDeadline);
  if (!child) return std::unexpected(child.error());
  if (child->output.ends_with('\n')) child->output.pop_back();
  if (child->exit_code == 0) return child->output;
  return std::unexpected(InputError{"assay-report " + arguments.front(),
                                    fmt::format("exited with code {}", child->exit_code),
                                    "its error message is printed above"});
}

std::expected<void, InputError> make_machine_key(const std::string& file) {
  const std::string folder = fs::path(file).parent_path();
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return std::unexpected(
        InputError{folder, fmt::format("cannot be created for this machine's own key: {}", error.message()),
                   "name a key with --key (`assay keygen FILE` makes one), or set XDG_STATE_HOME to a folder that you "
                   "can write to"});
  }
  std::cerr << "this machine's own key is made on first use:\n";
  if (auto made = call_report({"keygen", file}); !made) return std::unexpected(made.error());
  return {};
}

void add_what_goes_with(std::vector<std::string>& arguments, const SigningKey& key) {
  if (!key.passphrase_file.empty()) arguments.insert(arguments.end(), {"--passphrase-file", key.passphrase_file});
  if (!key.certificate.empty()) arguments.insert(arguments.end(), {"--certificate", key.certificate});
}

/// `key`, once its agent, token or file shows that it is there.
std::expected<SigningKey, InputError> with_fingerprint(SigningKey key) {
  std::vector<std::string> arguments = {"fingerprint", "--private", key.file};
  add_what_goes_with(arguments, key);
  const auto fingerprint = call_report(arguments);
  if (!fingerprint) return std::unexpected(fingerprint.error());
  key.fingerprint = *fingerprint;
  return key;
}

/// Value of `verify --key`: the file next to a private key, the public key itself when an agent signs.
std::string public_file(const SigningKey& key) {
  if (key.file.starts_with(kTokenScheme)) return "PUBLIC_KEY_OF_THE_TOKEN";
  return key.file.ends_with(".pub") ? key.file : key.file + ".pub";
}

}  // namespace

std::expected<SigningKey, InputError> open_key(const KeyRequest& request) {
  SigningKey key{.file = request.is_named() ? request.key : files::machine_key_path(),
                 .passphrase_file = request.is_named() ? request.passphrase_file : "",
                 .certificate = request.certificate,
                 .self_signed = true};
  if (request.is_of_token()) {
    key.self_signed = false;
    return with_fingerprint(std::move(key));
  }
  std::error_code unknown;  // a file that cannot be looked at is refused when it is opened
  key.self_signed = !request.is_named() || fs::equivalent(key.file, files::machine_key_path(), unknown);
  const bool exists = fs::exists(key.file, unknown);
  if (!exists && request.is_named())
    return std::unexpected(
        InputError{"--key", fmt::format("no such file: {}", key.file), "make one with `assay-report keygen FILE`"});
  if (!exists) {
    if (auto made = make_machine_key(key.file); !made) return std::unexpected(made.error());
  }
  return with_fingerprint(std::move(key));
}

std::expected<void, InputError> report_and_sign(const std::string& directory, const SigningKey& key) {
  std::vector<std::string> report = {"report", directory};
  std::vector<std::string> sign = {"sign", directory, "--key", key.file};
  add_what_goes_with(sign, key);
  if (key.self_signed) {
    report.insert(report.end(), {"--self-signed", key.fingerprint});
    sign.emplace_back("--self-signed");
  }
  for (const auto& arguments : {report, sign}) {
    if (auto done = call_report(arguments); !done) return std::unexpected(done.error());
  }
  std::cerr << fmt::format(
      "report   {}/report.html\ndossier  {}/dossier\nverify   assay-report verify {}/dossier --key {}{}\n",
      harmless(directory), harmless(directory), harmless(directory), harmless(public_file(key)),
      key.self_signed
          ? "\n         SELF-SIGNED with this machine's own key: proves integrity, not the identity of the signer"
          : "");
  return {};
}

}  // namespace assay::cli
