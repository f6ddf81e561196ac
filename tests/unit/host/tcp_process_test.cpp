// Payload between two ranks: what is checked is really checked, and no loopback passes for a network.
#include <cstring>
#include <future>
#include <map>
#include <string>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "probes/host/tcp_flow.h"
#include "probes/host/tcp_path.h"
#include "probes/traffic/traffic.h"
#include "tests/unit/free_port.h"
#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"

namespace assay::host {
namespace {

constexpr Bytes kBlock = {4096};
constexpr std::uint64_t kSeed = 1;
constexpr std::uint64_t kEndMark = UINT64_MAX;

/// Both ends of one stream within this process.
struct Ends {
  Streams here, there;
  Ends() {
    int both[2] = {};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, both) != 0) throw std::runtime_error("socketpair failed");
    here.emplace_back(both[0]);
    there.emplace_back(both[1]);
  }
  /// Writes a block by hand: its number, then `payload`.
  void write(std::uint64_t number, const std::vector<std::byte>& payload) const {
    const std::atomic<bool> never = false;
    std::array<std::byte, 8> head;
    std::memcpy(head.data(), &number, sizeof number);
    send_all(here[0].number(), head, never);
    send_all(here[0].number(), payload, never);
  }
};

/// The payload of stream 0 in the direction of kSeed.
std::vector<std::byte> right_payload() { return block_payload(kBlock.count - 8, kSeed * 0x10001); }

TEST(TcpFlow, what_is_sent_is_received_to_the_byte) {
  const Ends ends;
  Receiver receiver(ends.there, kBlock, kSeed);
  Sender sender(ends.here, kBlock, kSeed);
  while (receiver.received() < 100 * kBlock.count) std::this_thread::yield();
  const auto sent = sender.finish();
  const Received received = receiver.finish();
  EXPECT_EQ(received.bytes, sent);
  EXPECT_EQ(received.blocks, sent / kBlock.count);
  EXPECT_EQ(received.checked, (received.blocks + kCheckEvery - 1) / kCheckEvery);
  EXPECT_EQ(received.mismatches, 0U);
}

TEST(TcpFlow, a_changed_byte_in_a_compared_block_is_a_mismatch) {
  const Ends ends;
  Receiver receiver(ends.there, kBlock, kSeed);
  auto payload = right_payload();
  payload[1000] ^= std::byte{1};
  ends.write(0, payload);
  ends.write(kEndMark, {});
  EXPECT_EQ(receiver.finish().mismatches, 1U);
}

TEST(TcpFlow, a_lost_block_is_a_mismatch) {
  const Ends ends;
  Receiver receiver(ends.there, kBlock, kSeed);
  ends.write(0, right_payload());
  ends.write(2, right_payload());
  ends.write(kEndMark, {});
  const Received received = receiver.finish();
  EXPECT_EQ(received.blocks, 2U);
  EXPECT_EQ(received.mismatches, 1U);
}

TEST(TcpFlow, the_payload_of_the_other_direction_is_a_mismatch) {
  const Ends ends;
  Receiver receiver(ends.there, kBlock, kSeed);
  ends.write(0, block_payload(kBlock.count - 8, 2 * 0x10001));
  ends.write(kEndMark, {});
  EXPECT_EQ(receiver.finish().mismatches, 1U);
}

TEST(TcpFlow, a_stream_that_ends_without_its_mark_is_an_error) {
  Ends ends;
  Receiver receiver(ends.there, kBlock, kSeed);
  ends.write(0, right_payload());
  ends.here.clear();
  EXPECT_THROW((void)receiver.finish(), std::runtime_error);
}

TEST(TcpPath, speeds_that_a_driver_does_not_know_are_absent) {
  EXPECT_EQ(link_speed_in("10000")->count, 1.25e9);
  for (const auto* unknown : {"-1", "4294967295", "0", "", "fast"}) EXPECT_FALSE(link_speed_in(unknown)) << unknown;
}

TEST(TcpPath, every_way_to_meet_oneself_is_told_from_a_network) {
  const PathFacts apart{
      .address = "10.0.0.1", .peer_address = "10.0.0.2", .interface = "eth0", .congestion_control = "cubic"};
  PathFacts same = apart, lo = apart;
  same.peer_address = same.address;
  lo.interface = "lo";
  EXPECT_EQ(other_path("fabric", apart, "boot-1", "boot-2"), "");
  EXPECT_EQ(other_path("fabric", apart, "", ""), "");
  EXPECT_NE(other_path("fabric", apart, "boot-1", "boot-1").find("one machine (boot boot-1)"), std::string::npos);
  EXPECT_NE(other_path("fabric", same, "boot-1", "boot-2").find("both ends of the streams have the address 10.0.0.1"),
            std::string::npos);
  EXPECT_NE(other_path("fabric", lo, "boot-1", "boot-2").find("loopback interface"), std::string::npos);
  EXPECT_EQ(other_path("loopback", lo, "boot-1", "boot-1"), "");
  EXPECT_NE(other_path("loopback", apart, "boot-1", "boot-2").find("two machines"), std::string::npos);
}

