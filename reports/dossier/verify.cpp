// verify: checks a dossier; the first check that fails refuses it.
#include "reports/dossier/verify.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/judge/evidence/imported.h"
#include "orchestrator/plan/catalogue.h"
#include "probes/core/utc_time.h"
#include "reports/dossier/certificate.h"
#include "reports/dossier/contents.h"
#include "reports/dossier/hardware_trust.h"
#include "reports/dossier/sign.h"
#include "reports/evidence/evidence_files.h"
#include "reports/evidence/tree.h"

namespace assay::dossier {
namespace {

constexpr std::uint64_t kLargestManifest = 1 << 30;  // 4,000,000 lines of 200 bytes
constexpr std::uint64_t kLongestLine = 2048;         // a digest, and a path of at most 1024 bytes

std::expected<evidence::Manifest, InputError> check_manifest(const std::string& directory,
                                                             const evidence::EvidenceSummary& signed_summary) {
  // Its size is signed as the number of its lines: a larger file is not read.
  const auto text = evidence::read_plain_file(directory, kManifestFile,
                                              std::min(kLargestManifest, signed_summary.file_count * kLongestLine));
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

/// The files of a dossier: those of evidence/, and signer.pub.
struct DossierFiles {
  evidence::EvidenceFiles evidence;
  std::string signer_pem;
};

/// Reads every file once.
std::expected<DossierFiles, InputError> read_and_check_files(const std::string& directory,
                                                             const evidence::Manifest& manifest,
                                                             std::uint64_t total_bytes) {
  DossierFiles files;
  files.evidence.root = directory + "/" + kEvidenceFolder;
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
                              files.evidence.add(name, std::move(bytes));
                              if (files.evidence.digests.at(name) != line->second)
                                return differs(path, "SHA-256 differs");
                            } else if (files::sha256(bytes) != line->second) {
                              return differs(path, "SHA-256 differs");
                            } else if (path == kSignerFile) {
                              files.signer_pem = std::move(bytes);
                            }
                            return std::nullopt;
                          },
                          {.empty_folders = false, .executables = false});
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

/// Whether these are the targets of the built-in profile of the same name.
bool is_built_in(const plan::Profile& profile) {
  if (!plan::embedded_profile(profile.name)) return false;
  const auto known = plan::profile_named(profile.name);
  return known && to_json(*known) == to_json(profile);
}

/// Facts to report besides the verdict.
CheckedContents contents_of(const Claims& claims, const evidence::Examined& examined, const nlohmann::json& targets) {
  const plan::Plan& plan = examined.run.plan;
  const judge::Journal& journal = examined.run.journal;
  CheckedContents contents{.claims = claims,
                           .verdict = examined.verdict,
                           .profile_revision = targets.at("revision"),
                           .requirements = targets.at("requirements"),
                           .targets_sha256 = targets.at("sha256"),
                           .verdict_sha256 = examined.verdict_sha256,
                           .journal_sha256 = examined.journal_sha256,
                           .challenge = plan.challenge,
                           .agreed = plan.agreed_risk || plan.agreed_stability,
                           .site_sha256 = digest_of_site(plan.site).value_or(""),
                           .targets_built_in = is_built_in(plan.profile),
                           .began = journal.begin,
                           .ended = journal.last,
                           .finished = journal.finished,
                           .machines = journal.node_facts};
  for (const auto& node : plan.site.nodes) contents.nodes.push_back(node.name);
  for (const auto& [name, probe] : plan.probes) {
    contents.probes.push_back({.name = name,
                               .revision = probe.description.revision,
                               .sha256 = probe.sha256,
                               .builds = probe.builds,
                               .known = plan::is_known(probe.description)});
  }
  return contents;
}

/// Requested checks that are impossible.
std::optional<InputError> check_demands(const std::vector<PublicKey>& keys, const Expectations& expected) {
  if (keys.empty() && !expected.trust)
    return InputError{"--key", "no key was given", "give the public key of each required signer"};
  for (auto key = keys.begin(); key != keys.end(); ++key) {
    if (std::find(keys.begin(), key, *key) != key)
      return InputError{"--key", "the same key was given twice", "two signers have two keys"};
  }
  if (!expected.require.empty() && !expected.trust)
    return InputError{"--require", "needs --policy, which binds roles to keys", "a role in a statement is a word"};
  if (expected.trust && !expected.now)
    return InputError{expected.trust->path, "needs a clock, because keys have a time", ""};
  return std::nullopt;
}

/// Keys by fingerprint that a policy may name without their bytes: the given ones, and the hint in the dossier, which a
/// fingerprint makes as good as any other copy.
std::map<std::string, PublicKey> known_keys(const std::string& directory, const std::vector<PublicKey>& given) {
  constexpr std::uint64_t kLargestKey = 64 << 10;
  std::map<std::string, PublicKey> known;
  for (const auto& key : given) known.emplace(key.fingerprint(), key);
  // One that cannot be read is refused later, when the files are checked.
  if (const auto pem = evidence::read_plain_file(directory, kSignerFile, kLargestKey)) {
    if (const auto key = public_key_from_pem(*pem, kSignerFile)) known.emplace(key->fingerprint(), *key);
  }
  return known;
}

/// `error` with its path relative to the dossier.
InputError in_evidence(InputError error) {
  error.where = fmt::format("{}/{}", kEvidenceFolder, error.where);
  return error;
}

}  // namespace

