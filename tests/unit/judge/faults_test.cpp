// Nothing that was measured wrong passes: whichever rank recorded it, wherever, and however absurd the figure is.
#include <gtest/gtest.h>

#include "orchestrator/judge/run_verdict.h"
#include "tests/unit/judge/judged.h"

namespace assay::judge::faults_test {
namespace {

using fixture::MemoryRun;
using test::judged;

constexpr const char* kRate = R"({"probe": "checked", "scope": "cluster", "limit": {"at_least": 100, "unit": "B/s"},
                                  "at": {"size": 1}, "conditions": [{"name": "direct_io", "equals": true}]})";
constexpr const char* kClean = R"({"probe": "checked", "scope": "cluster", "metric": "mismatches", "statistic": "max",
                                   "at": "every", "repeat": {"n": 1}, "limit": {"at_most": 0, "unit": "1"}})";

/// One measurement of the fixture's checked probe.
struct Line {
  std::string metric;
  std::vector<double> samples;
  Values at;
  Subject subject = {"group", "all"};
};

const std::vector<double> kSteady110(10, 110.0);
const Values kOne = {{"size", std::int64_t{1}}};
const Values kTwo = {{"size", std::int64_t{2}}};

/// A record of one rank; the condition direct_io is on `about`, and nowhere when that is empty.
std::string record(const MemoryRun& run, int rank, const std::vector<Line>& lines, const std::string& about,
                   const std::map<std::string, double>& told = {}) {
  const plan::Step& step = run.plan.steps.front();
  const std::string& node = step.nodes[static_cast<std::size_t>(rank)];
  std::ostringstream out;
  Recorder recorder(out, fixture::kCheckedSpec,
                    {.probe = "checked",
                     .revision = 1,
                     .parameters = step.parameters,
                     .rank = rank,
                     .world = static_cast<int>(step.nodes.size()),
                     .host = {{"name", node}}});
  for (const auto& line : lines) {
    recorder.measurement(line.metric, Sampling{.samples = line.samples, .warmup = {}, .stopped = "fixed"}, line.subject,
                         line.at);
  }
  if (!about.empty()) recorder.condition("direct_io", true, {"node", about});
  for (const auto& [name, value] : told) recorder.condition(name, value, {"node", node});
  recorder.end({.status = Status::complete, .reason = ""});
  return out.str();
}

std::vector<Line> good() {
  return {{"bandwidth", kSteady110, kOne}, {"mismatches", {0.0}, kOne}, {"mismatches", {0.0}, kTwo}};
}

/// The verdict on two nodes whose ranks left these records.
Verdict verdict_of(const std::vector<std::string>& requirements, const std::vector<Line>& first,
                   const std::vector<Line>& second, const std::string& about = "n1",
                   const std::string& about_of_second = "n2") {
  MemoryRun run(requirements, 2);
  run.attempt(0, "exited", record(run, 0, first, about));
  run.add_rank(1, record(run, 1, second, about_of_second));
  return judged(run);
}

}  // namespace

TEST(faults, good_records_of_both_ranks_are_accepted) {
  const Verdict verdict = verdict_of({kRate, kClean}, good(), {});
  EXPECT_EQ(verdict.overall, Overall::accepted) << verdict.reason;
}

TEST(faults, every_judges_the_worst_of_all_sizes) {
  auto lines = good();
  lines.back().samples = {1e6};
  const Verdict verdict = verdict_of({kRate, kClean}, lines, {});
  EXPECT_EQ(verdict.overall, Overall::rejected);
  EXPECT_EQ(*verdict.results.at(1).value, 1e6);
}

TEST(faults, every_size_of_the_step_must_have_been_checked) {
  auto lines = good();
  lines.pop_back();
  const Verdict verdict = verdict_of({kRate, kClean}, lines, {});
  EXPECT_EQ(verdict.results.at(1).outcome, Outcome::inconclusive);
  EXPECT_EQ(verdict.results.at(1).reason, "mismatches was not measured at 2 B.");
}

