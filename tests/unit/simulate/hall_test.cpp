// A simulated site with meters is judged as a real one: an honest plant passes, and each thing that is wrong with it or
// with a meter of it is a cell that does not pass and names it. Every number is made up.
#include "orchestrator/simulate/hall.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "orchestrator/plan/catalogue.h"
#include "orchestrator/simulate/plant_site.h"
#include "tests/unit/meters/facility.h"
#include "tests/unit/simulate/rehearsal.h"

namespace assay::simulate {
namespace {

using nlohmann::json;

constexpr std::uint64_t kHonestSeeds = 2;

plan::Program newest(const std::string& name) {
  json document;
  for (const auto& known : plan::known_probes())
    if (known.name == name) document = known.document;  // the last is the newest
  return {.name = name,
          .sha256 = std::string(64, 'a'),
          .path = "/p/" + name,
          .description = read_description(document.dump(), name).value()};
}

/// A figure of power_feed while load_bank holds `shape`.
std::string figure(const char* id, const char* metric, const char* scope, const char* statistic, const json& limit,
                   const char* shape, const char* hold, bool undoubted = true) {
  const json parameters = {{"shape", shape}, {"hold", hold}, {"ramp", "2s"}, {"grow_hold", "2s"}};
  json one = {{"id", id},
              {"title", id},
              {"probe", plan::kSiteCompanion},
              {"during", plan::kLoadProbe},
              {"metric", metric},
              {"scope", scope},
              {"statistic", statistic},
              {"limit", limit},
              {"repeat", {{"n", 1}, {"attempts", 1}, {"more_attempts", 0}}},
              {"parameters", parameters}};
  if (undoubted) one["conditions"] = {{{"name", "meter_doubts"}, {"equals", "none"}}};
  return one.dump();
}

/// Everything that this test judges by the meters of one rack.
plan::Profile metered_profile() {
  const json most_one = {{"at_most", 1}, {"unit", "1"}}, none = {{"at_most", 0}, {"unit", "1"}};
  const std::vector<std::string> figures = {
      figure("rating", "rating_share", "feed", "max", most_one, "soak", "300s"),
      figure("feeds", "feed_share", "feed", "min", {{"at_least", 0.5}, {"unit", "1"}}, "soak", "300s", false),
      figure("budget", "total_power", "rack", "max", {{"at_most", 24000}, {"unit", "W"}}, "soak", "300s"),
      figure("reached", "total_power", "rack", "median", {{"at_least", 20000}, {"unit", "W"}}, "soak", "300s"),
      figure("heat.least", "heat_share", "cdu", "median", {{"at_least", 0.7}, {"unit", "1"}}, "soak", "30min"),
      figure("heat.most", "heat_share", "cdu", "median", {{"at_most", 1.1}, {"unit", "1"}}, "soak", "30min"),
      figure("detectors", "leak_detectors", "cdu", "min", {{"at_least", 2}, {"unit", "1"}}, "soak", "300s"),
      figure("leaks", "leaks", "cdu", "max", none, "soak", "300s"),
      figure("outlets", "outlets_wrong", "node", "max", none, "turns", "40s", false),
      figure("agree.least", "agreement_ratio", "node", "min", {{"at_least", 0.95}, {"unit", "1"}}, "stairs", "6min",
             false),
      figure("agree.most", "agreement_ratio", "node", "max", {{"at_most", 1.05}, {"unit", "1"}}, "stairs", "6min",
             false),
      figure("gain", "agreement_gain", "node", "min", {{"at_least", 0.95}, {"unit", "1"}}, "stairs", "6min", false),
      figure("rack.agree", "agreement_ratio", "rack", "min", {{"at_least", 0.95}, {"unit", "1"}}, "stairs", "6min",
             false)};
  json profile = json::parse(fixture::profile_text(figures));
  profile["companions"] = {plan::kSiteCompanion};
  auto read = plan::read_profile(profile.dump(), "p.json", [](const std::string&) { return std::nullopt; });
  if (!read) throw std::runtime_error(read.error().text());
  return *read;
}

Rehearsal rehearsed(const plan::Faults& faults, std::uint64_t seed = 1) {
  const plan::Profile profile = metered_profile();
  site::Site site = simulated_site(shape_for(profile, {.nodes = 4}));
  tell_parts(profile, site);
  auto plan = plan::make_plan(profile, site, {newest("power_feed"), newest("load_bank")}, {});
  if (!plan) throw std::runtime_error(plan.error().text());
  if (const auto wrong = plan::check_faults(faults, site, "faults")) throw std::runtime_error(wrong->text());
  plan->simulation = plan::Simulation{.seed = seed, .faults = faults};
  return Rehearsal(std::move(*plan));
}

/// Cells that did not pass: "feeds feed r0000-a fail: …".
std::vector<std::string> open_cells(const judge::Verdict& verdict) {
  std::vector<std::string> all;
  for (const auto& one : verdict.results) {
    if (one.outcome != judge::Outcome::pass)
      all.push_back(one.requirement + " " + one.subject.kind + " " + one.subject.id + " " +
                    std::string(judge::to_string(one.outcome)) + ": " + one.reason);
  }
  return all;
}

bool any_has(const std::vector<std::string>& cells, const std::string& begin, const std::string& words) {
  return std::ranges::any_of(
      cells, [&](const std::string& one) { return one.starts_with(begin) && one.find(words) != std::string::npos; });
}

std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const auto& line : lines) all += line + "\n";
  return all;
}

