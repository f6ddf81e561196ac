// keys: private keys by OpenSSL, and their files.
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
#include "reports/dossier/openssl.h"
#include "reports/dossier/ssh_key.h"

namespace assay::dossier {
namespace {

constexpr std::size_t kSeedBytes = 32;

/// Gives OpenSSL the passphrase; -1 without one, because OpenSSL would prompt on the terminal otherwise.
int give_passphrase(char* buffer, int size, int, void* given) {
  const auto& passphrase = *static_cast<const std::string*>(given);
  if (passphrase.empty() || passphrase.size() > static_cast<std::size_t>(size)) return -1;
  std::ranges::copy(passphrase, buffer);
  return static_cast<int>(passphrase.size());
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

/// A private key that others can read is theirs as well; one that they can write may be only theirs.
std::optional<InputError> check_private(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;  // reading it says why
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) == 0) return std::nullopt;
  return InputError{path, fmt::format("has the mode {:04o}: others can use this private key", info.st_mode & 07777U),
                    fmt::format("chmod 600 {}", path)};
}

}  // namespace

void PrivateKey::Free::operator()(evp_pkey_st* key) const { EVP_PKEY_free(key); }

std::expected<PrivateKey, InputError> PrivateKey::from_seed(std::string_view seed) {
  EVP_PKEY* key = seed.size() == kSeedBytes
                      ? EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, bytes_of(seed), seed.size())
                      : nullptr;
  if (key == nullptr) return std::unexpected(InputError{"private key", "is not a seed of 32 bytes", ""});
  PrivateKey made(key);
  auto half = public_key_of(key, "private key");
  if (!half) return std::unexpected(half.error());
  made.public_ = std::move(*half);
  return made;
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
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
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
  auto half = public_key_of(key.key_.get(), where);
  if (!half) return std::unexpected(half.error());
  key.public_ = std::move(*half);
  return key;
}

std::expected<std::string, InputError> PrivateKey::sign(std::string_view message) const {
  return sign_with(key_.get(), public_, message, "private key");
}

std::expected<std::string, InputError> sign_with(evp_pkey_st* key, const PublicKey& half, std::string_view message,
                                                 const std::string& where) {
  const DigestContext context(EVP_MD_CTX_new());
  const EVP_MD* digest = digest_name(half.kind) == nullptr ? nullptr : EVP_get_digestbyname(digest_name(half.kind));
  std::size_t size = 0;
  std::string signature;
  bool made = context && EVP_DigestSignInit(context.get(), nullptr, digest, nullptr, key) == 1 &&
              EVP_DigestSign(context.get(), nullptr, &size, bytes_of(message), message.size()) == 1;
  if (made) {
    signature.resize(size);
    made = EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, bytes_of(message),
                          message.size()) == 1;
    signature.resize(made ? size : 0);
  }
  // Output of a token or a driver is kept only if it verifies.
  if (made && half.verifies_plain(message, signature)) return signature;
  return std::unexpected(InputError{where, "could not sign", "OpenSSL gave no signature that verifies"});
}

std::string PrivateKey::pem(const std::string& passphrase) const {
  const Bio bio(BIO_new(BIO_s_secmem()));
  const bool written = bio && (passphrase.empty() ? PEM_write_bio_PKCS8PrivateKey(bio.get(), key_.get(), nullptr,
                                                                                  nullptr, 0, nullptr, nullptr) == 1
                                                  : write_encrypted(bio.get(), key_.get(), passphrase));
  if (!written) throw std::runtime_error("OpenSSL could not write the private key");
  return bytes_in(bio.get());
}

std::expected<PublicKey, InputError> generate_key(const std::string& path, const std::string& passphrase) {
  std::string seed(kSeedBytes, '\0');
  if (RAND_priv_bytes(reinterpret_cast<unsigned char*>(seed.data()), static_cast<int>(seed.size())) != 1) {
    return std::unexpected(InputError{path, "no random bytes are available", ""});
  }
  const auto key = PrivateKey::from_seed(seed);
  OPENSSL_cleanse(seed.data(), seed.size());
  if (!key) return std::unexpected(key.error());
  PublicKey public_key = key->public_key();
  // The public key is written first: when it exists already, no secret is left behind.
  if (auto problem = files::create_file(path + ".pub", public_key.text(), 0644)) return std::unexpected(*problem);
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

}  // namespace assay::dossier
