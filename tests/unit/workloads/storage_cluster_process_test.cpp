// storage_cluster as processes on this machine: every pattern exact, every fault named, and nothing left behind.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/paths.h"
#include "tests/unit/workloads/rank_processes.h"
#include "workloads/storage/shared/run_folder.h"

namespace assay::cluster_storage::storage_cluster_process_test {
namespace {

namespace fs = std::filesystem;

const std::string kStorageCluster = probe_file("storage_cluster");
constexpr int kRanks = 3;
const Subject kAll{"group", "all clients"};

/// `words`, and those of a short rehearsal whose flags they do not have.
std::vector<std::string> short_run(std::vector<std::string> words) {
  for (const std::string_view flag : {"--clients=processes", "--duration=300ms", "--size=8MiB", "--block=64KiB"}) {
    const auto name = flag.substr(0, flag.find('=') + 1);
    if (std::ranges::none_of(words, [&](const std::string& word) { return word.starts_with(name); }))
      words.emplace_back(flag);
  }
  return words;
}

/// Three ranks in `directory`, by rank; rank 1 is told to stop after `stop_s`, and looks at `other` where that is
/// given.
std::vector<ProbeOutput> three_ranks(const std::string& directory, const std::vector<std::string>& more,
                                     unsigned stop_s = 0, const std::string& other = "") {
  return run_ranks(kStorageCluster, {directory, other.empty() ? directory : other, directory}, short_run(more), stop_s);
}

Record read(const ProbeOutput& output) { return record_in(kStorageCluster, output); }

double figure(const Record& record, const std::string& metric, const std::string& phase) {
  return figure_at(record, metric, {{"phase", phase}});
}

class storage_cluster : public SharedDirectory {
 protected:
  /// Rank 0's record of a run that must have ended well on every rank.
  Record complete(const std::vector<std::string>& more) {
    const auto ranks = three_ranks(place_.path(), more);
    for (const auto& output : ranks) EXPECT_EQ(output.exit_code, 0) << output.out;
    return read(ranks[0]);
  }
};

TEST_F(storage_cluster, every_operation_and_pattern_is_exact_and_leaves_nothing) {
  for (const std::string operation : {"write_read", "mixed", "interference"}) {
    for (const std::string pattern : {"own_file", "shared_file"}) {
      for (const std::string block : {"64KiB", "47008"}) {
        const auto record =
            complete({"--operation=" + operation, "--pattern=" + pattern, "--block=" + block, "--repetitions=2"});
        EXPECT_EQ(samples_of(record, "mismatches", kAll), std::vector<double>{0}) << operation << pattern << block;
        EXPECT_EQ(left(), std::set<std::string>{});
      }
    }
  }
}

TEST_F(storage_cluster, its_operations_record_every_metric_and_condition_that_it_declares) {
  std::vector<Record> records;
  for (const auto& words : {std::vector<std::string>{"--block=47008", "--server-memory=1MiB"},
                            std::vector<std::string>{"--operation=interference"}})
    records.push_back(complete(words));
  EXPECT_EQ(recorded_in(records), declared_by(kStorageCluster));
}

/// Transfers of all ranks in `phase`: bandwidth times the longest time, over the size of one.
double transfers(const Record& record, const std::string& phase) {
  double longest_s = 0;
  for (const auto& one : record.measurements) {
    if (one.metric == "client_time" && one.at == Values{{"phase", phase}})
      longest_s = std::max(longest_s, one.samples.at(0));
  }
  return figure(record, "bandwidth", phase) * longest_s / (64 << 10);
}

TEST_F(storage_cluster, every_stream_goes_on_until_it_has_done_as_much_as_the_furthest) {
  constexpr double kStreams = 2.0 * kRanks;
  const auto by_size = complete({"--duration=10min"});
  EXPECT_EQ(value_of(by_size, "ended_by", node_of(by_size)), Value(std::string("size")));
  for (const char* phase : {"write", "read"}) EXPECT_NEAR(transfers(by_size, phase), kRanks * 8.0 * 1024 / 64, 1e-6);
  const auto by_time = complete({"--duration=100ms", "--size=2GiB"});
  EXPECT_EQ(value_of(by_time, "ended_by", node_of(by_time)), Value(std::string("duration")));
  const double of_each = transfers(by_time, "write") / kStreams;
  EXPECT_GE(of_each, 1);
  EXPECT_NEAR(of_each, std::round(of_each), 1e-6);
  EXPECT_NEAR(transfers(by_time, "read") / kStreams, of_each, 1e-6);
}

TEST_F(storage_cluster, every_client_has_figures_of_its_own) {
  const auto record = complete({"--repetitions=2"});
  for (const char* metric : {"client_bandwidth", "client_share", "client_time", "latency_p99"}) {
    EXPECT_EQ(count_of(record, metric), 2U * kRanks) << metric;
    EXPECT_GT(sum_of(record, metric), 0) << metric;
  }
  for (const char* phase : {"write", "read"}) {
    EXPECT_LE(figure(record, "skew", phase), 1);
    EXPECT_GE(figure(record, "fairness", phase), 1.0 / kRanks);
  }
}

TEST_F(storage_cluster, says_how_it_transfers_and_how_cold_its_reads_were) {
  const auto ranks = three_ranks(place_.path(), {"--block=47008"});
  const auto record = read(ranks[2]);
  const auto node = node_of(record);
  EXPECT_EQ(value_of(record, "direct_io", node), Value(false));
  EXPECT_EQ(value_of(record, "buffered_because", node),
            Value(std::string("transfers of 47008 B are no multiple of 4096 B")));
  EXPECT_EQ(value_of(record, "read_by_other_node", node), Value(false));
  EXPECT_LE(std::get<std::int64_t>(value_of(record, "cold_rung", node).value()), 2);
  EXPECT_TRUE(value_of(record, "mount_options", node).has_value());
  EXPECT_TRUE(record.measurements.empty());
}

TEST_F(storage_cluster, and_checkpoint_say_of_which_class_the_device_is) {
  if (!filesystem_facts(".").unfit.empty()) GTEST_SKIP() << filesystem_facts(".").unfit;
  const auto facts = filesystem_facts(place_.path());
  const auto alone = record_of(probe_file("checkpoint"), {"--quick", "--directory=" + place_.path(), "--size=8MiB",
                                                          "--queue-depth=1", "--repetitions=1"});
  EXPECT_EQ(alone.end.status, Status::complete) << alone.end.reason;
  for (const Record& record : {complete({}), alone}) {
    EXPECT_EQ(value_of(record, "filesystem", node_of(record)), Value(facts.type));
    EXPECT_EQ(value_of(record, "device_class", node_of(record)),
              facts.device_class.empty() ? std::nullopt : std::optional<Value>(facts.device_class));
    EXPECT_EQ(value_of(record, "emulated_drive", node_of(record)),
              facts.device_class.empty() ? std::nullopt : std::optional<Value>(facts.emulated));
  }
}

TEST_F(storage_cluster, two_runs_have_two_nonces_and_the_ranks_of_one_have_one) {
  std::set<std::string> nonces;
  for (int run = 0; run < 2; ++run) {
    std::set<std::string> of_run;
    for (const auto& output : three_ranks(place_.path(), {})) {
      const auto record = read(output);
      of_run.insert(std::get<std::string>(value_of(record, "nonce", node_of(record)).value()));
    }
    EXPECT_EQ(of_run.size(), 1U);
    nonces.merge(of_run);
  }
  EXPECT_EQ(nonces.size(), 2U);
}

TEST_F(storage_cluster, data_that_are_damaged_after_they_were_written_are_mismatches_with_their_reader) {
  const Vandal vandal(place_.path(), "set-", Damage());
  const auto ranks = three_ranks(place_.path(), {"--repetitions=2"});
  const auto record = read(ranks[0]);
  EXPECT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_GT(samples_of(record, "mismatches", kAll).at(0), 0);
  ASSERT_FALSE(record.notes.empty());
  EXPECT_NE(record.notes[0].find("wrong B; the first: 1 of 65536 B at 0 of "), std::string::npos) << record.notes[0];
}

TEST_F(storage_cluster, a_rank_that_stops_is_named_on_all_and_the_folder_is_gone) {
  const auto ranks = three_ranks(
      place_.path(),
      {"--duration=10min", "--size=200MiB", "--block=4KiB", "--depth=1", "--threads=1", "--repetitions=100"}, 1);
  for (const auto& output : ranks) EXPECT_EQ(output.exit_code, 1);
  EXPECT_NE(read(ranks[0]).end.reason.find("rank 1: stopped by a signal"), std::string::npos)
      << read(ranks[0]).end.reason;
  EXPECT_EQ(left(), std::set<std::string>{});
}

TEST_F(storage_cluster, removes_what_a_killed_run_left_and_says_so) {
  FolderOwner ended = this_process();
  ended.started = "1";
  const std::string old = place_.path() + "/assay-storage-00000000000000aa";
  fs::create_directory(old);
  const int mark = open((old + "/owner").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const std::string text = owner_text(ended);
  ASSERT_EQ(write(mark, text.data(), text.size()), std::ssize(text));
  close(mark);
  const auto record = complete({});
  EXPECT_EQ(value_of(record, "abandoned_removed", node_of(record)), Value(std::int64_t{1}));
  EXPECT_EQ(left(), std::set<std::string>{});
}

TEST_F(storage_cluster, too_little_space_is_a_skip_that_says_how_much_is_needed) {
  for (const auto& output : three_ranks(place_.path(), {"--size=1000TiB"})) {
    EXPECT_EQ(output.exit_code, 77);
    const auto record = read(output);
    EXPECT_NE(record.end.reason.find("3628388371660800 B are needed; give a smaller size"), std::string::npos)
        << record.end.reason;
  }
}

TEST_F(storage_cluster, ranks_of_one_machine_are_no_clients_of_a_cluster) {
  for (const auto& output : three_ranks(place_.path(), {"--clients=nodes"})) {
    EXPECT_EQ(output.exit_code, 1);
    EXPECT_NE(read(output).end.reason.find("ranks 0 and 1 run on one machine"), std::string::npos)
        << read(output).end.reason;
  }
}

TEST_F(storage_cluster, a_directory_that_is_not_the_same_everywhere_is_an_error_that_says_so) {
  const ScratchDirectory elsewhere(".");
  const auto ranks = three_ranks(place_.path(), {}, 0, elsewhere.path());
  EXPECT_EQ(ranks[0].exit_code, 1);
  EXPECT_NE(read(ranks[0]).end.reason.find("it is not one file system on all nodes"), std::string::npos)
      << read(ranks[0]).end.reason;
  EXPECT_EQ(left(), std::set<std::string>{});
}

TEST(StorageCluster, memory_is_no_storage) {
  if (!fs::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm";
  for (const auto& output : three_ranks("/dev/shm", {})) {
    EXPECT_EQ(output.exit_code, 77);
    EXPECT_NE(read(output).end.reason.find("tmpfs is memory, not storage"), std::string::npos)
        << read(output).end.reason;
  }
}

TEST(StorageCluster, parameters_out_of_range_are_errors_that_name_them) {
  const auto reason = [](const std::vector<std::string>& words) {
    auto all = std::vector<std::string>{kStorageCluster, "--quick"};
    all.insert(all.end(), words.begin(), words.end());
    return read(run_probe(all)).end.reason;
  };
  EXPECT_NE(reason({"--block=100"}).find("block: 100 B is not a multiple of 8 B from 512 B"), std::string::npos);
  EXPECT_NE(reason({"--threads=0"}).find("threads: 0 is not from 1 to 256"), std::string::npos);
  EXPECT_NE(reason({"--size=1MiB"}).find("size: 1048576 B are less than two transfers"), std::string::npos);
  EXPECT_NE(reason({"--duration=1ms"}).find("duration: 0.001 s is not from 100 ms"), std::string::npos);
  EXPECT_NE(reason({"--shift=2"}).find("shift: 2 of 2 ranks lets each read its own files"), std::string::npos);
  EXPECT_NE(reason({"--operation=interference", "--victims=2"}).find("victims: 2 of 2 ranks leave none"),
            std::string::npos);
  EXPECT_NE(reason({}).find("one rank alone"), std::string::npos);
}

}  // namespace
}  // namespace assay::cluster_storage::storage_cluster_process_test
