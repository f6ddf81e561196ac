// What forwarded, encrypted and carried the traffic of a node, read from artificial answers of the kernel and of Open
// vSwitch. No adapter that forwards or encrypts stands behind them.
#include <cstring>
#include <string>
#include <vector>

#include <linux/if_link.h>
#include <linux/xfrm.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include "probes/core/machine_tree.h"
#include "probes/core/netlink.h"
#include "probes/host/encryption.h"
#include "probes/host/forwarded.h"
#include "probes/host/node_work.h"
#include "tests/unit/fake_tree.h"

namespace assay::host::node_work_test {
namespace {

std::string bytes_of(const auto& value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

/// An answer of RTM_GETSTATS: everything that passed a port, and the part that hit the processors, each in one
/// direction only.
std::string port(int index, Load all, Load software) {
  if_stats_msg head = {};
  head.ifindex = static_cast<unsigned>(index);
  rtnl_link_stats64 of_all = {}, of_software = {};
  of_all.rx_packets = all.packets;
  of_all.rx_bytes = all.bytes;
  of_software.tx_packets = software.packets;
  of_software.tx_bytes = software.bytes;
  return bytes_of(head) + netlink_attribute(IFLA_STATS_LINK_64, bytes_of(of_all)) +
         netlink_attribute(IFLA_STATS_LINK_OFFLOAD_XSTATS,
                           netlink_attribute(IFLA_OFFLOAD_XSTATS_CPU_HIT, bytes_of(of_software)));
}

ForwardCounters ports(const std::vector<std::string>& bodies) {
  return {.source = "ports", .parts = port_counters(bodies)};
}

constexpr Load kNone = {}, kBefore = {.bytes = 1'000, .packets = 10};

struct ShareCase {
  const char* what;
  Load all, software;
  std::uint64_t payload;
  std::optional<double> share;
};

TEST(offloaded_share, is_the_hardwares_part_of_packets_or_bytes_whichever_is_smaller) {
  for (const auto& one : std::vector<ShareCase>{
           {"all in hardware", {101'000, 1'010}, {}, 90'000, 1.0},
           {"all in software", {101'000, 1'010}, {100'000, 1'000}, 90'000, 0.0},
           {"all in software, joined to a tenth of the packets", {101'000, 1'010}, {100'000, 100}, 90'000, 0.0},
           {"half by packets, less by bytes", {101'000, 1'010}, {25'000, 500}, 90'000, 0.5},
           {"less was counted than was sent", {101'000, 1'010}, {}, 100'001, std::nullopt},
           {"software counted more than there was", {101'000, 1'010}, {101'001, 1'011}, 90'000, 0.0},
           {"nothing passed", kBefore, {}, 0, std::nullopt}}) {
    const auto share =
        offloaded_share(ports({port(3, kBefore, kNone)}), ports({port(3, one.all, one.software)}), one.payload);
    ASSERT_EQ(share.has_value(), one.share.has_value()) << one.what;
    EXPECT_DOUBLE_EQ(share.value_or(0), one.share.value_or(0)) << one.what;
  }
}

TEST(offloaded_share, is_unknown_where_no_port_counts_what_hit_the_processors) {
  if_stats_msg head = {};
  rtnl_link_stats64 all = {};
  all.rx_packets = 1'000;
  all.rx_bytes = 100'000;
  const std::string plain = bytes_of(head) + netlink_attribute(IFLA_STATS_LINK_64, bytes_of(all)) +
                            netlink_attribute(IFLA_STATS_LINK_OFFLOAD_XSTATS, "");
  EXPECT_TRUE(port_counters(std::vector{plain, std::string("x"), std::string()}).empty());
  EXPECT_FALSE(offloaded_share({}, {}, 0));
  EXPECT_FALSE(offloaded_share({}, ports({port(3, kBefore, kNone)}), 0)) << "nothing was read before";
}

TEST(offloaded_share, counts_a_port_that_came_or_began_again_whole) {
  const auto share = offloaded_share(ports({port(3, {.bytes = 900, .packets = 9}, kNone)}),
                                     ports({port(3, {.bytes = 300, .packets = 3}, kNone),
                                            port(4, {.bytes = 100, .packets = 1}, {.bytes = 100, .packets = 1})}),
                                     400);
  ASSERT_TRUE(share);
  EXPECT_DOUBLE_EQ(*share, 0.75);
}

constexpr const char* kFlows =
    "flow-dump from pmd on cpu core: 2\n"
    "ufid:1, recirc_id(0),in_port(2),eth_type(0x0800),ipv4(frag=no), packets:90, bytes:9000, used:0.0s, "
    "offloaded:yes, dp:tc, actions:3\n"
    "ufid:2, recirc_id(0),in_port(3),eth_type(0x0800),ipv4(frag=no), packets:6, bytes:600, used:0.0s, "
    "offloaded:partial, dp:ovs, actions:2\n"
    "ufid:3, recirc_id(0),in_port(3),eth_type(0x0806), packets:4, bytes:400, used:never, dp:ovs, "
    "actions:userspace(pid=1, offloaded:yes)\n";

TEST(offloaded_share, of_flows_is_that_of_those_which_are_wholly_in_hardware) {
  const auto flows = flow_counters(kFlows, "system@ovs-system");
  ASSERT_TRUE(flows);
  EXPECT_EQ(flows->size(), 3U);
  const auto share = offloaded_share({.source = "ovs", .parts = {}}, {.source = "ovs", .parts = *flows}, 10'000);
  ASSERT_TRUE(share);
  EXPECT_DOUBLE_EQ(*share, 0.9);
}

TEST(offloaded_share, of_flows_is_unknown_where_a_line_is_not_readable) {
  for (const auto* text : {"ufid:1, packets:x, bytes:1, actions:3", "ufid:1, packets:1, actions:3",
                           "ufid:1, packets:99999999999999999999, bytes:1, actions:3", "ufid:1, packets:1"})
    EXPECT_FALSE(flow_counters(text, "")) << text;
  EXPECT_TRUE(flow_counters("", "")->empty());
}

/// One filter as `tc -j -s filter show` lists it; `state` are fields of its options, `counters` of its action.
std::string filter(int handle, const char* state, const char* counters) {
  return R"({"protocol":"ip","pref":1,"kind":"flower","chain":0,"options":{"handle":)" + std::to_string(handle) +
         R"(,"keys":{"eth_type":"ipv4"},)" + state + R"("actions":[{"order":1,"kind":"mirred","stats":{)" + counters +
         R"(}},{"order":2,"kind":"gact","stats":{"bytes":77,"packets":7}}]}})";
}

struct FilterCase {
  const char* what;
  std::vector<std::string> filters;
  std::optional<double> share;
};

TEST(offloaded_share, of_filters_is_the_part_that_hardware_counted) {
  constexpr const char *kHeading = R"({"protocol":"ip","pref":1,"kind":"flower","chain":0})",
                       *kOther = R"({"protocol":"ip","pref":2,"kind":"u32","options":{"handle":9}})";
  for (const auto& one : std::vector<FilterCase>{
           {"not in hardware",
            {kHeading, kOther, filter(1, R"("not_in_hw":true,)", R"("bytes":9000,"packets":90)")},
            0},
           {"a tenth in software",
            {kHeading,
             filter(1, R"("in_hw":true,"in_hw_count":1,)",
                    R"("bytes":10000,"packets":100,"sw_bytes":1000,"sw_packets":10,"hw_bytes":9000,"hw_packets":90)")},
            0.9},
           {"two filters, one in hardware",
            {filter(1, R"("in_hw":true,)", R"("bytes":5000,"packets":50,"hw_bytes":5000,"hw_packets":50)"),
             filter(2, R"("not_in_hw":true,)", R"("bytes":5000,"packets":50)")},
            0.5},
           {"software is skipped", {filter(1, R"("skip_sw":true,"in_hw":true,)", R"("bytes":9000,"packets":90)")}, 1},
           {"more in hardware than at all",
            {filter(1, R"("in_hw":true,)", R"("bytes":9000,"packets":90,"hw_bytes":9001,"hw_packets":90)")},
            0},
           {"in hardware, and nobody says whose packets they were",
            {filter(1, R"("in_hw":true,)", R"("bytes":9000,"packets":90)")},
            std::nullopt}}) {
    std::string text;
    for (const auto& each : one.filters) text += (text.empty() ? "[" : ",") + each;
    const auto parts = filter_counters(text + "]", "dev e0 ingress");
    ASSERT_EQ(parts.has_value(), one.share.has_value()) << one.what;
    if (!parts) continue;
    const auto share = offloaded_share({.source = "tc", .parts = {}}, {.source = "tc", .parts = *parts}, 9'000);
    EXPECT_DOUBLE_EQ(share.value_or(-1), *one.share) << one.what;
  }
  EXPECT_TRUE(filter_counters("[]", "")->empty());
  for (const auto* text : {"", "{}", "[", "dev e0: x"}) EXPECT_FALSE(filter_counters(text, "")) << text;
}

TEST(offloaded_share, of_filters_is_read_at_both_ends_of_interfaces_and_once_at_a_block) {
  const auto places = filter_places(
      R"([{"kind":"fq_codel","dev":"e0"},{"kind":"clsact","dev":"e0","parent":"ffff:fff1"},{"kind":"ingress","dev":"e1"},
          {"kind":"ingress","dev":"e2","ingress_block":22},{"kind":"ingress","dev":"e3","ingress_block":22}])");
  std::string text;
  for (const auto& place : places) {
    for (const auto& word : place) text += word + " ";
    text += "\n";
  }
  EXPECT_EQ(text,
            "filter show dev e0 ingress \nfilter show dev e0 egress \nfilter show dev e1 ingress \n"
            "filter show block 22 \n");
  EXPECT_TRUE(filter_places("").empty());
}

/// An answer of XFRM_MSG_GETSA; `flags` under 0: no offload.
std::string association(std::uint32_t spi, std::uint64_t bytes, int flags) {
  xfrm_usersa_info info = {};
  info.id.spi = spi;
  info.curlft.bytes = bytes;
  std::string body = bytes_of(info);
  body.resize((body.size() + 3) / 4 * 4);
  xfrm_user_offload offload = {};
  offload.flags = static_cast<unsigned char>(flags < 0 ? 0 : flags);
  return flags < 0 ? body : body + netlink_attribute(XFRMA_OFFLOAD_DEV, bytes_of(offload));
}

struct EncryptionCase {
  const char* what;
  std::vector<std::string> after;
  const char* by;
  const char* offload;
};

TEST(encryption, is_what_the_counters_of_associations_say) {
  constexpr std::uint64_t kPayload = 1'000'000;
  const auto before = associations_in(std::vector{association(1, 500, -1), association(2, 500, -1)});
  for (const auto& one : std::vector<EncryptionCase>{
           {"no association moved", {association(1, 500, -1), association(2, 500, -1)}, "none", ""},
           {"another connection's", {association(1, 5'500, -1)}, "none", ""},
           {"all of it", {association(1, 600'500, -1), association(2, 400'500, -1)}, "ipsec", "none"},
           {"a new one", {association(7, 1'000'000, 0)}, "ipsec", "crypto"},
           {"in the adapter", {association(1, 600'500, 4), association(2, 500'500, 2 | 4)}, "ipsec", "packet"},
           {"one of two in the adapter", {association(1, 600'500, 2), association(2, 500'500, -1)}, "ipsec", "none"},
           {"half of it", {association(1, 500'500, -1)}, "partly", "none"}}) {
    const Encrypted encrypted = encrypted_by(before, associations_in(one.after), kPayload);
    EXPECT_EQ(encrypted.by, one.by) << one.what;
    EXPECT_EQ(encrypted.offload, one.offload) << one.what;
  }
  EXPECT_TRUE(associations_in(std::vector{std::string("short")}).empty());
}

constexpr const char* kStat = "cpu  100 20 300 4000 50 6 70 8 9 0\ncpu0 1 1 1 1\n";

std::string process_stat(const std::string& name, int user, int system) {
  return "7 (" + name + ") S 1 7 7 0 -1 4194560 1 2 3 4 " + std::to_string(user) + " " + std::to_string(system) +
         " 0 0 20 0 1 0 5 0 0";
}

TEST(processor_time, is_of_all_processors_and_of_those_that_forward_packets) {
  const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  FakeTree tree;
  tree.file("proc/stat", kStat);
  const auto idle = processor_time(MachineTree(tree.path()));
  EXPECT_DOUBLE_EQ(idle.busy_s, 496 * tick);  // neither idle nor waiting, nor what other machines took
  EXPECT_FALSE(idle.switch_s);
  for (const auto& [directory, name, user] : {std::tuple{"proc/10", "ovs-vswitchd", 30},
                                              {"proc/11", "vhost-4242", 7},
                                              {"proc/12", "qemu-system-x86", 999},
                                              {"proc/12/task/12", "qemu-system-x86", 999},
                                              {"proc/12/task/13", "vhost-12", 5},
                                              {"proc/13", "sh (vhost-1)", 99}}) {
    tree.file(std::string(directory) + "/comm", name);
    tree.file(std::string(directory) + "/stat", process_stat(name, user, 1));
  }
  const auto busy = processor_time(MachineTree(tree.path()));
  ASSERT_TRUE(busy.switch_s);
  EXPECT_DOUBLE_EQ(*busy.switch_s, (30 + 7 + 5 + 3) * tick);
}

TEST(processor_time, of_a_machine_without_it_is_an_error) {
  FakeTree tree;
  for (const auto* text : {"", "cpu 1 2", "intr 1 2 3 4 5 6 7 8"}) {
    tree.file("proc/stat", text);
    EXPECT_THROW((void)processor_time(MachineTree(tree.path())), std::runtime_error) << text;
  }
}

}  // namespace
}  // namespace assay::host::node_work_test
