// Results of parts of nodes that were measured as one: which part or node is named.
#include "orchestrator/judge/locate/part_pairs.h"

#include <functional>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "orchestrator/simulate/random.h"
#include "tests/unit/fixture.h"

namespace assay::judge {
namespace {

using Names = std::vector<std::string>;

constexpr const char* kChecked =
    R"({"probe": "checked", "scope": "cluster", "metric": "bandwidth", "at": {"size": 1}, "limit": {"at_least": 100, "unit": "B/s"}})";
constexpr const char* kExact =
    R"({"probe": "checked", "scope": "cluster", "metric": "mismatches", "at": "every", "statistic": "max", "repeat": {"n": 1}, "limit": {"at_most": 0, "unit": "1"}})";

/// Three nodes of two parts, measured as one.
struct Parts {
  plan::Plan plan = [] {
    auto made = plan::make_plan(fixture::profile({kChecked, kExact}), fixture::site(3), fixture::programs(), {});
    return made ? std::move(*made) : throw std::runtime_error(made.error().text());
  }();
  Results results;

  void add(std::size_t requirement, const std::string& kind, const std::string& id, double value, double limit) {
    add(requirement, kind, id, std::vector<double>(3, value), limit);
  }
  void add(std::size_t requirement, const std::string& kind, const std::string& id, const std::vector<double>& each,
           double limit) {
    const bool low = requirement == 0;
    const double value = (each[0] + each[1] + each[2]) / 3;
    results.push_back({.requirement = plan.profile.requirements.at(requirement).id,
                       .subject = {kind, id},
                       .step = plan.steps.front().id,
                       .outcome = (low ? value < limit : value > limit) ? Outcome::fail : Outcome::pass,
                       .unit = low ? "B/s" : "1",
                       .value = value,
                       .each = each,
                       .limit_low = low ? std::optional(limit) : std::nullopt,
                       .limit_high = low ? std::nullopt : std::optional(limit)});
  }
  /// Every ordered pair at 110, or 50 where `slow` says so.
  void pairs(const std::function<bool(const std::string& from, const std::string& to)>& slow) {
    const Names names = {"n1/g0", "n1/g1", "n2/g0", "n2/g1", "n3/g0", "n3/g1"};
    for (const auto& from : names) {
      for (const auto& to : names) {
        if (from != to) add(0, "pair", from + ">" + to, slow(from, to) ? 50 : 110, 100);
      }
    }
  }
  [[nodiscard]] std::vector<Localised> found() const { return localise_parts(plan, results); }
};

}  // namespace

TEST(part_pairs, a_part_that_is_slow_in_all_of_its_pairs_is_named_and_its_node_blamed) {
  Parts parts;
  parts.pairs([](const auto& from, const auto& to) { return from == "n2/g1" || to == "n2/g1"; });
  const auto found = parts.found();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].step, parts.plan.steps.front().id);
  EXPECT_EQ(found[0].requirements, Names{parts.plan.profile.requirements.front().id});
  EXPECT_EQ(found[0].state, SearchState::found);
  ASSERT_EQ(found[0].culprits.size(), 1U);
  EXPECT_EQ(found[0].culprits[0].nodes, Names{"n2"});
  EXPECT_EQ(
      found[0].culprits[0].words,
      "part n2/g1: misses the limit in 5 of 5 pairs as the sender and in 5 of 5 pairs as the receiver; check it and "
      "its links");
}

TEST(part_pairs, a_part_that_is_slow_one_way_is_named_by_that_way) {
  Parts parts;
  parts.pairs([](const auto&, const auto& to) { return to == "n3/g0"; });
  const auto found = parts.found();
  ASSERT_EQ(found.at(0).culprits.size(), 1U);
  EXPECT_EQ(found[0].culprits[0].words,
            "part n3/g0: misses the limit in 5 of 5 pairs as the receiver; check it and its links");
}

TEST(part_pairs, all_parts_of_a_node_are_the_node) {
  Parts parts;
  parts.pairs([](const auto& from, const auto& to) { return from.starts_with("n1/") || to.starts_with("n1/"); });
  const auto found = parts.found();
  ASSERT_EQ(found.at(0).culprits.size(), 1U);
  EXPECT_EQ(found[0].culprits[0].nodes, Names{"n1"});
  EXPECT_EQ(found[0].culprits[0].words,
            "node n1: all 2 of its parts miss the limit in most of their pairs; check the node and all that its parts "
            "share");
}

TEST(part_pairs, what_is_common_to_all_accuses_nothing_and_the_words_say_so) {
  Parts parts;
  parts.pairs([](const auto&, const auto&) { return true; });
  const auto found = parts.found();
  EXPECT_TRUE(found.at(0).culprits.empty());
  EXPECT_EQ(found[0].state, SearchState::common_cause);
  EXPECT_TRUE(found[0].reason.ends_with(
      "A part that all pairs cross, such as a plane of switches, cannot be distinguished from other causes here."))
      << found[0].reason;
}

