// The newest night of a database up to a date.
#include <gtest/gtest.h>

#include "orchestrator/history/history.h"
#include "tests/unit/nightly/nights_fixture.h"

namespace assay::history::newest_night_test {
namespace {

TEST(NewestNight, is_of_a_sweep_and_not_of_an_event_and_not_after_the_date) {
  const fixture::Folder folder;
  auto history = fixture::history_of(folder.path + "/h.db", {.nights = 3});
  ASSERT_TRUE(history.add_event({.night = fixture::kFirst + std::chrono::days{9}, .scope = "fleet"}).has_value());
  EXPECT_EQ(history.newest_night(kLastNight).value(), fixture::kFirst + std::chrono::days{2});
  EXPECT_EQ(history.newest_night(fixture::kFirst + std::chrono::days{1}).value(),
            fixture::kFirst + std::chrono::days{1});
  EXPECT_EQ(history.newest_night(fixture::kFirst - std::chrono::days{1}).value(), std::nullopt);
}

TEST(NewestNight, is_none_without_a_sweep) {
  const fixture::Folder folder;
  const auto history = History::open(folder.path + "/h.db", Access::create);
  ASSERT_TRUE(history.has_value());
  EXPECT_EQ(history->newest_night(kLastNight).value(), std::nullopt);
}

}  // namespace
}  // namespace assay::history::newest_night_test
