// rma: the folder that a vendor asks for with a part that is sent back, signed by the operator.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orchestrator/drift/report.h"
#include "probes/core/error.h"
#include "reports/dossier/keys.h"
#include "reports/nightly/nights.h"

namespace assay::nightly {

/// A file that the operator adds: "field-diagnostic=fieldiag.log". The kinds are those of rma_checklist().
struct Attachment {
  std::string kind;
  std::string path;
};

/// Content of the folder.
struct RmaInput {
  UnitTrend trend;
  std::vector<Attachment> attachments;
  std::string made;  ///< UTC
};

/// One line of the vendors' list.
struct RmaItem {
  std::string kind, what;
};

/// The vendors' list, in their order: bug report, field diagnostic, kernel log, counters, firmware, the swap test,
/// power, thermal and seating causes excluded.
std::vector<RmaItem> rma_checklist();

/// Writes the new folder `out`: rma.json (assay.rma/1: identity, flags with their numbers, re-tests, nights, events,
/// the list with "absent" where nothing was attached), trend.html, the attachments, MANIFEST.sha256, and with a key
/// rma.dsse.json, an envelope over rma.json, which names the SHA-256 of every file. Refused: a unit without a flag, an
/// attachment of an unknown kind, a simulated report, an existing folder.
std::optional<InputError> write_rma(const RmaInput& input, const drift::DriftReport& report, const dossier::Signer* key,
                                    const std::string& out, std::size_t most_nights);

/// Checks such a folder against a public key: the signature, and the SHA-256 of every file; no other file is allowed.
std::optional<InputError> check_rma(const std::string& folder, const dossier::PublicKey& key);

}  // namespace assay::nightly
