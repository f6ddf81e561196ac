// rendezvous: ranks that find each other on the loopback, and every way in which a caller or a peer can misbehave.
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <thread>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/unit/core/rendezvous_by_hand.h"
#include "tests/unit/failure.h"

namespace assay {
namespace {

/// Runs `work` as every rank of a group of `world` threads; the words of what each rank threw, by rank.
std::vector<std::string> run_group(int world, const RendezvousLimits& limits,
                                   const std::function<void(Rendezvous&)>& work) {
  RendezvousListener listener(local());
  const auto at = local(listener.port());
  std::vector<std::string> failures(static_cast<std::size_t>(world));
  {
    std::vector<std::jthread> ranks;
    for (int rank = 1; rank < world; ++rank) {
      ranks.emplace_back([&, rank] {
        failures[static_cast<std::size_t>(rank)] = failure([&] {
          auto group = Rendezvous::dial(at, rank, world, kToken, limits);
          work(group);
        });
      });
    }
    failures[0] = failure([&] {
      auto group = std::move(listener).gather(world, kToken, limits);
      work(group);
    });
  }
  return failures;
}

class groups_of : public testing::TestWithParam<int> {};

TEST_P(groups_of, every_size_exchange_what_each_rank_has) {
  const auto world = GetParam();
  const auto failures = run_group(world, kPatient, [&](Rendezvous& group) {
    ASSERT_EQ(group.world(), world);
    for (int round = 0; round < 3; ++round) {
      const auto all = group.all_gather(fmt::format("{}/{}", group.rank(), round));
      ASSERT_EQ(all.size(), static_cast<std::size_t>(world));
      for (int rank = 0; rank < world; ++rank)
        EXPECT_EQ(all[static_cast<std::size_t>(rank)], fmt::format("{}/{}", rank, round));
      group.barrier();
      EXPECT_EQ(group.broadcast(group.rank() == 0 ? "from the first" : "ignored"), "from the first");
    }
  });
  for (const auto& words : failures) EXPECT_EQ(words, "");
}
INSTANTIATE_TEST_SUITE_P(rendezvous, groups_of, testing::Values(1, 2, 8, 64));

TEST(rendezvous_messages, of_the_largest_size_arrive_whole) {
  RendezvousLimits limits = kPatient;
  limits.message = 3'000'000;  // many segments and many reads
  const auto failures = run_group(3, limits, [&](Rendezvous& group) {
    const std::string mine(limits.message, static_cast<char>('a' + group.rank()));
    EXPECT_EQ(group.all_gather(mine).at(2), std::string(limits.message, 'c'));
  });
  for (const auto& words : failures) EXPECT_EQ(words, "");
}

TEST(rendezvous_messages, over_the_size_end_the_group_with_the_rank_named) {
  RendezvousLimits limits = kPatient;
  limits.message = 64;
  const auto failures =
      run_group(3, limits, [&](Rendezvous& group) { group.all_gather(std::string(group.rank() == 2 ? 65 : 1, 'x')); });
  EXPECT_EQ(failures[2], "a message of 65 B is over the limit of 64 B");
  EXPECT_EQ(failures[0], "rank 2: a message of 65 B is over the limit of 64 B");
  EXPECT_EQ(failures[1], failures[0]);
}

TEST(rendezvous_peers, that_vanish_end_every_other_rank_with_their_name) {
  const auto failures = run_group(4, kPatient, [](Rendezvous& group) {
    group.barrier();
    if (group.rank() == 2) return;  // its connection closes
    group.all_gather("still here");
  });
  EXPECT_EQ(failures[2], "");
  EXPECT_TRUE(failures[0].starts_with("rank 2 (127.0.0.1:")) << failures[0];
  EXPECT_TRUE(failures[0].ends_with(") vanished")) << failures[0];
  EXPECT_EQ(failures[1], failures[0]);
  EXPECT_EQ(failures[3], failures[0]);
}

TEST(rendezvous_peers, that_give_up_leave_their_reason) {
  const auto failures = run_group(3, kPatient, [](Rendezvous& group) {
    if (group.rank() == 1)
      group.fail("no GPU here");
    else
      group.all_gather("");
  });
  EXPECT_EQ(failures[0], "rank 1: no GPU here");
  EXPECT_EQ(failures[2], "rank 1: no GPU here");
}

TEST(rendezvous_peers, that_fail_later_report_the_first_failure_and_what_they_shared_goes_after_all_know) {
  const int port = RendezvousListener(local()).port();  // free a moment ago
  std::atomic<int> removed = 0;
  std::vector<std::string> failures(3);
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < 3; ++rank) {
      ranks.emplace_back([&, rank] {
        const Placement placement{
            .rank = rank, .world = 3, .rendezvous = fmt::format("127.0.0.1:{}", port), .token = kToken};
        failures[static_cast<std::size_t>(rank)] = failure([&] {
          work_together(placement, kPatient, [&](Rendezvous& group) {
            group.after_failure([&] { ++removed; });
            group.barrier();
            if (rank == 1) throw std::runtime_error("no disk");
            if (rank == 2) group.barrier();
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
            EXPECT_EQ(removed, 0) << "rank 0 is still at work with it";
            throw std::runtime_error("what was shared is gone");
          });
        });
      });
    }
  }
  EXPECT_EQ(failures, (std::vector<std::string>{"rank 1: no disk", "no disk", "rank 1: no disk"}));
  EXPECT_EQ(removed, 3);
}

