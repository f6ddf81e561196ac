// signatures: signers of an envelope, as far as its receiver counts them, with their time stamps.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/dossier/dsse.h"
#include "reports/dossier/expectations.h"
#include "reports/dossier/timestamp.h"
#include "reports/dossier/trust_rules.h"

namespace assay::dossier {

/// Signatures that were checked.
struct Signatures {
  std::vector<std::string> signers;  ///< fingerprints of the given keys and of those that a policy counts: all signed
  std::vector<CountedSignature> parties;  ///< their parties by the policy; empty without one
  std::string policy;                     ///< its name
  std::map<std::string, Stamp> stamps;    ///< by the fingerprint of the signer; empty without authorities
  std::size_t other_signatures = 0;       ///< by keys that were not given; not checked

  /// When `signer` signed: by its time stamp; without one `now`.
  [[nodiscard]] Moment made_at(const std::string& signer, Moment now) const;
};

/// Whose signatures are looked for.
struct SignatureDemands {
  std::vector<PublicKey> keys;             ///< each must have signed
  std::map<std::string, PublicKey> known;  ///< keys by fingerprint that a policy may name without their bytes
  std::vector<std::string> require;        ///< roles, besides those of the policy
};

/// Checks the signatures of `envelope` (in the file `where`) against `demands`, the policy, the authorities and the
/// clock of `expected`. Where authorities are given, each signature that counts has a time stamp that holds, and a
/// policy judges its key at that time. Refused: a key of `demands` that has not signed, as by count_signatures and
/// check_stamps, a signature that counts without a stamp.
std::expected<Signatures, InputError> check_signatures(const Envelope& envelope, const std::string& where,
                                                       const SignatureDemands& demands, const Expectations& expected);

/// The error of the times of `stamps`; nothing if none is before one of the `events` ("the run ended", its time) or
/// after `now`, each within judge::kMostClockDifference_s.
std::optional<InputError> check_stamp_times(const std::map<std::string, Stamp>& stamps,
                                            const std::vector<std::pair<std::string, std::optional<Moment>>>& events,
                                            const std::optional<Moment>& now, const std::string& where);

/// Adds the signature of `signer` to the envelope in the file at `path`, as by written(). Refused as well: it has the
/// most signatures already.
std::optional<InputError> append_signature(Envelope& envelope, const Signer& signer, const std::string& path,
                                           std::size_t largest);

}  // namespace assay::dossier
