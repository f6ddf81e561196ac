// checkpoint_cluster as processes on this machine: every tier serves, damage sends a rank to the next, nothing is left.
#include <chrono>
#include <thread>

#include "tests/unit/paths.h"
#include "tests/unit/workloads/rank_processes.h"

namespace assay::cluster_checkpoint {
namespace {

namespace fs = std::filesystem;

const std::string kCheckpointCluster = probe_file("checkpoint_cluster");
const Values kQuick = {{"checkpoint", std::string("llama3-8b/20000")}};

/// Only of files that are committed: one that is still being written is the writer's.
class DamageCommitted {
 public:
  void operator()(const fs::path& path) {
    if (path.extension().empty()) damage_(path);
  }

 private:
  Damage damage_;
};
void remove_committed(const fs::path& path) {
  if (path.extension().empty()) fs::remove(path);
}

/// Folders of runs with a checkpoint in them; before that a folder may not yet say whose it is.
long folders_at_work(const std::string& directory) {
  return std::ranges::count_if(names_in(directory), [&](const std::string& name) {
    return fs::exists(directory + "/" + name + "/owner") && fs::exists(directory + "/" + name + "/step-0000");
  });
}

class checkpoint_cluster : public SharedDirectory {
 protected:
  void SetUp() override {
    SharedDirectory::SetUp();
    fs::create_directory(drive());
    fs::create_directory(shared());
  }
  [[nodiscard]] std::string drive() const { return place_.path() + "/drive"; }
  [[nodiscard]] std::string shared() const { return place_.path() + "/shared"; }

