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

TEST(plan, what_must_be_inconclusive_for_want_of_samples_is_refused) {
  constexpr Parameter kSampled[] = {
      {.name = "max_samples", .unit = "1", .fallback = "50", .quick = "5", .meaning = "samples at most"}};
  ProbeSpec spec = fixture::kSpec;
  spec.parameters = kSampled;
  auto programs_with = programs();
  programs_with[0].description = *read_description(describe(spec).dump(), "disk");
  const auto error_of = [&](const char* requirement, bool quick = false) {
    const auto plan = make_plan(fixture::profile({requirement}), fixture::site(1), programs_with, {.quick = quick});
    return plan ? "planned" : plan.error().text();
  };
  constexpr const char* kSixty =
      R"({"parameters": {"max_samples": 50}, "repeat": {"n": 60}, "limit": {"at_least": 1, "unit": "B/s"}})";
  EXPECT_EQ(error_of(kSixty),
            "profile p: requirements[0].repeat.n: demands 60 samples, and max_samples allows 50\n"
            "hint: raise max_samples, or demand fewer: the result would be inconclusive for certain");
  EXPECT_EQ(
      error_of(R"({"statistic": "p99", "limit": {"at_most": 1, "unit": "B/s"}})"),
      "profile p: requirements[0].statistic: 50 samples, as max_samples and attempts allow, are too few for an "
      "interval "
      "of the p99 at 95 % confidence\n"
      "hint: raise max_samples or attempts, or judge another statistic: the result would be inconclusive for certain");
  EXPECT_EQ(error_of(R"({"repeat": {"n": 60}, "limit": {"at_least": 1, "unit": "B/s"}})"), "planned")
      << "where max_samples is left open, as many are asked for as are demanded";
  EXPECT_EQ(error_of(kSixty, true), "planned") << "a rehearsal judges nothing";
}

