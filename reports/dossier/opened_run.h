// opened_run: a run, from its folder or its dossier, as values, and its standing.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "probes/core/error.h"
#include "reports/dossier/moment.h"
#include "reports/dossier/trust.h"
#include "reports/page/content.h"

namespace assay::dossier {

/// Allowed signers of a dossier.
struct Signers {
  std::vector<PublicKey> keys;  ///< one of them at least must have signed
  std::optional<TrustPolicy> policy;
  Moment now;  ///< for the policy
};

/// A run whose evidence was judged again.
struct OpenedRun {
  std::string path;
  std::string standing;              ///< verified, unsigned, signature_not_checked or simulated
  std::vector<std::string> signers;  ///< of a verified dossier: fingerprints, or "role: signer of party" by a policy
  page::ReportContent content;
  std::map<std::string, std::set<std::string>> serials = {};  ///< as recorded_serials finds them
};

/// Reads the run or the dossier in `directory` and judges its evidence again. A dossier is checked as `verify` checks
/// it, and refused when neither a key nor the policy of `signers` counts a signature of it; if there is neither, its
/// standing is signature_not_checked. A folder of a run is unsigned, or simulated.
std::expected<OpenedRun, InputError> open_run(const std::string& directory, const Signers& signers);

}  // namespace assay::dossier
