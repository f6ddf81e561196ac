// keys: OpenSSL's Ed25519, with the checks of public keys that OpenSSL omits.
#include "reports/dossier/keys.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <system_error>

#include <sys/stat.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rand.h>
#include <openssl/x509.h>

#include <fmt/format.h>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/digest.h"
#include "probes/core/text.h"
#include "reports/dossier/base64.h"
#include "reports/dossier/ssh_key.h"

namespace assay::dossier {
namespace {

constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kSignatureBytes = 64;
constexpr std::size_t kLargestKeyFile = 64 << 10;  // a PEM of one key has less than 1 KiB

/// DER of a SubjectPublicKeyInfo for Ed25519 up to the key itself (RFC 8410, 4).
constexpr std::string_view kSpkiPrefix("\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 12);

/// The y coordinates of the eight points of small order (Curve25519's torsion), little-endian, sign bit cleared.
constexpr std::array<std::string_view, 5> kSmallOrder = {
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
};

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());  // OpenSSL's type for bytes
}

std::string contents(BIO* bio) {
  char* start = nullptr;
  const long size = BIO_get_mem_data(bio, &start);
  return {start, static_cast<std::size_t>(size)};
}

/// Gives OpenSSL the passphrase; -1 without one, because OpenSSL would prompt on the terminal otherwise.
int give_passphrase(char* buffer, int size, int, void* given) {
  const auto& passphrase = *static_cast<const std::string*>(given);
  if (passphrase.empty() || passphrase.size() > static_cast<std::size_t>(size)) return -1;
  std::ranges::copy(passphrase, buffer);
  return static_cast<int>(passphrase.size());
}

std::string raw_public(const EVP_PKEY* key) {
  std::string raw(kKeyBytes, '\0');
  std::size_t size = raw.size();
  if (EVP_PKEY_get_raw_public_key(key, reinterpret_cast<unsigned char*>(raw.data()), &size) != 1 || size != kKeyBytes)
    return "";
  return raw;
}

/// Writes `key` as an EncryptedPrivateKeyInfo; false when OpenSSL cannot.
bool write_encrypted(BIO* bio, const EVP_PKEY* key, const std::string& passphrase) {
  using Info = std::unique_ptr<PKCS8_PRIV_KEY_INFO, decltype(&PKCS8_PRIV_KEY_INFO_free)>;
  using Sealed = std::unique_ptr<X509_SIG, decltype(&X509_SIG_free)>;
  const Info info(EVP_PKEY2PKCS8(key), PKCS8_PRIV_KEY_INFO_free);
  if (!info) return false;
  X509_ALGOR* scheme =
      PKCS5_pbe2_set_iv(EVP_aes_256_cbc(), kPassphraseRounds, nullptr, 0, nullptr, NID_hmacWithSHA256);  // random salt
  if (scheme == nullptr) return false;
  const Sealed sealed(PKCS8_set0_pbe(passphrase.data(), static_cast<int>(passphrase.size()), info.get(), scheme),
                      X509_SIG_free);
  if (!sealed) {
    X509_ALGOR_free(scheme);
    return false;
  }
  return PEM_write_bio_PKCS8(bio, sealed.get()) == 1;
}

/// A file of several PEM blocks is ambiguous: OpenSSL reads the first and says nothing of the others.
std::optional<InputError> check_one_block(std::string_view pem, const std::string& where) {
  constexpr std::string_view kBegin = "-----BEGIN ";
  int blocks = 0;
  for (auto at = pem.find(kBegin); at != std::string_view::npos; at = pem.find(kBegin, at + kBegin.size())) ++blocks;
  if (blocks <= 1) return std::nullopt;
  return InputError{where, fmt::format("has {} PEM blocks, and it is not clear which key is meant", blocks),
                    "write one key into a file of its own"};
}

/// A private key that others can read is theirs as well; one that they can write may be theirs alone.
std::optional<InputError> check_private(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;  // reading it says why
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) == 0) return std::nullopt;
  return InputError{path, fmt::format("has the mode {:04o}: others can use this private key", info.st_mode & 07777U),
                    fmt::format("chmod 600 {}", path)};
}

}  // namespace

