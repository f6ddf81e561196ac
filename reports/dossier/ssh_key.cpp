// ssh_key: the formats of OpenSSH's PROTOCOL.key and RFC 8709, read as hostile input.
#include "reports/dossier/ssh_key.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "probes/core/text.h"
#include "reports/dossier/base64.h"

namespace assay::dossier {
namespace {

constexpr std::string_view kSshType = "ssh-ed25519";
constexpr std::string_view kSshBegin = "-----BEGIN OPENSSH PRIVATE KEY-----";
constexpr std::string_view kSshEnd = "-----END OPENSSH PRIVATE KEY-----";
constexpr std::string_view kSshMagic("openssh-key-v1\0", 15);
constexpr std::size_t kSshKeyBytes = 32;

/// Reads the fields of a blob from its front; after the first field that is not whole, nothing is read any more.
class Fields {
 public:
  explicit Fields(std::string_view blob) : rest_(blob) {}

  std::optional<std::uint32_t> number() {
    constexpr std::size_t kBytes = 4;
    if (rest_.size() < kBytes) return fail();
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < kBytes; ++i) value = value << 8U | static_cast<unsigned char>(rest_[i]);
    rest_.remove_prefix(kBytes);
    return value;
  }

  std::string_view text() {
    const auto size = number();
    if (!size || *size > rest_.size()) {
      fail();
      return {};
    }
    const auto field = rest_.substr(0, *size);
    rest_.remove_prefix(*size);
    return field;
  }

  [[nodiscard]] bool is_whole() const { return whole_; }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::nullopt_t fail() {
    whole_ = false;
    rest_ = {};
    return std::nullopt;
  }

  std::string_view rest_;
  bool whole_ = true;
};

/// The 32 bytes in the blob of a public key; nothing for another kind or form.
std::optional<std::string> raw_in(std::string_view blob) {
  Fields fields(blob);
  const auto type = fields.text();
  const auto raw = fields.text();
  if (!fields.is_whole() || !fields.rest().empty() || type != kSshType || raw.size() != kSshKeyBytes)
    return std::nullopt;
  return std::string(raw);
}

/// The private part: twice the same number, the key, a comment, and padding 1, 2, 3, …
std::optional<std::string> seed_in(std::string_view secret, const std::string& raw) {
  Fields fields(secret);
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

}  // namespace

bool is_ssh_private(std::string_view text) { return text.find(kSshBegin) != std::string_view::npos; }

bool is_ssh_public(std::string_view text) {
  const auto kind = text.substr(0, text.find(' '));
  return kind.starts_with("ssh-") || kind.starts_with("ecdsa-sha2-") || kind.starts_with("sk-");
}

std::expected<std::string, InputError> ssh_public_raw(std::string_view text, const std::string& where) {
  const auto refused = [&](const std::string& what, const char* hint) {
    return std::unexpected(InputError{where, what, hint});
  };
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  if (text.find('\n') != std::string_view::npos)
    return refused("has several lines, and it is not clear which key is meant", "write one key into a file of its own");
  if (!text.starts_with(kSshPublic)) {
    return refused(fmt::format("is an SSH key of the kind {}", printable(std::string(text.substr(0, text.find(' '))))),
                   "statements are signed with Ed25519: `ssh-keygen -t ed25519`; keys on a token sign other bytes");
  }
  text.remove_prefix(kSshPublic.size());
  const auto blob = base64_decoded(text.substr(0, text.find(' ')));
  auto raw = blob ? raw_in(*blob) : std::nullopt;
  if (!raw) return refused("is not a public key of OpenSSH", "name the .pub file that ssh-keygen wrote");
  return *raw;
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
  Fields fields(std::string_view(*blob).substr(kSshMagic.size()));
  const auto cipher = fields.text();
  const auto derivation = fields.text();
  fields.text();  // options of the derivation
  const auto keys = fields.number();
  const auto raw = raw_in(fields.text());
  const auto secret = fields.text();
  if (fields.is_whole() && (cipher != "none" || derivation != "none")) {
    return refused("is encrypted as OpenSSH does it, which is not supported",
                   "write it without a passphrase on an encrypted disk: cp KEY COPY && ssh-keygen -p -N '' -f COPY; or "
                   "use a key of `assay-report keygen --passphrase-file`");
  }
  if (!fields.is_whole() || keys != 1U || !raw)
    return refused("is not an Ed25519 key of OpenSSH",
                   "`ssh-keygen -t ed25519` makes one; keys on a token do not sign");
  auto seed = seed_in(secret, *raw);
  std::ranges::fill(*blob, '\0');
  if (!seed) return refused("has a private half that is not of its public half", "the file is damaged");
  return SshSecret{.seed = std::move(*seed), .public_raw = *raw};
}

}  // namespace assay::dossier