TEST(profile, a_unit_that_is_no_base_unit_is_named_with_its_place) {
  EXPECT_EQ(profile_error(profile_text({kGood, R"({"limit": {"at_least": 450, "unit": "GB/s"}})"})),
            "p.json: requirements[1].limit.unit: 'GB/s' is not one of s, B, B/s, FLOP/s, FLOP/J, W, W/s, J, V, A, VA, "
            "degC, K, Pa, m3/s, Hz, 1/s, 1\n"
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
  EXPECT_NE(profile_error(profile_text({R"({"limit": {"at_least": 1, "unit": "B/s"}, "repeat": {"attempts": 11}})"}))
                .find("requirements[0].repeat.attempts"),
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

TEST(plan, what_is_asked_after_the_load_is_the_last_step_of_each_node_and_a_step_of_its_own) {
  const auto profile = fixture::profile({R"({"limit": {"at_least": 100, "unit": "B/s"}})", fixture::kPairs,
                                         R"({"limit": {"at_least": 100, "unit": "B/s"}, "after": true})"});
  const auto plan = make_plan(profile, fixture::site(2), programs(), {});
  ASSERT_TRUE(plan) << plan.error().text();
  std::vector<std::string> steps;
  for (const auto& step : plan->steps) steps.push_back(step.id + " " + step.requirements.front());
  EXPECT_EQ(steps, (std::vector<std::string>{"0001-disk-n1 r0", "0002-disk-n2 r0", "0003-fabric-n1--n2 r1",
                                             "0004-disk-n1 r2", "0005-disk-n2 r2"}));
  const auto again = read_plan(plan_text(*plan), "plan.json");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_TRUE(again->profile.requirements.back().after);
}

TEST(plan, a_step_takes_the_times_that_its_parameters_ask_for_at_least) {
  auto all = programs();
  auto& parameters = all.front().description.parameters;
  for (const char* name : {"warmup_least", "load_least"}) {
    parameters.push_back(parameters.front());
    parameters.back().name = name;
    parameters.back().unit = "s";
    parameters.back().fallback = parameters.back().quick = "0s";
    parameters.back().spent = 1;
  }
  const auto plan = make_plan(
      fixture::profile(
          {R"({"limit": {"at_least": 100, "unit": "B/s"}, "parameters": {"warmup_least": "30s", "load_least": "2min"}})"}),
      fixture::site(1), all, {});
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(plan->steps.front().typical_s, all.front().description.typical_s + 150);
  parameters.back().spent = 7;
  const auto seven = make_plan(
      fixture::profile({R"({"limit": {"at_least": 100, "unit": "B/s"}, "parameters": {"load_least": "2min"}})"}),
      fixture::site(1), all, {});
  ASSERT_TRUE(seven) << seven.error().text();
  EXPECT_EQ(seven->steps.front().typical_s, all.front().description.typical_s + 7 * 120);
  const auto rehearsal = make_plan(
      fixture::profile({R"({"limit": {"at_least": 100, "unit": "B/s"}, "parameters": {"load_least": "2min"}})"}),
      fixture::site(1), all, {.quick = true});
  ASSERT_TRUE(rehearsal) << rehearsal.error().text();
  EXPECT_EQ(rehearsal->steps.front().typical_s, all.front().description.typical_s);
}

TEST(profile, leaves_the_number_of_parts_to_the_site_in_one_word_and_no_other) {
  EXPECT_EQ(fixture::profile({kGood}, {{"gpu", kOfSite}}).per_node.at("gpu"), kOfSite);
  const auto node = [](const char* value) {
    auto text = profile_text({kGood});
    return text.replace(text.find(R"("node":{})"), 9, std::string(R"("node":{"gpu":)") + value + "}");
  };
  EXPECT_NE(profile_error(node(R"("any")")).find("p.json: node.gpu: 'any'"), std::string::npos)
      << profile_error(node(R"("any")"));
  EXPECT_NE(profile_error(node("0")).find("p.json: node.gpu: "), std::string::npos);
}

TEST(profile, a_node_has_as_many_parts_as_profile_or_site_say_and_a_pair_of_gpus_for_each_direction) {
  const auto profile = fixture::profile({kGood}, {{"gpu", kOfSite}, {"pair", kOfSite}, {"drive", 2}});
  auto node = fixture::site(1).nodes.front();
  EXPECT_EQ(designed_parts(profile, node, "gpu"), std::nullopt);
  EXPECT_EQ(designed_parts(profile, node, "drive"), 2);
  EXPECT_EQ(designed_parts(profile, node, "nic"), std::nullopt);
  node.parts = {{"gpu", 4}};
  EXPECT_EQ(designed_parts(profile, node, "gpu"), 4);
  EXPECT_EQ(designed_parts(profile, node, "pair"), 12);
}

TEST(site, tells_how_many_parts_a_node_has_and_writes_it_back) {
  const auto site = site::read_site(
      R"({"schema": "assay.site/1", "name": "s", "nodes": [{"name": "n1", "launcher": "local", "parts": {"gpu": 4}}]})",
      "s.json");
  ASSERT_TRUE(site) << site.error().text();
  EXPECT_EQ(site->nodes.front().parts.at("gpu"), 4);
  EXPECT_EQ(site::to_json(*site).at("nodes").at(0).at("parts").at("gpu"), 4);
  EXPECT_NE(site_error(R"([{"name": "n1", "launcher": "local", "parts": {"gpu": 0}}])").find("nodes[0].parts.gpu"),
            std::string::npos);
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

TEST(plan, one_with_too_many_cells_is_refused_before_they_are_made) {
  const std::vector<std::string> many(1000, fixture::kPairs);
  const auto plan = make_plan(fixture::profile(many), fixture::site(1000), programs(), {});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().text(),
            "profile p: requirements[4]: makes 2497500 cells of the plan, over 2000000\nhint: give `rounds`, or take "
            "requirements out");
}

TEST(plan, a_plan_without_its_steps_is_refused_from_their_number) {
  Plan plan = *make_plan(fixture::profile({fixture::kPairs}), fixture::site(4), programs(), {});
  plan.profile = fixture::profile(std::vector<std::string>(1000, fixture::kPairs));
  plan.site = fixture::site(1000);
  plan.steps.clear();
  plan.coverage.clear();
  plan.searches.clear();
  const auto read = read_plan(plan_text(plan), "plan.json");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().what, "makes 499500 cells of the plan, over 0");
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
