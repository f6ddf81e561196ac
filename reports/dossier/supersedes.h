// supersedes: a statement that names an older one, which it replaces or amends.
#pragma once

#include <expected>
#include <optional>
#include <string>

#include "probes/core/error.h"
#include "probes/core/fields.h"

namespace assay::dossier {

/// An older statement, and why there is a newer one, by the word of the newer one's maker.
struct Superseded {
  std::string statement_sha256;  ///< of the payload: the canonical JSON that was signed
  std::string run_id;
  std::string overall;    ///< its verdict
  std::string issued_at;  ///< UTC
  std::string reason;
  friend bool operator==(const Superseded&, const Superseded&) = default;
};

/// The members of `supersedes` in a predicate.
template <class Io, Of<Superseded> S>
void fields(Io& io, S& superseded) {
  io("statementSha256", superseded.statement_sha256), io("run", superseded.run_id), io("overall", superseded.overall);
  io("issuedAt", superseded.issued_at), io("reason", superseded.reason);
}

/// The statement of a dossier that another one may supersede: its bytes, not looked into yet.
struct Older {
  std::string where;
  std::string payload;
};

/// The statement of the dossier in `directory`. Its signatures are not checked: that is `verify` of it.
std::expected<Older, InputError> read_older(const std::string& directory);

/// A statement's facts of itself, and the fingerprint of its maker's key.
struct OlderWords {
  Superseded superseded;  ///< with an empty reason
  std::string maker;
};

/// Reads the older statement strictly.
std::expected<OlderWords, InputError> words_of_older(const Older& older);

/// The maker of the older statement, when `claimed`, a verified statement's reference to the older one, is of it. Its
/// bytes are parsed only when they have the claimed digest: they are hostile before.
std::expected<std::string, InputError> check_superseded(const std::optional<Superseded>& claimed, const Older& older);

}  // namespace assay::dossier
