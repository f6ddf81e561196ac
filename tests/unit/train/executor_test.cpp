// The executor's calls: every engine makes them in the same order, whatever computes and communicates.
#include <numeric>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/train/recorded_calls.h"
#include "workloads/train/engine/host_engine.h"

namespace assay::train {
namespace {

constexpr ParallelPlan kSharded{.layers = 2, .seq = 128, .micro_batches = 2, .tp = 2, .pp = 2, .dp = 2, .zero = 1};

std::vector<Op> sharded_ops() { return step_graph(kTinyDense, kSharded, 0); }

TEST(Executor, walks_all_operations_of_a_step_in_their_order) {
  const auto ops = sharded_ops();
  std::vector<std::size_t> all(ops.size());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(operations_of(recorded(ops, true, Part::full)), all);
  EXPECT_EQ(operations_of(recorded(ops, false, Part::full)), all);
}

TEST(Executor, lends_before_it_carries_and_takes_after) {
  const std::vector<Op> ops = {{.kind = OpKind::gemm}, {.kind = OpKind::collective, .motion = Motion::all_reduce}};
  EXPECT_EQ(recorded(ops, true, Part::full),
            (std::vector<std::string>{"begin 2", "restart", "compute 0", "mark 0", "lend 1", "carry 1", "take 1",
                                      "mark 1", "end"}));
}

TEST(Executor, waits_for_what_it_posted_before_the_update_that_needs_it_and_no_earlier) {
  const std::vector<Op> ops = {
      {.kind = OpKind::collective, .role = Role::gradients, .motion = Motion::all_reduce, .beside = true, .bucket = 0},
      {.kind = OpKind::gemm},
      {.kind = OpKind::collective, .role = Role::gradients, .motion = Motion::all_reduce, .beside = true, .bucket = 1},
      {.kind = OpKind::optimizer, .role = Role::adam, .pass = Pass::update, .bucket = 1},
      {.kind = OpKind::optimizer, .role = Role::adam, .pass = Pass::update, .bucket = 0}};
  EXPECT_EQ(
      recorded(ops, true, Part::full),
      (std::vector<std::string>{"begin 6", "restart", "post 0", "mark 0", "compute 1", "mark 1", "post 2", "mark 2",
                                "wait 2", "mark 3", "compute 3", "mark 4", "compute 4", "mark 5", "end"}));
}

TEST(Executor, of_communication_alone_posts_nothing_and_computes_nothing) {
  for (const auto& call : recorded(sharded_ops(), true, Part::communication)) {
    EXPECT_FALSE(call.starts_with("post")) << call;
    EXPECT_FALSE(call.starts_with("compute")) << call;
    EXPECT_FALSE(call.starts_with("wait")) << call;
  }
}

TEST(Executor, of_computation_alone_touches_no_line) {
  for (const auto& call : recorded(sharded_ops(), true, Part::computation))
    EXPECT_TRUE(call.starts_with("compute") || call.starts_with("mark") || call == "restart" ||
                call.starts_with("begin") || call == "end")
        << call;
}

TEST(Executor, has_gradients_and_update_that_together_are_the_step) {
  const auto ops = sharded_ops();
  auto first = operations_of(recorded(ops, true, Part::gradients));
  const auto then = operations_of(recorded(ops, true, Part::update));
  first.insert(first.end(), then.begin(), then.end());
  std::ranges::sort(first);
  EXPECT_EQ(first, operations_of(recorded(ops, true, Part::full)));
}

TEST(Executor, counts_waits_as_communication_and_the_update_without_them) {
  const std::vector<Op> ops = {
      {.kind = OpKind::collective, .role = Role::gradients, .motion = Motion::all_reduce, .beside = true, .bucket = 0},
      {.kind = OpKind::optimizer, .role = Role::adam, .pass = Pass::update, .bucket = 0},
      {.kind = OpKind::gemm}};
  const auto calls = instructions_of(ops, Part::full, true);
  const std::vector<double> seconds = {0.125, 1.125, 3.125, 7.125};  // post, wait, update, product
  std::vector<OpSpan> spans(ops.size());
  const StepTimes times = times_of(ops, calls, spans, [&](std::size_t call) { return seconds.at(call); });
  EXPECT_EQ(times.wall_s, 7.125);
  EXPECT_EQ(times.collective_s, 1.125);
  EXPECT_EQ(times.optimizer_s, 2);
  EXPECT_EQ(spans[1].begin_s, 1.125);
  EXPECT_EQ(spans[2].end_s, 7.125);
}

// The engine on hosts makes the calls that any other core and line would get.
TEST(Executor, has_the_times_of_a_walk_again_without_a_call) {
  const auto ops = sharded_ops();
  Calls calls;
  RecordedCore core(calls);
  RecordedLine line(calls);
  Executor executor(ops, true, core, line);
  const StepTimes walked = executor.walk(
      Part::full, [](std::size_t) {}, [](std::size_t) {});
  const std::size_t made = calls.size();
  const StepTimes again = executor.times(Part::full);
  EXPECT_EQ(calls.size(), made);
  EXPECT_EQ(again.wall_s, walked.wall_s);
  EXPECT_EQ(again.optimizer_s, walked.optimizer_s);
  EXPECT_GT(again.optimizer_s, 0);
}

TEST(HostEngine, walks_the_operations_as_a_recorded_core_and_line_do) {
  const ParallelPlan plan{.layers = 2, .seq = 128, .micro_batches = 2, .dp = 2, .zero = 1};
  HostEngine engine({.model = kTinyDense, .plan = plan});
  std::vector<std::size_t> watched;
  engine.watch([&](std::size_t op) { watched.push_back(op); });
  engine.connect([](std::size_t) {});
  (void)engine.step(Variant::full, 0);
  EXPECT_EQ(watched, operations_of(recorded(step_graph(kTinyDense, plan, 0), true, Part::full)));
}

}  // namespace
}  // namespace assay::train
