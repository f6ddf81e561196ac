// timestamp: OpenSSL's TS library.
#include "reports/dossier/timestamp.h"

#include <ctime>
#include <memory>
#include <stdexcept>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/pem.h>
#include <openssl/ts.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "probes/core/text.h"
#include "reports/dossier/openssl.h"
#include "reports/dossier/sign.h"

namespace assay::dossier {
namespace {

using Request = std::unique_ptr<TS_REQ, Release<TS_REQ, TS_REQ_free>>;
using Imprint = std::unique_ptr<TS_MSG_IMPRINT, Release<TS_MSG_IMPRINT, TS_MSG_IMPRINT_free>>;
using Algorithm = std::unique_ptr<X509_ALGOR, Release<X509_ALGOR, X509_ALGOR_free>>;
using Response = std::unique_ptr<TS_RESP, Release<TS_RESP, TS_RESP_free>>;
using Token = std::unique_ptr<PKCS7, Release<PKCS7, PKCS7_free>>;
using Info = std::unique_ptr<TS_TST_INFO, Release<TS_TST_INFO, TS_TST_INFO_free>>;
using Check = std::unique_ptr<TS_VERIFY_CTX, Release<TS_VERIFY_CTX, TS_VERIFY_CTX_free>>;

void need(bool done, const char* what) {
  if (!done) throw std::runtime_error(fmt::format("OpenSSL: {} failed", what));
}

/// The last error of OpenSSL in words; the others are dropped.
std::string openssl_words() {
  const unsigned long code = ERR_peek_last_error();
  const char* data = nullptr;
  int flags = 0;
  ERR_peek_last_error_data(&data, &flags);
  std::string words = code == 0                                  ? "unknown error"
                      : ERR_reason_error_string(code) != nullptr ? ERR_reason_error_string(code)
                                                                 : "unknown error";
  if (data != nullptr && (flags & ERR_TXT_STRING) != 0 && *data != '\0') words += fmt::format(" ({})", data);
  ERR_clear_error();
  return printable(words);
}

std::string digest_of(std::string_view bytes) { return *from_hexadecimal(files::sha256(bytes)); }

template <class T, class Write>
std::string der_of(T* object, Write write) {
  unsigned char* bytes = nullptr;
  const int length = write(object, &bytes);
  need(length > 0, "DER");
  std::string der(reinterpret_cast<char*>(bytes), static_cast<std::size_t>(length));
  OPENSSL_free(bytes);
  return der;
}

/// The whole of `der` and nothing behind it.
template <class T, class Read>
T* read_der(std::string_view der, Read read) {
  const unsigned char* at = bytes_of(der);
  T* object = read(nullptr, &at, static_cast<long>(der.size()));
  ERR_clear_error();
  return at == bytes_of(der) + der.size() ? object : nullptr;
}

Token read_token(std::string_view der) { return Token(read_der<PKCS7>(der, d2i_PKCS7)); }

/// The authorities as a store that judges at `at`, in place of now.
Store store_of(const std::string& pem, std::time_t at) {
  Store store(X509_STORE_new());
  need(store != nullptr, "X509_STORE_new");
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  need(bio != nullptr, "BIO_new_mem_buf");
  std::size_t count = 0;
  while (true) {
    const Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (certificate == nullptr) break;
    need(X509_STORE_add_cert(store.get(), certificate.get()) == 1, "X509_STORE_add_cert");
    ++count;
  }
  ERR_clear_error();  // the end of the file is an error to OpenSSL
  if (count == 0) return nullptr;
  X509_VERIFY_PARAM* const rules = X509_STORE_get0_param(store.get());
  X509_VERIFY_PARAM_set_time(rules, at);
  X509_VERIFY_PARAM_set_auth_level(rules, kSecurityLevel);
  return store;
}

/// The time of a token, in whole seconds; nothing for a time that OpenSSL cannot read.
std::optional<std::time_t> time_of(const TS_TST_INFO* info) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(TS_TST_INFO_get_time(info), &parts) != 1) return std::nullopt;
  return ::timegm(&parts);
}

/// Whether the imprint is a SHA-256: another function of 32 bytes is none.
bool is_sha256(TS_TST_INFO* info) {
  const ASN1_OBJECT* algorithm = nullptr;
  X509_ALGOR_get0(&algorithm, nullptr, nullptr, TS_MSG_IMPRINT_get_algo(TS_TST_INFO_get_msg_imprint(info)));
  return OBJ_obj2nid(algorithm) == NID_sha256;
}

/// Whether the authority signed over a digest of the strength that its certificates must have: SHA-1 is none.
bool is_strong(const Token& token) {
  constexpr int kBits = 112;  // of kSecurityLevel; a digest has half as many as it is long
  auto* signers = PKCS7_get_signer_info(token.get());
  const auto* signer =
      signers != nullptr && sk_PKCS7_SIGNER_INFO_num(signers) == 1 ? sk_PKCS7_SIGNER_INFO_value(signers, 0) : nullptr;
  const EVP_MD* digest = signer == nullptr ? nullptr : EVP_get_digestbyobj(signer->digest_alg->algorithm);
  return digest != nullptr && EVP_MD_get_size(digest) * 8 / 2 >= kBits;
}

