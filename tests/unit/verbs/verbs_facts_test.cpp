// Ports, GIDs and counters on made-up machines.
#include <functional>
#include <stdexcept>

#include <gtest/gtest.h>

#include "probes/core/machine_tree.h"
#include "probes/core/parameters.h"
#include "probes/core/probe.h"
#include "probes/health/ethtool_netlink.h"
#include "probes/verbs/counters.h"
#include "probes/verbs/port_choice.h"
#include "probes/verbs/port_facts.h"
#include "tests/unit/failure.h"
#include "tests/unit/verbs/verbs_tree.h"

namespace assay::verbs {
namespace {

const CounterGroup& group(std::string_view name) {
  for (const auto& one : counter_groups()) {
    if (one.name == name) return one;
  }
  throw std::logic_error("no such group");
}

}  // namespace

TEST(port_facts, a_port_tells_its_link_and_its_addresses) {
  const FakeTree tree;
  add_port(tree, {});
  const auto ports = read_ports(MachineTree(tree.path()));
  ASSERT_EQ(ports.size(), 1U);
  const PortFacts& port = ports.front();
  EXPECT_EQ(port.name(), "mlx5_0/1");
  EXPECT_TRUE(port.active());
  EXPECT_EQ(port.physical_state, "LinkUp");
  EXPECT_EQ(port.rate->count, 5e10);
  EXPECT_EQ(port.width, 4);
  EXPECT_EQ(port.speed, "NDR");
  EXPECT_EQ(port.firmware, "28.39.1002");
  EXPECT_EQ(port.interface, "eth0");
  EXPECT_EQ(port.gids.size(), 4U);
  EXPECT_FALSE(port.lid);
  EXPECT_FALSE(port.numa_node);
}

TEST(port_facts, what_a_port_does_not_tell_is_absent) {
  const FakeTree tree;
  tree.directory("sys/class/infiniband/mlx5_9/ports/1");
  const auto ports = read_ports(MachineTree(tree.path()));
  ASSERT_EQ(ports.size(), 1U);
  EXPECT_FALSE(ports.front().active());
  EXPECT_FALSE(ports.front().rate);
  EXPECT_FALSE(ports.front().width);
  EXPECT_TRUE(ports.front().gids.empty());
}

TEST(port_facts, empty_entries_of_the_gid_table_are_left_out) {
  const FakeTree tree;
  add_port(tree, {.gids = {{"0000:0000:0000:0000:0000:0000:0000:0000", ""},
                           {"fe80:0000:0000:0000:0000:0000:0000:0002", "RoCE v2"}}});
  const auto ports = read_ports(MachineTree(tree.path()));
  ASSERT_EQ(ports.front().gids.size(), 1U);
  EXPECT_EQ(ports.front().gids.front().index, 1);
}

TEST(port_facts, rates_are_read_with_and_without_width_and_speed) {
  EXPECT_EQ(parse_rate("2.5 Gb/sec (1X SDR)").rate->count, 3.125e8);
  EXPECT_EQ(parse_rate("100 Gb/sec").rate->count, 1.25e10);
  EXPECT_FALSE(parse_rate("100 Gb/sec").width);
  EXPECT_FALSE(parse_rate("unknown").rate);
  EXPECT_FALSE(parse_rate("0 Gb/sec (4X SDR)").rate);
}

TEST(port_facts, a_gid_is_written_as_the_address_it_holds) {
  EXPECT_EQ(gid_words("0000:0000:0000:0000:0000:ffff:0a09:0001"), "10.9.0.1");
  EXPECT_EQ(gid_words("fe80:0000:0000:0000:5054:00ff:fe00:0001"), "fe80::5054:ff:fe00:1");
  EXPECT_EQ(gid_words("no address"), "no address");
}

TEST(port_choice, auto_takes_the_fastest_active_port) {
  const FakeTree tree;
  add_port(tree, {.device = "mlx5_0", .rate = "100 Gb/sec (4X EDR)"});
  add_port(tree, {.device = "mlx5_1"});
  add_port(tree, {.device = "mlx5_2", .state = "1: DOWN", .rate = "800 Gb/sec (8X NDR)"});
  const auto ports = read_ports(MachineTree(tree.path()));
  EXPECT_EQ(candidate_ports(ports, "auto").front().name(), "mlx5_1/1");
  EXPECT_EQ(candidate_ports(ports, "mlx5_0").front().name(), "mlx5_0/1");
  EXPECT_EQ(candidate_ports(ports, "mlx5_0/1").front().name(), "mlx5_0/1");
}

TEST(port_choice, a_port_that_is_not_there_or_down_is_named_with_what_there_is) {
  const FakeTree tree;
  add_port(tree, {.device = "mlx5_2", .state = "1: DOWN"});
  const auto ports = read_ports(MachineTree(tree.path()));
  EXPECT_EQ(failure([&] { (void)candidate_ports(ports, "mlx5_7"); }),
            "device: 'mlx5_7' is not here; there is mlx5_2/1 DOWN");
  EXPECT_EQ(failure([&] { (void)candidate_ports(ports, "mlx5_2"); }),
            "device: mlx5_2/1 is not active; there is mlx5_2/1 DOWN");
  EXPECT_THROW((void)candidate_ports(ports, "auto"), Skip);
  EXPECT_THROW((void)candidate_ports({}, "auto"), Skip);
}

TEST(port_choice, auto_prefers_roce_v2_over_ipv4) {
  const FakeTree tree;
  add_port(tree, {});
  const auto port = read_ports(MachineTree(tree.path())).front();
  EXPECT_EQ(choose_gid(port, "auto").index, 3);
  EXPECT_EQ(choose_gid(port, "1").type, "RoCE v2");
}

TEST(port_choice, a_link_local_address_is_the_last_of_roce_v2) {
  const FakeTree tree;
  add_port(tree, {.gids = {{"fe80:0000:0000:0000:0000:0000:0000:0002", "RoCE v2"},
                           {"fd00:0000:0000:0000:0000:0000:0000:0002", "RoCE v2"}}});
  EXPECT_EQ(choose_gid(read_ports(MachineTree(tree.path())).front(), "auto").index, 1);
}

TEST(port_choice, a_gid_index_without_an_entry_shows_the_table) {
  const FakeTree tree;
  add_port(tree, {.gids = {{"0000:0000:0000:0000:0000:ffff:0a09:0001", "RoCE v2"}}});
  const auto port = read_ports(MachineTree(tree.path())).front();
  EXPECT_EQ(failure([&] { (void)choose_gid(port, "5"); }),
            "gid_index: 5 of mlx5_0/1 holds no GID; its table: 0 RoCE v2 10.9.0.1");
  EXPECT_THROW((void)choose_gid(port, "five"), BadParameter);
}

TEST(port_choice, no_larger_mtu_than_both_ports_have) {
  EXPECT_EQ(choose_mtu(4096, 1024, "auto"), 1024);
  EXPECT_EQ(choose_mtu(4096, 1024, "512"), 512);
  EXPECT_NE(failure([] { (void)choose_mtu(4096, 1024, "4096"); }).find("4096 and 1024 B"), std::string::npos);
}

TEST(counters, a_counter_that_is_absent_is_missing_and_not_zero) {
  const FakeTree tree;
  add_port(tree, {});
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1/";
  tree.file(port + "counters/symbol_error", "3\n");
  tree.file(port + "counters/port_xmit_discards", "N/A (no PMA)\n");
  tree.file(port + "hw_counters/out_of_sequence", "7\n");
  tree.file(port + "hw_counters/lifespan", "12\n");
  const MachineTree machine(tree.path());
  EXPECT_EQ(read_counters(machine, read_ports(machine).front()),
            (Counters{{"out_of_sequence", 7}, {"symbol_error", 3}}));
}

TEST(counters, of_a_network_interface_only_what_tells_of_the_link_is_kept) {
  const FakeTree tree;
  add_port(tree, {});
  for (const std::string name : {"rx_crc_errors", "tx_dropped", "rx_bytes", "rx_queue_0_drops"})
    tree.file("sys/class/net/eth0/statistics/" + name, "1\n");
  const MachineTree machine(tree.path());
  EXPECT_EQ(read_counters(machine, read_ports(machine).front()),
            (Counters{{"net.rx_crc_errors", 1}, {"net.tx_dropped", 1}}));
}

TEST(counters, a_change_is_told_only_of_what_was_there_before_and_after) {
  const Counters change = change_of({{"a", 3}, {"b", 5}}, {{"b", 9}, {"c", 1}});
  EXPECT_EQ(change, (Counters{{"b", 4}}));
  EXPECT_EQ(counter_words(change), "b=4");
  EXPECT_EQ(counter_words({{"b", 0}}), "none");
}

TEST(counters, groups_sum_their_members_and_are_absent_without_any) {
  const Counters change{{"out_of_sequence", 2},
                        {"local_ack_timeout_err", 3},
                        {"net.rx_prio3_pause", 11},
                        {"symbol_error", 0},
                        {"rcvd_pkts", 1000}};
  EXPECT_EQ(sum_of(group("retransmits"), change), 5);
  EXPECT_EQ(sum_of(group("pauses"), change), 11);
  EXPECT_EQ(sum_of(group("link_errors"), change), 0);
  EXPECT_FALSE(sum_of(group("discards"), change));
  EXPECT_FALSE(sum_of(group("congestion_marks"), change));
}

TEST(counters, soft_roce_tells_lost_packets_by_its_own_names) {
  EXPECT_EQ(sum_of(group("retransmits"), {{"completer_retry_err", 4}, {"rcvd_seq_err", 2}, {"ack_deferred", 9}}), 6);
}

TEST(ethtool, an_interface_that_is_not_there_has_no_counters) {
  EXPECT_TRUE(health::ethtool_counters("no-such-if").empty());
}

}  // namespace assay::verbs