TEST(rendezvous_peers, learn_why_rank_0_gives_up) {
  const auto failures = run_group(2, kPatient, [](Rendezvous& group) {
    if (group.rank() == 0)
      group.fail("no driver");
    else
      group.broadcast("");
  });
  EXPECT_EQ(failures[1], "rank 0: no driver");
}

TEST(rendezvous_peers, that_are_out_of_step_are_named) {
  const auto failures = run_group(2, kPatient, [](Rendezvous& group) {
    if (group.rank() == 0) group.broadcast("one");
    group.all_gather("");  // rank 1 takes the broadcast for the answer
    group.all_gather("");
  });
  EXPECT_NE(failures[0].find("rank 1"), std::string::npos) << failures[0];
  EXPECT_NE(failures[1], "");
}

TEST(rendezvous_peers, that_fall_silent_are_named_after_the_limit) {
  RendezvousLimits limits = kPatient;
  limits.exchange = kHasty;
  std::promise<void> over;
  const auto failures = run_group(3, limits, [&, done = over.get_future().share()](Rendezvous& group) {
    if (group.rank() == 1) {
      done.wait();
      return;
    }
    const std::string words = failure([&] { group.all_gather(""); });
    if (group.rank() == 0) over.set_value();
    throw std::runtime_error(words);
  });
  EXPECT_EQ(failures[0], "rank 1 sent nothing for 2 s");
  EXPECT_EQ(failures[2], failures[0]);
}

