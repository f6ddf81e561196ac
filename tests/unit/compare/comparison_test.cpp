// comparison: two runs of the fixture, the second with other figures, targets, probes or nodes.
#include "reports/compare/comparison.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "reports/compare/shown.h"
#include "tests/unit/run_fixture.h"

namespace assay::compare {
namespace {

class Compared : public testing::Test {
 protected:
  void SetUp() override {
    fixture::make_run(folder_.path() + "/run", fixture::Kind::accepted);
    for (auto* side : {&a_, &b_}) {
      auto loaded = dossier::open_run(folder_.path() + "/run", {});
      ASSERT_TRUE(loaded) << loaded.error().text();
      *side = std::move(*loaded);
    }
  }

  /// Gives the cells of a requirement as many attempts, each a thousandth above the one before.
  static void attempts(Side& side, const std::string& requirement, int count, double factor = 1) {
    for (auto& result : side.content.verdict.results) {
      if (result.requirement != requirement) continue;
      const double value = *result.value;
      result.each.clear();
      for (int i = 0; i < count; ++i) result.each.push_back(value * factor * (1 + 0.001 * i));
      result.value = median(result.each);
    }
  }
  static plan::Requirement& requirement(Side& side, const std::string& id) {
    return *std::ranges::find(side.content.run.plan.profile.requirements, id, &plan::Requirement::id);
  }
  [[nodiscard]] const RequirementPair& pair(const std::string& id) {
    all_ = compare(a_, b_, {});
    return *std::ranges::find(all_.requirements, id, &RequirementPair::id);
  }
  [[nodiscard]] bool is_noted(const std::string& words) {
    return std::ranges::any_of(notes_of(a_, b_),
                               [&](const auto& note) { return note.find(words) != std::string::npos; });
  }

