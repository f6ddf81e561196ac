// Counterparts of imported figures: the same quantity, size and operation, and nothing else.
#include <gtest/gtest.h>

#include "orchestrator/import/rate.h"
#include "tests/unit/import/import_fixture.h"

namespace assay::imports {
namespace {

constexpr std::int64_t kSize = 65536;

plan::Requirement requirement(const std::string& id, const std::string& metric) {
  plan::Requirement one;
  one.id = id;
  one.probe = "verbs_bandwidth";
  one.metric = metric;
  one.at = {{"size", kSize}};
  one.statistic = plan::Statistic::median;
  return one;
}

void give(plan::Step& step, const std::string& parameter, Value value) {
  Values all = step.parameters;
  all[parameter] = std::move(value);
  step.parameters = std::move(all);
}

plan::Step step_of(const plan::Requirement& requirement, const std::string& operation) {
  plan::Step step;
  step.id = "0001-" + requirement.id;
  step.probe = requirement.probe;
  step.parameters = Values{{"operation", operation}};
  step.requirements = {requirement.id};
  return step;
}

judge::Result cell(const std::string& requirement, std::optional<double> value) {
  judge::Result result;
  result.requirement = requirement;
  result.value = value;
  return result;
}

/// A run with two promises of writes and one of reads.
class CompareTest : public testing::Test {
 protected:
  CompareTest() {
    for (const auto& [id, metric, operation] : {std::tuple{"write.forward", "bandwidth_forward", "write"},
                                                {"write.backward", "bandwidth_backward", "write"},
                                                {"read.forward", "bandwidth_forward", "read"}}) {
      plan_.profile.requirements.push_back(requirement(id, metric));
      plan_.steps.push_back(step_of(plan_.profile.requirements.back(), operation));
    }
    verdict_.run_id = "r1";
    verdict_.results = {cell("write.forward", 9e9), cell("write.forward", 11e9), cell("write.forward", 12e9),
                        cell("write.backward", std::nullopt), cell("read.forward", 5e9)};
    import_.source.tool = "perftest";
  }
  void add(const std::string& metric, const std::string& verb, std::int64_t size = kSize) {
    import_.figures.push_back({.metric = metric,
                               .unit = "B/s",
                               .statistic = "mean",
                               .at = {{"verb", verb}, {"size", size}},
                               .value = 1e10,
                               .from = "line " + std::to_string(import_.figures.size())});
  }
  [[nodiscard]] std::vector<Comparison> pairs() const { return compare(import_, plan_, verdict_); }