std::string PublicKey::fingerprint() const { return files::sha256(std::string(kSpkiPrefix) + raw); }

std::string PublicKey::pem() const {
  return "-----BEGIN PUBLIC KEY-----\n" + base64(std::string(kSpkiPrefix) + raw) + "\n-----END PUBLIC KEY-----\n";
}

bool PublicKey::verifies(std::string_view message, std::string_view signature) const {
  if (signature.size() != kSignatureBytes) return false;
  const Key key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, bytes_of(raw), raw.size()), EVP_PKEY_free);
  const DigestContext context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (!key || !context || EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1) return false;
  return EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(), bytes_of(message), message.size()) == 1;
}

void PrivateKey::Free::operator()(evp_pkey_st* key) const { EVP_PKEY_free(key); }

std::expected<PrivateKey, InputError> PrivateKey::from_seed(std::string_view seed) {
  EVP_PKEY* key = seed.size() == kKeyBytes
                      ? EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, bytes_of(seed), seed.size())
                      : nullptr;
  if (key == nullptr) return std::unexpected(InputError{"private key", "is not a seed of 32 bytes", ""});
  return PrivateKey(key);
}

std::expected<PrivateKey, InputError> PrivateKey::from_pem(std::string_view pem, const std::string& passphrase,
                                                           const std::string& where) {
  if (auto problem = check_one_block(pem, where)) return std::unexpected(*problem);
  if (is_ssh_private(pem)) {
    auto seed = ssh_private_seed(pem, where);
    if (!seed) return std::unexpected(seed.error());
    auto made = from_seed(seed->seed);
    OPENSSL_cleanse(seed->seed.data(), seed->seed.size());
    if (made && made->public_key().raw != seed->public_raw)
      return std::unexpected(InputError{where, "has a private half that is not of its public half", "it is damaged"});
    return made;
  }
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  std::string copy = passphrase;
  PrivateKey key(bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, give_passphrase, &copy) : nullptr);
  OPENSSL_cleanse(copy.data(), copy.size());
  if (!key.key_ && pem.find("ENCRYPTED PRIVATE KEY-----") != std::string_view::npos) {
    return std::unexpected(
        passphrase.empty()
            ? InputError{where, "is encrypted", "name a file whose first line is its passphrase: --passphrase-file"}
            : InputError{where, "is not decrypted by the passphrase", "check the file of --passphrase-file"});
  }
  if (!key.key_ && pem.find("BEGIN PUBLIC KEY-----") != std::string_view::npos) {
    return std::unexpected(InputError{
        where, "is a public key; the private one signs",
        where.ends_with(".pub") ? fmt::format("name {}", where.substr(0, where.size() - 4)) : "name the private key"});
  }
  if (!key.key_) {
    return std::unexpected(InputError{where, "is not a private key that can be decrypted",
                                      "it must be PKCS#8 PEM; name --passphrase-file when it is encrypted"});
  }
  if (EVP_PKEY_get_id(key.key_.get()) != EVP_PKEY_ED25519) {
    return std::unexpected(InputError{where, "is not an Ed25519 key", "make one with `assay-report keygen FILE`"});
  }
  return key;
}

PublicKey PrivateKey::public_key() const { return {.raw = raw_public(key_.get())}; }

std::string PrivateKey::sign(std::string_view message) const {
  const DigestContext context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  std::string signature(kSignatureBytes, '\0');
  std::size_t size = signature.size();
  if (!context || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) != 1 ||
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, bytes_of(message),
                     message.size()) != 1 ||
      size != kSignatureBytes) {
    throw std::runtime_error("OpenSSL could not sign");
  }
  return signature;
}

