// public_key: OpenSSL's checks of signatures, with the checks of keys that OpenSSL omits.
#include "reports/dossier/public_key.h"

#include <algorithm>
#include <array>
#include <memory>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "probes/core/secret_file.h"
#include "probes/core/text.h"
#include "reports/dossier/base64.h"
#include "reports/dossier/openssl.h"
#include "reports/dossier/ssh_key.h"

namespace assay::dossier {
namespace {

constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kSignatureBytes = 64;

/// DER of a SubjectPublicKeyInfo up to the key itself: Ed25519 (RFC 8410, 4), P-256 and P-384 (RFC 5480, 2).
constexpr std::string_view kEd25519Prefix("\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 12);
constexpr std::string_view kP256Prefix(
    "\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00", 26);
constexpr std::string_view kP384Prefix(
    "\x30\x76\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x22\x03\x62\x00", 23);
constexpr std::size_t kP256Point = 65;
constexpr std::size_t kP384Point = 97;
constexpr char kUncompressed = 4;

/// The y coordinates of the eight points of small order (Curve25519's torsion), little-endian, sign bit cleared.
constexpr std::array<std::string_view, 5> kSmallOrder = {
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
};

Key from_der(const std::string& der) {
  const unsigned char* at = bytes_of(der);
  return Key(d2i_PUBKEY(nullptr, &at, static_cast<long>(der.size())));
}

std::string to_der(const EVP_PKEY* key) {
  unsigned char* bytes = nullptr;
  const int size = i2d_PUBKEY(key, &bytes);
  if (size <= 0) return "";
  std::string der(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  return der;
}

/// The SubjectPublicKeyInfo of a key, for a FIDO key of the one on its token.
std::string spki(const PublicKey& key) {
  switch (key.kind) {
    case KeyKind::ecdsa_p256:
    case KeyKind::fido_p256:
      return std::string(kP256Prefix) + key.raw;
    case KeyKind::ecdsa_p384:
      return std::string(kP384Prefix) + key.raw;
    case KeyKind::rsa:
      return key.raw;
    case KeyKind::ed25519:
    case KeyKind::fido_ed25519:
      break;
  }
  return std::string(kEd25519Prefix) + key.raw;
}

/// Whether a signature of so many bytes can be one of `key`: a statement may have 100 MB, and hashing it costs.
bool is_possible(const PublicKey& key, const EVP_PKEY* handle, std::string_view signature) {
  if (key.kind == KeyKind::ed25519 || key.kind == KeyKind::fido_ed25519) return signature.size() == kSignatureBytes;
  if (key.kind == KeyKind::rsa) return signature.size() == static_cast<std::size_t>(EVP_PKEY_get_size(handle));
  constexpr char kSequence = 0x30;
  return !signature.empty() && signature.front() == kSequence &&
         signature.size() <= static_cast<std::size_t>(EVP_PKEY_get_size(handle));
}

std::expected<PublicKey, InputError> checked_rsa(const EVP_PKEY* key, std::string der, const std::string& where) {
  constexpr int kFewestBits = 3072;
  constexpr int kMostBits = 8192;
  const int bits = EVP_PKEY_get_bits(key);
  if (bits < kFewestBits || bits > kMostBits) {
    return std::unexpected(InputError{where, fmt::format("is an RSA key of {} bits", bits),
                                      "3072 to 8192 are taken; a dossier is kept for years"});
  }
  BIGNUM* exponent = nullptr;
  EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_E, &exponent);
  const bool usual = exponent != nullptr && BN_is_word(exponent, RSA_F4) == 1;
  BN_free(exponent);
  if (!usual) return std::unexpected(InputError{where, "is an RSA key with another exponent than 65537", ""});
  return PublicKey{.raw = std::move(der), .kind = KeyKind::rsa};
}

}  // namespace

const char* digest_name(KeyKind kind) {
  switch (kind) {
    case KeyKind::ecdsa_p256:
    case KeyKind::fido_p256:
    case KeyKind::rsa:
      return "SHA256";
    case KeyKind::ecdsa_p384:
      return "SHA384";
    case KeyKind::ed25519:
    case KeyKind::fido_ed25519:
      break;
  }
  return nullptr;
}

std::string PublicKey::fingerprint() const {
  return files::sha256(application.empty() ? spki(*this) : ssh_public_blob(*this));
}

std::string PublicKey::text() const {
  if (!application.empty()) return ssh_public_line(*this);
  constexpr std::size_t kLine = 64;  // RFC 7468; a key of Ed25519 or P-256's first line is shorter or as long
  const std::string encoded = base64(spki(*this));
  std::string lines;
  for (std::size_t at = 0; at < encoded.size(); at += kLine) lines += encoded.substr(at, kLine) + "\n";
  return "-----BEGIN PUBLIC KEY-----\n" + lines + "-----END PUBLIC KEY-----\n";
}

bool PublicKey::verifies(std::string_view message, std::string_view signature) const {
  if (is_ssh_signature(signature)) return ssh_signature_verifies(*this, message, signature);
  return application.empty() && verifies_plain(message, signature);
}

bool PublicKey::verifies_plain(std::string_view message, std::string_view signature) const {
  const Key key = from_der(spki(*this));
  if (!key || !is_possible(*this, key.get(), signature)) return false;
  const DigestContext context(EVP_MD_CTX_new());
  if (!context ||
      EVP_DigestVerifyInit_ex(context.get(), nullptr, digest_name(kind), nullptr, nullptr, key.get(), nullptr) != 1)
    return false;
  return EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(), bytes_of(message), message.size()) == 1;
}

std::expected<PublicKey, InputError> public_key_from_raw(std::string_view raw, const std::string& where) {
  const auto refused = [&](const char* what) {
    return std::unexpected(InputError{where, what, "ask the signer for the public key again"});
  };
  if (raw.size() != kKeyBytes) return refused("is not 32 bytes");
  std::string y(raw);
  y.back() = static_cast<char>(static_cast<unsigned char>(y.back()) & 0x7fU);
  // p = 2^255 - 19 ends in ed ff … ff 7f, least significant byte first.
  const bool high = std::all_of(y.begin() + 1, y.end() - 1, [](char c) { return c == '\xff'; }) && y.back() == '\x7f';
  if (high && static_cast<unsigned char>(y.front()) >= 0xed) return refused("is not a canonical Ed25519 public key");
  if (std::ranges::find(kSmallOrder, to_hexadecimal(y)) != kSmallOrder.end())
    return refused("is a point of small order");
  return PublicKey{.raw = std::string(raw)};
}

std::expected<PublicKey, InputError> public_key_from_point(KeyKind kind, std::string_view point,
                                                           const std::string& where) {
  const std::size_t size = kind == KeyKind::ecdsa_p384 ? kP384Point : kP256Point;
  if (point.size() != size || point.front() != kUncompressed) {
    return std::unexpected(
        InputError{where, "is not an uncompressed point of its curve",
                   "openssl pkey -pubin -in FILE -ec_conv_form uncompressed -ec_param_enc named_curve"});
  }
  PublicKey key{.raw = std::string(point), .kind = kind};
  const Key handle = from_der(spki(key));
  using Context = std::unique_ptr<EVP_PKEY_CTX, Release<EVP_PKEY_CTX, EVP_PKEY_CTX_free>>;
  const Context context(handle ? EVP_PKEY_CTX_new_from_pkey(nullptr, handle.get(), nullptr) : nullptr);
  if (!context || EVP_PKEY_public_check(context.get()) != 1)
    return std::unexpected(InputError{where, "is no point of its curve", "ask the signer for the public key again"});
  return key;
}

std::expected<PublicKey, InputError> public_key_of(const evp_pkey_st* key, const std::string& where) {
  std::string der = to_der(key);
  switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_ED25519:
      return public_key_from_raw(std::string_view(der).substr(std::min(der.size(), kEd25519Prefix.size())), where);
    case EVP_PKEY_EC:
      for (const auto& [kind, prefix] :
           {std::pair(KeyKind::ecdsa_p256, kP256Prefix), std::pair(KeyKind::ecdsa_p384, kP384Prefix)}) {
        if (der.starts_with(prefix))
          return public_key_from_point(kind, std::string_view(der).substr(prefix.size()), where);
      }
      break;
    case EVP_PKEY_RSA:
      return checked_rsa(key, std::move(der), where);
    default:
      break;
  }
  return std::unexpected(InputError{where, "is a key of a kind that does not sign dossiers",
                                    "Ed25519, ECDSA on P-256 or P-384 (named curve, uncompressed point), or RSA"});
}

