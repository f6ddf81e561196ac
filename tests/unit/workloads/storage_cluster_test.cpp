// The arithmetic of storage_cluster: where transfers lie, what had moved at the stonewall, how even, how cold, and
// which folder is abandoned.
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "probes/core/filesystem_facts.h"
#include "workloads/storage/cluster/block_stream.h"
#include "workloads/storage/cluster/storage_phase.h"
#include "workloads/storage/shared/cold_read.h"
#include "workloads/storage/shared/run_folder.h"
#include "workloads/storage/shared/stonewall.h"

namespace assay::cluster_storage {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr BlockLayout kHard{.shared = true, .block = 47008, .streams = 3};

TEST(BlockLayout, in_a_shared_file_no_two_transfers_overlap_and_none_is_left_out) {
  std::set<std::uint64_t> offsets;
  for (std::uint64_t stream = 0; stream < 3; ++stream) {
    for (std::uint64_t index = 0; index < 5; ++index) offsets.insert(block_offset(kHard, stream, index));
  }
  EXPECT_EQ(offsets.size(), 15U);
  EXPECT_EQ(*offsets.rbegin(), 14U * 47008);
  for (const auto offset : offsets) EXPECT_EQ(offset % 47008, 0U);
}

TEST(BlockLayout, files_are_shared_by_streams_or_by_none_and_never_by_sets) {
  const BlockLayout own{.shared = false, .block = 4096, .streams = 3};
  EXPECT_EQ(block_file(kHard, 1, 0), block_file(kHard, 1, 2));
  EXPECT_NE(block_file(kHard, 1, 0), block_file(kHard, 2, 0));
  EXPECT_NE(block_file(own, 1, 0), block_file(own, 1, 2));
  EXPECT_NE(block_file(own, 1, 0), block_file(own, 2, 0));
}

TEST(BlockLayout, a_mixed_stream_reads_and_writes_each_transfer_once) {
  std::uint64_t reads = 0, writes = 0;
  for (std::uint64_t index = 0; index < 1000; ++index) {
    const auto turn = mixed_operation(index, 0.7);
    EXPECT_EQ(turn.number, turn.reads ? reads : writes) << index;
    ++(turn.reads ? reads : writes);
  }
  EXPECT_NEAR(static_cast<double>(reads), 700, 1);
}

TEST(BlockLayout, a_mixed_stream_ends_before_it_has_nothing_to_read_or_no_room) {
  // By hand: of ten operations at a half, five are reads.
  EXPECT_EQ(mixed_operations(5, 100, 0.5), 11U);  // the eleventh is a write
  EXPECT_EQ(mixed_operations(100, 5, 0.5), 10U);  // the eleventh would be the sixth write
  EXPECT_EQ(mixed_operations(0, 0, 0.5), 0U);
}

TEST(Progress, of_a_moment_within_a_slot_is_the_share_of_it) {
  Progress progress;
  progress.add({0.001}, 1000);
  progress.add({0.011}, 500);
  EXPECT_DOUBLE_EQ(progress.bytes_by({0.0025}), 500);
  EXPECT_DOUBLE_EQ(progress.bytes_by({0.010}), 1000);
  EXPECT_DOUBLE_EQ(progress.bytes_by({0.0125}), 1250);
  EXPECT_DOUBLE_EQ(progress.bytes_by({60}), 1500);
  EXPECT_EQ(progress.total(), 1500U);
}

TEST(Stonewall, is_the_time_given_unless_a_client_had_nothing_more_to_do) {
  const Standing busy{.end_s = 30.2, .out_of_work = false}, early{.end_s = 12, .out_of_work = true};
  EXPECT_EQ(stonewall_of(std::vector{busy, busy}, 30), 30);
  EXPECT_EQ(stonewall_of(std::vector{busy, early}, 30), 12);
  EXPECT_EQ(stonewall_of(std::vector{early, Standing{.end_s = 14, .out_of_work = true}}, std::nullopt), 12);
  EXPECT_EQ(stonewall_of(std::vector<Standing>{}, 30), std::nullopt);
}

TEST(Evenness, is_as_by_hand) {
  const std::vector<double> even{5, 5, 5, 5}, one{8, 0, 0, 0}, slow{10, 10, 10, 2};
  EXPECT_DOUBLE_EQ(jain_index(even).value(), 1);
  EXPECT_DOUBLE_EQ(jain_index(one).value(), 0.25);
  EXPECT_DOUBLE_EQ(jain_index(slow).value(), 1024.0 / (4 * 304));
  EXPECT_DOUBLE_EQ(smallest_share(slow).value(), 0.2);
  EXPECT_EQ(shares_of_median(slow).value(), (std::vector<double>{1, 1, 1, 0.2}));
}

TEST(Evenness, of_nothing_is_no_number) {
  const std::vector<double> none, zeros{0, 0};
  for (const auto* values : {&none, &zeros}) {
    EXPECT_FALSE(jain_index(*values));
    EXPECT_FALSE(smallest_share(*values));
    EXPECT_FALSE(shares_of_median(*values));
  }
}

TEST(TimeClasses, a_quantile_is_never_below_and_at_most_1_6_percent_above) {
  TimeClasses classes;
  for (int i = 1; i <= 1000; ++i) classes.add(i * 1e-5);
  const double p99 = classes.quantile(0.99).value();
  EXPECT_GE(p99, 990e-5 * 0.9999);
  EXPECT_LE(p99, 990e-5 * 1.016);
  EXPECT_EQ(classes.count(), 1000U);
  EXPECT_FALSE(TimeClasses().quantile(0.5));
}

TEST(ColdRung, is_what_the_evidence_proves) {
  EXPECT_EQ(cold_rung({}), 0);
  EXPECT_EQ(cold_rung({.resident_pages = 0}), 1);
  EXPECT_EQ(cold_rung({.resident_pages = 0, .wire_share = 1.01}), 2);
  EXPECT_EQ(cold_rung({.resident_pages = 0, .wire_share = 0.7}), 1);
  EXPECT_EQ(cold_rung({.resident_pages = 0, .wire_share = 1.01, .other_node = true}), 3);
  EXPECT_EQ(cold_rung({.resident_pages = 0, .wire_share = {}, .other_node = true, .set_over_server_memory = 1.2}), 4);
  EXPECT_EQ(cold_rung({.resident_pages = 0, .wire_share = {}, .other_node = true, .set_over_server_memory = 0.9}), 3);
}

TEST(ColdRung, of_a_page_in_the_cache_is_0_whatever_else_holds) {
  EXPECT_EQ(cold_rung({.resident_pages = 1, .wire_share = 2, .other_node = true, .set_over_server_memory = 9}), 0);
}

TEST(WireBytes, are_of_hardware_ports_and_rdma_ports_in_words) {
  const ScratchDirectory sys(".");
  const auto file = [&](const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(sys.path() + "/" + path).parent_path());
    std::ofstream(sys.path() + "/" + path) << text << '\n';
  };
  EXPECT_FALSE(wire_bytes_received(sys.path()));
  file("class/net/lo/statistics/rx_bytes", "1000000");
  file("class/net/br0/statistics/rx_bytes", "500");
  EXPECT_EQ(wire_bytes_received(sys.path()), 500U);
  file("class/net/eth0/statistics/rx_bytes", "7");
  file("class/net/eth0/device/vendor", "0x15b3");
  EXPECT_EQ(wire_bytes_received(sys.path()), 7U);
  file("class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "100");
  EXPECT_EQ(wire_bytes_received(sys.path()), 407U);
}

constexpr const char* kMountStats =
    "device rootfs mounted on / with fstype rootfs\n"
    "device 10.0.0.1:/export mounted on /mnt/a with fstype nfs4 statvers=1.1\n"
    "\topts:\trw,vers=4.1\n"
    "\tbytes:\t1 2 3 4 5000 6 7 8\n"
    "device 10.0.0.1:/with\\040blank mounted on /mnt/a\\040b with fstype nfs statvers=1.1\n"
    "\tbytes:\t1 2 3 4 77 6 7 8\n"
    "device tmpfs mounted on /mnt/a/inner with fstype tmpfs\n";

TEST(NfsBytes, are_those_of_the_mount_that_holds_the_directory) {
  EXPECT_EQ(nfs_bytes_read(kMountStats, "/mnt/a"), 5000U);
  EXPECT_EQ(nfs_bytes_read(kMountStats, "/mnt/a/run/deeper"), 5000U);
  EXPECT_EQ(nfs_bytes_read(kMountStats, "/mnt/a b/run"), 77U);
}

TEST(NfsRpc, the_work_of_all_connections_of_the_mount_is_added_up) {
  const std::string mounted = std::string(kMountStats) +
                              "device s:/e mounted on /mnt/c with fstype nfs4 statvers=1.1\n"
                              "\txprt:\ttcp 875 1 7 0 0 100 99 1 5000 40 128 1776 35298\n"
                              "\txprt:\ttcp 876 1 7 0 0 10 9 1 50 2 16 17 35\n"
                              "\txprt:\trdma 0 0 1 0 24 3 3 0 3 0 0\n";
  const auto work = nfs_rpc_work(mounted, "/mnt/c/run");
  ASSERT_TRUE(work);
  EXPECT_EQ(work->sends, 110U);
  EXPECT_EQ(work->backlog, 42U);
  EXPECT_EQ(work->slots, 144U);
  EXPECT_FALSE(nfs_rpc_work(mounted, "/mnt/a"));  // no transport is listed
  EXPECT_FALSE(
      nfs_rpc_work("device s:/e mounted on /m with fstype nfs\n\txprt:\ttcp 875 1 7 0 0 100 99 1 5000 40\n", "/m"));
}

TEST(NfsBytes, are_not_told_of_another_file_system) {
  EXPECT_EQ(nfs_bytes_read(kMountStats, "/mnt/ab"), std::nullopt);
  EXPECT_EQ(nfs_bytes_read(kMountStats, "/mnt/a/inner/run"), std::nullopt);
  EXPECT_EQ(nfs_bytes_read("", "/mnt/a"), std::nullopt);
  EXPECT_EQ(nfs_bytes_read("device s:/e mounted on /m with fstype nfs\n\tbytes:\t1 2 3\n", "/m"), std::nullopt);
}

TEST(NfsBytes, of_two_mounts_at_one_place_are_those_of_the_last) {
  const std::string over = std::string(kMountStats) +
                           "device 10.0.0.2:/other mounted on /mnt/a with fstype nfs4\n"
                           "\tbytes:\t1 2 3 4 9 6 7 8\n";
  EXPECT_EQ(nfs_bytes_read(over, "/mnt/a"), 9U);
}

TEST(Preloaded, tells_the_list_of_the_loader) {
  const ScratchDirectory folder(".");
  std::ofstream(folder.path() + "/list") << "/usr/lib/libeatmydata.so\n";
  EXPECT_NE(preloaded(folder.path() + "/list").find("libeatmydata.so"), std::string::npos);
}

TEST(RunFolder, an_owner_is_read_as_it_was_written) {
  const FolderOwner self = this_process();
  EXPECT_EQ(owner_in(owner_text(self)), self);
  EXPECT_FALSE(owner_in("what is this"));
}

TEST(RunFolder, of_a_live_process_or_of_another_machine_is_left_until_every_run_has_been_killed) {
  const FolderOwner self = this_process();
  FolderOwner elsewhere = self, ended = self, other_processes = self;
  elsewhere.boot = "another";
  elsewhere.started = ended.started = "1";
  other_processes.processes = "pid:[1]";
  other_processes.started = "1";
  EXPECT_FALSE(is_abandoned(self, self, {60}));
  EXPECT_FALSE(is_abandoned(elsewhere, self, {60}));
  EXPECT_FALSE(is_abandoned(other_processes, self, {60}));
  EXPECT_FALSE(is_abandoned(std::nullopt, self, {60}));
  EXPECT_TRUE(is_abandoned(ended, self, {60}));
  EXPECT_TRUE(is_abandoned(elsewhere, self, {kAbandonedAfter.count + 1}));
  EXPECT_TRUE(is_abandoned(std::nullopt, self, {kAbandonedAfter.count + 1}));
}

TEST(RunFolder, only_abandoned_folders_of_runs_are_removed) {
  const ScratchDirectory place(".");
  FolderOwner ended = this_process();
  ended.started = "1";
  const auto make = [&](const std::string& name, const FolderOwner& owner) {
    fs::create_directory(place.path() + "/" + name);
    std::ofstream(place.path() + "/" + name + "/owner") << owner_text(owner) << '\n';
    std::ofstream(place.path() + "/" + name + "/set-0000-stream-000000") << "data";
  };
  make("assay-storage-0000000000000001", ended);
  make("assay-storage-0000000000000002", this_process());
  make("assay-storage-2024", ended);
  make("other", ended);
  fs::create_directory_symlink(place.path() + "/other", place.path() + "/assay-storage-0000000000000003");
  EXPECT_EQ(remove_abandoned(place.path()), 1);
  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(place.path())) left.insert(entry.path().filename());
  EXPECT_EQ(left, (std::set<std::string>{"assay-storage-0000000000000002", "assay-storage-0000000000000003",
                                         "assay-storage-2024", "other"}));
  EXPECT_TRUE(fs::exists(place.path() + "/other/owner"));
}

