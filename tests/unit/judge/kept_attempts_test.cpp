// Attempts come back as they were, wherever their bytes are, and one more takes little memory.
#include <malloc.h>
#include <cstdlib>
#include <fstream>
#include <system_error>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orchestrator/judge/evidence/journal.h"

namespace assay::judge::kept_attempts_test {
namespace {

Attempt attempt(std::size_t i) {
  const std::string step = fmt::format("{:04}-host_memory_bandwidth-n{:05}", i % 7, i % 5000);
  return {.step = step,
          .number = static_cast<int>(i / 7) + 1,
          .node = fmt::format("n{:05}", i % 5000),
          .outcome = i % 3 == 0 ? AttemptOutcome::crashed : AttemptOutcome::exited,
          .reason = i % 3 == 0 ? "signal 11" : "",
          .begin = "2026-01-05T06:30:00.000Z",
          .end = "2026-01-05T06:31:00.000Z",
          .jumped_s = -0.5,
          .evidence = {{.path = fmt::format("records/{}/{}/0.jsonl", step, i / 7 + 1),
                        .sha256 = std::string(64, 'a'),
                        .bytes = 4711 + i}},
          .nodes = {"n1", "n2"},
          .purpose = i % 2 == 0 ? "screening" : "",
          .second_stage = i % 2 == 1,
          .asked = "1:2"};
}

void expect_same(const Attempt& a, const Attempt& b) {
  EXPECT_EQ(std::tie(a.step, a.number, a.node, a.outcome, a.reason, a.begin, a.end, a.jumped_s, a.nodes, a.purpose,
                     a.second_stage, a.asked),
            std::tie(b.step, b.number, b.node, b.outcome, b.reason, b.begin, b.end, b.jumped_s, b.nodes, b.purpose,
                     b.second_stage, b.asked));
  ASSERT_EQ(a.evidence.size(), b.evidence.size());
  for (std::size_t i = 0; i < a.evidence.size(); ++i) {
    EXPECT_EQ(std::tie(a.evidence[i].path, a.evidence[i].sha256, a.evidence[i].bytes),
              std::tie(b.evidence[i].path, b.evidence[i].sha256, b.evidence[i].bytes));
  }
}

/// Holds `all` against attempts 0, 1, …, by each of the ways to them.
void expect_all(const Attempts& all, std::size_t count) {
  ASSERT_EQ(all.size(), count);
  std::size_t i = 0;
  for (const auto& one : all) {
    expect_same(one, attempt(i));
    expect_same(all[i], attempt(i));
    ++i;
  }
  EXPECT_EQ(i, count);
  const AttemptsByStep by_step(all);
  const std::string step = attempt(5).step;
  std::vector<int> numbers;
  for (std::size_t k = 0; k < count; ++k)
    if (attempt(k).step == step) numbers.push_back(attempt(k).number);
  for (const auto& found : {all.of(step), by_step.of(step)}) {
    std::vector<int> seen;
    for (const auto& one : found) seen.push_back(one.number);
    EXPECT_EQ(seen, numbers);
  }
  EXPECT_TRUE(by_step.of("no step").empty());
}

TEST(KeptAttempts, come_back_as_they_were_from_memory_and_from_disk_and_of_each_step) {
  Attempts all;
  constexpr std::size_t kCount = 3000;  // 1 MB
  for (std::size_t i = 0; i < kCount; ++i) {
    all.push_back(attempt(i));
    if (i == 10) expect_all(all, i + 1);
  }
  expect_all(all, kCount);
}

TEST(KeptAttempts, are_changed_in_one_copy_alone) {
  Attempts all{attempt(0), attempt(1)};
  Attempts copy = all;
  copy.change(0, [](Attempt& one) { one.reason = "another"; });
  copy.push_back(attempt(2));
  all.push_back(attempt(3));
  EXPECT_EQ(copy[0].reason, "another");
  expect_same(copy[2], attempt(2));
  expect_same(all[0], attempt(0));
  expect_same(all[2], attempt(3));
  std::size_t i = 0;
  for (const auto& one : copy) EXPECT_EQ(one.number, attempt(i++).number);
}

TEST(KeptAttempts, stay_in_memory_where_no_file_can_be_made) {
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("TMPDIR", "/nowhere/at/all", 1);
  Attempts all;
  for (std::size_t i = 0; i < 1000; ++i) all.push_back(attempt(i));
  before == nullptr ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", kept.c_str(), 1);
  expect_all(all, 1000);
}

/// Bytes of the heap in use.
std::size_t in_use() {
  const auto heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

TEST(KeptAttempts, of_a_decided_run_take_a_few_bytes_each) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer counts its own";
#endif
  constexpr std::size_t kFirst = 20'000, kMore = 80'000;
  Attempts all;
  for (std::size_t i = 0; i < kFirst; ++i) all.push_back(attempt(i));
  const std::size_t before = in_use();
  for (std::size_t i = 0; i < kMore; ++i) all.push_back(attempt(kFirst + i));
  EXPECT_LT(in_use() - before, kMore * 40) << "an attempt was 900 B before they were put aside";
}

}  // namespace
}  // namespace assay::judge::kept_attempts_test
