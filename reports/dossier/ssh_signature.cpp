// ssh_signature: every length and name is checked before a signature is.
#include "reports/dossier/ssh_signature.h"

#include <optional>

#include <openssl/evp.h>

#include "reports/dossier/base64.h"
#include "reports/dossier/ssh_key.h"
#include "reports/dossier/ssh_wire.h"

namespace assay::dossier {
namespace {

constexpr std::string_view kMagic = "SSHSIG";
constexpr std::string_view kBegin = "-----BEGIN SSH SIGNATURE-----";
constexpr std::string_view kEnd = "-----END SSH SIGNATURE-----";

std::optional<std::string> digest(std::string_view name, std::string_view message) {
  const EVP_MD* kind = name == "sha512" ? EVP_sha512() : name == "sha256" ? EVP_sha256() : nullptr;
  if (kind == nullptr) return std::nullopt;
  std::string bytes(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  if (EVP_Digest(message.data(), message.size(), reinterpret_cast<unsigned char*>(bytes.data()), &size, kind,
                 nullptr) != 1)
    return std::nullopt;
  bytes.resize(size);
  return bytes;
}

/// An ECDSA signature of SSH as DER: both write their integers alike. OpenSSL refuses DER that is not strict.
std::string der_of(std::string_view numbers) {
  constexpr std::size_t kLongest = 49;  // of P-384, with a zero before a high bit
  SshFields fields(numbers);
  const auto r = fields.text();
  const auto s = fields.text();
  if (!fields.is_done() || r.size() > kLongest || s.size() > kLongest) return "";
  const auto integer = [](std::string_view bytes) {
    return std::string("\x02") + static_cast<char>(bytes.size()) + std::string(bytes);
  };
  const std::string both = integer(r) + integer(s);
  return std::string("\x30") + static_cast<char>(both.size()) + both;
}

/// The signature of a key inside an SSHSIG, over `signed_bytes`.
bool inner_verifies(const PublicKey& key, std::string_view signed_bytes, std::string_view blob) {
  SshFields fields(blob);
  const bool right_type = fields.text() == ssh_type(key.kind);
  const auto bytes = fields.text();
  std::string message(signed_bytes);
  if (!key.application.empty()) {
    constexpr unsigned char kTouched = 1;  // user presence, CTAP2
    const auto flags = fields.byte();
    const auto counter = fields.number();
    if (!flags || !counter || (*flags & kTouched) == 0) return false;
    message = *digest("sha256", key.application) + static_cast<char>(*flags) + ssh_number(*counter) +
              *digest("sha256", signed_bytes);
  }
  if (!right_type || !fields.is_done()) return false;
  const bool plain = key.kind == KeyKind::ed25519 || key.kind == KeyKind::fido_ed25519;
  return key.verifies_plain(message, plain ? std::string(bytes) : der_of(bytes));
}

}  // namespace

bool is_ssh_signature(std::string_view signature) { return signature.starts_with(kMagic); }

bool ssh_signature_verifies(const PublicKey& key, std::string_view message, std::string_view signature) {
  const std::string own = ssh_public_blob(key);
  if (!is_ssh_signature(signature) || own.empty()) return false;
  SshFields fields(signature.substr(kMagic.size()));
  const auto version = fields.number();
  const auto blob = fields.text();
  const auto name_space = fields.text();
  const auto reserved = fields.text();
  const auto hash = fields.text();
  const auto inner = fields.text();
  if (!fields.is_done() || version != 1U || blob != own || name_space != kSshNamespace || !reserved.empty())
    return false;
  const auto hashed = digest(hash, message);
  if (!hashed) return false;
  const std::string signed_bytes =
      std::string(kMagic) + ssh_text(name_space) + ssh_text(reserved) + ssh_text(hash) + ssh_text(*hashed);
  return inner_verifies(key, signed_bytes, inner);
}

std::expected<std::string, InputError> ssh_signature_in(std::string_view armored, const std::string& where) {
  const auto begin = armored.find(kBegin);
  const auto end = armored.find(kEnd, begin == std::string_view::npos ? armored.size() : begin);
  std::string body;
  if (end != std::string_view::npos) body = armored.substr(begin + kBegin.size(), end - begin - kBegin.size());
  std::erase_if(body, [](char c) { return c == '\n' || c == '\r'; });
  auto blob = base64_decoded(body);
  if (!blob || !is_ssh_signature(*blob))
    return std::unexpected(InputError{where, "is not a signature of `ssh-keygen -Y sign`", ""});
  return *std::move(blob);
}

}  // namespace assay::dossier
