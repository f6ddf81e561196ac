// certificate: X.509 certificates of signers, checked against the issuers that a trust policy names.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "reports/dossier/dsse.h"
#include "reports/dossier/trust.h"

namespace assay::dossier {

/// The key of the first certificate in `pem`. Refused: no certificate, and keys that public_key_of refuses.
std::expected<PublicKey, InputError> key_of_certificate(std::string_view pem, const std::string& where);

/// The error of the issuers in `pem`; nothing if every one is a CA.
std::optional<InputError> check_issuers(std::string_view pem, const std::string& where);

/// The certificates of the signatures in `envelope`.
std::vector<std::string> certificates_of(const Envelope& envelope);

/// `policy` with the keys of `certificates` (PEM, the signer's first, then those up to its issuer) among those of the
/// signers whose rule they fulfil: a chain to the rule's issuers whose every signature holds (security level 2 of
/// OpenSSL: 112 bits, so no SHA-1), the rule's subject, no CA, digitalSignature where key usage is stated. The key
/// counts while the rule and every certificate of the chain are valid. A key that the policy has by its fingerprint is
/// left as the policy has it, a revoked one revoked. A certificate that fulfils no rule adds no key: its signature then
/// counts for no one, and `not_counted` says why.
TrustPolicy with_certificates(TrustPolicy policy, const std::vector<std::string>& certificates);

}  // namespace assay::dossier
