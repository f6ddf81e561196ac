// openssl: handles of OpenSSL that free themselves, for the files of this folder that call it.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include "orchestrator/files/openssl.h"

namespace assay::dossier {

using files::Certificate;
using files::no_passphrase;
using files::read_certificates;
using files::Release;
using Key = std::unique_ptr<EVP_PKEY, Release<EVP_PKEY, EVP_PKEY_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, Release<EVP_MD_CTX, EVP_MD_CTX_free>>;
using Store = std::unique_ptr<X509_STORE, Release<X509_STORE, X509_STORE_free>>;
using Bio = std::unique_ptr<BIO, Release<BIO, BIO_vfree>>;

/// OpenSSL's security level of keys and signatures in a chain of certificates: 112 bits, so neither RSA of 1024 bits
/// nor SHA-1. Signers and time-stamping authorities are held to the same.
inline constexpr int kSecurityLevel = 2;

/// `text` in OpenSSL's type for bytes.
inline const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

/// The content of `bio`, one of memory.
inline std::string bytes_in(BIO* bio) {
  char* start = nullptr;
  const long size = BIO_get_mem_data(bio, &start);
  return {start, static_cast<std::size_t>(size)};
}

/// What holds for a chain of certificates.
struct ChainRules {
  unsigned long flags = 0;             ///< of OpenSSL
  std::optional<std::time_t> at = {};  ///< when it has to hold; nothing: now, or at any time by the flags
  std::string_view crls = {};          ///< PEM: lists of revoked certificates; none: revocation is not checked
  std::string* why = nullptr;          ///< takes OpenSSL's words for why there is no chain
};

/// The chain from `chain.front()` to one of `issuers` (PEM); empty if there is none. With lists of revoked certificates
/// none of the chain may be in one, at least one list has to be by an issuer of the chain, and it must not have ended
/// before `at`. An issuer without a list, and a list that began later, are as good as any.
std::vector<Certificate> verified_chain(const std::vector<Certificate>& chain, std::string_view issuers,
                                        const ChainRules& rules);

/// Whether `certificate` states no extended key usage; whether it states the one with this OID.
bool states_no_usage(X509* certificate);
bool has_usage(X509* certificate, std::string_view oid);

}  // namespace assay::dossier
