// The files of a checkpoint: sizes from the parameters, layouts as MLPerf Storage has them, nothing twice or left out.
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "probes/core/description.h"
#include "probes/core/error.h"
#include "probes/core/parameters.h"
#include "tests/unit/paths.h"
#include "workloads/cluster_checkpoint/checkpoint_layout.h"
#include "workloads/cluster_checkpoint/checkpoint_tiers.h"

namespace assay::cluster_checkpoint {
namespace {

struct Whole {
  std::uint64_t bytes = 0;
  std::set<std::uint64_t> numbers;
  std::size_t files = 0;
};

Whole whole_of(const std::string& name, std::uint64_t world, std::uint64_t divisor = 1) {
  Whole whole;
  for (std::uint64_t rank = 0; rank < world; ++rank) {
    const auto shards = checkpoint_shards(checkpoint_model(name), divisor, rank, world);
    whole.bytes += payload_of(shards);
    whole.files += shards.size();
    for (const auto& shard : shards) whole.numbers.insert(shard.number);
  }
  return whole;
}

TEST(CheckpointLayout, a_whole_checkpoint_is_14_B_for_each_parameter_in_any_division) {
  for (const auto& model : checkpoint_models()) {
    const auto exact = static_cast<double>(14 * model.parameters);
    for (const std::uint64_t world : {2U, 3U, 8U}) {
      const auto whole = whole_of(std::string(model.name), world);
      EXPECT_GE(static_cast<double>(whole.bytes), exact);
      EXPECT_LE(static_cast<double>(whole.bytes), exact + 4096.0 * static_cast<double>(whole.files));
      EXPECT_EQ(whole.numbers.size(), whole.files);
    }
  }
}

TEST(CheckpointLayout, what_a_plan_says_of_the_space_is_that_of_the_layout) {
  const auto catalogue = nlohmann::json::parse(*read_file(source_file("profiles/probes.json")));
  for (const auto& probe : catalogue.at("probes")) {
    if (probe.at("name") != "checkpoint_cluster") continue;
    const auto description = read_description(probe.dump(), "checkpoint_cluster");
    ASSERT_TRUE(description);
    for (const auto& model : checkpoint_models()) {
      const Values given = *description->resolve(
          {{"model", std::string(model.name)}, {"tiers", "local,shared"}, {"repetitions", std::int64_t{3}}}, false);
      const auto needs = space_needs(description->space, given, 8);
      ASSERT_EQ(needs.size(), 2U) << model.name;
      const auto whole = static_cast<double>(whole_of(std::string(model.name), 8).bytes);
      EXPECT_NEAR(needs[0].held / whole, 1, 1e-4) << model.name;
      EXPECT_EQ(needs[0].written, 3 * needs[0].held);
      for (std::uint64_t rank = 0; rank < 8; ++rank) {
        const auto own = static_cast<double>(payload_of(checkpoint_shards(model, 1, rank, 8)));
        EXPECT_GE(needs[1].held, own) << model.name << " rank " << rank;
      }
    }
  }
}

TEST(CheckpointLayout, sizes_are_those_that_runs_of_mlperf_storage_report_but_for_70B) {
  constexpr double kGibi = 1 << 30;  // storage_results_v3.0, checkpoint_size_GB, which are GiB
  const auto size = [](const char* name) { return static_cast<double>(whole_of(name, 8).bytes) / kGibi; };
  EXPECT_NEAR(size("llama3-8b"), 104.70, 0.02);
  EXPECT_NEAR(size("llama3-405b"), 5292.25, 1);
  EXPECT_NEAR(size("llama3-1t"), 15426.59, 1);
  EXPECT_NEAR(size("llama3-70b") / 911.21, 1.0095, 0.0005);
}

TEST(CheckpointLayout, files_are_two_a_process_under_zero_3_and_one_more_a_layer_and_tensor_rank_under_zero_1) {
  EXPECT_EQ(whole_of("llama3-8b", 2).files, 16U);
  EXPECT_EQ(whole_of("llama3-70b", 2).files, 128U);
  EXPECT_EQ(whole_of("llama3-405b", 2).files, 512U + 126 * 8);
  EXPECT_EQ(whole_of("llama3-1t", 2).files, 1024U + 128 * 8);
}

TEST(CheckpointLayout, under_zero_1_a_process_of_the_first_replica_saves_a_third_more) {
  const auto first = payload_of(checkpoint_shards(checkpoint_model("llama3-405b"), 1, 0, 512));
  const auto last = payload_of(checkpoint_shards(checkpoint_model("llama3-405b"), 1, 511, 512));
  EXPECT_NEAR(static_cast<double>(first) / static_cast<double>(last), 4.0 / 3, 1e-4);
  EXPECT_NEAR(static_cast<double>(last) / (1 << 30), 8.86, 0.01);
}

TEST(CheckpointLayout, a_divided_checkpoint_has_another_identity_and_as_many_files) {
  const auto& model = checkpoint_model("llama3-70b");
  EXPECT_EQ(checkpoint_identity(model, 1), "llama3-70b");
  EXPECT_EQ(checkpoint_identity(model, 1000), "llama3-70b/1000");
  EXPECT_EQ(whole_of("llama3-70b", 4, 1'000'000'000).bytes, 128U * 4096);
}

TEST(CheckpointLayout, tiers_are_sorted_and_unknown_or_repeated_ones_refused) {
  EXPECT_EQ(tiers_in("shared,memory,peer"), (std::vector{Tier::memory, Tier::peer, Tier::shared}));
  for (const char* words : {"", "memory,memory", "tape", "memory, peer"})
    EXPECT_THROW(tiers_in(words), BadParameter) << words;
}

}  // namespace
}  // namespace assay::cluster_checkpoint