TEST(faults, what_another_rank_found_wrong_counts) {
  const Verdict verdict = verdict_of({kRate, kClean}, good(), {{"mismatches", {12345}, kTwo, {"rank", "1"}}});
  EXPECT_EQ(verdict.results.at(1).outcome, Outcome::fail);
  EXPECT_EQ(*verdict.results.at(1).value, 12345);
}

TEST(faults, a_result_names_the_files_of_the_ranks_that_its_figure_is_of_and_all_where_there_is_none) {
  const std::vector<std::string> first = {"records/0001-checked-cluster/1/0.jsonl"},
                                 second = {"records/0001-checked-cluster/1/1.jsonl"};
  const std::vector<std::string> both = {first.front(), second.front()};
  const Verdict clean = verdict_of({kRate, kClean}, good(), {});
  EXPECT_EQ(clean.results.at(0).evidence, first);
  EXPECT_EQ(clean.results.at(1).evidence, first);
  const Verdict wrong = verdict_of({kRate, kClean}, good(), {{"mismatches", {12345}, kTwo, {"rank", "1"}}});
  EXPECT_EQ(wrong.results.at(0).evidence, first);
  EXPECT_EQ(wrong.results.at(1).evidence, both);
  EXPECT_EQ(verdict_of({kRate, kClean}, {}, {}).results.at(0).evidence, both);
}

TEST(faults, a_fault_that_no_requirement_judges_holds_the_whole_step_back) {
  MemoryRun run({kRate, kClean}, 2);
  auto lines = good();
  lines.push_back({"mismatches", {7}, kOne, {"rank", "0"}});
  run.attempt(0, "exited", record(run, 0, lines, "n1"));
  run.add_rank(1, record(run, 1, {}, "n2"));
  const Verdict verdict = judged(run);
  EXPECT_EQ(verdict.overall, Overall::incomplete);
  EXPECT_EQ(verdict.results.at(0).outcome, Outcome::inconclusive);
  EXPECT_EQ(verdict.results.at(0).reason,
            R"(mismatches of rank 0 is 7 at {"size":1}, and no requirement judges it there.)");
}

TEST(faults, the_reason_of_a_rejection_names_the_places_that_miss_the_limit_worst_first) {
  const auto at = [](const char* kind) { return Values{{"class", std::string(kind)}}; };
  auto lines = good();
  for (const auto& [kind, count] : {std::pair{"ended", 1.0}, {"silent", 2.0}, {"error", 0.0}})
    lines.push_back({"mismatches", {count}, at(kind)});
  const Verdict verdict = verdict_of({kRate, kClean}, lines, {{"mismatches", {7}, kTwo, {"rank", "1"}}});
  EXPECT_EQ(verdict.overall, Overall::rejected);
  EXPECT_EQ(verdict.results.at(1).reason,
            "7 misses the limit of at most 0. Missed at size 2 (7), class silent (2), class ended (1).");
  lines.push_back({"mismatches", {3}, at("other")});
  lines.push_back({"mismatches", {1}, at("further")});
  EXPECT_EQ(
      verdict_of({kRate, kClean}, lines, {}).results.at(1).reason,
      "3 misses the limit of at most 0. Missed at class other (3), class silent (2), class ended (1), and 1 more.");
}

TEST(faults, a_condition_is_owed_by_every_rank_and_of_its_own_node) {
  const Verdict silent = verdict_of({kRate, kClean}, good(), {}, "n1", "");
  EXPECT_EQ(silent.results.at(0).outcome, Outcome::inconclusive);
  EXPECT_NE(silent.results.at(0).reason.find("direct_io = true is demanded, and it was not recorded"),
            std::string::npos)
      << silent.results.at(0).reason;
  const Verdict of_another = verdict_of({kRate, kClean}, good(), {}, "n7", "n2");
  EXPECT_EQ(of_another.results.at(0).outcome, Outcome::error);  // the record is refused
}

