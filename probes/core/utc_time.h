// utc_time: a time as text, the same everywhere.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

/// `moment` as "2026-01-05T06:37:41.211Z".
std::string utc_text(std::chrono::system_clock::time_point moment);

/// True when `text` has exactly the form that utc_text writes and is a day and an hour that exist, from 1970 to 2261.
bool is_utc_text(std::string_view text);

/// A time as people write it: a day, "2026-01-05", whose first moment in UTC it is, or a time of RFC 3339 with its zone
/// and any fraction of a second or none, "2026-01-05T06:37:41Z", "2026-01-05 07:37:41.5+01:00". Nothing for another
/// form, and for a day or an hour that does not exist.
std::optional<std::chrono::system_clock::time_point> given_time(std::string_view text);

/// The hint of an error of given_time.
inline constexpr const char* kGivenTimeHint = "a day, 2026-01-05, or a time with its zone, 2026-01-05T06:37:41Z";

/// The moment that utc_text wrote as `text`; nothing if is_utc_text is false.
std::optional<std::chrono::system_clock::time_point> utc_time(std::string_view text);

}  // namespace assay
