// statement: the document of a joint dossier, written from its parts and read strictly.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "reports/joint/joint.h"

namespace assay::joint {

/// The whole statement: an in-toto Statement v1 whose subjects are the statements of the parts. Everything but the
/// claims follows from the parts.
nlohmann::json statement_of(const Joined& joined);

/// Kind and claims of a statement, the rest of which is compared.
struct ReadJoint {
  nlohmann::json document;
  Kind kind = Kind::merge;
  JointClaims claims;
};

/// Reads the payload of an envelope. Refused: JSON that is not canonical, another predicate type, a document that
/// profiles/schemas/joint.schema.json does not allow.
std::expected<ReadJoint, InputError> read_joint_statement(std::string_view payload, const std::string& where);

}  // namespace assay::joint
