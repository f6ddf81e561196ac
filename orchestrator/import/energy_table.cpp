// energy_table: energies of a site over twelve months, the only source of a PUE (ISO/IEC 30134-2).
#include <charconv>
#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/reading.h"

namespace assay::imports {
namespace {

using Day = std::chrono::sys_days;

constexpr std::string_view kHeading = "begin,end,total_kwh,it_kwh", kCategory = "# category ";
constexpr const char* kTableHint =
    "'# category 2', then 'begin,end,total_kwh,it_kwh', then a row such as '2025-01-01,2025-02-01,812345,701234'";
constexpr double kKilowattHour_j = 3.6e6;

/// "2025-01-31"; nothing for another text and for a day that no calendar has.
std::optional<Day> day_of(std::string_view text) {
  int parts[3] = {};
  constexpr std::size_t kBegins[] = {0, 5, 8}, kLengths[] = {4, 2, 2};
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  for (int i = 0; i < 3; ++i) {
    const char* const begin = text.data() + kBegins[i];
    const auto [end, error] = std::from_chars(begin, begin + kLengths[i], parts[i]);
    if (error != std::errc{} || end != begin + kLengths[i] || parts[i] < 0) return std::nullopt;
  }
  const std::chrono::year_month_day day{std::chrono::year(parts[0]),
                                        std::chrono::month(static_cast<unsigned>(parts[1])),
                                        std::chrono::day(static_cast<unsigned>(parts[2]))};
  return day.ok() ? std::optional(Day(day)) : std::nullopt;
}

/// The same day a year later; of 29 February the first of March.
Day a_year_after(Day begin) {
  std::chrono::year_month_day day(begin);
  day += std::chrono::years(1);
  return day.ok() ? Day(day) : Day(day.year() / std::chrono::March / 1);
}

std::string words_of_day(Day day) {
  const std::chrono::year_month_day date(day);
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()));
}

class EnergyTable {
 public:
  explicit EnergyTable(judge::ImportSource& source) : source_(source) {}

  void line(const TextLine& line) {
    if (line.text.empty()) return;
    if (line.text.starts_with(kCategory)) return category(line);
    if (line.text.starts_with('#'))
      throw ImportRefusal{line.from(), fmt::format("'{}' is not known", line.text), kTableHint};
    if (headed_) return row(line);
    if (line.text != kHeading) throw ImportRefusal{line.from(), "is not the heading of the table", kTableHint};
    headed_ = true;
  }

  void end(Figures& figures) {
    if (!begin_) throw ImportRefusal{"", "has no row", kTableHint};
    if (!source_.facts.contains("category"))
      throw ImportRefusal{
          "", "does not say its category",
          "'# category 1', 2 or 3: IT energy at the output of the UPS, of the PDU, or at the IT's input"};
    const auto days = (*end_ - *begin_).count();
    if (*end_ != a_year_after(*begin_))
      throw ImportRefusal{
          fmt::format("{} to {}", words_of_day(*begin_), words_of_day(*end_)),
          fmt::format("are {} days: PUE is defined over twelve months in a row (ISO/IEC 30134-2)", days),
          "import twelve months; over less power_feed has power_ratio, at the load and weather of its time"};
    source_.facts["begin"] = words_of_day(*begin_);
    source_.facts["end"] = words_of_day(*end_);
    const std::string from = fmt::format("{} rows", rows_);
    figures.positive({.metric = "pue", .unit = "1", .statistic = "twelve_months"}, {}, total_ / it_, from);
    figures.positive({.metric = "energy", .unit = "J", .statistic = "sum", .factor = kKilowattHour_j},
                     {{"boundary", std::string("site")}}, total_, from);
    figures.positive({.metric = "energy", .unit = "J", .statistic = "sum", .factor = kKilowattHour_j},
                     {{"boundary", std::string("it")}}, it_, from);
  }

 private:
  void category(const TextLine& line) {
    const std::string_view word = trimmed(line.text.substr(kCategory.size()));
    if (word != "1" && word != "2" && word != "3")
      throw ImportRefusal{line.from(), fmt::format("'{}' is not category 1, 2 or 3", word), kTableHint};
    if (!source_.facts.emplace("category", *whole_from(word)).second)
      throw ImportRefusal{line.from(), "is the second category", "one table has one category"};
  }

  void row(const TextLine& line) {
    const auto cells = parts_of(line.text, ',');
    if (cells.size() != 4)
      throw ImportRefusal{line.from(), fmt::format("{} columns, the heading has 4", cells.size()), kTableHint};
    const auto begin = day_of(cells[0]), end = day_of(cells[1]);
    if (!begin || !end || *end <= *begin)
      throw ImportRefusal{line.from(), "does not begin with two days, the first before the second", kTableHint};
    if (end_ && *begin != *end_)
      throw ImportRefusal{line.from(),
                          fmt::format("begins on {}, and the row before ends on {}", cells[0], words_of_day(*end_)),
                          "months in a row, without a gap and without an overlap"};
    const auto total = number_from(cells[2]), it = number_from(cells[3]);
    if (!total || !it || !(*it > 0) || *total < *it)
      throw ImportRefusal{line.from(), "has no two energies in kWh of which the IT's is above 0 and at most the total",
                          kTableHint};
    if (!begin_) begin_ = begin;
    end_ = end;
    total_ += *total;
    it_ += *it;
    ++rows_;
  }

  judge::ImportSource& source_;
  bool headed_ = false;
  std::optional<Day> begin_, end_;
  double total_ = 0, it_ = 0;  // kWh
  int rows_ = 0;
};

}  // namespace

void read_energy_table(std::string_view text, judge::ImportSource& source, Figures& figures) {
  EnergyTable table(source);
  for (const auto& line : lines_of(text)) table.line(line);
  table.end(figures);
}

}  // namespace assay::imports
