// verify: checks the signatures of a dossier, and that its verdict follows from its evidence.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "orchestrator/judge/verdict.h"
#include "reports/dossier/dsse.h"
#include "reports/dossier/expectations.h"
#include "reports/dossier/signatures.h"
#include "reports/dossier/statement.h"

namespace assay::dossier {

/// A probe that measured, as the plan has it.
struct UsedProbe {
  std::string name;
  int revision = 0;
  std::string sha256;
  std::map<std::string, std::string> builds = {};  ///< by machine, as the plan has them
  bool known = false;                              ///< this version knows its description, and the plan's is the same
};

/// The contents of a dossier, with all checks but those of the signatures.
struct CheckedContents {
  Claims claims;
  judge::Verdict verdict;
  int profile_revision = 0;
  std::size_t requirements = 0;  ///< of the whole profile, planned or not
  std::string targets_sha256;
  std::string verdict_sha256, journal_sha256;
  std::string challenge;                           ///< that the plan answers; empty: none
  bool agreed = false;                             ///< the plan keeps risks or a soak's hours that were agreed on
  std::string site_sha256;                         ///< digest_of_site
  bool targets_built_in = false;                   ///< they are those of the built-in profile of that name
  bool report_checked = false;                     ///< report.html is the rendered evidence
  std::string began, ended;                        ///< UTC of the journal's first and last line
  bool finished = false;                           ///< the run ended
  std::vector<std::string> nodes;                  ///< of the site, in its order
  std::map<std::string, nlohmann::json> machines;  ///< facts of each node by its agent, by node
  std::map<std::string, judge::TpmAnswer> tpms;    ///< by node, as the expectations let it count
  std::map<std::string, judge::GpuAnswers> gpus;   ///< likewise
  std::vector<UsedProbe> probes;
  std::vector<std::string> notes;  ///< remarks that are no reason to refuse
};

/// A verified dossier.
struct Verified : Signatures {
  CheckedContents contents;
};

/// Verifies the dossier in `directory`: limits, the time stamps where expected.authorities are given (each demanded
/// signature has one that holds, not before the run's end, not before the statement says it was issued, not in the
/// future; the keys of a policy are then judged at that time), envelope, a signature of each of `keys` over the
/// pre-authentication encoding, the rules of expected.trust, check_contents, and the rules of expected.trust on who
/// made the statement. Refused also: neither key nor policy, the same key twice, roles or a policy that cannot be
/// checked for want of a policy or a clock.
std::expected<Verified, InputError> verify_dossier(const std::string& directory, const std::vector<PublicKey>& keys,
                                                   const Expectations& expected);

/// The same for an envelope that was read already.
std::expected<Verified, InputError> verify_envelope(const std::string& directory, const Envelope& envelope,
                                                    const std::vector<PublicKey>& keys, const Expectations& expected);

/// Everything after the signatures, in this order: payload type, statement and predicate type, closed members and
/// claims (read_claims), unexpected facts of the statement, manifest (digest, count, root), the set of files and their
/// modes, each file's digest, their sizes together, the verdict judged again, the statement made again (check_follows,
/// which shows that it is canonical, its results included), the signatory, that every file is one of a dossier,
/// unexpected facts of the evidence (times too), the report's digest and its bytes. Every file is read once. `signers`:
/// fingerprints of keys that were seen to have signed, which are not asked again.
std::expected<CheckedContents, InputError> check_contents(const std::string& directory, const Envelope& envelope,
                                                          const Expectations& expected,
                                                          const std::vector<std::string>& signers = {});

}  // namespace assay::dossier
