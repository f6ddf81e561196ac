// Profiles, sites and plans: what is read, and what is refused in which words.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orchestrator/plan/plan.h"
#include "profiles/embedded.h"
#include "tests/unit/fixture.h"

namespace assay::plan {
namespace {

using fixture::profile_text;
using fixture::programs;

constexpr const char* kGood = R"({"limit": {"at_least": 100, "unit": "B/s"}})";

std::string profile_error(const std::string& text) {
  const auto result = read_profile(text, "p.json", [](const std::string&) { return std::nullopt; });
  return result ? "accepted" : result.error().text();
}

std::string site_error(const std::string& nodes) {
  const auto result = site::read_site(R"({"schema": "assay.site/1", "name": "s", "nodes": )" + nodes + "}", "s.json");
  return result ? "accepted" : result.error().text();
}

std::string plan_error(const char* requirement) {
  const auto plan = make_plan(fixture::profile({requirement}), fixture::site(1), programs(), {});
  return plan ? "accepted" : plan.error().text();
}

}  // namespace

TEST(profile, a_unit_that_is_no_base_unit_is_named_with_its_place) {
  EXPECT_EQ(profile_error(profile_text({kGood, R"({"limit": {"at_least": 450, "unit": "GB/s"}})"})),
            "p.json: requirements[1].limit.unit: 'GB/s' is not one of s, B, B/s, FLOP/s, FLOP/J, W, J, Hz, 1/s, 1\n"
            "hint: write base units; 450 GB/s is 4.5e11 B/s");
}

TEST(profile, a_misspelt_field_gets_the_nearest_name) {
  EXPECT_EQ(profile_error(profile_text({R"({"limit": {"at_leats": 100, "unit": "B/s"}})"})),
            "p.json: requirements[0].limit: unknown field 'at_leats'\nhint: did you mean 'at_least'?");
}

TEST(profile, every_refusal_says_what_and_where) {
  EXPECT_NE(profile_error("{").find("p.json: line 1, column"), std::string::npos);
  EXPECT_NE(profile_error(R"({"schema": "x", "schema": "y"})").find("the key 'schema' is in one object twice"),
            std::string::npos);
  EXPECT_NE(profile_error(profile_text({R"({"limit": {"unit": "B/s"}})"})).find("requirements[0].limit"),
            std::string::npos);
  EXPECT_NE(profile_error(profile_text({R"({"limit": {"at_least": "100", "unit": "B/s"}})"}))
                .find("requirements[0].limit.at_least: '100' is not of type number"),
            std::string::npos);
  EXPECT_NE(profile_error(profile_text({R"({"limit": {"at_least": 2, "at_most": 1, "unit": "B/s"}})"}))
                .find("at_least is above at_most"),
            std::string::npos);
  EXPECT_NE(profile_error(profile_text({R"({"limit": {"at_least": 1, "unit": "B/s"}, "id": "r1"})", kGood}))
                .find("requirements[1].id: 'r1' is used twice"),
            std::string::npos);
  EXPECT_NE(profile_error(profile_text({R"({"limit": {"at_least": 0.8, "unit": "B/s", "of": "peak:hbm"}})"}))
                .find("there is no peak 'hbm'"),
            std::string::npos);
  EXPECT_NE(profile_error(profile_text({})).find("a profile that demands nothing"), std::string::npos);
  EXPECT_NE(profile_error(profile_text({R"({"limit": {"at_least": 1, "unit": "B/s"}, "repeat": {"looks": 9}})"}))
                .find("requirements[0].repeat.looks"),
            std::string::npos);
}

TEST(profile, a_limit_that_anything_meets_is_refused) {
  EXPECT_NE(profile_error(profile_text({R"({"limit": {"at_least": 0, "unit": "B/s"}})"}))
                .find("requirements[0].limit.at_least"),
            std::string::npos);
  EXPECT_NE(profile_error(profile_text({R"({"limit": {"at_least": -1, "unit": "B/s"}})"}))
                .find("requirements[0].limit.at_least"),
            std::string::npos);
  EXPECT_NE(profile_error(profile_text({R"({"limit": {"at_most": 1e300, "unit": "B/s"}})"}))
                .find("requirements[0].limit.at_most"),
            std::string::npos);
}

TEST(profile, a_figure_of_each_drive_needs_the_number_of_drives) {
  constexpr const char* kOfDrives = R"({"scope": "drive", "limit": {"at_least": 1, "unit": "B/s"}})";
  EXPECT_NE(profile_error(profile_text({kOfDrives}))
                .find("p.json: node: does not say how many subjects of kind drive a node has, and r0 requires a figure "
                      "of each"),
            std::string::npos);
  EXPECT_TRUE(
      fixture::profile({R"({"scope": "drive", "severity": "advisory", "limit": {"at_least": 1, "unit": "B/s"}})"})
          .per_node.empty());
  EXPECT_EQ(fixture::profile({kOfDrives}, {{"drive", 8}}).per_node.at("drive"), 8);
}

TEST(profile, an_unsourced_limit_cannot_be_required) {
  constexpr const char* kUnsourced =
      R"({"limit": {"at_least": 1, "unit": "B/s"}, "source": {"document": "hearsay", "status": "unsourced"}})";
  EXPECT_NE(profile_error(profile_text({kUnsourced})).find("a required limit is unsourced"), std::string::npos);
}

TEST(profile, an_extreme_that_one_lucky_sample_would_meet_is_refused) {
  EXPECT_NE(profile_error(profile_text({R"({"statistic": "max", "limit": {"at_least": 1, "unit": "B/s"}})"}))
                .find("one lucky sample"),
            std::string::npos);
}

TEST(profile, inherits_and_replaces_by_id) {
  const auto library = [](const std::string& name) -> std::optional<std::string> {
    if (name == "base") return profile_text({kGood, kGood});
    return std::nullopt;
  };
  const auto profile = read_profile(
      R"({"schema": "assay.profile/1", "name": "q", "title": "Q", "revision": 1, "extends": "base", "requirements": [
      {"id": "r1", "title": "Tighter", "probe": "disk", "metric": "bandwidth", "scope": "node", "limit": {"at_least": 200, "unit": "B/s"},
       "source": {"document": "d", "status": "sourced"}}]})",
      "q.json", library);
  ASSERT_TRUE(profile) << profile.error().text();
  ASSERT_EQ(profile->requirements.size(), 2U);
  EXPECT_EQ(*profile->requirements[1].limit.at_least, 200);
  EXPECT_FALSE(read_profile(
      R"({"schema": "assay.profile/1", "name": "q", "title": "Q", "revision": 1, "extends": "bass", "requirements": []})",
      "q.json", library));
  const auto other = read_profile(
      R"({"schema": "assay.profile/1", "name": "q", "title": "Q", "revision": 1, "extends": "base", "requirements": [
      {"id": "r1", "title": "Another", "probe": "disk", "metric": "mismatches", "scope": "node", "limit": {"at_most": 0, "unit": "1"},
       "source": {"document": "d", "status": "sourced"}}]})",
      "q.json", library);
  ASSERT_FALSE(other);  // a promise must not vanish behind another one of its name
  EXPECT_NE(other.error().text().find("requirements[0].id: 'r1' is the inherited figure bandwidth of disk"),
            std::string::npos);
}