/// Both ranks of `probe` on this machine, by rank.
std::vector<ProbeOutput> both_ranks(const std::string& probe, const std::vector<std::string>& more) {
  const std::string at = fmt::format("--rendezvous=127.0.0.1:{}", free_port());
  const auto rank = [&](int number) {
    std::vector<std::string> words = {probe,       "--quick", fmt::format("--rank={}", number),
                                      "--world=2", at,        "--token=0123456789abcdef0123456789abcdef"};
    words.insert(words.end(), more.begin(), more.end());
    return run_probe(words);
  };
  auto second = std::async(std::launch::async, rank, 1);
  auto first = rank(0);
  return {first, second.get()};
}

Record read(const std::string& probe, const ProbeOutput& output) {
  const auto description = read_description(run_probe({probe, "--describe"}).out, probe);
  const auto record = read_record(output.out, *description);
  if (!record) throw std::runtime_error(record.error().text());
  return *record;
}

TEST(TcpProbes, a_loopback_has_metrics_of_its_own_and_each_rank_a_whole_record) {
  for (const auto& probe : {probe_file("host_tcp_bandwidth"), probe_file("host_tcp_latency")}) {
    const auto ranks = both_ranks(probe, {"--path=loopback"});
    for (const auto& output : ranks) {
      ASSERT_EQ(output.exit_code, 0) << output.out;
      EXPECT_EQ(value_of(read(probe, output), "path",
                         {"node", std::get<std::string>(read(probe, output).start.host.at("name"))}),
                Value(std::string("loopback")));
    }
    const Record record = read(probe, ranks[0]);
    std::string metrics;
    for (const auto& measured : record.measurements) metrics += measured.metric + " ";
    EXPECT_EQ(samples_of(record, "mismatches", record.measurements.back().subject), std::vector<double>{0});
    EXPECT_NE(metrics.find("loopback_"), std::string::npos) << metrics;
    EXPECT_EQ(metrics.find("forward_bandwidth"), std::string::npos) << metrics;
    EXPECT_EQ(metrics.find(" latency "), std::string::npos) << metrics;
    EXPECT_TRUE(read(probe, ranks[1]).measurements.empty());
  }
}

TEST(TcpProbes, packets_and_connections_of_a_loopback_have_metrics_of_their_own) {
  const std::string probe = probe_file("virtual_network");
  const auto ranks = both_ranks(probe, {"--path=loopback", "--offload-counters=none"});
  for (const auto& output : ranks) ASSERT_EQ(output.exit_code, 0) << output.out;
  const Record record = read(probe, ranks[0]);
  std::map<std::string, std::vector<double>> samples;
  for (const auto& measured : record.measurements) samples[measured.metric] = measured.samples;
  for (const auto* metric : {"loopback_packet_rate", "loopback_connection_rate", "loopback_connection_time"}) {
    ASSERT_FALSE(samples[metric].empty()) << metric;
    EXPECT_GT(samples[metric].back(), 0) << metric;
  }
  EXPECT_EQ(samples.count("forward_packet_rate") + samples.count("connection_rate"), 0U);
  EXPECT_EQ(samples["lost_share"].size(), 1U);
  EXPECT_GE(samples["lost_share"].front(), 0);
  EXPECT_EQ(samples["busy_cores"].size(), 2U) << "of packets and of connections";
  EXPECT_EQ(ranks[0].out.find("offloaded_share\""), std::string::npos) << "nothing counted";
  EXPECT_TRUE(read(probe, ranks[1]).measurements.empty());
}

TEST(TcpProbes, two_ranks_on_one_machine_are_no_network) {
  for (const auto& probe :
       {probe_file("host_tcp_bandwidth"), probe_file("host_tcp_latency"), probe_file("virtual_network")}) {
    for (const auto& output : both_ranks(probe, {})) {
      EXPECT_EQ(output.exit_code, 1);
      const Record record = read(probe, output);
      EXPECT_TRUE(record.measurements.empty());
      EXPECT_NE(record.end.reason.find("that is no network"), std::string::npos) << record.end.reason;
    }
  }
}

TEST(TcpProbes, one_rank_alone_skips_and_says_why) {
  for (const auto& probe :
       {probe_file("host_tcp_bandwidth"), probe_file("host_tcp_latency"), probe_file("virtual_network")}) {
    const auto output = run_probe({probe, "--quick"});
    EXPECT_EQ(output.exit_code, 77);
    EXPECT_NE(read(probe, output).end.reason.find("use it with scope pair"), std::string::npos);
  }
}

