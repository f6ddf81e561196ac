// The verdict on a terminal: what failed first, one line a requirement, no line wider than the terminal.
#include <gtest/gtest.h>

#include "orchestrator/files/terminal.h"
#include "orchestrator/judge/overall/ranking.h"
#include "orchestrator/judge/overall/verdict_table.h"

namespace assay::judge {
namespace {

Result cell(const std::string& requirement, const std::string& node, Outcome outcome, double value) {
  Result one;
  one.requirement = requirement;
  one.subject = {"node", node};
  one.node = node;
  one.step = "0001-probe-" + node;
  one.outcome = outcome;
  one.reason = outcome == Outcome::pass ? "Within the limit." : "Short of the limit on " + node + ".";
  one.unit = "B/s";
  one.value = value;
  one.limit_low = 100e6;
  one.acceptance_low = 102e6;
  return one;
}

/// 20 nodes: everything passes but the bandwidth of two; one requirement is left out.
Verdict fleet() {
  Verdict verdict;
  verdict.overall = Overall::rejected;
  verdict.reason = "38 of 40 required cells pass; 2 fail.";
  for (int i = 1; i <= 20; ++i) {
    const std::string node = "n" + std::to_string(i);
    verdict.results.push_back(cell("memory.triad", node, Outcome::pass, 200e6 + i));
  }
  for (int i = 1; i <= 20; ++i) {
    const std::string node = "n" + std::to_string(i);
    const bool slow = i == 5 || i == 7;
    verdict.results.push_back(
        cell("network.bandwidth.between.nodes", node, slow ? Outcome::fail : Outcome::pass, slow ? 10e6 * i : 150e6));
  }
  for (const char* id : {"storage.read", "storage.write"}) {
    Result left = cell(id, "n1", Outcome::not_measured, 0);
    left.value.reset();
    left.step.clear();
    left.required = false;
    left.reason = "left out by --only";
    verdict.results.push_back(left);
  }
  return verdict;
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t times = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

TEST(VerdictTable, has_one_line_a_requirement_and_failures_first) {
  const std::string text = verdict_table(fleet());
  const auto failed = text.find("network.bandwidth.between.nodes   18/20"), passed = text.find("memory.triad");
  ASSERT_NE(failed, std::string::npos) << text;
  EXPECT_LT(failed, passed);
  EXPECT_NE(text.find("50 MB/s"), std::string::npos) << "the worst value: " << text;
  EXPECT_EQ(count(text, "memory.triad"), 1U);
  EXPECT_EQ(count(text, "left out by --only"), 1U) << text;
  EXPECT_NE(text.find("left out by --only: storage.read, storage.write"), std::string::npos) << text;
}

TEST(VerdictTable, one_cause_of_many_pairs_is_one_line) {
  Verdict verdict;
  for (const char* other : {"n02", "n03", "n04"}) {
    Result one = cell("fabric.pairs", "n01", Outcome::error, 0);
    one.subject = {"pair", std::string("n01+") + other};
    one.value.reset();
    one.reason = std::string("the nodes n01 and ") + other + " are one machine";
    verdict.results.push_back(one);
  }
  const std::string text = verdict_table(verdict, {.width = 200});
  EXPECT_EQ(count(text, "are one machine"), 1U) << text;
  EXPECT_NE(text.find("n01+n04: the nodes n01 and n02 are one machine"), std::string::npos) << text;
}

TEST(VerdictTable, what_must_be_met_comes_first_and_what_only_warns_apart) {
  Verdict verdict = fleet();
  for (auto& result : verdict.results) {
    if (result.requirement == "memory.triad") result.required = false, result.outcome = Outcome::fail;
  }
  const std::string text = verdict_table(verdict);
  const auto required = text.find("\nnot passed:"), advisory = text.find("\nadvisory, only warns:");
  ASSERT_NE(required, std::string::npos) << text;
  ASSERT_NE(advisory, std::string::npos) << text;
  EXPECT_LT(required, advisory);
  EXPECT_LT(text.find("network.bandwidth.between.nodes on n5"), advisory);
  EXPECT_GT(text.find("memory.triad on n1"), advisory) << text;
}

TEST(VerdictTable, shows_every_cell_when_asked) {
  const std::string text = verdict_table(fleet(), {.every_cell = true});
  EXPECT_EQ(count(text, "\nmemory.triad"), 20U);
}

TEST(VerdictTable, no_line_is_wider_than_the_terminal) {
  for (const std::size_t width : {70U, 80U}) {
    std::string text = verdict_table(fleet(), {.width = width});
    for (std::size_t at = 0; at < text.size();) {
      const auto end = text.find('\n', at);
      EXPECT_LE(files::columns_of(text.substr(at, end - at)), width) << text.substr(at, end - at);
      at = end + 1;
    }
  }
}

TEST(VerdictTable, is_coloured_only_when_asked_and_a_nodes_own_escapes_never_reach_the_terminal) {
  Verdict verdict = fleet();
  verdict.results[24].reason = "\x1b[2Jgone";
  EXPECT_EQ(verdict_table(verdict).find('\x1b'), std::string::npos);
  const std::string text = verdict_table(verdict, {.colour = true});
  EXPECT_NE(text.find("\x1b[1;31mfail\x1b[0m"), std::string::npos) << text;
  EXPECT_NE(text.find("\x1b[32mpass\x1b[0m"), std::string::npos);
  EXPECT_EQ(text.find("\x1b[2J"), std::string::npos);
}

TEST(VerdictTable, what_several_steps_say_is_told_once) {
  Verdict verdict = fleet();
  for (int i = 1; i <= 9; ++i)
    verdict.deviations.push_back(
        {.what = "Attempt 1 on n" + std::to_string(i) + ": exited: power_sampler skip: no RAPL",
         .step = "000" + std::to_string(i),
         .kind = DeviationKind::attempt,
         .said = "exited: power_sampler skip: no RAPL"});
  const std::string text = verdict_table(verdict);
  EXPECT_EQ(count(text, "no RAPL"), 1U) << text;
  EXPECT_NE(text.find("deviation: 9 steps: exited: power_sampler skip: no RAPL"), std::string::npos) << text;
}

TEST(VerdictTable, what_a_machine_does_not_report_has_a_reason_only_where_every_cell_is_shown) {
  Verdict verdict = fleet();
  verdict.results[0].outcome = Outcome::not_measured;
  verdict.results[0].required = false;
  verdict.results[0].unchecked = true;
  verdict.results[0].reason = "Not checked: no SMBIOS";
  EXPECT_EQ(count(verdict_table(verdict), "no SMBIOS"), 0U);
  EXPECT_NE(verdict_table(verdict).find("--all"), std::string::npos);
  EXPECT_EQ(count(verdict_table(verdict, {.every_cell = true}), "no SMBIOS"), 1U);
}

TEST(VerdictTable, the_last_line_says_what_to_do_next) {
  const auto last = [](const Verdict& verdict) {
    const std::string text = verdict_table(verdict, {.width = 1000});
    const auto begin = text.rfind('\n', text.size() - 2) + 1;
    return text.substr(begin, text.size() - begin - 1);
  };
  Verdict verdict = fleet();
  EXPECT_EQ(last(verdict),
            "next     repair what is listed under `not passed`, first network.bandwidth.between.nodes on n5, then "
            "measure again.");
  verdict.overall = Overall::accepted;
  EXPECT_NE(last(verdict).find("hand over the dossier"), std::string::npos);
  verdict.overall = Overall::incomplete;
  EXPECT_NE(last(verdict).find("measure the whole profile without --quick"), std::string::npos) << "a rehearsal";
  for (auto& result : verdict.results) {
    if (result.outcome == Outcome::fail) result.outcome = Outcome::inconclusive;
  }
  EXPECT_NE(last(verdict).find("while nothing else uses n5; if network.bandwidth.between.nodes is open again"),
            std::string::npos);
  verdict.results[26].conditions =
      std::vector<ConditionSeen>{{.name = "power_limit_w", .demanded = ">= 690", .seen = Value{600.0}, .met = false}};
  EXPECT_NE(last(verdict).find("demands power_limit_w >= 690 on n7: see to that"), std::string::npos);
  verdict.results[24].set_aside = {{.attempt = 1, .reason = "busy"}};
  EXPECT_NE(last(verdict).find("stop other programs on n5"), std::string::npos);
  verdict = fleet();
  verdict.overall = Overall::incomplete;
  auto& one = verdict.results[24];
  auto& other = verdict.results[26];
  for (auto* result : {&one, &other}) result->outcome = Outcome::conditional_pass, result->value = 101e6;
  EXPECT_EQ(last(verdict),
            "next     measure again with more attempts, or on a quiet machine: 2 figures lie within the guard band of "
            "their limits.");
  other.value = 110e6;  // open for its samples, or as the only attempt
  EXPECT_NE(last(verdict).find("2 figures are not decided, 1 of them within the guard band of their limits."),
            std::string::npos);
  other.outcome = Outcome::pass;
  EXPECT_NE(last(verdict).find("machine: one figure lies within the guard band of its limit."), std::string::npos);
  other.outcome = Outcome::not_measured;
  EXPECT_NE(last(verdict).find("see the reason of network.bandwidth.between.nodes on n7: it says"), std::string::npos);
  other.step.clear();
  other.reason = "left out by --only";
  EXPECT_EQ(
      last(verdict),
      "next     measure the whole profile; network.bandwidth.between.nodes on n7 is not part of the plan: left out "
      "by --only");
  verdict.results.clear();
  EXPECT_NE(last(verdict).find("measure the whole profile"), std::string::npos);
  verdict.simulated = true;
  EXPECT_EQ(last(verdict).find("next"), std::string::npos);
}

TEST(VerdictTable, a_deviation_of_one_step_names_it) {
  Verdict verdict = fleet();
  verdict.deviations = {{.what = "Attempt 1 was set aside: busy.", .step = "0001-host_gemm-n01"},
                        {.what = "Quick parameters were used.", .step = ""}};
  const std::string text = verdict_table(verdict);
  EXPECT_NE(text.find("deviation: 0001-host_gemm-n01: Attempt 1 was set aside: busy."), std::string::npos) << text;
  EXPECT_NE(text.find("deviation: Quick parameters were used."), std::string::npos) << text;
}

TEST(Ranking, a_summary_counts_passes_and_names_the_worst) {
  const Verdict verdict = fleet();
  const auto all = summaries(verdict);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].requirement, "network.bandwidth.between.nodes");
  EXPECT_EQ(all[0].passed, 18U);
  EXPECT_EQ(all[0].open.size(), 2U);
  EXPECT_EQ(all[0].worst->node, "n5");
  EXPECT_EQ(all.back().requirement, "memory.triad") << "what passes comes last";
}

}  // namespace
}  // namespace assay::judge