std::expected<CheckedContents, InputError> check_contents(const std::string& directory, const Envelope& envelope,
                                                          const Expectations& expected,
                                                          const std::vector<std::string>& signers) {
  if (envelope.payload_type != kPayloadType) {
    return std::unexpected(
        InputError{fmt::format("{}: payloadType", kStatementFile), fmt::format("is not '{}'", kPayloadType), ""});
  }
  const std::string where = fmt::format("{}: payload", kStatementFile);
  auto statement = read_claims(envelope.payload, where);
  if (!statement) return std::unexpected(statement.error());
  Claims& claims = statement->claims;
  if (auto problem = check_statement(statement->document.at("predicate"), expected)) return std::unexpected(*problem);
  const auto manifest = check_manifest(directory, claims.evidence);
  if (!manifest) return std::unexpected(manifest.error());
  const auto files = read_and_check_files(directory, *manifest, claims.evidence.total_bytes);
  if (!files) return std::unexpected(files.error());
  auto examined = evidence::examine(files->evidence);
  if (!examined) return std::unexpected(in_evidence(examined.error()));
  if (auto problem = judge::find_imported_files(files->evidence.kept, examined->run.journal))
    return std::unexpected(in_evidence(*problem));
  if (auto problem =
          check_follows(envelope.payload, where, claims, examined->run, examined->verdict, examined->verdict_sha256))
    return std::unexpected(*problem);
  if (auto problem = check_contents_closed(*manifest, examined->run.journal)) return std::unexpected(*problem);
  if (auto problem = check_signatory(claims, files->signer_pem, envelope, signers)) return std::unexpected(*problem);
  if (auto problem = check_evidence(*examined, claims, expected)) return std::unexpected(*problem);
  if (!expected.serials.empty()) {
    if (auto problem = check_serials(examined->run, evidence::evidence_in(files->evidence), expected.serials))
      return std::unexpected(*problem);
  }
  auto tpms = judge::tpm_answers(examined->run, evidence::evidence_in(files->evidence));
  if (auto problem = check_tpms(expected.tpm, *utc_time(examined->run.journal.begin), tpms))
    return std::unexpected(*problem);
  auto gpus = judge::gpu_answers(examined->run, evidence::evidence_in(files->evidence));
  if (auto problem = check_gpus(expected.gpu, *utc_time(examined->run.journal.begin), gpus))
    return std::unexpected(*problem);
  const auto compared = check_renderings(claims, *examined, files->evidence, expected.without_report);
  if (!compared) return std::unexpected(compared.error());
  auto contents = contents_of(claims, *examined, statement->document.at("predicate").at("targets"));
  contents.report_checked = *compared;
  contents.tpms = std::move(tpms);
  contents.gpus = std::move(gpus);
  return contents;
}

std::expected<Verified, InputError> verify_dossier(const std::string& directory, const std::vector<PublicKey>& keys,
                                                   const Expectations& expected) {
  const auto envelope = envelope_in(directory, kStatementFile, kLargestEnvelope);
  if (!envelope) return std::unexpected(envelope.error());
  return verify_envelope(directory, *envelope, keys, expected);
}

std::expected<Verified, InputError> verify_envelope(const std::string& directory, const Envelope& envelope,
                                                    const std::vector<PublicKey>& keys, const Expectations& given) {
  Expectations expected = given;
  if (expected.trust) expected.trust = with_certificates(std::move(*expected.trust), certificates_of(envelope));
  if (auto problem = check_demands(keys, expected)) return std::unexpected(*problem);
  auto signatures =
      check_signatures(envelope, kStatementFile,
                       {.keys = keys, .known = known_keys(directory, keys), .require = expected.require}, expected);
  if (!signatures) return std::unexpected(signatures.error());
  Verified verified{std::move(*signatures), {}};
  auto contents = check_contents(directory, envelope, expected, verified.signers);
  if (!contents) return std::unexpected(contents.error());
  if (auto problem = check_stamp_times(verified.stamps,
                                       {{"the run ended", utc_time(contents->ended)},
                                        {"the statement was issued", utc_time(contents->claims.issued_at)}},
                                       expected.now, kStatementFile))
    return std::unexpected(*problem);
  if (expected.trust) {
    const Moment made = verified.made_at(contents->claims.signatories.front().key_fingerprint, *expected.now);
    if (auto problem = check_maker(*expected.trust, verified.parties, contents->claims, made))
      return std::unexpected(*problem);
  }
  if (expected.older) {
    const auto maker = check_superseded(contents->claims.supersedes, *expected.older);
    if (!maker) return std::unexpected(maker.error());
    if (expected.trust) {
      if (auto problem = check_same_party(*expected.trust, contents->claims, *maker)) return std::unexpected(*problem);
    }
  }
  verified.contents = std::move(*contents);
  return verified;
}

}  // namespace assay::dossier
