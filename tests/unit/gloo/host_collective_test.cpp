// host_collective without Gloo: addresses, the way of the payload, what ranks report, and checks that find what is
// wrong.
#include <algorithm>
#include <cstring>
#include <sstream>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "probes/core/description.h"
#include "probes/core/record_reader.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous_link.h"
#include "probes/gloo/addresses.h"
#include "probes/gloo/connection_path.h"
#include "probes/gloo/connections.h"
#include "probes/gloo/outcome.h"
#include "probes/gloo/rank_check.h"
#include "probes/host/tcp_streams.h"
#include "tests/unit/failure.h"
#include "tests/unit/probe_process.h"

namespace assay::gloo {
namespace {

using nlohmann::json;

TEST(GlooAddresses, come_out_as_they_went_in) {
  const std::vector<std::string> addresses = {std::string("\x02\x00\x1f\x40\xff", 5),
                                              std::string("\x02\x00\x1f\x41\xff", 5),
                                              std::string("\x02\x00\x20\x40\xff", 5)};
  const json packed = pack_addresses(addresses);
  EXPECT_EQ(packed.at("places"), (json{2, 3}));
  for (std::size_t i = 0; i < addresses.size(); ++i) EXPECT_EQ(unpack_address(packed, i), addresses[i]);
}

TEST(GlooAddresses, of_one_other_rank_need_no_difference) {
  EXPECT_EQ(unpack_address(pack_addresses({"only"}), 0), "only");
}

TEST(GlooAddresses, that_are_missing_or_no_addresses_are_refused) {
  EXPECT_NE(failure([] { (void)pack_addresses({"ab", "abc"}); }).find("differ in length"), std::string::npos);
  EXPECT_NE(failure([] {
              (void)unpack_address(pack_addresses({"ab", "ac"}), 2);
            }).find("no address for every other"),
            std::string::npos);
  EXPECT_NE(failure([] {
              (void)unpack_address({{"first", "zz"}, {"places", json::array()}, {"bytes", ""}}, 0);
            }).find("no hexadecimal digits in first"),
            std::string::npos);
  EXPECT_NE(failure([] { (void)unpack_address(json::object(), 0); }).find("lack first"), std::string::npos);
  EXPECT_FALSE(failure([] { (void)unpack_address({{"first", "00"}, {"places", {7}}, {"bytes", "00"}}, 0); }).empty());
}

std::vector<Presence> two_nodes_of_two() {
  return {{.boot = "a", .within = 1, .beyond = 2},
          {.boot = "a", .within = 1, .beyond = 2},
          {.boot = "b", .within = 1, .beyond = 2},
          {.boot = "b", .within = 1, .beyond = 2}};
}

TEST(CollectiveWay, of_ranks_on_machines_of_their_own_is_a_fabric) {
  EXPECT_EQ(path_problem("fabric", two_nodes_of_two(), 2), "");
  EXPECT_EQ(path_problem("fabric", {{.boot = "", .within = 0, .beyond = 1}, {.boot = "", .within = 0, .beyond = 1}}, 1),
            "");
}

TEST(CollectiveWay, of_two_nodes_on_one_machine_is_none) {
  auto ranks = two_nodes_of_two();
  ranks[2].boot = ranks[3].boot = "a";
  EXPECT_EQ(path_problem("fabric", ranks, 2)
                .find("ranks 0 and 2 of two nodes run on one machine (boot a); that is no network"),
            0U);
}

TEST(CollectiveWay, through_a_loopback_is_none_whatever_the_boots_are) {
  auto ranks = two_nodes_of_two();
  ranks[3] = {.boot = "b", .within = 3, .beyond = 0};
  EXPECT_EQ(path_problem("fabric", ranks, 2)
                .find("rank 3 has 3 connections within its own machine and 0 to others, where 1 of its peers are on it "
                      "and 2 on others; that is no network"),
            0U);
  ranks[3] = {.boot = "b", .within = 1, .beyond = 1};
  EXPECT_EQ(
      path_problem("fabric", ranks, 2).find("rank 3 has 1 connections within its own machine and 1 to others, where"),
      0U);
}

TEST(CollectiveWay, between_machines_is_no_loopback) {
  EXPECT_EQ(path_problem("loopback", {{.boot = "a", .within = 1}, {.boot = "a", .within = 1}}, 2), "");
  EXPECT_EQ(path_problem("loopback", {{.boot = "a", .within = 1}, {.boot = "a", .within = 1}}, 1), "");
  EXPECT_NE(path_problem("loopback", two_nodes_of_two(), 2).find("rank 0 has 2 connections to other machines"),
            std::string::npos);
  EXPECT_NE(path_problem("loopback", {{.boot = "a", .within = 1}, {.boot = "b", .within = 1}}, 1)
                .find("rank 1 runs on another machine"),
            std::string::npos);
}

TEST(CollectiveWay, begins_at_an_address_of_this_machine) {
  EXPECT_EQ(host::address_towards({.host = "127.0.0.1", .port = 1}), "127.0.0.1");
  EXPECT_EQ(host::address_towards({.host = "127.0.0.9", .port = 1}),
            "127.0.0.1");  // the loopback's own address is the source
  EXPECT_NE(failure([] { (void)host::address_towards({.host = "no such host", .port = 1}); }).find("no such host"),
            std::string::npos);
}

TEST(CollectiveWay, by_a_port_that_is_not_there_names_those_that_are) {
  EXPECT_EQ(address_of_port("lo"), "127.0.0.1");
  const std::string words = failure([] { (void)address_of_port("eth99"); });
  EXPECT_EQ(words.find("interface: eth99 is no network port here; there are "), 0U) << words;
  EXPECT_NE(words.find("lo"), std::string::npos);
}

/// Both ends of a TCP connection of this process through the loopback.
struct Loop {
  rendezvous::Descriptor listener{socket(AF_INET, SOCK_STREAM, 0)}, one{socket(AF_INET, SOCK_STREAM, 0)}, other;
  Loop() {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* plain = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener.number(), plain, length) != 0 || listen(listener.number(), 1) != 0 ||
        getsockname(listener.number(), plain, &length) != 0 || connect(one.number(), plain, length) != 0) {
      throw std::runtime_error("no loopback");
    }
    other = rendezvous::Descriptor(accept(listener.number(), nullptr, nullptr));
  }
};

