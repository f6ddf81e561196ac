// signatures: the same checks for every envelope that several people may sign.
#include "reports/dossier/signatures.h"

#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/judge/evidence/evidence.h"
#include "probes/core/utc_time.h"

namespace assay::dossier {
namespace {

/// "; it is signed by the key 5f0c…": a key that was neither demanded nor counted, and has signed. The statement is not
/// asked: before a signature holds no party vouches for a byte of it.
std::string signed_by_another(const Envelope& envelope, const SignatureDemands& demands) {
  for (const auto& [fingerprint, key] : demands.known) {
    if (std::ranges::find(demands.keys, key) == demands.keys.end() && is_signed_by(envelope, key))
      return "; it is signed by the key " + fingerprint;
  }
  return "";
}

}  // namespace

Moment Signatures::made_at(const std::string& signer, Moment now) const {
  const auto stamp = stamps.find(signer);
  return stamp == stamps.end() ? now : stamp->second.at;
}

std::expected<Signatures, InputError> check_signatures(const Envelope& envelope, const std::string& where,
                                                       const SignatureDemands& demands, const Expectations& expected) {
  Signatures found;
  std::map<std::string, Stamp> stamps;
  if (!expected.authorities.empty()) {
    auto checked_stamps = check_stamps(envelope, expected.authorities);
    if (!checked_stamps) return std::unexpected(checked_stamps.error());
    stamps = std::move(*checked_stamps);
  }
  std::vector<PublicKey> checked = demands.keys;
  const std::string message = pre_authentication_encoding(envelope.payload_type, envelope.payload);
  std::map<std::string, const std::string*> made;  // by fingerprint; a payload may be large, and is hashed each time
  for (const auto& key : demands.keys) {
    const std::string* signature = made[key.fingerprint()] = signature_of(envelope, message, key);
    if (signature == nullptr) {
      return std::unexpected(
          InputError{where, fmt::format("has no valid signature of the key {}", key.fingerprint()),
                     "it was signed with another key or changed after signing" + signed_by_another(envelope, demands)});
    }
    found.signers.push_back(key.fingerprint());
  }
  if (expected.trust) {
    auto counted = count_signatures(*expected.trust, envelope, demands.keys, demands.known, demands.require,
                                    *expected.now, stamps);
    if (!counted) return std::unexpected(counted.error());
    found.parties = std::move(*counted);
    found.policy = expected.trust->name;
    for (const auto& one : found.parties) {
      if (std::ranges::find(checked, one.key) != checked.end()) continue;
      found.signers.push_back(one.fingerprint);
      checked.push_back(one.key);
      made[one.fingerprint] = signature_of(envelope, message, one.key);
    }
  }
  found.other_signatures =
      static_cast<std::size_t>(std::ranges::count_if(envelope.signatures, [&](const std::string& signature) {
        return std::ranges::none_of(made, [&](const auto& one) { return one.second == &signature; }) &&
               std::ranges::none_of(checked, [&](const PublicKey& key) { return key.verifies(message, signature); });
      }));
  if (expected.authorities.empty()) return found;
  for (const auto& key : checked) {
    const auto stamp = stamps.find(*made.at(key.fingerprint()));
    if (stamp == stamps.end()) {
      return std::unexpected(InputError{where,
                                        fmt::format("the signature of the key {} has no time stamp", key.fingerprint()),
                                        "`assay-report timestamp` asks an authority for one and adds it"});
    }
    found.stamps.emplace(key.fingerprint(), stamp->second);
  }
  return found;
}

std::optional<InputError> check_stamp_times(const std::map<std::string, Stamp>& stamps,
                                            const std::vector<std::pair<std::string, std::optional<Moment>>>& events,
                                            const std::optional<Moment>& now, const std::string& where) {
  const std::chrono::duration<double> skew(judge::kMostClockDifference_s);
  for (const auto& [signer, stamp] : stamps) {
    for (const auto& [what, time] : events) {
      if (time && *time - stamp.at > skew) {
        return InputError{
            where, fmt::format("a signature was stamped {}, before {} ({})", utc_text(stamp.at), what, utc_text(*time)),
            "one of the clocks is wrong, or the times of the run are made up"};
      }
    }
    if (now && stamp.at - *now > skew) {
      return InputError{
          where, fmt::format("a signature was stamped {}, and it is {} here", utc_text(stamp.at), utc_text(*now)),
          "one of the clocks is wrong"};
    }
  }
  return std::nullopt;
}

std::optional<InputError> append_signature(Envelope& envelope, const Signer& signer, const std::string& path,
                                           std::size_t largest) {
  if (envelope.signatures.size() >= kMostSignatures)
    return InputError{path, "has the maximum number of signatures", ""};
  if (auto problem = sign(envelope, signer)) return problem;
  const auto text = written(envelope, largest);
  return text ? files::replace_file(path, *text) : text.error();
}

}  // namespace assay::dossier
