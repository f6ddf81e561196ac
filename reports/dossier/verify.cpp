// verify: checks a dossier; the first check that fails refuses it.
#include "reports/dossier/verify.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "orchestrator/files/difference.h"
#include "orchestrator/files/digest.h"
#include "orchestrator/judge/import_guard.h"
#include "orchestrator/plan/catalogue.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"
#include "reports/dossier/contents.h"
#include "reports/dossier/serials.h"
#include "reports/dossier/sign.h"
#include "reports/evidence/evidence_files.h"
#include "reports/evidence/tree.h"

namespace assay::dossier {
namespace {

constexpr std::uint64_t kLargestManifest = 1 << 30;  // 4,000,000 lines of 200 bytes

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

/// What a reader of the result must know beside the verdict.
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
                           .site_sha256 = digest_of_site(plan.site).value_or(""),
                           .targets_built_in = is_built_in(plan.profile),
                           .began = journal.begin,
                           .ended = journal.last,
                           .finished = journal.finished,
                           .machines = journal.node_facts};
  for (const auto& node : plan.site.nodes) contents.nodes.push_back(node.name);
  for (const auto& [name, probe] : plan.probes) {
    const int revision = probe.description.revision;
    contents.probes.push_back({.name = name,
                               .revision = revision,
                               .sha256 = probe.sha256,
                               .known = plan::known_probe(name, revision) != nullptr});
  }
  return contents;
}

/// "; it names the key 5f0c… (signer, Ada Example)": who the statement says has signed it, which is not verified.
std::string who_claims(const Envelope& envelope) {
  const auto statement = read_statement(envelope.payload, kStatementFile);
  if (!statement) return "";
  std::string words;
  for (const auto& one : statement->claims.signatories) {
    words +=
        fmt::format("{} {} ({}{}{})", words.empty() ? "; it names the key" : ", and", printable(one.key_fingerprint),
                    printable(one.role), one.name.empty() ? "" : ", ", printable(one.name));
  }
  return words;
}

/// What cannot be checked as it was asked for.
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

/// The stamps of those who were demanded, by fingerprint. Refused: one has none, or of a time that cannot be: before
/// the run ended, before the statement says that it was issued, in the future.
std::expected<std::map<std::string, Stamp>, InputError> stamps_of(const Envelope& envelope,
                                                                  const std::vector<PublicKey>& demanded,
                                                                  const std::map<std::string, Stamp>& stamps,
                                                                  const CheckedContents& contents,
                                                                  const Expectations& expected) {
  const std::chrono::duration<double> skew(judge::kMostClockDifference_s);
  const std::string message = pre_authentication_encoding(envelope.payload_type, envelope.payload);
  std::map<std::string, Stamp> found;
  for (const auto& key : demanded) {
    const auto stamp = stamps.find(*signature_of(envelope, message, key));
    if (stamp == stamps.end()) {
      return std::unexpected(InputError{kStatementFile,
                                        fmt::format("the signature of the key {} has no time stamp", key.fingerprint()),
                                        "`assay-report timestamp` asks an authority for one and adds it"});
    }
    const Moment at = stamp->second.at;
    for (const auto& [what, time] : {std::pair("the run ended", utc_time(contents.ended)),
                                     std::pair("the statement was issued", utc_time(contents.claims.issued_at))}) {
      if (time && *time - at > skew) {
        return std::unexpected(
            InputError{kStatementFile,
                       fmt::format("a signature was stamped {}, before {} ({})", utc_text(at), what, utc_text(*time)),
                       "one of the clocks is wrong, or the times of the run are made up"});
      }
    }
    if (expected.now && at - *expected.now > skew) {
      return std::unexpected(InputError{
          kStatementFile,
          fmt::format("a signature was stamped {}, and it is {} here", utc_text(at), utc_text(*expected.now)),
          "one of the clocks is wrong"});
    }
    found.emplace(key.fingerprint(), stamp->second);
  }
  return found;
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
  if (auto problem = check_statement(statement->document.at("predicate"), expected)) return std::unexpected(*problem);
  const auto manifest = check_manifest(directory, claims.evidence);
  if (!manifest) return std::unexpected(manifest.error());
  const auto files = read_and_check_files(directory, *manifest, claims.evidence.total_bytes);
  if (!files) return std::unexpected(files.error());
  auto examined = evidence::examine(files->evidence);
  if (!examined) return std::unexpected(in_evidence(examined.error()));
  if (auto problem = judge::find_imported_files(files->evidence.kept, examined->run.journal))
    return std::unexpected(in_evidence(*problem));
  const auto again = statement_of(claims, examined->run, examined->verdict, examined->verdict_sha256);
  if (!again) return std::unexpected(again.error());
  if (*again != statement->document) {
    return std::unexpected(
        InputError{fmt::format("{}: payload", kStatementFile),
                   "does not follow from the evidence: " + files::first_difference(statement->document, *again),
                   "the signed statement contradicts the evidence"});
  }
  if (auto problem = check_contents_closed(*manifest, examined->run.journal)) return std::unexpected(*problem);
  if (auto problem = check_signatory(claims, files->signer_pem, envelope)) return std::unexpected(*problem);
  if (auto problem = check_evidence(*examined, claims, expected)) return std::unexpected(*problem);
  if (!expected.serials.empty()) {
    if (auto problem = check_serials(examined->run, evidence::evidence_in(files->evidence), expected.serials))
      return std::unexpected(*problem);
  }
  const auto compared = check_renderings(claims, *examined, files->evidence, expected.without_report);
  if (!compared) return std::unexpected(compared.error());
  auto contents = contents_of(claims, *examined, statement->document.at("predicate").at("targets"));
  contents.report_checked = *compared;
  return contents;
}

