// digest: OpenSSL's SHA-256, by its low-level functions. EVP would drag providers, a configuration file and dlopen into
// assay-node, which is one static file. Deprecated since OpenSSL 3.0 and still in 3.x; go back to EVP when they go.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "orchestrator/files/digest.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <stdexcept>

#include <openssl/sha.h>

#include "probes/core/text.h"

namespace assay::files {

struct Sha256::Context {
  SHA256_CTX state = {};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  if (SHA256_Init(&context_->state) != 1) throw std::runtime_error("OpenSSL has no SHA-256");
}

Sha256::~Sha256() = default;

void Sha256::add(std::string_view bytes) {
  if (SHA256_Update(&context_->state, bytes.data(), bytes.size()) != 1)
    throw std::runtime_error("SHA-256 update failed");
}

Sha256::Sha256(Sha256&&) noexcept = default;

std::string Sha256::text() {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> raw = {};
  if (SHA256_Final(raw.data(), &context_->state) != 1) throw std::runtime_error("SHA-256 final failed");
  return to_hexadecimal({reinterpret_cast<const char*>(raw.data()), raw.size()});
}

std::string Sha256::so_far() const {
  Sha256 copy;
  copy.context_->state = context_->state;
  return copy.text();
}

std::string sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.text();
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
  return hash.text();
}

bool is_sha256(std::string_view text) {
  constexpr std::size_t kHexDigits = 64;
  return text.size() == kHexDigits &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace assay::files
