// What NCCL says of itself, in lines as NCCL 2.28.9 writes them (its source has the formats), and what is set for it.
#include <algorithm>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "probes/nccl/environment.h"
#include "probes/nccl/log.h"
#include "probes/nccl/outcome.h"
#include "tests/unit/paths.h"

namespace assay::nccl {
namespace {

using std::string_view_literals::operator""sv;

NcclLog golden(const std::string& name) {
  const std::ifstream file(golden_file("nccl/") + name);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return read_nccl_log(text.str());
}

using Words = std::set<std::string>;

TEST(nccl_log, of_one_node_tells_algorithm_protocol_and_channels_of_each_size) {
  const NcclLog log = golden("node_nvls.log");
  const std::vector<Choice> expected = {
      {.function = "AllReduce", .bytes = 8, .algorithm = "RING", .protocol = "LL", .channels = 1},
      {.function = "AllReduce", .bytes = 8388608, .algorithm = "NVLS", .protocol = "SIMPLE", .channels = 16},
      {.function = "AllReduce", .bytes = 65536, .algorithm = "TREE", .protocol = "LL128", .channels = 8},
  };
  EXPECT_EQ(log.choices, expected);
  EXPECT_EQ(log.transports, (Words{"NVLS", "P2P/CUMEM"}));
  EXPECT_EQ(log.network, "IB");
  EXPECT_EQ(log.multicast, true);
  EXPECT_TRUE(log.warnings.empty());
}

using Ways = std::map<std::int64_t, std::set<std::int64_t>>;

TEST(nccl_log, tells_adapters_and_the_one_by_which_each_channel_leaves_its_node) {
  const NcclLog node = golden("node_nvls.log");
  EXPECT_EQ(node.adapters, (std::map<std::int64_t, std::string>{{0, "mlx5_0:1"}, {1, "mlx5_1:1"}}));
  EXPECT_EQ(node.sends, Ways());
  EXPECT_EQ(golden("two_nodes.log").sends, (Ways{{0, {0}}})) << "what it receives, and other networks, are none";
  EXPECT_EQ(golden("two_nodes_efa.log").sends, Ways());
  EXPECT_EQ(golden("two_nodes_hpcx.log").sends, Ways()) << "a plug-in may number adapters otherwise";
  const auto log = read_nccl_log(
      "n01:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [12]mlx5_bond_0:2/IB [RO]; OOB eth0:10.0.0.1<0>\n"
      "n01:1:1 [0] NCCL INFO Channel 03/0 : 7[7] -> 8[0] [send] via NET/IB/12(6)/GDRDMA(PCI)/Shared\n"
      "n01:1:1 [0] NCCL INFO Channel 03/0 : 7[7] -> 9[1] [send] via NET/IB/0/GDRDMA\n"
      "n01:1:1 [0] NCCL INFO Channel 04/1 : 7[7] -> 8[0] [send] via NET/IB/0/GDRDMA\n");
  EXPECT_EQ(log.adapters, (std::map<std::int64_t, std::string>{{0, "mlx5_0:1"}, {12, "mlx5_bond_0:2"}}));
  EXPECT_EQ(log.sends, (Ways{{3, {0, 12}}})) << "connections of send and receive are none of a ring";
}

// Forms of RCCL 2.21 to 2.28, whose ranks are with addresses and whose ways with the communicator.
TEST(nccl_log, of_rccl_tells_ways_adapters_and_choices) {
  const auto log = read_nccl_log(
      "n01:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n"
      "n01:1:1 [0] NCCL INFO Channel 00/0 : 0[5000] -> 1[c1000] via P2P/IPC comm 0x55d0c0de nRanks 16\n"
      "n01:1:1 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEMCUMEM/read comm 0x55d0c0de nRanks 16\n"
      "n01:1:1 [0] NCCL INFO Channel 03 : 0[5000] -> 1[15000] via SHM/direct/direct comm 0x55d0c0de nRanks 16\n"
      "n01:1:1 [0] NCCL INFO Channel 02/0 : 7[f5000] -> 8[5000] [send] via NET/IB/1/GDRDMA comm 0x55d0c0de nRanks 16\n"
      "n01:1:1 [0] NCCL INFO 1073741824 Bytes -> Algo 1 proto 2 time 5210.4\n"
      "n01:1:1 [0] NCCL INFO AllReduce: 1073741824 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..111}\n");
  EXPECT_EQ(log.transports, (Words{"NET/IB/GDRDMA", "P2P/CUMEM", "P2P/IPC", "SHM"}));
  EXPECT_EQ(log.sends, (Ways{{2, {1}}}));
  ASSERT_EQ(log.choices.size(), 1U) << "a number is no algorithm's name";
  EXPECT_EQ(log.choices[0].channels, 112);
}

TEST(nccl_log, of_several_nodes_tells_every_way_between_ranks) {
  const NcclLog log = golden("two_nodes.log");
  EXPECT_EQ(log.transports, (Words{"COLLNET/SHARP/GDRDMA", "NET/AWS_Libfabric", "NET/IB/GDRDMA", "NET/Socket",
                                   "P2P/IPC", "P2P/MNNVL", "P2P/direct", "P2P/indirect", "SHM"}));
  EXPECT_EQ(log.network, "AWS Libfabric");
  EXPECT_EQ(log.multicast, false);
  ASSERT_EQ(log.warnings.size(), 1U);
  EXPECT_TRUE(log.warnings[0].starts_with("NET/IB: Got completion from peer")) << log.warnings[0];
}

TEST(nccl_log, of_hpc_x_and_of_efa_tells_gpudirect_as_that_of_the_built_in_network_does) {
  const NcclLog hpcx = golden("two_nodes_hpcx.log");
  EXPECT_EQ(hpcx.transports, (Words{"NET/IBext_v8/GDRDMA", "NVLS", "P2P/CUMEM"}));
  EXPECT_EQ(hpcx.network, "IBext_v8");
  EXPECT_EQ(gpudirect_of(hpcx.transports), true);
  const NcclLog efa = golden("two_nodes_efa.log");
  EXPECT_EQ(efa.transports, (Words{"NET/AWS_Libfabric/GDRDMA", "P2P/CUMEM"}));
  EXPECT_EQ(efa.network, "AWS Libfabric");
  EXPECT_EQ(gpudirect_of(efa.transports), true);
}

TEST(nccl_log, of_one_path_through_a_host_tells_no_gpudirect) {
  const NcclLog log = golden("two_nodes_one_by_host.log");
  EXPECT_EQ(log.transports, (Words{"NET/IBext_v8", "NET/IBext_v8/GDRDMA", "P2P/CUMEM"}));
  EXPECT_EQ(gpudirect_of(log.transports), false);
}

TEST(gpudirect, is_told_of_networks_and_of_nvlink_between_nodes_and_of_nothing_else) {
  EXPECT_EQ(gpudirect_of({"P2P/CUMEM", "SHM", "NVLS"}), std::nullopt);
  EXPECT_EQ(gpudirect_of({"P2P/MNNVL", "P2P/CUMEM"}), true);
  EXPECT_EQ(gpudirect_of({"P2P/MNNVL", "NET/IB"}), false);
  EXPECT_EQ(gpudirect_of({"COLLNET/SHARP/GDRDMA", "NET/IB/GDRDMA"}), true);
  EXPECT_EQ(gpudirect_of({}), std::nullopt);
}

TEST(nccl_log, in_other_words_tells_nothing) {
  const NcclLog log = golden("other_words.log");
  EXPECT_TRUE(log.choices.empty());
  EXPECT_TRUE(log.transports.empty());
  EXPECT_EQ(log.network, std::nullopt);
  EXPECT_EQ(log.multicast, std::nullopt);
}

TEST(nccl_log, that_is_empty_or_no_text_tells_nothing) {
  EXPECT_TRUE(read_nccl_log("").transports.empty());
  EXPECT_TRUE(read_nccl_log("\0\xff] NCCL INFO \n] NCCL INFO Channel"sv).transports.empty());
}

TEST(nccl_log, keeps_the_first_warnings_only) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "n01:1:1 [0] a.cc:1 NCCL WARN again\n";
  EXPECT_EQ(read_nccl_log(text).warnings.size(), 20U);
}

TEST(nccl_log, of_other_versions_tells_whether_there_is_multicast) {
  EXPECT_EQ(read_nccl_log("n01:1:1 [0] NCCL INFO NVLS multicast support is available on dev 3\n").multicast,
            true);  // 2.26, 2.30
}

TEST(nccl_log, of_other_versions_tells_that_memory_of_the_host_is_between_ranks) {
  EXPECT_EQ(read_nccl_log("n01:1:1 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct\n").transports,
            (Words{"SHM"}));  // 2.30
}

TEST(nccl_variables, are_told_without_those_for_logging_and_without_any_others) {
  const char* const environment[] = {"PATH=/bin",    "NCCL_IB_HCA=mlx5_0", "NCCL_DEBUG=WARN", "NCCL_DEBUG_FILE=/tmp/x",
                                     "AWS_SECRET=s", "NCCL_ALGO=Ring",     "NCCLX=1",         nullptr};
  EXPECT_EQ(words(nccl_variables(environment)), "NCCL_ALGO=Ring NCCL_IB_HCA=mlx5_0");
  const char* const empty[] = {nullptr};
  EXPECT_EQ(words(nccl_variables(empty)), "none");
}

TEST(rank_environment, is_the_nodes_own_but_for_logging_and_what_is_forced) {
  const char* const environment[] = {"PATH=/bin", "NCCL_DEBUG_FILE=/etc/x", "NCCL_ALGO=Tree", "NCCL_NVLS_ENABLE=1",
                                     nullptr};
  EXPECT_EQ(rank_environment(environment, {}),
            (std::vector<std::string>{"NCCL_ALGO=Tree", "NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT,TUNING",
                                      "NCCL_NVLS_ENABLE=1", "PATH=/bin"}));
  EXPECT_EQ(rank_environment(environment, {.algorithm = "nvls_tree", .protocol = "ll128", .nvls = "0"}),
            (std::vector<std::string>{"NCCL_ALGO=NVLSTree", "NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT,TUNING",
                                      "NCCL_NVLS_ENABLE=0", "NCCL_PROTO=LL128", "PATH=/bin"}));
}

TEST(rank_environment, switches_each_feature_as_the_user_guide_of_NCCL_names_it) {
  const char* const environment[] = {"NCCL_NET_GDR_LEVEL=PIX", nullptr};
  const auto has = [&](const Forced& forced, const char* variable) {
    return std::ranges::count(rank_environment(environment, forced), variable) == 1;
  };
  EXPECT_TRUE(has({}, "NCCL_NET_GDR_LEVEL=PIX"));
  EXPECT_TRUE(has({.gpudirect = "0"}, "NCCL_NET_GDR_LEVEL=LOC"));
  EXPECT_TRUE(has({.gpudirect = "1"}, "NCCL_NET_GDR_LEVEL=SYS"));
  EXPECT_TRUE(has({.collnet = "1"}, "NCCL_COLLNET_ENABLE=1"));
  EXPECT_TRUE(has({.mnnvl = "0"}, "NCCL_MNNVL_ENABLE=0"));
}

TEST(rank_environment, lets_NCCL_use_the_network_for_reduction_where_that_is_forced) {
  const char* const environment[] = {"NCCL_COLLNET_ENABLE=0", nullptr};
  for (const char* word : {"collnet_direct", "collnet_chain"}) {
    const auto given = rank_environment(environment, {.algorithm = word});
    EXPECT_EQ(std::ranges::count(given, "NCCL_COLLNET_ENABLE=1"), 1) << word;
  }
  EXPECT_EQ(std::ranges::count(rank_environment(environment, {.algorithm = "ring"}), "NCCL_COLLNET_ENABLE=0"), 1);
}

TEST(forced_words, have_a_spelling_each) {
  const char* const empty[] = {nullptr};
  for (const char* word : {"ring", "tree", "nvls", "nvls_tree", "collnet_direct", "collnet_chain", "pat"}) {
    EXPECT_NE(kAlgorithms.find(word), std::string_view::npos);
    EXPECT_NO_THROW((void)rank_environment(empty, {.algorithm = word}));
  }
}

}  // namespace
}  // namespace assay::nccl
