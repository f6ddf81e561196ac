// Knees of growing groups: found within a doubling and no more steps than stated, none on a linear fleet, and none made
// of a bad node.
#include <algorithm>
#include <bit>
#include <chrono>
#include <map>
#include <numeric>
#include <sstream>

#include <gtest/gtest.h>

#include "orchestrator/judge/locate/knee_search.h"
#include "orchestrator/judge/locate/knees.h"
#include "orchestrator/judge/metering/site_evidence.h"
#include "orchestrator/simulate/random.h"
#include "probes/core/recorder.h"
#include "probes/core/utc_time.h"
#include "tests/unit/simulate/rehearsal.h"

namespace assay::simulate {
namespace {

constexpr int kNodes = 48;
constexpr const char* kCounter = "segments_retransmitted";
constexpr const char* kSum = "smallest_group_by_nodes";
constexpr const char* kEach = "smallest_group";

std::string growing(const std::string& of, const std::string& knee = "{}") {
  return R"({"probe": "fabric", "scope": "group", "by": "growing", "knee": )" + knee +
         R"(, "limit": {"at_least": 0.9, "unit": "B/s", "of": ")" + of + "\"}}";
}

/// A plan with the draw and the scatter of `seed`, of a probe that counts segments sent again.
plan::Plan drawn(const std::string& requirement, const plan::Faults& faults, std::uint64_t seed, int nodes = kNodes) {
  auto programs = fixture::programs();
  nlohmann::json document = programs[1].description.document;
  document["conditions"].push_back(
      {{"name", kCounter}, {"meaning", "segments sent again"}, {"recorded", "if_reported"}});
  programs[1].description = *read_description(document.dump(), "fabric");
  auto plan =
      plan::make_plan(fixture::profile({requirement}), simulated_site({.nodes = static_cast<std::size_t>(nodes)}),
                      programs, {.challenge = fmt::format("{:064x}", seed)});
  if (!plan) throw std::runtime_error(plan.error().text());
  plan->simulation = plan::Simulation{.seed = seed, .faults = faults};
  return *plan;
}

std::size_t steps_of(const Rehearsal& fleet) { return fleet.plan.steps.size() + fleet.summary.tests; }

constexpr std::size_t kMostSteps = 2 * std::bit_width(unsigned{kNodes - 1});

TEST(simulate, a_knee_is_found_within_a_doubling_and_with_the_counter_that_rose) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const int full = 6 + static_cast<int>(seed);
    const Rehearsal fleet(
        drawn(growing(seed % 2 == 0 ? kSum : kEach), {.knees = {{.nodes = full, .counter = kCounter}}}, seed));
    ASSERT_EQ(fleet.verdict.knees.size(), 1U);
    const judge::KneeFound& knee = fleet.verdict.knees[0];
    EXPECT_EQ(knee.state, judge::KneeState::found) << seed << ": " << knee.reason;
    EXPECT_GE(knee.kept * 2, static_cast<std::size_t>(full)) << seed << ": " << knee.reason;
    EXPECT_LE(knee.kept, static_cast<std::size_t>(2 * full)) << seed << ": " << knee.reason;
    EXPECT_LT(knee.kept, knee.lost);
    EXPECT_LE(steps_of(fleet), kMostSteps) << seed;
    ASSERT_TRUE(knee.counter) << seed << ": " << knee.reason;
    EXPECT_EQ(knee.counter->name, kCounter);
    EXPECT_TRUE(fleet.summary.false_alarms.empty());
    EXPECT_EQ(judge::read_verdict(judge::verdict_text(fleet.verdict), "v.json")->knees.size(), 1U);
  }
}

TEST(simulate, a_linear_fleet_has_no_knee_and_takes_no_test) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Rehearsal fleet(drawn(growing(seed % 2 == 0 ? kSum : kEach), {}, seed));
    EXPECT_EQ(fleet.verdict.knees.at(0).state, judge::KneeState::none) << fleet.verdict.knees[0].reason;
    EXPECT_EQ(fleet.verdict.knees[0].kept, std::size_t{kNodes});
    EXPECT_EQ(fleet.summary.tests, 0U);
  }
}