TEST(profile, inheritance_in_a_circle_is_refused) {
  const std::string circle =
      R"({"schema": "assay.profile/1", "name": "q", "title": "Q", "revision": 1, "extends": "q", "requirements": []})";
  const auto result = read_profile(circle, "q.json", [&](const std::string&) { return circle; });
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().text().find("circle"), std::string::npos);
}

TEST(profile, every_embedded_profile_reads_and_writes_back_the_same) {
  ASSERT_FALSE(embedded_profiles().empty());
  for (const auto& [name, text] : embedded_profiles()) {
    const auto once = read_profile(text, name, embedded_profile);
    ASSERT_TRUE(once) << once.error().text();
    EXPECT_EQ(once->name, name);
    const auto twice = read_profile(to_json(*once).dump(), name, embedded_profile);
    ASSERT_TRUE(twice) << twice.error().text();
    EXPECT_EQ(to_json(*once), to_json(*twice));
  }
}

TEST(site, names_and_paths_keep_to_their_alphabet) {
  EXPECT_EQ(site_error(R"([{"name": "n1", "launcher": "local"}])"), "accepted");
  EXPECT_NE(site_error(R"([{"name": "n1; rm -rf /", "launcher": "ssh"}])").find("s.json: nodes[0].name"),
            std::string::npos);
  EXPECT_NE(
      site_error(R"([{"name": "n1", "launcher": "ssh", "address": "-oProxyCommand=x"}])").find("nodes[0].address"),
      std::string::npos);
  EXPECT_NE(site_error(R"([{"name": "n1", "launcher": "ssh", "directory": "/tmp/`id`"}])").find("nodes[0].directory"),
            std::string::npos);
  EXPECT_NE(site_error(R"([{"name": "n1", "launcher": "ssh", "directory": "/tmp/../etc"}])").find("has a '..'"),
            std::string::npos);
  EXPECT_NE(site_error(R"([{"name": "n1", "launcher": "local"}, {"name": "n1", "launcher": "local"}])")
                .find("nodes[1].name: 'n1' appears twice"),
            std::string::npos);
  EXPECT_NE(
      site_error(R"([{"name": "n1", "launcher": "rsh"}])").find("'rsh' is not one of local, ssh, slurm, kubernetes"),
      std::string::npos);
  EXPECT_NE(site_error(R"([{"name": "n1", "launcher": "local"}, {"name": "n2", "launcher": "local"}])")
                .find("appears twice, under two names"),
            std::string::npos);
  EXPECT_NE(site_error("[]").find("nodes"), std::string::npos);
}

