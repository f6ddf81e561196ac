// Each record of a run is read from its bytes once, whatever looks at it afterwards, and the verdict is the same on any
// number of threads.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orchestrator/judge/cells/judge.h"
#include "orchestrator/judge/cells/judged_steps.h"
#include "orchestrator/judge/evidence/packed_record.h"
#include "orchestrator/judge/run_verdict.h"
#include "tests/unit/simulate/rehearsal.h"

namespace assay::simulate::read_once_test {
namespace {

using judge::EvidenceReader;
using judge::KeptRecords;

constexpr const char* kTwice =
    R"({"limit": {"at_least": 100, "unit": "B/s"}, "repeat": {"attempts": 2, "more_attempts": 2}})";

/// A fleet with two stages, a limit of the fleet, a search, faulty nodes and a dead one.
plan::Plan everything(std::size_t nodes) {
  return plan_of(
      {kTwice, kFleet, kClean, kByRack}, {.nodes = nodes, .per_rack = 8},
      {.faults = {{.node = "n00003", .factor = 0.7}, {.node = "n00012", .factor = 0.9}}, .dead = {"n00020"}});
}

std::size_t records_of(const judge::Journal& journal) {
  std::size_t count = 0;
  journal.each_file([&](const auto&) { ++count; });
  return count;
}

/// The verdict by records that nobody has read yet.
std::string verdict_on(const Rehearsal& fleet, unsigned threads, const KeptRecords& records = {}) {
  const auto made_up = simulated_evidence(fleet.plan, fleet.run.journal);
  const auto verdict = judge::judge_run(
      fleet.plan, "digest", fleet.run.journal,
      EvidenceReader([&](const judge::EvidenceFile& file) { return made_up(file); }, records, threads));
  return verdict ? judge::verdict_text(*verdict) : verdict.error().text();
}

TEST(ReadOnce, a_simulation_reads_what_it_makes_once_and_its_verdict_reads_nothing_again) {
  const plan::Plan plan = everything(24);
  const SimulatedRun run = simulate(plan, "digest");
  ASSERT_TRUE(run.journal.second_stage);
  ASSERT_TRUE(run.journal.localising);
  EXPECT_EQ(run.records.parsed(), records_of(run.journal));
  const auto evidence = simulated_evidence(plan, run.journal, run.records);
  const auto checked = judge::judge_run(plan, "digest", run.journal, evidence);
  const auto own = judge::judge_run(plan, "digest", run.journal, evidence, judge::JournalOrigin::own);
  ASSERT_TRUE(checked && own);
  EXPECT_EQ(judge::verdict_text(*checked), judge::verdict_text(*own));
  EXPECT_EQ(run.records.parsed(), records_of(run.journal));
}

TEST(ReadOnce, a_verdict_with_second_stage_fleet_and_search_reads_each_record_once) {
  const Rehearsal fleet(everything(24));
  const KeptRecords records;
  verdict_on(fleet, 1, records);
  EXPECT_EQ(records.parsed(), records_of(fleet.run.journal));
}

TEST(ReadOnce, the_bytes_of_a_verdict_are_the_same_on_any_number_of_threads) {
  const Rehearsal fleet(everything(300));  // some 900 steps: more than eight threads take at once
  const std::string one = verdict_on(fleet, 1);
  EXPECT_EQ(one, judge::verdict_text(fleet.verdict));
  for (const unsigned threads : {2U, 3U, 8U}) EXPECT_TRUE(verdict_on(fleet, threads) == one) << threads << " threads";
}

/// The results of a step, by its id.
using Shown = std::map<std::string, judge::Results>;

/// Judges each step of `fleet` when its attempt ends, as a run does that shows how it stands, and keeps the records.
/// `shown` gets what is shown of each step in the end.
KeptRecords judged_as_they_came_in(const Rehearsal& fleet, Shown& shown) {
  const auto evidence = simulated_evidence(fleet.plan, fleet.run.journal);
  judge::CellsOfSteps cells;
  for (std::size_t i = 0; i < fleet.plan.coverage.size(); ++i) cells[fleet.plan.coverage[i].step].push_back(i);
  std::map<std::string, judge::Journal> parts;
  for (const auto& attempt : fleet.run.journal.attempts) {
    const plan::Step* const step = fleet.plan.step(attempt.step);
    if (step == nullptr) continue;  // of a search
    judge::Journal& part = parts[attempt.step];
    part.simulated = true;
    part.attempts.push_back(attempt);
    part.second_stage = attempt.second_stage;
    if (attempt.second_stage) part.more_attempts.emplace(attempt.step, "as in the journal");
    for (const auto& node : step->nodes) part.node_facts[node] = fleet.run.journal.node_facts.at(node);
    std::vector<plan::Cell> own;
    for (const std::size_t cell : cells.at(attempt.step)) own.push_back(fleet.plan.coverage[cell]);
    shown[attempt.step] = judge::judge_step(fleet.plan, *step, own, part, evidence);
    EXPECT_FALSE(shown[attempt.step].empty());
  }
  return evidence.records();
}

TEST(ReadOnce, a_verdict_on_records_judged_as_they_came_in_has_the_bytes_of_one_judged_afterwards) {
  const Rehearsal fleet(everything(40));
  ASSERT_TRUE(fleet.run.journal.second_stage);
  Shown shown;
  const KeptRecords records = judged_as_they_came_in(fleet, shown);
  const std::string afterwards = verdict_on(fleet, 1);
  for (const unsigned threads : {1U, 2U, 3U}) {
    EXPECT_EQ(verdict_on(fleet, threads), afterwards) << threads << " threads";
    EXPECT_EQ(verdict_on(fleet, threads, records), afterwards) << threads << " threads, as they came in";
  }
  EXPECT_EQ(records.parsed(), records_of(fleet.run.journal)) << "the verdict read a record again";
}

TEST(ReadOnce, a_pass_or_fail_that_is_shown_during_the_run_is_that_of_the_verdict) {
  using enum judge::Outcome;
  const Rehearsal fleet(everything(300));
  Shown shown;
  judged_as_they_came_in(fleet, shown);
  std::map<judge::Outcome, std::size_t> decided;  // before the end
  for (const auto& result : fleet.verdict.results) {
    if (!shown.contains(result.step)) continue;  // of the dead node
    const auto before = std::ranges::find_if(shown.at(result.step), [&](const judge::Result& one) {
      return one.requirement == result.requirement && one.subject == result.subject;
    });
    ASSERT_NE(before, shown.at(result.step).end()) << result.requirement << " on " << result.subject.id;
    EXPECT_EQ(before->value, result.value) << result.requirement << " on " << result.subject.id;
    if (before->outcome != pass && before->outcome != fail) continue;  // of the fleet, or by its pooled scatter
    EXPECT_EQ(before->outcome, result.outcome) << result.requirement << " on " << result.subject.id;
    ++decided[before->outcome];
  }
  EXPECT_GT(decided[pass], 500U);
  EXPECT_GT(decided[fail], 0U);
}

TEST(ReadOnce, cells_of_one_requirement_are_decided_together_and_those_of_others_before_them) {
  plan::Plan plan;
  judge::CellsOfSteps cells;
  const auto add = [&](const std::string& requirement, std::size_t steps) {
    for (std::size_t i = 0; i < steps; ++i) {
      plan.steps.push_back({.id = fmt::format("{:04}", plan.steps.size())});
      plan.coverage.push_back({.requirement = requirement, .step = plan.steps.back().id});
    }
  };
  add("a", 600), add("b", 10), add("c", 600), add("b", 1), add("d", 5), add("e", 600), add("f", 600);
  for (std::size_t i = 0; i < plan.coverage.size(); ++i) cells[plan.coverage[i].step].push_back(i);
  std::vector<std::size_t> sizes;
  std::set<std::string> before;
  for (const judge::Steps run : judge::runs_of(plan, cells)) {
    std::set<std::string> here;
    for (const auto& step : run) here.insert(plan.coverage[cells.at(step.id).front()].requirement);
    for (const auto& one : here) EXPECT_TRUE(before.insert(one).second) << one;
    sizes.push_back(run.size());
  }
  EXPECT_EQ(sizes, (std::vector<std::size_t>{600, 611, 605, 600}));
}

TEST(ReadOnce, an_exception_of_a_thread_reaches_the_caller_and_the_first_one_counts) {
  const auto work = [](unsigned, std::size_t i) {
    if (i % 100 == 99) throw std::runtime_error(std::to_string(i));
  };
  for (const unsigned threads : {1U, 4U}) {
    try {
      files::in_parallel(1000, threads, work);
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "99");
    }
  }
}

TEST(KeptRecords, a_file_of_another_digest_size_or_path_is_read_anew_and_so_is_one_of_another_probe) {
  fixture::MemoryRun run({kAlone});
  run.attempt(0, "exited", run.record("n1", {1, 2, 3}));
  const EvidenceReader reader = run.reader();
  const judge::EvidenceFile file = run.journal.attempts[0].evidence[0];
  const Description own = fixture::description();
  ASSERT_TRUE(reader.record(file, own, file.path));
  ASSERT_TRUE(reader.record(file, own, file.path));
  EXPECT_EQ(reader.records().parsed(), 1U);
  for (const auto& other : {judge::EvidenceFile{file.path, std::string(64, '0'), file.bytes},
                            judge::EvidenceFile{file.path, file.sha256, file.bytes + 1}})
    ASSERT_TRUE(reader.record(other, own, other.path));
  EXPECT_EQ(reader.records().parsed(), 3U);
  EXPECT_FALSE(reader.record({"records/none", file.sha256, file.bytes}, own, ""));
  Description other = own;
  other.revision = own.revision + 1;
  const auto refused = reader.record(file, other, file.path);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("expected disk revision"), std::string::npos) << refused.error().text();
}

