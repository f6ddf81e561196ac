// simulation_kind: plan, journal, records and evidence of a simulation say that they are one, and are refused
// elsewhere.
#include <gtest/gtest.h>

#include "orchestrator/judge/run_verdict.h"
#include "orchestrator/simulate/simulate.h"
#include "tests/unit/simulate/rehearsal.h"

namespace assay::simulate {
namespace {

TEST(simulation_kind, plan_and_journal_say_it_and_are_read_back) {
  const plan::Plan plan = plan_of({kAlone}, {.nodes = 3},
                                  {.faults = {{.node = "n00001", .other = "n00002", .factor = 0.5}},
                                   .dead = {"n00000"},
                                   .spread = {{"bandwidth", 0.01}}});
  const std::string text = plan::plan_text(plan);
  EXPECT_NE(text.find("\"kind_of_run\": \"simulated\""), std::string::npos);
  const auto again = plan::read_plan(text, "plan.json");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(plan::plan_text(*again), text);
  const auto run = simulate(plan, files::sha256(text));
  EXPECT_NE(run.journal_text.find("\"kind_of_run\":\"simulated\""), std::string::npos);
  const auto journal = judge::read_journal(run.journal_text, "journal.jsonl");
  ASSERT_TRUE(journal) << journal.error().text();
  EXPECT_TRUE(journal->simulated);
  EXPECT_EQ(journal->attempts.size(), run.journal.attempts.size());
  EXPECT_EQ(journal->attempts[0].evidence[0].sha256, run.journal.attempts[0].evidence[0].sha256);
}

TEST(simulation_kind, a_measured_plan_has_no_word_of_it) {
  plan::Plan plan = plan_of({kAlone}, {.nodes = 1});
  plan.simulation.reset();
  EXPECT_EQ(plan::plan_text(plan).find("simulat"), plan::plan_text(plan).find("simulated\""));  // the site's name alone
  EXPECT_EQ(plan::plan_text(plan).find("kind_of_run"), std::string::npos);
}

TEST(simulation_kind, the_word_alone_and_the_inputs_alone_are_refused_in_a_plan) {
  const std::string text = plan::plan_text(plan_of({kAlone}, {.nodes = 2}));
  auto document = nlohmann::json::parse(text);
  document.erase("kind_of_run");
  EXPECT_FALSE(plan::read_plan(document.dump(1) + "\n", "plan.json"));
  document = nlohmann::json::parse(text);
  document.erase("simulation");
  EXPECT_FALSE(plan::read_plan(document.dump(1) + "\n", "plan.json"));
}

TEST(simulation_kind, a_journal_of_an_unknown_kind_is_refused) {
  std::string text = simulate(plan_of({kAlone}, {.nodes = 1}), "digest").journal_text;
  text.replace(text.find("simulated\"}"), 9, "rehearsed");
  const auto journal = judge::read_journal(text, "journal.jsonl");
  ASSERT_FALSE(journal);
  EXPECT_NE(journal.error().what.find("unknown kind_of_run \"rehearsed\""), std::string::npos)
      << journal.error().text();
}

TEST(simulation_kind, plan_and_journal_must_be_of_one_kind) {
  plan::Plan plan = plan_of({kAlone}, {.nodes = 1});
  judge::Journal journal;
  ASSERT_TRUE(judge::check_kind(plan, journal));
  EXPECT_EQ(judge::check_kind(plan, journal)->what, "is of a simulation, and its neighbour is not");
  journal.simulated = true;
  EXPECT_FALSE(judge::check_kind(plan, journal));
  plan.simulation.reset();
  EXPECT_TRUE(judge::check_kind(plan, journal));
}

TEST(simulation_kind, made_up_records_are_refused_in_a_measured_run) {
  const plan::Plan simulated = plan_of({kAlone}, {.nodes = 1});
  const auto run = simulate(simulated, "digest");
  const auto evidence = simulated_evidence(simulated, run.journal);
  plan::Plan measured = simulated;
  measured.simulation.reset();
  judge::Journal journal = run.journal;
  journal.simulated = false;
  const judge::Verdict verdict = judge::judge(measured, "digest", journal, evidence);
  EXPECT_EQ(verdict.results.at(0).outcome, judge::Outcome::error);
  EXPECT_NE(verdict.results.at(0).reason.find("the record is made up by a simulation"), std::string::npos)
      << verdict.results.at(0).reason;
}

TEST(simulation_kind, measured_records_are_refused_in_a_simulation) {
  fixture::MemoryRun run({R"({"limit": {"at_least": 100, "unit": "B/s"}})"});
  run.attempt(0, "exited", run.record("n1", std::vector<double>(10, 110.0)));
  run.plan.simulation = plan::Simulation{};
  const judge::Verdict verdict = judge::judge(run.plan, "digest", run.journal, run.reader());
  EXPECT_NE(verdict.results.at(0).reason.find("the record was measured, and the run is a simulation"),
            std::string::npos)
      << verdict.results.at(0).reason;
}

TEST(simulation_kind, a_journal_that_says_it_is_enough_for_no_acceptance) {
  fixture::MemoryRun run({R"({"limit": {"at_least": 100, "unit": "B/s"}})"});
  run.attempt(0, "exited", run.record("n1", std::vector<double>(10, 110.0)));
  run.journal.simulated = true;
  const judge::Verdict verdict = judge::judge(run.plan, "digest", run.journal, run.reader());
  EXPECT_EQ(verdict.overall, judge::Overall::incomplete);
  const auto read = judge::read_verdict(judge::verdict_text(verdict), "verdict.json");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_TRUE(read->simulated);
}

TEST(simulation_kind, evidence_of_another_digest_is_refused) {
  const plan::Plan plan = plan_of({kAlone}, {.nodes = 1});
  auto file = simulate(plan, "digest").journal.attempts[0].evidence.at(0);
  file.sha256 = std::string(64, '0');
  const auto bytes = simulated_evidence(plan, {})(file);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().what, "is not the record that was journalled");
  file.path = "records/../plan.json";
  EXPECT_EQ(simulated_evidence(plan, {})(file).error().what, "is not a record that a simulation makes");
}

}  // namespace
}  // namespace assay::simulate
