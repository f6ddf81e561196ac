// What the judge says of fault_resume's own records: a job that cannot go on, and one in which something was wrong.
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "orchestrator/judge/run_verdict.h"
#include "orchestrator/run/attempt.h"
#include "tests/unit/fixture.h"
#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"

namespace assay::train {
namespace {

using nlohmann::json;

const Description& resume() {
  static const auto kDescription =
      *read_description(run_probe({probe_file("fault_resume"), "--describe"}).out, "fault_resume");
  return kDescription;
}

/// One node that goes on after one rank is killed, with the requirements that every state is right and no other rank is
/// given up.
fixture::MemoryRun planned(const json& more) {
  json parameters = {{"seq", 16},       {"micro_batch", 1}, {"save_every", 2},
                     {"local", "/tmp"}, {"faults", "kill"}, {"phases", "forward"}};
  parameters.update(more);
  const std::string right = json{{"probe", "fault_resume"},
                                 {"metric", "mismatches"},
                                 {"parameters", parameters},
                                 {"at", "every"},
                                 {"statistic", "max"},
                                 {"repeat", {{"n", 1}}},
                                 {"limit", {{"at_most", 0}, {"unit", "1"}}}}
                                .dump();
  json losses = json::parse(right);
  losses["metric"] = "false_losses";
  fixture::MemoryRun run({R"({"limit": {"at_least": 100, "unit": "B/s"}})"});
  run.plan = plan::make_plan(fixture::profile({right, losses.dump()}), fixture::site(1),
                             {{.name = "fault_resume",
                               .sha256 = std::string(64, 'a'),
                               .path = probe_file("fault_resume"),
                               .description = resume()}},
                             {})
                 .value();
  return run;
}

judge::Verdict verdict_on(fixture::MemoryRun& run, const std::string& bytes) {
  const auto begin = json::parse(bytes.substr(0, bytes.find('\n')));
  run.journal.node_facts.at("n1") = {{"name", begin.at("start").at("host").at("name")}};
  run.attempt(0, "exited", bytes);
  return judge::judge(run.plan, "digest", run.journal, run.reader());
}

/// The record of fault_resume with the parameters of the planned step.
std::string record_for(const fixture::MemoryRun& run) {
  auto words = run::arguments_of(run.plan.steps.front().parameters);
  words.insert(words.begin(), probe_file("fault_resume"));
  return run_probe(words).out;
}

TEST(FaultVerdict, of_a_job_without_a_spare_is_incomplete_and_names_the_rank_and_how_it_was_lost) {
  auto run = planned({{"spares", 0}});
  const auto verdict = verdict_on(run, record_for(run));
  EXPECT_EQ(verdict.overall, judge::Overall::incomplete) << verdict.reason;
  ASSERT_EQ(verdict.results.size(), 2U);
  for (const auto& result : verdict.results) {
    EXPECT_EQ(result.outcome, judge::Outcome::error);
    EXPECT_EQ(result.reason,
              "Attempt 1 on n1: the probe failed: no spare is left for rank 0 (node 0, process 0), which was killed by "
              "signal 9 before "
              "it answered");
  }
}

TEST(FaultVerdict, accepts_a_job_that_went_on_and_rejects_it_by_kind_of_fault_where_one_rank_was_given_up_in_vain) {
  auto run = planned(json::object());
  const std::string bytes = record_for(run);
  auto other = run;
  const auto good = verdict_on(run, bytes);
  EXPECT_EQ(good.overall, judge::Overall::accepted) << good.reason;

  std::istringstream lines(bytes);
  std::string changed;
  for (std::string line; std::getline(lines, line);) {
    json one = json::parse(line);
    const auto found = one.find("measurement");
    if (found != one.end() && found->at("metric") == "false_losses" && found->at("at").at("fault") == "kill") {
      found->at("samples") = {2.0};
      line = one.dump();
    }
    changed += line + "\n";
  }
  const auto bad = verdict_on(other, changed);
  EXPECT_EQ(bad.overall, judge::Overall::rejected);
  EXPECT_EQ(bad.results.at(0).outcome, judge::Outcome::pass);
  EXPECT_EQ(bad.results.at(1).reason, "2 misses the limit of at most 0. Missed at fault kill (2).");
}

}  // namespace
}  // namespace assay::train
