// Watched ranks: the others live on when one ends, and another takes its place; silence and a cut are told apart.
#include <atomic>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "probes/collective/heartbeat.h"
#include "probes/collective/watched_fleet.h"
#include "tests/unit/paths.h"

namespace assay::nccl {
namespace {

constexpr Seconds kEventTime = {30};  // a bound: answers come within milliseconds
constexpr collective::HeartbeatLimits kHeartbeat = {.period = {1}, .missed = 3};

collective::RankProgram program(const std::string& behaviour, std::size_t slot) {
  return {.path = program_file("fake_rank"),
          .arguments = {"fake_rank", behaviour},
          .environment = {"FAKE_RANK=" + std::to_string(slot)},
          .title = "rank " + std::to_string(slot)};
}

std::vector<std::optional<collective::RankAges>> ages(const std::vector<std::pair<double, double>>& all) {
  std::vector<std::optional<collective::RankAges>> list;
  for (const auto& [beat_s, heard_s] : all)
    list.push_back(collective::RankAges{.beat_s = beat_s, .heard_s = heard_s, .struck_s = {}, .has_beaten = true});
  return list;
}

std::vector<std::size_t> lost(const std::vector<std::optional<collective::RankAges>>& all) {
  std::vector<std::size_t> places;
  const auto losses = collective::losses_of(all, kHeartbeat);
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (losses[i]) places.push_back(i);
  }
  return places;
}

TEST(Losses, are_none_while_all_beat_and_hear) { EXPECT_TRUE(lost(ages({{0.9, 1.1}, {2.9, 2.9}, {0, 0}})).empty()); }
TEST(Losses, name_the_rank_that_is_silent_and_not_those_that_hear_nothing_but_it) {
  EXPECT_EQ(lost(ages({{0.5, 3.5}, {3.5, 0.5}})), std::vector<std::size_t>{1});
}
TEST(Losses, name_the_rank_that_hears_no_other_though_it_beats) {
  const auto all = ages({{0.5, 0.5}, {0.5, 3.5}, {0.5, 0.5}});
  EXPECT_EQ(lost(all), std::vector<std::size_t>{1});
  EXPECT_EQ(collective::losses_of(all, kHeartbeat)[1].value(), "heard no other rank for 3 s and is cut off");
}
TEST(Losses, wait_while_the_other_may_be_silent_itself) { EXPECT_TRUE(lost(ages({{0.5, 3.5}, {2.5, 0.5}})).empty()); }
TEST(Losses, wait_for_a_new_rank_that_has_not_beaten_yet) {
  auto all = ages({{0.5, 3.5}, {0.5, 0.5}});
  EXPECT_EQ(lost(all), std::vector<std::size_t>{0});
  all[1]->has_beaten = false;  // 0.5 s is how long it is watched
  EXPECT_TRUE(lost(all).empty());
}
TEST(Losses, are_of_watched_ranks_only) {
  auto all = ages({{9, 9}, {0, 0}});
  all[0].reset();
  EXPECT_TRUE(lost(all).empty());
}

TEST(WatchedRanks, live_on_when_one_ends_and_another_takes_its_place) {
  collective::RankBoard board(2);
  bool first = true;
  collective::WatchedRanks ranks(board, [&](std::size_t slot) {
    return program(slot == 1 && std::exchange(first, false) ? "crash" : "echo", slot);
  });
  ranks.ask(1, "x");
  const auto events = ranks.poll(kEventTime);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_TRUE(events[0].lost);
  EXPECT_EQ(events[0].slot, 1U);
  EXPECT_EQ(events[0].words, "was killed by signal 9 before it answered");
  ranks.ask(0, "still");
  EXPECT_EQ(ranks.poll(kEventTime).at(0).words, "still from 0");
  ranks.end(1);
  ranks.replace(1);
  ranks.ask(1, "new");
  EXPECT_EQ(ranks.poll(kEventTime).at(0).words, "new from 1");
}

TEST(WatchedRanks, that_hang_are_ended) {
  collective::RankBoard board(1);
  collective::WatchedRanks ranks(board, [](std::size_t slot) { return program("hang", slot); });
  ranks.ask(0, "x");
  EXPECT_TRUE(ranks.poll({0.05}).empty());
  ranks.end(0);
  EXPECT_TRUE(ranks.poll({0}).empty());
}

TEST(WatchedRanks, owe_beats_from_when_they_are_watched) {
  collective::RankBoard board(2);
  collective::WatchedRanks ranks(board, [](std::size_t slot) { return program("echo", slot); });
  board.page(1).struck_ns = collective::monotonic_ns();
  ranks.watch({1});
  const auto all = ranks.ages();
  EXPECT_FALSE(all[0]);
  EXPECT_LT(all[1].value().beat_s, kEventTime.count);
  EXPECT_TRUE(all[1]->struck_s);
}

/// Waits until `done`, or until the bound has passed.
template <class Done>
bool comes(const Done& done) {
  const std::int64_t until = collective::monotonic_ns() + static_cast<std::int64_t>(kEventTime.count * 1e9);
  while (!done() && collective::monotonic_ns() < until) std::this_thread::yield();
  return done();
}

TEST(Heartbeat, is_heard_by_others_of_the_group_and_gives_up_when_it_is_told) {
  collective::RankBoard board(2);
  std::atomic<int> given_up = 0;
  collective::Heartbeat one(board.page(0), "127.0.0.1", {0.01}, [&] { ++given_up; });
  collective::Heartbeat other(board.page(1), "127.0.0.1", {0.01}, [] {});
  const std::vector<collective::BeatPlace> all = {{"127.0.0.1", one.port()}, {"127.0.0.1", other.port()}};
  one.join(1, 77, 0, all);
  other.join(1, 77, 1, all);
  EXPECT_TRUE(comes([&] { return board.page(0).heard_ns != 0 && board.page(1).heard_ns != 0; }));
  board.page(0).give_up = 1;
  EXPECT_TRUE(comes([&] { return given_up == 1; }));
}

TEST(Heartbeat, of_another_group_is_not_heard) {
  collective::RankBoard board(2);
  collective::Heartbeat one(board.page(0), "127.0.0.1", {0.01}, [] {});
  collective::Heartbeat other(board.page(1), "127.0.0.1", {0.01}, [] {});
  const std::vector<collective::BeatPlace> all = {{"127.0.0.1", one.port()}, {"127.0.0.1", other.port()}};
  one.join(1, 77, 0, all);
  other.join(2, 77, 1, all);
  const std::int64_t begin = board.page(0).beat_ns;
  constexpr std::int64_t kTenBeats_ns = 100'000'000;
  EXPECT_TRUE(comes([&] { return board.page(0).beat_ns > begin + kTenBeats_ns; }));
  EXPECT_EQ(board.page(0).heard_ns, 0);
  EXPECT_EQ(board.page(1).heard_ns, 0);
}

TEST(RankBoard, of_another_size_is_refused) {
  collective::RankBoard board(2);
  EXPECT_THROW(collective::RankBoard(dup(board.descriptor()), 3), std::system_error);
}

}  // namespace
}  // namespace assay::nccl
