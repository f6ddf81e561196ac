// contents: a dossier is closed.
#include "reports/dossier/contents.h"

#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "reports/dossier/sign.h"
#include "reports/dossier/verify_text.h"
#include "reports/page/render.h"

namespace assay::dossier {

std::string self_signed_fingerprint(const Claims& claims) {
  const auto found = std::ranges::find_if(claims.signatories, &Signatory::is_self_signed);
  return found == claims.signatories.end() ? "" : found->key_fingerprint;
}

InputError differs(const std::string& where, const std::string& what) {
  return {where, what, "the dossier was changed after signing, or is not the signed one"};
}

EvidencePaths::EvidencePaths(const judge::Journal& journal) {
  for (const char* name : {"plan.json", "journal.jsonl", "verdict.json", kReportFile}) paths_[name] = true;
  journal.each_file([&](const judge::EvidenceFile& file) { paths_[file.path] = true; });
}

std::optional<InputError> check_contents_closed(const evidence::Manifest& manifest, const judge::Journal& journal) {
  const EvidencePaths evidence(journal);
  const std::string prefix = std::string(kEvidenceFolder) + "/";
  for (const auto& [path, digest] : manifest) {
    if (path == kVerifyFile) {
      if (is_verify_text(digest)) continue;
      return InputError{path, "is not the page that assay writes",
                        "do not run its commands; `assay-report sign` of this version writes the right ones"};
    }
    if (path == kSignerFile) continue;
    if (path.starts_with(prefix) && evidence.contains(path.substr(prefix.size()))) continue;
    return InputError{path, "is no file of a dossier: no line of the journal names it",
                      "it was signed, and nothing that assay did vouches for it; do not rely on it"};
  }
  for (const char* name : {kVerifyFile, kSignerFile}) {
    if (!manifest.contains(name)) return InputError{name, "is missing", "`assay-report sign` writes it"};
  }
  return std::nullopt;
}

std::optional<InputError> check_signatory(const Claims& claims, const std::string& signer_pem, const Envelope& envelope,
                                          const std::vector<std::string>& signers) {
  const auto key = public_key_from_pem(signer_pem, kSignerFile);
  if (!key) return key.error();
  if (key->text() != signer_pem)
    return InputError{kSignerFile, "is not spelt as assay writes a public key", "it may hold more than one key"};
  const auto& signatory = claims.signatories.front();
  if (signatory.key_fingerprint != key->fingerprint()) {
    return InputError{kSignerFile,
                      fmt::format("has the fingerprint {}, the signatory in the statement {}", key->fingerprint(),
                                  signatory.key_fingerprint),
                      "the statement lists the signer whose key lies beside it, and no other"};
  }
  if (std::ranges::find(signers, key->fingerprint()) == signers.end() && !is_signed_by(envelope, *key)) {
    return InputError{kStatementFile, fmt::format("lists the signatory {}, who has not signed", key->fingerprint()),
                      "everyone who is listed has signed"};
  }
  return std::nullopt;
}

std::expected<bool, InputError> check_renderings(const Claims& claims, const evidence::Examined& examined,
                                                 const evidence::EvidenceFiles& files, bool without_report) {
  const std::string path = fmt::format("{}/{}", kEvidenceFolder, kReportFile);
  if (claims.renderings.size() != 1 || claims.renderings.front().path != path)
    return std::unexpected(differs(kStatementFile, "does not list report.html as its only rendering"));
  const auto& rendering = claims.renderings.front();
  if (rendering.media_type != "text/html")
    return std::unexpected(differs(kStatementFile, fmt::format("lists report.html as '{}'", rendering.media_type)));
  const auto report = files.kept.find(kReportFile);
  if (report == files.kept.end()) return std::unexpected(differs(path, "is missing"));
  if (files.digests.at(kReportFile) != rendering.sha256)
    return std::unexpected(differs(path, "SHA-256 differs from that of the signed rendering"));
  if (rendering.renderer != page::kRenderer) {
    if (without_report) return false;
    return std::unexpected(InputError{
        path,
        fmt::format("was rendered by '{}', this build is '{}': it cannot be compared with the evidence",
                    rendering.renderer, page::kRenderer),
        "verify with the version of assay that made it; or with --without-report, and do not read this page: "
        "`assay-report report` renders a copy of evidence/ again"});
  }
  if (page::render_html(page::report_content(examined, evidence::evidence_in(files),
                                             self_signed_fingerprint(claims))) != report->second) {
    return std::unexpected(differs(path, "differs from the report rendered from the evidence"));
  }
  return true;
}

}  // namespace assay::dossier
