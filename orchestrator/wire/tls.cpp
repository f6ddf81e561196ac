// tls: OpenSSL 3, through Asio where Asio has it.
#include "orchestrator/wire/tls.h"

#include <array>
#include <vector>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "orchestrator/files/digest.h"
#include "probes/core/text.h"

namespace assay::wire {

namespace asio = boost::asio;

namespace {

constexpr long kBackdated_s =
    -86400;  // clocks of nodes may be behind; assay ignores it, other tools that print the certificate do not
constexpr long kValid_s = 400L * 86400;  // longer than any run; the key ends with the process

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
struct FreeCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;
using Certificate = std::unique_ptr<X509, FreeCertificate>;

std::unexpected<std::string> openssl_error(const char* what) {
  std::array<char, 256> text = {};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  return std::unexpected(std::string(what) + ": " + text.data());
}

/// SHA-256 of the certificate's DER; empty if OpenSSL cannot.
std::string pin_of(const X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  unsigned size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest.data(), &size) != 1) return {};
  return to_hexadecimal({reinterpret_cast<const char*>(digest.data()), size});
}

Certificate self_signed(EVP_PKEY* key) {
  Certificate certificate(X509_new());
  if (!certificate) return nullptr;
  X509_NAME* const name = X509_get_subject_name(certificate.get());
  const auto* const common_name = reinterpret_cast<const unsigned char*>("assay");
  const bool done = X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
                    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1) == 1 &&
                    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), kBackdated_s) != nullptr &&
                    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), kValid_s) != nullptr &&
                    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, common_name, -1, -1, 0) == 1 &&
                    X509_set_issuer_name(certificate.get(), name) == 1 &&
                    X509_set_pubkey(certificate.get(), key) == 1 &&
                    X509_sign(certificate.get(), key, nullptr) > 0;  // Ed25519 has its digest built in
  if (!done) return nullptr;
  return certificate;
}

bool only_tls13(SSL_CTX* context) {
  return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
         SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1;
}

/// Replaces the verification of X.509: no chain, no names, no dates; the handshake fails unless the certificate is the
/// pinned one.
int is_pinned(X509_STORE_CTX* store, void* pin) {
  const X509* const certificate = X509_STORE_CTX_get0_cert(store);
  if (certificate != nullptr && pin_of(certificate) == *static_cast<const std::string*>(pin)) return 1;
  X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED);
  return 0;
}

}  // namespace

std::expected<std::unique_ptr<TlsIdentity>, std::string> make_tls_identity() {
  ERR_clear_error();
  const Key key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  if (!key) return openssl_error("no Ed25519 key");
  const Certificate certificate = self_signed(key.get());
  if (!certificate) return openssl_error("no certificate");
  try {
    auto identity = std::make_unique<TlsIdentity>(
        TlsIdentity{.context = asio::ssl::context(asio::ssl::context::tls_server), .pin = pin_of(certificate.get())});
    SSL_CTX* const context = identity->context.native_handle();
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    const bool ready = only_tls13(context) && SSL_CTX_set_num_tickets(context, 0) == 1 &&
                       SSL_CTX_use_certificate(context, certificate.get()) == 1 &&
                       SSL_CTX_use_PrivateKey(context, key.get()) == 1;
    if (!ready || !files::is_sha256(identity->pin)) return openssl_error("the key cannot be used");
    return identity;
  } catch (const boost::system::system_error& error) {
    return std::unexpected(std::string("no TLS: ") + error.what());
  }
}

std::expected<PinnedTls, std::string> pinned_tls(const std::string& pin) {
  if (!files::is_sha256(pin)) return std::unexpected("the pin is not 64 lower-case hexadecimal digits");
  if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr) != 1) return openssl_error("no OpenSSL");
  try {
    PinnedTls side{.context = asio::ssl::context(asio::ssl::context::tls_client),
                   .pin = std::make_unique<const std::string>(pin)};
    SSL_CTX* const context = side.context.native_handle();
    if (!only_tls13(context)) return openssl_error("no TLS 1.3");
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_cert_verify_callback(context, is_pinned,
                                     const_cast<std::string*>(side.pin.get()));  // which only reads it
    return side;
  } catch (const boost::system::system_error& error) {
    return std::unexpected(std::string("no TLS: ") + error.what());
  }
}

std::string random_hexadecimal(std::size_t count) {
  std::vector<unsigned char> bytes(count);
  if (RAND_bytes(bytes.data(), static_cast<int>(count)) != 1) return {};
  return to_hexadecimal({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

bool same_secret(const std::string& a, const std::string& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace assay::wire