std::string PrivateKey::pem(const std::string& passphrase) const {
  const Bio bio(BIO_new(BIO_s_secmem()), BIO_free);
  const bool written = bio && (passphrase.empty() ? PEM_write_bio_PKCS8PrivateKey(bio.get(), key_.get(), nullptr,
                                                                                  nullptr, 0, nullptr, nullptr) == 1
                                                  : write_encrypted(bio.get(), key_.get(), passphrase));
  if (!written) throw std::runtime_error("OpenSSL could not write the private key");
  return contents(bio.get());
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

std::expected<PublicKey, InputError> public_key_from_pem(std::string_view pem, const std::string& where) {
  if (is_ssh_public(pem)) {
    const auto raw = ssh_public_raw(pem, where);
    if (!raw) return std::unexpected(raw.error());
    return public_key_from_raw(*raw, where);
  }
  if (auto problem = check_one_block(pem, where)) return std::unexpected(*problem);
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  std::string none;
  const Key key(bio ? PEM_read_bio_PUBKEY(bio.get(), nullptr, give_passphrase, &none) : nullptr, EVP_PKEY_free);
  if (!key) {
    return std::unexpected(
        InputError{where, "is not a public key in PEM", "name the .pub file that keygen wrote beside the private key"});
  }
  if (EVP_PKEY_get_id(key.get()) != EVP_PKEY_ED25519)
    return std::unexpected(InputError{where, "is not an Ed25519 key", ""});
  return public_key_from_raw(raw_public(key.get()), where);
}

std::expected<PublicKey, InputError> generate_key(const std::string& path, const std::string& passphrase) {
  std::string seed(kKeyBytes, '\0');
  if (RAND_priv_bytes(reinterpret_cast<unsigned char*>(seed.data()), static_cast<int>(seed.size())) != 1) {
    return std::unexpected(InputError{path, "no random bytes are available", ""});
  }
  const auto key = PrivateKey::from_seed(seed);
  OPENSSL_cleanse(seed.data(), seed.size());
  if (!key) return std::unexpected(key.error());
  PublicKey public_key = key->public_key();
  // The public key is written first: when it exists already, no secret is left behind.
  if (auto problem = files::create_file(path + ".pub", public_key.pem(), 0644)) return std::unexpected(*problem);
  std::string secret = key->pem(passphrase);
  const auto problem = files::create_file(path, secret, 0600);
  OPENSSL_cleanse(secret.data(), secret.size());
  if (problem) {
    std::error_code ignored;  // a public key without its private key is harmless
    std::filesystem::remove(path + ".pub", ignored);
    return std::unexpected(*problem);
  }
  return public_key;
}

std::expected<std::string, InputError> read_passphrase(const std::string& path) {
  if (path.empty()) return "";
  auto text = read_file(path, kLargestKeyFile);
  if (!text) return text;
  std::string line = text->substr(0, text->find_first_of("\r\n"));
  if (line.empty())
    return std::unexpected(InputError{path, "has no passphrase in its first line", "write the passphrase there"});
  return line;
}

std::expected<PrivateKey, InputError> load_private_key(const std::string& path, const std::string& passphrase_file) {
  if (auto problem = check_private(path)) return std::unexpected(*problem);
  auto passphrase = read_passphrase(passphrase_file);
  if (!passphrase) return std::unexpected(passphrase.error());
  auto pem = read_file(path, kLargestKeyFile);
  if (!pem) return std::unexpected(pem.error());
  auto key = PrivateKey::from_pem(*pem, *passphrase, path);
  OPENSSL_cleanse(pem->data(), pem->size());
  OPENSSL_cleanse(passphrase->data(), passphrase->size());
  return key;
}

std::expected<PublicKey, InputError> load_public_key(const std::string& path) {
  const auto pem = read_file(path, kLargestKeyFile);
  if (!pem) return std::unexpected(pem.error());
  return public_key_from_pem(*pem, path);
}

}  // namespace assay::dossier
