// One turned bit anywhere on one rank is found, and the rank or the message is named.
#include <gtest/gtest.h>

#include "tests/unit/train/ranks.h"
#include "workloads/train/step/step_evidence.h"

namespace assay::train {
namespace {

const RankJob kJob{.model = kDivisible,
                   .plan = {.layers = 2, .seq = 16, .micro_batches = 2, .tp = 2, .pp = 2},
                   .data = DataMode::ring};

/// What is found where rank `victim` has a bit turned in the output of its first operation of `role` and `pass`, or,
/// without them, in a weight between two runs.
Blame found(std::int64_t victim, const std::optional<std::pair<Role, Pass>>& where) {
  std::vector<std::int64_t> firsts(static_cast<std::size_t>(kJob.plan.world()));
  on_all_ranks(kJob, [&](std::size_t rank, HostEngine& engine) {
    std::optional<Flip> flip;
    const bool is_victim = static_cast<std::int64_t>(rank) == victim;
    if (is_victim && where) {
      const auto at = std::ranges::find_if(
          engine.ops(), [&](const Op& op) { return op.role == where->first && op.pass == where->second; });
      flip = Flip{.op = static_cast<std::size_t>(at - engine.ops().begin()), .element = 3, .bit = 22};
    }
    const auto once = engine.traced(0, std::nullopt);
    if (is_victim && !where) engine.flip_weight(5, 30);  // of an exponent: a zero changes, too
    const auto again = engine.traced(0, flip);
    const auto first = std::ranges::mismatch(once, again).in1;
    firsts[rank] = first == once.end() ? -1 : first - once.begin();
  });
  return blame_of(kJob.model, kJob.plan, firsts);
}

void expect_named(const Blame& blame, std::int64_t victim) {
  EXPECT_EQ(blame.ranks, std::vector{victim});
  EXPECT_EQ(blame.mismatches, 1U);
}

TEST(FlippedBit, in_an_activation_names_the_rank) {
  expect_named(found(1, std::pair{Role::activate, Pass::forward}), 1);
}
TEST(FlippedBit, in_a_product_names_the_rank) {
  expect_named(found(2, std::pair{Role::attention_out, Pass::forward}), 2);
}
TEST(FlippedBit, in_a_gradient_names_the_rank) { expect_named(found(3, std::pair{Role::gate_up, Pass::weight}), 3); }
TEST(FlippedBit, in_a_weight_names_the_rank) { expect_named(found(2, std::nullopt), 2); }

TEST(FlippedBit, in_a_message_names_its_receiver_and_no_rank) {
  const Blame blame = found(3, std::pair{Role::boundary, Pass::forward});
  EXPECT_TRUE(blame.ranks.empty());
  EXPECT_EQ(blame.mismatches, 1U);
  EXPECT_NE(blame.words.at(0).find("a message to rank"), std::string::npos);
  EXPECT_NE(blame.words.at(0).find("3"), std::string::npos);
}

TEST(FlippedBit, nowhere_is_nothing) { EXPECT_EQ(found(9, std::nullopt).mismatches, 0U); }

}  // namespace
}  // namespace assay::train
