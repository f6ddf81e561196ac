// storage_durability on a storage whose server is killed: an honest one keeps all, one that lies is found and named.
#include <algorithm>
#include <future>

#include "tests/unit/paths.h"
#include "tests/unit/workloads/lying_mounts.h"
#include "tests/unit/workloads/rank_processes.h"

namespace assay::durability {
namespace {

namespace fs = std::filesystem;

const std::string kStorageDurability = probe_file("storage_durability");
const std::vector<std::string> kFaults = {"lost_writes", "rolled_back_writes", "torn_writes"};

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

bool interrupted(const Record& record) {
  return std::get<bool>(value_of(record, "interrupted", node_of(record)).value());
}

class storage_durability : public SharedDirectory {};

TEST_F(storage_durability, without_a_fault_it_records_what_it_declares_but_a_recovery_and_says_that_none_came) {
  const auto ranks = run_ranks(kStorageDurability, places(), {"--stall=30s"});
  for (const auto& output : ranks) ASSERT_EQ(output.exit_code, 0) << output.out;
  const auto record = record_in(kStorageDurability, ranks[0]);
  auto declared = declared_by(kStorageDurability);
  declared.metrics.erase("recovery_time");
  EXPECT_EQ(recorded_in({record}), declared);
  for (const char* operation : {"overwrite", "append", "rename"})
    EXPECT_GE(figure_at(record, "acknowledged", {{"operation", std::string(operation)}}), 6) << operation;
  EXPECT_EQ(faults(record), 0) << notes_of(record);
  EXPECT_FALSE(interrupted(record));
  EXPECT_EQ(left(), std::set<std::string>{});
}

/// Two ranks on one mount, whose server is killed while they write, and comes back where `after` is a lie.
class killed_server : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = no_fuse(); !why.empty()) GTEST_SKIP() << why;
  }
  /// Whether every stream of both ranks has come to its tenth name: one that had not begun by the kill would find the
  /// new server alone, and its rank would see no interruption.
  static bool at_work(const LyingMounts& mounts) {
    const std::vector<std::string> names = {"durable-0-0-name-9", "durable-0-1-name-9", "durable-1-0-name-9",
                                            "durable-1-1-name-9"};
    std::error_code gone;  // files come and go while they are looked for
    for (fs::directory_iterator run(mounts.backing(), gone), end; !gone && run != end; run.increment(gone)) {
      if (std::ranges::all_of(names, [&](const auto& name) { return fs::exists(run->path() / name); })) return true;
    }
    return false;
  }
  static std::vector<ProbeOutput> run_and_kill(LyingMounts& mounts, const std::string& after,
                                               const std::vector<std::string>& more) {
    EXPECT_EQ(mounts.trouble(), "");
    const auto point = mounts.points().at(0);
    auto running = std::async(std::launch::async, run_ranks, kStorageDurability, std::vector{point, point}, more, 0U);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!at_work(mounts) && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(at_work(mounts)) << "not every stream has written after 30 s";
    mounts.kill_and_restart(0, after);
    return running.get();
  }
};

const std::vector<std::string> kLong = {"--duration=60s", "--slots=4", "--stall=30s"};

TEST_F(killed_server, of_an_honest_storage_loses_nothing_and_the_interruption_is_seen) {
  LyingMounts mounts({"honest"});
  const auto ranks = run_and_kill(mounts, "honest", kLong);
  for (const auto& output : ranks) ASSERT_EQ(output.exit_code, 0) << output.out;
  const auto record = record_in(kStorageDurability, ranks[0]);
  EXPECT_EQ(faults(record), 0) << notes_of(record);
  EXPECT_TRUE(interrupted(record));
  EXPECT_EQ(value_of(record, "interrupted_clients", node_of(record)), Value(std::int64_t{2}));
  EXPECT_GT(sum_of(record, "recovery_time"), 0);
  EXPECT_GT(sum_of(record, "refused_calls"), 0);
  EXPECT_EQ(names_in(mounts.backing()), std::set<std::string>{});
}

TEST_F(killed_server, that_acknowledged_what_was_in_its_memory_is_found_and_named) {
  LyingMounts mounts({"volatile"});
  const auto ranks = run_and_kill(mounts, "honest", kLong);
  for (const auto& output : ranks) ASSERT_EQ(output.exit_code, 0) << output.out;
  const auto record = record_in(kStorageDurability, ranks[0]);
  EXPECT_TRUE(interrupted(record));
  for (const char* operation : {"overwrite", "append", "rename"}) {
    double found = 0;
    for (const auto& metric : kFaults) found += figure_at(record, metric, {{"operation", std::string(operation)}});
    EXPECT_GT(found, 0) << operation;
    EXPECT_NE(notes_of(record).find(std::string(operation) + ": "), std::string::npos) << notes_of(record);
  }
  EXPECT_NE(notes_of(record).find(" was acknowledged, and "), std::string::npos) << notes_of(record);
}

TEST_F(killed_server, that_does_not_come_back_is_an_error_with_the_refusal) {
  LyingMounts mounts({"honest"});
  const auto ranks = run_and_kill(mounts, "", {"--duration=60s", "--recovery=1s"});
  EXPECT_EQ(record_in(kStorageDurability, ranks[0]).end.status, Status::error);
  EXPECT_NE(ranks[0].out.find("the storage refuses for more than 1 s what it took before: "), std::string::npos)
      << ranks[0].out;
}

/// Found without any fault.
class lying_storage : public killed_server {
 protected:
  static Record with(const std::string& lie) {
    const LyingMounts mounts({lie});
    const auto ranks = run_ranks(kStorageDurability, {mounts.points().at(0), mounts.points().at(0)}, {"--slots=4"});
    for (const auto& output : ranks) EXPECT_EQ(output.exit_code, 0) << output.out;
    return record_in(kStorageDurability, ranks[0]);
  }
};

TEST_F(lying_storage, that_drops_what_was_synced_has_lost_it) {
  EXPECT_GT(sum_of(with("fsync_dropped"), "lost_writes"), 0);
}

TEST_F(lying_storage, that_writes_zeros_has_lost_it) { EXPECT_GT(sum_of(with("zeros"), "lost_writes"), 0); }

TEST_F(lying_storage, that_changes_a_bit_has_torn_it) { EXPECT_GT(sum_of(with("flipped"), "torn_writes"), 0); }

TEST(StorageDurability, parameters_that_do_not_fit_are_errors_that_name_them) {
  const auto reason = [](const std::string& word) {
    return record_in(kStorageDurability, run_probe({kStorageDurability, "--quick", word})).end.reason;
  };
  EXPECT_NE(reason("--streams=0").find("streams: 0 is not from 1 to 256"), std::string::npos);
  EXPECT_NE(reason("--slots=65537").find("slots: 65537 is not from 1 to 65536"), std::string::npos);
  EXPECT_NE(reason("--duration=61min").find("duration: 3660 s is not above 0 and at most 1 h"), std::string::npos);
  EXPECT_NE(reason("--stall=0s").find("stall: 0 s is not above 0"), std::string::npos);
  EXPECT_NE(reason("--slots=2").find("one rank alone"), std::string::npos);
}

}  // namespace
}  // namespace assay::durability
