// FLOP/J of a rack: what it is joined from, and every reason why there is none. All rates and readings are made up.
#include "orchestrator/judge/metering/site_efficiency.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/unit/judge/metered_run.h"

namespace assay::judge {
namespace {

using test::MeteredRun;
using test::Read;

constexpr double kFrom_s = 20, kTo_s = 120, kMadeRate = 5e12, kPower_w = 1000;
const Subject kRack{.kind = "rack", .id = "odd"};

/// A load of 100 s on n1, in rack odd, and n2, which is in another one, by a meter of 1 %.
class Load : public MeteredRun {
 public:
  Load() {
    end_at("2026-11-23T10:03:00.000Z");
    hold(kFrom_s, kTo_s);
    plan.profile.requirements.push_back({.id = "flop-per-joule", .metric = std::string(kEfficiency)});
    step.requirements = {"flop-per-joule"};
    for (const char* rank : {"0", "1"})
      load().measurements.push_back({.metric = "rate",
                                     .unit = "FLOP/s",
                                     .subject = {.kind = "rank", .id = rank},
                                     .at = {},
                                     .samples = std::vector<double>(99, *rank == '0' ? kMadeRate : 7 * kMadeRate),
                                     .warmup = {},
                                     .stopped = "fixed"});
  }

  /// Readings that are higher in the load than before and after it.
  static Read readings() {
    Read read{.values = std::vector<double>(180, 10 * kPower_w), .accuracy = 0.01, .averaging_s = 1.0};
    std::fill(read.values.begin() + 20, read.values.begin() + 120, kPower_w);
    return read;
  }

  /// Why there is no figure with these readings.
  std::string refusal(const Read& read) {
    watch(1, read);
    const auto found = site();
    for (const auto& record : found.step.records) {
      for (const auto& one : record.measurements) EXPECT_NE(one.metric, kEfficiency);
    }
    const auto why = found.missing.find(kRack);
    return why == found.missing.end() ? "none" : why->second;
  }
};

TEST(site_efficiency, operations_of_the_racks_own_nodes_are_divided_by_the_energy_of_the_same_interval) {
  Load run;
  run.watch(1, Load::readings());
  const auto site = run.site();
  const auto joined = Load::only(site, "energy_efficiency");
  EXPECT_DOUBLE_EQ(joined.samples.at(0), kMadeRate / kPower_w);
  EXPECT_EQ(joined.unit, "FLOP/J");
  EXPECT_EQ(joined.subject, kRack);
  const auto stated = [&](const char* name) {
    return conditions_of(site.step.records.at(0), name, kRack).at(0)->value;
  };
  EXPECT_EQ(std::get<std::string>(stated("energy_boundary")), "rack odd by pdu; 1 nodes");
  EXPECT_EQ(std::get<double>(stated("accuracy_bound")), 0.01);
  EXPECT_TRUE(std::get<std::string>(stated("method_level")).starts_with("EE HPC WG aspect 1: level 1"));
}

TEST(site_efficiency, the_class_of_the_meter_is_the_uncertainty_of_the_figure) {
  Load run;
  Read read = Load::readings();
  read.accuracy = 0.03;
  run.watch(1, read);
  const auto site = run.site();
  const auto joined = Load::only(site, "energy_efficiency");
  EXPECT_DOUBLE_EQ(efficiency_instrument({&site.step.records.at(0)}, {&joined}), 0.03 / std::sqrt(3.0));
}

TEST(site_efficiency, a_step_that_no_requirement_asks_it_of_has_none_and_no_reason) {
  Load run;
  run.step.requirements.clear();
  EXPECT_EQ(run.refusal(Load::readings()), "none");
}

TEST(site_efficiency, a_simulated_load_or_a_simulated_plan_has_none) {
  Load made_up;
  made_up.load().start.host.emplace(plan::kSimulated, true);
  EXPECT_EQ(made_up.refusal(Load::readings()), "A simulation made up the load: no energy was measured.");
  Load planned;
  planned.plan.simulation.emplace();
  EXPECT_EQ(planned.refusal(Load::readings()), "none");
  EXPECT_NE(planned.site().step.reason.find("was measured, and the run is a simulation"), std::string::npos);
}

TEST(site_efficiency, simulated_readings_make_none) {
  Load run;
  Read read = Load::readings();
  read.simulated = true;
  EXPECT_EQ(run.refusal(read), "none");
  EXPECT_NE(run.site().step.reason.find("is made up by a simulation"), std::string::npos);
}

TEST(site_efficiency, too_few_readings_are_refused) {
  Load run;
  run.hold(kFrom_s, kFrom_s + 59);
  EXPECT_EQ(run.refusal(Load::readings()), "59 readings of rack odd lie in the 59 s of the load; an energy needs 60.");
}

TEST(site_efficiency, readings_over_a_second_apart_are_refused) {
  Load run;
  Read read = Load::readings();
  read.interval_s = 2;
  EXPECT_EQ(run.refusal(read), "The meters of rack odd are read every 2 s; an energy needs a reading a second.");
}

TEST(site_efficiency, a_meter_that_falls_blind_in_the_load_makes_none) {
  Load run;
  Read read = Load::readings();
  read.values.resize(80);
  EXPECT_EQ(run.refusal(read), "Readings cover 61 % of the 100 s of the load, 90 % are required.");
}

TEST(site_efficiency, a_meter_in_doubt_makes_none) {
  Load run;
  Read read = Load::readings();
  read.doubts = "synthesised: computed by the instrument";
  EXPECT_EQ(run.refusal(read), "The meter pdu is in doubt: synthesised: computed by the instrument.");
}

TEST(site_efficiency, a_meter_without_a_class_or_a_known_time_makes_none) {
  Load classless, timeless, slow;
  Read read = Load::readings();
  read.accuracy.reset();
  EXPECT_TRUE(classless.refusal(read).starts_with("The meter pdu states no accuracy"));
  read = Load::readings();
  read.averaging_s.reset();
  EXPECT_EQ(timeless.refusal(read), "The meter pdu states no averaging_s, so its readings have no known time.");
  read.averaging_s = 15;
  EXPECT_EQ(slow.refusal(read), "The meter pdu averages over 15 s, more than a tenth of the load of 100 s.");
}

TEST(site_efficiency, a_load_that_does_not_say_when_it_was_held_makes_none) {
  Load run;
  run.load().conditions.clear();
  EXPECT_EQ(run.refusal(Load::readings()), "load_bank does not say from when to when it held its load (hold_begin_s).");
}

TEST(site_efficiency, a_rack_whose_nodes_are_not_all_in_the_load_or_not_known_makes_none) {
  Load apart, unknown, empty;
  apart.step.nodes = {"n2"};
  EXPECT_EQ(apart.refusal(Load::readings()), "Node n1 of rack odd had no part in the load.");
  unknown.plan.site.nodes[1].rack.clear();
  EXPECT_EQ(unknown.refusal(Load::readings()), "The site does not say in which rack node n2 is.");
  empty.plan.site.nodes[0].rack = "even";
  EXPECT_EQ(empty.refusal(Load::readings()), "The site has no node in rack odd.");
}

TEST(site_efficiency, a_rank_whose_operations_were_not_counted_makes_none) {
  Load uncounted, partly;
  uncounted.load().measurements.clear();
  EXPECT_EQ(uncounted.refusal(Load::readings()), "The record of the load has no rate in FLOP/s of node n1.");
  partly.load().measurements[0].samples.resize(50);
  EXPECT_EQ(partly.refusal(Load::readings()), "The rate of node n1 is counted in 50 of the 100 s of the load.");
}

}  // namespace
}  // namespace assay::judge
