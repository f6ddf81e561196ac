// attesting_gpu: made-up makers of GPUs with keys of their own, and attestation reports that such a GPU signs.
#pragma once

#include <ctime>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace assay::fakes {

template <class T>
using Handle = std::shared_ptr<T>;

/// `value` in `size` bytes, little endian.
inline std::string little(std::uint64_t value, int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

inline Handle<EVP_PKEY> new_key(const char* curve = "P-384") { return {EVP_EC_gen(curve), EVP_PKEY_free}; }

/// What a certificate says.
struct CertificateWords {
  std::string name;
  std::string usage = "critical,digitalSignature";  ///< "critical,keyCertSign,cRLSign" of a CA
  bool is_ca = false;
  std::time_t from = 1577836800, until = 4102444800;  ///< 2020 to 2100
};

/// A certificate of `key` by `issuer`, or by itself.
inline Handle<X509> certificate(const CertificateWords& words, EVP_PKEY* key, X509* issuer, EVP_PKEY* issuer_key) {
  Handle<X509> made(X509_new(), X509_free);
  static long serial = 1;
  X509_set_version(made.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), serial++);
  ASN1_TIME_set(X509_getm_notBefore(made.get()), words.from);
  ASN1_TIME_set(X509_getm_notAfter(made.get()), words.until);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(words.name.c_str()), -1, -1, 0);
  X509_set_issuer_name(made.get(), X509_get_subject_name(issuer == nullptr ? made.get() : issuer));
  X509_set_pubkey(made.get(), key);
  const auto add = [&](int kind, const char* value) {
    X509_EXTENSION* one = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value);
    X509_add_ext(made.get(), one, -1);
    X509_EXTENSION_free(one);
  };
  if (words.is_ca) add(NID_basic_constraints, "critical,CA:TRUE");
  add(NID_key_usage, words.usage.c_str());
  X509_sign(made.get(), issuer_key, EVP_sha384());
  return made;
}

/// `write` of PEM, as PEM_write_bio_X509, to a text.
template <class Write, class T>
std::string pem_of(Write write, T* thing) {
  const std::unique_ptr<BIO, int (*)(BIO*)> bio(BIO_new(BIO_s_mem()), BIO_free);
  write(bio.get(), thing);
  char* start = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &start);
  return {start, static_cast<std::size_t>(size)};
}

/// A maker: a root of its own, and an issuer under it.
struct GpuMaker {
  explicit GpuMaker(const std::string& name = "maker")
      : root_key(new_key()),
        issuer_key(new_key()),
        root(certificate(ca(name + " root"), root_key.get(), nullptr, root_key.get())),
        issuer(certificate(ca(name + " issuer"), issuer_key.get(), root.get(), root_key.get())) {}
  static CertificateWords ca(const std::string& name) {
    return {.name = name, .usage = "critical,keyCertSign,cRLSign", .is_ca = true};
  }
  [[nodiscard]] std::string root_pem() const { return pem_of(PEM_write_bio_X509, root.get()); }
  /// A list of revoked certificates by the issuer, of those given; it counts from `from` until `until`.
  [[nodiscard]] std::string list(const std::vector<X509*>& revoked, std::time_t from = 1577836800,
                                 std::time_t until = 4102444800) const {
    const std::unique_ptr<X509_CRL, void (*)(X509_CRL*)> made(X509_CRL_new(), X509_CRL_free);
    const Handle<ASN1_TIME> begin(ASN1_TIME_set(nullptr, from), ASN1_TIME_free);
    const Handle<ASN1_TIME> end(ASN1_TIME_set(nullptr, until), ASN1_TIME_free);
    X509_CRL_set_version(made.get(), 1);
    X509_CRL_set_issuer_name(made.get(), X509_get_subject_name(issuer.get()));
    X509_CRL_set1_lastUpdate(made.get(), begin.get());
    X509_CRL_set1_nextUpdate(made.get(), end.get());
    for (X509* one : revoked) {
      X509_REVOKED* entry = X509_REVOKED_new();
      X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(one));
      X509_REVOKED_set_revocationDate(entry, begin.get());
      X509_CRL_add0_revoked(made.get(), entry);
    }
    X509_CRL_sign(made.get(), issuer_key.get(), EVP_sha384());
    return pem_of(PEM_write_bio_X509_CRL, made.get());
  }

  Handle<EVP_PKEY> root_key, issuer_key;
  Handle<X509> root, issuer;
};

/// What a report says; an honest one by default.
struct ReportWords {
  std::string nonce;  ///< 32 bytes
  int measurements = 64;
  std::string driver = "575.57.08";
};

/// A report by `key`: GET_MEASUREMENTS and MEASUREMENTS of SPDM 1.1.
inline std::string signed_report(EVP_PKEY* key, const ReportWords& words) {
  std::string record;
  for (int i = 1; i <= words.measurements; ++i)
    record += little(static_cast<unsigned>(i), 1) + little(1, 1) + little(51, 2) + little(1, 1) + little(48, 2) +
              std::string(48, static_cast<char>(i));
  const auto field = [](unsigned kind, const std::string& bytes) {
    return little(kind, 2) + little(bytes.size(), 2) + bytes;
  };
  const std::string opaque = field(6, std::string("\x00\x89\x00\x96\x01\x00\x00\x00", 8)) +
                             field(3, words.driver + std::string(1, '\0')) + field(200, "x");
  std::string bytes = std::string("\x11\xE0\x01\xFF", 4) + words.nonce + std::string(1, '\0') +
                      std::string("\x11\x60\0\0", 4) + little(static_cast<unsigned>(words.measurements), 1) +
                      little(record.size(), 3) + record + std::string(32, 'g') + little(opaque.size(), 2) + opaque;
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> signing(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  EVP_DigestSignInit(signing.get(), nullptr, EVP_sha384(), nullptr, key);
  std::string der(160, '\0');
  std::size_t size = der.size();
  EVP_DigestSign(signing.get(), reinterpret_cast<unsigned char*>(der.data()), &size,
                 reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  const auto* in = reinterpret_cast<const unsigned char*>(der.data());
  const std::unique_ptr<ECDSA_SIG, void (*)(ECDSA_SIG*)> pair(d2i_ECDSA_SIG(nullptr, &in, static_cast<long>(size)),
                                                              ECDSA_SIG_free);
  for (const BIGNUM* half : {ECDSA_SIG_get0_r(pair.get()), ECDSA_SIG_get0_s(pair.get())}) {
    std::string raw(48, '\0');
    BN_bn2binpad(half, reinterpret_cast<unsigned char*>(raw.data()), 48);
    bytes += raw;
  }
  return bytes;
}

/// A GPU of `maker`: an identity key with a certificate by the maker, and a key that signs, with one by the former.
struct AttestingGpu {
  explicit AttestingGpu(const GpuMaker& maker, const CertificateWords& leaf = {.name = "GPU"},
                        const char* curve = "P-384")
      : identity(new_key()),
        key(new_key(curve)),
        own(certificate(GpuMaker::ca("identity"), identity.get(), maker.issuer.get(), maker.issuer_key.get())),
        of_key(certificate(leaf, key.get(), own.get(), identity.get())),
        chain(pem_of(PEM_write_bio_X509, of_key.get()) + pem_of(PEM_write_bio_X509, own.get()) +
              pem_of(PEM_write_bio_X509, maker.issuer.get()) + maker.root_pem()) {}
  [[nodiscard]] std::string report(const ReportWords& words) const { return signed_report(key.get(), words); }

  Handle<EVP_PKEY> identity, key;
  Handle<X509> own, of_key;
  std::string chain;
};

}  // namespace assay::fakes
