// supersedes: a statement that names an older one, which it replaces or amends.
#pragma once

#include <expected>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "probes/core/error.h"

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

/// The member `supersedes` of a predicate, and back; `document` must fit the schema.
nlohmann::json document_of(const Superseded& superseded);
Superseded superseded_from(const nlohmann::json& document);

/// A dossier that another one may supersede: what the other one must say of it, with an empty reason, and the
/// fingerprint of its maker's key.
struct Older {
  Superseded superseded;
  std::string maker;
};

/// The statement of the dossier in `directory`, read strictly. Its signatures are not checked: that is `verify` of it.
std::expected<Older, InputError> read_older(const std::string& directory);

/// What is wrong with `claimed`, a statement's word of what it supersedes; nothing when that is `older`.
std::optional<InputError> check_superseded(const std::optional<Superseded>& claimed, const Older& older);

}  // namespace assay::dossier
