// trust: the trust policy, whose signatures count, as what, and when (assay.trust/1). Names of parties are compared as
// a person sees them, so that one party is not written in two ways.
#pragma once

#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/dossier/keys.h"
#include "reports/dossier/moment.h"

namespace assay::dossier {

/// A key is no longer only its owner's. It counts for no signature, whenever that was made: a thief writes any date.
struct Revocation {
  Moment at;
  std::string reason;
};

/// A key of a signer and the time in which it counts.
struct TrustedKey {
  std::string fingerprint;       ///< PublicKey::fingerprint
  std::optional<PublicKey> key;  ///< nothing if the policy names only its fingerprint
  Moment from, until;            ///< from the first, and before the second
  std::optional<Revocation> revoked;
};

/// Keys that a policy knows only by a certificate.
struct CertificateRule {
  std::string issuers;  ///< certificates of CAs, PEM
  std::string subject;  ///< as RFC 2253 writes it: "CN=Ada Example,O=Example Lab"
  Moment from, until;   ///< from the first, and before the second
  friend bool operator==(const CertificateRule&, const CertificateRule&) = default;
};

/// A person or device, with its keys one after the other. Two keys of one signer are one signature.
struct TrustedSigner {
  std::string name;
  std::vector<TrustedKey> keys;
  std::optional<CertificateRule> certificates = std::nullopt;
};

/// An organisation in one role.
struct Party {
  std::string name;
  std::string role;  ///< commissioner, vendor, buyer or witness
  std::size_t threshold = 1;
  std::vector<TrustedSigner> signers;
};

/// A trust policy.
struct TrustPolicy {
  std::string path;  ///< if it was read, for errors
  std::string name;
  Moment from, until;
  std::vector<std::string> require;  ///< roles, each of which one party must hold whole
  std::vector<Party> parties;
  std::vector<std::string> not_counted;  ///< not of the file, for hints: certificates that fulfil no rule, and why
};

/// Reads a file that a policy names.
using PolicyFiles = std::function<std::expected<std::string, InputError>(const std::string& file)>;

/// Keys of one policy: each is tried against each signature of a statement, which may have 100 MB.
inline constexpr std::size_t kMostTrustedKeys = 1000;

/// Reads a policy strictly (profiles/schemas/trust.schema.json). Refused as well: a time that does not exist or that
/// ends before it begins, a role that is required and held by no party, a threshold above the number of signers, a
/// party, a signer of a party or a fingerprint that is there twice, a file whose key has another fingerprint, two
/// signers with the same certificates, issuers that are no CA, more than kMostTrustedKeys.
std::expected<TrustPolicy, InputError> read_trust_policy(std::string_view text, const std::string& where,
                                                         const PolicyFiles& read);

/// The policy in the file at `path`; key files are relative to its folder.
std::expected<TrustPolicy, InputError> load_trust_policy(const std::string& path);

/// What `name` (UTF-8) looks like: without case, accents, marks that are not seen, dots and commas, with single blanks,
/// and with Latin letters for those of Greek and Cyrillic that look like them. Two names with the same text are one
/// name. An error in words: no letter or digit that is seen, a word with letters of two alphabets, a character that is
/// only a form of another one, such as ℡ or 𝐀.
std::expected<std::string, std::string> comparable_name(std::string_view name);

}  // namespace assay::dossier
