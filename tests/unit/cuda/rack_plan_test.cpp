// What is drawn in a rack, why a rack is refused before any load, and what links and rates are put down to.
#include "probes/cuda/rack_plan.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "tests/unit/failure.h"

namespace assay::cuda {
namespace {

constexpr unsigned kClique = 32766;
const std::string kCluster = "9c9c9c9c-9c9c-9c9c-9c9c-9c9c9c9c9c9c";

/// `trays` of `each` GPUs in one clique.
std::vector<RackGpu> rack(std::size_t trays, std::size_t each) {
  std::vector<RackGpu> gpus;
  for (std::size_t tray = 0; tray < trays; ++tray) {
    for (std::size_t gpu = 0; gpu < each; ++gpu)
      gpus.push_back({.tray = fmt::format("t{:02}", tray),
                      .uuid = fmt::format("G{}", gpu),
                      .state = "completed",
                      .cluster = kCluster,
                      .clique = kClique,
                      .fabric_handles = true,
                      .posix_handles = true});
  }
  return gpus;
}

std::string refusal(const std::vector<RackGpu>& gpus) {
  return failure([&] { (void)check_fabric(gpus); });
}

}  // namespace

TEST(rack_plan, a_rack_in_one_clique_shares_by_fabric_handles_and_clique_0_is_one) {
  EXPECT_EQ(check_fabric(rack(18, 4)).kind, HandleKind::fabric);
  auto gpus = rack(18, 4);
  for (auto& gpu : gpus) gpu.clique = 0;
  EXPECT_EQ(check_fabric(gpus).kind, HandleKind::fabric);
}

TEST(rack_plan, trays_that_differ_from_most_are_named_before_any_load) {
  struct Case {
    const char* what;
    void (*change)(RackGpu&);
    std::string place;
  };
  const Case cases[] = {
      {"clique", [](RackGpu& gpu) { gpu.clique = 1; }, "in clique 1 of cluster " + kCluster},
      {"clique 0", [](RackGpu& gpu) { gpu.clique = 0; }, "in clique 0 of cluster " + kCluster},
      {"cluster", [](RackGpu& gpu) { gpu.cluster = "other"; }, "in clique 32766 of cluster other"},
      {"no cluster", [](RackGpu& gpu) { gpu.cluster.clear(); }, "in clique 32766 of a cluster without UUID"},
      {"not yet", [](RackGpu& gpu) { gpu.state = "in_progress"; }, "in no fabric (state in_progress)"},
      {"no NVML",
       [](RackGpu& gpu) {
         gpu.state = "unknown";
         gpu.clique.reset();
       },
       "in no fabric (state unknown)"}};
  for (const Case& one : cases) {
    auto gpus = rack(18, 4);
    for (const std::size_t rank : {28U, 29U, 71U}) one.change(gpus[rank]);
    EXPECT_EQ(refusal(gpus),
              "the GPUs are not in one NVLink fabric: 69 of 72 are in clique 32766 of cluster " + kCluster + "; " +
                  one.place +
                  ": t07 (G0, G1), t17 (G3); hint: nothing was moved; see nvidia-smi -q, Fabric, on these trays")
        << one.what;
  }
}

TEST(rack_plan, trays_that_are_alike_in_no_fabric_are_no_rack) {
  // Nodes with NVSwitches of their own: clique 0 of no cluster on each, which is not one fabric.
  auto gpus = rack(2, 4);
  for (auto& gpu : gpus) gpu.cluster.clear(), gpu.clique = 0;
  EXPECT_EQ(
      refusal(gpus),
      "all 8 GPUs are in clique 0 of a cluster without UUID, which is no fabric of several trays; hint: nothing was "
      "moved; is the fabric manager of the rack running, and is NVML there?");
}

TEST(rack_plan, handles_that_are_not_offered_are_named_and_descriptors_stay_within_a_tray) {
  auto gpus = rack(3, 2);
  gpus[3].fabric_handles = false;
  EXPECT_EQ(refusal(gpus), "no fabric handles are offered by t01 (G1); the other GPUs offer them");
  for (auto& gpu : gpus) gpu.fabric_handles = false;
  EXPECT_THROW((void)check_fabric(gpus), Skip);
  auto tray = rack(1, 4);
  for (auto& gpu : tray) gpu.fabric_handles = false;
  EXPECT_EQ(check_fabric(tray).kind, HandleKind::posix);
  EXPECT_EQ(check_fabric(tray).reason, "no fabric handles offered by t00 (G0, G1, G2, G3)");
  for (auto& gpu : tray) gpu.posix_handles = false;
  EXPECT_THROW((void)check_fabric(tray), Skip);
  // Fabric handles without a fabric of several nodes, as on a node with NVSwitches of its own.
  auto node = rack(1, 8);
  for (auto& gpu : node) gpu.cluster.clear(), gpu.clique = 0;
  EXPECT_EQ(check_fabric(node).kind, HandleKind::posix);
  EXPECT_EQ(check_fabric(node).reason, "in clique 0 of a cluster without UUID");
  node[4].clique = 1;
  EXPECT_NE(refusal(node).find("in clique 1 of a cluster without UUID: t00 (G4)"), std::string::npos);
}

TEST(rack_plan, each_gpu_sends_to_as_many_of_each_tray_as_asked_and_another_seed_draws_others) {
  const Trays trays = trays_of(rack(6, 8));
  const auto pairs = sampled_pairs(trays, 5, 1);
  ASSERT_EQ(pairs.size(), 48U * 6 * 5);
  std::map<std::pair<std::size_t, std::size_t>, std::set<std::size_t>> targets;
  for (const auto& pair : pairs) {
    EXPECT_NE(pair.source, pair.target);
    targets[{pair.source, trays.of_rank[pair.target]}].insert(pair.target);
  }
  for (const auto& [key, some] : targets) EXPECT_EQ(some.size(), 5U);
  EXPECT_EQ(pairs, sampled_pairs(trays, 5, 1));
  EXPECT_NE(pairs, sampled_pairs(trays, 5, 2));
  EXPECT_EQ(sampled_pairs(trays_of(rack(18, 4)), 5, 1).size(), 72U * 71);  // a tray of four has no fifth
}

TEST(rack_plan, rounds_have_all_pairs_once_and_no_gpu_twice) {
  const auto pairs = sampled_pairs(trays_of(rack(18, 4)), 5, 1);
  const auto rounds = rounds_of(pairs);
  std::size_t all = 0;
  for (const auto& round : rounds) {
    std::set<std::size_t> busy;
    for (const auto& pair : round) {
      EXPECT_TRUE(busy.insert(pair.source).second);
      EXPECT_TRUE(busy.insert(pair.target).second);
    }
    all += round.size();
  }
  EXPECT_EQ(all, pairs.size());
  EXPECT_GE(rounds.size(), 2 * pairs.size() / 72);  // no fewer: 36 pairs are all that a round holds
  EXPECT_LE(rounds.size(), 3 * pairs.size() / 72);
}

TEST(rack_plan, in_a_bisection_everyone_sends_and_receives_once) {
  EXPECT_EQ(bisection_pairs(4), (std::vector<DevicePair>{{0, 2}, {1, 3}, {2, 0}, {3, 1}}));
  EXPECT_EQ(bisection_pairs(3), (std::vector<DevicePair>{{0, 1}, {1, 2}, {2, 0}}));
  EXPECT_EQ(pairs_to(1, 3), (std::vector<DevicePair>{{0, 1}, {2, 1}}));
}

TEST(rack_plan, each_sender_has_a_place_of_its_own_or_the_size_is_refused) {
  EXPECT_EQ(share_of_landing(1 << 20, 71), 12288U);
  EXPECT_EQ(failure([] { (void)share_of_landing(65536, 71); }),
            "size: 65536 B is less than 4 KiB for each of 71 senders to one GPU; give 290816 B or more");
}

TEST(rack_plan, a_link_of_most_gpus_is_a_plane_and_any_other_is_its_gpu_s) {
  const auto links_of = [](std::set<unsigned> bad) {
    std::vector<LinkSeen> links;
    for (unsigned number = 0; number < 18; ++number)
      links.push_back({.number = number, .at_fault = bad.contains(number)});
    return links;
  };
  std::vector<std::vector<LinkSeen>> seen(8, links_of({}));
  EXPECT_EQ(link_faults(seen).planes.at(5), 0U);
  seen[3] = links_of({5});  // a cable
  EXPECT_EQ(link_faults(seen).planes.at(5), 0U);
  EXPECT_EQ(link_faults(seen).links_of_rank[3], std::vector<unsigned>{5});
  for (std::size_t rank = 0; rank < 5; ++rank) seen[rank] = links_of({5});
  seen[7] = links_of({2});
  const LinkFaults plane = link_faults(seen);
  EXPECT_EQ(plane.planes.at(5), 5U);
  EXPECT_EQ(plane.planes.at(2), 0U);
  EXPECT_TRUE(plane.links_of_rank[3].empty());
  EXPECT_EQ(plane.links_of_rank[7], std::vector<unsigned>{2});
  // Half of them, and two of two, are no majority and no plane.
  seen[4] = links_of({});
  EXPECT_EQ(link_faults(seen).planes.at(5), 0U);
  EXPECT_EQ(link_faults({links_of({5}), links_of({5})}).planes.at(5), 0U);
  EXPECT_TRUE(link_faults({{}, {}}).planes.empty());
}

TEST(rack_plan, figures_are_medians_of_what_takes_part) {
  const Trays trays = trays_of(rack(2, 2));
  const std::vector<DevicePair> pairs = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {2, 3}};
  const double rates[] = {10, 20, 30, 40, 50};
  const RackFigures figures = rack_figures(trays, pairs, rates);
  EXPECT_EQ(figures.sent[0], 20);
  EXPECT_EQ(figures.sent[3], std::nullopt);
  EXPECT_EQ(figures.received[2], 30);
  EXPECT_EQ(figures.received[0], std::nullopt);
  EXPECT_EQ(figures.of_tray[0], 25);  // 10 20 30 40
  EXPECT_EQ(figures.of_tray[1], 35);  // 20 30 40 50
  EXPECT_EQ(figures.middle, 30);
  EXPECT_EQ(figures.least, 10);
}

}  // namespace assay::cuda
