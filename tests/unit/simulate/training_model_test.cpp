// Training steps of a simulated fleet: slow nodes and links show where a real step shows them, however few replicas are
// walked.
#include "orchestrator/simulate/training_model.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "workloads/train/graph/plan_parameters.h"

namespace assay::simulate {
namespace {

/// The parameters of a step, with those of `given` in place of their defaults.
Parameters parameters(const Values& given) {
  Values all;
  for (const Parameter& one : train::kPlanParameters) all[std::string(one.name)] = parse_parameter(one, one.fallback);
  for (const auto& [name, value] : given) all[name] = value;
  return Parameters(std::move(all));
}

TrainingModel model(const Values& given, std::size_t nodes, std::size_t ranks_per_node) {
  return TrainingModel::of(parameters(given), nodes, ranks_per_node).value();
}

NodeSpeeds speeds(std::size_t nodes) { return {.nodes = std::vector<double>(nodes, 1), .links = {}}; }

const Values kDivided = {{"tp", std::int64_t{2}}, {"pp", std::int64_t{2}}, {"micro_batches", std::int64_t{4}}};

TEST(TrainingModel, is_none_of_what_does_not_divide_is_no_preset_or_is_no_step) {
  EXPECT_FALSE(TrainingModel::of(parameters({{"tp", std::int64_t{3}}}), 4, 1));
  EXPECT_FALSE(TrainingModel::of(parameters({{"model", "/tmp/card.json"}}), 4, 1));
  EXPECT_FALSE(TrainingModel::of(Parameters({{"size", std::int64_t{8}}}), 4, 1));
  EXPECT_TRUE(TrainingModel::of(parameters({}), 4, 1));
}

TEST(TrainingModel, of_healthy_nodes_has_no_rank_before_another) {
  const auto found = model(kDivided, 8, 2).walk(speeds(8));
  EXPECT_EQ(found.step, 1);
  EXPECT_EQ(found.compute, 1);
  EXPECT_EQ(found.comm, 1);
  ASSERT_EQ(found.self_share.size(), 16U);
  for (std::size_t rank = 0; rank < 16; ++rank) {
    EXPECT_EQ(found.self_share[rank], 1);
    EXPECT_EQ(found.last_share[rank], 1.0 / 8);  // of the ranks at its place in the pipeline
  }
}

TEST(TrainingModel, of_a_slow_node_is_slower_by_its_computation_and_names_its_ranks) {
  auto slow = speeds(8);
  slow.nodes[5] = 0.5;
  const auto found = model(kDivided, 8, 2).walk(slow);
  EXPECT_GT(found.step, 1.2);
  EXPECT_LT(found.step, 2);
  EXPECT_GT(found.compute, 1.2);
  EXPECT_EQ(found.comm, 1);
  for (std::size_t rank = 0; rank < 16; ++rank) {
    EXPECT_EQ(found.self_share[rank], rank / 2 == 5 ? 2 : 1) << rank;
    if (rank >= 8) {
      EXPECT_EQ(found.last_share[rank], rank / 2 == 5 ? 0.5 : 0) << rank;
    }
  }
}

TEST(TrainingModel, of_a_slow_link_is_slower_by_its_messages_and_blames_no_rank) {
  const auto whole = model({}, 4, 1);
  auto slow = speeds(4);
  slow.links.push_back({{1, 2}, 0.25});
  const auto found = whole.walk(slow);
  EXPECT_EQ(found.compute, 1);
  EXPECT_NEAR(found.comm, 4, 1e-9);
  EXPECT_EQ(found.self_share, std::vector<double>(4, 1));
  ASSERT_EQ(whole.edges().size(), 4U);
  for (std::size_t edge = 0; edge < 4; ++edge) {
    const bool slow_one = whole.edges()[edge] == std::pair<std::size_t, std::size_t>(1, 2);
    EXPECT_EQ(found.edge_time[edge], slow_one ? 4 : 1) << edge;
  }
}

TEST(TrainingModel, walks_few_replicas_as_it_would_all_of_them) {
  const auto whole = model(kDivided, 32, 1);
  auto few = speeds(32);
  few.nodes[3] = 0.8;
  few.links.push_back({{3, 17}, 0.5});
  auto all = few;
  for (double& node : all.nodes) node = std::min(node, 1 - 1e-12);  // no replica is left out
  const auto short_walk = whole.walk(few), long_walk = whole.walk(all);
  EXPECT_NEAR(short_walk.step, long_walk.step, 1e-9);
  EXPECT_NEAR(short_walk.compute, long_walk.compute, 1e-9);
  EXPECT_NEAR(short_walk.comm, long_walk.comm, 1e-9);
}

}  // namespace
}  // namespace assay::simulate
