// base64: RFC 4648, strict, as DSSE needs it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace assay::dossier {

/// `bytes` in the standard alphabet with padding.
std::string base64(std::string_view bytes);

/// The bytes that `text` stands for. Both alphabets are taken (DSSE demands it), but not mixed; padding must be there
/// and right; white space, other characters and non-zero trailing bits are refused, so that bytes have one spelling.
std::optional<std::string> base64_decoded(std::string_view text);

}  // namespace assay::dossier
