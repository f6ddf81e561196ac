// What follows from several meters, slot by slot. All readings are made up.
#include "probes/meters/derived.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "probes/meters/doubts.h"

namespace assay::meters {
namespace {

/// Meters with the same reading every second from `begin_s` on.
class Hall {
 public:
  Meter& add(const std::string& name, const std::string& subject, const std::string& rack,
             const std::map<Quantity, double>& readings, double begin_s = 0, int count = 10) {
    Meter& meter = meters_.emplace_back(Meter{.name = name, .subject = subject, .rack = rack});
    MeterHistory& history = histories_.emplace_back();
    for (int i = 0; i < count; ++i) {
      std::vector<MeterReading> answer;
      for (const auto& [quantity, value] : readings)
        answer.push_back({.quantity = quantity, .value = value, .taken_s = begin_s + i + 0.5});
      take_answer(meter, answer, 1, history);
    }
    return meter;
  }

  std::vector<DerivedSeries> all() const {
    std::vector<MeteredHistory> read;
    for (std::size_t i = 0; i < meters_.size(); ++i) read.push_back({.meter = &meters_[i], .history = &histories_[i]});
    return derived_series(read);
  }

  /// The only series of `metric`, which must be there.
  DerivedSeries only(const std::string& metric) const {
    DerivedSeries found;
    int count = 0;
    for (auto& one : all()) {
      if (one.metric != metric) continue;
      found = one;
      ++count;
    }
    EXPECT_EQ(count, 1) << metric;
    return found;
  }

  bool has(const std::string& metric) const {
    const auto series = all();
    return std::ranges::any_of(series, [&](const auto& one) { return one.metric == metric; });
  }

