// A node whose driver lists more parts than have figures is not accepted, and the parts are named.
#include <gtest/gtest.h>

#include "tests/unit/judge/judged.h"

namespace assay::judge {
namespace {

using fixture::MemoryRun;
using namespace test;
using Names = std::vector<std::string>;

constexpr const char* kEach = R"({"scope": "gpu", "limit": {"at_least": 100, "unit": "B/s"}})";

/// Adds the attempt of step `index`: the node lists the GPUs of `listed`, if any, and gives a figure of `measured`.
void add(MemoryRun& run, std::size_t index, const Names& listed, const Names& measured) {
  std::ostringstream out;
  Recorder recorder(
      out, fixture::kSpec,
      {.probe = "disk", .revision = 1, .parameters = run.plan.steps.at(index).parameters, .host = {{"name", "n1"}}});
  if (!listed.empty()) recorder.condition("nvml_driver", static_cast<std::int64_t>(listed.size()));
  for (const auto& id : listed) recorder.condition("firmware", std::string("1"), {"gpu", id});
  for (const auto& id : measured)
    recorder.measurement("bandwidth", Sampling{.samples = kSteady110, .warmup = {}, .stopped = "stable"}, {"gpu", id});
  recorder.end({.status = Status::complete, .reason = ""});
  std::string record = out.str();
  if (!listed.empty()) record.replace(record.find("nvml_driver"), 11, "gpus_listed");
  run.attempt(index, "exited", record);
  for (auto& condition : run.plan.probes.at("disk").description.conditions)
    if (condition.name == "nvml_driver") condition.name = "gpus_listed";
}

/// The verdict of a run of one step.
Verdict of_run(MemoryRun run, const Names& listed, const Names& measured) {
  add(run, 0, listed, measured);
  return judged(run);
}

/// A run whose site says that the node has `gpus`.
MemoryRun site_of(int gpus) {
  MemoryRun run({kEach}, 1, {{"gpu", plan::kOfSite}});
  run.plan.site.nodes[0].parts = {{"gpu", gpus}};
  return run;
}

TEST(ListedParts, a_listed_gpu_without_a_figure_is_not_measured_and_named_whatever_the_site_says) {
  const Verdict verdict = of_run(site_of(2), {"GPU-a", "GPU-b", "index-2"}, {"GPU-a", "GPU-b"});
  ASSERT_EQ(verdict.results.size(), 3U);
  EXPECT_EQ(verdict.results[1].outcome, Outcome::pass);
  EXPECT_EQ(verdict.results[2].subject, (Subject{"node", "n1"}));
  EXPECT_EQ(verdict.results[2].outcome, Outcome::not_measured);
  EXPECT_EQ(verdict.results[2].reason, "Of index-2, which disk lists, there is no figure.");
  EXPECT_EQ(verdict.overall, Overall::incomplete);
  EXPECT_EQ(of_run(site_of(2), {"GPU-a", "GPU-b"}, {"GPU-a", "GPU-b"}).overall, Overall::accepted);
}

TEST(ListedParts, a_node_with_fewer_parts_than_designed_names_those_that_it_lists) {
  const Verdict verdict = of_run(MemoryRun({kEach}, 1, {{"gpu", 3}}), {"GPU-a", "GPU-b", "GPU-c"}, {"GPU-a", "GPU-b"});
  ASSERT_EQ(verdict.results.size(), 3U);
  EXPECT_EQ(verdict.results[2].reason,
            "2 subjects of kind gpu measured; the design has 3. Of GPU-c, which disk lists, there is no figure.");
}

TEST(ListedParts, instances_of_a_gpu_and_what_need_not_be_reported_are_not_held) {
  MemoryRun instance(
      {kEach, R"({"scope": "gpu", "parameters": {"size": 8}, "limit": {"at_least": 100, "unit": "B/s"}})"}, 1,
      {{"gpu", 1}});
  add(instance, 0, {"GPU-a"}, {"GPU-a"});
  MemoryRun other = instance;
  add(instance, 1, {}, {"MIG-a"});
  EXPECT_EQ(judged(instance).overall, Overall::accepted);
  add(other, 1, {"GPU-a", "GPU-b"}, {"GPU-a"});
  EXPECT_EQ(judged(other).overall, Overall::incomplete);
  MemoryRun told = site_of(1);
  told.plan.profile.requirements[0].when_told = true;
  EXPECT_EQ(of_run(told, {"GPU-a", "GPU-b"}, {"GPU-a"}).overall, Overall::accepted);
}

/// A run of one step that counts the network ports of a node, of which the site says that it has two.
MemoryRun inventory_of(double up) {
  MemoryRun run({kAtLeast100}, 1, {});
  run.plan.site.nodes[0].parts = {{"nic", 2}};
  std::ostringstream out;
  Recorder recorder(
      out, fixture::kSpec,
      {.probe = "disk", .revision = 1, .parameters = run.plan.steps.at(0).parameters, .host = {{"name", "n1"}}});
  recorder.measurement("bandwidth", Sampling{.samples = kSteady110, .warmup = {}, .stopped = "stable"}, {"node", "n1"});
  recorder.measurement("raw_bandwidth", Sampling{.samples = {up}, .warmup = {}, .stopped = "fixed"}, {"node", "n1"});
  recorder.end({.status = Status::complete, .reason = ""});
  std::string record = out.str();
  record.replace(record.find("raw_bandwidth"), 13, "nics_up");
  run.attempt(0, "exited", record);
  for (auto& metric : run.plan.probes.at("disk").description.metrics)
    if (metric.name == "raw_bandwidth") metric.name = "nics_up";
  return run;
}

TEST(ListedParts, a_node_with_fewer_ports_up_than_the_site_says_is_not_accepted) {
  EXPECT_EQ(judged(inventory_of(2)).overall, Overall::accepted);
  const Verdict verdict = judged(inventory_of(1));
  ASSERT_EQ(verdict.results.size(), 1U);
  EXPECT_EQ(verdict.results[0].outcome, Outcome::not_measured);
  EXPECT_NE(verdict.results[0].reason.find("1 parts of kind nic counted; the site says that n1 has 2."),
            std::string::npos)
      << verdict.results[0].reason;
  EXPECT_EQ(verdict.overall, Overall::incomplete);
}

TEST(ListedParts, a_number_in_the_site_that_nothing_counts_is_said_to_be_unchecked) {
  MemoryRun run({kAtLeast100});
  run.plan.site.nodes[0].parts = {{"nic", 2}};
  run.attempt(0, "exited", run.record("n1", kSteady110));
  ASSERT_EQ(judged(run).deviations.size(), 1U);
  EXPECT_EQ(judged(run).deviations.front().what,
            "Not checked, because nothing counts them: the parts of kind nic that the site states of n1.");
  EXPECT_EQ(judged(run).deviations.front().kind, DeviationKind::not_checked);
  EXPECT_TRUE(judged(inventory_of(2)).deviations.empty());
}

}  // namespace
}  // namespace assay::judge