TEST(KeptRecords, a_refused_record_stays_refused_in_the_same_words_and_one_that_was_missing_is_looked_for_again) {
  fixture::MemoryRun run({kAlone});
  run.attempt(0, "exited", "{}\n");
  const EvidenceReader reader = run.reader();
  const judge::EvidenceFile file = run.journal.attempts[0].evidence[0];
  const auto first = reader.record(file, fixture::description(), file.path),
             again = reader.record(file, fixture::description(), file.path);
  ASSERT_FALSE(first || again);
  EXPECT_EQ(first.error().text(), again.error().text());
  EXPECT_TRUE(first.error().where.starts_with(file.path + ": line 1")) << first.error().where;
  EXPECT_EQ(reader.records().parsed(), 1U);
  run.files.erase(file.path);
  const EvidenceReader later = run.reader();
  EXPECT_FALSE(later.record(file, fixture::description(), file.path));
  run.files[file.path] = run.record("n1", {1});
  EXPECT_TRUE(later.record(file, fixture::description(), file.path));
}

/// Overwrites the nameless file of this process's kept records, as a failing disk does. Whether there was one.
bool damage_kept_records() {
  bool found = false;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the folder's own, closed since
    const std::string target = std::filesystem::read_symlink(entry.path(), gone);
    if (!target.ends_with("(deleted)") || target.find("/assay-") == std::string::npos) continue;
    std::ofstream file(entry.path(), std::ios::in | std::ios::out);
    file.seekp(1000);  // in the samples of the first record
    file << std::string(40, '!');
    found = true;
  }
  return found;
}