  plan::Plan plan_;
  judge::Verdict verdict_;
  judge::Import import_;
};

TEST_F(CompareTest, the_same_quantity_is_shown_with_the_median_of_all_cells) {
  add("bandwidth", "RDMA_Write");
  const auto all = pairs();
  ASSERT_EQ(all.size(), 1U) << "a requirement without a value has nothing to show";
  EXPECT_EQ(all[0].requirement, "write.forward");
  EXPECT_EQ(all[0].metric, "verbs_bandwidth bandwidth_forward median");
  EXPECT_EQ(all[0].cells, 3U);
  EXPECT_EQ(all[0].lowest, 9e9);
  EXPECT_EQ(all[0].median, 11e9);
  EXPECT_EQ(all[0].highest, 12e9);
}

TEST_F(CompareTest, another_operation_size_metric_or_tool_is_no_counterpart) {
  add("bandwidth", "RDMA_Read", 2 * kSize);
  add("bandwidth", "Send");
  add("bandwidth_both_directions", "RDMA_Write");
  add("message_rate", "RDMA_Write");
  EXPECT_TRUE(pairs().empty());
  import_.figures.clear();
  add("bandwidth", "RDMA_Read");
  ASSERT_EQ(pairs().size(), 1U);
  EXPECT_EQ(pairs()[0].requirement, "read.forward");
  import_.source.tool = "osu";
  EXPECT_TRUE(pairs().empty());
}

/// A figure of nccl-tests and a requirement on collectives, and what differs: "" for a pair, "none" for no counterpart.
struct Beside {
  const char* change;  ///< of the figure: a coordinate, "statistic", or "nodes" of the whole output
  Value to;
  const char* differs;
};

class CompareCollective : public CompareTest, public testing::WithParamInterface<Beside> {
 protected:
  CompareCollective() {
    plan::Requirement one = requirement("busbw", "busbw");
    one.probe = "nccl_collective";
    plan_.profile.requirements = {one};
    plan_.steps = {step_of(one, "all_reduce")};
    give(plan_.steps[0], "type", std::string("fp32"));
    plan_.steps[0].nodes = {"n01", "n02"};
    verdict_.results = {cell("busbw", 2e10)};
    import_.source.tool = "nccl-tests";
    import_.source.facts["nodes"] = std::int64_t{2};
    import_.figures = {{.metric = "busbw",
                        .unit = "B/s",
                        .statistic = "mean",
                        .at = {{"operation", std::string("all_reduce")},
                               {"size", kSize},
                               {"place", std::string("out_of_place")},
                               {"type", std::string("float")},
                               {"redop", std::string("sum")}},
                        .value = 1e10,
                        .from = "line 1"}};
  }
};

TEST_P(CompareCollective, stands_only_beside_its_own_operation_and_coordinates) {
  const auto& [change, to, differs] = GetParam();
  auto& figure = import_.figures[0];
  if (std::string(change) == "nodes")
    import_.source.facts["nodes"] = to;
  else if (std::string(change) == "statistic")
    figure.statistic = std::get<std::string>(to);
  else if (to == Value(std::string()))
    figure.at.erase(change);
  else
    figure.at[change] = to;
  const auto all = pairs();
  EXPECT_EQ(all.empty() ? "none" : all[0].differs, differs) << change;
}

const Beside kBeside[] = {
    {"type", std::string("float"), ""},
    {"operation", std::string("all_gather"), "none"},
    {"operation", std::string(), "none"},
    {"size", 2 * kSize, "none"},
    {"size", std::string(), "none"},
    {"place", std::string("in_place"), "none"},
    {"statistic", std::string("p99"), "none"},
    {"statistic", std::string("max"), "none"},
    {"type", std::string("half"), "type \"half\", ours \"fp32\""},
    {"redop", std::string("max"), "redop \"max\", ours \"sum\""},
    {"nodes", std::int64_t{16}, "nodes 16, ours 2"},
    {"conditions", std::string("agg iters 8"), "\"agg iters 8\""},
};
INSTANTIATE_TEST_SUITE_P(, CompareCollective, testing::ValuesIn(kBeside));

TEST_F(CompareTest, a_requirement_without_a_size_is_of_its_steps_one_size_and_of_several_none) {
  plan_.profile.requirements.resize(1);
  plan_.profile.requirements[0].at.clear();
  add("bandwidth", "RDMA_Write");
  give(plan_.steps[0], "sizes", std::string("64KiB"));
  EXPECT_EQ(pairs().size(), 1U);
  give(plan_.steps[0], "sizes", std::string("64KiB,8MiB"));
  EXPECT_TRUE(pairs().empty());
}

TEST_F(CompareTest, memory_and_queue_pairs_of_perftest_are_ours_or_not_comparable) {
  add("bandwidth", "RDMA_Write");
  give(plan_.steps[0], "qps", std::int64_t{4});
  give(plan_.steps[0], "memory", std::string("host"));
  import_.figures[0].at["qps"] = std::int64_t{1};
  EXPECT_EQ(pairs().at(0).differs, "qps 1, ours 4");
  import_.figures[0].at["qps"] = std::int64_t{4};
  import_.figures[0].at["memory"] = std::string("gpu");
  EXPECT_EQ(pairs().at(0).differs, "memory \"gpu\", ours \"host\"");
}

TEST_F(CompareTest, two_figures_of_one_line_are_two_and_a_simulated_run_is_called_one) {
  add("bandwidth", "RDMA_Write");
  add("bandwidth", "RDMA_Read");
  import_.figures[1].from = import_.figures[0].from;
  verdict_.simulated = true;
  const std::string text = comparison_text(import_, plan_, verdict_);
  EXPECT_NE(text.find("beside simulated run r1"), std::string::npos) << text;
  EXPECT_NE(text.find("verb RDMA_Read (line 0): 10 GB/s\n    assay (simulated): 5 GB/s"), std::string::npos) << text;
}

TEST_F(CompareTest, another_block_size_pattern_or_depth_is_not_comparable_and_says_which) {
  plan::Requirement read = requirement("storage.read", "read_bandwidth");
  read.probe = "storage_bandwidth";
  read.at.clear();
  plan_.profile.requirements = {read};
  plan_.steps = {step_of(read, "")};
  plan_.steps[0].parameters = Values{{"block_size", std::int64_t{1} << 20}, {"queue_depth", std::int64_t{32}}};
  verdict_.results = {cell("storage.read", 1.1e9)};
  import_.source.tool = "fio";
  const auto figure = [](const char* rw, std::int64_t bs, std::int64_t depth) {
    return judge::Figure{
        .metric = "bandwidth",
        .unit = "B/s",
        .statistic = "mean",
        .at = {{"direction", std::string("read")}, {"rw", std::string(rw)}, {"bs", bs}, {"iodepth", depth}},
        .value = 1e9,
        .from = "jobs[0]"};
  };
  import_.figures = {figure("randread", 4096, 32)};
  EXPECT_EQ(pairs().at(0).differs, "rw \"randread\", ours \"read\"");
  import_.figures = {figure("read", 4096, 32)};
  EXPECT_NE(comparison_text(import_, plan_, verdict_)
                .find("not comparable with requirement storage.read: bs 4096, ours 1048576\n"),
            std::string::npos);
  import_.figures = {figure("read", 1 << 20, 1)};
  EXPECT_EQ(pairs().at(0).differs, "iodepth 1, ours 32");
  import_.figures = {figure("read", 1 << 20, 32)};
  EXPECT_EQ(pairs().at(0).differs, "");
  EXPECT_EQ(pairs().at(0).median, 1.1e9);
}

TEST_F(CompareTest, the_table_states_what_it_is_and_counts_figures_without_a_counterpart) {
  add("bandwidth", "RDMA_Write");
  add("message_rate", "RDMA_Write");
  EXPECT_EQ(comparison_text(import_, plan_, verdict_),
            "perftest beside run r1. Imported figures are not judged; their origin is not verified.\n"
            "mean bandwidth, size 65536, verb RDMA_Write (line 0): 10 GB/s\n"
            "    assay: 11 GB/s (median of 3 cells, 9 GB/s to 12 GB/s), ratio 1.1, requirement write.forward: "
            "verbs_bandwidth bandwidth_forward median\n"
            "1 of 2 figures have no counterpart in this run\n");
}

/// A figure of rccl-tests on a whole node of eight, and a requirement on all_reduce in a node.
class RateTest : public testing::Test {
 protected:
  RateTest() {
    plan::Requirement one = requirement("node.busbw", "busbw");
    one.probe = "rccl_collective";
    one.parameters = {{"operation", std::string("all_reduce")}, {"sizes", std::string("64KiB,8MiB")}};
    one.limit = {.at_least = 9e9, .at_most = {}, .unit = "B/s", .name = ""};
    profile_.name = "p";
    profile_.per_node = {{"gpu", 8}};
    profile_.requirements = {one};
    import_.source.tool = "rccl-tests";
    import_.source.facts = {{"nodes", std::int64_t{1}}, {"ranks", std::int64_t{8}}};
    import_.figures = {{.metric = "busbw",
                        .unit = "B/s",
                        .statistic = "mean",
                        .at = {{"operation", std::string("all_reduce")},
                               {"size", kSize},
                               {"place", std::string("out_of_place")},
                               {"type", std::string("float")},
                               {"redop", std::string("sum")}},
                        .value = 1e10,
                        .from = "line 9"}};
  }
  [[nodiscard]] std::string text() const { return rating_text(import_, profile_, rate(import_, profile_)); }
  void expect(const std::string& words) const { EXPECT_NE(text().find(words), std::string::npos) << text(); }

