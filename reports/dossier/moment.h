// moment: a point in time of a document or an option.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace assay::dossier {

using Moment = std::chrono::system_clock::time_point;

/// The first moment of a day in UTC, "2026-01-05", or a text that utc_time reads; nothing for another form, and for a
/// day or an hour that does not exist.
std::optional<Moment> day_or_time(std::string_view text);

}  // namespace assay::dossier
