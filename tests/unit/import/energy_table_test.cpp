// Energies of a site over twelve months, and every shorter or doubtful table. All energies are made up.
#include <chrono>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/import/import_fixture.h"

namespace assay {
namespace {

using fixture::changed, fixture::imported, fixture::refusal;

/// `months` rows from 1 March 2025 on: 1000 MWh of which the IT has 800.
std::string table(int months, const std::string& category = "# category 2\n") {
  std::string text = category + "begin,end,total_kwh,it_kwh\n";
  auto day = std::chrono::year(2025) / 3 / 1;
  for (int i = 0; i < months; ++i) {
    const auto next = day + std::chrono::months(1);
    text += fmt::format("{}-{:02}-01,{}-{:02}-01,1000000,800000\n", static_cast<int>(day.year()),
                        static_cast<unsigned>(day.month()), static_cast<int>(next.year()),
                        static_cast<unsigned>(next.month()));
    day = next;
  }
  return text;
}

TEST(energy_table, twelve_months_in_a_row_have_a_pue) {
  const auto import = imported("energy-table", table(12));
  ASSERT_TRUE(import) << import.error().text();
  EXPECT_EQ(fixture::value(*import, "pue", "twelve_months", {}), 1.25);
  EXPECT_EQ(fixture::value(*import, "energy", "sum", {{"boundary", std::string("it")}}), 9.6e6 * 3.6e6);
  EXPECT_EQ(import->source.facts.at("category"), Value{std::int64_t{2}});
  EXPECT_EQ(import->source.facts.at("begin"), Value{std::string("2025-03-01")});
  EXPECT_EQ(import->source.facts.at("end"), Value{std::string("2026-03-01")});
}

TEST(energy_table, less_or_more_than_twelve_months_has_none_whatever_its_ratio) {
  EXPECT_NE(refusal("energy-table", table(11))
                .find("2025-03-01 to 2026-02-01: are 337 days: PUE is defined over twelve months in a row"),
            std::string::npos)
      << refusal("energy-table", table(11));
  EXPECT_NE(refusal("energy-table", table(11)).find("power_ratio"), std::string::npos);
  EXPECT_NE(refusal("energy-table", table(13)).find("are 396 days"), std::string::npos);
  EXPECT_NE(
      refusal("energy-table", changed(table(12), "2026-02-01,2026-03-01", "2026-02-01,2026-02-28")).find("364 days"),
      std::string::npos);
}

TEST(energy_table, one_hour_that_calls_itself_a_year_is_no_row) {
  const std::string hour = "# category 1\nbegin,end,total_kwh,it_kwh\n2025-03-01,2025-03-01,1250,1000\n";
  EXPECT_NE(refusal("energy-table", hour).find("line 3: does not begin with two days, the first before the second"),
            std::string::npos);
}

TEST(energy_table, gaps_overlaps_and_impossible_energies_are_refused_with_their_line) {
  const auto gap = changed(table(12), "2025-05-01,2025-06-01", "2025-05-02,2025-06-01");
  EXPECT_NE(refusal("energy-table", gap).find("line 5: begins on 2025-05-02, and the row before ends on 2025-05-01"),
            std::string::npos)
      << refusal("energy-table", gap);
  const auto more = changed(table(1), "1000000,800000", "1000000,1000001");
  EXPECT_NE(refusal("energy-table", more).find("line 3: has no two energies"), std::string::npos);
  const auto day = changed(table(1), "2025-04-01", "2025-04-31");
  EXPECT_NE(refusal("energy-table", day).find("line 3: does not begin with two days"), std::string::npos);
}

TEST(energy_table, a_table_says_its_category_once) {
  EXPECT_NE(refusal("energy-table", table(12, "")).find("does not say its category"), std::string::npos);
  EXPECT_NE(refusal("energy-table", table(12, "# category 4\n")).find("line 1: '4' is not category 1, 2 or 3"),
            std::string::npos);
  EXPECT_NE(refusal("energy-table", table(12, "# category 1\n# category 2\n")).find("line 2: is the second category"),
            std::string::npos);
}

TEST(energy_table, a_leap_day_ends_on_the_first_of_march) {
  const auto leap = imported("energy-table", "# category 3\nbegin,end,total_kwh,it_kwh\n2024-02-29,2025-03-01,12,10\n");
  ASSERT_TRUE(leap) << leap.error().text();
  EXPECT_EQ(fixture::value(*leap, "pue", "twelve_months", {}), 1.2);
}

}  // namespace
}  // namespace assay