TEST(plan, requirements_of_one_probe_and_parameters_share_a_step) {
  const auto plan =
      make_plan(fixture::profile({kGood, R"({"metric": "mismatches", "limit": {"at_most": 0, "unit": "1"}})",
                                  R"({"parameters": {"size": 8}, "limit": {"at_least": 1, "unit": "B/s"}})"}),
                fixture::site(2), programs(), {});
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(plan->steps.size(), 4U);
  EXPECT_EQ(plan->coverage.size(), 6U);
  EXPECT_EQ(plan->steps[0].requirements, (std::vector<std::string>{"r0", "r1"}));
  EXPECT_EQ(plan->coverage[0].step, plan->coverage[2].step);
}

TEST(plan, is_the_same_bytes_every_time_and_reads_back) {
  const auto plan = make_plan(fixture::profile({kGood}), fixture::site(2), programs(), {});
  const std::string text = plan_text(*plan);
  EXPECT_EQ(text, plan_text(*make_plan(fixture::profile({kGood}), fixture::site(2), programs(), {})));
  const auto again = read_plan(text, "plan.json");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(plan_text(*again), text);
}

TEST(plan, a_plan_edited_by_hand_is_refused) {
  std::string text = plan_text(*make_plan(fixture::profile({kGood}), fixture::site(1), programs(), {}));
  std::string spaced = text;
  spaced.insert(1, " ");
  EXPECT_FALSE(read_plan(spaced, "plan.json"));
  text.replace(text.find("0001-disk-n1"), 12, "../../../etc");
  EXPECT_FALSE(read_plan(text, "plan.json"));
}

TEST(plan, a_plan_whose_cells_are_not_those_of_its_profile_is_refused) {
  auto plan = *make_plan(fixture::profile({kGood, kGood}), fixture::site(2), programs(), {});
  plan.coverage.pop_back();
  EXPECT_NE(
      read_plan(plan_text(plan), "plan.json").error().text().find("not those that its profile, site and probes give"),
      std::string::npos);
  auto rehearsal = *make_plan(fixture::profile({kGood}), fixture::site(1), programs(), {.quick = true});
  rehearsal.quick = false;
  EXPECT_FALSE(read_plan(plan_text(rehearsal), "plan.json"));
}

