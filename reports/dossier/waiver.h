// waiver: cells that do not pass and that a buyer lives with for a time. It changes no verdict.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/judge/verdict.h"
#include "reports/dossier/keys.h"
#include "reports/dossier/trust.h"
#include "reports/dossier/trust_rules.h"
#include "reports/page/content.h"

namespace assay::dossier {

/// Bytes of the largest envelope of a waiver: 10,000 cells of 300 B, in base64.
inline constexpr std::size_t kLargestWaiver = 8 << 20;

/// A cell of a verdict that does not pass.
struct WaivedCell {
  std::string requirement;
  Subject subject;
  std::string node;
  judge::Outcome outcome = judge::Outcome::fail;
  friend bool operator==(const WaivedCell&, const WaivedCell&) = default;
};

/// Waived cells of one run, with reason, end and signer.
struct Waiver {
  std::string run_id, plan_sha256, verdict_sha256;
  std::vector<WaivedCell> cells;
  std::string reason;
  std::string until;      ///< UTC; the waiver holds before it
  std::string issued_at;  ///< UTC
  std::string role;       ///< buyer or commissioner, as the policy has it
  std::string name, organisation;
  std::string key_fingerprint;
};

/// The run that a waiver must be of.
struct WaivedRun {
  const judge::Verdict& verdict;
  std::string verdict_sha256;
  std::string last;  ///< UTC of the journal's last line
};

/// Cells to be waived; empty fields match anything.
struct CellChoice {
  std::string requirement, node, subject;
};

/// The chosen cells of `verdict` that do not pass; an error when there is none.
std::expected<std::vector<WaivedCell>, InputError> cells_to_waive(const judge::Verdict& verdict,
                                                                  const CellChoice& choice);

/// The error of a waiver by this key of `policy`: rule waiver_role, it is not of a buyer or commissioner.
std::optional<InputError> check_may_waive(const TrustPolicy& policy, const ListedKey& by);

/// The envelope of `waiver`, signed by `key`, as the text of a file.
std::expected<std::string, InputError> waiver_text(const Waiver& waiver, const Signer& key);

/// Checks the waiver in `text` against `policy` and the run. Refused, by the name of the rule: waiver_signed, its one
/// signature is of no key that the policy has; key_revoked, key_valid_from, key_valid_until, key_valid_at_issue;
/// waiver_role, the key is not of a buyer or commissioner; waiver_until, it has run out; waiver_time, it was issued
/// before the run ended or in the future. Refused also: a document of another form or type, of another run, plan or
/// verdict, a cell that the verdict does not have so, other names for key and role than the policy has.
std::expected<Waiver, InputError> check_waiver(std::string_view text, const std::string& where,
                                               const TrustPolicy& policy, const std::map<std::string, PublicKey>& known,
                                               const WaivedRun& run, Moment now);

/// A checked waiver for people.
page::ShownWaiver shown(const Waiver& waiver);

}  // namespace assay::dossier
