// What --describe says of a probe, and when its metrics and conditions are recorded.
#include "probes/core/description.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

using nlohmann::json;

constexpr Metric kDeclaredMetrics[] = {
    {.name = "rate", .unit = "B/s", .meaning = "bytes over time, at the place where files lie"},
    {.name = "share", .unit = "1", .meaning = "rate over the port's", .recorded = Recorded::if_reported},
    fault("lost", "blocks that were lost"),
    {.name = "lifetime", .unit = "s", .meaning = "power-on time", .course = Course::for_life},
};
constexpr ConditionSpec kDeclaredConditions[] = {
    {.name = "directory", .meaning = "the place where files lie"},
    {.name = "nonce", .meaning = "what the payload is keyed by", .recorded = Recorded::rank_0},
    {.name = "firmware", .meaning = "of the device", .recorded = Recorded::if_reported},
};
constexpr ProbeSpec kDeclaredSpec{.name = "disk",
                                  .measures = "A disk.",
                                  .method = "None.",
                                  .source = "None.",
                                  .metrics = kDeclaredMetrics,
                                  .conditions = kDeclaredConditions};

Description read(const json& document) { return read_description(document.dump(), "disk").value(); }

/// Why `document` is refused.
std::string refusal(const json& document) {
  const auto read = read_description(document.dump(), "disk");
  return read ? "" : read.error().text();
}

TEST(Recorded, comes_back_as_it_was_described) {
  const Description disk = read(describe(kDeclaredSpec));
  EXPECT_EQ(disk.metric("rate")->recorded, Recorded::always);
  EXPECT_EQ(disk.metric("share")->recorded, Recorded::if_reported);
  EXPECT_EQ(disk.conditions.at(1).recorded, Recorded::rank_0);
}

TEST(Recorded, is_left_out_where_it_is_always) {
  const json document = describe(kDeclaredSpec);
  EXPECT_FALSE(document["metrics"][0].contains("recorded"));
  EXPECT_FALSE(document["conditions"][0].contains("recorded"));
  EXPECT_EQ(document["conditions"][2]["recorded"], "if_reported");
}

TEST(Recorded, every_rank_owes_only_what_is_always_recorded_whatever_the_meaning_says) {
  const Description disk = read(describe(kDeclaredSpec));
  EXPECT_TRUE(disk.always_records("directory"));
  EXPECT_FALSE(disk.always_records("nonce"));
  EXPECT_FALSE(disk.always_records("firmware"));
  EXPECT_FALSE(disk.always_records("unknown"));
}

TEST(Recorded, another_word_is_refused_with_the_known_ones) {
  json document = describe(kDeclaredSpec);
  document["conditions"][0]["recorded"] = "sometimes";
  EXPECT_NE(refusal(document).find("'sometimes' is not a word for when it is recorded"), std::string::npos)
      << refusal(document);
  EXPECT_NE(refusal(document).find("always, rank_0, if_asked, if_present, if_reported, if_occurred"), std::string::npos)
      << refusal(document);
}

/// The description as assay.probe/1 had it.
json old_form() { return in_old_forms(describe(kDeclaredSpec)).back(); }

TEST(Recorded, of_a_description_of_assay_probe_1_the_meaning_decides) {
  const Description disk = read(old_form());
  EXPECT_FALSE(disk.always_records("directory"));
  EXPECT_TRUE(disk.always_records("firmware"));
  EXPECT_EQ(disk.metric("rate")->recorded, Recorded::if_reported);
}

TEST(Recorded, in_a_description_of_assay_probe_1_is_refused) {
  json document = old_form();
  document["conditions"][1]["recorded"] = "rank_0";
  EXPECT_NE(refusal(document).find("assay.probe/1 has no field recorded"), std::string::npos) << refusal(document);
}

TEST(RunDeviation, is_of_performance_alone) {
  const Description disk = read(describe(kDeclaredSpec));
  EXPECT_EQ(disk.metric("rate")->between_runs, RunDeviation{}.least);
  for (const char* other : {"share", "lost", "lifetime"}) EXPECT_EQ(disk.metric(other)->between_runs, 0) << other;
  EXPECT_EQ(disk.between_runs, RunDeviation{}.source);
}

TEST(RunDeviation, of_a_probe_that_times_nothing_is_left_out) {
  ProbeSpec spec = kDeclaredSpec;
  spec.between_runs = {.least = 0};
  const json document = describe(spec);
  EXPECT_FALSE(document.contains("between_runs"));
  EXPECT_FALSE(document["metrics"][0].contains("between_runs"));
}

TEST(RunDeviation, in_a_description_of_assay_probe_2_is_refused) {
  json document = in_old_forms(describe(kDeclaredSpec)).at(1);
  EXPECT_EQ(read(document).metric("rate")->between_runs, 0);
  document["metrics"][0]["between_runs"] = 0.01;
  EXPECT_NE(refusal(document).find("assay.probe/2 has no field between_runs"), std::string::npos) << refusal(document);
}

constexpr Parameter kTimes[] = {spent("warmup_least", "0s", "warm-up"), spent("hold", "30s", "at full load", "1s", 2),
                                parameter("wait", "s", "9s", "at most")};
constexpr ProbeSpec kLoadSpec{.name = "disk",
                              .measures = "A load.",
                              .method = "None.",
                              .source = "None.",
                              .typical = {10},
                              .loads = 3,
                              .parameters = kTimes};

TEST(Spent, is_said_of_each_time_as_often_as_a_run_loads) {
  const Description load = read(describe(kLoadSpec));
  EXPECT_EQ(load.parameters.at(0).spent, 3);
  EXPECT_EQ(load.parameters.at(1).spent, 6);
  EXPECT_EQ(load.parameters.at(2).spent, 0);
  EXPECT_FALSE(describe(kLoadSpec)["parameters"][2].contains("spent"));
  EXPECT_EQ(load.spent_s({{"warmup_least", 5.0}, {"hold", 20.0}, {"wait", 7.0}}), 3 * 5 + 6 * 20);
}

TEST(Spent, was_until_assay_probe_3_the_least_times_and_the_others_lay_in_the_typical_time) {
  json document = in_old_forms(describe(kLoadSpec)).front();
  EXPECT_EQ(document["schema"], "assay.probe/3");
  EXPECT_EQ(document["loads"], 3);
  EXPECT_EQ(document["typical_s"], 10 + 6 * 30);
  const Description load = read(document);
  EXPECT_EQ(load.spent_s({{"warmup_least", 5.0}, {"hold", 20.0}}), 3 * 5);
  document["parameters"][1]["spent"] = 1;
  EXPECT_NE(refusal(document).find("assay.probe/3 has no field spent"), std::string::npos) << refusal(document);
}

}  // namespace
}  // namespace assay