TEST(Hall, honest_plants_pass_every_cell_and_accept_nothing) {
  const char* many = std::getenv("ASSAY_HONEST_PLANTS");  // twenty in -C meters
  const std::uint64_t seeds = many == nullptr ? kHonestSeeds : std::stoull(many);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Rehearsal honest = rehearsed({}, seed);
    EXPECT_EQ(joined(open_cells(honest.verdict)), "") << "seed " << seed;
    EXPECT_TRUE(honest.verdict.simulated);
    EXPECT_EQ(honest.verdict.overall, judge::Overall::incomplete);
  }
}

struct Wrong {
  const char* name;
  plan::Faults faults;
  std::vector<std::pair<const char*, const char*>> cells;  ///< the begin of a cell that does not pass, words in it
};

void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.name; }

class WrongPlant : public testing::TestWithParam<Wrong> {};

TEST_P(WrongPlant, fails_and_is_named) {
  const Wrong& wrong = GetParam();
  const auto cells = open_cells(rehearsed(wrong.faults).verdict);
  for (const auto& [begin, words] : wrong.cells)
    EXPECT_TRUE(any_has(cells, begin, words)) << begin << "… " << words << "\nis not among\n" << joined(cells);
}

INSTANTIATE_TEST_SUITE_P(
    power_facts, WrongPlant,
    testing::Values(
        Wrong{.name = "a BMC with a gain of -8 %",
              .faults = {.meters = {{.meter = "n00001-bmc", .gain = 0.92}}},
              .cells = {{"agree.least node n00001 fail", "n00001-bmc over r0000-a/2 + r0000-b/2:"},
                        {"gain node n00001 fail", "n00001-bmc"}}},
        Wrong{.name = "two nodes whose outlets are swapped",
              .faults = {.swapped_outlets = {{.meter = "r0000-a", .a = 3, .b = 4}}},
              .cells = {{"outlets node n00002 fail", "r0000-a/4 rose with n00002, and the site has it for n00003"},
                        {"outlets node n00003 fail", "r0000-a/3 rose with n00003, and the site has it for n00002"}}},
        Wrong{.name = "a strip of which 10 W are taken for 1 W",
              .faults = {.meters = {{.meter = "r0000-a", .scale = 0.1}}},
              .cells = {{"rating feed r0000-a inconclusive", "mis_scaled"},
                        {"outlets node n00001 inconclusive", "r0000-a is in doubt: mis_scaled"}}},
        Wrong{.name = "a heat that is 13 % low",
              .faults = {.meters = {{.meter = "r0000-cdu", .quantity = Quantity::heat, .gain = 0.87}}},
              .cells = {{"heat.least cdu r0000-cdu inconclusive", "heat is"}}},
        Wrong{.name = "a feed that is dead",
              .faults = {.lost_feeds = {{.meter = "r0000-b", .after_s = 60}}},
              .cells = {{"feeds feed r0000-b fail", ""}}},
        Wrong{.name = "a leak detector that is absent",
              .faults = {.meters = {{.meter = "r0000-cdu", .quantity = Quantity::leak_detectors, .gain = 0.5}}},
              .cells = {{"detectors cdu r0000-cdu fail", ""}}},
        Wrong{.name = "a meter that is stuck",
              .faults = {.meters = {{.meter = "n00002-bmc", .stuck_after_s = 0}}},
              .cells = {{"agree.least node n00002 inconclusive", "stuck"}}},
        Wrong{.name = "a meter whose own time stands still",
              .faults = {.meters = {{.meter = "n00002-bmc", .stale_after_s = 10}}},
              .cells = {{"agree.least node n00002 inconclusive", "stale"}}},
        Wrong{.name = "a number from a table",
              .faults = {.meters = {{.meter = "n00002-bmc", .constant = 900}}},
              .cells = {{"agree.least node n00002 inconclusive", "synthesised"}}},
        Wrong{.name = "a BMC that averages over two minutes",
              .faults = {.meters = {{.meter = "n00002-bmc", .averaging_s = 120}}},
              .cells = {{"agree.least node n00002 inconclusive", "averages over 120 s"}}},
        Wrong{.name = "a rack over its budget",
              .faults = {.meters = {{.meter = "r0000-a", .gain = 1.3}, {.meter = "r0000-b", .gain = 1.3}}},
              .cells = {{"budget rack r0000 fail", ""}, {"agree.least node n00000 fail", "n00000-bmc over"}}}));

