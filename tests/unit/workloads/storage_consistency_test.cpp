// storage_consistency on an honest storage, and on one that lies in each way: every lie found, in its class and by
// name.
#include <algorithm>
#include <string>

#include "tests/unit/paths.h"
#include "tests/unit/workloads/lying_mounts.h"
#include "tests/unit/workloads/rank_processes.h"

namespace assay::cluster_storage {
namespace {

const std::string kStorageConsistency = probe_file("storage_consistency");
const std::vector<std::string> kCases = {"new_file",        "overwrite", "held_open", "size",   "append",
                                         "append_together", "exclusive", "rename",    "unlink", "listing"};
const std::vector<std::string> kFaults = {"stale_reads", "wrong_reads", "false_successes", "failures"};

double faults(const Record& record) {
  double sum = 0;
  for (const auto& metric : kFaults) sum += sum_of(record, metric);
  return sum;
}

std::string notes_of(const Record& record) {
  std::string all;
  for (const auto& note : record.notes) all += note + "\n";
  return all;
}

/// Rank 0's record of a run that ended well on every rank.
Record complete(const std::vector<std::string>& directories, const std::vector<std::string>& more) {
  const auto ranks = run_ranks(kStorageConsistency, directories, more);
  for (const auto& output : ranks) EXPECT_EQ(output.exit_code, 0) << output.out;
  return record_in(kStorageConsistency, ranks[0]);
}

class storage_consistency : public SharedDirectory {};

TEST_F(storage_consistency, it_records_every_case_and_what_it_declares_and_leaves_nothing) {
  const auto record = complete(places(), {});
  EXPECT_EQ(recorded_in({record}), declared_by(kStorageConsistency));
  for (const auto& name : kCases) EXPECT_GE(figure_at(record, "checks", {{"case", name}}), 6) << name;
  EXPECT_EQ(value_of(record, "pairs", node_of(record)), Value(std::int64_t{6}));
  EXPECT_EQ(faults(record), 0) << notes_of(record);
  EXPECT_EQ(left(), std::set<std::string>{});
}

TEST_F(storage_consistency, what_nfs_does_not_promise_can_be_left_out) {
  const auto record = complete(places(), {"--cases=close_to_open"});
  EXPECT_EQ(count_of(record, "checks"), kCases.size() - 3);
  EXPECT_THROW((void)figure_at(record, "checks", {{"case", std::string("held_open")}}), std::runtime_error);
}

/// How a lie is to be found.
struct Found {
  std::string lie, where, metric, text;
};
void PrintTo(const Found& found, std::ostream* out) { *out << found.lie; }

class lying : public testing::TestWithParam<Found> {
 protected:
  void SetUp() override {
    if (const auto why = no_fuse(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_P(lying, is_found_in_its_class_and_named) {
  const auto& [lie, where, metric, text] = GetParam();
  const LyingMounts storage({lie, lie, lie});
  ASSERT_EQ(storage.trouble(), "");
  const auto record = complete(storage.points(), {"--rounds=1", "--wait=500ms", "--size=4KiB"});
  EXPECT_GT(figure_at(record, metric, {{"case", where}}), 0) << notes_of(record);
  EXPECT_NE(notes_of(record).find(text), std::string::npos) << notes_of(record);
  EXPECT_EQ(names_in(storage.backing()), std::set<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(
    storage, lying,
    testing::Values(
        Found{"fsync_dropped", "new_file", "false_successes",
              "reported as done, but after 0.5 s the file ends after 0 of 4096 B"},
        Found{"late", "overwrite", "stale_reads", "all 4096 B are what was there before"},
        Found{"flipped", "new_file", "wrong_reads",
              "1 of 4096 B differ from B 2048 on: bytes that were never written there"},
        Found{"zeros", "new_file", "wrong_reads", " of 4096 B differ from B 0 on: zeros"},
        Found{"full_at_close", "new_file", "failures", "refused: close "},
        Found{"append", "append", "wrong_reads", "append: "},
        Found{"rename_gap", "rename", "wrong_reads", "while others were renamed to its name, there was no such file"},
        Found{"rename_keeps", "rename", "false_successes", "the name that it had before is still there"},
        Found{"unlink", "unlink", "false_successes", "reported as done, but after 0.5 s the file is still there"},
        Found{"stale_handle", "unlink", "stale_reads", "the name is still there, of a stale handle"},
        Found{"size", "size", "false_successes", "the size is 4096 B, not 3072 B"},
        Found{"exclusive", "exclusive", "false_successes", "answered that it alone made a file that was there: "},
        Found{"listing", "listing", "stale_reads", "the listing lacks a file that was made"}),
    [](const auto& test) { return test.param.lie + "_" + test.param.where; });

TEST(HonestMounts, pass_ten_times_of_ten) {
  if (const auto why = no_fuse(); !why.empty()) GTEST_SKIP() << why;
  const LyingMounts storage({"honest", "honest", "honest"});
  ASSERT_EQ(storage.trouble(), "");
  for (int run = 0; run < 10; ++run) {
    const auto record = complete(storage.points(), {"--rounds=1", "--size=4KiB"});
    EXPECT_EQ(faults(record), 0) << notes_of(record);
    EXPECT_GT(sum_of(record, "checks"), 0);
  }
  EXPECT_EQ(names_in(storage.backing()), std::set<std::string>{});
}

TEST(SlowMount, is_named_by_its_share_of_the_median_rate) {
  if (const auto why = no_fuse(); !why.empty()) GTEST_SKIP() << why;
  const LyingMounts storage({"honest", "slow", "honest"});
  ASSERT_EQ(storage.trouble(), "");
  const auto ranks = run_ranks(probe_file("storage_metadata"), storage.points(), {"--files=20"});
  const auto record = record_in(probe_file("storage_metadata"), ranks[0]);
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  const auto slowest = std::ranges::min_element(record.measurements, {}, [](const Measurement& one) {
    return one.metric == "client_share" && one.at == Values{{"phase", std::string("stat")}} ? one.samples.at(0) : 2;
  });
  EXPECT_TRUE(slowest->subject.id.ends_with("#1")) << slowest->subject.id;
  EXPECT_LT(slowest->samples.at(0), 0.5);
}

TEST(StorageConsistency, parameters_out_of_range_are_errors_that_name_them) {
  const auto reason = [](const std::string& word) {
    return record_in(kStorageConsistency, run_probe({kStorageConsistency, "--quick", word})).end.reason;
  };
  EXPECT_NE(reason("--size=1000").find("size: 1000 B is not a multiple of 32 B from 4 KiB"), std::string::npos);
  EXPECT_NE(reason("--rounds=0").find("rounds: 0 is not from 1 to 1000"), std::string::npos);
  EXPECT_NE(reason("--wait=10min").find("wait: 600 s is not above 0"), std::string::npos);
  EXPECT_NE(reason("--rounds=1").find("one rank alone"), std::string::npos);
}

}  // namespace
}  // namespace assay::cluster_storage
