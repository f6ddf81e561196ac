// Outlets and agreements that the judge joins: what was not read, not dated or in doubt gives no figure and says why.
#include "orchestrator/judge/metering/site_agreement.h"
#include "orchestrator/judge/metering/site_joins.h"

#include <functional>

#include <gtest/gtest.h>

namespace assay::judge {
namespace {

constexpr double kBegin_s = 1000;

/// A record of strip pdu with outlets 1 and 2, one reading a second from kBegin_s; `outlet` gives their power.
Record strip(const std::function<double(int, double)>& outlet, double length_s, const std::string& doubts = "none") {
  Record record;
  for (const int number : {1, 2}) {
    Measurement one{.metric = "power", .unit = "W", .subject = {.kind = "feed", .id = "pdu"}};
    one.at = {
        {"meter", std::string("pdu")}, {"begin_s", kBegin_s}, {"interval_s", 1.0}, {"outlet", std::int64_t{number}}};
    for (double t = 0; t < length_s; ++t) one.samples.push_back(outlet(number, t));
    record.measurements.push_back(std::move(one));
  }
  record.conditions.push_back({.name = "meter_doubts", .subject = {.kind = "meter", .id = "pdu"}, .value = doubts});
  return record;
}

site::Site two_nodes() {
  site::Site site;
  for (const char* name : {"n1", "n2"}) site.nodes.push_back({.name = name});
  site.meters = {Meter{.name = "pdu", .subject = "feed", .rack = "r", .outlets = {{1, "n1"}, {2, "n2"}}}};
  return site;
}

HeldLoad turns() { return {.shape = "turns", .hold_s = 40, .ramp_s = 2, .begin_s = kBegin_s, .end_s = kBegin_s + 160}; }

/// Node `outlet - 1` works in the second half of its turn.
double honest(int outlet, double t) { return t >= (outlet - 1) * 80 + 42 && t < (outlet - 1) * 80 + 78 ? 500 : 100; }

std::expected<JoinedFigure, std::string> wrong_of(const std::string& node, const Record& record, const HeldLoad& load,
                                                  const site::Site& site = two_nodes()) {
  return outlets_wrong(site, {"n1", "n2"}, load, {{1, record}}).at(node);
}

TEST(site_outlets, outlets_that_rise_with_their_node_are_none_wrong) {
  EXPECT_EQ(wrong_of("n1", strip(honest, 160), turns()).value().value, 0);
  EXPECT_EQ(wrong_of("n1", strip(honest, 160), turns()).value().words, "");
}

TEST(site_outlets, exchanged_plugs_are_two_wrong_of_each_and_name_both_nodes) {
  const Record swapped = strip([](int outlet, double t) { return honest(3 - outlet, t); }, 160);
  const auto n1 = wrong_of("n1", swapped, turns());
  ASSERT_TRUE(n1);
  EXPECT_EQ(n1->value, 2);
  EXPECT_EQ(n1->words,
            "pdu/2 rose with n1, and the site has it for n2; pdu/1 is n1's by the site and did not rise with it");
}

TEST(site_outlets, a_plug_that_the_site_does_not_list_is_wrong) {
  site::Site site = two_nodes();
  site.meters[0].outlets.erase(2);
  EXPECT_EQ(wrong_of("n1", strip([](int, double t) { return honest(1, t); }, 160), turns(), site)->words,
            "pdu/2 rose with n1, and the site has it for no node");
}

TEST(site_outlets, what_shows_nothing_is_no_figure_and_says_why) {
  HeldLoad soak = turns();
  soak.shape = "soak";
  EXPECT_EQ(wrong_of("n1", strip(honest, 160), soak).error(),
            "The load has the shape soak; outlets show by turns, in which one node after another works.");
  HeldLoad brief = turns();
  brief.hold_s = 10;
  EXPECT_EQ(wrong_of("n1", strip(honest, 160), brief).error(), "Turns of 10 s leave 5 s of readings; 10 s are needed.");
  EXPECT_EQ(wrong_of("n1", strip([](int, double) { return 100; }, 160), turns()).error(),
            "No outlet rose when n1 alone worked: its load is too small.");
  EXPECT_EQ(wrong_of("n1", strip(honest, 160, "stuck: 100 W"), turns()).error(),
            "The meter pdu is in doubt: stuck: 100 W.");
  Record one = strip(honest, 160);
  one.measurements.erase(one.measurements.begin());
  EXPECT_EQ(wrong_of("n1", one, turns()).error(), "pdu gave no power of outlet 1.");
  EXPECT_EQ(outlets_wrong(two_nodes(), {"n2"}, turns(), {{1, strip(honest, 160)}}).at("n1").error(),
            "Node n1 had no part in the load.");
}

TEST(site_outlets, readings_that_end_before_the_turn_prove_nothing) {
  EXPECT_EQ(wrong_of("n2", strip(honest, 90), turns()).error(), "pdu/2 has too few readings in the turn of n2.");
}

TEST(site_agreement, a_load_that_is_no_stairs_or_too_short_compares_nothing) {
  site::Site site = two_nodes();
  site.meters.push_back(Meter{.name = "bmc", .subject = "node", .nodes = {"n1"}});
  const Subject n1{.kind = "node", .id = "n1"};
  EXPECT_EQ(agreements(site, turns(), {}).at(n1).error(),
            "The load has the shape turns; meters are compared at idle and two loads, by stairs.");
  HeldLoad stairs = turns();
  stairs.shape = "stairs";
  EXPECT_EQ(agreements(site, stairs, {}).at(n1).error(),
            "A stair lasts 40 s; a minute to settle and five windows of a minute need 360 s.");
  stairs.hold_s = 360;
  EXPECT_EQ(agreements(site, stairs, {}).at(n1).error(), "bmc gave no power.");
}

TEST(site_readings, a_load_without_its_shape_or_its_time_is_not_held) {
  Record load;
  load.start.parameters = {{"shape", std::string("turns")}, {"hold", 40.0}, {"ramp", 2.0}};
  EXPECT_FALSE(held_load(load, 0, 1));
  load.conditions.push_back({.name = "hold_begin_s", .subject = {}, .value = 0.0});
  EXPECT_TRUE(held_load(load, 0, 1));
  load.start.parameters.erase("shape");
  EXPECT_FALSE(held_load(load, 0, 1));
}

}  // namespace
}  // namespace assay::judge
