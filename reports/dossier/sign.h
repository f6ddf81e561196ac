// sign: from a judged run to a dossier, and further signatures on it.
#pragma once

#include <expected>
#include <string>

#include "reports/dossier/keys.h"
#include "reports/dossier/statement.h"

namespace assay::dossier {

/// Names inside a dossier.
inline constexpr const char* kStatementFile = "statement.dsse.json";
inline constexpr const char* kManifestFile = "MANIFEST.sha256";
inline constexpr const char* kVerifyFile = "VERIFY.txt";
inline constexpr const char* kSignerFile = "signer.pub";  ///< not to be trusted; see VERIFY.txt
inline constexpr const char* kEvidenceFolder = "evidence";
inline constexpr const char* kReportFile = "report.html";

/// What to sign, and the signatory.
struct SignRequest {
  std::string run_directory;
  std::string dossier;  ///< the folder to make
  std::string role = "signer";
  std::string name, organisation;
  bool self_signed = false;  ///< the key belongs to the tester; report and statement state it
  std::string issued_at;     ///< UTC
};

/// Builds the dossier beside its final place and renames it there; nothing is overwritten, and nothing is left behind
/// on failure. Refused: what examine() refuses, a run without report.html, a report.html that is not what the run
/// renders to (with the key's fingerprint when self-signed).
std::expected<void, InputError> make_dossier(const SignRequest& request, const PrivateKey& key);

/// Adds the signature of `key` over the same payload, after checking the whole dossier but for its signatures. Refused:
/// a dossier that fails a check, a key that has signed already.
std::expected<void, InputError> add_signature(const std::string& dossier, const PrivateKey& key);

}  // namespace assay::dossier