/// OpenSSL's checks: version, imprint, signer, chain.
bool verifies(const Token& token, std::string_view signature, Store store) {
  const Check check(TS_VERIFY_CTX_new());
  need(check != nullptr, "TS_VERIFY_CTX_new");
  const std::string digest = digest_of(signature);
  auto* imprint = static_cast<unsigned char*>(OPENSSL_memdup(digest.data(), digest.size()));
  need(imprint != nullptr, "OPENSSL_memdup");
  TS_VERIFY_CTX_set_imprint(check.get(), imprint, static_cast<long>(digest.size()));  // takes it
  TS_VERIFY_CTX_set_store(check.get(), store.release());                              // takes it
  TS_VERIFY_CTX_add_flags(check.get(), TS_VFY_VERSION | TS_VFY_IMPRINT | TS_VFY_SIGNATURE);
  return TS_RESP_verify_token(check.get(), token.get()) == 1;
}

std::string authority_of(const Token& token) {
  STACK_OF(X509)* signers = PKCS7_get0_signers(token.get(), nullptr, 0);
  if (signers == nullptr || sk_X509_num(signers) != 1) {
    sk_X509_free(signers);
    return "";
  }
  const Bio out(BIO_new(BIO_s_mem()));
  need(out != nullptr, "BIO_new");
  X509_NAME_print_ex(out.get(), X509_get_subject_name(sk_X509_value(signers, 0)), 0,
                     XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB);
  sk_X509_free(signers);
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return harmless(std::string_view(text, static_cast<std::size_t>(size)));
}

}  // namespace

std::string timestamp_request(std::string_view signature) {
  const Request request(TS_REQ_new());
  const Imprint imprint(TS_MSG_IMPRINT_new());
  const Algorithm algorithm(X509_ALGOR_new());
  need(request != nullptr && imprint != nullptr && algorithm != nullptr, "TS_REQ_new");
  need(X509_ALGOR_set0(algorithm.get(), OBJ_nid2obj(NID_sha256), V_ASN1_NULL, nullptr) == 1, "X509_ALGOR_set0");
  std::string digest = digest_of(signature);
  need(TS_REQ_set_version(request.get(), 1) == 1 && TS_MSG_IMPRINT_set_algo(imprint.get(), algorithm.get()) == 1 &&
           TS_MSG_IMPRINT_set_msg(imprint.get(), reinterpret_cast<unsigned char*>(digest.data()),
                                  static_cast<int>(digest.size())) == 1 &&
           TS_REQ_set_msg_imprint(request.get(), imprint.get()) == 1 && TS_REQ_set_cert_req(request.get(), 1) == 1,
       "TS_REQ_set");
  return der_of(request.get(), i2d_TS_REQ);
}

std::expected<std::string, InputError> token_of_response(std::string_view der, const std::string& where) {
  const Response response(read_der<TS_RESP>(der, d2i_TS_RESP));
  if (response == nullptr)
    return std::unexpected(InputError{where, "is not the answer of a time-stamping authority",
                                      "a TimeStampResp in DER, as RFC 3161 has it"});
  if (TS_RESP_get_token(response.get()) == nullptr) {
    const Bio out(BIO_new(BIO_s_mem()));
    need(out != nullptr, "BIO_new");
    TS_STATUS_INFO_print_bio(out.get(), TS_RESP_get_status_info(response.get()));
    char* text = nullptr;
    const long size = BIO_get_mem_data(out.get(), &text);
    return std::unexpected(InputError{
        where, "has no time stamp: " + harmless(std::string_view(text, static_cast<std::size_t>(size))), ""});
  }
  return der_of(TS_RESP_get_token(response.get()), i2d_PKCS7);
}

std::expected<Stamp, InputError> check_token(std::string_view der, std::string_view signature,
                                             const std::string& authorities, const std::string& where) {
  const auto refused = [&](const std::string& what, const std::string& hint = "") {
    return std::unexpected(InputError{where, what, hint});
  };
  const Token token = read_token(der);
  const Info info(token == nullptr ? nullptr : PKCS7_to_TS_TST_INFO(token.get()));
  ERR_clear_error();
  if (info == nullptr) return refused("is not a time stamp");
  const auto at = time_of(info.get());
  if (!at) return refused("has a time that does not exist");
  if (!is_sha256(info.get())) return refused("is a stamp of something else than a SHA-256");
  if (!is_strong(token)) return refused("is signed over a weak digest, such as SHA-1", "ask another authority");
  Store store = store_of(authorities, *at);
  if (store == nullptr) return refused("cannot be checked: the file of authorities has no certificate", "PEM of --tsa");
  if (!verifies(token, signature, std::move(store))) {
    return refused("does not hold: " + openssl_words(),
                   "it is of another signature, was changed, or no certificate in --tsa has issued its signer's");
  }
  return Stamp{.at = std::chrono::system_clock::from_time_t(*at), .authority = authority_of(token)};
}

std::expected<std::map<std::string, Stamp>, InputError> check_stamps(const Envelope& envelope,
                                                                     const std::string& authorities) {
  std::map<std::string, Stamp> stamps;
  for (std::size_t i = 0; i < envelope.signatures.size(); ++i) {
    const auto token = envelope.timestamps.find(envelope.signatures[i]);
    if (token == envelope.timestamps.end()) continue;
    const auto stamp = check_token(token->second, envelope.signatures[i], authorities,
                                   fmt::format("{}: signatures[{}].timestamp", kStatementFile, i));
    if (!stamp) return std::unexpected(stamp.error());
    stamps.emplace(envelope.signatures[i], *stamp);
  }
  return stamps;
}

}  // namespace assay::dossier