/// The reason of a cell that demands `name` = 400, of two ranks of which the second is silent.
std::string reason_with_a_silent_rank(const std::string& name) {
  MemoryRun run(
      {R"({"probe": "checked", "scope": "cluster", "limit": {"at_least": 100, "unit": "B/s"}, "at": {"size": 1},
                     "conditions": [{"name": ")" +
           name + R"(", "equals": 400}]})",
       kClean},
      2);
  run.attempt(0, "exited", record(run, 0, good(), "n1", {{name, 400}}));
  run.add_rank(1, record(run, 1, {}, "n2"));
  return judged(run).results.at(0).reason;
}

TEST(faults, what_rank_0_records_for_all_or_what_only_some_machines_report_is_not_owed_by_the_other_ranks) {
  for (const char* name : {"nonce", "link_speed_max"}) {
    const std::string reason = reason_with_a_silent_rank(name);
    EXPECT_EQ(reason.find("it was not recorded"), std::string::npos) << reason;
  }
}

TEST(faults, a_negative_sample_is_refused) {
  auto lines = good();
  lines.at(1).samples = {-1};
  const Verdict verdict = verdict_of({kRate, kClean}, lines, {});
  EXPECT_EQ(verdict.results.at(1).outcome, Outcome::error);
  EXPECT_NE(verdict.results.at(1).reason.find("is -1, and no mismatches is below 0"), std::string::npos);
}

TEST(faults, more_than_is_physically_possible_decides_nothing) {
  constexpr const char* kShare = R"({"probe": "checked", "scope": "cluster", "metric": "share", "at": {"size": 1},
                                     "limit": {"at_least": 0.9, "unit": "1"}})";
  auto lines = good();
  lines.push_back({"share", std::vector<double>(10, 1.01), kOne});
  EXPECT_EQ(verdict_of({kShare, kClean}, lines, {}).results.at(0).outcome, Outcome::pass);
  lines.back().samples.assign(10, 1.03);
  const Verdict verdict = verdict_of({kShare, kClean}, lines, {});
  EXPECT_EQ(verdict.results.at(0).outcome, Outcome::inconclusive);
  EXPECT_NE(verdict.results.at(0).reason.find("above what is physically possible"), std::string::npos);

  constexpr const char* kCapped = R"({"probe": "checked", "scope": "cluster", "at": {"size": 1},
      "limit": {"at_least": 100, "unit": "B/s"}, "ceiling": {"value": 105, "source": {"document": "d", "status": "sourced"}}})";
  EXPECT_EQ(verdict_of({kCapped, kClean}, good(), {}).results.at(0).outcome, Outcome::inconclusive);
}

TEST(faults, a_promised_rate_of_a_drive_that_a_hypervisor_makes_up_does_not_pass) {
  constexpr const char* kPromised = R"({"limit": {"at_least": 100, "unit": "B/s"}})";
  constexpr const char* kShare = R"({"limit": {"at_least": 0.5, "unit": "B/s", "of": "best_sample"}})";
  const auto of_drive = [](const char* requirement, bool emulated, const std::vector<double>& samples) {
    MemoryRun run({requirement});
    run.plan.probes.at("disk").description.conditions.front().name = "emulated_drive";
    std::string text = run.record("n1", samples);
    const std::string name = R"("name":"direct_io")", value = R"("value":true)";
    const auto at = text.find(name);
    EXPECT_NE(at, std::string::npos);
    text.replace(at, name.size(), R"("name":"emulated_drive")");
    if (!emulated) text.replace(text.find(value, at), value.size(), R"("value":false)");
    run.attempt(0, "exited", text);
    return judged(run).results.at(0);
  };
  const Result virtual_drive = of_drive(kPromised, true, kSteady110);
  EXPECT_EQ(virtual_drive.outcome, Outcome::inconclusive);
  EXPECT_NE(virtual_drive.reason.find("A hypervisor makes up the drive"), std::string::npos) << virtual_drive.reason;
  EXPECT_EQ(of_drive(kPromised, true, std::vector<double>(10, 50.0)).outcome, Outcome::fail);
  EXPECT_EQ(of_drive(kPromised, false, kSteady110).outcome, Outcome::pass);
  EXPECT_EQ(of_drive(kShare, true, kSteady110).outcome, Outcome::pass);
}