TEST(OwnConnections, are_those_of_every_descriptor_and_told_from_listeners) {
  const Connections before = own_connections();
  const Loop loop;
  const Connections now = own_connections();
  EXPECT_EQ(now.within - before.within, 2);
  EXPECT_EQ(now.beyond, before.beyond);
  EXPECT_EQ(now.paths.back().interface, "lo");
  EXPECT_EQ(now.paths.back().address, "127.0.0.1");
  EXPECT_GT(now.counters.segments, before.counters.segments);
}

json facts(const std::string& address, std::int64_t mtu, std::uint64_t segments, std::uint64_t again) {
  return {
      {"paths",
       {{{"address", address}, {"interface", "eth0"}, {"mss", 1448}, {"congestion_control", "cubic"}, {"mtu", mtu}}}},
      {"segments", segments},
      {"retransmitted", again},
      {"library", "/usr/lib/libgloo.so.0"},
      {"algorithm", "gloo_ring"}};
}

TEST(CollectiveFacts, of_a_nodes_ranks_are_joined_and_what_none_tells_is_absent) {
  constexpr ProbeSpec kSpec{.name = "host_collective",
                            .measures = "A test.",
                            .method = "None.",
                            .source = "None.",
                            .conditions = kFactConditions};
  std::ostringstream out;
  Recorder record(
      out, kSpec,
      {.probe = "host_collective", .revision = 1, .parameters = {}, .host = {{"name", std::string("n01")}}});
  record_facts(record, {facts("10.0.0.2", 9000, 100, 1), facts("10.0.0.1", 1500, 300, 3)});
  record.end({.status = Status::complete, .reason = ""});
  const auto read = read_record(out.str(), *read_description(describe(kSpec).dump(), "test"));
  ASSERT_TRUE(read) << read.error().text();
  const Subject node{"node", "n01"};
  EXPECT_EQ(value_of(*read, "address", node), Value(std::string("10.0.0.1 10.0.0.2")));
  EXPECT_EQ(value_of(*read, "interface", node), Value(std::string("eth0")));
  EXPECT_EQ(value_of(*read, "mtu", node), Value(std::int64_t{1500}));
  EXPECT_EQ(value_of(*read, "segments_retransmitted", node), Value(std::int64_t{4}));
  EXPECT_EQ(value_of(*read, "algorithm", node), Value(std::string("gloo_ring")));
  EXPECT_EQ(value_of(*read, "link_speed", node), std::nullopt);
}