/// Asks for as long as the group lasts, as one does who waits for something else; throws when nothing has happened for
/// 30 s.
void check_for_long(Rendezvous& group) {
  const auto until = rendezvous::Clock::now() + std::chrono::seconds(30);
  while (rendezvous::Clock::now() < until) {
    group.check();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  throw std::runtime_error("the failure was not reported");
}

TEST(rendezvous_peers, that_are_busy_between_exchanges_notice_who_vanished) {
  const auto failures = run_group(3, kPatient, [&](Rendezvous& group) {
    group.barrier();
    if (group.rank() != 1) check_for_long(group);
  });
  EXPECT_TRUE(failures[0].starts_with("rank 1 (127.0.0.1:") && failures[0].ends_with("vanished")) << failures[0];
  EXPECT_EQ(failures[2], failures[0]);
}

TEST(rendezvous_peers, that_are_busy_between_exchanges_learn_why_one_gave_up) {
  const auto failures = run_group(3, kPatient, [&](Rendezvous& group) {
    group.barrier();
    if (group.rank() == 2)
      group.fail("the device is gone");
    else
      check_for_long(group);
  });
  EXPECT_EQ(failures[0], "rank 2: the device is gone");
  EXPECT_EQ(failures[1], failures[0]);
}

TEST(rendezvous_groups, that_have_ended_stay_ended) {
  run_group(2, kPatient, [](Rendezvous& group) {
    group.fail("enough");
    EXPECT_NE(failure([&] { group.barrier(); }).find("enough"), std::string::npos);
  });
}

TEST(rendezvous_ranks, that_do_not_come_are_named_to_those_who_came) {
  RendezvousListener listener(local());
  const auto at = local(listener.port());
  auto second = std::async(std::launch::async,
                           [&] { return failure([&] { Rendezvous::dial(at, 2, 4, kToken, kPatient).barrier(); }); });
  EXPECT_EQ(failure([&] { (void)std::move(listener).gather(4, kToken, {.join = kHasty}); }),
            "ranks 1, 3 did not come within 2 s");
  EXPECT_EQ(second.get(), "ranks 1, 3 did not come within 2 s");
}

TEST(rendezvous_ranks, without_a_rank_0_say_where_they_looked) {
  const Descriptor taken(
      ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));  // bound and not listening: nothing else can listen there
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(taken.number(), plain, length), 0);
  ASSERT_EQ(getsockname(taken.number(), plain, &length), 0);
  const auto port = ntohs(address.sin_port);
  const std::string words = failure([&] { (void)Rendezvous::dial(local(port), 1, 2, kToken, {.join = kHasty}); });
  EXPECT_EQ(words, fmt::format("rank 0 was not reached at 127.0.0.1:{} within 2 s: Connection refused", port));
}

TEST(rendezvous_members, that_send_more_than_allowed_end_the_group) {
  RendezvousLimits limits = kPatient;
  limits.message = 64;
  Hub hub(limits);
  Frame answer;
  const auto member = join_by_hand(hub.port(), 1, 2, kToken, answer);
  auto group = hub.group();
  member->queue({.kind = Kind::gather, .sequence = 1, .payload = std::string(65, 'x')});
  member->flush();
  const std::string words = failure([&] { group.all_gather(""); });
  EXPECT_TRUE(words.ends_with("vanished: it sent a frame of 65 B, over the limit of 64 B")) << words;
}

TEST(rendezvous_tokens, are_hexadecimal_and_long_enough_and_never_repeated_in_errors) {
  EXPECT_NO_THROW(check_token(kToken));
  EXPECT_EQ(failure([] { check_token("abc"); }), "token: 3 characters are not 32 to 128 hexadecimal digits");
  const std::string secret = std::string(31, 'a') + "!";
  EXPECT_EQ(failure([&] { check_token(secret); }).find(secret), std::string::npos);
  EXPECT_TRUE(rendezvous::equal_in_constant_time(kToken, kToken));
  EXPECT_FALSE(rendezvous::equal_in_constant_time(kToken, kToken.substr(1) + "0"));
  EXPECT_FALSE(rendezvous::equal_in_constant_time(kToken, kToken + "0"));
}

TEST(endpoints, are_read_with_names_and_both_kinds_of_addresses) {
  EXPECT_EQ(parse_endpoint("n01:5000").host, "n01");
  EXPECT_EQ(parse_endpoint("[::1]:5001").host, "::1");
  EXPECT_EQ(parse_endpoint("[::1]:5001").port, 5001);
  for (const char* text : {"n01", ":5000", "n01:", "n01:70000", "n01:5x", "::1:5000", "[]:1", ""}) {
    EXPECT_NE(failure([&] { (void)parse_endpoint(text); }).find("is not host:port"), std::string::npos) << text;
  }
}

TEST(listeners, at_an_address_of_another_machine_say_so) {
  const std::string words = failure([] { RendezvousListener(Endpoint{.host = "192.0.2.1", .port = 1}); });
  EXPECT_TRUE(words.starts_with("cannot listen at 192.0.2.1:1: ")) << words;
}

}  // namespace
}  // namespace assay
