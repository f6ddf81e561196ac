// verify: checks a dossier; the first check that fails refuses it.
#include "reports/dossier/verify.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/judge/import_guard.h"
#include "reports/dossier/sign.h"
#include "reports/evidence/evidence_files.h"
#include "reports/evidence/tree.h"
#include "reports/page/render.h"

namespace assay::dossier {
namespace {

constexpr std::uint64_t kLargestManifest = 1 << 30;  // 4,000,000 lines of 200 bytes

InputError differs(const std::string& where, const std::string& what) {
  return {where, what, "the dossier was changed after signing, or is not the signed one"};
}

std::optional<InputError> check_expected(const nlohmann::json& predicate, const Expectations& expected) {
  const auto wrong = [](const char* what, const std::string& is, const std::string& should) {
    return InputError{kStatementFile, fmt::format("has the {} '{}', expected '{}'", what, is, should),
                      "this is a dossier of another run"};
  };
  const std::string plan = predicate.at("plan").at("sha256");
  const std::string site = predicate.at("site").at("name");
  const std::string profile = predicate.at("targets").at("profile");
  if (!expected.plan_sha256.empty() && plan != expected.plan_sha256) return wrong("plan", plan, expected.plan_sha256);
  if (!expected.site.empty() && site != expected.site) return wrong("site", site, expected.site);
  if (!expected.profile.empty() && profile != expected.profile) return wrong("profile", profile, expected.profile);
  const std::string targets = predicate.at("targets").at("sha256");
  if (!expected.targets_sha256.empty() && targets != expected.targets_sha256)
    return wrong("targets (SHA-256)", targets, expected.targets_sha256);
  return std::nullopt;
}

std::expected<evidence::Manifest, InputError> check_manifest(const std::string& directory,
                                                             const evidence::EvidenceSummary& signed_summary) {
  const auto text = evidence::read_plain_file(directory, kManifestFile, kLargestManifest);
  if (!text) return std::unexpected(text.error());
  if (files::sha256(*text) != signed_summary.manifest_sha256)
    return std::unexpected(differs(kManifestFile, "SHA-256 differs from the signed one"));
  auto manifest = evidence::read_manifest(*text, kManifestFile);
  if (!manifest) return manifest;
  const auto summary = evidence::summary_of(*manifest, signed_summary.total_bytes);
  if (summary.file_count != signed_summary.file_count) {
    return std::unexpected(differs(
        kManifestFile, fmt::format("lists {} files, the statement {}", summary.file_count, signed_summary.file_count)));
  }
  if (summary.merkle_root != signed_summary.merkle_root)
    return std::unexpected(differs(kManifestFile, "the Merkle root differs from the signed one"));
  return manifest;
}

/// Reads every file once; returns the files of evidence/.
std::expected<evidence::EvidenceFiles, InputError> read_and_check_files(const std::string& directory,
                                                                        const evidence::Manifest& manifest,
                                                                        std::uint64_t total_bytes) {
  evidence::EvidenceFiles files;
  std::set<std::string> seen;
  std::uint64_t bytes_seen = 0;
  const std::string prefix = std::string(kEvidenceFolder) + "/";
  const auto problem =
      evidence::walk_tree(directory, {kStatementFile, kManifestFile},
                          [&](const std::string& path, std::string bytes) -> std::optional<InputError> {
                            const auto line = manifest.find(path);
                            if (line == manifest.end()) return differs(path, "is not in the manifest");
                            bytes_seen += bytes.size();
                            seen.insert(path);
                            if (path.starts_with(prefix)) {
                              const std::string name = path.substr(prefix.size());
                              files.add(name, std::move(bytes));
                              if (files.digests.at(name) != line->second) return differs(path, "SHA-256 differs");
                            } else if (files::sha256(bytes) != line->second) {
                              return differs(path, "SHA-256 differs");
                            }
                            return std::nullopt;
                          },
                          {.empty_folders = false});
  if (problem) return std::unexpected(*problem);
  if (seen.size() != manifest.size()) {
    const auto missing = std::ranges::find_if(manifest, [&](const auto& line) { return !seen.contains(line.first); });
    return std::unexpected(differs(missing->first, "is in the manifest, but not in the dossier"));
  }
  if (bytes_seen != total_bytes) {
    return std::unexpected(
        differs(kEvidenceFolder,
                fmt::format("has {} bytes with VERIFY.txt and signer.pub, the statement {}", bytes_seen, total_bytes)));
  }
  return files;
}

std::string self_signed_fingerprint(const Claims& claims) {
  const auto found = std::ranges::find_if(claims.signatories, &Signatory::is_self_signed);
  return found == claims.signatories.end() ? "" : found->key_fingerprint;
}

std::optional<InputError> check_renderings(const Claims& claims, const evidence::Examined& examined,
                                           const evidence::EvidenceFiles& files, std::vector<std::string>& notes) {
  const std::string path = fmt::format("{}/{}", kEvidenceFolder, kReportFile);
  if (claims.renderings.size() != 1 || claims.renderings.front().path != path)
    return differs(kStatementFile, "does not list report.html as its only rendering");
  const auto& rendering = claims.renderings.front();
  const auto report = files.kept.find(kReportFile);
  if (report == files.kept.end()) return differs(path, "is missing");
  if (files.digests.at(kReportFile) != rendering.sha256)
    return differs(path, "SHA-256 differs from that of the signed rendering");
  if (rendering.renderer != page::kRenderer) {
    notes.push_back(
        fmt::format("report.html was rendered by {} and this build is {}: its digest was checked, but it was not "
                    "rendered again.",
                    rendering.renderer, page::kRenderer));
    return std::nullopt;
  }
  if (page::render_html(page::report_content(examined, evidence::evidence_in(files),
                                             self_signed_fingerprint(claims))) != report->second) {
    return differs(path, "differs from the report rendered from the evidence");
  }
  return std::nullopt;
}

/// `error` with its path relative to the dossier.
InputError in_evidence(InputError error) {
  error.where = fmt::format("{}/{}", kEvidenceFolder, error.where);
  return error;
}

}  // namespace

std::expected<CheckedContents, InputError> check_contents(const std::string& directory, const Envelope& envelope,
                                                          const Expectations& expected) {
  if (envelope.payload_type != kPayloadType) {
    return std::unexpected(
        InputError{fmt::format("{}: payloadType", kStatementFile), fmt::format("is not '{}'", kPayloadType), ""});
  }
  auto statement = read_statement(envelope.payload, fmt::format("{}: payload", kStatementFile));
  if (!statement) return std::unexpected(statement.error());
  Claims& claims = statement->claims;
  if (auto problem = check_expected(statement->document.at("predicate"), expected)) return std::unexpected(*problem);
  const auto manifest = check_manifest(directory, claims.evidence);
  if (!manifest) return std::unexpected(manifest.error());
  const auto files = read_and_check_files(directory, *manifest, claims.evidence.total_bytes);
  if (!files) return std::unexpected(files.error());
  auto examined = evidence::examine(*files);
  if (!examined) return std::unexpected(in_evidence(examined.error()));
  if (auto problem = judge::find_imported_files(files->kept, examined->run.journal))
    return std::unexpected(in_evidence(*problem));
  const auto again = statement_of(claims, examined->run, examined->verdict, examined->verdict_sha256);
  if (!again) return std::unexpected(again.error());
  if (*again != statement->document) {
    return std::unexpected(
        InputError{fmt::format("{}: payload", kStatementFile),
                   "does not follow from the evidence: " + evidence::first_difference(statement->document, *again),
                   "the signed statement contradicts the evidence"});
  }
  const auto& targets = statement->document.at("predicate").at("targets");
  CheckedContents contents{.claims = claims,
                           .verdict = examined->verdict,
                           .profile_revision = targets.at("revision"),
                           .requirements = targets.at("requirements"),
                           .targets_sha256 = targets.at("sha256"),
                           .notes = {}};
  if (auto problem = check_renderings(claims, *examined, *files, contents.notes)) return std::unexpected(*problem);
  return contents;
}

std::expected<Verified, InputError> verify_dossier(const std::string& directory, const std::vector<PublicKey>& keys,
                                                   const Expectations& expected) {
  if (keys.empty())
    return std::unexpected(InputError{"--key", "no key was given", "give the public key of each required signer"});
  for (auto key = keys.begin(); key != keys.end(); ++key) {
    if (std::find(keys.begin(), key, *key) != key) {
      return std::unexpected(InputError{"--key", "the same key was given twice", "two signers have two keys"});
    }
  }
  const auto text = evidence::read_plain_file(directory, kStatementFile, kLargestEnvelope);
  if (!text) return std::unexpected(text.error());
  const auto envelope = read_envelope(*text, kStatementFile);
  if (!envelope) return std::unexpected(envelope.error());
  Verified verified;
  for (const auto& key : keys) {
    if (!is_signed_by(*envelope, key)) {
      return std::unexpected(InputError{kStatementFile,
                                        fmt::format("has no valid signature of the key {}", key.fingerprint()),
                                        "it was signed with another key or changed after signing"});
    }
    verified.signers.push_back(key.fingerprint());
  }
  const std::string message = pre_authentication_encoding(envelope->payload_type, envelope->payload);
  verified.other_signatures =
      static_cast<std::size_t>(std::ranges::count_if(envelope->signatures, [&](const std::string& signature) {
        return std::ranges::none_of(keys, [&](const PublicKey& key) { return key.verifies(message, signature); });
      }));
  auto contents = check_contents(directory, *envelope, expected);
  if (!contents) return std::unexpected(contents.error());
  verified.contents = std::move(*contents);
  return verified;
}

}  // namespace assay::dossier
