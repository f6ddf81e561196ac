// What a lost feed did is read out of meters; what no meter shows is not claimed. All readings are made up.
#include "probes/meters/failover.h"

#include <deque>

#include <gtest/gtest.h>

namespace assay::meters {
namespace {

constexpr double kLost_s = 60, kBack_s = 120, kRunEnd_s = 180;

/// A rack of two nodes on feeds a and b; b is lost from kLost_s to kBack_s.
class Rack {
 public:
  double node_w = 6000;
  double rating_w = 14'000;
  bool n2_dies = false;      ///< with the feed, for good
  double dip = 1;            ///< of the nodes' power in the ten seconds after the loss
  bool b_is_silent = false;  ///< its meter has no supply of its own
  bool comes_back = true, is_lost = true;

  std::vector<FeedReadings> read() {
    meters_.clear();
    std::vector<FeedReadings> all;
    for (const char* letter : {"a", "b"}) {
      Meter& meter = meters_.emplace_back(
          Meter{.name = std::string("pdu-") + letter, .subject = "feed", .rack = "r1", .feed = letter});
      meter.outlets = {{1, "n1"}, {2, "n2"}};
      meter.rating_w = rating_w;
      FeedReadings& of = all.emplace_back(FeedReadings{.meter = &meter, .readings = {}});
      for (double t = 0; t < kRunEnd_s; ++t) {
        const bool gone = is_lost && t >= kLost_s && (!comes_back || t < kBack_s);
        if (gone && *letter == 'b' && b_is_silent) continue;
        const double share = !gone ? 0.5 : (*letter == 'b' ? 0 : 1);
        const double n1 = drawn(t), n2 = n2_dies && t >= kLost_s && is_lost ? 0 : drawn(t);
        const double powers[] = {(n1 + n2) * share, n1 * share, n2 * share};
        for (int outlet = 0; outlet < 3; ++outlet)
          of.readings.push_back(
              {.quantity = Quantity::power, .outlet = outlet, .value = powers[outlet], .taken_s = t + 0.5});
      }
    }
    return all;
  }

 private:
  double drawn(double t) const { return node_w * (is_lost && t >= kLost_s && t < kLost_s + 10 ? dip : 1); }

