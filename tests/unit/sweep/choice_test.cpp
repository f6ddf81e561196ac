// The choice of tonight's probes, and that a sweep's profile requires nothing.
#include "orchestrator/sweep/choice.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "orchestrator/plan/catalogue.h"
#include "orchestrator/sweep/ledger.h"

namespace assay::sweep {
namespace {

Candidate candidate(const char* id, double cost_s, std::size_t figures = 1, int nights = 1) {
  return {.requirements = {id},
          .cost_s = cost_s,
          .figures = figures,
          .nights_since = nights,
          .is_check = std::string(id).starts_with("idle.")};
}

/// Every probe of this version as the catalogue describes it.
std::vector<plan::Program> known_programs() {
  std::vector<plan::Program> programs;
  for (const auto& probe : plan::known_probes()) {
    std::erase_if(programs,
                  [&](const plan::Program& one) { return one.name == probe.name; });  // the last is the newest
    const auto description = read_description(probe.document.dump(), probe.name);
    programs.push_back(
        {.name = probe.name, .sha256 = std::string(64, 'a'), .path = "", .description = description.value()});
  }
  return programs;
}

/// Two nodes of eight GPUs each.
site::Site two_nodes() {
  return site::read_site(R"({"schema": "assay.site/1", "name": "s", "nodes": [
    {"name": "n01", "launcher": "ssh", "parts": {"gpu": 8}}, {"name": "n02", "launcher": "ssh", "parts": {"gpu": 8}}]})",
                         "site")
      .value();
}

}  // namespace

TEST(Choice, the_most_figures_a_second_come_first_and_the_budget_holds) {
  const auto chosen = choose({candidate("dear", 100, 2), candidate("cheap", 5), candidate("rich", 20, 8)}, 30);
  EXPECT_EQ(chosen.only, (std::vector<std::string>{"rich", "cheap"}));
  EXPECT_EQ(chosen.left_out, (std::vector<std::string>{"dear"}));
  EXPECT_DOUBLE_EQ(chosen.cost_s, 25);
}

TEST(Choice, what_joins_more_nodes_than_a_job_has_is_left_out_whatever_it_yields) {
  std::vector<Candidate> all = {candidate("alone", 5), candidate("pair", 5, 9), candidate("group", 5, 99)};
  all[1].nodes = 2;
  all[2].nodes = 8;
  EXPECT_EQ(too_large(all, 2), (std::vector<std::string>{"group"}));
  EXPECT_EQ(choose(all, 30).only, (std::vector<std::string>{"pair", "alone"}));
  EXPECT_EQ(too_large(all, 1), (std::vector<std::string>{"pair"}));
}

TEST(Choice, the_checks_are_made_whatever_they_cost) {
  EXPECT_EQ(choose({candidate("idle.cpu", 50), candidate("cheap", 5)}, 10).only,
            (std::vector<std::string>{"idle.cpu"}));
}

TEST(Choice, what_was_left_out_gains_with_every_night_until_it_is_measured) {
  Ledger ledger;
  int waited = 0;
  for (; waited < 40; ++waited) {
    const Night tonight{std::chrono::days(20'000 + waited)};
    const auto chosen = choose(aged({candidate("dear", 60), candidate("cheap", 10)}, ledger, tonight), 65);
    ledger.sweeps.push_back(
        {.night = tonight, .sweep = std::to_string(waited), .requirements = chosen.only, .visits = {}});
    if (waited > 0 && std::ranges::find(chosen.only, "dear") != chosen.only.end()) break;
  }
  EXPECT_LE(waited, 8);
}

TEST(Choice, a_profile_of_a_sweep_requires_nothing_and_says_so) {
  for (const auto& [name, text] : plan::embedded_profiles()) {
    const auto read = plan::profile_named(name);
    ASSERT_TRUE(read) << name;
    const auto profile = as_sweep(*read);
    EXPECT_TRUE(profile.title.ends_with("(nightly sweep: never an acceptance)")) << name;
    EXPECT_LE(profile.title.size(), 200U) << name;
    for (const auto& one : profile.requirements) {
      EXPECT_FALSE(one.required) << name << " " << one.id;
      EXPECT_EQ(one.attempts, 1);
      EXPECT_EQ(one.more_attempts, 0);
    }
  }
}

TEST(Choice, every_nightly_profile_looks_for_others_before_and_after_and_requires_nothing_by_itself) {
  std::size_t nightly = 0;
  for (const auto& [name, text] : plan::embedded_profiles()) {
    if (!name.starts_with("nightly-")) continue;
    ++nightly;
    const auto profile = plan::profile_named(name);
    ASSERT_TRUE(profile) << name;
    const std::size_t checks = name.starts_with("nightly-gpu-") ? 2 : 1;
    EXPECT_EQ(idle_checks(*profile, false).size(), checks) << name;
    EXPECT_EQ(idle_checks(*profile, true).size(), checks) << name;
    EXPECT_TRUE(std::ranges::none_of(profile->requirements, &plan::Requirement::required)) << name;
  }
  EXPECT_EQ(nightly, 7U);
}

TEST(Choice, in_its_own_budget_every_nightly_profile_measures_more_than_its_checks) {
  for (const auto& [name, budget_s] : std::map<std::string, double>{{"nightly-2m", 120},
                                                                    {"nightly-5m", 300},
                                                                    {"nightly-15m", 900},
                                                                    {"nightly-gpu-2m", 120},
                                                                    {"nightly-gpu-5m", 300},
                                                                    {"nightly-gpu-15m", 900}}) {
    const auto profile = plan::profile_named(name);
    ASSERT_TRUE(profile) << name << ": " << profile.error().text();
    const auto plan = plan::make_plan(as_sweep(*profile), two_nodes(), known_programs(), {.localise = false});
    ASSERT_TRUE(plan) << name << ": " << plan.error().text();
    const auto chosen = choose(candidates_of(*plan), budget_s);
    EXPECT_LE(chosen.cost_s, budget_s) << name;
    EXPECT_GT(chosen.only.size(), 6U) << name;
    EXPECT_TRUE(chosen.left_out.empty() || name.find("gpu") != std::string::npos) << name;
  }
}

}  // namespace assay::sweep
