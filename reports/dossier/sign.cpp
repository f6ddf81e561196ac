// sign: from a judged run to a dossier, and further signatures on it.
#include "reports/dossier/sign.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/ranges.h>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/digest.h"
#include "orchestrator/judge/evidence/imported.h"
#include "probes/core/utc_time.h"
#include "reports/dossier/certificate.h"
#include "reports/dossier/contents.h"
#include "reports/dossier/dsse.h"
#include "reports/dossier/verify_text.h"
#include "reports/evidence/evidence_files.h"
#include "reports/evidence/tree.h"
#include "reports/page/non_claims.h"
#include "reports/page/render.h"

namespace assay::dossier {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDossier = "dossier";  // name of the dossier while it is staged

/// The staged name of `file`, a path in the dossier.
std::string staged(const std::string& file) { return fmt::format("{}/{}", kDossier, file); }

Signatory signatory_of(const SignRequest& request, const PublicKey& key) {
  return {.role = request.role,
          .name = request.name,
          .organisation = request.organisation,
          .key_fingerprint = key.fingerprint(),
          .meaning = std::string(request.self_signed ? kSelfSigned : kResponsible)};
}

std::optional<InputError> check_report(const evidence::EvidenceFiles& files, const evidence::Examined& examined,
                                       const std::string& self_signed) {
  const std::string hint =
      fmt::format("run `assay-report report DIR{}` first", self_signed.empty() ? "" : " --self-signed " + self_signed);
  const auto report = files.kept.find(kReportFile);
  if (report == files.kept.end()) return InputError{kReportFile, "is missing", hint};
  const auto content = page::report_content(examined, evidence::evidence_in(files), self_signed);
  if (report->second != page::render_html(content))
    return InputError{kReportFile, "differs from the report rendered for this run and kind of signature", hint};
  return std::nullopt;
}

/// Takes files that no line of the journal names out of `files`; returns them.
std::vector<std::string> leave_out(evidence::EvidenceFiles& files, const judge::Journal& journal) {
  const EvidencePaths evidence(journal);
  std::vector<std::string> left_out;
  for (const auto& [path, digest] : files.digests) {
    if (!evidence.contains(path)) left_out.push_back(path);
  }
  for (const auto& path : left_out) {
    files.digests.erase(path);
    files.sizes.erase(path);
    files.kept.erase(path);
  }
  return left_out;
}

/// Copies the logs, which are not kept in memory, and checks their digests.
std::optional<InputError> copy_logs(const std::string& run_directory, const evidence::EvidenceFiles& files,
                                    const std::vector<std::string>& left_out, const files::StagingDirectory& staging) {
  const std::string root = run_directory + "/logs";
  std::error_code unknown;  // without the folder there are no logs
  if (!fs::exists(root, unknown)) return std::nullopt;
  return evidence::walk_tree(
      root, {}, [&](const std::string& path, const std::string& bytes) -> std::optional<InputError> {
        if (std::ranges::binary_search(left_out, "logs/" + path)) return std::nullopt;
        const auto digest = files.digests.find("logs/" + path);
        if (digest == files.digests.end() || digest->second != files::sha256(bytes)) {
          return InputError{"logs/" + path, "changed during signing", "wait until the run has ended"};
        }
        return staging.write(staged(fmt::format("{}/logs/{}", kEvidenceFolder, path)), bytes);
      });
}

/// Writes everything that the manifest covers and returns the manifest's text and summary.
std::expected<std::pair<std::string, evidence::EvidenceSummary>, InputError> write_covered_files(
    const SignRequest& request, const evidence::EvidenceFiles& files, const std::vector<std::string>& left_out,
    const PublicKey& key, const files::StagingDirectory& staging) {
  evidence::Manifest manifest;
  std::uint64_t total = 0;
  for (const auto& [path, digest] : files.digests) {
    const std::string name = fmt::format("{}/{}", kEvidenceFolder, path);
    if (!evidence::is_plain_path(name))
      return std::unexpected(
          InputError{path, "has a name that is not plain", "the orchestrator did not write this file: remove it"});
    manifest[name] = digest;
    total += files.sizes.at(path);
    if (path.starts_with("logs/")) continue;  // copy_logs
    const auto bytes = files.read(path);
    if (!bytes) return std::unexpected(bytes.error());
    if (auto problem = staging.write(staged(name), *bytes)) return std::unexpected(*problem);
  }
  if (auto problem = copy_logs(request.run_directory, files, left_out, staging)) return std::unexpected(*problem);
  const std::pair<const char*, std::string> texts[] = {{kVerifyFile, verify_text()}, {kSignerFile, key.text()}};
  for (const auto& [name, text] : texts) {
    manifest[name] = files::sha256(text);
    total += text.size();
    if (auto problem = staging.write(staged(name), text)) return std::unexpected(*problem);
  }
  return std::pair(evidence::manifest_text(manifest), evidence::summary_of(manifest, total));
}

}  // namespace

