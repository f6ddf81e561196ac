// Plans and their operations: sums equal closed forms, orders agree, bubbles are as long as they must be, and what does
// not divide is named with what does.
#include <stdexcept>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "probes/core/parameters.h"
#include "tests/unit/train/step_sums.h"
#include "workloads/train/graph/step_graph.h"
#include "workloads/train/graph/virtual_time.h"

namespace assay::train {
namespace {

/// tp, cp, ep, pp, dp, virtual, zero, micro_batches, element.
struct Row {
  std::int64_t tp, cp, ep, pp, dp, pieces;
  int zero;
  std::int64_t micro_batches, element;
};
constexpr Row kRows[] = {
    {1, 1, 1, 1, 1, 1, 0, 1, 4}, {2, 1, 1, 1, 1, 1, 0, 2, 4}, {1, 2, 1, 1, 1, 1, 0, 1, 2}, {1, 1, 1, 2, 1, 1, 0, 4, 4},
    {1, 1, 1, 1, 2, 1, 0, 2, 4}, {1, 1, 1, 1, 4, 1, 1, 1, 2}, {1, 1, 1, 1, 4, 1, 3, 2, 2}, {2, 1, 1, 2, 2, 1, 1, 3, 4},
    {2, 2, 1, 2, 2, 1, 0, 2, 2}, {2, 1, 1, 2, 1, 2, 0, 4, 2}, {1, 1, 1, 2, 3, 2, 2, 2, 4}, {1, 4, 1, 1, 2, 1, 1, 1, 2},
    {2, 1, 2, 1, 2, 1, 0, 1, 2}, {1, 1, 4, 1, 4, 1, 1, 2, 2}, {1, 2, 4, 2, 2, 1, 2, 2, 2}, {2, 2, 2, 1, 2, 1, 3, 1, 2},
    {2, 1, 2, 4, 4, 1, 1, 8, 2}, {1, 1, 2, 2, 6, 1, 1, 1, 4}, {2, 4, 8, 2, 4, 1, 1, 2, 2}, {2, 2, 1, 4, 1, 1, 0, 1, 4},
};

ParallelPlan plan_of(const ModelShape& model, const Row& row) {
  const bool has_experts = with_layers(model, 8).mixtures() > 0;
  return {.layers = std::min<std::int64_t>(model.layers, 8) / (row.pp * row.pieces) * row.pp * row.pieces,
          .seq = 96,
          .micro_batch = 2,
          .micro_batches = row.micro_batches,
          .tp = row.tp,
          .cp = row.cp,
          .ep = has_experts ? row.ep : 1,
          .pp = row.pp,
          .dp = row.dp,
          .virtual_stages = row.pieces,
          .zero = row.zero,
          .element = row.element};
}

std::vector<std::vector<Op>> graphs_of(const ModelShape& model, const ParallelPlan& plan) {
  std::vector<std::vector<Op>> graphs;
  for (std::int64_t rank = 0; rank < plan.world(); ++rank) graphs.push_back(step_graph(model, plan, rank));
  return graphs;
}

void expect_equal(const StepSums& graph, const StepSums& closed, const std::string& which) {
  EXPECT_EQ(graph.flop, closed.flop) << which;
  EXPECT_EQ(graph.tp, closed.tp) << which;
  EXPECT_EQ(graph.pp, closed.pp) << which;
  EXPECT_EQ(graph.ep, closed.ep) << which;
  EXPECT_EQ(graph.cp, closed.cp) << which;
  EXPECT_EQ(graph.reduced, closed.reduced) << which;
  EXPECT_EQ(graph.gathered, closed.gathered) << which;
  EXPECT_EQ(graph.optimizer, closed.optimizer) << which;
}

TEST(StepGraph, adds_up_to_the_closed_forms_for_every_preset_and_twenty_plans) {
  int compared = 0;
  for (const auto& preset : presets()) {
    for (const Row& row : kRows) {
      const ParallelPlan plan = plan_of(preset.shape, row);
      if (plan.layers == 0) continue;  // fewer layers than pieces of the pipeline
      check_plan(preset.shape, plan);
      expect_equal(summed_graphs(preset.shape, plan), closed_forms(preset.shape, plan),
                   fmt::format("{} plan {}", preset.name, &row - kRows));
      ++compared;
    }
  }
  EXPECT_EQ(compared, 8 * 20 - 2 * 4);  // both tiny ones have two layers, and four plans four pieces
}

TEST(StepGraph, of_a_replica_of_8b_has_the_published_flops) {
  const ParallelPlan plan{.layers = 32, .seq = 8192, .micro_batches = 2, .tp = 4, .pp = 2, .dp = 2, .element = 2};
  const StepSums sums = summed_graphs(kLlama3_8b, plan);
  EXPECT_EQ(sums.flop, 8192 * 4 * flop_per_token(kLlama3_8b, 8192));
}

TEST(StepGraph, of_16384_ranks_is_made_and_adds_up) {
  const ParallelPlan plan{
      .layers = 112, .seq = 8192, .micro_batches = 16, .tp = 8, .pp = 16, .dp = 128, .zero = 1, .element = 2};
  ASSERT_EQ(plan.world(), 16384);
  check_plan(kLlama3_405b, plan);
  expect_equal(summed_graphs(kLlama3_405b, plan), closed_forms(kLlama3_405b, plan), "16384 ranks");
}

TEST(StepGraph, starts_collectives_in_one_order_on_all_ranks) {
  for (const auto& preset : {kTinyDense, kTinyMoe, kSmallDense}) {
    for (const Row& row : kRows) {
      const ParallelPlan plan = plan_of(preset, row);
      if (plan.layers == 0) continue;
      EXPECT_NO_THROW(check_order(plan, graphs_of(preset, plan)));
    }
  }
}

TEST(StepGraph, whose_order_differs_between_ranks_is_refused) {
  const ParallelPlan plan{.layers = 2, .seq = 128, .tp = 2};
  auto graphs = graphs_of(kTinyDense, plan);
  const auto is_collective = [](const Op& op) { return op.kind == OpKind::collective; };
  const auto first = std::ranges::find_if(graphs[1], is_collective);
  const auto second = std::find_if(first + 1, graphs[1].end(), is_collective);
  std::swap(*first, *second);
  try {
    check_order(plan, graphs);
    FAIL() << "it was taken";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "ranks 0 and 1 of one group start its collectives in different orders");
  }
}

/// Micro-batches that take 1 s forward and 2 s backward on every rank of the pipeline, and messages that take no time.
double share_of_waiting(const ParallelPlan& plan) {
  const auto graphs = graphs_of(kSmallDense, plan);
  double per_rank = 0;
  const Duration seconds = [&](std::size_t rank, const Op& op, bool) {
    // All of a micro-batch's time is put on one operation of each layer.
    const double pieces = static_cast<double>(plan.layers) / static_cast<double>(plan.pp);
    double s = 0;
    if (op.role == Role::attention_norm) s = (op.pass == Pass::forward ? 1 : 2) / pieces;
    if (rank == 0) per_rank += s;
    return s;
  };
  const double total = walk(plan, graphs, seconds).total_s;
  return 1 - per_rank / total;
}

TEST(StepGraph, bubbles_are_as_long_as_their_closed_form) {
  for (const ParallelPlan& plan : {ParallelPlan{.layers = 4, .seq = 16, .micro_batches = 8, .pp = 4},
                                   {.layers = 4, .seq = 16, .micro_batches = 3, .pp = 2},
                                   {.layers = 4, .seq = 16, .micro_batches = 4, .pp = 2, .virtual_stages = 2},
                                   {.layers = 4, .seq = 16, .micro_batches = 1, .pp = 4}}) {
    EXPECT_NEAR(share_of_waiting(plan), bubble_share(plan), 1e-12) << plan.pp << " " << plan.micro_batches;
  }
}

/// Two replicas: computation of `comp_s` in each layer, and a reduction of its gradients of `comm_s`.
double full_step(double comp_s, double comm_s, double together) {
  const ParallelPlan plan{.layers = 4, .seq = 16, .dp = 2};
  const Duration seconds = [&](std::size_t, const Op& op, bool others) {
    if (op.role == Role::attention_norm && op.pass == Pass::input) return comp_s * (others ? together : 1);
    return op.role == Role::gradients && op.layer > 0 ? comm_s : 0;
  };
  return walk(plan, graphs_of(kSmallDense, plan), seconds).total_s;
}

// Layers 3, 2 and 1 reduce while layers 2, 1 and 0 compute: all that is as short as a layer is hidden.
TEST(VirtualTime, gives_the_overlap_that_it_was_given) {
  const double comp_s = full_step(1, 0, 1), comm_s = full_step(0, 1, 1);
  EXPECT_DOUBLE_EQ(comp_s, 4);
  EXPECT_DOUBLE_EQ(comm_s, 3);
  EXPECT_DOUBLE_EQ(overlap_efficiency(full_step(1, 1, 1), comp_s, comm_s).value(), 1);
  EXPECT_DOUBLE_EQ(overlap_efficiency(full_step(1, 1, 2), comp_s, comm_s).value(), 0);
  EXPECT_DOUBLE_EQ(overlap_efficiency(full_step(1, 1, 3), comp_s, comm_s).value(), -1);
  EXPECT_FALSE(overlap_efficiency(4, 4, 0).has_value());
}

TEST(VirtualTime, walks_every_plan_to_its_end) {
  for (const Row& row : kRows) {
    const ParallelPlan plan = plan_of(kTinyMoe, row);
    if (plan.layers == 0) continue;
    const Duration one = [](std::size_t, const Op&, bool) { return 1.0; };
    EXPECT_GT(walk(plan, graphs_of(kTinyMoe, plan), one).total_s, 0);
  }
}

std::string refusal(const ModelShape& model, const ParallelPlan& plan) {
  try {
    check_plan(model, plan);
  } catch (const BadParameter& error) {
    return error.what();
  }
  return "";
}

TEST(ParallelPlan, that_does_not_divide_names_the_nearest_that_does) {
  const auto expect = [](const ModelShape& model, const ParallelPlan& plan, const char* text) {
    EXPECT_EQ(refusal(model, plan), text);
  };
  expect(kLlama3_8b, {.layers = 32, .seq = 8192, .tp = 3}, "tp: 3 does not divide 32 heads; the nearest that does: 2");
  expect(kLlama3_8b, {.layers = 32, .seq = 8192, .tp = 16},
         "tp: 16 does not divide 8 kv_heads; the nearest that does: 8");
  expect(kLlama3_8b, {.layers = 32, .seq = 8192, .pp = 5},
         "pp: 5 x 1 pieces do not divide 32 layers; the nearest that does: 4");
  expect(kLlama3_8b, {.layers = 33, .seq = 8192}, "layers_run: 33 is not from 1 to 32");
  expect(kLlama3_8b, {.layers = 32, .seq = 100, .cp = 3},
         "cp: 3 does not divide 100 tokens of a sequence; the nearest that does: 2");
  expect(kMixtral_8x7b, {.layers = 32, .seq = 4096, .ep = 3, .dp = 6},
         "ep: 3 does not divide 8 experts; the nearest that does: 2");
  expect(kTinyDense, {.layers = 2, .seq = 128, .ep = 2, .dp = 2},
         "ep: 2 where no layer that is run has experts; the nearest that does: 1");
  expect(kLlama3_8b, {.layers = 32, .seq = 8192, .micro_batches = 5, .pp = 4, .virtual_stages = 2},
         "micro_batches: 5 is no multiple of pp 4, which virtual stages need; the nearest that is: 4");
}

std::string world_refusal(const ParallelPlan& plan, std::int64_t ranks) {
  try {
    (void)on_ranks(plan, ranks);
  } catch (const BadParameter& error) {
    return error.what();
  }
  return "";
}

TEST(ParallelPlan, takes_all_ranks_or_names_the_nearest_number_that_it_could) {
  EXPECT_EQ(on_ranks({.tp = 2, .pp = 2, .dp = 0}, 12).dp, 3);
  EXPECT_EQ(world_refusal({.tp = 2, .pp = 2, .dp = 0}, 6),
            "6 ranks are no multiple of tp 2 x cp 1 x pp 2; the nearest that are: 4 and 8");
  EXPECT_EQ(world_refusal({.tp = 4, .dp = 0}, 2),
            "2 ranks are no multiple of tp 4 x cp 1 x pp 1; the nearest that are: 4");
  EXPECT_EQ(world_refusal({.tp = 2, .dp = 3}, 4),
            "dp: 3 with tp 2, cp 1 and pp 1 is a plan of 6 ranks, there are 4; the nearest that fits: 2");
}

TEST(ParallelPlan, that_does_not_fit_names_the_layers_that_do) {
  const ParallelPlan plan{.layers = 32, .seq = 512};
  const Bytes four = memory_needed(kLlama3_8b, {.layers = 4, .seq = 512});
  EXPECT_NO_THROW(check_memory(kLlama3_8b, {.layers = 4, .seq = 512}, four));
  try {
    check_memory(kLlama3_8b, plan, four);
    FAIL() << "it was taken";
  } catch (const BadParameter& error) {
    EXPECT_NE(std::string(error.what()).find("the nearest that fits: 4"), std::string::npos) << error.what();
  }
  try {
    check_memory(kLlama3_8b, plan, {1 << 20});
    FAIL() << "it was taken";
  } catch (const BadParameter& error) {
    EXPECT_NE(std::string(error.what()).find("even 1 layers need"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace assay::train