TEST(faults, a_node_is_judged_by_what_is_recorded_of_itself) {
  MemoryRun run({R"({"limit": {"at_least": 100, "unit": "B/s"}})"});
  std::string text = run.record("n1", kSteady110);
  const std::string own = R"("subject":{"node":"n1"})";
  for (auto at = text.find(own); at != std::string::npos; at = text.find(own))
    text.replace(at, own.size(), R"("subject":{"node":"n9"})");
  run.attempt(0, "exited", text);
  EXPECT_EQ(judged(run).results.at(0).outcome, Outcome::error);  // the record is refused
}

TEST(faults, where_the_machine_does_not_say_no_node_is_held_to_it_and_the_verdict_says_so) {
  constexpr const char* kOfPort = R"({"probe": "checked", "scope": "cluster", "at": {"size": 1}, "when_told": true,
                                      "limit": {"at_least": 0.5, "unit": "B/s", "of": "derived:tcp_rate"}})";
  MemoryRun untold({kRate, kClean, kOfPort}, 2);
  MemoryRun told = untold;
  untold.attempt(0, "exited", record(untold, 0, good(), "n1"));
  untold.add_rank(1, record(untold, 1, {}, "n2"));
  const Verdict silent = judged(untold);
  EXPECT_EQ(silent.overall, Overall::accepted);
  EXPECT_EQ(silent.results.at(2).outcome, Outcome::not_measured);
  EXPECT_FALSE(silent.results.at(2).required);
  ASSERT_FALSE(silent.deviations.empty());
  EXPECT_EQ(silent.deviations.front().what,
            "Not checked, because this machine does not report it: r2, on 1 of 1 subjects.");

  told.attempt(0, "exited", record(told, 0, good(), "n1", {{"link_speed_max", 400}}));
  told.add_rank(1, record(told, 1, {}, "n2", {{"link_speed_max", 1000}}));
  const Verdict verdict = judged(told);
  EXPECT_EQ(verdict.overall, Overall::rejected);
  EXPECT_EQ(*verdict.results.at(2).limit_low, 200);
}

TEST(faults, what_was_measured_of_another_kind_of_subject_is_not_passed_over) {
  MemoryRun run({R"({"scope": "node", "when_told": true, "limit": {"at_least": 100, "unit": "B/s"}})"});
  run.attempt(0, "exited", run.record_of_drives(2, kSteady110));
  const Result result = judged(run).results.at(0);
  EXPECT_EQ(result.outcome, Outcome::inconclusive);
  EXPECT_TRUE(result.required);
  EXPECT_EQ(result.reason, "The record has bandwidth of a drive, and a node is judged.");
}

TEST(faults, a_figure_that_every_record_has_is_open_where_one_lacks_it_whether_or_not_the_machine_need_report) {
  constexpr const char* kUntold = R"({"probe": "checked", "scope": "cluster", "at": {"size": 1}, "when_told": true,
                                      "limit": {"at_least": 0.5, "unit": "B/s", "of": "derived:tcp_rate"}})";
  const Verdict verdict = verdict_of({kClean, kUntold}, {{"mismatches", {0.0}, kOne}, {"mismatches", {0.0}, kTwo}}, {});
  const Result& result = verdict.results.at(1);
  EXPECT_EQ(verdict.overall, Overall::incomplete) << verdict.reason;
  EXPECT_TRUE(result.required);
  EXPECT_EQ(result.outcome, Outcome::not_measured);
  EXPECT_EQ(result.reason, "No bandwidth was recorded.");
}