TEST(KeptRecords, records_beyond_those_in_memory_are_read_once_too_and_again_when_they_are_damaged_on_disk) {
  constexpr std::size_t kRecords = 14, kSamples = 100'000;  // 11 MB packed
  fixture::MemoryRun run({kAlone});
  for (std::size_t i = 0; i < kRecords; ++i)
    run.attempt(0, "exited", run.record("n1", std::vector<double>(kSamples, static_cast<double>(i + 1))));
  const EvidenceReader reader = run.reader();
  const Description probe = fixture::description();
  const auto check_all = [&](std::size_t parsed) {
    for (std::size_t i = 0; i < kRecords; ++i) {
      const auto timed = reader.record(run.journal.attempts[i].evidence[0], probe, "");
      ASSERT_TRUE(timed) << timed.error().text();
      EXPECT_TRUE(timed->record.measurements.at(0).samples ==
                  std::vector<double>(kSamples, static_cast<double>(i + 1)));
    }
    EXPECT_EQ(reader.records().parsed(), parsed);
  };
  check_all(kRecords);
  check_all(kRecords);
  ASSERT_TRUE(damage_kept_records());
  check_all(kRecords + 1);
}

judge::TimedRecord whole_record() {
  constexpr double kTiny = std::numeric_limits<double>::denorm_min();
  const std::string long_text(70'000, 'x');
  return {.record = {.start = {.probe = "disk",
                               .revision = 300,
                               .parameters = {{"flag", true},
                                              {"most", std::numeric_limits<std::int64_t>::max()},
                                              {"least", std::numeric_limits<std::int64_t>::min()},
                                              {"text", long_text}},
                               .rank = 7,
                               .world = 16'384,
                               .host = {{"name", std::string("n1")}, {"off", false}, {"share", 0.1}}},
                     .measurements = {{.metric = "bandwidth",
                                       .unit = "B/s",
                                       .subject = {"gpu", "GPU-1"},
                                       .at = {{"size", std::int64_t{-1}}},
                                       .samples = {1e308, -0.0, kTiny, 128},
                                       .warmup = {3},
                                       .stopped = "fixed"},
                                      {.metric = "other",
                                       .unit = "",
                                       .subject = {},
                                       .at = {},
                                       .samples = {},
                                       .warmup = {},
                                       .stopped = ""}},
                     .conditions = {{"b", {"node", "n1"}, std::string()}, {"a", {"node", "n1"}, 2.5}},
                     .notes = {"one", ""},
                     .end = {.status = Status::skip, .reason = "no disk"},
                     .sorted = {1, 0}},
          .times = {.first = "2026-01-05T06:30:00.000Z", .last = ""}};
}

TEST(PackedRecord, has_every_member_of_the_record) {
  const judge::TimedRecord whole = whole_record();
  const auto again = judge::unpacked(judge::packed(whole));
  const Record &record = whole.record, &read = again.record;
  EXPECT_EQ(read.start.probe, "disk");
  EXPECT_EQ(read.start.revision, 300);
  EXPECT_EQ(read.start.parameters, record.start.parameters);
  EXPECT_EQ(read.start.rank, 7);
  EXPECT_EQ(read.start.world, 16'384);
  EXPECT_EQ(read.start.host, record.start.host);
  ASSERT_EQ(read.measurements.size(), 2U);
  EXPECT_EQ(read.measurements[0].metric, "bandwidth");
  EXPECT_EQ(read.measurements[0].unit, "B/s");
  EXPECT_EQ(read.measurements[0].subject, record.measurements[0].subject);
  EXPECT_EQ(read.measurements[0].at, record.measurements[0].at);
  EXPECT_EQ(read.measurements[0].samples, record.measurements[0].samples);
  EXPECT_TRUE(std::signbit(read.measurements[0].samples[1]));
  EXPECT_EQ(read.measurements[0].warmup, record.measurements[0].warmup);
  EXPECT_EQ(read.measurements[0].stopped, "fixed");
  EXPECT_EQ(read.measurements[1].metric, "other");
  ASSERT_EQ(read.conditions.size(), 2U);
  EXPECT_EQ(read.conditions[0].value, record.conditions[0].value);
  EXPECT_EQ(read.conditions[1].name, "a");
  EXPECT_EQ(read.conditions[1].subject, record.conditions[1].subject);
  EXPECT_EQ(read.conditions[1].value, record.conditions[1].value);
  EXPECT_EQ(read.notes, record.notes);
  EXPECT_EQ(read.end.status, Status::skip);
  EXPECT_EQ(read.end.reason, "no disk");
  EXPECT_EQ(read.sorted, record.sorted);
  EXPECT_EQ(again.times.first, whole.times.first);
  EXPECT_EQ(again.times.last, "");
  EXPECT_THROW(judge::unpacked(judge::packed(whole).substr(0, 100)), std::logic_error);
}

}  // namespace
}  // namespace assay::simulate::read_once_test
