// storage_metadata as processes on this machine: rates of every phase, every refusal and wrong answer counted, and
// nothing left behind.
#include <chrono>
#include <thread>

#include "tests/unit/paths.h"
#include "tests/unit/workloads/rank_processes.h"
#include "workloads/storage/metadata/metadata_phase.h"

namespace assay::cluster_storage::storage_metadata_test {
namespace {

namespace fs = std::filesystem;

const std::string kStorageMetadata = probe_file("storage_metadata");
const std::vector<std::string> kPhases = {"create", "stat", "read", "rename", "readdir", "unlink"};
constexpr int kRanks = 3;
const Subject kAll{"group", "all clients"};

constexpr MetadataLayout kLayout{.shared = true, .streams = 2, .files = 3};

/// The listing of kLayout with all files of both streams but those for which `leaves_out` has the name.
ListingCheck listing(const std::set<std::string>& leaves_out, const std::vector<std::string>& more) {
  ListingCheck check(kLayout, 0);
  for (std::uint64_t stream = 0; stream < 2; ++stream) {
    for (std::uint64_t index = 0; index < 3; ++index) {
      const auto name = metadata_file(stream, index, true);
      if (!leaves_out.contains(name)) check.add(name);
    }
  }
  for (const auto& name : more) check.add(name);
  return check;
}

TEST(ListingCheck, names_that_are_missing_twice_or_unknown_are_counted_and_told_apart) {
  EXPECT_EQ(listing({}, {}).errors(), 0U);
  EXPECT_EQ(listing({}, {}).text(), "");
  const std::string first = metadata_file(0, 0, true);
  EXPECT_EQ(listing({first}, {}).text(), "of 6 names 1 are missing, 0 come twice, 0 are not expected");
  EXPECT_EQ(listing({}, {first}).text(), "of 6 names 0 are missing, 1 come twice, 0 are not expected");
  EXPECT_EQ(listing({}, {"made-00000000-00000000"}).text(),
            "of 6 names 0 are missing, 0 come twice, 1 are not expected, the first 'made-00000000-00000000'");
  EXPECT_EQ(listing({}, {metadata_file(2, 0, true), metadata_file(0, 3, true), "moved-0000000x-00000000"}).errors(),
            3U);
}

TEST(MetadataNames, directories_are_shared_by_streams_or_by_none_and_never_by_sets) {
  const MetadataLayout own{.shared = false, .streams = 2, .files = 3};
  EXPECT_EQ(metadata_folder(kLayout, 0, 0), metadata_folder(kLayout, 0, 1));
  EXPECT_NE(metadata_folder(kLayout, 0, 0), metadata_folder(kLayout, 1, 0));
  EXPECT_NE(metadata_folder(own, 0, 0), metadata_folder(own, 0, 1));
}

class storage_metadata : public SharedDirectory {
 protected:
  std::vector<Record> complete(const std::vector<std::string>& more) {
    std::vector<Record> records;
    for (const auto& output : run_ranks(kStorageMetadata, places(), more)) {
      EXPECT_EQ(output.exit_code, 0) << output.out;
      records.push_back(record_in(kStorageMetadata, output));
    }
    return records;
  }
};

TEST_F(storage_metadata, an_honest_storage_has_rates_of_every_phase_and_no_fault_in_either_layout) {
  for (const char* layout : {"--layout=own_directory", "--layout=shared_directory"}) {
    const auto record = complete({layout, "--repetitions=2"})[0];
    for (const auto& phase : kPhases) {
      const Values at = {{"phase", phase}};
      EXPECT_GT(figure_at(record, "rate_slowest", at), 0) << phase;
      EXPECT_GE(figure_at(record, "rate", at), figure_at(record, "rate_slowest", at)) << phase;
      EXPECT_EQ(figure_at(record, "failures", at), 0) << phase;
      EXPECT_EQ(figure_at(record, "wrong_answers", at), 0) << phase;
    }
    for (const char* metric : {"client_rate", "client_share", "latency_p99"})
      EXPECT_EQ(count_of(record, metric), kRanks * kPhases.size()) << metric;
    EXPECT_EQ(left(), std::set<std::string>{});
  }
}

TEST_F(storage_metadata, it_records_what_it_declares_and_the_ranks_have_one_nonce) {
  const auto records = complete({});
  EXPECT_EQ(recorded_in({records[0]}), declared_by(kStorageMetadata));
  EXPECT_EQ(value_of(records[0], "nonce", node_of(records[0])), value_of(records[2], "nonce", node_of(records[2])));
  EXPECT_EQ(value_of(records[0], "files_total", node_of(records[0])), Value(std::int64_t{3} * 2 * 20));
}

TEST_F(storage_metadata, files_that_are_changed_meanwhile_are_wrong_answers_with_who_saw_them) {
  const Vandal vandal(place_.path(), "made-", Damage());
  const auto record = complete({"--files=300", "--repetitions=2"})[0];
  EXPECT_GT(figure_at(record, "wrong_answers", {{"phase", "read"}}), 0);
  ASSERT_FALSE(record.notes.empty());
  EXPECT_NE(record.notes[0].find("its content differs from B 1000 on"), std::string::npos) << record.notes[0];
}

TEST_F(storage_metadata, files_that_vanish_are_failures_of_every_phase_after_and_the_run_goes_on) {
  const Vandal vandal(place_.path(), "made-", [](const fs::path& path) { fs::remove(path); });
  const auto record = complete({"--files=300", "--repetitions=2"})[0];
  EXPECT_EQ(record.end.status, Status::complete);
  for (const char* phase : {"stat", "read", "rename", "unlink"})
    EXPECT_GT(figure_at(record, "failures", {{"phase", phase}}), 0) << phase;
  EXPECT_GT(figure_at(record, "wrong_answers", {{"phase", "readdir"}}), 0);
  EXPECT_EQ(left(), std::set<std::string>{});
}

TEST_F(storage_metadata, what_a_run_leaves_whose_ranks_were_all_killed_is_removed_by_the_next) {
  StartedRanks ranks(kStorageMetadata, places(), {"--files=100000"});
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const auto working = [&] {
    const auto names = left();
    return !names.empty() && fs::exists(place_.path() + "/" + *names.begin() + "/set-0000-stream-00000000");
  };
  while (!working() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  ASSERT_TRUE(working());
  ranks.kill_all();
  EXPECT_EQ(left().size(), 1U);
  const auto record = complete({})[0];
  EXPECT_EQ(value_of(record, "abandoned_removed", node_of(record)), Value(std::int64_t{1}));
  EXPECT_EQ(left(), std::set<std::string>{});
}

TEST_F(storage_metadata, a_rank_that_stops_is_named_on_all_and_its_files_are_gone) {
  const auto ranks = run_ranks(kStorageMetadata, places(), {"--files=100000"}, 1);
  for (const auto& output : ranks) EXPECT_EQ(output.exit_code, 1);
  const auto reason = record_in(kStorageMetadata, ranks[0]).end.reason;
  EXPECT_NE(reason.find("rank 1: stopped by a signal"), std::string::npos) << reason;
  EXPECT_EQ(left(), std::set<std::string>{});
}

TEST_F(storage_metadata, too_little_room_is_a_skip_that_says_how_much_is_needed) {
  for (const auto& output :
       run_ranks(kStorageMetadata, places(), {"--files=1000000", "--size=1MiB", "--threads=256"})) {
    EXPECT_EQ(output.exit_code, 77);
    const auto reason = record_in(kStorageMetadata, output).end.reason;
    EXPECT_NE(reason.find("885837004800000 B are needed"), std::string::npos) << reason;
  }
}

TEST(StorageMetadata, parameters_out_of_range_are_errors_that_name_them) {
  const auto reason = [](const std::string& word) {
    return record_in(kStorageMetadata, run_probe({kStorageMetadata, "--quick", word})).end.reason;
  };
  EXPECT_NE(reason("--files=0").find("files: 0 is not from 1 to 1000000"), std::string::npos);
  EXPECT_NE(reason("--threads=257").find("threads: 257 is not from 1 to 256"), std::string::npos);
  EXPECT_NE(reason("--size=2MiB").find("size: 2097152 B are more than 1 MiB"), std::string::npos);
  EXPECT_NE(reason("--shift=2").find("shift: 2 of 2 ranks lets each read its own files"), std::string::npos);
  EXPECT_NE(reason("--files=1").find("one rank alone"), std::string::npos);
}

}  // namespace
}  // namespace assay::cluster_storage::storage_metadata_test
