// Figures of two nodes: partners change from night to night, and the node that is short is named, not its partners.
#include <algorithm>
#include <functional>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "orchestrator/drift/detector.h"
#include "probes/core/portable_math.h"

namespace assay::drift {
namespace {

constexpr double kSigma = 0.01, kLevels = 0.05;  // of a figure from night to night; of nodes among each other

/// What a fault does to the logarithm of what `a` and `b` measure in this night.
using Fault = std::function<double(std::size_t a, std::size_t b, int night)>;

/// A fleet in which all nodes are measured in pairs, as a round of a tournament has them.
class Pairs {
 public:
  Pairs(std::size_t nodes, Fault fault, int rounds = 1, unsigned seed = 1)
      : fault_(std::move(fault)), rounds_(rounds), random_(seed) {
    fleet.metrics = {{.name = "net.bandwidth", .probe = "net", .revision = 1, .unit = "B/s"}};
    fleet.cohorts = {"pair of nodes"};
    for (std::size_t i = 0; i < nodes; ++i) {
      fleet.units.push_back({.id = "node:s" + std::to_string(i), .kind = "node", .serial = true, .node = name(i)});
      fleet.series.push_back({.unit = static_cast<std::uint32_t>(i), .metric = 0});
      levels_.push_back(kLevels * noise());
    }
  }
  static std::string name(std::size_t i) { return "n" + std::to_string(i); }

  Night next() {
    ++night_;
    Night night{.date = Date{std::chrono::days{20'000 + night_}}};
    for (int round = 0; round < rounds_; ++round) {
      std::vector<std::size_t> circle(fleet.units.size());
      for (std::size_t i = 0; i < circle.size(); ++i) circle[i] = i;
      const auto turn = (night_ * rounds_ + round) % (std::ssize(circle) - 1);
      std::rotate(circle.begin() + 1, circle.begin() + 1 + turn, circle.end());
      for (std::size_t i = 0; i < circle.size() / 2; ++i)
        measure(night, circle[i], circle[circle.size() - 1 - i], round);
    }
    return night;
  }

  Fleet fleet;

 private:
  double noise() { return std::normal_distribution<double>()(random_); }
  void measure(Night& night, std::size_t a, std::size_t b, int round) {
    const double value = 100 * portable_exp(levels_[a] + levels_[b] + kSigma * noise() + fault_(a, b, night_));
    for (const auto& [own, other] : {std::pair(a, b), std::pair(b, a)}) {
      night.readings.push_back({.series = static_cast<std::uint32_t>(own),
                                .visit = static_cast<std::uint32_t>(night.visits.size()),
                                .value = value,
                                .samples = 1});
      night.visits.push_back({.unit = static_cast<std::uint32_t>(own),
                              .run_sha256 = std::to_string(round) + name(a),
                              .node = name(own),
                              .partner = name(other)});
    }
  }

  Fault fault_;
  int rounds_ = 1, night_ = -1;
  std::mt19937 random_;
  std::vector<double> levels_;
};

struct Blamed {
  std::set<std::string> flagged, confirmed;
  std::vector<Flag> last;
};

Blamed watch_pairs(Pairs pairs, int nights) {
  Policy policy;
  policy.false_flags.count = 0.001;
  Detector detector(pairs.fleet, policy);
  Blamed seen;
  for (int i = 0; i < nights; ++i) {
    detector.add(pairs.next());
    seen.last = detector.report().flags;
    for (const Flag& flag : seen.last) {
      if (flag.state != UnitState::watch) seen.flagged.insert(flag.node);
      if (flag.state == UnitState::confirmed) seen.confirmed.insert(flag.node);
    }
  }
  return seen;
}

/// Node `slow` is short by `sigma` deviations from night 60 on, with whomever it is measured.
Fault slow_node(std::size_t slow, double sigma) {
  return [=](std::size_t a, std::size_t b, int night) {
    return night >= 60 && (a == slow || b == slow) ? -sigma * kSigma : 0;
  };
}

TEST(PairsOfNodes, a_slow_node_is_confirmed_and_none_of_its_partners_is) {
  const std::pair<std::size_t, double> fleets[] = {{6, 6}, {8, 3}, {8, 6}, {40, 3}, {40, 6}};
  for (const auto& [nodes, sigma] : fleets) {
    const Blamed seen = watch_pairs({nodes, slow_node(2, sigma)}, 110);
    EXPECT_EQ(seen.confirmed, std::set<std::string>{"n2"}) << nodes << " nodes, " << sigma;
    const auto own = std::ranges::find(seen.last, "n2", &Flag::node);
    ASSERT_NE(own, seen.last.end());
    EXPECT_GT(own->partners.size(), 1U);
    EXPECT_EQ(own->suspects, std::vector<std::string>{"unit node:s2"});
  }
}

TEST(PairsOfNodes, nodes_that_always_differed_are_not_flagged_for_their_partners) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    const Blamed seen = watch_pairs({20, [](auto...) { return 0.0; }, 1, seed}, 150);
    EXPECT_TRUE(seen.confirmed.empty());
    EXPECT_LE(seen.flagged.size(), 1U) << seed;
  }
}

TEST(PairsOfNodes, of_two_nodes_that_only_meet_each_other_none_is_confirmed_and_the_pair_is_named) {
  const Blamed seen = watch_pairs({2, slow_node(1, 6)}, 90);
  EXPECT_TRUE(seen.confirmed.empty());
  ASSERT_FALSE(seen.last.empty());
  for (const Flag& flag : seen.last) EXPECT_EQ(flag.suspects, std::vector<std::string>{"pair n0+n1"});
}

TEST(PairsOfNodes, a_slow_path_between_two_nodes_accuses_none_of_them) {
  const Blamed seen = watch_pairs(
      {6, [](std::size_t a, std::size_t b, int night) { return night >= 60 && std::max(a, b) == 1 ? -0.1 : 0.0; }},
      120);
  EXPECT_TRUE(seen.confirmed.empty());
  for (const Flag& flag : seen.last) EXPECT_EQ(flag.suspects, std::vector<std::string>{"pair n0+n1"}) << flag.node;
}

TEST(PairsOfNodes, with_several_partners_a_night_one_slow_partner_decides_nothing) {
  const Blamed seen = watch_pairs({12, slow_node(5, 8), 3}, 100);
  EXPECT_EQ(seen.confirmed, std::set<std::string>{"n5"});
  EXPECT_EQ(seen.flagged, std::set<std::string>{"n5"});
}

TEST(PairsOfNodes, the_report_does_not_depend_on_a_saved_state) {
  Pairs pairs(8, slow_node(2, 6), 2);
  Detector whole(pairs.fleet, {});
  std::optional<Detector> part = Detector(pairs.fleet, {});
  for (int i = 0; i < 80; ++i) {
    const Night night = pairs.next();
    whole.add(night);
    auto resumed = Detector::resume(pairs.fleet, {}, part->state());
    ASSERT_TRUE(resumed.has_value());
    part = std::move(*resumed);
    part->add(night);
  }
  EXPECT_EQ(report_text(whole.report()), report_text(part->report()));
}

}  // namespace
}  // namespace assay::drift
