// What counters rose by, as far as two readings tell.
#include "orchestrator/judge/cells/counter_rises.h"

#include <gtest/gtest.h>

namespace assay::judge {
namespace {

const Subject kFirst{"drive", "nvme0"}, kSecond{"drive", "nvme1"};

/// A pool of one measurement for each attempt.
Pool pool_of(std::deque<Measurement>& kept, const std::vector<double>& readings) {
  Pool pool;
  for (const double reading : readings) {
    kept.push_back({.metric = "media_errors", .samples = {reading}});
    pool.measured.push_back(&kept.back());
    pool.samples.push_back(reading);
  }
  return pool;
}

TEST(rises, every_reading_counts_from_the_first_one) {
  std::deque<Measurement> kept;
  std::map<Subject, Pool> after;
  after.emplace(kFirst, pool_of(kept, {9, 12}));
  std::map<Subject, Pool> before;
  before.emplace(kFirst, pool_of(kept, {5, 7}));
  EXPECT_TRUE(make_rises(after, before).empty());
  const Pool& rise = after.at(kFirst);
  EXPECT_EQ(rise.samples, (std::vector<double>{4, 7}));
  ASSERT_EQ(rise.measured.size(), 2U);
  EXPECT_EQ(rise.measured[0]->samples, std::vector<double>{4});
  EXPECT_EQ(rise.measured[1]->samples, std::vector<double>{7});
  EXPECT_EQ(kept.front().samples, std::vector<double>{9});  // the evidence stays as it is
}

TEST(rises, one_that_was_read_once_or_fell_is_not_known) {
  std::deque<Measurement> kept;
  std::map<Subject, Pool> after;
  after.emplace(kFirst, pool_of(kept, {3}));
  std::map<Subject, Pool> before;
  before.emplace(kSecond, pool_of(kept, {0}));
  const auto apart = make_rises(after, before);
  EXPECT_EQ(apart.at(kFirst), "The drive nvme0 was read after the load, and not before it.");
  EXPECT_EQ(apart.at(kSecond), "The drive nvme1 was read before the load, and not after it.");
  EXPECT_TRUE(after.empty());

  after.emplace(kFirst, pool_of(kept, {3}));
  std::map<Subject, Pool> higher;
  higher.emplace(kFirst, pool_of(kept, {4}));
  EXPECT_EQ(make_rises(after, higher).at(kFirst),
            "The counter was 4 before the load and 3 after it: it was reset, so that its rise is not known.");
}

}  // namespace
}  // namespace assay::judge
