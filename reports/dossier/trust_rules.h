// trust_rules: which signatures of a statement a trust policy counts, and the rule that a refused one broke.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/dossier/dsse.h"
#include "reports/dossier/statement.h"
#include "reports/dossier/timestamp.h"
#include "reports/dossier/trust.h"

namespace assay::dossier {

/// A signature that counts.
struct CountedSignature {
  std::string party, role, signer;
  std::string fingerprint;
  PublicKey key;
  friend bool operator==(const CountedSignature&, const CountedSignature&) = default;
};

/// The key with this fingerprint, its signer and party; null pointers when the policy does not have it. They point into
/// the policy.
struct ListedKey {
  const Party* party = nullptr;
  const TrustedSigner* signer = nullptr;
  const TrustedKey* key = nullptr;
};
ListedKey listed(const TrustPolicy& policy, const std::string& fingerprint);

/// The rule that this key breaks at `now`: key_revoked, key_valid_from, key_valid_until; nothing if it counts.
std::optional<InputError> check_key(const TrustPolicy& policy, const ListedKey& listed, Moment now);

/// The signatures of `envelope` that count at `now`, in the order of the policy. A key whose bytes the policy does not
/// have is taken from `known`, by its fingerprint. A signature in `stamps` is judged at the time of its stamp in place
/// of `now`: it outlives its key, unless that was revoked. Refused, by the name of the rule: policy_valid, the policy
/// is not in force; key_listed, one of `demanded` is no key of the policy (or does not count); required_role, no key of
/// a role in policy.require or `require` has signed; key_revoked, key_valid_from, key_valid_until, one has, and does
/// not count; threshold, some of a party have.
std::expected<std::vector<CountedSignature>, InputError> count_signatures(
    const TrustPolicy& policy, const Envelope& envelope, const std::vector<PublicKey>& demanded,
    const std::map<std::string, PublicKey>& known, const std::vector<std::string>& require, Moment now,
    const std::map<std::string, Stamp>& stamps = {});

/// The signer of `envelope`, which must have one signature. Refused, by the name of the rule: policy_valid;
/// one_signature; signer_listed, no key of the policy has signed; as by check_key.
std::expected<ListedKey, InputError> only_signer(const TrustPolicy& policy, const Envelope& envelope,
                                                 const std::map<std::string, PublicKey>& known, Moment now);

/// The error of the statement's maker; nothing if its signature counts and its words agree with the policy. Refused:
/// maker_listed, the policy does not count it; maker_not_self_signed; maker_role, it states a role of kPartyRoles that
/// the policy does not give it; key_valid_at_issue, the statement was issued outside the time of its key.
std::optional<InputError> check_maker(const TrustPolicy& policy, const std::vector<CountedSignature>& counted,
                                      const Claims& claims, Moment now);

/// Rule supersedes_party: the maker of the older statement, by the key `older_maker`, is not of the party that made
/// this one. The older key need not count any more.
std::optional<InputError> check_same_party(const TrustPolicy& policy, const Claims& claims,
                                           const std::string& older_maker);

}  // namespace assay::dossier