 private:
  std::deque<Meter> meters_;
  std::deque<MeterHistory> histories_;
};

TEST(derived, a_rack_draws_the_sum_of_its_feeds_in_slots_that_both_have) {
  Hall hall;
  hall.add("a", "feed", "r1", {{Quantity::power, 1000}});
  hall.add("b", "feed", "r1", {{Quantity::power, 500}}, 4);
  const auto rack = hall.only("total_power");
  EXPECT_EQ(rack.subject, (Subject{.kind = "rack", .id = "r1"}));
  EXPECT_EQ(rack.meters, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(rack.stretches.size(), 1);
  EXPECT_EQ(rack.stretches[0].begin_s, 4);
  EXPECT_EQ(rack.stretches[0].samples, std::vector<double>(6, 1500));
}

TEST(derived, a_racks_own_meter_comes_before_its_feeds_and_they_before_its_shelves) {
  Hall hall;
  hall.add("shelf", "shelf", "r1", {{Quantity::power, 1}});
  hall.add("feed", "feed", "r1", {{Quantity::power, 10}});
  EXPECT_EQ(hall.only("total_power").stretches[0].samples[0], 10);
  hall.add("rack", "rack", "r1", {{Quantity::power, 100}});
  EXPECT_EQ(hall.only("total_power").stretches[0].samples[0], 100);
}

TEST(derived, a_feed_without_a_reading_leaves_its_rack_without_a_figure) {
  Hall hall;
  hall.add("a", "feed", "r1", {{Quantity::power, 1000}});
  hall.add("b", "feed", "r1", {});
  EXPECT_FALSE(hall.has("total_power"));
}

TEST(derived, a_dead_feed_has_no_part_and_the_other_twice_its_own) {
  Hall hall;
  hall.add("a", "feed", "r1", {{Quantity::power, 2000}});
  EXPECT_FALSE(hall.has("feed_share"));  // alone it has no part of anything
  hall.add("b", "feed", "r1", {{Quantity::power, 0}});
  std::map<std::string, double> shares;
  for (const auto& one : hall.all())
    if (one.metric == "feed_share") shares[one.subject.id] = one.stretches[0].samples[0];
  EXPECT_EQ(shares, (std::map<std::string, double>{{"a", 2}, {"b", 0}}));
}

TEST(derived, phases_and_ratings_are_of_one_meter) {
  Hall hall;
  hall.add("a", "feed", "r1",
           {{Quantity::power, 9000}, {Quantity::current, 10}, {Quantity::current_l2, 13}, {Quantity::current_l3, 10}})
      .rating_w = 12000;
  EXPECT_DOUBLE_EQ(hall.only("rating_share").stretches[0].samples[0], 0.75);
  EXPECT_NEAR(hall.only("phase_imbalance").stretches[0].samples[0], 13.0 / 11 - 1, 1e-12);
}

TEST(derived, heat_that_falls_short_by_13_percent_shows_as_a_share) {
  Hall hall;
  hall.add("a", "rack", "r1", {{Quantity::power, 100'000}});
  const double flow = 0.87 * 100'000 / heat_of_water_w(1, 10);
  hall.add("cdu", "cdu", "r1",
           {{Quantity::flow, flow}, {Quantity::supply_temperature, 30}, {Quantity::return_temperature, 40}});
  const auto share = hall.only("heat_share");
  EXPECT_EQ(share.subject, (Subject{.kind = "cdu", .id = "cdu"}));
  EXPECT_NEAR(share.stretches[0].samples[0], 0.87, 1e-9);
}

TEST(derived, heat_of_a_coolant_that_comes_back_colder_is_negative) {
  Hall hall;
  hall.add("a", "rack", "r1", {{Quantity::power, 100'000}});
  hall.add("cdu", "cdu", "r1",
           {{Quantity::flow, 0.001}, {Quantity::supply_temperature, 40}, {Quantity::return_temperature, 30}});
  EXPECT_LT(hall.only("heat_share").stretches[0].samples[0], 0);
}

TEST(derived, the_power_ratio_needs_one_intake_and_every_rack) {
  Hall hall;
  hall.add("a", "rack", "r1", {{Quantity::power, 80'000}});
  hall.add("b", "rack", "r2", {{Quantity::power, 20'000}});
  hall.add("intake", "meter", "", {{Quantity::power, 125'000}});
  EXPECT_DOUBLE_EQ(hall.only("power_ratio").stretches[0].samples[0], 1.25);
  hall.add("other", "meter", "", {{Quantity::power, 125'000}});
  EXPECT_FALSE(hall.has("power_ratio"));
}

TEST(derived, the_sum_of_racks_counts_a_feed_once) {
  const Meter rack{.name = "r", .subject = "rack", .rack = "r1"}, feed{.name = "f", .subject = "feed", .rack = "r1"},
      a{.name = "a", .subject = "feed", .rack = "r2"}, b{.name = "b", .subject = "feed", .rack = "r2"},
      intake{.name = "i", .subject = "meter"};
  const MeterPower powers[] = {{&rack, 100}, {&feed, 60}, {&a, 10}, {&b, 20}, {&intake, 500}};
  EXPECT_EQ(power_of_racks_w(powers), 130);
}

TEST(derived, voltage_and_frequency_are_held_against_what_the_site_states_and_not_against_a_guess) {
  Hall hall;
  Meter& feed = hall.add("pdu-a", "feed", "r1",
                         {{Quantity::power, 5000}, {Quantity::voltage, 218.5}, {Quantity::frequency, 50.1}});
  EXPECT_FALSE(hall.has("voltage_deviation"));
  EXPECT_FALSE(hall.has("frequency_deviation"));
  feed.nominal_v = 230;
  feed.nominal_hz = 50;
  EXPECT_NEAR(hall.only("voltage_deviation").stretches.at(0).samples.at(0), 0.05, 1e-12);
  EXPECT_NEAR(hall.only("frequency_deviation").stretches.at(0).samples.at(0), 0.002, 1e-12);
}

TEST(derived, supplies_that_tell_input_and_output_have_an_efficiency) {
  Hall hall;
  hall.add("bmc-1", "node", "", {{Quantity::power, 5000}, {Quantity::output_power, 4700}}).nodes = {"n1"};
  EXPECT_DOUBLE_EQ(hall.only("supply_efficiency").stretches.at(0).samples.at(0), 0.94);
  EXPECT_FALSE(Hall().has("supply_efficiency"));
}

}  // namespace
}  // namespace assay::meters
