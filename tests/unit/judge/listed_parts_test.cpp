// A node whose driver lists more parts than have figures is not accepted, and the parts are named.
#include <gtest/gtest.h>

#include "tests/unit/judge/judged.h"

namespace assay::judge {
namespace {

using fixture::MemoryRun;
using namespace test;
using Names = std::vector<std::string>;

constexpr const char* kEach = R"({"scope": "gpu", "limit": {"at_least": 100, "unit": "B/s"}})";

/// Has the probe declare the condition `name` as `other`.
void rename(MemoryRun& run, std::string_view name, const char* other) {
  for (auto& condition : run.plan.probes.at("disk").description.conditions)
    if (condition.name == name) condition.name = other;
}

/// Adds the attempt of step `index`: the node lists the GPUs of `listed`, if any, and gives a figure of `measured`.
void add(MemoryRun& run, std::size_t index, const Names& listed, const Names& measured,
         std::optional<bool> partitioned = {}) {
  std::ostringstream out;
  Recorder recorder(
      out, fixture::kSpec,
      {.probe = "disk", .revision = 1, .parameters = run.plan.steps.at(index).parameters, .host = {{"name", "n1"}}});
  if (!listed.empty()) recorder.condition("nvml_driver", static_cast<std::int64_t>(listed.size()));
  for (const auto& id : listed) recorder.condition("firmware", std::string("1"), {"gpu", id});
  if (partitioned) recorder.condition("driver_version", *partitioned, {"gpu", listed.at(0)});
  for (const auto& id : measured)
    recorder.measurement("bandwidth", Sampling{.samples = kSteady110, .warmup = {}, .stopped = "stable"}, {"gpu", id});
  recorder.end({.status = Status::complete, .reason = ""});
  std::string record = out.str();
  if (!listed.empty()) record.replace(record.find("nvml_driver"), 11, "gpus_listed");
  if (partitioned) record.replace(record.find("driver_version"), 14, "mig_mode");
  run.attempt(index, "exited", record);
  rename(run, "nvml_driver", "gpus_listed");
  if (partitioned) rename(run, "driver_version", "mig_mode");
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

TEST(ListedParts, an_instance_of_a_gpu_is_no_whole_gpu_and_is_held_against_the_number_of_instances_in_the_site) {
  const Verdict one = of_run(site_of(1), {}, {"MIG-a"});
  ASSERT_EQ(one.results.size(), 2U);
  EXPECT_EQ(one.results[1].outcome, Outcome::not_measured);
  EXPECT_EQ(
      one.results[1].reason,
      "0 subjects of kind gpu measured; the design has 1. 1 are instances of partitioned GPUs (MIG), of which the "
      "site states no number.");
  EXPECT_EQ(one.overall, Overall::incomplete);
  const auto stated = [](int instances) {
    MemoryRun run = site_of(1);
    run.plan.site.nodes[0].parts["gpu_instance"] = instances;
    return of_run(run, {}, {"MIG-a", "MIG-b"}).overall;
  };
  EXPECT_EQ(stated(2), Overall::accepted);
  MemoryRun three = site_of(3);  // two instances cannot be of three GPUs
  three.plan.site.nodes[0].parts["gpu_instance"] = 2;
  EXPECT_EQ(of_run(three, {}, {"MIG-a", "MIG-b"}).results.back().reason,
            "2 instances (MIG) measured, of 3 GPUs: each has one or more, so that GPUs are missing.");
  MemoryRun mixed = site_of(1);
  mixed.plan.site.nodes[0].parts["gpu_instance"] = 2;
  EXPECT_EQ(of_run(mixed, {}, {"GPU-c", "MIG-a", "MIG-b"}).overall, Overall::incomplete);
  EXPECT_EQ(stated(3), Overall::incomplete);
  EXPECT_EQ(stated(1), Overall::incomplete);
}

TEST(ListedParts, a_partitioned_gpu_is_no_whole_one) {
  MemoryRun run = site_of(1);
  add(run, 0, {"GPU-a"}, {"GPU-a"}, true);
  EXPECT_EQ(judged(run).overall, Overall::incomplete);
  EXPECT_NE(judged(run).results.back().reason.find("Partitioned (MIG), so no whole GPU of n1: GPU-a."),
            std::string::npos)
      << judged(run).results.back().reason;
  run.plan.site.nodes[0].parts["gpu_instance"] = 7;
  EXPECT_EQ(judged(run).overall, Overall::accepted);
  MemoryRun whole = site_of(1);
  add(whole, 0, {"GPU-a"}, {"GPU-a"}, false);
  EXPECT_EQ(judged(whole).overall, Overall::accepted);
  whole.plan.site.nodes[0].parts["gpu_instance"] = 7;
  EXPECT_EQ(judged(whole).overall, Overall::incomplete);
  EXPECT_NE(judged(whole).results.back().reason.find("No GPU of n1 is partitioned"), std::string::npos);
}

TEST(ListedParts, what_need_not_be_reported_is_not_held_and_the_rest_is) {
  MemoryRun other({kEach, R"({"scope": "gpu", "parameters": {"size": 8}, "limit": {"at_least": 100, "unit": "B/s"}})"},
                  1, {{"gpu", 1}});
  add(other, 0, {"GPU-a"}, {"GPU-a"});
  add(other, 1, {"GPU-a", "GPU-b"}, {"GPU-a"});
  EXPECT_EQ(judged(other).overall, Overall::incomplete);
  MemoryRun told = site_of(1);
  told.plan.profile.requirements[0].when_told = true;
  EXPECT_EQ(of_run(told, {"GPU-a", "GPU-b"}, {"GPU-a"}).overall, Overall::accepted);
}

/// The record of step `index`, which counts `up` network ports of its node with a link, and lists `ports` with a link
/// and mlx5_9 without one.
std::string ports_record(const MemoryRun& run, std::size_t index, double up, const Names& ports) {
  std::ostringstream out;
  Recorder recorder(
      out, fixture::kSpec,
      {.probe = "disk", .revision = 1, .parameters = run.plan.steps.at(index).parameters, .host = {{"name", "n1"}}});
  for (const auto& port : ports) recorder.condition("firmware", port, {"nic", "if_" + port});
  recorder.condition("firmware", std::string("mlx5_9"), {"nic", "if9"});
  recorder.condition("nvml_driver", std::string("down"), {"nic", "if9"});
  recorder.condition("direct_io", false);
  recorder.measurement("bandwidth", Sampling{.samples = kSteady110, .warmup = {}, .stopped = "stable"}, {"node", "n1"});
  recorder.measurement("raw_bandwidth", Sampling{.samples = {up}, .warmup = {}, .stopped = "fixed"}, {"node", "n1"});
  recorder.end({.status = Status::complete, .reason = ""});
  std::string record = out.str();
  record.replace(record.find("raw_bandwidth"), 13, "nics_up");
  record.replace(record.find("nvml_driver"), 11, "link");
  for (auto at = record.find("\"firmware"); at != std::string::npos; at = record.find("\"firmware"))
    record.replace(at + 1, 8, "rdma_device");
  return record;
}

/// Has the probe declare what ports_record() has.
void declare_ports(MemoryRun& run) {
  rename(run, "firmware", "rdma_device");
  rename(run, "nvml_driver", "link");
  for (auto& metric : run.plan.probes.at("disk").description.metrics)
    if (metric.name == "raw_bandwidth") metric.name = "nics_up";
}

/// A run of one step that counts the network ports of a node, of which the site says that it has two.
MemoryRun inventory_of(double up, const Names& ports = {}) {
  MemoryRun run({kAtLeast100}, 1, {});
  run.plan.site.nodes[0].parts = {{"nic", 2}};
  run.attempt(0, "exited", ports_record(run, 0, up, ports));
  declare_ports(run);
  return run;
}

/// The same with `names` in the site.
MemoryRun named(const Names& names) {
  MemoryRun run = inventory_of(2, {"mlx5_0", "mlx5_1"});
  run.plan.site.nodes[0].part_names = {{"nic", names}};
  return run;
}

TEST(ListedParts, a_node_without_the_ports_that_the_site_names_is_not_accepted) {
  EXPECT_EQ(judged(named({"mlx5_0", "IF_MLX5_1"})).overall, Overall::accepted);
  MemoryRun by_address = inventory_of(2, {"0000:18:00.0", "00000000:3a:00.0"});
  by_address.plan.site.nodes[0].part_names = {{"nic", {"00000000:18:00.0", "0000:3A:00.0"}}};
  EXPECT_EQ(judged(by_address).overall, Overall::accepted);
  const Verdict verdict = judged(named({"mlx5_0", "mlx5_4", "mlx5_9"}));
  EXPECT_EQ(verdict.overall, Overall::incomplete);
  EXPECT_NE(verdict.results[0].reason.find("absent or without a link: mlx5_4, mlx5_9."), std::string::npos)
      << verdict.results[0].reason;
}

// Of a contrast the step that is switched off has no result.
TEST(ListedParts, a_part_that_only_a_step_without_a_result_finds_absent_opens_the_node) {
  const auto with_port = [](const char* port) {
    MemoryRun run({R"({"contrast": {"parameter": "size", "on": 8, "off": 4, "at_least": 0.05, "shown_by": "direct_io"},
                       "repeat": {"attempts": 3, "more_attempts": 0}})"});
    EXPECT_EQ(run.plan.steps.size(), 2U);
    run.plan.site.nodes[0].part_names = {{"nic", {"mlx5_0"}}};
    for (int i = 0; i < 3; ++i) {
      run.attempt(0, "exited", run.record("n1", std::vector<double>(10, 130)));
      run.attempt(1, "exited", ports_record(run, 1, 1, {port}));
    }
    declare_ports(run);
    return judged(run);
  };
  EXPECT_EQ(with_port("mlx5_0").overall, Overall::accepted) << with_port("mlx5_0").reason;
  const Verdict verdict = with_port("mlx5_1");
  ASSERT_EQ(verdict.results.size(), 1U);
  EXPECT_EQ(verdict.results[0].outcome, Outcome::not_measured);
  EXPECT_TRUE(verdict.results[0].reason.ends_with("absent or without a link: mlx5_0.")) << verdict.results[0].reason;
}

TEST(ListedParts, the_rdma_devices_of_a_sites_planes_are_held_too) {
  const auto with_plane = [](const Names& ports, const char* device) {
    MemoryRun run = inventory_of(2, ports);
    run.plan.site.nodes[0].planes["parameter"] = {{.device = device}};
    return judged(run).overall;
  };
  EXPECT_EQ(with_plane({"mlx5_0"}, "mlx5_0/1"), Overall::accepted);
  EXPECT_EQ(with_plane({"mlx5_1"}, "mlx5_0/1"), Overall::incomplete);
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
            "Not checked, because nothing counts or names them: the parts of kind nic that the site states of n1.");
  EXPECT_EQ(judged(run).deviations.front().kind, DeviationKind::not_checked);
  EXPECT_TRUE(judged(inventory_of(2)).deviations.empty());
}

}  // namespace
}  // namespace assay::judge
