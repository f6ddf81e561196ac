// base64: RFC 4648, strict, as DSSE needs it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace assay::dossier {

/// `bytes` in the standard alphabet with padding.
std::string base64(std::string_view bytes);

/// The bytes that `text` encodes. Both alphabets are accepted (DSSE requires it), but not mixed; padding is required;
/// white space, other characters and non-zero trailing bits are refused, so that bytes have one spelling.
std::optional<std::string> base64_decoded(std::string_view text);

}  // namespace assay::dossier
