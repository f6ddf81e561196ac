// joint: several dossiers under one signed statement; each remains a complete dossier.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "orchestrator/judge/verdict.h"
#include "reports/dossier/keys.h"
#include "reports/dossier/signatures.h"
#include "reports/joint/part.h"

namespace assay::joint {

/// Names in a joint dossier: the envelope, and the folder of the parts, "01" and so on in their order.
inline constexpr const char* kJointFile = "joint.dsse.json";
inline constexpr const char* kPartsFolder = "parts";

/// Parts of one joint dossier: sites of a fleet, or stages of its growth.
inline constexpr std::size_t kMostParts = 99;

/// Bytes of the largest envelope: 100,000 nodes of 150 B and 200,000 cells of 400 B, in base64.
inline constexpr std::size_t kLargestJoint = 128 << 20;

/// Name of the joiner, and the time; does not follow from the parts.
struct JointClaims {
  std::string issued_at;  ///< UTC
  std::string role, name, organisation, key_fingerprint;
};

/// The parts and their joint outcome.
struct Joined {
  Kind kind = Kind::merge;
  JointClaims claims;
  std::vector<Part> parts;
  judge::Results fleet;  ///< of an expansion: cells with limits of the fleet, over all nodes
  judge::Overall overall = judge::Overall::incomplete;
  std::string reason;
  dossier::Signatures signatures;  ///< of the joint statement: the joiner's, and countersignatures
};

/// The parts to join.
struct JoinRequest {
  Kind kind = Kind::merge;
  std::vector<std::string> dossiers;  ///< folders; of an expansion in the order of growth
  std::string out;                    ///< the folder to make
  JointClaims claims;                 ///< without the fingerprint
};

/// Copies the dossiers into a new folder, verifies the copies by `trust`, judges limits of the fleet over all nodes of
/// an expansion, and signs the outcome. Nothing is overwritten, and nothing is left behind on failure. Refused as by
/// open_part and check_together.
std::expected<Joined, InputError> make_joint(const JoinRequest& request, const dossier::Signer& key,
                                             const Trust& trust);

/// Verifies the joint dossier in `directory`: its author has signed it, with a key of `trust` or by its policy, whose
/// role the statement states, and so has each role of trust.expected.require, which the parts do not need; signatures
/// have time stamps if authorities are given; the folder holds nothing else; every part is verified; and joining the
/// parts again gives the same statement. Refused as well: a key of `trust` that has signed neither the statement nor a
/// part.
std::expected<Joined, InputError> verify_joint(const std::string& directory, const Trust& trust);

/// Adds the signature of `key` to the joint dossier in `directory` after verifying it by `trust`; a policy counts the
/// key, and the roles of trust.expected.require but its own must have signed before. Refused as by verify_joint and
/// before_signing, and a key that has signed already.
std::expected<Joined, InputError> countersign(const std::string& directory, const dossier::Signer& key,
                                              const Trust& trust);

/// Whether `directory` is a joint dossier, whole or not.
bool is_joint(const std::string& directory);

}  // namespace assay::joint
