// digest: OpenSSL's SHA-256.
#include "orchestrator/digest.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <stdexcept>

#include <openssl/evp.h>

namespace assay {
namespace {

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) throw std::runtime_error("OpenSSL has no SHA-256");
  }
  void add(std::string_view bytes) {
    if (EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) != 1) throw std::runtime_error("SHA-256 update failed");
  }
  std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> raw = {};
    unsigned length = 0;
    if (EVP_DigestFinal_ex(context_.get(), raw.data(), &length) != 1) throw std::runtime_error("SHA-256 final failed");
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (unsigned i = 0; i < length; ++i) {
      text += kDigits[raw[i] >> 4U];
      text += kDigits[raw[i] & 15U];
    }
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

std::string sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.hex();
}

std::expected<std::string, InputError> sha256_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::unexpected(InputError{path, "cannot be read", "check the path and its permissions"});
  Sha256 hash;
  std::array<char, 1 << 16> piece;
  while (file.read(piece.data(), piece.size()) || file.gcount() > 0) {
    hash.add({piece.data(), static_cast<std::size_t>(file.gcount())});
  }
  if (file.bad()) return std::unexpected(InputError{path, "could not be read whole", "check the disk"});
  return hash.hex();
}

bool is_sha256(std::string_view text) {
  constexpr std::size_t kHexDigits = 64;
  return text.size() == kHexDigits &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace assay
