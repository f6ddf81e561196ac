// trust: a policy is refused whole when a part of it could mean two things.
#include "reports/dossier/trust.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>

#include "probes/core/json_io.h"
#include "probes/core/secret_file.h"
#include "probes/core/utc_time.h"
#include "profiles/schema.h"
#include "reports/dossier/certificate.h"
#include "reports/dossier/party_name.h"

namespace assay::dossier {
namespace {

using nlohmann::json;

constexpr std::size_t kLargestPolicy = 4 << 20;  // 100 parties of 100 signers with some keys each

std::expected<Moment, InputError> moment_at(const json& object, const char* name, const std::string& where) {
  const std::string text = object.at(name);
  if (const auto moment = given_time(text)) return *moment;
  return std::unexpected(
      InputError{fmt::format("{}.{}", where, name), fmt::format("'{}' is not a time", text), kGivenTimeHint});
}

/// valid_from and valid_until of `object`.
std::expected<std::pair<Moment, Moment>, InputError> validity_of(const json& object, const std::string& where) {
  const auto from = moment_at(object, "valid_from", where);
  if (!from) return std::unexpected(from.error());
  const auto until = moment_at(object, "valid_until", where);
  if (!until) return std::unexpected(until.error());
  if (*from < *until) return std::pair(*from, *until);
  return std::unexpected(InputError{fmt::format("{}.valid_until", where), "is not after valid_from",
                                    "what is valid at no time can be left out"});
}

std::expected<TrustedKey, InputError> key_from(const json& entry, const std::string& where, const PolicyFiles& read) {
  const auto validity = validity_of(entry, where);
  if (!validity) return std::unexpected(validity.error());
  TrustedKey key{.fingerprint = entry.at("fingerprint"),
                 .key = std::nullopt,
                 .from = validity->first,
                 .until = validity->second,
                 .revoked = std::nullopt};
  if (entry.contains("file")) {
    const std::string file = entry.at("file");
    const auto text = read(file);
    if (!text) return std::unexpected(text.error());
    auto given = public_key_from_pem(*text, file);
    if (!given) return std::unexpected(given.error());
    if (given->fingerprint() != key.fingerprint) {
      return std::unexpected(InputError{fmt::format("{}.file", where),
                                        fmt::format("the key in {} has the fingerprint {}, the policy says {}", file,
                                                    given->fingerprint(), key.fingerprint),
                                        "ask its owner which one is right, by another way than the one it came by"});
    }
    key.key = std::move(*given);
  }
  if (entry.contains("revoked")) {
    const auto at = moment_at(entry.at("revoked"), "at", where + ".revoked");
    if (!at) return std::unexpected(at.error());
    key.revoked = Revocation{.at = *at, .reason = entry.at("revoked").at("reason")};
  }
  return key;
}

std::expected<CertificateRule, InputError> rule_from(const json& entry, const std::string& where,
                                                     const PolicyFiles& read) {
  const auto validity = validity_of(entry, where);
  if (!validity) return std::unexpected(validity.error());
  const std::string file = entry.at("issuers");
  auto issuers = read(file);
  if (!issuers) return std::unexpected(issuers.error());
  if (auto problem = check_issuers(*issuers, file)) return std::unexpected(*problem);
  return CertificateRule{.issuers = std::move(*issuers),
                         .subject = entry.at("subject"),
                         .from = validity->first,
                         .until = validity->second};
}

/// Takes `name` into `names`, by its looks. Refused: a name that is there, and one without a plain look.
std::optional<InputError> take_name(const std::string& name, const std::string& where, const char* hint,
                                    std::map<std::string, std::string>& names) {
  const auto key = comparable_name(name);
  if (!key) return InputError{where, fmt::format("'{}' {}", name, key.error()), "write a name with plain letters"};
  const auto [known, fresh] = names.emplace(*key, name);
  if (fresh) return std::nullopt;
  if (known->second == name) return InputError{where, fmt::format("'{}' is there twice", name), hint};
  return InputError{where, fmt::format("'{}' looks like '{}', which is there", name, known->second), hint};
}

std::expected<Party, InputError> party_from(const json& entry, const std::string& where, const PolicyFiles& read) {
  Party party{.name = entry.at("name"), .role = entry.at("role"), .threshold = entry.at("threshold"), .signers = {}};
  const json& signers = entry.at("signers");
  std::map<std::string, std::string> names;
  for (std::size_t i = 0; i < signers.size(); ++i) {
    TrustedSigner signer{.name = signers[i].at("name"), .keys = {}};
    const std::string here = fmt::format("{}.signers[{}]", where, i);
    if (auto problem =
            take_name(signer.name, here + ".name", "further keys of a signer go into the list 'keys'", names))
      return std::unexpected(*problem);
    const json keys = signers[i].value("keys", json::array());
    for (std::size_t j = 0; j < keys.size(); ++j) {
      auto key = key_from(keys[j], fmt::format("{}.keys[{}]", here, j), read);
      if (!key) return std::unexpected(key.error());
      signer.keys.push_back(std::move(*key));
    }
    if (signers[i].contains("certificates")) {
      auto rule = rule_from(signers[i].at("certificates"), here + ".certificates", read);
      if (!rule) return std::unexpected(rule.error());
      signer.certificates = std::move(*rule);
    }
    party.signers.push_back(std::move(signer));
  }
  if (party.threshold <= party.signers.size()) return party;
  return std::unexpected(InputError{where + ".threshold",
                                    fmt::format("{} of {} signers", party.threshold, party.signers.size()),
                                    "each signer counts once, with as many keys as it has"});
}

/// Rules over all parts of a policy.
std::optional<InputError> contradiction(const TrustPolicy& policy) {
  std::map<std::string, std::string> names;
  std::set<std::string> fingerprints;
  std::set<std::pair<std::string, std::string>> certificates;
  for (const auto& party : policy.parties) {
    if (auto problem = take_name(party.name, policy.path + ": parties",
                                 "a party has one role, so that it cannot stand on both sides", names))
      return problem;
    for (const auto& signer : party.signers) {
      if (const auto& rule = signer.certificates; rule && !certificates.emplace(rule->issuers, rule->subject).second) {
        return InputError{policy.path + ": parties", fmt::format("has certificates of '{}' twice", rule->subject),
                          "a key belongs to one signer of one party"};
      }
      for (const auto& key : signer.keys) {
        if (fingerprints.insert(key.fingerprint).second) continue;
        return InputError{policy.path + ": parties", fmt::format("has the key {} twice", key.fingerprint),
                          "a key belongs to one signer of one party"};
      }
    }
  }
  if (fingerprints.size() > kMostTrustedKeys) {
    return InputError{policy.path + ": parties", fmt::format("has {} keys", fingerprints.size()),
                      fmt::format("{} are allowed; leave out those that ended", kMostTrustedKeys)};
  }
  std::set<std::string> required;
  for (const auto& role : policy.require) {
    if (!required.insert(role).second) return InputError{policy.path + ": require", role + " is there twice", ""};
    if (std::ranges::none_of(policy.parties, [&](const Party& party) { return party.role == role; }))
      return InputError{policy.path + ": require", fmt::format("no party has the role {}", role),
                        "nothing could ever fulfil this policy"};
  }
  return std::nullopt;
}

}  // namespace

std::expected<TrustPolicy, InputError> read_trust_policy(std::string_view text, const std::string& where,
                                                         const PolicyFiles& read) {
  const auto document = parse_json(text, where, {.max_bytes = kLargestPolicy});
  if (!document) return std::unexpected(document.error());
  if (auto problem = profiles::check_schema(*document, "trust.schema", where)) return std::unexpected(*problem);
  const auto validity = validity_of(*document, where);
  if (!validity) return std::unexpected(validity.error());
  TrustPolicy policy{.path = where,
                     .name = document->at("name"),
                     .from = validity->first,
                     .until = validity->second,
                     .require = document->at("require"),
                     .parties = {}};
  const json& parties = document->at("parties");
  for (std::size_t i = 0; i < parties.size(); ++i) {
    auto party = party_from(parties[i], fmt::format("{}: parties[{}]", where, i), read);
    if (!party) return std::unexpected(party.error());
    policy.parties.push_back(std::move(*party));
  }
  if (auto problem = contradiction(policy)) return std::unexpected(*problem);
  return policy;
}

std::expected<TrustPolicy, InputError> load_trust_policy(const std::string& path) {
  const auto text = read_deciding_file(path, kLargestPolicy);
  if (!text) return std::unexpected(text.error());
  const auto folder = std::filesystem::path(path).parent_path();
  return read_trust_policy(*text, path, [&](const std::string& file) {
    return read_deciding_file((folder / file).string(), kLargestKeyFile);
  });
}

}  // namespace assay::dossier
