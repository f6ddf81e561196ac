// tpm_trust: whose TPMs have answered: keys by a list of the receiver's, endorsement keys by certificates of makers.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "orchestrator/judge/evidence/tpm_answer.h"
#include "probes/core/error.h"
#include "reports/dossier/moment.h"
#include "reports/dossier/serials.h"

namespace assay::dossier {

/// Which TPMs a receiver expects; both empty: any, or none.
struct TpmTrust {
  std::string roots;  ///< PEM: issuers of the certificates of endorsement keys
  Serials keys;       ///< by node: SHA-256 of the public area of its key for signing
  [[nodiscard]] bool demands() const { return !roots.empty() || !keys.empty(); }
};

/// `answer` of `node` as `trust` lets it count: one that answered with another key than the node's in the list is
/// unknown_key; with roots also one that is not bound to an endorsement key, and other_root where the certificate of
/// that key, as one for such keys, has no chain to the roots that holds at `at`.
judge::TpmAnswer held_against(const TpmTrust& trust, const std::string& node, judge::TpmAnswer answer, Moment at);

/// Applies held_against to all `answers`. If `trust` demands anything, a node that did not answer so is an error, and a
/// node of the list that the site does not have.
std::optional<InputError> check_tpms(const TpmTrust& trust, Moment at,
                                     std::map<std::string, judge::TpmAnswer>& answers);

}  // namespace assay::dossier
