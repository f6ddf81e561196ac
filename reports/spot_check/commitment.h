// commitment: a party states the digest of its seed before it knows the seed of the other.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "reports/dossier/keys.h"
#include "reports/dossier/moment.h"
#include "reports/dossier/opened_run.h"
#include "reports/dossier/trust.h"

namespace assay::spot_check {

/// Bytes of the largest envelope of a commitment; it has about 2 kB, and a chain of certificates.
inline constexpr std::size_t kLargestCommitment = 128 << 10;
/// Cells that one draw may name: more is a whole run again.
inline constexpr std::size_t kMostCells = 100'000;

/// The run whose cells are drawn.
struct DrawnRun {
  std::string run_id, plan_sha256, verdict_sha256;
  std::string ended;  ///< UTC of the journal's last line
};

/// Of an opened dossier.
DrawnRun drawn_run(const dossier::OpenedRun& run);

/// Content of a party's commitment.
struct Commitment {
  DrawnRun run;           ///< without `ended`
  std::size_t cells = 0;  ///< how many are to be drawn
  std::string seed_sha256;
  std::vector<std::string> others;  ///< of a party that gives its seed away: seed_sha256 of all others, as it holds
                                    ///< them, in rising order; empty of a first commitment
  std::string issued_at;            ///< UTC
  std::string role;                 ///< as the policy has it
  std::string key_fingerprint;
};

/// A checked one, and whose it is by the policy.
struct CheckedCommitment {
  Commitment commitment;
  std::string party, signer;
};

/// 64 hexadecimal digits from the kernel's random source. An error when it gives none.
std::expected<std::string, InputError> new_seed();

/// The envelope of `commitment`, signed by `key`, as the text of a file.
std::expected<std::string, InputError> commitment_text(const Commitment& commitment, const dossier::Signer& key);

/// Checks the commitment in `text` against policy and run. Refused, by the name of the rule: as by only_signer;
/// key_valid_at_issue; draw_time, it was issued before the run ended or in the future. Refused also: a document of
/// another form or type, of another run, plan or verdict, other words for key and role than the policy has.
std::expected<CheckedCommitment, InputError> check_commitment(std::string_view text, const std::string& where,
                                                              const dossier::TrustPolicy& policy, const DrawnRun& run,
                                                              dossier::Moment now);

}  // namespace assay::spot_check