TEST(Hall, an_injected_gain_of_minus_8_percent_is_recovered_within_1_percent) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const auto honest = rehearsed({}, seed).verdict,
               bent = rehearsed({.meters = {{.meter = "n00001-bmc", .gain = 0.92}}}, seed).verdict;
    const auto gain = [](const judge::Verdict& verdict) {
      for (const auto& one : verdict.results)
        if (one.requirement == "gain" && one.subject.id == "n00001") return one.value.value_or(0);
      return 0.0;
    };
    EXPECT_NEAR(gain(bent) / gain(honest), 0.92, 0.0092) << "seed " << seed;
  }
}

TEST(Hall, a_step_of_a_slow_meter_an_early_end_throttling_and_a_claim_of_pue_are_named) {
  PlantNode node{.heat_time_s = 900, .load = {{100, 1}}};
  const auto power = [&](double t) { return node.drawn_at(t); };
  const auto step = meters::rise_time_s(seen(power, {.window_s = 60}, 0, 400), 100);
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error().doubt, meters::Doubt::slow);
  const auto hot = [&](double t) { return 30 + 50 * node.heat_at(t); };
  const auto soak = steady(seen(power, {}, 0, 1300),
                           {{"gpu", seen(hot, {.noise = 0, .quantum = 0.5}, 0, 1300, Quantity::supply_temperature)}});
  EXPECT_EQ(soak.finding, meters::Finding::differs) << soak.figures;
  EXPECT_NE(meters::unthrottled({{"tray-3", 2}, {"tray-4", 0}}).figures.find("tray-3"), std::string::npos);
  EXPECT_EQ(meters::pue_claim(1).finding, meters::Finding::differs);
}

TEST(Hall, records_are_made_up_again_byte_by_byte_and_say_that_they_are_simulated) {
  const Rehearsal fleet = rehearsed({});
  const auto evidence = simulated_evidence(fleet.plan, fleet.run.journal);
  ASSERT_FALSE(fleet.run.journal.watches.empty());
  for (const auto& watch : fleet.run.journal.watches) {
    const auto bytes = evidence(watch.evidence.at(0));
    ASSERT_TRUE(bytes) << bytes.error().text();
    EXPECT_NE(bytes->find("\"simulated\":true"), std::string::npos);
  }
  const auto read = plan::read_plan(plan::plan_text(fleet.plan), "plan.json");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(plan::plan_text(*read), plan::plan_text(fleet.plan));
}

TEST(Hall, faults_of_meters_are_read_back_and_names_that_the_site_lacks_are_refused) {
  const std::string text = R"({"schema": "assay.faults/1",
    "meters": [{"meter": "r0000-a", "quantity": "power", "gain": 0.9, "stuck_after_s": 5, "wraps_16_bit": true}],
    "swapped_outlets": [{"meter": "r0000-a", "a": 1, "b": 2}],
    "lost_feeds": [{"meter": "r0000-b", "after_s": 10, "until_s": 20}]})";
  const auto faults = plan::read_faults(text, "f.json");
  ASSERT_TRUE(faults) << faults.error().text();
  const json once = plan::to_json(plan::Simulation{.seed = 1, .faults = *faults});
  const auto again = plan::simulation_from(once, "p");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(plan::to_json(*again), once);
  const plan::Profile profile = metered_profile();
  site::Site site = simulated_site(shape_for(profile, {.nodes = 4}));
  tell_parts(profile, site);
  EXPECT_FALSE(plan::check_faults(*faults, site, "f.json"));
  const auto said = [&](const plan::Faults& wrong) { return plan::check_faults(wrong, site, "f.json").value().what; };
  EXPECT_EQ(said({.meters = {{.meter = "pdu"}}}), "there is no meter 'pdu'");
  EXPECT_EQ(said({.swapped_outlets = {{.meter = "r0000-a", .a = 1, .b = 9}}}), "r0000-a has no outlet 9");
  EXPECT_EQ(said({.swapped_outlets = {{.meter = "r0000-a", .a = 1, .b = 1}}}),
            "an outlet of r0000-a is exchanged with itself");
  EXPECT_EQ(said({.lost_feeds = {{.meter = "r0000-cdu"}}}), "r0000-cdu is of a cdu, not of a feed");
  EXPECT_EQ(said({.lost_feeds = {{.meter = "r0000-a", .after_s = 9, .until_s = 9}}}),
            "the feed r0000-a comes back before it is lost");
}

}  // namespace
}  // namespace assay::simulate
