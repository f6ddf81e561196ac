// A step that does not end: the rank whose device is stuck is told from those that wait for it.
#include <atomic>
#include <future>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "tests/unit/train/ranks.h"
#include "tests/unit/train_gpu/fake_network.h"
#include "workloads/train_gpu/step_in_hand.h"

namespace assay::train_gpu::step_in_hand_test {
namespace {

constexpr std::size_t kQueries = 6;

/// A device that comes to no mark from `held_at` on, until it is released.
class HeldDevice : public FakeDeviceOf<float> {
 public:
  using FakeDeviceOf<float>::FakeDeviceOf;
  void mark(std::size_t call) {
    if (call == held_at) released.wait(false);
    passed = call + 1;
    passed.notify_all();
  }

  /// Returns when it is past `calls` marks.
  void await(std::size_t calls) const {
    for (std::size_t now = passed; now < calls; now = passed) passed.wait(now);
  }

  std::optional<std::size_t> held_at;
  std::atomic<bool> released = false;
  std::atomic<std::size_t> passed = 0;
};

/// One rank of a step divided by tp.
struct HeldRank {
  HeldRank(const train::RankJob& job, FakeNetwork& network)
      : device(job, kQueries),
        core(job, kQueries, device),
        collectives(network, job.plan, job.rank),
        line(job, core, collectives),
        executor(core.ops(), false, core, line) {}

  void walk() {
    core.start(0, train::Part::full);
    (void)executor.walk(
        train::Part::full, [](std::size_t) {}, [](std::size_t) {});  // fake times
  }
  /// The first call of this kind from `from` on.
  [[nodiscard]] std::size_t first(train::OpKind kind, std::size_t from = 0) const {
    const auto& calls = executor.calls(train::Part::full);
    while (core.ops()[calls.at(from).op].kind != kind) ++from;
    return from;
  }
  [[nodiscard]] cuda::InHand in_hand() const {
    return step_in_hand(core.ops(), executor.calls(train::Part::full),
                        [this](std::size_t call) { return call < device.passed; });
  }

  HeldDevice device;
  DeviceCore<HeldDevice> core;
  FakeCollectives collectives;
  DeviceLine<FakeCollectives, float> line;
  train::Executor<DeviceCore<HeldDevice>, DeviceLine<FakeCollectives, float>> executor;
};

train::RankJob job_of(std::int64_t rank) {
  return {.model = train::kDivisible,
          .plan = {.layers = 2, .seq = 16, .micro_batches = 2, .tp = 2},
          .rank = rank,
          .data = train::DataMode::ring};
}

}  // namespace

TEST(StepInHand, of_a_device_that_is_stuck_is_its_operation_and_of_the_others_the_collective) {
  FakeNetwork network;
  HeldRank stuck(job_of(0), network), other(job_of(1), network);
  const std::size_t product = stuck.first(train::OpKind::gemm);
  stuck.device.held_at = product;
  std::jthread one([&] { stuck.walk(); }), two([&] { other.walk(); });
  stuck.device.await(product);
  other.device.await(other.first(train::OpKind::collective, product));  // behind which it waits
  const cuda::InHand of_stuck = stuck.in_hand(), of_other = other.in_hand();
  stuck.device.released = true;
  stuck.device.released.notify_all();
  const std::size_t all = stuck.executor.calls(train::Part::full).size();
  EXPECT_EQ(of_stuck.words, fmt::format("call {} of {} (gemm, layer 0)", product + 1, all));
  EXPECT_FALSE(of_stuck.waits);
  EXPECT_NE(of_other.words.find("all_reduce"), std::string::npos) << of_other.words;
  EXPECT_TRUE(of_other.waits);
}

TEST(StepInHand, of_a_wait_for_posted_collectives_is_that_of_one_that_waits) {
  const auto ops = train::step_graph(train::kDivisible, {.layers = 2, .seq = 16, .dp = 2}, 0);
  const auto calls = train::instructions_of(ops, train::Part::full, true);
  const auto wait = static_cast<std::size_t>(
      std::ranges::find(calls, train::Instruction::Call::wait, &train::Instruction::call) - calls.begin());
  ASSERT_LT(wait, calls.size());
  const auto in_hand = step_in_hand(ops, calls, [&](std::size_t call) { return call < wait; });
  EXPECT_EQ(in_hand.words, fmt::format("call {} of {} (wait for collectives)", wait + 1, calls.size()));
  EXPECT_TRUE(in_hand.waits);
  EXPECT_EQ(step_in_hand(ops, calls, [](std::size_t) { return true; }).words, "");
}

}  // namespace assay::train_gpu::step_in_hand_test
