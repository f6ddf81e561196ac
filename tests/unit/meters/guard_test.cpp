// When a guard ends a load: too much is seen, or too little. All readings are made up.
#include "probes/meters/feed_watch.h"

#include <limits>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace assay::meters {
namespace {

constexpr double kNoLimit_w = 0, kNow_s = 1000, kOldest_s = kNow_s - 10;

/// Meters of feeds of rack r1, unless a test says otherwise.
class Meters {
 public:
  WatchedMeter& add(const std::string& name, std::optional<double> rating_w, const std::string& subject = "feed",
                    const std::string& rack = "r1") {
    watched_.push_back(
        std::make_shared<WatchedMeter>(Meter{.name = name, .subject = subject, .rack = rack, .rating_w = rating_w}));
    return *watched_.back();
  }
  std::string words(double limit_w) const { return over_limit(watched_, limit_w, kOldest_s); }

 private:
  Watched watched_;
};

void read(WatchedMeter& meter, double power_w, double taken_s = kNow_s) {
  meter.take({{.quantity = Quantity::power, .value = power_w, .taken_s = taken_s}}, 1);
}

TEST(guard, meters_below_their_ratings_and_the_limit_let_a_load_go_on) {
  Meters meters;
  read(meters.add("a", 5000), 5000);
  read(meters.add("b", 5000), 4000);
  EXPECT_EQ(meters.words(9000), "");
}

TEST(guard, a_meter_over_its_rating_ends_it) {
  Meters meters;
  read(meters.add("a", 5000), 5001);
  EXPECT_EQ(meters.words(kNoLimit_w), "a is at 5001 W, its rating is 5000 W");
}

TEST(guard, all_racks_together_over_the_limit_end_it_although_each_is_below_its_rating) {
  Meters meters;
  read(meters.add("a", 5000), 3000);
  read(meters.add("b", 5000, "feed", "r2"), 3001);
  EXPECT_EQ(meters.words(6000), "all racks together are at 6001 W, the limit is 6000 W");
  EXPECT_EQ(meters.words(kNoLimit_w), "");
}

TEST(guard, a_meter_with_a_rating_that_is_silent_ends_it) {
  Meters meters;
  auto& meter = meters.add("a", 5000);
  EXPECT_EQ(meters.words(kNoLimit_w), "a has a rating and does not answer: a load must not continue unseen");
  read(meter, 100, kOldest_s - 1);
  EXPECT_EQ(meters.words(kNoLimit_w), "a has a rating and does not answer: a load must not continue unseen");
  read(meter, 100, kOldest_s);
  EXPECT_EQ(meters.words(kNoLimit_w), "");
}

TEST(guard, a_meter_that_answers_without_a_number_is_silent) {
  Meters meters;
  auto& meter = meters.add("a", 5000);
  read(meter, std::numeric_limits<double>::quiet_NaN());
  meter.take({{.quantity = Quantity::power, .taken_s = kNow_s, .absent = true}}, 1);
  EXPECT_TRUE(meters.words(kNoLimit_w).ends_with("unseen"));
}

TEST(guard, a_silent_meter_hides_no_other_that_is_over_its_rating) {
  Meters meters;
  meters.add("a", 5000);
  read(meters.add("b", 5000), 6000);
  EXPECT_EQ(meters.words(kNoLimit_w), "b is at 6000 W, its rating is 5000 W");
}

TEST(guard, a_meter_without_a_rating_that_falls_silent_ends_it_where_the_limit_counts_it) {
  Meters meters;
  read(meters.add("a", 5000), 1000);
  read(meters.add("b", std::nullopt), 1000, kOldest_s - 1);
  EXPECT_EQ(meters.words(9000),
            "b counts towards the limit of all racks and answers no more: a load must not continue unseen");
  EXPECT_EQ(meters.words(kNoLimit_w), "");
}

TEST(guard, a_silent_meter_that_the_limit_does_not_count_ends_nothing) {
  Meters meters;
  read(meters.add("rack", 5000, "rack"), 1000);
  read(meters.add("feed", std::nullopt), 1000, kOldest_s - 1);
  read(meters.add("coolant", std::nullopt, "cdu"), 1000, kOldest_s - 1);
  read(meters.add("intake", std::nullopt, "meter", ""), 1000, kOldest_s - 1);
  meters.add("never", std::nullopt, "feed", "r2");  // its cells are open, and no others
  EXPECT_EQ(meters.words(9000), "");
}

}  // namespace
}  // namespace assay::meters
