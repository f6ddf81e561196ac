// What a simulation leaves in a folder: a page that says so on every sheet, and a dossier that no verifier takes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/judge/run_verdict.h"
#include "orchestrator/simulate/simulate.h"
#include "reports/dossier/sign.h"
#include "reports/dossier/verify.h"
#include "reports/evidence/evidence_files.h"
#include "reports/page/render.h"
#include "tests/unit/fixture.h"
#include "tests/unit/run_fixture.h"

namespace assay::dossier {
namespace {

class SimulationDossierTest : public testing::Test {
 protected:
  void SetUp() override {
    plan::Plan plan = *plan::make_plan(fixture::profile({R"({"limit": {"at_least": 100, "unit": "B/s"}})"}),
                                       simulate::simulated_site({.nodes = 3}), fixture::programs(), {});
    plan.simulation = plan::Simulation{.seed = 1, .faults = {}};
    const std::string text = plan::plan_text(plan);
    const auto run = simulate::simulate(plan, files::sha256(text));
    fixture::write(run_ + "/plan.json", text);
    fixture::write(run_ + "/journal.jsonl", run.journal_text);
    fixture::write(run_ + "/verdict.json",
                   judge::verdict_text(judge::judge_run(plan, files::sha256(text), run.journal,
                                                        simulate::simulated_evidence(plan, run.journal))
                                           .value()));
  }

  [[nodiscard]] std::string page() const {
    const auto files = evidence::read_evidence_files(run_).value();
    return page::render_html(page::report_content(evidence::examine(files).value(), evidence::evidence_in(files), ""));
  }
  [[nodiscard]] SignRequest request() const {
    return {.run_directory = run_,
            .dossier = folder_.path() + "/dossier",
            .name = "Ada Example",
            .organisation = "",
            .issued_at = "2026-01-05T08:00:00.000Z"};
  }

  fixture::TemporaryFolder folder_;
  std::string run_ = folder_.path() + "/run";
  PrivateKey key_ = PrivateKey::from_seed(std::string(32, 'k')).value();
};

TEST_F(SimulationDossierTest, it_is_examined_without_a_record_on_disk) {
  const auto examined = evidence::examine(evidence::read_evidence_files(run_).value());
  ASSERT_TRUE(examined) << examined.error().text();
  EXPECT_TRUE(examined->verdict.simulated);
  EXPECT_EQ(examined->verdict.counts.at("pass"), 3U);
}

/// A verdict as assay.verdict/2 had it.
std::string in_old_form(const std::string& text) {
  nlohmann::json verdict = nlohmann::json::parse(text);
  verdict["schema"] = "assay.verdict/2";
  verdict.erase("knees");
  for (auto& result : verdict["results"]) result.erase("unchecked");
  for (auto& deviation : verdict["deviations"]) {
    deviation.erase("kind");
    deviation.erase("said");
  }
  return verdict.dump(1) + "\n";
}

TEST_F(SimulationDossierTest, a_verdict_of_an_earlier_version_is_compared_in_the_form_of_that_version) {
  const std::string old = in_old_form(read_file(run_ + "/verdict.json").value());
  fixture::write(run_ + "/verdict.json", old);
  const auto examined = evidence::examine(evidence::read_evidence_files(run_).value());
  ASSERT_TRUE(examined) << examined.error().text();
  EXPECT_EQ(examined->verdict_sha256, files::sha256(old));

  std::string edited = old;
  edited.replace(edited.find("\"pass\": 3"), 9, "\"pass\": 2");
  fixture::write(run_ + "/verdict.json", edited);
  const auto refused = evidence::examine(evidence::read_evidence_files(run_).value());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("/counts/pass is 2, should be 3"), std::string::npos) << refused.error().text();
}

TEST_F(SimulationDossierTest, a_verdict_with_the_fields_of_one_version_and_the_name_of_another_is_refused) {
  std::string text = read_file(run_ + "/verdict.json").value();
  text.replace(text.find("assay.verdict/4"), 15, "assay.verdict/2");
  fixture::write(run_ + "/verdict.json", text);
  EXPECT_FALSE(evidence::examine(evidence::read_evidence_files(run_).value()));
}

TEST_F(SimulationDossierTest, the_page_says_so_in_title_banner_footer_and_across_every_sheet) {
  const std::string html = page();
  for (const char* words :
       {"<title>SIMULATION of an acceptance test report", "<h1>SIMULATION of an acceptance test report</h1>",
        "<div class=\"word\">SIMULATION</div>", "<div class=\"watermark\">SIMULATION</div>",
        ".watermark { position: fixed;", "@bottom-left { content: \"SIMULATION of an acceptance test report"}) {
    EXPECT_NE(html.find(words), std::string::npos) << words;
  }
  EXPECT_EQ(html.find("<h1>Acceptance"), std::string::npos);
}

TEST_F(SimulationDossierTest, its_dossier_is_of_another_type_and_verification_refuses_it) {
  fixture::write(run_ + "/report.html", page());
  const auto made = make_dossier(request(), key_);
  ASSERT_TRUE(made) << made.error().text();
  const auto envelope = read_envelope(fixture::read(folder_.path() + "/dossier/" + kStatementFile), "e").value();
  EXPECT_NE(envelope.payload.find(fmt::format("\"predicateType\":\"{}\"", kSimulationType)), std::string::npos);
  EXPECT_NE(envelope.payload.find("\"kind\":\"simulated\""), std::string::npos);
  const auto verified = verify_dossier(folder_.path() + "/dossier", {key_.public_key()}, {});
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().where + ": " + verified.error().what,
            "statement.dsse.json: payload: predicateType: is a simulation, in which nothing was measured");
}

TEST_F(SimulationDossierTest, without_the_word_in_the_journal_it_is_refused) {
  std::string journal = fixture::read(run_ + "/journal.jsonl");
  const std::string word = ",\"kind_of_run\":\"simulated\"";
  journal.erase(journal.find(word), word.size());
  fixture::write(run_ + "/journal.jsonl", journal);
  const auto examined = evidence::examine(evidence::read_evidence_files(run_).value());
  ASSERT_FALSE(examined);
  EXPECT_TRUE(examined.error().what.starts_with("the time goes back from 2000-01-01T")) << "virtual time, step by step";
}

}  // namespace
}  // namespace assay::dossier
