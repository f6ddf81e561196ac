// night: local dates by <chrono>.
#include "orchestrator/sweep/night.h"

#include <ctime>

namespace assay::sweep {
namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::hours;

/// The whole number of `length` digits at `at`; nothing if there is another character.
std::optional<int> digits_at(std::string_view text, std::size_t at, std::size_t length) {
  if (at + length > text.size()) return std::nullopt;
  int value = 0;
  for (const char c : text.substr(at, length)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace

Night night_of(std::chrono::system_clock::time_point moment, std::chrono::seconds offset) {
  return floor<days>(moment + offset - hours(12));
}

std::chrono::seconds local_offset(std::chrono::system_clock::time_point moment) {
  const std::time_t time = std::chrono::system_clock::to_time_t(moment);
  std::tm local{};
  if (::localtime_r(&time, &local) == nullptr) return std::chrono::seconds(0);
  return std::chrono::seconds(local.tm_gmtoff);
}

std::optional<std::chrono::system_clock::time_point> next_time(std::string_view text,
                                                               std::chrono::system_clock::time_point now,
                                                               std::chrono::seconds offset) {
  if (text.size() != 5 || text[2] != ':') return std::nullopt;
  const auto hour = digits_at(text, 0, 2), minute = digits_at(text, 3, 2);
  if (!hour || !minute || *hour > 23 || *minute > 59) return std::nullopt;
  const auto local = now + offset;
  auto then = floor<days>(local) + hours(*hour) + std::chrono::minutes(*minute);
  if (then <= local) then += days(1);
  return std::chrono::system_clock::time_point(then - offset);
}

}  // namespace assay::sweep
