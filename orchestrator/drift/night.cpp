// night: dates to text and back.
#include "orchestrator/drift/night.h"

#include <charconv>

#include <fmt/format.h>

namespace assay::drift {

std::string date_text(Date date) {
  const std::chrono::year_month_day day{date};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()), static_cast<unsigned>(day.month()),
                     static_cast<unsigned>(day.day()));
}

std::optional<Date> date_from(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00";
  if (text.size() != kForm.size()) return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] == '-' ? text[i] != '-' : text[i] < '0' || text[i] > '9') return std::nullopt;
  }
  const auto number = [&](std::size_t at, std::size_t length) {
    unsigned value = 0;
    (void)std::from_chars(text.data() + at, text.data() + at + length, value);  // digits, as just seen
    return value;
  };
  const std::chrono::year_month_day day{std::chrono::year(static_cast<int>(number(0, 4))),
                                        std::chrono::month(number(5, 2)), std::chrono::day(number(8, 2))};
  if (!day.ok()) return std::nullopt;
  return Date{day};
}

}  // namespace assay::drift
