// commands: the subcommands of assay-report, from values to an exit code.
#include "reports/cli/commands.h"

#include <chrono>
#include <filesystem>
#include <iostream>

#include <fmt/format.h>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/digest.h"
#include "orchestrator/plan/profile.h"
#include "probes/core/utc_time.h"
#include "reports/dossier/sign.h"
#include "reports/dossier/verify.h"
#include "reports/page/render.h"

namespace assay::report_cli {
namespace {

using nlohmann::ordered_json;

int refused(const InputError& error) {
  std::cerr << "refused: " << error.text() << '\n';
  return files::kExitRefused;
}

/// `path` without the slashes at its end, so that a neighbour's name can be made from it.
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

/// The signatory whose key this is; the fingerprint alone when the statement does not list it.
ordered_json signer_of(const dossier::Claims& claims, const std::string& fingerprint) {
  ordered_json signer = {{"key", fingerprint}};
  for (const auto& one : claims.signatories) {
    if (one.key_fingerprint != fingerprint) continue;
    signer["role"] = one.role;
    signer["name"] = one.name;
    signer["organisation"] = one.organisation;
    signer["self_signed"] = one.is_self_signed();
  }
  return signer;
}

ordered_json document_of(const dossier::Verified& verified) {
  const auto& contents = verified.contents;
  ordered_json signers = ordered_json::array();
  for (const auto& fingerprint : verified.signers) signers.push_back(signer_of(contents.claims, fingerprint));
  return {{"verified", true},
          {"overall", to_string(contents.verdict.overall)},
          {"reason", contents.verdict.reason},
          {"run_id", contents.verdict.run_id},
          {"plan_sha256", contents.verdict.plan_sha256},
          {"site", contents.verdict.site},
          {"profile", contents.verdict.profile},
          {"profile_revision", contents.profile_revision},
          {"requirements", contents.requirements},
          {"targets_sha256", contents.targets_sha256},
          {"issued_at", contents.claims.issued_at},
          {"signers", std::move(signers)},
          {"other_signatures", verified.other_signatures},
          {"files", contents.claims.evidence.file_count},
          {"notes", contents.notes}};
}

void print_for_people(const ordered_json& document) {
  const auto text = [&](const ordered_json& value) { return value.get<std::string>(); };
  std::cout << fmt::format("verified: {}\n", text(document.at("overall")));
  std::cout << fmt::format("  {}\n  run {} on site {}\n  profile {} revision {}, {} requirements, targets {}\n",
                           text(document.at("reason")), text(document.at("run_id")), text(document.at("site")),
                           text(document.at("profile")), document.at("profile_revision").get<int>(),
                           document.at("requirements").get<std::size_t>(), text(document.at("targets_sha256")));
  std::cout << fmt::format("  issued {} (stated by the signer), {} files\n", text(document.at("issued_at")),
                           document.at("files").get<std::uint64_t>());
  for (const auto& signer : document.at("signers")) {
    std::string who = "a key that the statement does not list";
    if (signer.contains("role")) {
      who = text(signer.at("role"));
      for (const char* part : {"name", "organisation"}) {
        if (!text(signer.at(part)).empty()) who += ", " + text(signer.at(part));
      }
      if (signer.at("self_signed").get<bool>()) who += ", SELF-SIGNED";
    }
    std::cout << fmt::format("  signed by {}\n    key {}\n", who, text(signer.at("key")));
  }
  if (const auto others = document.at("other_signatures").get<std::size_t>(); others > 0) {
    std::cout << fmt::format("  {} further signatures by keys that were not given: not verified\n", others);
  }
  for (const auto& note : document.at("notes")) std::cout << fmt::format("  note: {}\n", text(note));
}

/// The expectations that the options state. `--profile` is a name, or a file whose targets must equal those that were
/// judged.
std::expected<dossier::Expectations, InputError> expectations_of(const VerifyArguments& given) {
  dossier::Expectations expected{
      .plan_sha256 = given.plan, .site = given.site, .profile = given.profile, .targets_sha256 = ""};
  if (!given.profile.ends_with(".json") && given.profile.find('/') == std::string::npos) return expected;
  const auto text = read_file(given.profile);
  if (!text) return std::unexpected(text.error());
  const auto profile = plan::read_profile(*text, given.profile, plan::embedded_profile);
  if (!profile) return std::unexpected(profile.error());
  const auto digest = dossier::digest_of_targets(*profile);
  if (!digest) return std::unexpected(digest.error());
  expected.profile = profile->name;
  expected.targets_sha256 = *digest;
  return expected;
}

}  // namespace

int bad_input(const InputError& error) {
  std::cerr << "assay-report: " << error.text() << '\n';
  return files::kExitBadInput;
}

int run_report(const ReportArguments& given) {
  if (!is_folder(given.directory)) return bad_input(not_a_folder(given.directory));
  if (!given.self_signed.empty() && !files::is_sha256(given.self_signed)) {
    return bad_input(
        {"--self-signed", "is not the fingerprint of a key", "`assay-report fingerprint FILE.pub` prints it"});
  }
  const std::string directory = without_slash(given.directory);
  const auto evidence_files = evidence::read_evidence_files(directory);
  if (!evidence_files) return bad_input(evidence_files.error());
  const auto examined = evidence::examine(*evidence_files);
  if (!examined) return refused(examined.error());
  const std::string path = directory + "/" + dossier::kReportFile;
  if (const auto problem =
          files::replace_file(path, page::render_html(page::report_content(
                                        *examined, evidence::evidence_in(*evidence_files), given.self_signed))))
    return bad_input(*problem);
  std::cout << path << '\n';
  return files::kExitSuccess;
}

int run_sign(const SignArguments& given) {
  if (!is_folder(given.directory)) return bad_input(not_a_folder(given.directory));
  const auto key = dossier::load_private_key(given.key, given.passphrase_file);
  if (!key) return bad_input(key.error());
  const std::string directory = without_slash(given.directory);
  if (given.add) {
    const auto added = dossier::add_signature(directory, *key);
    if (!added) return refused(added.error());
    std::cout << directory << '\n';
    return files::kExitSuccess;
  }
  const std::string dossier = given.out.empty() ? directory + "/dossier" : without_slash(given.out);
  if (std::error_code unknown; std::filesystem::exists(std::filesystem::symlink_status(dossier, unknown))) {
    return bad_input({dossier, "exists already", "a dossier is never overwritten; name another folder with --out"});
  }
  const auto made = dossier::make_dossier({.run_directory = directory,
                                           .dossier = dossier,
                                           .role = given.role,
                                           .name = given.name,
                                           .organisation = given.organisation,
                                           .self_signed = given.self_signed,
                                           .issued_at = utc_text(std::chrono::system_clock::now())},
                                          *key);
  if (!made) return refused(made.error());
  std::cout << dossier << '\n';
  return files::kExitSuccess;
}

int run_verify(const VerifyArguments& given) {
  if (!is_folder(given.directory)) return bad_input(not_a_folder(given.directory));
  std::vector<dossier::PublicKey> keys;
  for (const auto& path : given.keys) {
    auto key = dossier::load_public_key(path);
    if (!key) return bad_input(key.error());
    keys.push_back(std::move(*key));
  }
  const auto expected = expectations_of(given);
  if (!expected) return bad_input(expected.error());
  const auto verified = dossier::verify_dossier(without_slash(given.directory), keys, *expected);
  if (!verified) {
    if (given.json)
      std::cout << ordered_json{{"verified", false}, {"where", verified.error().where}, {"what", verified.error().what}}
                       .dump(1, ' ', false, ordered_json::error_handler_t::replace)
                << '\n';
    return refused(verified.error());
  }
  const ordered_json document = document_of(*verified);
  if (given.json) {
    std::cout << document.dump(1) << '\n';
  } else {
    print_for_people(document);
  }
  return given.accepted ? judge::exit_code(verified->contents.verdict.overall) : files::kExitSuccess;
}

int run_keygen(const KeygenArguments& given) {
  const auto passphrase = dossier::read_passphrase(given.passphrase_file);
  if (!passphrase) return bad_input(passphrase.error());
  const auto key = dossier::generate_key(given.file, *passphrase);
  if (!key) return bad_input(key.error());
  std::cout << key->fingerprint() << '\n';
  return files::kExitSuccess;
}

int run_fingerprint(const std::string& file) {
  const auto key = dossier::load_public_key(file);
  if (!key) return bad_input(key.error());
  std::cout << key->fingerprint() << '\n';
  return files::kExitSuccess;
}

}  // namespace assay::report_cli
