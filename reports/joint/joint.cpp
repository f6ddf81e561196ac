// joint: dossiers are copied as they are, and one statement names the statements that they hold.
#include "reports/joint/joint.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include <fmt/format.h>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/difference.h"
#include "probes/core/how_many.h"
#include "probes/core/utc_time.h"
#include "reports/dossier/certificate.h"
#include "reports/dossier/sign.h"
#include "reports/dossier/verify.h"
#include "reports/evidence/tree.h"
#include "reports/joint/statement.h"

namespace assay::joint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "joint";  // in the staging folder

std::string name_of(std::size_t place) { return fmt::format("{:02}", place + 1); }

/// The rule of the whole: accepted when every part is, its cells with limits of the fleet replaced by those over all.
void conclude(Joined& joined) {
  std::size_t nodes = 0;
  for (const auto& part : joined.parts) nodes += part.verified.contents.nodes.size();
  const std::string all = fmt::format("{} with {}", how_many(joined.parts.size(), "part"), how_many(nodes, "node"));
  std::size_t required = 0;
  const judge::Result* open = nullptr;
  std::size_t failed = 0;
  for (const auto& result : joined.fleet) {
    if (!result.required) continue;
    ++required;
    if (result.outcome == judge::Outcome::fail) ++failed;
    if (result.outcome == judge::Outcome::pass) continue;
    const bool first_fail = result.outcome == judge::Outcome::fail && failed == 1;
    if (open == nullptr || first_fail) open = &result;
  }
  if (open != nullptr) {
    joined.overall = failed > 0 ? judge::Overall::rejected : judge::Overall::incomplete;
    joined.reason = fmt::format("{}; over all nodes {} on {} is {}: {}", all, open->requirement, open->node,
                                to_string(open->outcome), open->reason);
    return;
  }
  joined.overall = judge::Overall::accepted;
  joined.reason = required == 0 ? fmt::format("{}, each accepted by itself.", all)
                                : fmt::format(
                                      "{}; {} cells with a limit of the fleet pass over all nodes, all others in their "
                                      "parts.",
                                      all, required);
}

/// Opens the parts under `directory` and judges them together.
std::expected<Joined, InputError> join(const std::string& directory, std::size_t parts, Kind kind, JointClaims claims,
                                       const Trust& trust) {
  Joined joined{.kind = kind, .claims = std::move(claims)};
  for (std::size_t i = 0; i < parts; ++i) {
    auto part = open_part(fmt::format("{}/{}/{}", directory, kPartsFolder, name_of(i)), name_of(i), trust);
    if (!part) return std::unexpected(part.error());
    joined.parts.push_back(std::move(*part));
  }
  if (auto problem = check_together(joined.parts, kind)) return std::unexpected(*problem);
  if (kind == Kind::expand) {
    auto fleet = judge_fleet(joined.parts);
    if (!fleet) return std::unexpected(fleet.error());
    joined.fleet = std::move(*fleet);
  }
  conclude(joined);
  return joined;
}

std::optional<InputError> copy_dossier(const std::string& from, const std::string& to,
                                       const files::StagingDirectory& staging) {
  auto problem = evidence::walk_tree(
      from, {},
      [&](const std::string& path, const std::string& bytes) { return staging.write(to + "/" + path, bytes); },
      {.empty_folders = false, .executables = false});
  if (problem) problem->where = from + "/" + problem->where;
  return problem;
}

/// What is wrong with the parts in `directory`; nothing if they are 01 to `parts` and nothing else.
std::optional<InputError> check_folder(const std::string& directory, std::size_t parts) {
  const auto stranger = [](const fs::path& path) {
    return InputError{path.string(), "is no part of a joint dossier", "its folder may hold nothing else"};
  };
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(directory, unreadable)) {
    const auto name = entry.path().filename();
    const bool folder = fs::is_directory(entry.symlink_status());
    if (name != kJointFile && !(name == kPartsFolder && folder)) return stranger(entry.path());
  }
  std::size_t seen = 0;
  const std::string folder = fmt::format("{}/{}", directory, kPartsFolder);
  for (const auto& entry : fs::directory_iterator(folder, unreadable)) {
    bool known = false;
    for (std::size_t i = 0; i < parts; ++i) known = known || entry.path().filename() == name_of(i);
    if (!known || !fs::is_directory(entry.symlink_status())) return stranger(entry.path());
    ++seen;
  }
  if (unreadable)
    return InputError{folder, fmt::format("cannot be read: {}", unreadable.message()), "check its permissions"};
  if (seen == parts) return std::nullopt;
  return InputError{folder, fmt::format("has {} parts, the statement {}", seen, parts), "a part was taken out"};
}