std::expected<PublicKey, InputError> public_key_from_pem(std::string_view pem, const std::string& where) {
  if (is_ssh_public(pem)) return ssh_public_key(pem, where);
  if (auto problem = check_one_block(pem, where)) return std::unexpected(*problem);
  if (pem.find("-----BEGIN CERTIFICATE-----") != std::string_view::npos) {
    return std::unexpected(
        InputError{where, "is a certificate, whose issuer and time only a trust policy can check",
                   "name its issuer in a policy, or take its key: openssl x509 -noout -pubkey -in FILE"});
  }
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const Key key(bio ? PEM_read_bio_PUBKEY(bio.get(), nullptr, no_passphrase, nullptr) : nullptr);
  if (!key) {
    return std::unexpected(
        InputError{where, "is not a public key in PEM", "name the .pub file that keygen wrote beside the private key"});
  }
  return public_key_of(key.get(), where);
}

std::expected<PublicKey, InputError> load_public_key(const std::string& path) {
  const auto pem = read_deciding_file(path, kLargestKeyFile);
  if (!pem) return std::unexpected(pem.error());
  return public_key_from_pem(*pem, path);
}

std::optional<InputError> check_one_block(std::string_view pem, const std::string& where) {
  constexpr std::string_view kBegin = "-----BEGIN ";
  int blocks = 0;
  for (auto at = pem.find(kBegin); at != std::string_view::npos; at = pem.find(kBegin, at + kBegin.size())) ++blocks;
  if (blocks <= 1) return std::nullopt;
  return InputError{where, fmt::format("has {} PEM blocks, and it is not clear which key is meant", blocks),
                    "write one key into a file of its own"};
}

}  // namespace assay::dossier