TEST(simulate, a_bad_node_of_a_linear_fleet_is_no_knee_and_is_named) {
  int named = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Rehearsal fleet(drawn(growing(kSum), {.faults = {{.node = "n00017", .factor = 0.6}}}, seed));
    const judge::KneeFound& knee = fleet.verdict.knees.at(0);
    EXPECT_NE(knee.state, judge::KneeState::found) << seed << ": " << knee.reason;
    EXPECT_LE(steps_of(fleet), kMostSteps) << seed;
    if (knee.state == judge::KneeState::none) continue;  // it is of the smallest group, and all are alike
    named += knee.reason.ends_with("is of n00017.") ? 1 : 0;
    for (const auto& search : fleet.verdict.localised) {
      for (const auto& culprit : search.culprits) EXPECT_EQ(culprit.nodes, std::vector<std::string>{"n00017"});
    }
  }
  EXPECT_GE(named, 15);
}

/// Searches of a figure that falls from `kept` to `lost` nodes as they share what 11 use up, or because the last one of
/// `bad` has only that part; single tests scatter. How many of them accuse a node.
int accusing(double scatter, std::size_t bad, double factor) {
  int count = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SeededRandom noise(seed, {"knee"});
    const auto share = [&](const std::vector<std::size_t>& nodes) {
      const bool with_bad = std::ranges::find(nodes, bad) != nodes.end();
      const double common = bad == 0 ? std::min(1.0, 10.0 / static_cast<double>(nodes.size())) : with_bad ? factor : 1;
      return 1.11 * common * (1 + scatter * noise.normal());
    };
    std::vector<std::size_t> all(16);
    std::iota(all.begin(), all.end(), std::size_t{0});
    const std::vector<std::size_t> half(all.begin(), all.begin() + 8);
    judge::KneeSearch search(
        {.kept = 8, .kept_share = share(half), .lost = 16, .lost_share = share(all), .scatter = scatter}, 5);
    while (const auto test = search.next()) search.take({.shares = {share(test->nodes)}});
    count += search.cause() == judge::FallCause::nodes ? 1 : 0;
  }
  return count;
}

TEST(simulate, a_knee_accuses_no_node_by_the_scatter_of_single_tests) {
  for (const double scatter : {0.005, 0.02, 0.03, 0.05}) EXPECT_LE(accusing(scatter, 0, 1), 1) << scatter;
  EXPECT_GE(accusing(0.005, 12, 0.6), 380);
  EXPECT_GE(accusing(0.03, 12, 0.6), 380);
}

TEST(simulate, a_group_below_its_limit_by_less_than_the_guard_band_leaves_the_knee_open) {
  int seen = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Rehearsal fleet(drawn(growing(kSum), {.knees = {{.nodes = 43}}}, seed));
    if (fleet.verdict.results.back().outcome != judge::Outcome::conditional_fail) continue;
    ++seen;
    EXPECT_EQ(fleet.verdict.knees.at(0).state, judge::KneeState::open) << fleet.verdict.knees[0].reason;
    EXPECT_EQ(fleet.verdict.knees[0].kept, 32U);
  }
  EXPECT_GE(seen, 1);
}

TEST(simulate, without_a_counter_that_rose_none_is_named) {
  const Rehearsal fleet(drawn(growing(kSum), {.knees = {{.nodes = 12}}}, 3));
  EXPECT_EQ(fleet.verdict.knees.at(0).state, judge::KneeState::found);
  EXPECT_FALSE(fleet.verdict.knees[0].counter);
  EXPECT_NE(fleet.verdict.knees[0].reason.find("no counter that was read rose"), std::string::npos);
}

/// A made-up feed of two ports of a switch, read by one watch for each attempt of `fleet`: as many discards as `at`
/// gives for the nodes of the attempt.
class SwitchFeed {
 public:
  SwitchFeed(const Rehearsal& fleet, int (*at)(std::size_t nodes, int port))
      : fleet_(fleet), journal_(fleet.run.journal) {
    static constexpr Metric kMetrics[] = {lower("out_discards", "1", "of a port")};
    static constexpr ProbeSpec kSpec{.name = plan::kSwitchCompanion,
                                     .companion = true,
                                     .measures = "Switches.",
                                     .method = "None.",
                                     .source = "None.",
                                     .metrics = kMetrics};
    plan_ = fleet.plan;
    plan_.probes[plan::kSwitchCompanion] = {
        .sha256 = "", .description = *read_description(describe(kSpec).dump(), plan::kSwitchCompanion)};
    for (const auto& attempt : journal_.attempts) {
      std::ostringstream out;
      Recorder recorder(out, kSpec,
                        {.probe = plan::kSwitchCompanion,
                         .revision = 1,
                         .host = {{"name", std::string("h")}, {plan::kSimulated, true}}});
      for (int port = 0; port < 2; ++port) {
        const int discards = at(nodes_of(attempt), port);
        if (discards >= 0)
          recorder.measurement("out_discards", discards, {"switch_port", fmt::format("leaf/swp{}", port)},
                               {{"from_s", seconds(attempt.begin)}, {"to_s", seconds(attempt.end)}});
      }
      recorder.end({.status = Status::complete, .reason = ""});
      const int number = static_cast<int>(journal_.watches.size()) + 1;
      const std::string path = judge::watch_record_path(number, plan::kSwitchCompanion);
      files_[path] = out.str();
      journal_.watches.push_back({.number = number,
                                  .probe = plan::kSwitchCompanion,
                                  .outcome = AttemptOutcome::exited,
                                  .reason = "",
                                  .begin = attempt.begin,
                                  .end = attempt.end,
                                  .evidence = {{.path = path, .sha256 = "", .bytes = out.str().size()}}});
    }
  }

