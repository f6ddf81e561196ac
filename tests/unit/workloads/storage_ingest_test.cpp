// storage_ingest as processes on this machine: accelerators that are fed and that starve, every sample verified, and
// nothing left behind.
#include <chrono>
#include <thread>

#include "tests/unit/paths.h"
#include "tests/unit/workloads/rank_processes.h"

namespace assay::cluster_storage::storage_ingest_test {
namespace {

namespace fs = std::filesystem;

const std::string kStorageIngest = probe_file("storage_ingest");
constexpr int kRanks = 3;

class storage_ingest : public SharedDirectory {
 protected:
  std::vector<Record> complete(const std::vector<std::string>& more) {
    std::vector<Record> records;
    for (const auto& output : run_ranks(kStorageIngest, places(), more)) {
      EXPECT_EQ(output.exit_code, 0) << output.out;
      records.push_back(record_in(kStorageIngest, output));
    }
    return records;
  }
};

TEST_F(storage_ingest, both_models_are_exact_and_leave_nothing) {
  for (const char* model : {"--model=unet3d", "--model=retinanet"}) {
    const auto record = complete({model, "--repetitions=2"})[0];
    EXPECT_EQ(figure_at(record, "mismatches", {}), 0);
    EXPECT_GT(figure_at(record, "samples_rate", {}), 0);
    EXPECT_GT(figure_at(record, "accelerator_utilisation", {}), 0);
    EXPECT_LE(figure_at(record, "accelerator_utilisation", {}), 1);
    EXPECT_EQ(count_of(record, "client_utilisation"), static_cast<std::size_t>(kRanks));
    EXPECT_EQ(left(), std::set<std::string>{});
  }
}

TEST_F(storage_ingest, it_records_what_it_declares_and_no_rung_above_2_on_one_machine) {
  const auto records = complete({"--server-memory=1MiB"});
  EXPECT_EQ(recorded_in({records[0]}), declared_by(kStorageIngest));
  EXPECT_LE(std::get<std::int64_t>(value_of(records[2], "cold_rung", node_of(records[2])).value()), 2);
  EXPECT_EQ(value_of(records[0], "accelerators_total", node_of(records[0])), Value(std::int64_t{kRanks} * 2));
}

TEST_F(storage_ingest, the_utilisation_is_that_of_the_worst_client_and_all_samples_count) {
  const auto record = complete({"--compute=1ms", "--record=1MiB"})[0];
  double least = 1;
  for (const auto& one : record.measurements) {
    if (one.metric == "client_utilisation") least = std::min(least, one.samples.at(0));
  }
  EXPECT_EQ(figure_at(record, "accelerator_utilisation", {}), least);
  EXPECT_LT(least, 1);
  EXPECT_GT(figure_at(record, "starved_steps", {}), 0);
}

TEST_F(storage_ingest, samples_that_are_damaged_after_they_were_written_are_mismatches_with_their_reader) {
  const Vandal vandal(place_.path(), "set-0000-rank-000001-", Damage());
  const auto record = complete({"--compute=50ms"})[0];
  EXPECT_GT(figure_at(record, "mismatches", {}), 0);
  ASSERT_FALSE(record.notes.empty());
  EXPECT_NE(record.notes[0].find("#2 read "), std::string::npos) << record.notes[0];
  EXPECT_NE(record.notes[0].find("set-0000-rank-000001-sample-"), std::string::npos) << record.notes[0];
}

TEST_F(storage_ingest, what_a_run_leaves_whose_ranks_were_all_killed_is_removed_by_the_next) {
  StartedRanks ranks(kStorageIngest, places(), {"--compute=10s"});
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const auto working = [&] {
    const auto names = left();
    return !names.empty() && fs::exists(place_.path() + "/" + *names.begin() + "/set-0000-rank-000000-sample-00000000");
  };
  while (!working() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  ASSERT_TRUE(working());
  ranks.kill_all();
  EXPECT_EQ(left().size(), 1U);
  const auto record = complete({})[0];
  EXPECT_EQ(value_of(record, "abandoned_removed", node_of(record)), Value(std::int64_t{1}));
  EXPECT_EQ(left(), std::set<std::string>{});
}

TEST_F(storage_ingest, samples_that_vanish_end_the_run_on_all_ranks_with_the_path) {
  const Vandal vandal(place_.path(), "-sample-00000003", [](const fs::path& path) { fs::remove(path); });
  const auto ranks = run_ranks(kStorageIngest, places(), {});
  for (const auto& output : ranks) EXPECT_EQ(output.exit_code, 1);
  const auto reason = record_in(kStorageIngest, ranks[0]).end.reason;
  EXPECT_NE(reason.find("-sample-00000003"), std::string::npos) << reason;
  EXPECT_EQ(left(), std::set<std::string>{});
}

TEST(StorageIngest, parameters_out_of_range_are_errors_that_name_them) {
  const auto reason = [](const std::string& word) {
    return record_in(kStorageIngest, run_probe({kStorageIngest, "--quick", word})).end.reason;
  };
  EXPECT_NE(reason("--steps=1").find("steps: of 1 step nothing is left"), std::string::npos);
  EXPECT_NE(reason("--record=1KiB").find("record: 1024 B is neither 0 nor from 4 KiB"), std::string::npos);
  EXPECT_NE(reason("--compute=2min").find("compute: 120 s is more than a minute"), std::string::npos);
  EXPECT_NE(reason("--batch=100001").find("batch: 100001 is not from 0 to 100000"), std::string::npos);
  EXPECT_NE(reason("--accelerators=65").find("accelerators: 65 is not from 1 to 64"), std::string::npos);
  EXPECT_NE(reason("--shift=2").find("shift: 2 of 2 ranks"), std::string::npos);
  EXPECT_NE(reason("--steps=2").find("one rank alone"), std::string::npos);
}

}  // namespace
}  // namespace assay::cluster_storage::storage_ingest_test
