// digest: SHA-256, as everywhere in plan, journal, manifest and protocol.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include "probes/core/error.h"

namespace assay::files {

/// SHA-256 of bytes that come in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  Sha256(Sha256&&) noexcept;
  void add(std::string_view bytes);
  /// As text() of the bytes so far; more may be added.
  [[nodiscard]] std::string so_far() const;
  /// 64 lower-case hex digits; nothing may be added after it.
  std::string text();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// SHA-256 of `bytes` as 64 lower-case hex digits.
std::string sha256(std::string_view bytes);

/// SHA-256 of a file's content, read in pieces; errors name the path.
std::expected<std::string, InputError> sha256_of_file(const std::string& path);

/// True for 64 lower-case hex digits.
bool is_sha256(std::string_view text);

}  // namespace assay::files
