// trust_rules: the rules of a trust policy, each broken one named (docs/FORMATS.md has the table). Nothing passes
// because it is absent. The first rule that is broken is reported, in this order:
//   count_signatures()  policy_valid; for each demanded key key_listed, or key_revoked, key_valid_from,
//                       key_valid_until; for each role, first of the policy and then of the command: enough signers of
//                       one party count, or the reason why a signature of the role does not count, or threshold where
//                       some have signed, or required_role
//   only_signer()       policy_valid, one_signature, signer_listed, then the three rules of a key
//   check_maker()       maker_listed, the three rules of a key at `now`, maker_listed where its signature does not
//                       count, maker_not_self_signed, maker_role, key_valid_at_issue
//   check_same_party()  supersedes_party
// A revoked key counts for no time. A signature with a time stamp is judged at the time of its stamp, others at `now`.
#include "reports/dossier/trust_rules.h"

#include <algorithm>
#include <set>

#include <fmt/ranges.h>

#include "probes/core/utc_time.h"

namespace assay::dossier {
namespace {

InputError broken(const TrustPolicy& policy, const char* rule, std::string what, std::string hint) {
  return {fmt::format("{}: rule {}", policy.path, rule), std::move(what), std::move(hint)};
}

std::string owner(const ListedKey& one) {
  return fmt::format("{} of {} ({})", one.signer->name, one.party->name, one.party->role);
}

template <class Visit>
void for_each_key(const TrustPolicy& policy, Visit visit) {
  for (const auto& party : policy.parties) {
    for (const auto& signer : party.signers) {
      for (const auto& key : signer.keys) visit(ListedKey{.party = &party, .signer = &signer, .key = &key});
    }
  }
}

/// The bytes of a key: the policy's, or those that are known otherwise; nullptr when neither has them.
const PublicKey* key_bytes(const TrustedKey& key, const std::map<std::string, PublicKey>& known) {
  if (key.key) return &*key.key;
  const auto given = known.find(key.fingerprint);
  return given == known.end() ? nullptr : &given->second;
}

/// When a signature was made, as far as that is proven; else `now`.
Moment time_of(const std::string* signature, const std::map<std::string, Stamp>& stamps, Moment now) {
  const auto stamp = signature == nullptr ? stamps.end() : stamps.find(*signature);
  return stamp == stamps.end() ? now : stamp->second.at;
}

/// Findings on the signatures before the check of roles.
struct Found {
  std::vector<CountedSignature> counted;
  std::vector<std::pair<std::string, InputError>> refused;  ///< role, and why a signature of it does not count
  std::set<std::string> without_bytes;                      ///< roles with a key that nothing could be checked with
  std::vector<std::string> strangers;                       ///< keys that have signed and that the policy does not have
  bool unknown = false;                                     ///< a signature is of none of the keys that are at hand
};

Found look(const TrustPolicy& policy, const Envelope& envelope, const std::map<std::string, PublicKey>& known,
           Moment now, const std::map<std::string, Stamp>& stamps) {
  Found found;
  std::set<std::string> listed_signers;
  const std::string message = pre_authentication_encoding(envelope.payload_type, envelope.payload);
  for_each_key(policy, [&](const ListedKey& one) {
    const PublicKey* const bytes = key_bytes(*one.key, known);
    if (bytes == nullptr) {
      found.without_bytes.insert(one.party->role);
      return;
    }
    const PublicKey& key = *bytes;
    const auto* signature = signature_of(envelope, message, key);
    if (signature == nullptr) return;
    listed_signers.insert(one.key->fingerprint);
    if (auto problem = check_key(policy, one, time_of(signature, stamps, now))) {
      found.refused.emplace_back(one.party->role, std::move(*problem));
      return;
    }
    found.counted.push_back({.party = one.party->name,
                             .role = one.party->role,
                             .signer = one.signer->name,
                             .fingerprint = one.key->fingerprint,
                             .key = key});
  });
  for (const auto& [fingerprint, key] : known) {
    if (listed(policy, fingerprint).key == nullptr && signature_of(envelope, message, key) != nullptr)
      found.strangers.push_back(fingerprint);
  }
  found.unknown = listed_signers.size() + found.strangers.size() < envelope.signatures.size();
  return found;
}

/// How many signers of `party` have a signature that counts.
std::size_t signers_of(const Party& party, const Found& found) {
  std::set<std::string> signers;
  for (const auto& one : found.counted) {
    if (one.party == party.name) signers.insert(one.signer);
  }
  return signers.size();
}

std::optional<InputError> check_role(const TrustPolicy& policy, const std::string& role, const Found& found) {
  std::vector<std::string> standing;
  bool some = false;
  for (const auto& party : policy.parties) {
    if (party.role != role) continue;
    const std::size_t count = signers_of(party, found);
    if (count >= party.threshold) return std::nullopt;
    some = some || count > 0;
    standing.push_back(fmt::format("{}: {} of {}", party.name, count, party.threshold));
  }
  for (const auto& [of, problem] : found.refused) {
    if (of == role) return problem;
  }
  std::string hint = "ask the party to sign: `assay-report sign --add`";
  if (found.unknown && found.without_bytes.contains(role)) {
    hint = "the policy has a key of this role by its fingerprint alone: name its file there, or give it with --key";
  } else if (!found.strangers.empty()) {
    hint = fmt::format("it is signed by the key {}, which is not in the policy; ", fmt::join(found.strangers, ", ")) +
           hint;
  }
  for (const auto& certificate : policy.not_counted) hint += "; " + certificate;
  const std::string counts = standing.empty() ? "no party has this role" : fmt::format("{}", fmt::join(standing, "; "));
  if (some)
    return broken(policy, "threshold", fmt::format("too few signers of the {} have signed: {}", role, counts), hint);
  return broken(policy, "required_role", fmt::format("no signature of a {} counts: {}", role, counts), hint);
}

std::optional<InputError> check_in_force(const TrustPolicy& policy, Moment now) {
  if (now >= policy.from && now < policy.until) return std::nullopt;
  return broken(policy, "policy_valid",
                fmt::format("the policy '{}' is valid from {} until {}, and it is {} here", policy.name,
                            utc_text(policy.from), utc_text(policy.until), utc_text(now)),
                "use the policy that is in force");
}

}  // namespace

ListedKey listed(const TrustPolicy& policy, const std::string& fingerprint) {
  ListedKey found;
  for_each_key(policy, [&](const ListedKey& one) {
    if (one.key->fingerprint == fingerprint) found = one;
  });
  return found;
}

std::optional<InputError> check_key(const TrustPolicy& policy, const ListedKey& one, Moment now) {
  const TrustedKey& key = *one.key;
  if (key.revoked) {
    return broken(policy, "key_revoked",
                  fmt::format("the key {} of {} was revoked {}: {}", key.fingerprint, owner(one),
                              utc_text(key.revoked->at), key.revoked->reason),
                  "its signatures count no more, whatever date they bear: ask for one by another key");
  }
  if (now < key.from) {
    return broken(
        policy, "key_valid_from",
        fmt::format("the key {} of {} is not valid before {}", key.fingerprint, owner(one), utc_text(key.from)), "");
  }
  if (now >= key.until) {
    return broken(policy, "key_valid_until",
                  fmt::format("the key {} of {} was valid until {}", key.fingerprint, owner(one), utc_text(key.until)),
                  "ask for a signature by the key that followed it");
  }
  return std::nullopt;
}

std::expected<std::vector<CountedSignature>, InputError> count_signatures(
    const TrustPolicy& policy, const Envelope& envelope, const std::vector<PublicKey>& demanded,
    const std::map<std::string, PublicKey>& known, const std::vector<std::string>& require, Moment now,
    const std::map<std::string, Stamp>& stamps) {
  if (auto problem = check_in_force(policy, now)) return std::unexpected(*problem);
  const std::string message = pre_authentication_encoding(envelope.payload_type, envelope.payload);
  for (const auto& key : demanded) {
    if (const ListedKey one = listed(policy, key.fingerprint()); one.key != nullptr) {
      const auto* signature = signature_of(envelope, message, key);
      if (auto problem = check_key(policy, one, time_of(signature, stamps, now))) return std::unexpected(*problem);
      continue;
    }
    return std::unexpected(broken(policy, "key_listed",
                                  fmt::format("the policy does not have the key {}", key.fingerprint()),
                                  "with --policy, --key names one of its keys that must have signed"));
  }
  Found found = look(policy, envelope, known, now, stamps);
  for (const auto* roles : {&policy.require, &require}) {
    for (const auto& role : *roles) {
      if (auto problem = check_role(policy, role, found)) return std::unexpected(*problem);
    }
  }
  return std::move(found.counted);
}

std::expected<ListedKey, InputError> only_signer(const TrustPolicy& policy, const Envelope& envelope,
                                                 const std::map<std::string, PublicKey>& known, Moment now) {
  if (auto problem = check_in_force(policy, now)) return std::unexpected(*problem);
  if (envelope.signatures.size() != 1)
    return std::unexpected(
        broken(policy, "one_signature", fmt::format("has {} signatures", envelope.signatures.size()), ""));
  const std::string message = pre_authentication_encoding(envelope.payload_type, envelope.payload);
  ListedKey signer;
  for_each_key(policy, [&](const ListedKey& one) {
    const PublicKey* const key = key_bytes(*one.key, known);
    if (key != nullptr && key->verifies(message, envelope.signatures.front())) signer = one;
  });
  if (signer.key == nullptr) {
    return std::unexpected(
        broken(policy, "signer_listed", "no key of the policy has signed it",
               "it was changed, or signed by a stranger, or its key is known by its fingerprint alone"));
  }
  if (auto problem = check_key(policy, signer, now)) return std::unexpected(*problem);
  return signer;
}

std::optional<InputError> check_maker(const TrustPolicy& policy, const std::vector<CountedSignature>& counted,
                                      const Claims& claims, Moment now) {
  const Signatory& maker = claims.signatories.front();
  const ListedKey one = listed(policy, maker.key_fingerprint);
  if (one.key == nullptr) {
    return broken(
        policy, "maker_listed",
        fmt::format("the statement was made with the key {}, which the policy does not have", maker.key_fingerprint),
        "signatures of others do not replace the one of who answers for the test");
  }
  if (auto problem = check_key(policy, one, now)) return problem;
  if (std::ranges::find(counted, maker.key_fingerprint, &CountedSignature::fingerprint) == counted.end())
    return broken(policy, "maker_listed", fmt::format("no signature of {} counts", owner(one)), "");
  if (maker.is_self_signed()) {
    return broken(policy, "maker_not_self_signed",
                  fmt::format("the statement says that the key {} is the tester's own", maker.key_fingerprint),
                  "a self-signed statement shows integrity, and no party answers for it");
  }
  if (std::ranges::find(kPartyRoles, maker.role) != kPartyRoles.end() && maker.role != one.party->role) {
    return broken(policy, "maker_role",
                  fmt::format("{} signed as '{}', and is the {}", one.signer->name, maker.role, one.party->role),
                  "ask for a statement under the signer's own role");
  }
  const auto issued = utc_time(claims.issued_at);
  if (!issued || *issued < one.key->from || *issued >= one.key->until) {
    return broken(policy, "key_valid_at_issue",
                  fmt::format("the statement was issued {}, and the key of {} is valid from {} until {}",
                              claims.issued_at, owner(one), utc_text(one.key->from), utc_text(one.key->until)),
                  "ask for a statement by a key that was valid on its day");
  }
  return std::nullopt;
}

std::optional<InputError> check_same_party(const TrustPolicy& policy, const Claims& claims,
                                           const std::string& older_maker) {
  const ListedKey older = listed(policy, older_maker);
  const ListedKey newer = listed(policy, claims.signatories.front().key_fingerprint);
  if (older.key != nullptr && newer.key != nullptr && older.party == newer.party) return std::nullopt;
  return broken(
      policy, "supersedes_party",
      fmt::format("the older statement was made with the key {}, which is not of the same party", older_maker),
      "a party supersedes its own statements; list its older keys as well, ended or revoked");
}

}  // namespace assay::dossier