/// A stream over one file, buffered.
class block_stream : public testing::Test {
 protected:
  static constexpr std::size_t kBlock = 47008;
  std::uint64_t run(const BlockFile& file, bool reads, std::uint64_t limit, StreamTaken& taken, std::uint64_t nonce) {
    return stream_.run({.operation =
                            [&](std::uint64_t index) {
                              return BlockOperation{.file = &file,
                                                    .reads = reads,
                                                    .offset = index * kBlock,
                                                    .key = {.rank = 1, .step = 2, .nonce = nonce},
                                                    .payload_offset = index * kBlock};
                            },
                        .first = 0,
                        .limit = limit},
                       Clock::now(), taken);
  }
  void write(std::uint64_t blocks) {
    const auto file = open_block_file(path_, O_WRONLY | O_CREAT);
    StreamTaken taken;
    EXPECT_EQ(run(file, false, blocks, taken, 5), blocks);
    EXPECT_EQ(taken.moved.total(), blocks * kBlock);
    stream_.sync(file);
  }
  StreamTaken read(std::uint64_t blocks, std::uint64_t nonce = 5) {
    StreamTaken taken;
    EXPECT_EQ(run(open_block_file(path_, O_RDONLY), true, blocks, taken, nonce), blocks);
    return taken;
  }
  void SetUp() override { demand_io_uring(); }

