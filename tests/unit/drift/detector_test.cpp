// The same bytes from the same history, however it is given; and what events and fresh tests do.
#include <algorithm>
#include <chrono>
#include <numeric>

#include <gtest/gtest.h>

#include "orchestrator/drift/detector.h"
#include "orchestrator/rehearse/nights.h"

namespace assay::drift {
namespace {

using rehearse::NightFaultKind;
using rehearse::Nights;

rehearse::NightFaults one_step() {
  return {
      .faults =
          {{.kind = NightFaultKind::step, .unit = "n00003", .metric = "simulated.m00", .from_night = 40, .sigma = 8}},
      .sigma_spread = 0};
}

std::vector<Night> nights_of(Nights& source, int count) {
  std::vector<Night> all;
  for (int i = 0; i < count; ++i) all.push_back(source.next());
  return all;
}

std::string judged(const Fleet& fleet, const std::vector<Night>& nights, unsigned threads = 1) {
  Detector detector(fleet, {}, threads);
  for (const Night& night : nights) detector.add(night);
  return report_text(detector.report());
}

/// The same fleet with units, metrics and series numbered the other way round.
struct Reversed {
  Fleet fleet;
  std::vector<Night> nights;
  Reversed(const Fleet& from, std::vector<Night> given) : fleet(from), nights(std::move(given)) {
    const auto units = static_cast<std::uint32_t>(fleet.units.size());
    const auto metrics = static_cast<std::uint32_t>(fleet.metrics.size());
    const auto series = static_cast<std::uint32_t>(fleet.series.size());
    std::ranges::reverse(fleet.units);
    std::ranges::reverse(fleet.metrics);
    std::ranges::reverse(fleet.series);
    for (Series& one : fleet.series) {
      one.unit = units - 1 - one.unit;
      one.metric = metrics - 1 - one.metric;
    }
    for (Night& night : nights) {
      const auto visits = static_cast<std::uint32_t>(night.visits.size());
      std::ranges::reverse(night.visits);
      std::ranges::reverse(night.readings);
      for (Visit& visit : night.visits) visit.unit = units - 1 - visit.unit;
      for (Reading& reading : night.readings) {
        reading.series = series - 1 - reading.series;
        reading.visit = visits - 1 - reading.visit;
      }
    }
  }
};

TEST(Detector, order_of_nodes_and_threads_change_no_byte) {
  Nights source({.nodes = 110, .metrics = 3}, one_step());
  const auto nights = nights_of(source, 60);
  const std::string expected = judged(source.fleet(), nights);
  EXPECT_EQ(judged(source.fleet(), nights, 3), expected);
  const Reversed reversed(source.fleet(), nights);
  EXPECT_EQ(judged(reversed.fleet, reversed.nights), expected);
}

TEST(Detector, a_night_added_to_a_saved_state_is_a_rebuild) {
  Nights source({.nodes = 30, .metrics = 2}, one_step());
  const auto nights = nights_of(source, 60);
  for (const std::size_t cut : {5U, 30U, 44U, 59U}) {
    Detector first(source.fleet(), {});
    for (std::size_t i = 0; i < cut; ++i) first.add(nights[i]);
    auto second = Detector::resume(source.fleet(), {}, first.state());
    ASSERT_TRUE(second.has_value()) << second.error().text();
    for (std::size_t i = cut; i < nights.size(); ++i) second->add(nights[i]);
    EXPECT_EQ(report_text(second->report()), judged(source.fleet(), nights));
  }
}

TEST(Detector, a_damaged_state_is_refused) {
  Nights source({.nodes = 5, .metrics = 1}, {});
  Detector detector(source.fleet(), {});
  detector.add(source.next());
  std::string bytes = detector.state();
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  EXPECT_FALSE(Detector::resume(source.fleet(), {}, bytes).has_value());
  EXPECT_FALSE(Detector::resume(source.fleet(), {.nu0 = 3}, detector.state()).has_value());
}

TEST(Detector, nights_out_of_order_are_refused) {
  Nights source({.nodes = 5, .metrics = 1}, {});
  const Night first = source.next();
  Detector detector(source.fleet(), {});
  detector.add(source.next());
  EXPECT_THROW(detector.add(first), std::invalid_argument);
}

/// Sixty nights of a unit that fell at night 40, with `change` applied to each night before it is added.
template <class Change>
DriftReport with(int count, Change change, double budget = 0.001, rehearse::NightFaults faults = one_step()) {
  Nights source({.nodes = 30, .metrics = 2}, std::move(faults));
  Policy policy;
  policy.false_flags.count = budget;  // a small fleet, too, has its share of false flags
  Detector detector(source.fleet(), policy);
  for (int i = 0; i < count; ++i) {
    Night night = source.next();
    change(i, night);
    detector.add(night);
  }
  return detector.report();
}

void tell(Night& night, EventKind kind, const char* scope = "node:n00003") {
  night.events.push_back({.night = night.date, .time = "2026-01-01T00:00:00.000Z", .scope = scope, .kind = kind});
}

TEST(Detector, a_confirmed_flag_stays_without_an_event) {
  const DriftReport report = with(90, [](int, Night&) {});
  ASSERT_EQ(report.flags.size(), 1U);
  EXPECT_EQ(report.flags.front().state, UnitState::confirmed);
  EXPECT_EQ(report.states.at("node:n00003"), UnitState::confirmed);
}

TEST(Detector, a_repair_that_did_not_help_is_flagged_again_against_the_old_reference) {
  const DriftReport report = with(60, [](int i, Night& night) {
    if (i == 55) tell(night, EventKind::repaired);
  });
  ASSERT_EQ(report.flags.size(), 1U);
  EXPECT_EQ(report.flags.front().relapses, 1);
  EXPECT_NE(report.flags.front().state, UnitState::repaired);
}

TEST(Detector, an_accepted_level_and_another_part_end_the_flag) {
  for (const EventKind kind : {EventKind::accepted_as_is, EventKind::part_swap}) {
    const DriftReport report = with(56, [&](int i, Night& night) {
      if (i == 55) tell(night, kind);
    });
    EXPECT_TRUE(report.flags.empty());
    EXPECT_TRUE(with(90, [&](int i, Night& night) {
                  if (i == 55) tell(night, kind);
                }).flags.empty());
  }
}

constexpr const char* kNew = "node:n00003-40";

/// The flags of a unit that is new at night 40: `event` is told at night 46, and its figures are multiplied by `share`
/// of the night.
template <class Share>
std::vector<Flag> of_new_unit(int count, EventKind event, Share share) {
  constexpr std::uint32_t kUnit = 30;  // after those of the 30 nodes
  const auto change = [&](int i, Night& night) {
    if (i == 46) tell(night, event, kNew);
    for (Reading& one : night.readings)
      if (night.visits[one.visit].unit == kUnit) one.value *= share(i);
  };
  return with(count, change, 0.001, {.faults = {{.kind = NightFaultKind::swap, .unit = "n00003", .from_night = 40}}})
      .flags;
}

TEST(Detector, a_new_unit_below_its_cohort_that_is_accepted_as_it_is_is_not_flagged_again) {
  const auto slow = [](int) { return 0.6; };
  const auto flags = of_new_unit(46, EventKind::accepted_as_is, slow);
  ASSERT_EQ(flags.size(), 2U);  // of two metrics
  EXPECT_EQ(flags.front().unit, kNew);
  EXPECT_EQ(flags.front().rule, Rule::below_fleet);
  EXPECT_TRUE(of_new_unit(60, EventKind::accepted_as_is, slow).empty());
}

// The spread between units, 5 %, would hide a fall of 2.5 % of the unit's own level.
TEST(Detector, a_unit_that_was_flagged_as_new_is_held_against_its_own_level_after_its_repair) {
  const auto flags = of_new_unit(95, EventKind::repaired, [](int i) { return i < 46 ? 0.6 : i < 75 ? 1.1 : 1.0725; });
  ASSERT_EQ(flags.size(), 2U);
  for (const Flag& flag : flags) {
    EXPECT_TRUE(flag.rule == Rule::small_shift || flag.rule == Rule::large_shift) << word_of(flag.rule);
    EXPECT_NEAR(flag.ratio, 0.975, 0.01);
  }
}

TEST(Detector, a_retired_unit_has_no_flag_and_is_owed_no_visit_until_it_has_one) {
  const auto leaves = [](bool told, int back) {
    return with(80, [=](int i, Night& night) {
      if (told && i == 55) tell(night, EventKind::retired);
      if (i < 55 || i >= back) return;
      std::erase_if(night.readings, [&](const Reading& one) { return night.visits[one.visit].unit == 3; });
      for (Visit& visit : night.visits) {
        if (visit.unit == 3) visit = Visit{.unit = 0, .cohort = visit.cohort, .state = VisitState::not_due};
      }
    });
  };
  EXPECT_EQ(leaves(false, 80).coverage.overdue.size(), 1U);
  const DriftReport retired = leaves(true, 80);
  EXPECT_TRUE(retired.flags.empty());
  EXPECT_TRUE(retired.coverage.overdue.empty());
  EXPECT_FALSE(retired.states.contains("node:n00003"));
  EXPECT_TRUE(leaves(true, 70).states.contains("node:n00003"));
}

TEST(Detector, a_drained_unit_is_draining) {
  const DriftReport report = with(60, [](int i, Night& night) {
    if (i == 55) tell(night, EventKind::drained);
  });
  ASSERT_EQ(report.flags.size(), 1U);
  EXPECT_EQ(report.flags.front().state, UnitState::draining);
}

TEST(Detector, a_cliff_asks_for_fresh_tests_of_that_night_and_is_decided_by_them) {
  const auto asked = with(
      41, [](int, Night&) {}, 1);
  const auto wanted = std::ranges::find_if(asked.retests_wanted, [](const auto& one) { return one.tonight; });
  ASSERT_NE(wanted, asked.retests_wanted.end());
  EXPECT_EQ(wanted->unit, "node:n00003");
  EXPECT_EQ(wanted->times, 3);
  const auto retested = [](double factor) {
    return with(
        41,
        [&](int i, Night& night) {
          if (i != 40) return;
          const auto own = std::ranges::find_if(
              night.readings, [&](const Reading& one) { return night.visits[one.visit].node == "n00003"; });
          const Reading reading = *own;
          for (int k = 0; k < 3; ++k) {
            Visit visit = night.visits[reading.visit];
            visit.retest = true;
            night.visits.push_back(visit);
            night.readings.push_back({.series = reading.series,
                                      .visit = static_cast<std::uint32_t>(night.visits.size() - 1),
                                      .value = reading.value * factor});
          }
        },
        1);
  };
  const auto flagged = retested(1);
  const auto is_cliff = [](const Flag& flag) { return flag.rule == Rule::cliff; };
  ASSERT_EQ(std::ranges::count_if(flagged.flags, is_cliff), 1);
  const Flag& cliff = *std::ranges::find_if(flagged.flags, is_cliff);
  EXPECT_EQ(cliff.unit, "node:n00003");
  EXPECT_EQ(cliff.state, UnitState::flagged) << "another night is needed";
  EXPECT_EQ(std::ranges::count_if(retested(1.2).flags, is_cliff), 0);
}

TEST(Detector, a_small_shift_is_watched_only) {
  Nights source({.nodes = 150, .metrics = 1},
                {.faults = {{.kind = NightFaultKind::step, .unit = "n00003", .from_night = 40, .ratio = 0.997}},
                 .sigma = 0.001,
                 .sigma_spread = 0});
  Detector detector(source.fleet(), {});
  for (int i = 0; i < 60; ++i) detector.add(source.next());
  const DriftReport report = detector.report();
  ASSERT_EQ(report.flags.size(), 1U);
  EXPECT_EQ(report.flags.front().state, UnitState::watch);
  EXPECT_EQ(exit_code(report), 0);
}

TEST(Detector, flags_of_one_leaf_are_one_finding) {
  rehearse::NightFaults faults{.sigma_spread = 0};
  for (const char* node : {"n00016", "n00020", "n00031"})
    faults.faults.push_back(
        {.kind = NightFaultKind::step, .unit = node, .metric = "simulated.m00", .from_night = 40, .sigma = 8});
  Nights source({.nodes = 200, .metrics = 1}, faults);
  Detector detector(source.fleet(), {});
  for (int i = 0; i < 50; ++i) detector.add(source.next());
  const DriftReport report = detector.report();
  ASSERT_EQ(report.groups.size(), 1U);
  EXPECT_EQ(report.groups.front().element, "leaf l0001");
  EXPECT_EQ(report.groups.front().flags.size(), 3U);
}

TEST(Detector, a_fleet_below_its_signed_acceptance_is_told) {
  Nights source({.nodes = 30, .metrics = 1}, {.sigma_spread = 0});
  Fleet fleet = source.fleet();
  const Night first = source.next();
  for (const Reading& reading : first.readings) fleet.series[reading.series].accepted = reading.value * 1.1;
  Detector detector(fleet, {});
  detector.add(first);
  for (int i = 0; i < 20; ++i) detector.add(source.next());
  const DriftReport report = detector.report();
  ASSERT_EQ(report.fleet.size(), 1U);
  EXPECT_EQ(report.fleet.front().kind, FleetFinding::Kind::below_acceptance);
  EXPECT_NEAR(report.fleet.front().ratio, 1 / 1.1, 0.02);
}

TEST(Detector, a_night_that_has_events_only_leaves_the_units_as_they_were_measured) {
  Nights source({.nodes = 30, .metrics = 1}, {.sigma_spread = 0});
  Detector detector(source.fleet(), {});
  Night last;
  for (int i = 0; i < 20; ++i) {
    last = source.next();
    detector.add(last);
  }
  const DriftReport before = detector.report();
  detector.add({.date = last.date + std::chrono::days{1},
                .events = {{.night = last.date + std::chrono::days{1}, .scope = "fleet", .kind = EventKind::note}}});
  const DriftReport after = detector.report();
  EXPECT_EQ(after.as_of, before.as_of + std::chrono::days{1});
  EXPECT_EQ(after.coverage.measured, before.coverage.measured);
  EXPECT_EQ(after.coverage.unseen, 0U);
  EXPECT_EQ(after.units, before.units);
}

TEST(Policy, an_unknown_key_is_refused_with_its_place) {
  const auto policy = read_policy(R"({"schema": "assay.policy/1", "false_flag": 1})", "p.json");
  ASSERT_FALSE(policy.has_value());
  EXPECT_NE(policy.error().text().find("false_flag"), std::string::npos);
  EXPECT_EQ(policy_text(*read_policy(policy_text({}), "p.json")), policy_text({}));
}

}  // namespace
}  // namespace assay::drift
