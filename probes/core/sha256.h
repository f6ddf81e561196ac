// sha256: SHA-256 (FIPS 180-4) and HMAC with it (RFC 2104), for probes, which link no cryptographic library.
#pragma once

#include <string>
#include <string_view>

namespace assay {

/// The 32 bytes of SHA-256 of `bytes`.
std::string sha256_of(std::string_view bytes);

/// The 32 bytes of HMAC-SHA-256 of `message` under `key`.
std::string hmac_sha256(std::string_view key, std::string_view message);

}  // namespace assay
