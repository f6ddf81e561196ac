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

/// The moment that utc_text wrote as `text`; nothing if is_utc_text is false.
std::optional<std::chrono::system_clock::time_point> utc_time(std::string_view text);

}  // namespace assay