  ScratchDirectory folder_{"."};
  std::string path_ = folder_.path() + "/file";
  BlockStream stream_{{.block = kBlock, .depth = 4, .direct = false, .deadline = {60}}};
};

TEST_F(block_stream, reads_back_what_it_wrote) {
  write(20);
  const auto taken = read(20);
  EXPECT_EQ(taken.mismatches, 0U);
  EXPECT_EQ(taken.latency.count(), 20U);
  EXPECT_EQ(fs::file_size(path_), 20 * kBlock);
}

TEST_F(block_stream, a_changed_byte_is_a_mismatch_with_its_place) {
  write(20);
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(7 * kBlock + 100);
  const auto byte = static_cast<char>(file.get() ^ 1);
  file.seekp(7 * kBlock + 100);
  file.put(byte);
  file.close();
  const auto taken = read(20);
  EXPECT_EQ(taken.mismatches, 1U);
  EXPECT_EQ(taken.first_wrong, "1 of 47008 B at 329056 of " + path_);
}

TEST_F(block_stream, what_is_cut_off_is_mismatches_and_no_error) {
  write(20);
  fs::resize_file(path_, 18 * kBlock + 8);
  EXPECT_EQ(read(20).mismatches, 2 * kBlock - 8);
}

TEST_F(block_stream, data_of_another_run_are_mismatches) {
  write(4);
  EXPECT_GT(read(4, 6).mismatches, 4 * kBlock * 9 / 10);
}

TEST_F(block_stream, begins_nothing_after_its_time) {
  const auto file = open_block_file(path_, O_WRONLY | O_CREAT);
  StreamTaken taken;
  const StreamWork late{.operation = [](std::uint64_t) { return BlockOperation{}; },
                        .first = 3,
                        .limit = 20,
                        .until = Clock::now() - std::chrono::seconds(1)};
  EXPECT_EQ(stream_.run(late, Clock::now(), taken), 3U);
  EXPECT_EQ(taken.moved.total(), 0U);
}

}  // namespace
}  // namespace assay::cluster_storage
