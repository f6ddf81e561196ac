// utc_time: ISO 8601 in UTC with milliseconds.
#include "probes/core/utc_time.h"

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

namespace {

/// The number of `digits` digits from `at` on, in a text that has the form.
unsigned number(std::string_view text, std::size_t at, std::size_t digits) {
  unsigned value = 0;
  for (const char digit : text.substr(at, digits)) value = value * 10 + static_cast<unsigned>(digit - '0');
  return value;
}

std::chrono::year_month_day date_in(std::string_view text) {
  using namespace std::chrono;
  return {year(static_cast<int>(number(text, 0, 4))), month(number(text, 5, 2)), day(number(text, 8, 2))};
}

}  // namespace

bool is_utc_text(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00.000Z";
  // system_clock counts nanoseconds in 64 bits, from 1677 to 2262: a year beyond would be read as another one.
  constexpr std::chrono::year kFirst{1970}, kLast{2261};
  if (text.size() != kForm.size()) return false;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == '0' ? !digit : text[i] != kForm[i]) return false;
  }
  const auto date = date_in(text);
  return date.ok() && date.year() >= kFirst && date.year() <= kLast && number(text, 11, 2) <= 23 &&
         number(text, 14, 2) <= 59 && number(text, 17, 2) <= 60;
}

std::optional<std::chrono::system_clock::time_point> utc_time(std::string_view text) {
  using namespace std::chrono;
  if (!is_utc_text(text)) return std::nullopt;
  return time_point_cast<system_clock::duration>(sys_days(date_in(text)) + hours(number(text, 11, 2)) +
                                                 minutes(number(text, 14, 2)) + seconds(number(text, 17, 2)) +
                                                 milliseconds(number(text, 20, 3)));
}

std::optional<std::chrono::system_clock::time_point> given_time(std::string_view text) {
  using namespace std::chrono;
  constexpr std::size_t kDay = 10, kSecond = 19, kMostDigits = 9;
  if (text.size() == kDay) return utc_time(std::string(text) + "T00:00:00.000Z");
  if (text.size() <= kSecond) return std::nullopt;
  std::string whole(text.substr(0, kSecond));
  if (whole[kDay] == 't' || whole[kDay] == ' ') whole[kDay] = 'T';  // RFC 3339, 5.6
  auto moment = utc_time(whole + ".000Z");
  if (!moment) return std::nullopt;
  std::string_view zone = text.substr(kSecond);
  if (zone.front() == '.') {
    const auto digits = zone.substr(1, zone.find_first_not_of("0123456789", 1) - 1);
    if (digits.empty() || digits.size() > kMostDigits) return std::nullopt;
    const std::string nanos = std::string(digits) + std::string(kMostDigits - digits.size(), '0');
    *moment += duration_cast<system_clock::duration>(nanoseconds(number(nanos, 0, kMostDigits)));
    zone.remove_prefix(1 + digits.size());
  }
  if (zone == "Z" || zone == "z") return moment;
  constexpr std::string_view kOffset = "+00:00";
  if (zone.size() != kOffset.size() || (zone[0] != '+' && zone[0] != '-') || zone[3] != ':') return std::nullopt;
  for (const std::size_t place : {1, 2, 4, 5}) {
    if (zone[place] < '0' || zone[place] > '9') return std::nullopt;
  }
  if (number(zone, 1, 2) > 23 || number(zone, 4, 2) > 59) return std::nullopt;
  const auto offset = hours(number(zone, 1, 2)) + minutes(number(zone, 4, 2));
  return zone[0] == '+' ? *moment - offset : *moment + offset;
}

}  // namespace assay
