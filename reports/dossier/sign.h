// sign: from a judged run to a dossier, and further signatures on it.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "reports/dossier/keys.h"
#include "reports/dossier/verify.h"

namespace assay::dossier {

/// Names inside a dossier.
inline constexpr const char* kStatementFile = "statement.dsse.json";
inline constexpr const char* kManifestFile = "MANIFEST.sha256";
inline constexpr const char* kVerifyFile = "VERIFY.txt";
inline constexpr const char* kSignerFile = "signer.pub";  ///< not to be trusted; see VERIFY.txt
inline constexpr const char* kEvidenceFolder = "evidence";
inline constexpr const char* kReportFile = "report.html";

/// The run to sign, and the signatory.
struct SignRequest {
  std::string run_directory;
  std::string dossier;          ///< the folder to make
  std::string role = "signer";  ///< one of kRoles
  std::string name, organisation;
  bool self_signed = false;  ///< the key belongs to the tester; report and statement state it
  std::string issued_at;     ///< UTC
  std::optional<Superseded> supersedes = std::nullopt;
};

/// Builds the dossier next to its final place and renames it there; nothing is overwritten, and nothing is left behind
/// on failure. Returns the files of the run that are left out, because no line of the journal names them: files of a
/// killed attempt are no evidence. Refused: as by examine(), a run without report.html, a report.html that is not the
/// rendered run (with the key's fingerprint when self-signed), a role that is not one of kRoles, a run that ends after
/// it is signed.
std::expected<std::vector<std::string>, InputError> make_dossier(const SignRequest& request, const Signer& key);

/// Expectations of a dossier that `signer` has not signed yet: a policy then demands the other roles that it requires,
/// not the signer's, and has the key of the signer's certificate. Refused: a key that the policy does not have or
/// count.
std::expected<Expectations, InputError> before_signing(Expectations expected, const Signer& signer);

/// Adds the signature of `key` over the same payload, after verifying the whole dossier with the keys of earlier
/// signers (`others`, at least one without a policy) and the expectations; returns the verified dossier. A policy
/// demands the other roles that it requires, not that of `key`, which is still to sign. Refused: what verify_dossier
/// refuses, a key that has signed already, one that the policy does not count.
std::expected<Verified, InputError> add_signature(const std::string& dossier, const Signer& key,
                                                  const std::vector<PublicKey>& others, const Expectations& expected);

}  // namespace assay::dossier
