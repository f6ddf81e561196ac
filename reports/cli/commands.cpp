// commands: the subcommands of assay-report, from values to an exit code.
#include "reports/cli/commands.h"

#include <chrono>
#include <filesystem>
#include <iostream>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/digest.h"
#include "orchestrator/files/state.h"
#include "orchestrator/judge/evidence/run_state.h"
#include "probes/core/command.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"
#include "reports/cli/join_command.h"
#include "reports/dossier/sign.h"
#include "reports/dossier/verify.h"
#include "reports/page/render.h"

namespace assay::report_cli {
namespace {

/// This machine's own public key; nothing if there is none, or none that can be read.
std::optional<dossier::PublicKey> machine_key() {
  const auto key = dossier::load_public_key(files::machine_key_path() + ".pub");
  return key ? std::optional(*key) : std::nullopt;
}

/// Verifies, shows the document, and signs.
int add_to(const std::string& directory, const SignArguments& given, const dossier::Signer& key) {
  if (given.others.empty() && given.expected.policy.empty()) {
    return bad_input({"--with-key", "is missing: the public key of the first signer",
                      "obtain it from the signer, not from the dossier; or name a --policy"});
  }
  auto others = public_keys(given.others);
  if (!others) return bad_input(others.error());
  auto expected = expectations_of(given.expected);
  if (!expected) return bad_input(expected.error());
  if (joint::is_joint(directory))
    return countersign_joint(directory, given, key, {.keys = std::move(*others), .expected = std::move(*expected)});
  const auto added = dossier::add_signature(directory, key, *others, *expected);
  if (!added) return refused(added.error());
  print_verified(*added, *expected);
  std::cout << fmt::format("signed {} with the key {}\n", directory, key.public_key().fingerprint());
  return files::kExitSuccess;
}

/// The dossier that the new one supersedes; nothing if not requested.
std::expected<std::optional<dossier::Superseded>, InputError> superseded_by(const SignArguments& given) {
  if (given.supersedes.empty() != given.reason.empty()) {
    return std::unexpected(
        InputError{"--supersedes", "goes with --reason", "the older dossier, and why there is a newer one"});
  }
  if (given.supersedes.empty()) return std::nullopt;
  const auto older = dossier::read_older(without_slash(given.supersedes));
  if (!older) return std::unexpected(older.error());
  auto words = dossier::words_of_older(*older);
  if (!words) return std::unexpected(words.error());
  dossier::Superseded superseded = std::move(words->superseded);
  superseded.reason = given.reason;
  return superseded;
}

bool exists(const std::string& path) {
  std::error_code unknown;  // a path that cannot be looked at is reported when it is used
  return std::filesystem::exists(std::filesystem::symlink_status(path, unknown));
}

}  // namespace

int run_report(const ReportArguments& given) {
  if (!is_folder(given.directory)) return bad_input(not_a_folder(given.directory));
  if (!given.self_signed.empty() && !files::is_sha256(given.self_signed)) {
    return bad_input(
        {"--self-signed", "is not the fingerprint of a key", "`assay-report fingerprint FILE.pub` prints it"});
  }
  if (given.waivers.empty() != given.policy.empty() || given.waivers.empty() != given.out.empty()) {
    return bad_input({"--waiver", "needs --policy and --out, and they need it",
                      "a page with waivers is none of a dossier: it has a file of its own"});
  }
  const std::string directory = without_slash(given.directory);
  if (const auto running = check_run_is_over(directory)) return bad_input(*running);
  const auto evidence_files = evidence::read_evidence_files(directory);
  if (!evidence_files) return bad_input(evidence_files.error());
  const auto examined = evidence::examine(*evidence_files);
  if (!examined) return refused(examined.error());
  auto content = page::report_content(*examined, evidence::evidence_in(*evidence_files), given.self_signed);
  std::string path = directory + "/" + dossier::kReportFile;
  if (!given.waivers.empty()) {
    if (const auto code = show_waivers(content, given.waivers, given.policy)) return *code;
    path = given.out;
  }
  const std::string html = page::render_html(content);
  const auto problem = given.waivers.empty() ? files::replace_file(path, html) : files::create_file(path, html, 0644);
  if (problem) return bad_input(*problem);
  if (html.find(page::kMissingPart) != std::string::npos)
    std::cerr << fmt::format("{}: a part of the page could not be made; the page says which\n", harmless(path));
  std::cout << harmless_page(path) << '\n';
  return files::kExitSuccess;
}

int run_sign(const SignArguments& given) {
  if (!is_folder(given.directory)) return bad_input(not_a_folder(given.directory));
  const auto loaded = dossier::load_signer(given.signer);
  if (!loaded) return bad_input(loaded.error());
  const dossier::Signer& key = **loaded;
  const std::string directory = without_slash(given.directory);
  if (given.add) return add_to(directory, given, key);
  if (!given.self_signed && machine_key() == key.public_key()) {
    return bad_input({given.signer.key, "is this machine's own key, for which no organisation vouches",
                      "sign with a key of a person, or add --self-signed here and to `assay-report report`"});
  }
  if (const auto problem = check_run_is_over(directory)) return bad_input(*problem);
  const std::string dossier = given.out.empty() ? directory + "/dossier" : without_slash(given.out);
  if (const auto problem = make_room(directory, dossier)) return bad_input(*problem);
  const auto older = superseded_by(given);
  if (!older) return bad_input(older.error());
  const auto made = dossier::make_dossier({.run_directory = directory,
                                           .dossier = dossier,
                                           .role = given.role,
                                           .name = given.name,
                                           .organisation = given.organisation,
                                           .self_signed = given.self_signed,
                                           .issued_at = utc_text(std::chrono::system_clock::now()),
                                           .supersedes = *older},
                                          key);
  if (!made) return refused(made.error());
  for (const auto& path : *made)
    std::cerr << fmt::format("left out, because no line of the journal names it: {}\n", harmless(path));
  std::cout << harmless_page(dossier) << '\n';
  return files::kExitSuccess;
}

int run_keygen(const KeygenArguments& given) {
  const auto passphrase = dossier::read_passphrase(given.passphrase_file);
  if (!passphrase) return bad_input(passphrase.error());
  const auto key = dossier::generate_key(given.file, *passphrase);
  if (!key) return bad_input(key.error());
  std::cout << key->fingerprint() << '\n';
  std::cerr << fmt::format(
      "{0}: the private key; keep it, and sign with it\n"
      "{0}.pub: the public key, for those who verify; give them the fingerprint above by another way\n",
      harmless(given.file));
  return files::kExitSuccess;
}

int run_fingerprint(const FingerprintArguments& given) {
  if (given.is_private) {
    const auto key = dossier::load_signer(
        {.key = given.file, .passphrase_file = given.passphrase_file, .certificate = given.certificate});
    if (!key) return bad_input(key.error());
    std::cout << (*key)->public_key().fingerprint() << '\n';
    return files::kExitSuccess;
  }
  const auto key = dossier::load_public_key(given.file);
  if (!key) return bad_input(key.error());
  std::cout << key->fingerprint() << '\n';
  return files::kExitSuccess;
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

std::string gone_on_note(const std::string& dossier) {
  const auto run = judge::run_gone_on(dossier);
  if (!run) return "";
  return fmt::format(
      "the run in {} went on after this dossier was signed; its verdict may be another: `assay sign` makes "
      "a new dossier",
      *run);
}

}  // namespace assay::report_cli
