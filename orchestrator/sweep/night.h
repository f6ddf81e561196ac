// night: which night a moment belongs to, and when it ends.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "orchestrator/drift/night.h"

namespace assay::sweep {

/// A night by the local date on which it began.
using Night = drift::Date;

/// The night of `moment` where local time is `offset` ahead of UTC: the local date twelve hours before. A sweep that
/// goes over midnight, and one that is begun again after the clock was set back by an hour, have one night.
Night night_of(std::chrono::system_clock::time_point moment, std::chrono::seconds offset);

/// How far this machine's local time is ahead of UTC at `moment`.
std::chrono::seconds local_offset(std::chrono::system_clock::time_point moment);

/// The next moment after `now` at which the local clock shows `text`, "06:00"; nothing for a text that is no time of a
/// day.
std::optional<std::chrono::system_clock::time_point> next_time(std::string_view text,
                                                               std::chrono::system_clock::time_point now,
                                                               std::chrono::seconds offset);

}  // namespace assay::sweep