TEST(plan, what_the_probe_does_not_have_is_refused_with_the_nearest) {
  EXPECT_EQ(plan_error(R"({"metric": "bandwith", "limit": {"at_least": 1, "unit": "B/s"}})"),
            "profile p: requirements[0].metric: disk measures no 'bandwith'\nhint: did you mean 'bandwidth'?");
  EXPECT_NE(plan_error(R"({"limit": {"at_least": 1, "unit": "s"}})")
                .find("limit.unit: 's', but bandwidth of disk is in 'B/s'"),
            std::string::npos);
  EXPECT_NE(
      plan_error(R"({"limit": {"at_least": 1, "unit": "B/s"}, "conditions": [{"name": "direct_oi", "equals": true}]})")
          .find("conditions[0].name: disk records no 'direct_oi'"),
      std::string::npos);
  EXPECT_NE(plan_error(R"({"limit": {"at_least": 1, "unit": "B/s"}, "parameters": {"sizes": 1}})")
                .find("parameters.sizes: disk has no such parameter"),
            std::string::npos);
}

TEST(plan, a_demand_for_more_samples_is_passed_on_to_a_probe_that_samples) {
  static constexpr ProbeSpec kSampled{.name = "disk",
                                      .sampled = true,
                                      .measures = "M.",
                                      .method = "M.",
                                      .source = "S.",
                                      .parameters = fixture::kParameters,
                                      .metrics = fixture::kMetrics,
                                      .conditions = fixture::kConditions};
  const std::vector<Program> sampled = {{.name = "disk",
                                         .sha256 = std::string(64, 'a'),
                                         .path = "/p/disk",
                                         .description = *read_description(describe(kSampled).dump(), "disk")}};
  const auto plan = make_plan(fixture::profile({R"({"limit": {"at_least": 1, "unit": "B/s"}, "repeat": {"n": 60}})"}),
                              fixture::site(1), sampled, {});
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(plan->steps[0].parameters.at("min_samples"), Value(std::int64_t{60}));
  EXPECT_EQ(plan->steps[0].parameters.at("max_samples"), Value(std::int64_t{60}));
}

TEST(plan, only_keeps_the_whole_profile_in_the_ledger_and_says_what_was_left_out) {
  const auto plan = make_plan(fixture::profile({kGood, kGood}), fixture::site(1), programs(), {.only = {"r1"}});
  EXPECT_EQ(plan->only, std::vector<std::string>{"r1"});
  EXPECT_EQ(plan->profile.requirements.size(), 2U);
  ASSERT_EQ(plan->coverage.size(), 2U);
  EXPECT_EQ(plan->coverage[0].reason, "left out by --only");
  EXPECT_EQ(plan->coverage[1].step, plan->steps.at(0).id);
  EXPECT_TRUE(read_plan(plan_text(*plan), "p")) << read_plan(plan_text(*plan), "p").error().text();
}

TEST(plan, only_refuses_an_unknown_id_and_all_ids_are_the_whole) {
  EXPECT_FALSE(make_plan(fixture::profile({kGood}), fixture::site(1), programs(), {.only = {"r9"}}));
  EXPECT_TRUE(make_plan(fixture::profile({kGood}), fixture::site(1), programs(), {.only = {"r0"}})->only.empty());
}

TEST(plan, one_of_another_planner_is_refused_with_the_version_that_made_it) {
  std::string text = plan_text(*make_plan(fixture::profile({kGood}), fixture::site(1), programs(), {}));
  const std::string ours = fmt::format("\"planner\": {}", kPlannerRevision);
  text.replace(text.find(ours), ours.size(), "\"planner\": 99");
  EXPECT_EQ(read_plan(text, "p").error().text(),
            fmt::format("p: was made by planner 99, this one is {}\nhint: judge and verify it with assay {}",
                        kPlannerRevision, ASSAY_VERSION));
}

}  // namespace assay::plan