  std::deque<Meter> meters_;
};

Failover found(Rack& rack) {
  const auto meters = rack.read();
  const auto losses = feed_losses(meters, "", 1, kRunEnd_s);
  if (losses.size() != 1) throw std::runtime_error("not one loss was found");
  auto made = failover_of(meters, losses.front(), 1);
  if (!made) throw std::runtime_error(made.error());
  return *made;
}

TEST(failover, a_feed_that_is_taken_away_and_given_back_is_told_with_its_times) {
  Rack rack;
  const Failover made = found(rack);
  EXPECT_EQ(made.loss.feed, "pdu-b");
  EXPECT_EQ(made.loss.lost_s, kLost_s);
  EXPECT_EQ(made.outage_s, kBack_s - kLost_s);
  EXPECT_TRUE(made.lost_nodes.empty());
  EXPECT_TRUE(made.unseen_nodes.empty());
  EXPECT_NEAR(made.rise_w.at("pdu-a"), 6000, 1);
  EXPECT_NEAR(made.rating_share.at("pdu-a"), 12'000.0 / 14'000, 1e-9);
  EXPECT_EQ(made.dip, 1);
  EXPECT_EQ(made.dip_s, 0);
  EXPECT_NEAR(made.imbalance.value(), 0, 1e-9);
}

TEST(failover, a_node_that_goes_with_the_feed_is_lost_and_named) {
  Rack rack;
  rack.n2_dies = true;
  const Failover made = found(rack);
  EXPECT_EQ(made.lost_nodes, std::vector<std::string>{"n2"});
  EXPECT_NEAR(made.dip, 0.5, 1e-9);
}

TEST(failover, the_other_feed_over_its_rating_shows) {
  Rack rack;
  rack.rating_w = 10'000;
  EXPECT_NEAR(found(rack).rating_share.at("pdu-a"), 1.2, 1e-9);
}

TEST(failover, clocks_that_are_lowered_are_a_dip_of_so_long) {
  Rack rack;
  rack.dip = 0.7;
  const Failover made = found(rack);
  EXPECT_NEAR(made.dip, 0.7, 1e-9);
  EXPECT_EQ(made.dip_s, 10);
  EXPECT_TRUE(made.lost_nodes.empty());
}

TEST(failover, a_strip_that_is_silent_without_its_mains_is_lost_and_its_nodes_are_not) {
  Rack rack;
  rack.b_is_silent = true;
  const Failover made = found(rack);
  EXPECT_EQ(made.loss.feed, "pdu-b");
  EXPECT_TRUE(made.lost_nodes.empty());
  EXPECT_EQ(made.dip, 1);
}

TEST(failover, a_silent_strip_that_does_not_come_back_is_lost_after_three_intervals) {
  Rack rack;
  rack.b_is_silent = true;
  rack.comes_back = false;
  const Failover made = found(rack);
  EXPECT_EQ(made.loss.lost_s, kLost_s);
  EXPECT_FALSE(made.outage_s);
  EXPECT_FALSE(made.imbalance);
}

TEST(failover, nothing_is_lost_while_all_feeds_carry_and_one_bad_answer_is_no_loss) {
  Rack rack;
  rack.is_lost = false;
  auto meters = rack.read();
  EXPECT_TRUE(feed_losses(meters, "", 1, kRunEnd_s).empty());
  for (auto& one : meters[1].readings)
    if (one.taken_s == 70.5) one.value = 0;
  EXPECT_TRUE(feed_losses(meters, "", 1, kRunEnd_s).empty());
}

TEST(failover, another_feed_than_the_announced_one_is_not_the_event) {
  Rack rack;
  const auto meters = rack.read();
  EXPECT_TRUE(feed_losses(meters, "pdu-a", 1, kRunEnd_s).empty());
  EXPECT_TRUE(feed_losses(meters, "a", 1, kRunEnd_s).empty());
  EXPECT_EQ(feed_losses(meters, "b", 1, kRunEnd_s).size(), 1U);
  EXPECT_EQ(feed_losses(meters, "pdu-b", 1, kRunEnd_s).size(), 1U);
}

TEST(failover, a_feed_that_only_stands_by_is_not_lost) {
  Rack rack;
  auto meters = rack.read();
  for (auto& one : meters[1].readings) one.value *= 0.01;  // the cords of b are out: it carried nothing before
  EXPECT_TRUE(feed_losses(meters, "", 1, kRunEnd_s).empty());
}

TEST(failover, too_little_before_or_nothing_after_the_loss_is_refused) {
  Rack rack;
  auto meters = rack.read();
  const FeedLoss early{.feed = "pdu-b", .lost_s = 3};
  EXPECT_EQ(failover_of(meters, early, 1).error(), "pdu-a has less than 5 readings before the loss.");
  for (auto& of : meters) std::erase_if(of.readings, [](const MeterReading& one) { return one.taken_s > kLost_s; });
  EXPECT_EQ(failover_of(meters, {.feed = "pdu-b", .lost_s = kLost_s}, 1).error(), "pdu-a was not read after the loss.");
  EXPECT_EQ(failover_of(meters, {.feed = "pdu-x", .lost_s = kLost_s}, 1).error(), "There is no meter pdu-x.");
  const std::vector<FeedReadings> alone = {meters[1]};
  EXPECT_EQ(failover_of(alone, {.feed = "pdu-b", .lost_s = kLost_s}, 1).error(), "Rack r1 has no second feed.");
}

TEST(failover, a_node_without_readings_is_unseen_and_not_called_safe) {
  Rack rack;
  auto meters = rack.read();
  for (auto& of : meters) std::erase_if(of.readings, [](const MeterReading& one) { return one.outlet == 2; });
  const auto losses = feed_losses(meters, "", 1, kRunEnd_s);
  ASSERT_EQ(losses.size(), 1U);
  EXPECT_EQ(failover_of(meters, losses.front(), 1)->unseen_nodes, std::vector<std::string>{"n2"});
}

}  // namespace
}  // namespace assay::meters
