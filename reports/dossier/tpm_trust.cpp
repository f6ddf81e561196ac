// tpm_trust: a quote by an unknown key may be of any program.
#include "reports/dossier/tpm_trust.h"

#include <algorithm>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <fmt/format.h>

#include "reports/dossier/openssl.h"
#include "reports/dossier/sign.h"

namespace assay::dossier {
namespace {

constexpr const char* kEndorsement = "2.23.133.8.1";  // tcg-kp-EKCertificate, TCG EK Credential Profile

/// The modulus of an RSA key, big endian; empty for another kind of key.
std::string modulus_of(const EVP_PKEY* key) {
  BIGNUM* number = nullptr;
  if (key == nullptr || EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_N, &number) != 1) return "";
  std::string bytes(static_cast<std::size_t>(BN_num_bytes(number)), '\0');
  BN_bn2bin(number, reinterpret_cast<unsigned char*>(bytes.data()));
  BN_free(number);
  return bytes;
}

/// Why the certificate of the endorsement key is none of `roots`; empty if it is.
std::string why_not_of(const std::string& roots, const judge::TpmAnswer& answer, Moment at) {
  const std::string& der = answer.endorsement_certificate;
  if (der.empty()) return "its TPM has no certificate of its endorsement key";
  const unsigned char* bytes = bytes_of(der);  // indices of some makers are longer than the certificate in them
  std::vector<Certificate> chain;
  chain.emplace_back(d2i_X509(nullptr, &bytes, static_cast<long>(der.size())));
  ERR_clear_error();
  if (!chain.front()) return "the certificate of its endorsement key cannot be read";
  X509* const own = chain.front().get();
  if (modulus_of(X509_get0_pubkey(own)) != answer.endorsement_modulus)
    return "the certificate is of another endorsement key";
  if (X509_check_ca(own) != 0 || !(states_no_usage(own) || has_usage(own, kEndorsement)))
    return "the certificate is for another use than an endorsement key";
  if (verified_chain(chain, roots, X509_V_FLAG_PARTIAL_CHAIN, std::chrono::system_clock::to_time_t(at)).empty())
    return "the certificate of its endorsement key has no chain to a given root that holds when the run began";
  return "";
}

}  // namespace

judge::TpmAnswer held_against(const TpmTrust& trust, const std::string& node, judge::TpmAnswer answer, Moment at) {
  if (answer.outcome != judge::TpmOutcome::answered) return answer;
  const auto refuse = [&](judge::TpmOutcome outcome, std::string words) {
    answer.outcome = outcome;
    answer.words = std::move(words);
    return answer;
  };
  using enum judge::TpmOutcome;
  if (!trust.keys.empty()) {
    const auto wanted = trust.keys.find(node);
    if (wanted == trust.keys.end()) return refuse(unknown_key, "the list of keys does not have the node");
    if (wanted->second != answer.key) {
      const auto other = std::ranges::find_if(trust.keys, [&](const auto& one) { return one.second == answer.key; });
      return refuse(unknown_key,
                    other == trust.keys.end()
                        ? fmt::format("it answered with the key {}, expected {}", answer.key, wanted->second)
                        : fmt::format("the TPM of the node {} answered in its place", other->first));
    }
  }
  if (trust.roots.empty()) return answer;
  if (!answer.activated) return refuse(unknown_key, "its key is not bound to an endorsement key");
  std::string why = why_not_of(trust.roots, answer, at);
  return why.empty() ? answer : refuse(other_root, std::move(why));
}

std::optional<InputError> check_tpms(const TpmTrust& trust, Moment at,
                                     std::map<std::string, judge::TpmAnswer>& answers) {
  if (!trust.demands()) return std::nullopt;
  std::optional<InputError> first;
  for (auto& [node, answer] : answers) {
    answer = held_against(trust, node, std::move(answer), at);
    if (first || answer.outcome == judge::TpmOutcome::answered) continue;
    first = InputError{
        kEvidenceFolder, fmt::format("the TPM of {}: {}: {}", node, answer.outcome, answer.words),
        "--tpm-roots and --tpm-keys demand that the TPM of every node answers; the profile must use tpm_quote"};
  }
  for (const auto& [node, key] : trust.keys) {
    if (!first && !answers.contains(node))
      first = InputError{kEvidenceFolder, fmt::format("does not test the node {} of the list of keys", node),
                         "this is a dossier of fewer machines"};
  }
  return first;
}

}  // namespace assay::dossier
