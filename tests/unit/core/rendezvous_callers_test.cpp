// rendezvous: callers that do not belong to the step, and what an eavesdropper hears.
#include <future>

#include <gtest/gtest.h>
#include <poll.h>

#include "tests/unit/core/rendezvous_by_hand.h"
#include "tests/unit/failure.h"

namespace assay {
namespace {

TEST(rendezvous_callers, with_a_wrong_token_are_refused_and_disturb_no_rank) {
  Hub hub(kPatient);
  Frame answer;
  const auto stranger = join_by_hand(hub.port(), 1, 2, std::string(32, 'f'), answer);
  EXPECT_EQ(answer.kind, Kind::refused);
  EXPECT_EQ(answer.payload, "wrong token");
  auto second =
      std::async(std::launch::async, [&] { Rendezvous::dial(local(hub.port()), 1, 2, kToken, kPatient).barrier(); });
  auto group = hub.group();
  group.barrier();
  second.get();
  ASSERT_EQ(group.refused().size(), 1U);
  EXPECT_TRUE(group.refused().front().ends_with(": wrong token"));
}

TEST(rendezvous_callers, learn_that_their_token_is_wrong) {
  RendezvousLimits limits = kPatient;
  limits.join = kHasty;
  Hub hub(limits);
  const std::string words =
      failure([&] { (void)Rendezvous::dial(local(hub.port()), 1, 2, std::string(32, 'f'), kPatient); });
  EXPECT_TRUE(words.ends_with("refuses rank 1: wrong token")) << words;
  const std::string gathered = failure([&] { (void)hub.group(); });
  EXPECT_NE(gathered.find("rank 1 did not come within 2 s; refused: 127.0.0.1:"), std::string::npos) << gathered;
}

TEST(rendezvous_callers, with_a_rank_that_is_taken_are_refused_with_its_holder) {
  RendezvousListener listener(local());
  const auto at = local(listener.port());
  auto gathered = std::async(std::launch::async, [&] { return std::move(listener).gather(3, kToken, kPatient); });
  Frame first, second;
  const auto holder = join_by_hand(at.port, 1, 3, kToken, first);
  const auto double_ = join_by_hand(at.port, 1, 3, kToken, second);
  EXPECT_EQ(first.kind, Kind::welcome);
  EXPECT_EQ(second.kind, Kind::refused);
  EXPECT_TRUE(second.payload.starts_with("rank 1 is taken by 127.0.0.1:")) << second.payload;
  Frame third;
  const auto last = join_by_hand(at.port, 2, 3, kToken, third);
  EXPECT_EQ(gathered.get().refused().size(), 1U);
}

TEST(rendezvous_callers, with_a_rank_out_of_range_or_another_world_are_refused) {
  Hub hub(kPatient);
  Frame answer;
  (void)join_by_hand(hub.port(), 2, 2, kToken, answer);
  EXPECT_EQ(answer.payload, "rank 2 is not from 1 to 1");
  (void)join_by_hand(hub.port(), 0, 2, kToken, answer);
  EXPECT_EQ(answer.payload, "rank 0 is not from 1 to 1");
  (void)join_by_hand(hub.port(), 1, 3, kToken, answer);
  EXPECT_EQ(answer.payload, "rank 1 counts 3 ranks, rank 0 2");
  (void)join_by_hand(hub.port(), 1, 2, kToken, answer);
  EXPECT_EQ(answer.kind, Kind::welcome);
  EXPECT_EQ(hub.group().refused().size(), 3U);
}

TEST(rendezvous_callers, that_send_junk_or_too_much_or_nothing_are_let_go) {
  RendezvousLimits limits = kPatient;
  limits.hello = kHasty;
  Hub hub(limits);
  const auto silent = call(hub.port());
  const auto junk = call(hub.port());
  ASSERT_EQ(send(junk.number(), "GET / HTTP/1.1\r\nHost: n01\r\n\r\n", 28, MSG_NOSIGNAL), 28);
  Link large(call(hub.port()), "rank 0", 64);
  large.queue({.kind = Kind::hello, .sequence = 0, .payload = std::string(4096, 'a')});
  large.flush();
  for (const auto* caller : {&silent, &junk}) {
    char byte = 0;
    while (recv(caller->number(), &byte, 1, 0) > 0) {  // ends when rank 0 lets the caller go
    }
  }
  Frame answer;
  const auto last = join_by_hand(hub.port(), 1, 2, kToken, answer);
  const auto group = hub.group();
  std::string all;
  for (const auto& line : group.refused()) all += line + "\n";
  EXPECT_NE(all.find("it said nothing"), std::string::npos) << all;
  EXPECT_NE(all.find("it sent something else than a rendezvous frame"), std::string::npos) << all;
  EXPECT_NE(all.find("it sent a frame of 4096 B, over the limit of 40 B"), std::string::npos) << all;
}

TEST(rendezvous_callers, that_say_nothing_keep_no_rank_out) {
  Hub hub(kPatient);
  std::vector<Descriptor> silent;
  for (int i = 0; i < 400; ++i) silent.push_back(call(hub.port()));
  auto second =
      std::async(std::launch::async, [&] { Rendezvous::dial(local(hub.port()), 1, 2, kToken, kPatient).barrier(); });
  auto group = hub.group();
  group.barrier();
  second.get();
  std::string all;
  for (const auto& line : group.refused()) all += line + "\n";
  EXPECT_NE(all.find("too many callers"), std::string::npos) << all;
}

TEST(rendezvous_callers, that_have_said_hello_stay_while_silent_ones_come) {
  Hub hub(kPatient);
  rendezvous::Join join{.rank = 1, .world = 2, .caller = rendezvous::fresh_nonce(), .listener = ""};
  Link slow(call(hub.port()), "rank 0", 1 << 20);
  slow.queue({.kind = Kind::hello, .sequence = 0, .payload = hello(join)});
  slow.flush();
  join.listener = answer_on(slow).payload;
  std::vector<Descriptor> silent;
  for (int i = 0; i < 400; ++i) silent.push_back(call(hub.port()));
  slow.queue({.kind = Kind::proof, .sequence = 0, .payload = proof_of(kToken, rendezvous::Side::caller, join)});
  slow.flush();
  EXPECT_EQ(answer_on(slow).kind, Kind::welcome);
  (void)hub.group();
}

TEST(rendezvous_callers, that_replay_the_proof_of_a_rank_are_refused) {
  Hub hub(kPatient);
  // A rank without the token can still hear what another one says: nonces and proof.
  rendezvous::Join join{.rank = 1, .world = 2, .caller = rendezvous::fresh_nonce(), .listener = ""};
  std::string heard;
  {
    Link first(call(hub.port()), "rank 0", 1 << 20);
    first.queue({.kind = Kind::hello, .sequence = 0, .payload = hello(join)});
    first.flush();
    join.listener = answer_on(first).payload;
    heard = proof_of(kToken, rendezvous::Side::caller, join);
    EXPECT_EQ(heard.find(kToken), std::string::npos);
  }
  Link again(call(hub.port()), "rank 0", 1 << 20);
  again.queue({.kind = Kind::hello, .sequence = 0, .payload = hello(join)});
  again.flush();
  EXPECT_NE(answer_on(again).payload, join.listener);
  again.queue({.kind = Kind::proof, .sequence = 0, .payload = heard});
  again.flush();
  EXPECT_EQ(answer_on(again).payload, "wrong token");
  Frame answer;
  (void)join_by_hand(hub.port(), 1, 2, kToken, answer);
  (void)hub.group();
}

TEST(rendezvous_callers, are_not_sent_the_token_nor_by_them) {
  RendezvousListener listener(local());
  const auto at = local(listener.port());
  // Stands between rank 1 and rank 0 and reads what passes, as a tapped link would.
  const Descriptor tap(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(bind(tap.number(), reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(tap.number(), 1), 0);
  ASSERT_EQ(getsockname(tap.number(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  const std::uint16_t tapped = ntohs(address.sin_port);
  auto first = std::async(std::launch::async, [&] { std::move(listener).gather(2, kToken, kPatient).barrier(); });
  auto second =
      std::async(std::launch::async, [&] { Rendezvous::dial(local(tapped), 1, 2, kToken, kPatient).barrier(); });
  std::string heard;
  {
    const Descriptor near(accept(tap.number(), nullptr, nullptr));
    const Descriptor far = call(at.port);
    pollfd both[] = {{near.number(), POLLIN, 0}, {far.number(), POLLIN, 0}};
    for (bool open = true; open && poll(both, 2, 30'000) > 0;) {
      for (int i = 0; i < 2 && open; ++i) {
        if ((both[i].revents & (POLLIN | POLLHUP)) == 0) continue;
        char bytes[4096];
        const ssize_t got = recv(both[i].fd, bytes, sizeof bytes, 0);
        open = got > 0;
        if (open) heard.append(bytes, static_cast<std::size_t>(got));
        if (open) (void)send(both[1 - i].fd, bytes, static_cast<std::size_t>(got), MSG_NOSIGNAL);
      }
    }
  }
  first.get();
  second.get();
  EXPECT_GT(heard.size(), 100U);
  EXPECT_EQ(heard.find(kToken), std::string::npos);
}

TEST(rendezvous_callers, notice_a_rank_0_that_does_not_know_the_token) {
  const Descriptor fake(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(bind(fake.number(), reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(fake.number(), 1), 0);
  ASSERT_EQ(getsockname(fake.number(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  const std::uint16_t port = ntohs(address.sin_port);
  auto words = std::async(std::launch::async, [&] {
    return failure([&] { (void)Rendezvous::dial(local(port), 1, 2, kToken, kPatient); });
  });
  Link link(Descriptor(accept(fake.number(), nullptr, nullptr)), "rank 1", 1 << 20);
  EXPECT_EQ(answer_on(link).kind, Kind::hello);
  link.queue({.kind = Kind::challenge, .sequence = 0, .payload = rendezvous::fresh_nonce()});
  link.flush();
  EXPECT_EQ(answer_on(link).kind, Kind::proof);
  link.queue({.kind = Kind::welcome, .sequence = 0, .payload = std::string(32, 'w')});
  link.flush();
  EXPECT_TRUE(words.get().ends_with("does not know the token of this step"));
}

}  // namespace
}  // namespace assay
