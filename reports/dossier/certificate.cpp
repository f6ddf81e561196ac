// certificate: OpenSSL builds and checks the chain; times are left to the rules of the policy.
#include "reports/dossier/certificate.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <memory>

#include <openssl/err.h>
#include <openssl/objects.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <fmt/format.h>

#include "reports/dossier/openssl.h"
#include "reports/dossier/trust_rules.h"

namespace assay::dossier {
namespace {

using Usages = std::unique_ptr<EXTENDED_KEY_USAGE, Release<EXTENDED_KEY_USAGE, EXTENDED_KEY_USAGE_free>>;

/// Puts the lists of revoked certificates in `pem` into `store`.
void add_lists(std::string_view pem, X509_STORE* store) {
  using List = std::unique_ptr<X509_CRL, Release<X509_CRL, X509_CRL_free>>;
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  while (bio) {
    const List one(PEM_read_bio_X509_CRL(bio.get(), nullptr, no_passphrase, nullptr));
    if (!one) break;
    X509_STORE_add_crl(store, one.get());
  }
  ERR_clear_error();  // the end of the file is one
}

/// Passes over an issuer without a list and a list of a later day; the context's data counts the former.
int passes(int holds, X509_STORE_CTX* context) {
  const int error = X509_STORE_CTX_get_error(context);
  if (holds == 1 || (error != X509_V_ERR_UNABLE_TO_GET_CRL && error != X509_V_ERR_CRL_NOT_YET_VALID)) return holds;
  if (error == X509_V_ERR_UNABLE_TO_GET_CRL) ++*static_cast<int*>(X509_STORE_CTX_get_app_data(context));
  X509_STORE_CTX_set_error(context, X509_V_OK);
  return 1;
}

/// The subject as RFC 2253 writes it: "CN=Ada Example,O=Example Lab".
std::string subject_of(const X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (!bio || X509_NAME_print_ex(bio.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) < 0) return "";
  return bytes_in(bio.get());
}

/// The time as a moment; nothing for one that cannot be read.
std::optional<Moment> moment_of(const ASN1_TIME* time) {
  std::tm parts = {};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return std::nullopt;
  return Moment(std::chrono::seconds(::timegm(&parts)));
}

/// Whether the extended key usage of `certificate`, critical or not, lets it vouch for documents of a person: it states
/// none, or any, or e-mail, code or documents (RFC 5280, 4.2.1.12; RFC 9336). That of a CA binds the certificates it
/// issues.
bool is_for_documents(X509* certificate) {
  constexpr std::uint32_t kDocuments = XKU_ANYEKU | XKU_SMIME | XKU_CODE_SIGN;
  constexpr const char* kDocumentSigning = "1.3.6.1.5.5.7.3.36";                  // OpenSSL 3.0 has no flag for it
  if ((X509_get_extended_key_usage(certificate) & kDocuments) != 0) return true;  // all bits if none is stated
  return has_usage(certificate, kDocumentSigning);
}

bool may_sign(X509* certificate) {
  const std::uint32_t usage = X509_get_key_usage(certificate);  // all bits if none is stated
  return X509_check_ca(certificate) == 0 && (usage & KU_DIGITAL_SIGNATURE) != 0 && is_for_documents(certificate);
}

/// The chain of a signer to `issuers`. An issuer may be one between, and times are compared with the moment of the
/// signature, which may be stamped.
std::vector<Certificate> chain_of_signer(const std::vector<Certificate>& chain, std::string_view issuers) {
  return verified_chain(chain, issuers,
                        {.flags = X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_NO_CHECK_TIME | X509_V_FLAG_X509_STRICT});
}

/// The key of `chain` as `rule` lets it count; nothing if it does not fulfil the rule.
std::optional<TrustedKey> key_by(const CertificateRule& rule, const std::vector<Certificate>& chain) {
  X509* const own = chain.front().get();
  if (!may_sign(own) || subject_of(own) != rule.subject) return std::nullopt;
  const auto verified = chain_of_signer(chain, rule.issuers);
  auto key = verified.empty() ? std::nullopt : [&]() -> std::optional<PublicKey> {
    const auto read = public_key_of(X509_get0_pubkey(own), "certificate");
    return read ? std::optional(*read) : std::nullopt;
  }();
  if (!key) return std::nullopt;
  TrustedKey counted{.fingerprint = key->fingerprint(), .key = std::move(key), .from = rule.from, .until = rule.until};
  for (const auto& one : verified) {
    const auto from = moment_of(X509_get0_notBefore(one.get()));
    const auto last = moment_of(X509_get0_notAfter(one.get()));
    if (!from || !last || !is_for_documents(one.get())) return std::nullopt;
    counted.from = std::max(counted.from, *from);
    counted.until = std::min(counted.until, *last + std::chrono::seconds(1));  // the last second is valid (RFC 5280)
  }
  return counted;
}

/// Why the certificate `chain.front()` fulfils no rule of `policy`: the reason of the rule that it is nearest to.
std::string why_not_counted(const TrustPolicy& policy, const std::vector<Certificate>& chain) {
  X509* const own = chain.front().get();
  const std::string subject = subject_of(own);
  if (!may_sign(own))
    return fmt::format("the certificate of '{}' is of a CA or not for signatures of documents", subject);
  std::string reason = fmt::format("the certificate of '{}' is by no issuer that the policy names", subject);
  for (const auto& party : policy.parties) {
    for (const auto& signer : party.signers) {
      if (!signer.certificates) continue;
      if (signer.certificates->subject == subject)
        return fmt::format("the certificate of '{}' has no chain that holds to the issuers of {} ({})", subject,
                           signer.name, party.role);
      if (!chain_of_signer(chain, signer.certificates->issuers).empty())
        reason = fmt::format("the certificate is of '{}', and the policy has '{}' for {} ({})", subject,
                             signer.certificates->subject, signer.name, party.role);
    }
  }
  return reason;
}

}  // namespace

std::vector<Certificate> verified_chain(const std::vector<Certificate>& chain, std::string_view issuers,
                                        const ChainRules& rules) {
  using Context = std::unique_ptr<X509_STORE_CTX, Release<X509_STORE_CTX, X509_STORE_CTX_free>>;
  using Stack = std::unique_ptr<STACK_OF(X509), void (*)(STACK_OF(X509)*)>;
  const Store store(X509_STORE_new());
  const Context context(X509_STORE_CTX_new());
  const Stack between(sk_X509_new_null(), [](STACK_OF(X509) * stack) { sk_X509_free(stack); });
  if (!store || !context || !between) return {};
  for (const auto& issuer : read_certificates(issuers)) X509_STORE_add_cert(store.get(), issuer.get());
  if (!rules.crls.empty()) add_lists(rules.crls, store.get());
  for (std::size_t i = 1; i < chain.size(); ++i) sk_X509_push(between.get(), chain[i].get());
  if (X509_STORE_CTX_init(context.get(), store.get(), chain.front().get(), between.get()) != 1) return {};
  X509_VERIFY_PARAM* const how = X509_STORE_CTX_get0_param(context.get());
  const unsigned long revoked = rules.crls.empty() ? 0 : X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL;
  X509_VERIFY_PARAM_set_flags(how, rules.flags | revoked);
  if (rules.at) X509_VERIFY_PARAM_set_time(how, *rules.at);
  X509_VERIFY_PARAM_set_auth_level(how, kSecurityLevel);
  int without_list = 0;
  X509_STORE_CTX_set_app_data(context.get(), &without_list);
  if (revoked != 0) X509_STORE_CTX_set_verify_cb(context.get(), passes);
  const bool holds = X509_verify_cert(context.get()) == 1;
  const auto* built = X509_STORE_CTX_get0_chain(context.get());
  const bool listed = revoked == 0 || without_list < sk_X509_num(built);
  if (rules.why != nullptr)
    *rules.why = holds && !listed ? "no given list of revoked certificates is by one of its issuers"
                                  : X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
  ERR_clear_error();
  std::vector<Certificate> found;
  for (int i = 0; holds && listed && i < sk_X509_num(built); ++i) {
    X509* one = sk_X509_value(built, i);
    X509_up_ref(one);
    found.emplace_back(one);
  }
  return found;
}

bool states_no_usage(X509* certificate) { return X509_get_ext_by_NID(certificate, NID_ext_key_usage, -1) < 0; }

bool has_usage(X509* certificate, std::string_view oid) {
  const Usages usages(
      static_cast<EXTENDED_KEY_USAGE*>(X509_get_ext_d2i(certificate, NID_ext_key_usage, nullptr, nullptr)));
  for (int i = 0; usages && i < sk_ASN1_OBJECT_num(usages.get()); ++i) {
    std::array<char, 64> name{};
    OBJ_obj2txt(name.data(), name.size(), sk_ASN1_OBJECT_value(usages.get(), i), 1);
    if (std::string_view(name.data()) == oid) return true;
  }
  return false;
}

std::expected<PublicKey, InputError> key_of_certificate(std::string_view pem, const std::string& where) {
  const auto all = read_certificates(pem);
  if (all.empty())
    return std::unexpected(InputError{where, "has no certificate in PEM", "its key's certificate comes first"});
  return public_key_of(X509_get0_pubkey(all.front().get()), where);
}

std::optional<InputError> check_issuers(std::string_view pem, const std::string& where) {
  const auto all = read_certificates(pem);
  if (all.empty())
    return InputError{where, "has no certificate in PEM", "the certificates of the CAs that are trusted"};
  const auto other = std::ranges::find_if(all, [](const Certificate& one) { return X509_check_ca(one.get()) == 0; });
  if (other == all.end()) return std::nullopt;
  return InputError{where, fmt::format("has the certificate of '{}', which is no CA", subject_of(other->get())),
                    "name who issues the certificates of signers; a single key goes into 'keys'"};
}

std::vector<std::string> certificates_of(const Envelope& envelope) {
  std::vector<std::string> all;
  for (const auto& [signature, pem] : envelope.certificates) all.push_back(pem);
  return all;
}

TrustPolicy with_certificates(TrustPolicy policy, const std::vector<std::string>& certificates) {
  for (const auto& pem : certificates) {
    if (pem.empty()) continue;
    const auto chain = read_certificates(pem);
    if (chain.empty()) {
      policy.not_counted.emplace_back("a certificate beside a signature cannot be read");
      continue;
    }
    bool counts = false;
    for (auto& party : policy.parties) {
      for (auto& signer : party.signers) {
        auto key = signer.certificates ? key_by(*signer.certificates, chain) : std::nullopt;
        counts = counts || key;
        if (key && listed(policy, key->fingerprint).key == nullptr) signer.keys.push_back(std::move(*key));
      }
    }
    if (!counts) policy.not_counted.push_back(why_not_counted(policy, chain));
  }
  return policy;
}

}  // namespace assay::dossier