TEST(part_pairs, good_pairs_find_nothing_and_neither_do_names_that_are_of_no_node) {
  Parts parts;
  parts.pairs([](const auto&, const auto&) { return false; });
  for (const char* id : {"n9/g0", "n1 rank 1", "plane 5", "n1"}) parts.add(1, "group", id, 3, 0);
  for (const char* id : {"n1>n2", "n9/g0>n1/g0", "n1/g0>n9/g0", "n1/g0>", ">n1/g0", "n1/g0>n2/g0>n3/g0"})
    parts.add(0, "pair", id, 50, 100);
  EXPECT_TRUE(parts.found().empty());
}

TEST(part_pairs, a_count_of_faults_of_its_own_names_the_part_and_a_bandwidth_does_not) {
  Parts parts;
  parts.add(1, "group", "n2/g0", 2, 0);
  parts.add(1, "group", "n2/g1", 0, 0);
  parts.add(0, "group", "n3/g1", 50, 100);
  const auto found = parts.found();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].requirements, Names{parts.plan.profile.requirements.at(1).id});
  ASSERT_EQ(found[0].culprits.size(), 1U);
  EXPECT_EQ(found[0].culprits[0].nodes, Names{"n2"});
  EXPECT_EQ(found[0].culprits[0].words, "part n2/g0: 2 faults of its own; check it and its links");
}

TEST(part_pairs, a_machine_that_has_another_name_than_its_node_is_known_by_the_agent_s_facts) {
  Parts parts;
  parts.add(1, "group", "tray7.rack/g0", 2, 0);
  EXPECT_TRUE(parts.found().empty());
  Journal journal;
  journal.node_facts = {{"n2", {{"name", "tray7.rack"}}}, {"n3", {{"name", 3}}}};
  const auto found = localise_parts(parts.plan, parts.results, nodes_by_host(journal));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].culprits.at(0).nodes, Names{"n2"});
  EXPECT_EQ(found[0].culprits[0].words, "part n2/g0: 2 faults of its own; check it and its links");
  journal.node_facts["n3"] = {{"name", "tray7.rack"}};  // whose is it then?
  EXPECT_TRUE(localise_parts(parts.plan, parts.results, nodes_by_host(journal)).empty());
}

/// A rack of ten nodes of four parts whose attempts scatter so that one pair in fifty misses the limit; `slow` has
/// 17/18 left.
std::vector<Localised> scattered(std::uint64_t seed, const std::string& slow) {
  constexpr double kSpread = 0.005, kLimit = 99.4, kLeft = 17.0 / 18;
  Parts rack;
  rack.plan = *plan::make_plan(fixture::profile({kChecked, kExact}), fixture::site(10), fixture::programs(), {});
  Names names;
  for (int part = 0; part < 40; ++part) names.push_back(fmt::format("n{}/g{}", part / 4 + 1, part % 4));
  simulate::SeededRandom random(seed, {"pairs"});
  for (const auto& from : names) {
    for (const auto& to : names) {
      const double left = from == slow || to == slow ? kLeft : 1;
      std::vector<double> each(3);
      for (double& attempt : each) attempt = 100 * left * (1 + kSpread * random.normal());
      if (from != to) rack.add(0, "pair", from + ">" + to, each, kLimit);
    }
  }
  return rack.found();
}

TEST(part_pairs, chance_accuses_no_part_in_many_racks_and_a_part_with_a_link_down_is_found_in_each) {
  int accused = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    for (const auto& one : scattered(seed, "")) accused += one.culprits.empty() ? 0 : 1;
    const auto found = scattered(seed, "n7/g2");
    ASSERT_EQ(found.at(0).culprits.size(), 1U) << seed;
    EXPECT_EQ(found[0].culprits[0].nodes, Names{"n7"}) << seed;
    EXPECT_TRUE(found[0].culprits[0].words.starts_with("part n7/g2: ")) << found[0].culprits[0].words;
  }
  EXPECT_LE(accused, 3);  // the matrix may accuse one in fifty by chance
}

TEST(part_pairs, wrong_words_in_all_that_a_part_sends_are_its_own) {
  Parts parts;
  for (const char* from : {"n1/g0", "n2/g0", "n3/g0"}) {
    for (const char* to : {"n1/g1", "n2/g1", "n3/g1"})
      parts.add(1, "pair", fmt::format("{}>{}", from, to), std::string_view(from) == "n3/g0" ? 7 : 0, 0);
  }
  const auto found = parts.found();
  ASSERT_EQ(found.at(0).culprits.size(), 1U);
  EXPECT_EQ(found[0].culprits[0].words,
            "part n3/g0: misses the limit in 3 of 3 pairs as the sender; check it and its links");
}

}  // namespace assay::judge
