// What an accelerator is fed: sizes and orders that a seed decides, and how long it waits.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "workloads/storage/ingest/ingest_phase.h"
#include "workloads/storage/ingest/ingest_plan.h"

namespace assay::cluster_storage {
namespace {

TEST(IngestPlan, models_are_those_of_the_rules) {
  // mlcommons/storage at 0366ccf, configs unet3d_b200 and retinanet_b200: 6.33 and 0.163 GB/s at full utilisation.
  const auto rate = [](const IngestModel& model) {
    return model.record * static_cast<double>(model.batch) / model.compute_s;
  };
  EXPECT_NEAR(rate(ingest_model("unet3d")), 6.33e9, 0.01e9);
  EXPECT_NEAR(rate(ingest_model("retinanet")), 0.163e9, 0.001e9);
  EXPECT_THROW((void)ingest_model("none"), std::logic_error);
}

TEST(IngestPlan, sizes_have_the_mean_and_deviation_of_the_model_and_whole_words) {
  const auto& model = ingest_model("unet3d");
  double sum = 0, squares = 0;
  constexpr int kSamples = 20000;
  for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
    const std::uint64_t size = sample_size(model.record, model.deviation, 7, sample);
    EXPECT_EQ(size % 8, 0U);
    sum += static_cast<double>(size);
    squares += static_cast<double>(size) * static_cast<double>(size);
  }
  const double mean = sum / kSamples;
  EXPECT_NEAR(mean / model.record, 1, 0.02);
  EXPECT_NEAR(std::sqrt(squares / kSamples - mean * mean) / model.deviation, 1, 0.02);
  EXPECT_EQ(sample_size(322957, 0, 7, 1), 322960U);
  EXPECT_NE(sample_size(model.record, model.deviation, 7, 1), sample_size(model.record, model.deviation, 8, 1));
}

TEST(IngestPlan, an_order_has_each_sample_once_and_another_seed_has_another_order) {
  const auto order = shuffled(1000, 1);
  EXPECT_EQ(std::set<std::uint64_t>(order.begin(), order.end()).size(), 1000U);
  EXPECT_FALSE(std::ranges::is_sorted(order));
  EXPECT_NE(order, shuffled(1000, 2));
  EXPECT_EQ(order, shuffled(1000, 1));
  EXPECT_TRUE(shuffled(0, 1).empty());
}

TEST(IngestTimes, utilisation_is_compute_over_compute_and_waiting) {
  EXPECT_EQ((IngestTimes{.waited_s = 1, .computed_s = 3}).utilisation(), 0.75);
  EXPECT_EQ((IngestTimes{.waited_s = 0, .computed_s = 3}).utilisation(), 1);
  EXPECT_EQ(IngestTimes{}.utilisation(), 1);
}

TEST(IngestFeed, an_accelerator_that_waits_is_starved_and_readers_keep_within_their_distance) {
  std::atomic<bool> abandoned = false;
  IngestFeed feed(3, 2, 1, abandoned);
  std::vector<std::uint64_t> places;
  std::jthread reader([&] {
    while (const auto place = feed.next()) {
      places.push_back(*place);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      feed.ready(*place);
    }
  });
  const auto times = feed.run(0.001, 0.001);
  reader.join();
  EXPECT_EQ(places, (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(times.starved_steps, 2U);
  EXPECT_LT(times.utilisation(), 0.5);
}

TEST(IngestFeed, a_group_that_has_ended_ends_every_wait) {
  std::atomic<bool> abandoned = true;
  IngestFeed feed(1, 1, 1, abandoned);
  EXPECT_THROW((void)feed.run(0.001, 0.001), std::runtime_error);
  EXPECT_THROW((void)feed.next(), std::runtime_error);
}

}  // namespace
}  // namespace assay::cluster_storage
