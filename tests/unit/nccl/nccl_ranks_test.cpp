// Local ranks: children that answer, and children that end, crash, hang or flood. None is ever left behind.
#include <csignal>
#include <functional>

#include <sys/wait.h>

#include <gtest/gtest.h>

#include "probes/collective/local_ranks.h"
#include "probes/nccl/rank_process.h"
#include "tests/unit/paths.h"

namespace assay::nccl {
namespace {

constexpr Seconds kAnswerTime = {30};  // a bound: answers come within milliseconds

collective::RankProgram rank(const std::string& behaviour, const std::string& told = "it") {
  return {.path = program_file("fake_rank"),
          .arguments = {"fake_rank", behaviour},
          .environment = {"FAKE_RANK=" + told},
          .title = "rank " + told};
}

std::string loss(const std::vector<collective::RankProgram>& programs, Seconds limit) {
  collective::LocalRanks ranks(programs);
  try {
    (void)ranks.ask("x", limit);
  } catch (const collective::RankLost& lost) {
    return lost.what();
  }
  return "";
}

/// True when this process has no child, alive or waiting to be reaped.
bool childless() { return waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }

TEST(local_ranks, answer_each_for_itself_and_again) {
  collective::LocalRanks ranks({rank("echo", "0"), rank("echo", "1"), rank("echo", "2")});
  EXPECT_EQ(ranks.ask("one", kAnswerTime), (std::vector<std::string>{"one from 0", "one from 1", "one from 2"}));
  EXPECT_EQ(ranks.ask("two", kAnswerTime).at(2), "two from 2");
  ranks.finish(kAnswerTime);
  EXPECT_TRUE(childless());
}

TEST(local_ranks, that_wait_for_one_that_failed_are_given_up_where_that_is_asked_for) {
  collective::LocalRanks ranks({rank("hang", "0"), rank("echo", "1")}, {.after_error = Seconds{0.2}});
  EXPECT_EQ(ranks.ask(R"({"error":"lost")", kAnswerTime),
            (std::vector<std::string>{"{}", R"({"error":"lost" from 1)"}));
}

TEST(local_ranks, are_told_what_is_longer_than_a_pipe_holds) {
  collective::LocalRanks ranks({rank("echo", "0"), rank("echo", "1")});
  const std::string request(900'000, 'x');
  EXPECT_EQ(ranks.ask(request, kAnswerTime).at(1), request + " from 1");
}

TEST(local_ranks, that_do_not_listen_to_a_long_request_are_named) {
  collective::LocalRanks ranks({rank("deaf", "0")});
  try {
    (void)ranks.ask(std::string(900'000, 'x'), {0.2});
    FAIL() << "it answered";
  } catch (const collective::RankLost& lost) {
    EXPECT_STREQ(lost.what(), "rank 0 said nothing for 0.2 s");
  }
}

TEST(local_ranks, see_no_environment_but_theirs) {
  setenv("FAKE_RANK", "the leader's", 1);
  collective::RankProgram bare = rank("echo");
  bare.environment.clear();
  collective::LocalRanks ranks({bare});
  EXPECT_EQ(ranks.ask("one", kAnswerTime).front(), "one from nobody");
  unsetenv("FAKE_RANK");
}

TEST(local_ranks, that_end_are_named_with_their_exit_code) {
  EXPECT_EQ(loss({rank("echo", "0"), rank("exit", "1")}, kAnswerTime),
            "rank 1 ended with exit code 3 before it answered");
  EXPECT_TRUE(childless());
}

TEST(local_ranks, that_crash_are_named_with_their_signal) {
  EXPECT_EQ(loss({rank("crash", "0"), rank("echo", "1")}, kAnswerTime),
            "rank 0 was killed by signal 9 before it answered");
  EXPECT_TRUE(childless());
}

TEST(local_ranks, that_close_their_output_are_ended) {
  EXPECT_EQ(loss({rank("close", "0")}, kAnswerTime), "rank 0 was killed by signal 15 before it answered");
  EXPECT_TRUE(childless());
}

TEST(local_ranks, that_say_nothing_are_named_and_killed_with_the_others) {
  EXPECT_EQ(loss({rank("echo", "0"), rank("hang", "1"), rank("echo", "2")}, {2}), "rank 1 said nothing for 2 s");
  EXPECT_TRUE(childless());
}

TEST(local_ranks, that_a_signal_has_stopped_are_named_and_not_one_that_waits_for_them) {
  collective::LocalRanks ranks({rank("hang", "0"), rank("freeze", "1")}, {.stopped = {0.3}, .idle = {}});
  try {
    (void)ranks.ask("x", kAnswerTime);
    FAIL() << "it answered";
  } catch (const collective::RankLost& lost) {
    EXPECT_STREQ(lost.what(), "rank 1 is stopped by a signal, and was for 0.3 s");
    EXPECT_EQ(lost.how, collective::RankLoss::silent);
  }
  EXPECT_TRUE(childless());
}

TEST(local_ranks, of_which_none_runs_are_silent_long_before_the_limit) {
  collective::LocalRanks ranks({rank("hang", "0"), rank("hang", "1")}, {.stopped = {5}, .idle = Seconds{0.3}});
  try {
    (void)ranks.ask("x", kAnswerTime);
    FAIL() << "it answered";
  } catch (const collective::RankLost& lost) {
    EXPECT_STREQ(lost.what(), "rank 0 said nothing, and no rank of this node has run for 0.3 s");
  }
}

TEST(local_ranks, that_are_stopped_while_they_leave_are_killed) {
  collective::LocalRanks ranks({rank("freeze_at_end")}, {.stopped = {0.2}, .idle = {}});
  (void)ranks.ask("one", kAnswerTime);
  ranks.finish({3600});
  EXPECT_TRUE(childless());
}

TEST(lasting, counts_no_time_in_which_nobody_looked) {
  const collective::Lasting::Clock::time_point begin{};
  collective::Lasting one;
  EXPECT_EQ(one.look(true, begin), Seconds{0});
  EXPECT_EQ(one.look(true, begin + std::chrono::milliseconds(250)), Seconds{0.25});
  EXPECT_EQ(one.look(true, begin + std::chrono::hours(1)), Seconds{0.75});
  EXPECT_EQ(one.look(false, begin + std::chrono::hours(1)), Seconds{0});
  EXPECT_EQ(one.look(true, begin + std::chrono::hours(2)), Seconds{0});
}

TEST(local_ranks, that_flood_are_named_and_killed) {
  EXPECT_EQ(loss({rank("flood", "0")}, kAnswerTime), "rank 0 said more than 1048576 B at once");
  EXPECT_TRUE(childless());
}

TEST(local_ranks, that_do_not_leave_are_killed) {
  collective::LocalRanks ranks({rank("stay")});
  (void)ranks.ask("one", kAnswerTime);
  ranks.finish({0.1});
  EXPECT_TRUE(childless());
}

TEST(local_ranks, that_cannot_be_started_leave_none_of_the_others) {
  collective::RankProgram missing = rank("echo", "1");
  missing.path = "/no/such/program";
  EXPECT_THROW(collective::LocalRanks({rank("echo", "0"), missing}), std::system_error);
  EXPECT_TRUE(childless());
}

TEST(local_ranks, are_killed_when_their_owner_goes) {
  { const collective::LocalRanks ranks({rank("hang"), rank("echo")}); }
  EXPECT_TRUE(childless());
}

TEST(rank_arguments, name_the_parent_and_the_place) {
  const auto arguments = rank_arguments(
      "nccl_collective", {.rank = 3, .ranks = 16, .gpu = "GPU-1", .operation = "all_reduce", .type = "bf16"});
  EXPECT_EQ(arguments, (std::vector<std::string>{"nccl_collective", "--local-rank", std::to_string(getpid()), "3", "16",
                                                 "GPU-1", "all_reduce", "bf16"}));
}

}  // namespace
}  // namespace assay::nccl