/// The verdict of three nodes whose only GPUs have these names, and serial numbers if any are given.
Verdict with_gpus(const std::vector<std::string>& gpus, const std::vector<std::string>& serials = {}) {
  MemoryRun run({R"({"scope": "gpu", "limit": {"at_least": 100, "unit": "B/s"}})"}, 3, {{"gpu", 1}});
  // The description of this probe has no serial; its program is not asked here.
  auto& description = run.plan.probes.at("disk").description;
  description.conditions.push_back({.name = "serial", .meaning = "of a GPU", .recorded = Recorded::if_reported});
  constexpr ConditionSpec kSerial[] = {if_reported("serial", "of a GPU")};
  ProbeSpec spec = fixture::kSpec;
  spec.conditions = kSerial;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    std::ostringstream out;
    Recorder recorder(out, spec,
                      {.probe = "disk",
                       .revision = 1,
                       .parameters = run.plan.steps.at(i).parameters,
                       .host = {{"name", run.plan.steps.at(i).nodes.front()}}});
    const Subject gpu = {"gpu", gpus[i]};
    recorder.measurement("bandwidth", Sampling{.samples = kSteady110, .warmup = {}, .stopped = "stable"}, gpu);
    if (i < serials.size()) recorder.condition("serial", serials[i], gpu);
    recorder.end({.status = Status::complete, .reason = ""});
    run.attempt(i, "exited", out.str());
  }
  return judged(run);
}

TEST(faults, one_gpu_on_two_nodes_is_refused) {
  EXPECT_EQ(with_gpus({"GPU-1", "GPU-2", "GPU-3"}).overall, Overall::accepted);
  const Verdict verdict = with_gpus({"GPU-1", "GPU-2", "GPU-1"});
  EXPECT_EQ(verdict.overall, Overall::incomplete);
  EXPECT_EQ(verdict.results.at(0).outcome, Outcome::error);
  EXPECT_EQ(verdict.results.at(1).outcome, Outcome::pass);
  EXPECT_EQ(verdict.results.at(2).reason, "The nodes n1 and n3 show the same gpu GPU-1: one of them was not measured.");
}

TEST(faults, one_gpu_of_amd_on_two_nodes_is_refused_by_its_uuid_or_the_serial_number_of_its_board) {
  const std::string one = "18ff74a1-0000-1000-80b2-5c8e2f91d4a7", two = "18ff74a1-0000-1000-80b2-5c8e2f91d4a8";
  const auto reason = [](const Verdict& verdict) { return verdict.results.at(2).reason; };
  EXPECT_EQ(reason(with_gpus({one, two, one})),
            "The nodes n1 and n3 show the same gpu " + one + ": one of them was not measured.");
  EXPECT_EQ(reason(with_gpus({"0000:0c:00.0", "0000:0c:00.0", "0000:0c:00.0"},
                             {"692251001124", "692251001125", "692251001124"})),
            "The nodes n1 and n3 show the same board of a GPU 692251001124: one of them was not measured.");
}

TEST(faults, names_that_say_no_hardware_are_no_twins) {
  for (const char* name :
       {"0000:0c:00.0", "18ff74a1-0000-1000-8000-000000000000", "GPU-XX", "GPU-", "GPU-0000000000000000"})
    EXPECT_EQ(with_gpus({name, name, name}, {"N/A", "N/A", "N/A"}).overall, Overall::accepted) << name;
}

TEST(faults, a_partition_is_not_a_second_drive) {
  MemoryRun run({R"({"scope": "drive", "limit": {"at_least": 100, "unit": "B/s"}})"}, 1, {{"drive", 2}});
  std::ostringstream out;
  Recorder recorder(
      out, fixture::kSpec,
      {.probe = "disk", .revision = 1, .parameters = run.plan.steps.front().parameters, .host = {{"name", "n1"}}});
  for (const char* name : {"nvme0n1", "nvme0n1p1"}) {
    recorder.measurement("bandwidth", Sampling{.samples = kSteady110, .warmup = {}, .stopped = "stable"},
                         {"drive", name});
  }
  recorder.end({.status = Status::complete, .reason = ""});
  run.attempt(0, "exited", out.str());
  const Verdict verdict = judged(run);
  EXPECT_EQ(verdict.overall, Overall::incomplete);
  EXPECT_EQ(verdict.results.at(2).reason, "1 subjects of kind drive measured; the design has 2.");
}

}  // namespace assay::judge::faults_test
