// opened_run: verify's checks, then the same evidence as values.
#include "reports/dossier/opened_run.h"

#include <filesystem>

#include <fmt/format.h>

#include "reports/dossier/contents.h"
#include "reports/dossier/hardware_trust.h"
#include "reports/dossier/sign.h"
#include "reports/dossier/verify.h"
#include "reports/evidence/tree.h"

namespace assay::dossier {
namespace {

/// The run of the evidence in `directory`, of which every file is in `manifest` if that is given, as it was checked
/// before.
std::expected<OpenedRun, InputError> read_run(const std::string& directory, const evidence::Manifest* manifest) {
  const auto files = evidence::read_evidence_files(directory);
  if (!files) return std::unexpected(files.error());
  if (manifest != nullptr) {
    for (const auto& [path, sha256] : files->digests) {
      const auto line = manifest->find(fmt::format("{}/{}", kEvidenceFolder, path));
      if (line == manifest->end() || line->second != sha256) {
        return std::unexpected(
            InputError{directory + "/" + path, "changed while it was read", "no other process may write to a dossier"});
      }
    }
  }
  auto examined = evidence::examine(*files);
  if (!examined) return std::unexpected(examined.error());
  auto serials = recorded_serials(examined->run, evidence::evidence_in(*files));
  return OpenedRun{.path = directory,
                   .standing = examined->run.plan.simulation ? "simulated" : "unsigned",
                   .content = page::report_content(std::move(*examined), evidence::evidence_in(*files), ""),
                   .serials = std::move(serials)};
}

struct Checked {
  CheckedContents contents;
  std::string standing;
  std::vector<std::string> signers;
};

/// The dossier as `verify` checks it, by those of the keys that have signed.
std::expected<Checked, InputError> check(const std::string& directory, const Envelope& envelope,
                                         const Signers& signers) {
  const Expectations expected{.trust = signers.policy, .now = signers.now, .without_report = true};
  if (signers.keys.empty() && !signers.policy) {
    auto contents = check_contents(directory, envelope, expected);
    if (!contents) return std::unexpected(contents.error());
    return Checked{.contents = std::move(*contents), .standing = "signature_not_checked"};
  }
  std::vector<PublicKey> keys;
  for (const auto& key : signers.keys) {
    if (is_signed_by(envelope, key)) keys.push_back(key);
  }
  if (keys.empty() && !signers.policy) {
    return std::unexpected(InputError{fmt::format("{}/{}", directory, kStatementFile),
                                      "has no valid signature of any key that was given",
                                      "give the public key of who signed it with --key"});
  }
  auto verified = verify_envelope(directory, envelope, keys, expected);
  if (!verified) return std::unexpected(verified.error());
  Checked checked{.contents = std::move(verified->contents), .standing = "verified"};
  for (const auto& one : verified->parties)
    checked.signers.push_back(fmt::format("{}: {} of {}", one.role, one.signer, one.party));
  if (checked.signers.empty()) checked.signers = verified->signers;
  return checked;
}

std::expected<OpenedRun, InputError> load_dossier(const std::string& directory, const Signers& signers) {
  const auto envelope = envelope_in(directory, kStatementFile, kLargestEnvelope);
  if (!envelope) return std::unexpected(envelope.error());
  auto checked = check(directory, *envelope, signers);
  if (!checked) return std::unexpected(checked.error());
  const auto manifest_text = evidence::read_plain_file(directory, kManifestFile, std::uint64_t{1} << 30);
  if (!manifest_text) return std::unexpected(manifest_text.error());
  const auto manifest = evidence::read_manifest(*manifest_text, kManifestFile);
  if (!manifest) return std::unexpected(manifest.error());
  auto run = read_run(fmt::format("{}/{}", directory, kEvidenceFolder), &*manifest);
  if (!run) return run;
  if (run->content.verdict_sha256 != checked->contents.verdict_sha256) {
    return std::unexpected(
        InputError{directory, "changed while it was read", "no other process may write to a dossier"});
  }
  run->content.self_signed = self_signed_fingerprint(checked->contents.claims);
  run->path = directory;
  run->standing = std::move(checked->standing);
  run->signers = std::move(checked->signers);
  return run;
}

}  // namespace

std::expected<OpenedRun, InputError> open_run(const std::string& directory, const Signers& signers) {
  std::error_code unknown;  // a folder that cannot be looked at is reported by the reads below
  if (std::filesystem::exists(fmt::format("{}/{}", directory, kStatementFile), unknown)) {
    auto run = load_dossier(directory, signers);
    if (!run && !run.error().where.starts_with(directory)) run.error().where = directory + ": " + run.error().where;
    return run;
  }
  auto run = read_run(directory, nullptr);
  if (!run && !run.error().where.starts_with(directory)) run.error().where = directory + "/" + run.error().where;
  return run;
}

}  // namespace assay::dossier