  plan::Profile profile_;
  judge::Import import_;
};

TEST_F(RateTest, a_figure_meets_or_misses_a_limit_and_is_called_imported) {
  EXPECT_EQ(
      text(),
      "rccl-tests against profile p. The figures are imported, their origin is not verified: nothing is accepted "
      "by them.\n"
      "mean busbw, operation all_reduce, place out_of_place, redop sum, size 65536, type float (line 9): 10 GB/s\n"
      "    imported, meets requirement node.busbw: 10.00 GB/s, at least 9.00 GB/s\n"
      "imported: 1 limits met, 0 missed; 0 of 1 figures have no counterpart in this profile\n");
  profile_.requirements[0].limit.at_least = 1.1e10;
  expect("imported, MISSES requirement node.busbw: 10.00 GB/s, at least 11.00 GB/s");
  profile_.requirements[0].limit.at_least = 1.00001e10;
  expect("10.0000 GB/s, at least 10.0001 GB/s");
  EXPECT_TRUE(rate(import_, profile_).at(0).required);
  profile_.requirements[0].required = false;
  expect("MISSES requirement node.busbw (advisory)");
  profile_.peaks["link"] = {.value = 1e10, .unit = "B/s", .source = {}};
  profile_.requirements[0].limit = {
      .at_least = 0.9, .at_most = {}, .unit = "B/s", .reference = plan::Reference::peak, .name = "link"};
  expect("meets requirement node.busbw (advisory): 10.00 GB/s, at least 9.00 GB/s");
}

TEST_F(RateTest, what_is_not_stated_is_not_taken_as_fitting) {
  import_.source.facts.erase("nodes");
  expect("not comparable with requirement node.busbw: nodes not stated, ours 1");
  import_.source.facts["nodes"] = std::int64_t{1};
  import_.source.facts["ranks"] = std::int64_t{2};
  expect("ranks 2, ours 8");
  import_.source.facts["ranks"] = std::int64_t{8};
  import_.figures[0].at["type"] = std::string("half");
  expect("type \"half\", ours \"fp32\"");
  import_.figures[0].at["type"] = std::string("float");
  profile_.requirements[0].conditions.resize(1);
  profile_.requirements[0].conditions[0].name = "data";
  expect("an import does not show the condition data");
  profile_.requirements[0].conditions[0] = {.name = "gpu_errors_delta", .at_most = 0.0};
  expect("meets requirement node.busbw");  // that nothing went wrong meanwhile is of an acceptance
  profile_.requirements[0].conditions.clear();
  profile_.requirements[0].limit.reference = plan::Reference::fleet_median;
  expect("its limit is not an absolute one");
  profile_.requirements[0].scope = plan::JudgedScope::cluster;
  expect("an import does not show at which place or time");
  profile_.requirements[0].scope = plan::JudgedScope::pair;
  expect("nodes 1, ours 2");
  import_.figures[0].at["operation"] = std::string("all_gather");
  expect("1 of 1 figures have no counterpart");
}

TEST_F(RateTest, a_setting_that_a_profile_leaves_to_the_probe_is_the_probes_own) {
  auto& one = profile_.requirements[0];
  one.probe = "verbs_bandwidth";
  one.metric = "bandwidth_forward";
  one.parameters = {{"operation", std::string("write")}, {"sizes", std::string("64KiB")}};
  import_.source.tool = "perftest";
  import_.figures[0].metric = "bandwidth";
  import_.figures[0].at = {{"verb", std::string("RDMA_Write")}, {"size", kSize}, {"memory", std::string("host")}};
  expect("not comparable with requirement node.busbw: qps not stated");
  import_.figures[0].at["qps"] = std::int64_t{1000};
  expect("not comparable with requirement node.busbw: qps 1000, ours");
}

TEST_F(RateTest, a_requirement_of_every_size_is_of_each_of_its_sizes_only) {
  profile_.requirements[0].at.clear();
  profile_.requirements[0].at_every = true;
  expect("meets requirement node.busbw");
  import_.figures[0].at["size"] = 2 * kSize;
  expect("1 of 1 figures have no counterpart");
}

TEST_F(RateTest, a_requirement_of_a_tools_name_is_of_its_figures_at_its_coordinates) {
  import_ = fixture::import_of("rvs", "rvs.json");
  profile_.requirements[0].probe = "rvs";
  profile_.requirements[0].metric = "throughput";
  profile_.requirements[0].scope = plan::JudgedScope::gpu;
  profile_.requirements[0].parameters = {{"action", std::string("gst-639Tflops-4K4K8K-rand-fp16")}};
  EXPECT_TRUE(rate(import_, profile_).empty()) << "the best interval is no median";
  profile_.requirements[0].parameters["statistic"] = std::string("max");
  profile_.requirements[0].limit = {.at_least = 6.1e14, .at_most = {}, .unit = "FLOP/s", .name = ""};
  const auto rated = rate(import_, profile_);
  ASSERT_EQ(rated.size(), 2U);
  EXPECT_TRUE(rated[0].meets && !rated[1].meets) << text();
  profile_.requirements[0].parameters["action"] = std::string("another");
  EXPECT_TRUE(rate(import_, profile_).empty());
}

}  // namespace
}  // namespace assay::imports
