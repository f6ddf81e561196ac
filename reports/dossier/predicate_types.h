// predicate_types: the types of signed documents, as in-toto names them.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace assay::dossier {

/// Type of every statement (in-toto Statement v1).
inline constexpr std::string_view kStatementType = "https://in-toto.io/Statement/v1";

// The UUID (RFC 9562) is of this project, so that the types need no domain, which can change hands.

/// An acceptance test.
inline constexpr std::string_view kPredicateType =
    "urn:uuid:112ea9c6-4ef6-4368-bc2d-5a6dd78d850e#attestation/acceptance/v1";
/// A simulated run, in which nothing was measured; verification refuses it.
inline constexpr std::string_view kSimulationType =
    "urn:uuid:112ea9c6-4ef6-4368-bc2d-5a6dd78d850e#attestation/simulation/v1";
/// A waiver.
inline constexpr std::string_view kWaiverType = "urn:uuid:112ea9c6-4ef6-4368-bc2d-5a6dd78d850e#attestation/waiver/v1";
/// The head of a journal.
inline constexpr std::string_view kHeadType =
    "urn:uuid:112ea9c6-4ef6-4368-bc2d-5a6dd78d850e#attestation/journal-head/v1";
/// A joint statement.
inline constexpr std::string_view kJointType = "urn:uuid:112ea9c6-4ef6-4368-bc2d-5a6dd78d850e#attestation/joint/v1";
/// A commitment to a seed, before cells are drawn.
inline constexpr std::string_view kCommitmentType =
    "urn:uuid:112ea9c6-4ef6-4368-bc2d-5a6dd78d850e#attestation/draw-commitment/v2";
/// Figures of accepted runs of one site, and those of several added up.
inline constexpr std::string_view kContributionType =
    "urn:uuid:112ea9c6-4ef6-4368-bc2d-5a6dd78d850e#attestation/figure-contribution/v1";
inline constexpr std::string_view kCommonsType =
    "urn:uuid:112ea9c6-4ef6-4368-bc2d-5a6dd78d850e#attestation/figure-commons/v1";

/// Replaces the predicate type of `document` by the present one if it is the same type under its former name,
/// https://assay-suite.example/attestation/…: documents signed with it still verify.
inline void rename_former_type(nlohmann::json& document) {
  constexpr std::string_view kFormer = "https://assay-suite.example/";
  if (!document.is_object()) return;
  const auto member = document.find("predicateType");
  if (member == document.end() || !member->is_string()) return;
  const auto found = member->get<std::string>();
  if (!found.starts_with(kFormer)) return;
  for (const auto type : {kPredicateType, kSimulationType, kWaiverType, kHeadType, kJointType}) {
    if (found.substr(kFormer.size()) == type.substr(type.find('#') + 1)) *member = type;
  }
}

}  // namespace assay::dossier
