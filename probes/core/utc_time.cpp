// utc_time: ISO 8601 in UTC with milliseconds.
#include "probes/core/utc_time.h"

#include <ctime>

#include <fmt/format.h>

namespace assay {

std::string utc_text(std::chrono::system_clock::time_point moment) {
  using namespace std::chrono;
  const auto millis = floor<milliseconds>(moment);
  const auto day = floor<days>(millis);
  const year_month_day date(day);
  const hh_mm_ss clock(millis - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count(), clock.subseconds().count());
}

bool is_utc_text(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00.000Z";
  if (text.size() != kForm.size()) return false;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == '0' ? !digit : text[i] != kForm[i]) return false;
  }
  const auto field = [&](std::size_t at) { return (text[at] - '0') * 10 + (text[at + 1] - '0'); };
  return field(5) >= 1 && field(5) <= 12 && field(8) >= 1 && field(8) <= 31 && field(11) <= 23 && field(14) <= 59 &&
         field(17) <= 60;
}

std::optional<std::chrono::system_clock::time_point> utc_time(std::string_view text) {
  using namespace std::chrono;
  // The clock counts nanoseconds in 64 bits, from 1677 to 2262; a year beyond would come out as another one.
  constexpr year kFirst{1970}, kLast{2261};
  if (!is_utc_text(text)) return std::nullopt;
  const auto number = [&](std::size_t at, std::size_t digits) {
    unsigned value = 0;
    for (const char digit : text.substr(at, digits)) value = value * 10 + static_cast<unsigned>(digit - '0');
    return value;
  };
  const year_month_day date(year(static_cast<int>(number(0, 4))), month(number(5, 2)), day(number(8, 2)));
  if (!date.ok() || date.year() < kFirst || date.year() > kLast) return std::nullopt;
  return time_point_cast<system_clock::duration>(sys_days(date) + hours(number(11, 2)) + minutes(number(14, 2)) +
                                                 seconds(number(17, 2)) + milliseconds(number(20, 3)));
}

}  // namespace assay
