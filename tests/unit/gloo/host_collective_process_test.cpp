// host_collective as processes on this machine's loopback: every operation exact, and every way to end named.
#include <cstdlib>
#include <fstream>
#include <string>

#include <netinet/in.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "probes/collective/operation.h"
#include "probes/core/rendezvous_link.h"
#include "tests/unit/node_processes.h"
#include "tests/unit/paths.h"

namespace assay::gloo {
namespace {

const std::string kHostCollective = probe_file("host_collective");
const std::vector<std::string> kShort = {"--quick", "--path=loopback", "--max-samples=10", "--time-limit=100ms",
                                         "--warmup-limit=20ms"};

Record read(const ProbeOutput& output) { return record_in(kHostCollective, output); }

Record ended(const std::vector<std::string>& more) { return read(run_probe(with({kHostCollective}, more))); }

const Measurement& measured(const Record& record, const std::string& metric, std::int64_t size) {
  for (const auto& one : record.measurements) {
    if (one.metric == metric && one.at == Values{{"size", size}}) return one;
  }
  throw std::runtime_error("no " + metric);
}

std::string node_of(const Record& record) { return std::get<std::string>(record.start.host.at("name")); }

/// Three ranks: no power of two, and shares that do not divide their sizes.
void expect_exact(const std::string& operation, double factor, double moved) {
  const Record record = ended(with(kShort, {"--ranks-per-node=3", "--operation", operation, "--sizes=1000,2500000"}));
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  for (const std::int64_t size : {1000, 2500000})
    EXPECT_EQ(measured(record, "mismatches", size).samples, std::vector<double>{0}) << operation;
  const double time = measured(record, "loopback_time", 1000).samples.at(0);
  EXPECT_DOUBLE_EQ(measured(record, "loopback_algbw", 1000).samples.at(0), moved / time) << operation;
  EXPECT_DOUBLE_EQ(measured(record, "loopback_busbw", 1000).samples.at(0), moved / time * factor) << operation;
  EXPECT_GE(measured(record, "loopback_time", 1000).samples.size(), 10U);
}

// By hand, for 3 ranks and 1000 B: a share of 333 B is cut to 320 B, 960 B in all; nccl-tests' factors are 2 (3 - 1) /
// 3 and (3 - 1) / 3.
TEST(HostCollective, all_reduce_is_exact_and_counted_as_by_hand) { expect_exact("all_reduce", 4.0 / 3, 1000); }
TEST(HostCollective, all_gather_is_exact_and_counted_as_by_hand) { expect_exact("all_gather", 2.0 / 3, 960); }
TEST(HostCollective, reduce_scatter_is_exact_and_counted_as_by_hand) { expect_exact("reduce_scatter", 2.0 / 3, 960); }
TEST(HostCollective, all_to_all_is_exact_and_counted_as_by_hand) { expect_exact("all_to_all", 2.0 / 3, 960); }
TEST(HostCollective, broadcast_is_exact_and_counted_as_by_hand) { expect_exact("broadcast", 1, 1000); }
TEST(HostCollective, scatter_is_exact_and_counted_as_by_hand) { expect_exact("scatter", 2.0 / 3, 960); }
TEST(HostCollective, send_recv_is_exact_and_counted_as_by_hand) { expect_exact("send_recv", 1, 1000); }

TEST(HostCollective, adds_doubles_exactly_too) {
  const Record record =
      ended(with(kShort, {"--ranks-per-node=2", "--operation=reduce_scatter", "--type=fp64", "--sizes=24,3MiB"}));
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(measured(record, "mismatches", 3 << 20).samples, std::vector<double>{0});
}

TEST(HostCollective, records_what_its_connections_really_are) {
  const Record record = ended(with(kShort, {"--ranks-per-node=2", "--sizes=8"}));
  const Subject node{"node", node_of(record)};
  EXPECT_EQ(value_of(record, "path", node), Value(std::string("loopback")));
  EXPECT_EQ(value_of(record, "transport", node), Value(std::string("tcp")));
  EXPECT_EQ(value_of(record, "algorithm", node), Value(std::string("gloo_ring")));
  EXPECT_EQ(value_of(record, "interface", node), Value(std::string("lo")));
  EXPECT_EQ(value_of(record, "address", node), Value(std::string("127.0.0.1")));
  EXPECT_EQ(value_of(record, "ranks", node), Value(std::int64_t{2}));
  EXPECT_NE(std::get<std::string>(value_of(record, "gloo_library", node).value()).find("libgloo.so.0"),
            std::string::npos);
}

std::vector<ProbeOutput> three_nodes(const std::vector<std::string>& more, unsigned stop_s = 0) {
  return run_nodes(kHostCollective, 3, more, stop_s);
}

TEST(HostCollective, of_several_nodes_is_one_group_and_each_node_has_a_whole_record) {
  const auto nodes = three_nodes(with(kShort, {"--ranks-per-node=2", "--sizes=64KiB", "--operation=all_to_all"}));
  for (const auto& output : nodes) ASSERT_EQ(output.exit_code, 0) << output.out;
  const Record first = read(nodes[0]);
  const std::string name = node_of(first);
  EXPECT_EQ(measured(first, "mismatches", 64 << 10).samples, std::vector<double>{0});
  EXPECT_EQ(measured(first, "loopback_busbw", 64 << 10).subject, (Subject{"group", name + "," + name + "," + name}));
  EXPECT_EQ(value_of(first, "ranks", {"node", name}), Value(std::int64_t{6}));
  EXPECT_TRUE(read(nodes[2]).measurements.empty());
  EXPECT_EQ(value_of(read(nodes[2]), "interface", {"node", name}), Value(std::string("lo")));
}

TEST(HostCollective, on_one_machine_is_no_fabric) {
  for (const auto& output : three_nodes({"--quick"})) {
    EXPECT_EQ(output.exit_code, 1);
    const Record record = read(output);
    EXPECT_TRUE(record.measurements.empty());
    EXPECT_NE(record.end.reason.find("ranks 0 and 1 of two nodes run on one machine"), std::string::npos)
        << record.end.reason;
  }
}

TEST(HostCollective, of_a_node_that_stops_ends_everywhere_and_names_its_rank) {
  const auto nodes = three_nodes(
      {"--path=loopback", "--sizes=1MiB", "--min-samples=1000000", "--max-samples=1000000", "--time-limit=10min"}, 2);
  for (const auto& output : nodes) EXPECT_EQ(output.exit_code, 1);
  EXPECT_NE(read(nodes[0]).end.reason.find("rank 1: stopped by a signal"), std::string::npos)
      << read(nodes[0]).end.reason;
  EXPECT_NE(read(nodes[2]).end.reason.find("rank 1: stopped by a signal"), std::string::npos)
      << read(nodes[2]).end.reason;
}

TEST(HostCollective, that_has_no_other_rank_skips_and_says_why) {
  const auto alone = run_probe({kHostCollective, "--quick"});
  EXPECT_EQ(alone.exit_code, 77);
  EXPECT_NE(read(alone).end.reason.find("one rank alone: a collective needs two"), std::string::npos);
  EXPECT_NE(ended({"--ranks-per-node=2"}).end.reason.find("one node alone: that is no network"), std::string::npos);
}

TEST(HostCollective, without_its_library_is_a_skip_that_names_it) {
  char folder[] = "/tmp/assay-no-gloo-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string file = std::string(folder) + "/libgloo.so.0";
  std::ofstream(file) << "no library";
  setenv("LD_LIBRARY_PATH", folder, 1);  // the loader stops at the first file of the name
  const auto output = run_probe({kHostCollective, "--quick", "--path=loopback", "--ranks-per-node=2"});
  unsetenv("LD_LIBRARY_PATH");
  (void)::remove(file.c_str());  // what stays of a test is in /tmp
  (void)::rmdir(folder);
  EXPECT_EQ(output.exit_code, 77);
  EXPECT_NE(read(output).end.reason.find("Gloo is not here: libgloo.so.0 does not open"), std::string::npos)
      << read(output).end.reason;
}

TEST(HostCollective, names_parameters_that_measure_nothing) {
  EXPECT_NE(ended({"--ranks-per-node=0"}).end.reason.find("ranks_per_node: 0 is not from 1 to 64"), std::string::npos);
  EXPECT_NE(ended({"--path=loopback", "--ranks-per-node=2", "--interface=eth99"})
                .end.reason.find("interface: eth99 is no network port here"),
            std::string::npos);
  EXPECT_NE(ended({"--path=loopback", "--ranks-per-node=3", "--operation=scatter", "--sizes=8"})
                .end.reason.find("none of them fits 3 ranks (too_small=8)"),
            std::string::npos);
  EXPECT_EQ(run_probe({kHostCollective, "--type=bf16"}).exit_code, 2);
}

TEST(HostCollectiveRank, of_another_parent_ends_at_once) {
  EXPECT_EQ(run_probe({program_file("host_collective_rank")}).exit_code, 1);
  EXPECT_EQ(
      run_probe({program_file("host_collective_rank"), "1", "0", "2", "all_reduce", "fp32", "127.0.0.1"}).exit_code, 1);
}

}  // namespace
}  // namespace assay::gloo
