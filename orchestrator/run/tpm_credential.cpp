// tpm_credential: Credential Protection of the TPM 2.0 Library, Part 1, for an RSA key with AES-128 and SHA-256: the
// layout is that of tpm2_makecredential 5.4, whose files the TPM's side reads.
//   seed       32 random bytes, sent as RSA-OAEP (SHA-256, label "IDENTITY\0") to the endorsement key
//   identity   the secret as a TPM2B, AES-128-CFB under KDFa(seed, "STORAGE", name)
//   integrity  HMAC-SHA-256 of identity and name under KDFa(seed, "INTEGRITY")
// KDFa is the counter mode of NIST SP 800-108 with HMAC-SHA-256, which OpenSSL has as KBKDF.
#include "orchestrator/run/tpm_credential.h"

#include <array>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rsa.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/files/openssl.h"
#include "orchestrator/wire/tls.h"
#include "probes/core/record_reader.h"
#include "probes/core/text.h"

namespace assay::run {
namespace {

using files::Owned;

constexpr std::size_t kSecret = 32;
constexpr std::uint32_t kMagic = 0xBADCC0DE, kVersion = 1;  // of the file, tpm2-tools 5.4

unsigned char* raw(std::string& bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }
const unsigned char* raw(const std::string& bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }

/// `value` in `size` bytes, big endian.
std::string number(std::uint64_t value, int size) {
  std::string bytes;
  for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFF);
  return bytes;
}

std::string block(const std::string& bytes) { return number(bytes.size(), 2) + bytes; }

/// `size` bytes of KDFa; empty if OpenSSL has none.
std::string derived(std::string seed, std::string label, std::string context, std::size_t size) {
  const Owned<EVP_KDF, EVP_KDF_free> method(EVP_KDF_fetch(nullptr, "KBKDF", nullptr));
  const Owned<EVP_KDF_CTX, EVP_KDF_CTX_free> deriving(EVP_KDF_CTX_new(method.get()));
  std::string digest = "SHA256", mac = "HMAC", bytes(size, '\0');
  const std::array parameters = {OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
                                 OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_MAC, mac.data(), 0),
                                 OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, seed.data(), seed.size()),
                                 OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, label.data(), label.size()),
                                 OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, context.data(), context.size()),
                                 OSSL_PARAM_construct_end()};
  return deriving && EVP_KDF_derive(deriving.get(), raw(bytes), size, parameters.data()) == 1 ? bytes : "";
}

/// `bytes` in AES-128-CFB with an initial vector of zeros; empty on failure.
std::string encrypted(const std::string& key, const std::string& bytes) {
  const Owned<EVP_CIPHER_CTX, EVP_CIPHER_CTX_free> cipher(EVP_CIPHER_CTX_new());
  const std::string zeros(16, '\0');
  std::string out(bytes.size(), '\0');
  int size = 0;
  const bool done = cipher && !key.empty() &&
                    EVP_EncryptInit_ex(cipher.get(), EVP_aes_128_cfb128(), nullptr, raw(key), raw(zeros)) == 1 &&
                    EVP_EncryptUpdate(cipher.get(), raw(out), &size, raw(bytes), static_cast<int>(bytes.size())) == 1;
  return done && static_cast<std::size_t>(size) == bytes.size() ? out : "";
}

/// `seed` for the holder of the RSA key with this modulus and the exponent 65537; empty on failure.
std::string sealed(const std::string& modulus, const std::string& seed) {
  std::string little(modulus.rbegin(), modulus.rend());  // OSSL_PARAM has the machine's order of bytes
  unsigned long exponent = RSA_F4;
  const std::array key = {OSSL_PARAM_construct_BN(OSSL_PKEY_PARAM_RSA_N, raw(little), little.size()),
                          OSSL_PARAM_construct_ulong(OSSL_PKEY_PARAM_RSA_E, &exponent), OSSL_PARAM_construct_end()};
  const Owned<EVP_PKEY_CTX, EVP_PKEY_CTX_free> making(EVP_PKEY_CTX_new_from_name(nullptr, "RSA", nullptr));
  EVP_PKEY* made = nullptr;
  const bool is_key =
      making && EVP_PKEY_fromdata_init(making.get()) == 1 &&
      EVP_PKEY_fromdata(making.get(), &made, EVP_PKEY_PUBLIC_KEY, const_cast<OSSL_PARAM*>(key.data())) == 1;
  const Owned<EVP_PKEY, EVP_PKEY_free> owned(made);
  const Owned<EVP_PKEY_CTX, EVP_PKEY_CTX_free> sealing(is_key ? EVP_PKEY_CTX_new(owned.get(), nullptr) : nullptr);
  std::string digest = "SHA256", label("IDENTITY\0", 9), out(modulus.size(), '\0');
  int padding = RSA_PKCS1_OAEP_PADDING;
  const std::array rules = {
      OSSL_PARAM_construct_int(OSSL_ASYM_CIPHER_PARAM_PAD_MODE, &padding),
      OSSL_PARAM_construct_utf8_string(OSSL_ASYM_CIPHER_PARAM_OAEP_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_utf8_string(OSSL_ASYM_CIPHER_PARAM_MGF1_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_octet_string(OSSL_ASYM_CIPHER_PARAM_OAEP_LABEL, label.data(), label.size()),
      OSSL_PARAM_construct_end()};
  std::size_t size = out.size();
  const bool done = sealing && EVP_PKEY_encrypt_init_ex(sealing.get(), rules.data()) == 1 &&
                    EVP_PKEY_encrypt(sealing.get(), raw(out), &size, raw(seed), seed.size()) == 1;
  return done && size == out.size() ? out : "";
}

std::string random_bytes() { return from_hexadecimal(wire::random_hexadecimal(kSecret)).value_or(""); }

}  // namespace

std::optional<TpmCredential> make_credential(const judge::TpmKey& endorsement, const judge::TpmKey& signing) {
  if (!endorsement.endorses()) return std::nullopt;
  const std::string secret = random_bytes(), seed = random_bytes(), name = signing.name();
  if (secret.size() != kSecret || seed.size() != kSecret) return std::nullopt;
  const std::string for_key = sealed(endorsement.modulus, seed);
  const std::string identity = encrypted(derived(seed, "STORAGE", name, 16), block(secret));
  const std::string integrity_key = derived(seed, "INTEGRITY", "", 32);
  ERR_clear_error();
  if (for_key.empty() || identity.empty() || integrity_key.empty()) return std::nullopt;
  const std::string protects = identity + name;
  std::string integrity(32, '\0');
  unsigned size = 0;
  if (HMAC(EVP_sha256(), integrity_key.data(), static_cast<int>(integrity_key.size()), raw(protects), protects.size(),
           raw(integrity), &size) == nullptr)
    return std::nullopt;
  const std::string file =
      number(kMagic, 4) + number(kVersion, 4) + block(block(integrity) + identity) + block(for_key);
  return TpmCredential{.secret_sha256 = files::sha256(secret), .file = to_hexadecimal(file)};
}

TpmCredential credential_for(const std::string& output, const Description& probe) {
  TpmCredential none;
  const auto record = read_record(output, probe);
  if (!record || record->end.status != Status::complete) return none;  // the attempt itself says why
  const auto endorsement = judge::tpm_key_in(*record, "endorsement_key");
  const auto signing = judge::tpm_key_in(*record, "attestation_key");
  if (!endorsement || !signing || !signing->attests()) return none;
  return make_credential(*endorsement, *signing).value_or(none);
}

}  // namespace assay::run