  [[nodiscard]] judge::KneeFound knee() const {
    const auto simulated = simulated_evidence(fleet_.plan, fleet_.run.journal, fleet_.run.records);
    const auto read = [&](const judge::EvidenceFile& file) -> std::expected<std::string, InputError> {
      const auto made = files_.find(file.path);
      return made == files_.end() ? simulated(file) : made->second;
    };
    return judge::knees_of(plan_, fleet_.verdict, journal_, read).at(0);
  }

 private:
  static double seconds(const std::string& utc) {
    return std::chrono::duration<double>(utc_time(utc)->time_since_epoch()).count();
  }
  [[nodiscard]] std::size_t nodes_of(const judge::Attempt& attempt) const {
    const auto* step = plan_.step(attempt.step);
    return step == nullptr ? attempt.nodes.size() : step->nodes.size();
  }

  const Rehearsal& fleet_;
  plan::Plan plan_;
  judge::Journal journal_;
  std::map<std::string, std::string> files_;
};

TEST(simulate, counts_of_switch_ports_that_rose_at_a_knee_are_named) {
  const Rehearsal fleet(drawn(growing(kSum), {.knees = {{.nodes = 12}}}, 3));
  const auto full = [](std::size_t nodes, int port) { return nodes <= 12 ? 2 : 500 * (port + 1); };
  const judge::KneeFound knee = SwitchFeed(fleet, full).knee();
  ASSERT_TRUE(knee.counter) << knee.reason;
  EXPECT_EQ(knee.counter->name, "out_discards");
  EXPECT_EQ(knee.counter->at, 1500.0 / 16);
  EXPECT_EQ(knee.state, judge::KneeState::found);
  EXPECT_NE(knee.reason.find("out_discards rose there most"), std::string::npos) << knee.reason;
  // What grows only as the nodes do, and a port that was not read in the group that falls out.
  EXPECT_FALSE(SwitchFeed(fleet, [](std::size_t nodes, int) { return static_cast<int>(nodes) * 30; }).knee().counter);
  const auto unread = [](std::size_t nodes, int port) { return nodes <= 12 ? 2 : port == 0 ? 500 : -1; };
  EXPECT_FALSE(SwitchFeed(fleet, unread).knee().counter);
}

TEST(simulate, a_plan_with_a_knee_states_its_tests_and_is_read_back) {
  const plan::Plan plan = drawn(growing(kSum, R"({"at_least": 20})"), {.knees = {{.nodes = 9}}}, 5);
  EXPECT_EQ(plan.steps.size(), 7U);
  for (const auto& search : plan.searches) EXPECT_EQ(search.knee, search.reason.empty() ? kMostSteps - 7 : 0U);
  const auto again = plan::read_plan(plan::plan_text(plan), "plan.json");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(plan::plan_text(*again), plan::plan_text(plan));
}

TEST(simulate, a_demanded_knee_is_a_group_of_its_own_and_larger_groups_inform) {
  const plan::Faults full{.knees = {{.nodes = 20}}};
  const auto would_be = [&](const std::string& knee, int nodes = kNodes) {
    return Rehearsal(drawn(growing(kSum, knee), full, 1, nodes)).verdict.reason;
  };
  EXPECT_NE(would_be(R"({"at_least": 18})").find("it would be accepted: 4 of 4"), std::string::npos)
      << would_be(R"({"at_least": 18})");
  EXPECT_NE(would_be(R"({"at_least": 30})").find("it would be rejected"), std::string::npos);
  EXPECT_NE(would_be("{}").find("it would be rejected"), std::string::npos);
  EXPECT_NE(would_be(R"({"at_least": 18})", 16).find("kept up to 18 nodes, and 16 work together"), std::string::npos)
      << would_be(R"({"at_least": 18})", 16);
}

}  // namespace
}  // namespace assay::simulate