/// The policy of `trust` for the joint statement of `envelope`: the roles that it requires sign the parts.
dossier::Expectations expected_of_joint(const dossier::Envelope& envelope, const Trust& trust) {
  dossier::Expectations expected = trust.expected;
  if (!expected.trust) return expected;
  expected.trust = dossier::with_certificates(std::move(*expected.trust), certificates_of(envelope));
  expected.trust->require.clear();
  return expected;
}

/// The signatures of `envelope` that count; one at least.
std::expected<dossier::Signatures, InputError> signatures_of(const dossier::Envelope& envelope, const Trust& trust) {
  const dossier::Expectations expected = expected_of_joint(envelope, trust);
  dossier::SignatureDemands demands{.require = expected.require};
  for (const auto& key : trust.keys) {
    demands.known.emplace(key.fingerprint(), key);
    if (is_signed_by(envelope, key)) demands.keys.push_back(key);
  }
  auto signatures = check_signatures(envelope, kJointFile, demands, expected);
  if (!signatures || !signatures->signers.empty()) return signatures;
  return std::unexpected(InputError{kJointFile, "has no valid signature of any key that was given",
                                    "give the public key of the signer of the joint statement, too"});
}

/// The error of the joining party: its signature is among those that count, and the stated role agrees with the
/// policy.
std::optional<InputError> check_joiner(const dossier::Signatures& signatures, const JointClaims& claims,
                                       const dossier::Expectations& expected) {
  if (expected.trust) {
    const dossier::Claims words{.issued_at = claims.issued_at,
                                .signatories = {{.role = claims.role,
                                                 .name = claims.name,
                                                 .organisation = claims.organisation,
                                                 .key_fingerprint = claims.key_fingerprint,
                                                 .meaning = std::string(dossier::kResponsible)}}};
    const dossier::Moment made = signatures.made_at(claims.key_fingerprint, *expected.now);
    return check_maker(*expected.trust, signatures.parties, words, made);
  }
  if (std::ranges::find(signatures.signers, claims.key_fingerprint) != signatures.signers.end()) return std::nullopt;
  return InputError{kJointFile,
                    fmt::format("was made with the key {}, of which no signature was checked", claims.key_fingerprint),
                    "give the public key of the signer of the joint statement, too"};
}

/// That every key of `trust` has signed something: a given key is a demand.
std::optional<InputError> check_all_signed(const Joined& joined, const Trust& trust) {
  for (const auto& key : trust.keys) {
    const auto signed_by = [&](const dossier::Signatures& of) {
      return std::ranges::find(of.signers, key.fingerprint()) != of.signers.end();
    };
    if (signed_by(joined.signatures) ||
        std::ranges::any_of(joined.parts, [&](const Part& part) { return signed_by(part.verified); }))
      continue;
    return InputError{kJointFile,
                      fmt::format("neither it nor a part has a valid signature of the key {}", key.fingerprint()),
                      "each key that is given must have signed one of them"};
  }
  return std::nullopt;
}

/// That it was issued after the runs and not in the future.
std::optional<InputError> check_times(const Joined& joined, const Trust& trust) {
  const std::chrono::duration<double> skew(judge::kMostClockDifference_s);
  const auto issued = utc_time(joined.claims.issued_at);
  if (!issued) return InputError{kJointFile, fmt::format("'{}' is not a time", joined.claims.issued_at), ""};
  for (const auto& part : joined.parts) {
    const auto ended = utc_time(part.verified.contents.ended);
    if (ended && *ended - *issued > skew)
      return InputError{kJointFile,
                        fmt::format("was issued {}, before part {} ended ({})", joined.claims.issued_at, part.name,
                                    part.verified.contents.ended),
                        "one of the clocks is wrong"};
  }
  if (auto problem = check_stamp_times(joined.signatures.stamps, {{"the joint statement was issued", issued}},
                                       trust.expected.now, kJointFile))
    return problem;
  if (trust.expected.now && *issued - *trust.expected.now > skew)
    return InputError{
        kJointFile,
        fmt::format("was issued {}, and it is {} here", joined.claims.issued_at, utc_text(*trust.expected.now)),
        "one of the clocks is wrong"};
  return std::nullopt;
}