std::expected<Verified, InputError> verify_dossier(const std::string& directory, const std::vector<PublicKey>& keys,
                                                   const Expectations& expected) {
  const auto text = evidence::read_plain_file(directory, kStatementFile, kLargestEnvelope);
  if (!text) return std::unexpected(text.error());
  const auto envelope = read_envelope(*text, kStatementFile);
  if (!envelope) return std::unexpected(envelope.error());
  return verify_envelope(directory, *envelope, keys, expected);
}

std::expected<Verified, InputError> verify_envelope(const std::string& directory, const Envelope& envelope,
                                                    const std::vector<PublicKey>& keys, const Expectations& expected) {
  if (auto problem = check_demands(keys, expected)) return std::unexpected(*problem);
  Verified verified;
  std::map<std::string, Stamp> stamps;
  if (!expected.authorities.empty()) {
    auto checked_stamps = check_stamps(envelope, expected.authorities);
    if (!checked_stamps) return std::unexpected(checked_stamps.error());
    stamps = std::move(*checked_stamps);
  }
  std::vector<PublicKey> checked = keys;
  for (const auto& key : keys) {
    if (!is_signed_by(envelope, key)) {
      return std::unexpected(
          InputError{kStatementFile, fmt::format("has no valid signature of the key {}", key.fingerprint()),
                     "it was signed with another key or changed after signing" + who_claims(envelope)});
    }
    verified.signers.push_back(key.fingerprint());
  }
  if (expected.trust) {
    auto counted = count_signatures(*expected.trust, envelope, keys, known_keys(directory, keys), expected.require,
                                    *expected.now, stamps);
    if (!counted) return std::unexpected(counted.error());
    verified.parties = std::move(*counted);
    verified.policy = expected.trust->name;
    for (const auto& one : verified.parties) {
      if (std::ranges::find(checked, one.key) != checked.end()) continue;
      verified.signers.push_back(one.fingerprint);
      checked.push_back(one.key);
    }
  }
  const std::string message = pre_authentication_encoding(envelope.payload_type, envelope.payload);
  verified.other_signatures =
      static_cast<std::size_t>(std::ranges::count_if(envelope.signatures, [&](const std::string& signature) {
        return std::ranges::none_of(checked, [&](const PublicKey& key) { return key.verifies(message, signature); });
      }));
  auto contents = check_contents(directory, envelope, expected);
  if (!contents) return std::unexpected(contents.error());
  if (!expected.authorities.empty()) {
    auto by_signer = stamps_of(envelope, checked, stamps, *contents, expected);
    if (!by_signer) return std::unexpected(by_signer.error());
    verified.stamps = std::move(*by_signer);
  }
  if (expected.trust) {
    const auto stamp = verified.stamps.find(contents->claims.signatories.front().key_fingerprint);
    const Moment made = stamp == verified.stamps.end() ? *expected.now : stamp->second.at;
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