  std::vector<Record> complete(std::vector<std::string> more, std::size_t ranks = 3) {
    more.push_back("--local-directory=" + drive());
    std::vector<Record> records;
    for (const auto& output : run_ranks(kCheckpointCluster, std::vector(ranks, shared()), more)) {
      EXPECT_EQ(output.exit_code, 0) << output.out;
      records.push_back(record_in(kCheckpointCluster, output));
    }
    EXPECT_EQ(names_in(shared()), std::set<std::string>{});
    EXPECT_EQ(names_in(drive()), std::set<std::string>{});
    return records;
  }
  static std::string served(const Record& record) {
    return std::get<std::string>(value_of(record, "served_by", node_of(record)).value());
  }
};

struct Case {
  const char *tiers, *lost, *served;
  std::size_t ranks;
};

TEST_F(checkpoint_cluster, each_rank_restores_from_the_nearest_tier_that_is_left) {
  const Case cases[] = {{"memory,peer,local,shared", "nothing", "memory", 3},
                        {"memory,peer,local,shared", "memory", "peer", 3},
                        {"memory,local,shared", "memory", "local", 3},
                        {"memory,peer,local,shared", "node", "peer", 3},
                        {"memory,peer", "node", "peer", 2},
                        {"memory,local,shared", "node", "shared", 3},
                        {"shared", "memory", "shared", 2}};
  for (const auto& [tiers, lost, tier, ranks] : cases) {
    const auto records = complete({fmt::format("--tiers={}", tiers), fmt::format("--lost={}", lost)}, ranks);
    for (const auto& record : records) EXPECT_EQ(served(record), tier) << tiers << " without " << lost;
    EXPECT_EQ(figure_at(records[0], "mismatches", kQuick), 0);
    EXPECT_EQ(figure_at(records[0], "fallbacks", kQuick), 0);
    EXPECT_GT(figure_at(records[0], "time_to_resume", kQuick), 0);
  }
}

TEST_F(checkpoint_cluster, what_carried_copies_to_a_peer_is_told_and_verbs_are_never_replaced_by_tcp) {
  const auto record = complete({"--tiers=memory,peer", "--lost=memory"})[0];
  EXPECT_EQ(value_of(record, "peer_transport", node_of(record)), Value(std::string("tcp")));
  const auto none = complete({"--tiers=shared", "--peer-transport=verbs"})[0];
  EXPECT_FALSE(value_of(none, "peer_transport", node_of(none)).has_value()) << "no tier needs a transport";
  const auto refused = run_ranks(kCheckpointCluster, {shared(), shared()},
                                 {"--tiers=memory,peer", "--peer-transport=verbs", "--device=none7"});
  const auto end = record_in(kCheckpointCluster, refused[0]).end;
  EXPECT_EQ(end.status, Status::error);
  EXPECT_NE(end.reason.find("peer_transport: verbs cannot be had: "), std::string::npos) << end.reason;
  EXPECT_EQ(names_in(shared()), std::set<std::string>{});
}

TEST_F(checkpoint_cluster, it_records_what_it_declares) {
  const auto records = complete({"--tiers=memory,peer,local,shared", "--lost=nothing", "--server-memory=1MiB"});
  auto declared = declared_by(kCheckpointCluster);
  for (const char* of_files :
       {"cold_rung", "resident_pages", "wire_share", "set_over_client_memory", "set_over_server_memory"})
    declared.conditions.erase(of_files);
  declared.conditions.erase("peer_port");
  for (const char* of_files : {"raw_read_bandwidth", "restore_share"}) declared.metrics.erase(of_files);
  EXPECT_EQ(recorded_in({records[0]}), declared);
  const auto read = complete({"--tiers=shared", "--server-memory=1MiB"});
  EXPECT_TRUE(value_of(read[0], "cold_rung", node_of(read[0])).has_value());
  EXPECT_TRUE(value_of(read[0], "set_over_server_memory", node_of(read[0])).has_value());
}

TEST_F(checkpoint_cluster, ten_saves_and_ten_restores_are_all_recorded) {
  const auto record = complete({"--repetitions=10", "--lost=memory"})[0];
  for (const auto& one : record.measurements) {
    const std::size_t samples = one.metric == "mismatches" || one.metric == "fallbacks" ? 1 : 10;
    EXPECT_EQ(one.samples.size(), samples) << one.metric;
  }
}

TEST_F(checkpoint_cluster, what_was_restored_from_files_is_read_raw_as_well_and_what_was_not_is_not) {
  for (const char* tiers : {"--tiers=memory,shared", "--tiers=memory,local,shared"}) {
    const auto record = complete({tiers, "--lost=memory", "--repetitions=2"})[0];
    const double share = figure_at(record, "restore_share", kQuick);
    EXPECT_DOUBLE_EQ(share,
                     figure_at(record, "restore_bandwidth", kQuick) / figure_at(record, "raw_read_bandwidth", kQuick));
    EXPECT_GT(share, 0);
  }
  const auto record = complete({"--tiers=memory,peer,shared", "--lost=memory"})[0];
  EXPECT_THROW((void)figure_at(record, "raw_read_bandwidth", kQuick), std::runtime_error);
}

TEST_F(checkpoint_cluster, a_restore_past_a_damaged_copy_has_no_share_of_a_raw_read) {
  const Vandal vandal(drive(), "shard-0064", DamageCommitted());
  const auto record = complete({"--tiers=local,shared", "--lost=memory"})[0];
  EXPECT_GT(figure_at(record, "fallbacks", kQuick), 0);
  EXPECT_THROW((void)figure_at(record, "restore_share", kQuick), std::runtime_error);
}

TEST_F(checkpoint_cluster, other_models_have_their_files_and_another_identity) {
  const auto record = complete({"--model=llama3-70b", "--divisor=1000000"})[0];
  EXPECT_EQ(value_of(record, "files_total", node_of(record)), Value(std::int64_t{128}));
  EXPECT_EQ(value_of(record, "whole", node_of(record)), Value(false));
  EXPECT_GT(figure_at(record, "write_bandwidth", {{"checkpoint", std::string("llama3-70b/1000000")}}), 0);
}

TEST_F(checkpoint_cluster, a_copy_on_a_drive_that_is_damaged_is_counted_and_the_next_tier_serves) {
  const Vandal vandal(drive(), "shard-0064", DamageCommitted());  // the optimizer file of the second process
  const auto records = complete({"--tiers=local,shared", "--lost=memory"});
  EXPECT_EQ(served(records[0]), "local 3, shared 1");
  EXPECT_EQ(served(records[1]), "local");
  EXPECT_EQ(figure_at(records[0], "fallbacks", kQuick), 1);
  EXPECT_GT(figure_at(records[0], "mismatches", kQuick), 0);
  ASSERT_FALSE(records[0].notes.empty());
  EXPECT_NE(records[0].notes[0].find("of shard-0064 in tier local"), std::string::npos) << records[0].notes[0];
}

TEST_F(checkpoint_cluster, a_file_that_no_tier_has_right_is_served_by_none) {
  const Vandal vandal(shared(), "shard-0064", remove_committed);
  const auto records = complete({"--tiers=shared", "--lost=memory", "--wait=500ms"});
  EXPECT_EQ(served(records[0]), "none 1, shared 3");
  EXPECT_GT(figure_at(records[0], "mismatches", kQuick), 0);
}

TEST_F(checkpoint_cluster, a_commit_that_another_node_does_not_see_in_time_is_a_mismatch_with_its_reader) {
  const Vandal vandal(shared(), "shard-0000", remove_committed);
  const auto record = complete({"--tiers=memory,shared", "--lost=nothing", "--wait=500ms"})[0];
  EXPECT_EQ(figure_at(record, "mismatches", kQuick), 4096);
  EXPECT_THROW((void)figure_at(record, "time_to_visible", kQuick), std::runtime_error);
  ASSERT_FALSE(record.notes.empty());
  EXPECT_NE(record.notes[0].find("#1 did not see the first file"), std::string::npos) << record.notes[0];
}

TEST_F(checkpoint_cluster, what_ranks_leave_that_were_killed_is_removed_by_the_next_from_drive_and_storage) {
  StartedRanks ranks(kCheckpointCluster, {shared(), shared(), shared()},
                     {"--tiers=local,shared", "--local-directory=" + drive(), "--repetitions=1000", "--divisor=200"});
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const auto working = [&] { return folders_at_work(drive()) == 3 && folders_at_work(shared()) == 1; };
  while (!working() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  ranks.kill_all();
  ASSERT_TRUE(working()) << testing::PrintToString(names_in(drive())) << testing::PrintToString(names_in(shared()));
  const auto record = complete({"--tiers=local,shared"})[0];
  EXPECT_EQ(value_of(record, "abandoned_removed", node_of(record)), Value(std::int64_t{1}));
}

TEST(CheckpointCluster, parameters_that_do_not_fit_are_errors_that_name_them) {
  const auto reason = [](const std::string& word) {
    return record_in(kCheckpointCluster, run_probe({kCheckpointCluster, "--quick", word})).end.reason;
  };
  EXPECT_NE(reason("--tiers=memory").find("tiers: memory leaves nothing to restore from when the node is lost"),
            std::string::npos);
  EXPECT_NE(reason("--tiers=tape").find("tiers: 'tape' is none of memory, peer, local, shared"), std::string::npos);
  EXPECT_NE(reason("--divisor=0").find("divisor: 0 is not from 1 to"), std::string::npos);
  EXPECT_NE(reason("--chunk=5000B").find("chunk: must be a multiple of 4 KiB"), std::string::npos);
  EXPECT_NE(reason("--wait=10min").find("wait: 600 s is not more than 0"), std::string::npos);
  EXPECT_NE(reason("--shift=2").find("shift: 2 of 2 ranks"), std::string::npos);
  EXPECT_NE(reason("--threads=0").find("threads: 0 is not from 1 to 256"), std::string::npos);
  EXPECT_NE(reason("--repetitions=1").find("one rank alone"), std::string::npos);
}

}  // namespace
}  // namespace assay::cluster_checkpoint
