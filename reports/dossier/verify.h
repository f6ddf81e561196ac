// verify: checks the signatures of a dossier, and that its verdict follows from its evidence.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "orchestrator/judge/verdict.h"
#include "reports/dossier/dsse.h"
#include "reports/dossier/statement.h"

namespace assay::dossier {

/// Expected properties of the dossier, against substitution of another dossier; empty: any.
struct Expectations {
  std::string plan_sha256, site, profile;
  std::string targets_sha256;  ///< of the resolved profile's canonical JSON, as digest_of_targets gives it
};

/// The contents of a dossier, with all checks but those of the signatures.
struct CheckedContents {
  Claims claims;
  judge::Verdict verdict;
  int profile_revision = 0;
  std::size_t requirements = 0;  ///< of the whole profile, planned or not
  std::string targets_sha256;
  std::vector<std::string> notes;  ///< remarks that are no reason to refuse
};

/// A verified dossier.
struct Verified {
  CheckedContents contents;
  std::vector<std::string> signers;  ///< fingerprints of the given keys, each of which has signed
  std::size_t other_signatures = 0;  ///< by keys that were not given; not checked
};

/// Verifies the dossier in `directory`: limits, envelope, a signature of each of `keys` over the pre-authentication
/// encoding, and then check_contents. Refused also: no key, the same key twice.
std::expected<Verified, InputError> verify_dossier(const std::string& directory, const std::vector<PublicKey>& keys,
                                                   const Expectations& expected);

/// Everything after the signatures, in this order: payload type, canonical JSON, statement and predicate type, closed
/// members, expectations, manifest (digest, count, root), the set of files, each file's digest, their sizes together,
/// the verdict judged again, the statement made again, the report's digest and, when this build rendered it, its bytes.
/// Every file is read once.
std::expected<CheckedContents, InputError> check_contents(const std::string& directory, const Envelope& envelope,
                                                          const Expectations& expected);

}  // namespace assay::dossier
