// joint: several dossiers under one signed statement, each of them still a dossier by itself.
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

/// Who joins, and when; does not follow from the parts.
struct JointClaims {
  std::string issued_at;  ///< UTC
  std::string role, name, organisation, key_fingerprint;
};

/// What the parts are together.
struct Joined {
  Kind kind = Kind::merge;
  JointClaims claims;
  std::vector<Part> parts;
  judge::Results fleet;  ///< of an expansion: cells with limits of the fleet, over all nodes
  judge::Overall overall = judge::Overall::incomplete;
  std::string reason;
  dossier::Signatures signatures;  ///< of the joint statement: of who joined, and of who countersigned
};

/// What to join.
struct JoinRequest {
  Kind kind = Kind::merge;
  std::vector<std::string> dossiers;  ///< folders; of an expansion in the order of growth
  std::string out;                    ///< the folder to make
  JointClaims claims;                 ///< without the fingerprint
};

/// Copies the dossiers into a new folder, verifies the copies by `trust`, judges limits of the fleet over all nodes of
/// an expansion, and signs what follows. Nothing is overwritten, and nothing is left behind on failure. Refused: what
/// open_part and check_together refuse.
std::expected<Joined, InputError> make_joint(const JoinRequest& request, const dossier::Signer& key,
                                             const Trust& trust);

/// Verifies the joint dossier in `directory`: who joined the parts has signed it, with a key of `trust` or by its
/// policy, whose role the statement states, and so has each role of trust.expected.require, which the parts do not
/// need; signatures have time stamps where authorities are given; nothing else lies in the folder; every part is
/// verified by itself; and the statement is what the parts give when they are joined again. Refused as well: a key of
/// `trust` that has signed neither the statement nor a part.
std::expected<Joined, InputError> verify_joint(const std::string& directory, const Trust& trust);

/// Adds the signature of `key` to the joint dossier in `directory` after verifying it by `trust`; a policy counts the
/// key, and the roles of trust.expected.require but its own must have signed before. Refused: what verify_joint and
/// before_signing refuse, a key that has signed already.
std::expected<Joined, InputError> countersign(const std::string& directory, const dossier::Signer& key,
                                              const Trust& trust);

/// Whether `directory` is a joint dossier, whole or not.
bool is_joint(const std::string& directory);

}  // namespace assay::joint