/// verify_joint of an envelope that was read already.
std::expected<Joined, InputError> verify_envelope(const std::string& directory, const dossier::Envelope& envelope,
                                                  const Trust& trust) {
  const std::string payload = fmt::format("{}: payload", kJointFile);
  if (envelope.payload_type != dossier::kPayloadType)
    return std::unexpected(
        InputError{fmt::format("{}Type", payload), fmt::format("is not '{}'", dossier::kPayloadType), ""});
  // The payload is read once a signature over it counts.
  auto signatures = signatures_of(envelope, trust);
  if (!signatures) return std::unexpected(signatures.error());
  const auto read = read_joint_statement(envelope.payload, payload);
  if (!read) return std::unexpected(read.error());
  if (auto problem = check_joiner(*signatures, read->claims, expected_of_joint(envelope, trust)))
    return std::unexpected(*problem);
  const std::size_t parts = read->document.at("predicate").at("parts").size();
  if (auto problem = check_folder(directory, parts)) return std::unexpected(*problem);
  Trust of_parts = trust;
  of_parts.expected.require.clear();  // they are of the joint statement
  auto joined = join(directory, parts, read->kind, read->claims, of_parts);
  if (!joined) return joined;
  joined->signatures = std::move(*signatures);
  const auto again = statement_of(*joined);
  if (again != read->document) {
    return std::unexpected(
        InputError{payload, "does not follow from the parts: " + files::first_difference(read->document, again),
                   "the signed statement contradicts them"});
  }
  if (auto problem = check_times(*joined, trust)) return std::unexpected(*problem);
  return joined;
}

}  // namespace

bool is_joint(const std::string& directory) {
  std::error_code unknown;  // an unreadable file is reported when it is read
  return fs::exists(fs::symlink_status(fmt::format("{}/{}", directory, kJointFile), unknown));
}

std::expected<Joined, InputError> make_joint(const JoinRequest& request, const dossier::Signer& key,
                                             const Trust& trust) {
  if (request.dossiers.size() > kMostParts)
    return std::unexpected(InputError{"parts", fmt::format("are more than {}", kMostParts), ""});
  std::error_code unknown;  // an unreadable path is refused when the folder is published
  if (fs::exists(fs::symlink_status(request.out, unknown)))
    return std::unexpected(InputError{request.out, "exists already", "nothing is overwritten; name another folder"});
  const auto staging = files::StagingDirectory::beside(request.out);
  if (!staging) return std::unexpected(staging.error());
  for (std::size_t i = 0; i < request.dossiers.size(); ++i) {
    const std::string to = fmt::format("{}/{}/{}", kFolder, kPartsFolder, name_of(i));
    if (auto problem = copy_dossier(request.dossiers[i], to, *staging)) return std::unexpected(*problem);
  }
  JointClaims claims = request.claims;
  claims.key_fingerprint = key.public_key().fingerprint();
  const std::string folder = (staging->path() / kFolder).string();
  auto joined = join(folder, request.dossiers.size(), request.kind, std::move(claims), trust);
  if (!joined) return joined;
  if (auto problem = check_times(*joined, trust)) return std::unexpected(*problem);
  const auto text =
      dossier::signed_text(statement_of(*joined), "joint statement", key, kLargestJoint, read_joint_statement);
  if (!text) return std::unexpected(text.error());
  if (auto problem = staging->write(fmt::format("{}/{}", kFolder, kJointFile), *text)) return std::unexpected(*problem);
  // A signer that the policy does not count would only be refused at the receiver.
  Trust own = trust;
  own.keys.push_back(key.public_key());
  const auto envelope = dossier::read_envelope(*text, kJointFile);
  if (!envelope) return std::unexpected(envelope.error());
  auto signatures = signatures_of(*envelope, own);
  if (!signatures) return std::unexpected(signatures.error());
  if (auto problem = check_joiner(*signatures, joined->claims, expected_of_joint(*envelope, own)))
    return std::unexpected(*problem);
  joined->signatures = std::move(*signatures);
  if (auto problem = staging->publish(kFolder)) return std::unexpected(*problem);
  return joined;
}

std::expected<Joined, InputError> verify_joint(const std::string& directory, const Trust& trust) {
  const auto envelope = dossier::envelope_in(directory, kJointFile, kLargestJoint);
  if (!envelope) return std::unexpected(envelope.error());
  auto joined = verify_envelope(directory, *envelope, trust);
  if (!joined) return joined;
  if (auto problem = check_all_signed(*joined, trust)) return std::unexpected(*problem);
  return joined;
}

std::expected<Joined, InputError> countersign(const std::string& directory, const dossier::Signer& key,
                                              const Trust& trust) {
  auto envelope = dossier::envelope_in(directory, kJointFile, kLargestJoint);
  if (!envelope) return std::unexpected(envelope.error());
  if (is_signed_by(*envelope, key.public_key())) {
    return std::unexpected(
        InputError{kJointFile, "is signed by this key already", "a second signature must be by another key"});
  }
  auto before = dossier::before_signing(trust.expected, key);
  if (!before) return std::unexpected(before.error());
  if (before->trust)
    before->trust->require = trust.expected.trust->require;  // of the parts, which the joiner need not sign
  auto joined = verify_envelope(directory, *envelope, {.keys = trust.keys, .expected = std::move(*before)});
  if (!joined) return joined;
  if (auto problem = append_signature(*envelope, key, fmt::format("{}/{}", directory, kJointFile), kLargestJoint))
    return std::unexpected(*problem);
  return joined;
}

}  // namespace assay::joint