std::expected<std::vector<std::string>, InputError> make_dossier(const SignRequest& request, const Signer& key) {
  if (std::ranges::find(kRoles, request.role) == kRoles.end()) {
    return std::unexpected(InputError{"--role",
                                      fmt::format("'{}' is not one of {}", request.role, fmt::join(kRoles, ", ")),
                                      "a name can be free: --name, --organisation"});
  }
  std::error_code unknown;  // an unreadable path is refused when the dossier is published
  if (fs::exists(fs::symlink_status(request.dossier, unknown))) {
    return std::unexpected(InputError{request.dossier, "exists already",
                                      "a dossier is never overwritten; name another folder with --out"});
  }
  auto evidence_files = evidence::read_evidence_files(request.run_directory);
  if (!evidence_files) return std::unexpected(evidence_files.error());
  const auto examined = evidence::examine(*evidence_files);
  if (!examined) return std::unexpected(examined.error());
  if (auto problem = judge::find_imported_files(evidence_files->kept, examined->run.journal))
    return std::unexpected(*problem);
  auto left_out = leave_out(*evidence_files, examined->run.journal);
  const PublicKey public_key = key.public_key();
  if (auto problem = check_report(*evidence_files, *examined, request.self_signed ? public_key.fingerprint() : ""))
    return std::unexpected(*problem);

  const auto staging = files::StagingDirectory::beside(request.dossier);
  if (!staging) return std::unexpected(staging.error());
  const auto covered = write_covered_files(request, *evidence_files, left_out, public_key, *staging);
  if (!covered) return std::unexpected(covered.error());
  if (auto problem = staging->write(staged(kManifestFile), covered->first)) return std::unexpected(*problem);

  const Claims claims{.issued_at = request.issued_at,
                      .tool = std::string("assay-report ") + ASSAY_VERSION,
                      .evidence = covered->second,
                      .renderings = {{.path = fmt::format("{}/{}", kEvidenceFolder, kReportFile),
                                      .media_type = "text/html",
                                      .sha256 = evidence_files->digests.at(kReportFile),
                                      .renderer = page::kRenderer}},
                      .signatories = {signatory_of(request, public_key)},
                      .non_claims = page::non_claims(),
                      .supersedes = request.supersedes};
  if (!examined->run.plan.simulation) {
    if (auto problem = check_evidence(*examined, claims, {.now = utc_time(request.issued_at)}))
      return std::unexpected(*problem);
  }
  auto statement = statement_text(claims, examined->run, examined->verdict, examined->verdict_sha256);
  if (!statement) return std::unexpected(statement.error());
  const bool simulated = examined->run.plan.simulation.has_value();  // verification takes no such statement
  const auto text = signed_payload(std::move(*statement), "statement", key, kLargestEnvelope,
                                   [&](const std::string& payload, const std::string& where) {
                                     return simulated ? ReadStatement{} : read_statement(payload, where);
                                   });
  if (!text) return std::unexpected(text.error());
  if (auto problem = staging->write(staged(kStatementFile), *text)) return std::unexpected(*problem);
  if (auto problem = staging->publish(kDossier)) return std::unexpected(*problem);
  return left_out;
}

std::expected<Expectations, InputError> before_signing(Expectations expected, const Signer& signer) {
  if (!expected.trust) return expected;
  expected.trust = with_certificates(std::move(*expected.trust), {signer.certificate});
  const PublicKey key = signer.public_key();
  const ListedKey own = listed(*expected.trust, key.fingerprint());
  if (own.key == nullptr) {
    return std::unexpected(InputError{fmt::format("{}: rule key_listed", expected.trust->path),
                                      fmt::format("the policy does not have the key {}", key.fingerprint()),
                                      "its signature would count for no one who verifies by this policy"});
  }
  if (!expected.now)
    return std::unexpected(InputError{expected.trust->path, "needs a clock, because keys have a time", ""});
  if (auto problem = check_key(*expected.trust, own, *expected.now)) return std::unexpected(*problem);
  const std::string role = own.party->role;
  std::erase(expected.trust->require, role);
  std::erase(expected.require, role);
  return expected;
}

std::expected<Verified, InputError> add_signature(const std::string& dossier, const Signer& key,
                                                  const std::vector<PublicKey>& others, const Expectations& expected) {
  auto envelope = envelope_in(dossier, kStatementFile, kLargestEnvelope);
  if (!envelope) return std::unexpected(envelope.error());
  if (is_signed_by(*envelope, key.public_key())) {
    return std::unexpected(
        InputError{kStatementFile, "is signed by this key already", "a second signature must be by another key"});
  }
  const auto before = before_signing(expected, key);
  if (!before) return std::unexpected(before.error());
  // Only a dossier that passes every check is signed, the signatures that it has included.
  auto verified = verify_envelope(dossier, *envelope, others, *before);
  if (!verified) return verified;
  if (auto problem = append_signature(*envelope, key, dossier + "/" + kStatementFile, kLargestEnvelope))
    return std::unexpected(*problem);
  return verified;
}

}  // namespace assay::dossier