TEST(TcpProbes, parameters_that_measure_nothing_are_named) {
  for (const auto& [flag, words] : {std::pair{"--streams=0", "streams: 0 is not from 1"},
                                    {"--block=63", "block: 63 B"},
                                    {"--window=1ms", "window: 0.001 s"}}) {
    EXPECT_NE(read(probe_file("host_tcp_bandwidth"), run_probe({probe_file("host_tcp_bandwidth"), flag}))
                  .end.reason.find(words),
              std::string::npos)
        << flag;
  }
  for (const auto& [flag, words] : {std::pair{"--flows=0", "flows: 0 is not from 1"},
                                    {"--size=15", "size: 15 B is not from 16 B"},
                                    {"--window=1ms", "window: 0.001 s"}}) {
    EXPECT_NE(
        read(probe_file("virtual_network"), run_probe({probe_file("virtual_network"), flag})).end.reason.find(words),
        std::string::npos)
        << flag;
  }
  for (const auto& [flag, words] : {std::pair{"--size=0", "size: 0 B"},
                                    {"--count=0", "count: 0 is not from 1"},
                                    {"--warmup=0", "warmup: 0 is not"}}) {
    EXPECT_NE(
        read(probe_file("host_tcp_latency"), run_probe({probe_file("host_tcp_latency"), flag})).end.reason.find(words),
        std::string::npos)
        << flag;
  }
}

TEST(TcpPattern, every_rank_of_a_permutation_sends_once_and_receives_once) {
  EXPECT_EQ(traffic::flows_of("permutation", 3, 1), (std::vector<traffic::Flow>{{0, 1}, {1, 2}, {2, 0}}));
  EXPECT_EQ(traffic::flows_of("permutation", 4, 2), (std::vector<traffic::Flow>{{0, 2}, {1, 3}, {2, 0}, {3, 1}}));
  EXPECT_THROW((void)traffic::flows_of("permutation", 3, 3), BadParameter);
  EXPECT_THROW((void)traffic::flows_of("permutation", 3, 0), BadParameter);
}

TEST(TcpPattern, halves_send_to_each_other_and_all_send_to_rank_0) {
  EXPECT_EQ(traffic::flows_of("bisection", 5, 1), (std::vector<traffic::Flow>{{0, 2}, {1, 3}, {2, 0}, {3, 1}}));
  EXPECT_EQ(traffic::flows_of("incast", 4, 1), (std::vector<traffic::Flow>{{1, 0}, {2, 0}, {3, 0}}));
  EXPECT_THROW((void)traffic::flows_of("incast", 1, 1), std::runtime_error);
}

TEST(TcpPath, streams_through_another_port_than_was_asked_for_are_named) {
  const PathFacts facts{
      .address = "10.0.0.1", .peer_address = "10.0.0.2", .interface = "eth0", .congestion_control = "cubic"};
  EXPECT_EQ(other_interface("rendezvous", facts), "");
  EXPECT_EQ(other_interface("eth0", facts), "");
  EXPECT_EQ(other_interface("eth1", facts),
            "the streams from 10.0.0.1 to 10.0.0.2 go through eth0, and eth1 was asked for");
  PathFacts round_about = facts;
  round_about.way_back = "10.9.0.1";
  EXPECT_EQ(other_interface("rendezvous", round_about), "");
  EXPECT_EQ(other_interface("eth0", round_about),
            "this node's own way to 10.0.0.2 begins at 10.9.0.1 and not at 10.0.0.1, the address of eth0 which was "
            "asked for");
}

TEST(TcpTraffic, every_flow_has_a_figure_alone_and_one_with_all_others_and_nothing_is_wrong) {
  std::vector<std::future<ProbeOutput>> started;
  const auto port = free_port();
  for (int rank = 0; rank < 3; ++rank) {
    started.push_back(std::async(std::launch::async, [&, rank] {
      return run_probe({probe_file("host_tcp_traffic"), "--path=loopback", "--pattern=incast", "--block=4KiB",
                        "--window=20ms", "--warmup=1", "--windows=3", fmt::format("--rank={}", rank), "--world=3",
                        fmt::format("--rendezvous=127.0.0.1:{}", port), "--token=0123456789abcdef0123456789abcdef"});
    }));
  }
  std::vector<ProbeOutput> ranks;
  for (auto& one : started) ranks.push_back(one.get());
  for (const auto& output : ranks) ASSERT_EQ(output.exit_code, 0) << output.out;
  const Record record = read(probe_file("host_tcp_traffic"), ranks[0]);
  std::map<std::string, int> counts;
  for (const auto& measured : record.measurements) ++counts[measured.metric];
  EXPECT_EQ(counts, (std::map<std::string, int>{{"alone_bandwidth", 2},
                                                {"together_bandwidth", 2},
                                                {"retransmitted_share", 2},
                                                {"aggregate_bandwidth", 1},
                                                {"alone_sum", 1},
                                                {"alone_mean", 1},
                                                {"mismatches", 1}}));
  EXPECT_EQ(samples_of(record, "aggregate_bandwidth", {"group", "all flows"}).size(), 3U);
  EXPECT_EQ(samples_of(record, "mismatches", {"group", "all flows"}), std::vector<double>{0});
}

}  // namespace
}  // namespace assay::host