  fixture::TemporaryFolder folder_;
  Side a_, b_;
  Comparison all_;
};

TEST_F(Compared, one_attempt_of_three_nodes_is_too_few) {
  attempts(b_, "memory.copy", 1, 0.5);
  EXPECT_EQ(pair("memory.copy").finding, Finding::too_few);
  EXPECT_NE(pair("memory.copy").reason.find("Too few"), std::string::npos);
}

TEST_F(Compared, three_attempts_of_three_nodes_show_what_none_of_them_shows_alone) {
  attempts(a_, "memory.copy", 3);
  attempts(b_, "memory.copy", 3, 0.95);
  const auto& one = pair("memory.copy");
  EXPECT_EQ(one.finding, Finding::worse);
  EXPECT_NEAR(*one.test.shift, 0.95, 1e-3);
  EXPECT_NEAR(one.test.p, 2.0 / 8000, 1e-12);
  for (const auto& cell : one.cells) EXPECT_EQ(cell.finding, Finding::too_few);
}

TEST_F(Compared, a_longer_latency_is_worse_and_a_shorter_one_better) {
  attempts(a_, "memory.latency", 5);
  attempts(b_, "memory.latency", 5, 1.1);
  EXPECT_EQ(pair("memory.latency").finding, Finding::worse);
  std::swap(a_, b_);
  EXPECT_EQ(pair("memory.latency").finding, Finding::better);
}

TEST_F(Compared, a_change_below_what_matters_is_small) {
  attempts(a_, "memory.copy", 5);
  attempts(b_, "memory.copy", 5, 1.006);
  EXPECT_EQ(pair("memory.copy").finding, Finding::small);
}

TEST_F(Compared, the_change_is_that_of_the_figures_that_are_shown) {
  attempts(a_, "memory.copy", 5);
  attempts(b_, "memory.copy", 5, 0.994);
  for (auto& result : b_.content.verdict.results)
    if (result.requirement == "memory.copy") *result.value *= 0.97 / 0.994;
  EXPECT_EQ(change_words(pair("memory.copy")), "-3.00 %");
  EXPECT_EQ(shift_words(pair("memory.copy").test, "B/s"), "-0.60 %");
  EXPECT_EQ(pair("memory.copy").finding, Finding::worse) << "what matters in the columns is not small";
  const auto table = comparison_table(all_, a_, b_, 0);
  EXPECT_NE(table.find("-3.00 %  -0.60 % ("), std::string::npos) << table;
  for (auto& result : b_.content.verdict.results)
    if (result.requirement == "memory.copy") *result.value *= 1.03 / 0.97;
  EXPECT_EQ(change_words(pair("memory.copy")), "+3.00 %");
  EXPECT_EQ(pair("memory.copy").finding, Finding::different);
}

TEST_F(Compared, numbers_have_the_digits_that_people_read) {
  attempts(a_, "memory.copy", 3, 1.0123456789);
  attempts(b_, "memory.copy", 3, 0.9);
  const auto all = compare(a_, b_, {});
  EXPECT_EQ(fixture::long_numbers(comparison_table(all, a_, b_, 0)), std::vector<std::string>());
  EXPECT_EQ(fixture::long_numbers(comparison_page(all, a_, b_)), std::vector<std::string>());
}

TEST_F(Compared, equal_figures_are_not_shown_to_differ) {
  attempts(a_, "memory.copy", 5);
  attempts(b_, "memory.copy", 5);
  EXPECT_EQ(pair("memory.copy").finding, Finding::not_shown);
}

TEST_F(Compared, one_number_everywhere_is_equal_and_not_too_few) {
  for (auto* side : {&a_, &b_}) {
    for (auto& result : side->content.verdict.results) {
      if (result.requirement == "memory.copy") result.each = {0, 0, 0};
    }
  }
  EXPECT_EQ(pair("memory.copy").finding, Finding::equal);
  b_.content.verdict.results[0].each = {1, 1, 1};
  EXPECT_NE(pair("memory.copy").finding, Finding::equal);
}

TEST_F(Compared, equal_fleets_are_found_to_differ_in_at_most_alpha_of_the_pairs) {
  constexpr int kPairs = 2000, kAttempts = 8;
  std::mt19937_64 random(1);  // NOLINT: the same runs each time
  std::normal_distribution<double> noise(1, 0.01);
  int found = 0;
  for (int i = 0; i < kPairs; ++i) {
    for (auto* side : {&a_, &b_}) {
      for (auto& result : side->content.verdict.results) {
        if (!result.value) continue;
        result.each.clear();
        for (int k = 0; k < kAttempts; ++k) result.each.push_back(noise(random));
        result.value = median(result.each);
      }
    }
    const auto differs = [](Finding one) { return one == Finding::worse || one == Finding::better; };
    const auto all = compare(a_, b_, {.alpha = 0.05, .smallest_change = 0});
    found += std::ranges::any_of(all.requirements, [&](const RequirementPair& one) {
      return differs(one.finding) || std::ranges::any_of(one.cells, differs, &CellPair::finding);
    });
  }
  const double noise_of_count = 2 * std::sqrt(0.05 * 0.95 * kPairs);
  EXPECT_LE(found, 0.05 * kPairs + noise_of_count);
  EXPECT_GE(found, 0.01 * kPairs) << "nothing can be found";
}

TEST_F(Compared, inconclusive_cells_are_left_out_and_counted) {
  attempts(a_, "memory.copy", 5);
  attempts(b_, "memory.copy", 5, 0.5);
  for (auto& result : b_.content.verdict.results) {
    if (result.requirement == "memory.copy" && result.node != "n01") result.outcome = judge::Outcome::inconclusive;
  }
  EXPECT_EQ(pair("memory.copy").left_out, 2U);
  EXPECT_EQ(pair("memory.copy").tested, 1U);
}

TEST_F(Compared, another_revision_of_the_probe_is_said_and_not_tested) {
  attempts(a_, "memory.copy", 5);
  attempts(b_, "memory.copy", 5, 0.5);
  b_.content.run.plan.probes.at("example_memory").description.revision = 4;
  EXPECT_EQ(pair("memory.copy").finding, Finding::not_compared);
  EXPECT_EQ(pair("memory.copy").reason,
            "The figures do not mean the same: example_memory is revision 3 in A and 4 in B.");
  EXPECT_TRUE(is_noted("example_memory is revision 3 in A and 4 in B"));
}

TEST_F(Compared, other_parameters_are_said_and_not_tested) {
  for (auto& step : b_.content.run.plan.steps) {
    Values larger = step.parameters;
    larger["size"] = std::int64_t{1} << 20;
    step.parameters = std::move(larger);
  }
  EXPECT_EQ(pair("memory.copy").finding, Finding::not_compared);
  EXPECT_NE(pair("memory.copy").reason.find("parameters of B beside A: /size"), std::string::npos);
}

TEST_F(Compared, a_simulated_run_is_never_tested_against_a_measured_one) {
  b_.content.run.plan.simulation.emplace();
  EXPECT_EQ(pair("memory.copy").reason,
            "The figures do not mean the same: one run is simulated and the other was measured.");
}

TEST_F(Compared, a_lower_limit_is_named_as_looser) {
  requirement(b_, "memory.copy").limit.at_least = 4e11;
  const auto all = compare(a_, b_, {});
  ASSERT_FALSE(all.targets.empty());
  EXPECT_EQ(all.targets.front(), "memory.copy: limit.at_least is 400.0 GB/s, expected 450.0 GB/s: LOOSER");
  EXPECT_TRUE(is_noted("the targets differ in 1 places"));
}

TEST_F(Compared, other_nodes_are_compared_as_two_groups) {
  for (auto& result : b_.content.verdict.results) {
    result.node = "m" + result.node;
    result.subject.id = result.node;
  }
  for (auto& node : b_.content.run.plan.site.nodes) node.name = "m" + node.name;
  EXPECT_EQ(pair("memory.copy").design, Design::subjects);
  EXPECT_EQ(pair("memory.copy").tested, 6U);
  EXPECT_TRUE(is_noted("only in A: n01, n02, n03"));
}

TEST_F(Compared, a_requirement_of_one_run_alone_is_listed) {
  std::erase_if(b_.content.run.plan.profile.requirements, [](const auto& one) { return one.id == "memory.latency"; });
  std::erase_if(b_.content.verdict.results, [](const auto& one) { return one.requirement == "memory.latency"; });
  EXPECT_EQ(pair("memory.latency").reason, "Only one of the runs has this requirement.");
}

TEST_F(Compared, the_same_run_and_an_unsigned_folder_are_said) {
  EXPECT_TRUE(is_noted("A and B are the same run"));
  EXPECT_TRUE(is_noted("A is the folder of a run, UNSIGNED"));
}

TEST_F(Compared, what_got_worse_is_listed_first) {
  auto& results = b_.content.verdict.results;
  auto& results_a = a_.content.verdict.results;
  results_a[0].outcome = judge::Outcome::fail;  // better in B
  results[1].outcome = judge::Outcome::fail;
  const auto all = compare(a_, b_, {});
  const auto changed = changed_outcomes(all);
  ASSERT_EQ(changed.size(), 2U);
  EXPECT_EQ(changed[0].second->b->outcome, judge::Outcome::fail);
}

TEST_F(Compared, the_page_loads_nothing_and_escapes_names) {
  a_.path = b_.path = "<script>";
  attempts(a_, "memory.copy", 3);
  attempts(b_, "memory.copy", 3, 0.9);
  const auto html = comparison_page(compare(a_, b_, {}), a_, b_);
  EXPECT_EQ(html.find("<script>"), std::string::npos);
  EXPECT_EQ(html.find("src="), std::string::npos);
  EXPECT_NE(html.find("NOT VERIFIED"), std::string::npos);
  EXPECT_NE(html.find("<svg"), std::string::npos);
}

}  // namespace
}  // namespace assay::compare
