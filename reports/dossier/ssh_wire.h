// ssh_wire: the data types of SSH (RFC 4251, 5), read as hostile input and written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay::dossier {

/// Reads the fields of a blob from its front; after the first field that is not whole, nothing is read any more.
class SshFields {
 public:
  explicit SshFields(std::string_view blob) : rest_(blob) {}

  std::optional<std::uint32_t> number() {
    constexpr std::size_t kBytes = 4;
    if (rest_.size() < kBytes) return fail();
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < kBytes; ++i) value = value << 8U | static_cast<unsigned char>(rest_[i]);
    rest_.remove_prefix(kBytes);
    return value;
  }

  std::optional<unsigned char> byte() {
    if (rest_.empty()) return fail();
    const auto value = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
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

  /// Whether every field was whole.
  [[nodiscard]] bool is_whole() const { return whole_; }
  /// The same, and nothing is left.
  [[nodiscard]] bool is_done() const { return whole_ && rest_.empty(); }
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

/// A number of 32 bits, most significant byte first.
inline std::string ssh_number(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes += static_cast<char>(value >> static_cast<unsigned>(shift) & 0xffU);
  return bytes;
}

/// Its length and the bytes.
inline std::string ssh_text(std::string_view bytes) {
  return ssh_number(static_cast<std::uint32_t>(bytes.size())) + std::string(bytes);
}

}  // namespace assay::dossier
