// contents: the files allowed in a dossier.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <string>

#include "orchestrator/judge/evidence/journal.h"
#include "reports/dossier/dsse.h"
#include "reports/dossier/statement.h"
#include "reports/evidence/evidence_files.h"
#include "reports/evidence/manifest.h"

namespace assay::dossier {

/// Whether the file `path` of a run directory is evidence: plan, journal, verdict, report, or named by a line of the
/// journal.
class EvidencePaths {
 public:
  explicit EvidencePaths(const judge::Journal& journal);
  [[nodiscard]] bool contains(const std::string& path) const { return paths_.contains(path); }

 private:
  std::map<std::string, bool, std::less<>> paths_;
};

/// The error of the files that `manifest` lists; nothing if each is evidence, VERIFY.txt or signer.pub, and VERIFY.txt
/// is as assay writes it. A file that nothing vouches for could say anything: that it is signed too would make a reader
/// believe it.
std::optional<InputError> check_contents_closed(const evidence::Manifest& manifest, const judge::Journal& journal);

/// The error of the signatory; nothing if the statement lists one, whose key is the one in signer.pub (`signer_pem`)
/// and has signed `envelope`. The fingerprints of `signers` are known to have.
std::optional<InputError> check_signatory(const Claims& claims, const std::string& signer_pem, const Envelope& envelope,
                                          const std::vector<std::string>& signers);

/// Whether report.html is the rendered evidence. A page of another renderer cannot be compared and may say anything, so
/// it is refused unless the receiver passes over it.
std::expected<bool, InputError> check_renderings(const Claims& claims, const evidence::Examined& examined,
                                                 const evidence::EvidenceFiles& files, bool without_report);

/// The fingerprint of a self-signing tester; empty if there is none.
std::string self_signed_fingerprint(const Claims& claims);

/// The error of a file that differs from the signed one.
InputError differs(const std::string& where, const std::string& what);

}  // namespace assay::dossier
