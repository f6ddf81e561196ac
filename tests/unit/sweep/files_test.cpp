// Ledger, due list, outcome and cached verdict as files: what was written is read back, and damage is refused.
#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "orchestrator/files/line_log.h"
#include "orchestrator/sweep/ledger.h"
#include "orchestrator/sweep/sweep_file.h"
#include "orchestrator/sweep/verdict_cache.h"
#include "probes/core/utc_time.h"

namespace assay::sweep {
namespace {

namespace fs = std::filesystem;
using drift::UnitState;
using drift::VisitState;

class SweepFiles : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string path(const char* name) const { return (folder_ / name).string(); }
  fs::path folder_ = fs::temp_directory_path() / ("assay-sweep-" + std::to_string(::getpid()));
};

Night nth_night(int number) { return Night(std::chrono::days(20'000 + number)); }

SweepEntry entry(const std::string& id, int number, VisitState state) {
  return {.night = nth_night(number),
          .sweep = id,
          .requirements = {"r"},
          .visits = {{.node = "n01", .state = state, .reason = ""}}};
}

std::vector<DueNode> due_of(const std::string& path, int tonight) {
  const site::Site site{.name = "s", .nodes = {{.name = "n01", .leaf = "l1"}, {.name = "n02", .leaf = "l1"}}};
  const auto ledger = read_ledger(files::read_lines(path).value(), path);
  return due_nodes(site, ledger.value(), nth_night(tonight), {}, {"n01"});
}

drift::DriftReport report_of(UnitState state) {
  drift::DriftReport report;
  report.as_of = std::chrono::sys_days(std::chrono::days(20'000));
  if (state != UnitState::steady) {
    report.states["node:n01"] = state;
    report.flags.push_back({.id = "0123456789ab",
                            .unit = "node:n01",
                            .node = "n01",
                            .metric = "host_gemm.throughput",
                            .state = state,
                            .ratio = 0.9});
  }
  return report;
}

const std::vector<KnownUnit> kUnits = {
    {.unit = "node:n01", .node = "n01", .measured = report_of(UnitState::steady).as_of}};

}  // namespace

TEST_F(SweepFiles, a_sweep_that_is_entered_twice_counts_once) {
  ASSERT_FALSE(enter(path("visits.jsonl"), entry("a", 0, VisitState::measured)));
  ASSERT_FALSE(enter(path("visits.jsonl"), entry("a", 0, VisitState::measured)));
  EXPECT_EQ(files::read_lines(path("visits.jsonl"))->size(), 1U);
}

TEST_F(SweepFiles, nodes_have_their_last_visit_and_what_was_missed_since) {
  for (const auto& one : {entry("a", 0, VisitState::measured), entry("b", 1, VisitState::busy),
                          entry("c", 2, VisitState::preempted), entry("d", 9, VisitState::measured)})
    ASSERT_FALSE(enter(path("visits.jsonl"), one));
  const auto nodes = due_of(path("visits.jsonl"), 3);
  EXPECT_EQ(nodes[0].last_visit, nth_night(0));  // that of night 9 is not of the past
  EXPECT_EQ(nodes[0].missed, 2);
  EXPECT_EQ(nodes[1].last_visit, std::nullopt);
  EXPECT_TRUE(nodes[1].beside_flag);
  EXPECT_FALSE(nodes[0].beside_flag);
}

TEST_F(SweepFiles, a_line_that_a_killed_process_left_half_is_cut_off_and_another_damage_is_refused) {
  ASSERT_FALSE(enter(path("visits.jsonl"), entry("a", 0, VisitState::measured)));
  std::ofstream(path("visits.jsonl"), std::ios::app) << "{\"schema\": \"assay.vis";
  ASSERT_FALSE(enter(path("visits.jsonl"), entry("b", 1, VisitState::measured)));
  EXPECT_EQ(due_of(path("visits.jsonl"), 3)[0].last_visit, nth_night(1));
  std::ofstream(path("visits.jsonl"), std::ios::app) << "{}\n";
  const auto problem = enter(path("visits.jsonl"), entry("c", 2, VisitState::measured));
  ASSERT_TRUE(problem);
  EXPECT_NE(problem->where.find("line 3"), std::string::npos) << problem->where;
}

TEST_F(SweepFiles, a_ledger_in_use_is_refused_and_a_link_is_not_followed) {
  const auto open = files::LineLog::open(path("log"));
  ASSERT_TRUE(open);
  EXPECT_EQ(files::LineLog::open(path("log")).error().what, "is in use by another process");
  fs::create_symlink(path("other"), path("link"));
  EXPECT_FALSE(files::LineLog::open(path("link")));
}

TEST_F(SweepFiles, of_two_workers_one_has_the_claim) {
  EXPECT_EQ(claim(path("nodes/n01")), true);
  EXPECT_EQ(claim(path("nodes/n01")), false);
}

TEST_F(SweepFiles, due_list_and_outcome_are_read_back_as_written_and_unknown_fields_are_refused) {
  SweepFile file{.plan = {.id = "b2a7",
                          .night = nth_night(0),
                          .started = "2026-01-05T01:00:00.000Z",
                          .profile = "nightly-2m",
                          .budget_s = 120}};
  file.plan.due = {{.node = "n01", .age = 5, .never = true, .overdue = true, .weight = 15, .stagger = 0.25}};
  file.plan.only = {"idle.cpu"};
  file.plan.pairs = {{"n01", "n02"}};
  file.pairs = {{.pair = {"n01", "n02"}, .state = VisitState::preempted, .reason = "a job"}};
  file.visits = {{.node = "n01", .state = VisitState::busy, .reason = "a job"}};
  file.findings = {"n01"};
  const auto read = read_sweep(sweep_text(file), "sweep.json");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(sweep_text(*read), sweep_text(file));
  std::string text = due_text(file.plan);
  ASSERT_TRUE(read_due(text, "due.json"));
  text.insert(1, "\"more\": 1,");
  EXPECT_NE(read_due(text, "due.json").error().text().find("more"), std::string::npos);
}

TEST_F(SweepFiles, the_outcome_of_a_pair_is_read_back_and_one_node_is_no_pair) {
  const PairVisit visit{.pair = {"n01", "n02"}, .state = VisitState::measured};
  EXPECT_EQ(read_pair(pair_text(visit), "pair.json"), visit);
  std::string text = pair_text(visit);
  text.replace(text.find("n02"), 3, "n01");
  EXPECT_EQ(read_pair(text, "pair.json").error().what, "are not the names of two nodes");
}

TEST_F(SweepFiles, a_due_list_from_before_there_were_pairs_has_none) {
  std::string text = due_text({.id = "b2a7", .night = nth_night(0), .started = "2026-01-05T01:00:00.000Z"});
  const auto begin = text.find("\"pairs\"");
  text.erase(begin, text.find(']', begin) + 2 - begin);
  const auto read = read_due(text, "due.json");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_TRUE(read->pairs.empty());
}

TEST_F(SweepFiles, a_verdict_is_healthy_flagged_or_unknown_as_the_report_says) {
  EXPECT_EQ(verdict_for("n01", report_of(UnitState::steady), {}, kUnits).health, NodeHealth::healthy);
  for (const auto state :
       {UnitState::flagged, UnitState::confirmed, UnitState::draining, UnitState::lemon, UnitState::repaired})
    EXPECT_EQ(verdict_for("n01", report_of(state), {}, kUnits).health, NodeHealth::flagged) << word_of(state);
  auto of_path = report_of(UnitState::confirmed);
  of_path.flags.at(0).kind = "group";  // of several nodes
  EXPECT_EQ(verdict_for("n01", of_path, {}, kUnits).health, NodeHealth::healthy);
  for (const auto state : {UnitState::learning, UnitState::stale})
    EXPECT_EQ(verdict_for("n01", report_of(state), {}, kUnits).health, NodeHealth::unknown) << word_of(state);
}

TEST_F(SweepFiles, a_node_that_was_not_measured_or_not_for_long_is_unknown) {
  EXPECT_EQ(verdict_for("n02", report_of(UnitState::steady), {}, kUnits).health, NodeHealth::unknown);
  auto report = report_of(UnitState::steady);
  report.coverage.overdue = {{.unit = "node:n01", .node = "n01", .nights = 12}};
  EXPECT_EQ(verdict_for("n01", report, {}, kUnits).text, "assay: unknown: not measured for 12 nights");
  report.coverage.overdue = {{.unit = "gpu:103", .node = "n01", .nights = 1, .last_state = drift::kMissing}};
  EXPECT_EQ(verdict_for("n01", report, {}, kUnits).text, "assay: unknown: gpu:103 is missing");
  report = report_of(UnitState::steady);
  report.coverage.allowed_nights = 5;
  const auto before = report.as_of - std::chrono::days(6);
  EXPECT_EQ(verdict_for("n01", report, {}, {{.unit = "node:n01", .node = "n01", .measured = before}}).text,
            "assay: unknown: not watched: last measured 6 nights ago")
      << "a retired unit is not overdue";
  report = report_of(UnitState::steady);
  report.simulated = true;
  EXPECT_EQ(verdict_for("n01", report, {}, kUnits).health, NodeHealth::unknown);
}

TEST_F(SweepFiles, a_unit_that_stood_for_a_node_before_its_serial_number_was_known_does_not_make_it_unknown) {
  const auto report = report_of(UnitState::steady);
  const KnownUnit before = {.unit = "node:n01", .node = "n01"};
  const KnownUnit now = {.unit = "node:SN-n01", .node = "n01", .measured = report.as_of};
  EXPECT_EQ(verdict_for("n01", report, {}, {before, now}).health, NodeHealth::healthy);
  EXPECT_EQ(verdict_for("n01", report, {}, {before}).text, "assay: unknown: node:n01 was never measured");
  const KnownUnit part = {.unit = "gpu:n01/0", .node = "n01"};
  EXPECT_EQ(verdict_for("n01", report, {}, {part, now}).text, "assay: unknown: gpu:n01/0 was never measured");
}

// Row m of the acceptance tests.
TEST_F(SweepFiles, a_stale_missing_damaged_or_foreign_verdict_is_unknown_and_never_healthy) {
  const auto verdict = verdict_for("n01", report_of(UnitState::steady), {}, kUnits);
  const auto as_of = utc_time(verdict.as_of).value(), until = utc_time(verdict.valid_until).value();
  std::ofstream(path("v.json")) << verdict_text(verdict);
  EXPECT_EQ(answer_from(path("v.json"), "n01", as_of).code, 0);
  EXPECT_EQ(answer_from(path("v.json"), "n01", until).code, 0);
  EXPECT_EQ(answer_from(path("v.json"), "n01", until + std::chrono::seconds(1)).code, 2);
  EXPECT_EQ(answer_from(path("v.json"), "n02", as_of).code, 2);
  EXPECT_EQ(answer_from(path("absent.json"), "n01", as_of).code, 2);
  EXPECT_EQ(answer_from(path("v.json"), "n01", as_of - std::chrono::days(30)).code, 2);
  std::ofstream(path("v.json"), std::ios::app) << "x";
  EXPECT_EQ(answer_from(path("v.json"), "n01", as_of).code, 2);
}

TEST_F(SweepFiles, a_verdict_that_others_may_have_written_is_unknown) {
  const auto verdict = verdict_for("n01", report_of(UnitState::steady), {}, kUnits);
  const auto now = utc_time(verdict.as_of).value();
  std::ofstream(path("v.json")) << verdict_text(verdict);
  const auto with_mode = [&](mode_t mode) {
    EXPECT_EQ(::chmod(path("v.json").c_str(), mode), 0);
    return answer_from(path("v.json"), "n01", now).line;
  };
  EXPECT_EQ(with_mode(0666), "assay: unknown: the verdict has mode 0666: others than its owner may change it");
  EXPECT_EQ(with_mode(0646), "assay: unknown: the verdict has mode 0646: others than its owner may change it");
  EXPECT_EQ(with_mode(0644), "assay: healthy as of 2024-10-04");
  fs::create_directory(path("folder"));
  EXPECT_EQ(answer_from(path("folder"), "n01", now).line, "assay: unknown: the verdict is not a regular file");
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives a file to another user";
  fs::create_symlink(path("v.json"), path("link.json"));
  EXPECT_EQ(::lchown(path("link.json").c_str(), 65534, 65534), 0);
  EXPECT_EQ(answer_from(path("link.json"), "n01", now).code, 2);
  EXPECT_EQ(::chown(path("v.json").c_str(), 65534, 65534), 0);
  EXPECT_EQ(answer_from(path("v.json"), "n01", now).code, 2);
}

TEST_F(SweepFiles, a_verdict_is_of_the_node_by_its_name_with_or_without_a_domain) {
  const auto verdict = verdict_for("n01", report_of(UnitState::steady), {}, kUnits);
  const auto now = utc_time(verdict.as_of).value();
  std::ofstream(path("v.json")) << verdict_text(verdict);
  EXPECT_EQ(answer_from(path("v.json"), "n01.hall.example", now).code, 0);
  EXPECT_EQ(answer_from(path("v.json"), "n011", now).code, 2);
  EXPECT_EQ(answer_from(path("v.json"), "", now).code, 2);
}

TEST_F(SweepFiles, what_is_printed_has_at_most_80_bytes_whatever_the_file_says) {
  auto verdict = verdict_for("n01", report_of(UnitState::confirmed), {}, kUnits);
  verdict.text = std::string(300, 'x') + "\n\x1b[31m";
  std::ofstream(path("v.json")) << verdict_text(verdict);
  const auto answer = answer_from(path("v.json"), "n01", utc_time(verdict.as_of).value());
  EXPECT_EQ(answer.code, 1);
  EXPECT_EQ(answer.line, std::string(80, 'x'));
}

}  // namespace assay::sweep
