// Units that are gone: they come back by a measurement, not by a night in which their node was busy.
#include "orchestrator/drift/unit_register.h"

#include <gtest/gtest.h>

namespace assay::drift {
namespace {

/// A register of these units, and nights that are entered one by one.
class RegisteredNights {
 public:
  explicit RegisteredNights(std::vector<Unit> units) {
    fleet_.units = std::move(units);
    fleet_.cohorts = {"any"};
    register_.grow(fleet_);
  }

  struct Seen {
    std::uint32_t unit;
    VisitState state;
    std::string slot = {};  ///< if it is another one
  };

  void add(const std::vector<Seen>& all) {
    Night night;
    for (const auto& [unit, state, slot] : all)
      night.visits.push_back({.unit = unit,
                              .state = state,
                              .started = "2026-03-01T01:00:00.000Z",
                              .node = fleet_.units[unit].node,
                              .slot = slot.empty() ? fleet_.units[unit].slot : slot});
    (void)register_.take(fleet_, night, ++day_);
  }

  void retire(std::uint32_t unit) { register_.take(unit, {.kind = EventKind::retired}, day_ + 1); }

  [[nodiscard]] Coverage coverage() const { return register_.coverage(fleet_, day_, {}); }
  [[nodiscard]] const UnitTrack& track(std::uint32_t unit) const { return register_.tracks[unit]; }

 private:
  Fleet fleet_;
  UnitRegister register_;
  Day day_ = 0;
};

Unit gpu(const std::string& serial) {
  return {.id = "gpu:" + serial, .kind = "gpu", .serial = true, .node = "n0", .slot = "0000:1b:00.0"};
}

using enum VisitState;

TEST(UnitRegister, a_replaced_part_does_not_come_back_in_a_night_in_which_its_node_is_busy) {
  RegisteredNights nights({gpu("1"), gpu("2")});
  nights.add({{0, measured}});
  nights.add({{1, measured}});
  ASSERT_TRUE(nights.track(0).gone);
  const Day seen = nights.track(0).last_seen;
  nights.add({{0, busy}, {1, busy}});
  EXPECT_TRUE(nights.track(0).gone);
  EXPECT_EQ(nights.track(0).last_seen, seen);
  EXPECT_FALSE(nights.track(1).gone);
  for (int night = 0; night < 30; ++night) nights.add({{1, measured}});
  EXPECT_TRUE(nights.coverage().overdue.empty());
  EXPECT_EQ(nights.coverage().units, 1U);
}

TEST(UnitRegister, a_retired_part_comes_back_by_a_measurement_only) {
  RegisteredNights nights({gpu("1")});
  nights.add({{0, measured}});
  nights.retire(0);
  nights.add({{0, not_measured}});
  EXPECT_EQ(nights.coverage().units, 0U);
  nights.add({{0, busy}, {0, measured}});
  EXPECT_EQ(nights.coverage().units, 1U);
  EXPECT_EQ(nights.coverage().measured, 1U);
}

TEST(UnitRegister, a_part_that_was_replaced_after_its_node_was_busy_in_the_same_night_is_gone) {
  RegisteredNights nights({gpu("1"), gpu("2")});
  nights.add({{0, measured}});
  nights.add({{0, busy}, {1, measured}});
  EXPECT_TRUE(nights.track(0).gone);
  EXPECT_FALSE(nights.track(1).gone);
}

TEST(UnitRegister, parts_that_changed_places_are_not_gone) {
  Unit other = gpu("2");
  other.slot = "0000:2b:00.0";
  RegisteredNights nights({gpu("1"), other});
  nights.add({{0, measured}, {1, measured}});
  nights.add({{0, measured, "0000:2b:00.0"}, {1, measured, "0000:1b:00.0"}});
  EXPECT_EQ(nights.coverage().units, 2U);
}

TEST(UnitRegister, a_node_without_a_serial_number_ends_when_it_is_measured_under_one) {
  RegisteredNights nights({{.id = "node:n0", .kind = "node", .node = "n0"},
                           {.id = "node:SN-n00", .kind = "node", .serial = true, .node = "n0"},
                           {.id = "node:n1", .kind = "node", .node = "n1"}});
  nights.add({{0, busy}, {2, busy}});
  EXPECT_EQ(nights.coverage().units, 2U);
  nights.add({{0, busy}, {1, measured}, {2, busy}});  // a re-test in the same night
  EXPECT_EQ(nights.coverage().units, 2U);
  for (int night = 0; night < 30; ++night) nights.add({{0, busy}, {1, measured}, {2, busy}});
  const Coverage coverage = nights.coverage();
  ASSERT_EQ(coverage.overdue.size(), 1U);
  EXPECT_EQ(coverage.overdue.front().unit, "node:n1") << "never measured at all";
}

}  // namespace
}  // namespace assay::drift
