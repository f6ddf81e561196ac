// ssh_key: the formats of OpenSSH's PROTOCOL.key, RFC 8709 and PROTOCOL.sshsig, read as hostile input: every length and
// name is checked before a signature is.
#include "reports/dossier/ssh_key.h"

#include <algorithm>
#include <array>
#include <optional>

#include <openssl/evp.h>

#include <fmt/format.h>

#include "probes/core/text.h"
#include "reports/dossier/base64.h"
#include "reports/dossier/ssh_wire.h"

namespace assay::dossier {
namespace {

constexpr std::string_view kSshType = "ssh-ed25519";
constexpr std::string_view kSshBegin = "-----BEGIN OPENSSH PRIVATE KEY-----";
constexpr std::string_view kSshEnd = "-----END OPENSSH PRIVATE KEY-----";
constexpr std::string_view kSshMagic("openssh-key-v1\0", 15);
constexpr std::size_t kSshKeyBytes = 32;

/// A kind of key, as OpenSSH names it.
struct SshKind {
  std::string_view type;
  KeyKind kind;
  std::string_view curve;  ///< of ECDSA
  bool is_fido;
};

constexpr std::array kSshKinds = {
    SshKind{"ssh-ed25519", KeyKind::ed25519, "", false},
    SshKind{"ecdsa-sha2-nistp256", KeyKind::ecdsa_p256, "nistp256", false},
    SshKind{"ecdsa-sha2-nistp384", KeyKind::ecdsa_p384, "nistp384", false},
    SshKind{"sk-ssh-ed25519@openssh.com", KeyKind::fido_ed25519, "", true},
    SshKind{"sk-ecdsa-sha2-nistp256@openssh.com", KeyKind::fido_p256, "nistp256", true},
};

/// The 32 bytes in the blob of an Ed25519 key; nothing for another kind or form.
std::optional<std::string> raw_in(std::string_view blob) {
  SshFields fields(blob);
  const auto type = fields.text();
  const auto raw = fields.text();
  if (!fields.is_done() || type != kSshType || raw.size() != kSshKeyBytes) return std::nullopt;
  return std::string(raw);
}

/// The private part: twice the same number, the key, a comment, and padding 1, 2, 3, …
std::optional<std::string> seed_in(std::string_view secret, const std::string& raw) {
  SshFields fields(secret);
  const auto first = fields.number();
  const auto second = fields.number();
  const auto type = fields.text();
  const auto public_half = fields.text();
  const auto both = fields.text();
  fields.text();  // the comment
  if (!fields.is_whole() || first != second || type != kSshType || public_half != raw ||
      both.size() != 2 * kSshKeyBytes || both.substr(kSshKeyBytes) != raw)
    return std::nullopt;
  unsigned char pad = 0;
  for (const char c : fields.rest()) {
    if (static_cast<unsigned char>(c) != ++pad) return std::nullopt;
  }
  return std::string(both.substr(0, kSshKeyBytes));
}

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

bool is_ssh_private(std::string_view text) { return text.find(kSshBegin) != std::string_view::npos; }

bool is_ssh_public(std::string_view text) {
  const auto kind = text.substr(0, text.find(' '));
  return kind.starts_with("ssh-") || kind.starts_with("ecdsa-sha2-") || kind.starts_with("sk-");
}

std::string_view ssh_type(KeyKind kind) {
  const auto* const found = std::ranges::find(kSshKinds, kind, &SshKind::kind);
  return found == kSshKinds.end() ? std::string_view() : found->type;
}

std::string ssh_public_blob(const PublicKey& key) {
  const auto* const found = std::ranges::find(kSshKinds, key.kind, &SshKind::kind);
  if (found == kSshKinds.end()) return "";
  std::string blob = ssh_text(found->type);
  if (!found->curve.empty()) blob += ssh_text(found->curve);
  blob += ssh_text(key.raw);
  if (found->is_fido) blob += ssh_text(key.application);
  return blob;
}

std::string ssh_public_line(const PublicKey& key) {
  return fmt::format("{} {}\n", ssh_type(key.kind), base64(ssh_public_blob(key)));
}

std::expected<PublicKey, InputError> ssh_key_of_blob(std::string_view blob, const std::string& where) {
  const auto refused = [&] {
    return std::unexpected(
        InputError{where, "is not a public key of OpenSSH", "name the .pub file that ssh-keygen wrote"});
  };
  SshFields fields(blob);
  const auto type = fields.text();
  const auto* const kind = std::ranges::find(kSshKinds, type, &SshKind::type);
  if (kind == kSshKinds.end()) return refused();
  const auto curve = kind->curve.empty() ? std::string_view() : fields.text();
  const auto raw = fields.text();
  const auto application = kind->is_fido ? fields.text() : std::string_view();
  if (!fields.is_done() || curve != kind->curve || kind->is_fido == application.empty() ||
      (curve.empty() && raw.size() != kSshKeyBytes))
    return refused();
  auto key = kind->curve.empty() ? public_key_from_raw(raw, where) : public_key_from_point(kind->kind, raw, where);
  if (!key) return key;
  key->kind = kind->kind;
  key->application = application;
  return key;
}

std::expected<PublicKey, InputError> ssh_public_key(std::string_view text, const std::string& where) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  if (text.find('\n') != std::string_view::npos) {
    return std::unexpected(InputError{where, "has several lines, and it is not clear which key is meant",
                                      "write one key into a file of its own"});
  }
  const auto type = text.substr(0, text.find(' '));
  if (std::ranges::find(kSshKinds, type, &SshKind::type) == kSshKinds.end()) {
    return std::unexpected(InputError{where, fmt::format("is an SSH key of the kind {}", printable(std::string(type))),
                                      "dossiers are signed with Ed25519 or ECDSA, on a token too, and not with a "
                                      "certificate of OpenSSH: `ssh-keygen -t ed25519`"});
  }
  text.remove_prefix(std::min(text.size(), type.size() + 1));
  const auto blob = base64_decoded(text.substr(0, text.find(' ')));
  auto key = ssh_key_of_blob(blob.value_or(""), where);
  if (key && ssh_type(key->kind) != type)
    return std::unexpected(InputError{where, "names another kind of key than its blob has", "it is damaged"});
  return key;
}

std::expected<SshSecret, InputError> ssh_private_seed(std::string_view text, const std::string& where) {
  const auto refused = [&](const char* what, const char* hint) {
    return std::unexpected(InputError{where, what, hint});
  };
  const auto begin = text.find(kSshBegin);
  const auto end = text.find(kSshEnd, begin);
  if (end == std::string_view::npos) return refused("is not a whole private key of OpenSSH", "copy the file again");
  std::string body(text.substr(begin + kSshBegin.size(), end - begin - kSshBegin.size()));
  std::erase_if(body, [](char c) { return c == '\n' || c == '\r'; });
  auto blob = base64_decoded(body);
  std::ranges::fill(body, '\0');
  if (!blob || !blob->starts_with(kSshMagic))
    return refused("is not a private key of OpenSSH", "name the file that ssh-keygen wrote");
  SshFields fields(std::string_view(*blob).substr(kSshMagic.size()));
  const auto cipher = fields.text();
  const auto derivation = fields.text();
  fields.text();  // options of the derivation
  const auto keys = fields.number();
  const auto raw = raw_in(fields.text());
  const auto secret = fields.text();
  if (fields.is_whole() && (cipher != "none" || derivation != "none")) {
    return refused("is encrypted as OpenSSH does it, which is not supported",
                   "let the SSH agent sign: ssh-add KEY, and then name KEY.pub; or use a key of `assay-report keygen "
                   "--passphrase-file`");
  }
  if (!fields.is_whole() || keys != 1U || !raw)
    return refused("is not an Ed25519 key of OpenSSH",
                   "`ssh-keygen -t ed25519` makes one; of a key on a token name the .pub file, and its agent signs");
  auto seed = seed_in(secret, *raw);
  std::ranges::fill(*blob, '\0');
  if (!seed) return refused("has a private half that is not of its public half", "the file is damaged");
  return SshSecret{.seed = std::move(*seed), .public_raw = *raw};
}

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
