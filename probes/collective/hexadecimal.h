// hexadecimal: bytes as text that goes through JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace assay {

/// Two lower-case digits for each byte.
std::string to_hexadecimal(std::string_view bytes);

/// The bytes of to_hexadecimal; nothing for any other text.
std::optional<std::string> from_hexadecimal(std::string_view digits);

}  // namespace assay