TEST(CollectiveFacts, tell_the_slowest_port_only_when_all_tell_theirs) {
  EXPECT_EQ(slowest_port({{{"link_speed", 1.25e9}}, {{"link_speed", 1.25e8}}}), 1.25e8);
  EXPECT_EQ(slowest_port({{{"link_speed", 1.25e9}}, json::object()}), std::nullopt);
}

TEST(CollectiveFacts, give_the_share_of_all_ranks_together) {
  EXPECT_DOUBLE_EQ(retransmitted_share({facts("a", 1, 100, 1), facts("b", 1, 300, 3)}), 0.01);
  EXPECT_NE(failure([] { (void)retransmitted_share({facts("a", 1, 0, 0)}); }).find("counted no segment"),
            std::string::npos);
}

TEST(CollectiveRanks, are_told_their_place_and_refuse_another) {
  const RankPlace place{.rank = 3, .ranks = 8, .operation = "scatter", .type = "fp64", .address = "10.0.0.4"};
  auto arguments = rank_arguments(place);
  EXPECT_EQ(arguments.at(1), std::to_string(getpid()));
  EXPECT_EQ(rank_place(arguments), place);
  arguments[2] = "third";
  EXPECT_EQ(rank_place(arguments), std::nullopt);
  EXPECT_EQ(rank_place({"host_collective_rank"}), std::nullopt);
}

template <class Number>
void expect_every_wrong_element_counted(collective::Element element) {
  const collective::Pattern sender{
      .operation = collective::Operation::send_recv, .rank = 0, .ranks = 2, .chunk = 64, .seed = 3};
  collective::Pattern receiver = sender;
  receiver.rank = 1;
  std::vector<Number> numbers(64);
  auto* const bytes = reinterpret_cast<std::byte*>(numbers.data());
  fill(bytes, numbers.size(), element, sender);
  EXPECT_EQ(count_mismatches(bytes, numbers.size(), element, receiver), 0U);
  bytes[7 * sizeof(Number)] ^= std::byte{1};
  bytes[64 * sizeof(Number) - 1] ^= std::byte{0x80};  // the sign
  EXPECT_EQ(count_mismatches(bytes, numbers.size(), element, receiver), 2U);
  std::memset(bytes, 0xff, numbers.size() * sizeof(Number));  // what a collective leaves untouched
  EXPECT_EQ(count_mismatches(bytes, numbers.size(), element, receiver), 64U);
}

TEST(CollectiveCheck, counts_every_wrong_element) {
  expect_every_wrong_element_counted<float>(collective::Element::fp32);
  expect_every_wrong_element_counted<double>(collective::Element::fp64);
}

TEST(CollectiveCheck, finds_the_sign_of_a_zero_that_was_turned) {
  const collective::Pattern sums{.operation = collective::Operation::all_reduce, .ranks = 1, .chunk = 64, .modulus = 2};
  std::vector<float> numbers(64);
  auto* const bytes = reinterpret_cast<std::byte*>(numbers.data());
  fill(bytes, numbers.size(), collective::Element::fp32, sums);
  *std::ranges::find(numbers, 0.0F) = -0.0F;
  EXPECT_EQ(count_mismatches(bytes, numbers.size(), collective::Element::fp32, sums), 1U);
}

TEST(CollectiveCheck, what_is_only_moved_has_every_bit_as_0_and_as_1) {
  std::vector<std::uint64_t> words(64);
  fill(reinterpret_cast<std::byte*>(words.data()), words.size(), collective::Element::fp64,
       {.operation = collective::Operation::all_gather, .ranks = 2, .chunk = 64});
  std::uint64_t ones = 0, zeros = 0;
  for (const std::uint64_t word : words) ones |= word, zeros |= ~word;
  EXPECT_EQ(ones & zeros, ~std::uint64_t{0});
}

TEST(CollectiveCheck, refuses_types_that_hosts_do_not_sum) {
  std::byte two[2] = {};
  EXPECT_THROW(fill(two, 1, collective::Element::bf16, {}), std::logic_error);
}

}  // namespace
}  // namespace assay::gloo
