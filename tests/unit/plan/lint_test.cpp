// What a profile may not leave open: faults that no requirement judges, limits that anything meets, references that
// lead to themselves or nowhere, and inherited limits that were loosened.
#include <gtest/gtest.h>

#include "orchestrator/plan/lint.h"
#include "orchestrator/plan/loosened.h"
#include "orchestrator/plan/plan.h"
#include "orchestrator/plan/profile_check.h"
#include "tests/unit/fixture.h"

namespace assay::plan {
namespace {

using fixture::profile_text;
using nlohmann::json;

constexpr const char* kFast = R"({"probe": "checked", "scope": "cluster", "limit": {"at_least": 100, "unit": "B/s"},
                                  "at": {"size": 1}})";

std::string faults_at(const std::string& at, const std::string& severity = "required") {
  return R"({"probe": "checked", "scope": "cluster", "metric": "mismatches", "statistic": "max", "repeat": {"n": 1},
             "limit": {"at_most": 0, "unit": "1"}, "at": )" +
         at + R"(, "severity": ")" + severity + R"("})";
}

std::string planning(const std::vector<std::string>& requirements, const PlanOptions& options = {}) {
  const auto plan = make_plan(fixture::profile(requirements), fixture::site(2), fixture::programs(), options);
  return plan ? "planned" : plan.error().text();
}

std::string read_error(const std::vector<std::string>& requirements, const json& more = json::object()) {
  json document = json::parse(profile_text(requirements));
  document.update(more);
  if (more.contains("relative_only") && more.at("relative_only").is_null()) document.erase("relative_only");
  const auto profile = read_profile(document.dump(), "p.json", [](const std::string&) { return std::nullopt; });
  return profile ? "read" : profile.error().text();
}

const json kStrict = {{"relative_only", nullptr}};

/// A profile that extends one with `base` as its requirements.
std::expected<Profile, InputError> child(const std::vector<std::string>& base, json more) {
  json document = {
      {"schema", "assay.profile/1"},  {"name", "child"}, {"title", "C"}, {"revision", 1}, {"extends", "base"},
      {"requirements", json::array()}};
  document.update(more);
  return read_profile(document.dump(), "child.json", [&](const std::string&) -> std::optional<std::string> {
    json text = json::parse(profile_text(base));
    text["name"] = "base";
    text["peaks"] = {
        {"fp16", {{"value", 989}, {"unit", "B/s"}, {"source", {{"document", "d"}, {"status", "sourced"}}}}}};
    return text.dump();
  });
}

json replaced(const char* base, const json& more) {
  json requirement = json::parse(profile_text({base})).at("requirements").at(0);
  requirement.update(more);
  return {{"requirements", json::array({requirement})}};
}

}  // namespace

TEST(lint, a_fault_of_a_planned_step_that_no_requirement_judges_is_refused) {
  const std::string error = planning({kFast});
  EXPECT_NE(error.find("profile p: mismatches of checked is judged by no requirement where r0 is measured"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find(R"("at": "every")"), std::string::npos);
}

TEST(lint, a_fault_must_be_judged_at_every_size) {
  EXPECT_NE(planning({kFast, faults_at(R"({"size": 1})")}).find("is not judged at every size"), std::string::npos);
  EXPECT_EQ(planning({kFast, faults_at(R"({"size": 1})"), faults_at(R"({"size": 2})")}), "planned");
  EXPECT_EQ(planning({kFast, faults_at(R"("every")")}), "planned");
  EXPECT_NE(planning({kFast, faults_at("{}")}).find("is not judged at every size"), std::string::npos);
}

TEST(lint, an_advisory_requirement_does_not_cover_a_required_one) {
  EXPECT_NE(planning({kFast, faults_at(R"("every")", "advisory")}).find("judged by no requirement"), std::string::npos);
}

TEST(lint, a_part_of_a_profile_may_leave_faults_out) {
  EXPECT_EQ(planning({kFast, faults_at(R"("every")")}, {.only = {"r0"}}), "planned");
}

constexpr const char* kOfMeters =
    R"({"probe": "power_feed", "during": "load_bank", "metric": "total_power", "scope": "rack", "limit": {"at_most": 1, "unit": "W"}})";
const json kFed = {{"companions", json::array({kSiteCompanion})}};

std::string metered_error(const json& more, const json& profile = kFed) {
  json requirement = json::parse(kOfMeters);
  requirement.update(more);
  return read_error({requirement.dump()}, profile);
}

TEST(lint, a_figure_of_meters_names_the_load_and_no_other_figure_does) {
  EXPECT_EQ(metered_error(json::object()), "read");
  json without = json::parse(kOfMeters);
  without.erase("during");
  EXPECT_NE(read_error({without.dump()}, kFed).find("requirements[0].during: is missing, and the scope is rack"),
            std::string::npos);
  EXPECT_NE(metered_error({{"probe", "disk"}, {"scope", "node"}})
                .find("requirements[0].during: is given, and the scope is node"),
            std::string::npos);
}

TEST(lint, a_figure_of_meters_is_read_by_the_companion_of_the_site) {
  constexpr const char* kWords = "requirements[0].probe: is judged of the site's meters, which power_feed reads";
  EXPECT_NE(metered_error({{"probe", "disk"}}).find(kWords), std::string::npos);
  EXPECT_NE(metered_error(json::object(), json::object()).find(kWords), std::string::npos);
}

TEST(lint, a_figure_of_meters_has_an_absolute_limit) {
  const json relative = {{"at_least", 0.9}, {"unit", "W"}, {"of", "fleet_median"}};
  EXPECT_NE(metered_error({{"limit", relative}}).find("is of the site's meters or switches, and has a relative limit"),
            std::string::npos);
}

TEST(lint, an_energy_efficiency_is_of_a_rack_and_of_no_single_feed) {
  const json efficiency = {{"metric", "energy_efficiency"}, {"limit", {{"at_least", 1}, {"unit", "FLOP/J"}}}};
  EXPECT_EQ(metered_error(efficiency), "read");
  json of_feed = efficiency;
  of_feed["scope"] = "feed";
  EXPECT_NE(metered_error(of_feed).find("requirements[0].scope: is feed, and energy_efficiency is of a rack"),
            std::string::npos);
}

TEST(lint, what_changes_settings_of_machines_is_planned_only_where_that_is_allowed) {
  const auto requirement = [](const std::string& word) {
    return R"({"parameters": {"allow_settings": ")" + word + R"("}, "limit": {"at_least": 1, "unit": "B/s"}})";
  };
  constexpr const char* kWords = "requirements[0].parameters.allow_settings: disk changes machine settings";
  EXPECT_NE(planning({requirement("yes"), kFast}).find(kWords), std::string::npos);
  EXPECT_NE(planning({requirement("yes"), kFast}).find("--allow-settings"), std::string::npos);
  EXPECT_EQ(planning({requirement("yes")}, {.allow_settings = true}).find(kWords), std::string::npos);
  EXPECT_EQ(planning({requirement("no")}).find(kWords), std::string::npos);
  const auto profile = fixture::profile({requirement("yes"), requirement("no")});
  EXPECT_TRUE(unallowed_settings(profile, {}));
  EXPECT_FALSE(unallowed_settings(profile, {"another"}));
}

TEST(lint, every_is_judged_by_the_worst) {
  EXPECT_NE(read_error({R"({"at": "every", "limit": {"at_least": 1, "unit": "B/s"}})"}).find("worst sample"),
            std::string::npos);
  EXPECT_EQ(read_error({R"({"at": "every", "statistic": "min", "limit": {"at_least": 1, "unit": "B/s"}})"}), "read");
  EXPECT_NE(read_error({R"({"at": "some", "statistic": "min", "limit": {"at_least": 1, "unit": "B/s"}})"})
                .find("requirements[0].at"),
            std::string::npos);
}

TEST(lint, a_share_of_itself_is_refused_also_through_others) {
  EXPECT_NE(read_error({R"({"limit": {"at_least": 0.9, "unit": "B/s", "of": "metric:bandwidth"}})"})
                .find("p.json: requirements[0].limit.of: is a share of bandwidth itself"),
            std::string::npos);
  EXPECT_NE(
      read_error({R"({"limit": {"at_least": 0.9, "unit": "B/s", "of": "metric:raw_bandwidth"}})",
                  R"({"metric": "raw_bandwidth", "limit": {"at_least": 1, "unit": "B/s", "of": "metric:bandwidth"}})"})
          .find("is a share of bandwidth itself, through other limits"),
      std::string::npos);
}

TEST(lint, an_upper_percentile_against_a_floor_is_refused) {
  for (const char* statistic : {"p95", "p99", "max"}) {
    const std::string text =
        fmt::format(R"({{"statistic": "{}", "limit": {{"at_least": 1, "unit": "B/s"}}}})", statistic);
    EXPECT_NE(read_error({text}).find("requirements[0].statistic"), std::string::npos) << statistic;
  }
  for (const char* statistic : {"p01", "p05", "min"}) {
    const std::string text =
        fmt::format(R"({{"statistic": "{}", "limit": {{"at_most": 1, "unit": "B/s"}}}})", statistic);
    EXPECT_NE(read_error({text}).find("requirements[0].statistic"), std::string::npos) << statistic;
  }
}

TEST(lint, a_peak_whose_unit_changes_under_an_inherited_limit_is_refused) {
  const auto profile = child(
      {R"({"limit": {"at_least": 0.7, "unit": "B/s", "of": "peak:fp16"}})"},
      {{"peaks", {{"fp16", {{"value", 989}, {"unit", "W"}, {"source", {{"document", "d"}, {"status", "sourced"}}}}}}}});
  ASSERT_FALSE(profile);
  EXPECT_NE(profile.error().text().find("requirement r0.limit.unit: 'B/s', but peak 'fp16' is in 'W'"),
            std::string::npos)
      << profile.error().text();
}

TEST(lint, what_only_the_machines_themselves_set_needs_something_absolute_beside_it) {
  constexpr const char* kBest = R"({"limit": {"at_least": 0.75, "unit": "B/s", "of": "best_sample"}})";
  constexpr const char* kAbsolute = R"({"limit": {"at_least": 100, "unit": "B/s"}})";
  EXPECT_NE(read_error({kBest}, kStrict).find("a uniformly slow fleet would pass"), std::string::npos);
  EXPECT_EQ(read_error({kBest, kAbsolute}, kStrict), "read");
  EXPECT_EQ(read_error({kBest}, {{"relative_only", "the design is not known"}}), "read");
  EXPECT_NE(read_error({kBest, R"({"severity": "advisory", "limit": {"at_least": 100, "unit": "B/s"}})"}, kStrict)
                .find("a uniformly slow fleet would pass"),
            std::string::npos);
}

TEST(lint, a_derived_figure_is_of_a_closed_list_and_of_its_unit) {
  EXPECT_NE(read_error({R"({"limit": {"at_least": 0.5, "unit": "B/s", "of": "derived:memory_rat"}})"})
                .find("there is no derived figure 'memory_rat'\nhint: did you mean 'memory_rate'?"),
            std::string::npos);
  EXPECT_NE(read_error({R"({"limit": {"at_least": 0.5, "unit": "1", "of": "derived:memory_rate"}})"})
                .find("derived figure 'memory_rate' is in 'B/s'"),
            std::string::npos);
  EXPECT_NE(planning({R"({"limit": {"at_least": 0.5, "unit": "B/s", "of": "derived:memory_rate"}})"})
                .find("needs the record of health_inventory"),
            std::string::npos);
  EXPECT_NE(planning({R"({"limit": {"at_least": 0.5, "unit": "B/s", "of": "derived:tcp_rate"}})"})
                .find("disk records no 'link_speed_max'"),
            std::string::npos);
}

TEST(loosened, every_inherited_limit_that_became_easier_is_listed) {
  constexpr const char* kBase = R"({"limit": {"at_least": 100, "unit": "B/s"}, "repeat": {"n": 20},
      "conditions": [{"name": "direct_io", "equals": true}, {"name": "cpu_steal", "at_most": 0.1}]})";
  json change = replaced(kBase, {{"limit", {{"at_least", 1e-9}, {"unit", "B/s"}}},
                                 {"severity", "advisory"},
                                 {"repeat", {{"n", 6}}},
                                 {"conditions", json::array({{{"name", "cpu_steal"}, {"at_most", 0.5}}})}});
  change["decision"] = {{"guard_factor", 0}};
  const auto profile = child({kBase}, change);
  ASSERT_TRUE(profile) << profile.error().text();
  std::vector<std::string> what;
  for (const auto& one : profile->loosened) {
    what.push_back(one.what);
    EXPECT_EQ(one.base, "base");
  }
  EXPECT_EQ(what, (std::vector<std::string>{"decision.guard_factor", "limit.at_least", "conditions.direct_io",
                                            "conditions.cpu_steal", "severity", "repeat.n"}));
  EXPECT_EQ(words_of_loosened(profile->loosened[1]),
            "The profile asks less than base, which it extends: r0: limit.at_least is 1e-09 instead of 100.0.");
  const auto again = read_profile(to_json(*profile).dump(), "again", [](const std::string&) { return std::nullopt; });
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->loosened, profile->loosened);
}

TEST(loosened, a_smaller_scatter_a_higher_ceiling_and_attempts_set_aside_are_listed) {
  constexpr const char* kBase = R"({"limit": {"at_least": 100, "unit": "B/s"},
      "reproducibility": {"u": 0.01, "source": {"document": "d", "status": "sourced"}},
      "ceiling": {"value": 200, "source": {"document": "d", "status": "sourced"}},
      "conditions": [{"name": "cpu_steal", "at_most": 0.1}]})";
  const auto changed = [&](const char* field, const char* within, const json& value) {
    json own = json::parse(kBase).at(field);
    (own.is_array() ? own.at(0) : own)[within] = value;
    const auto profile = child({kBase}, replaced(kBase, {{field, own}}));
    EXPECT_TRUE(profile) << profile.error().text();
    if (!profile || profile->loosened.size() != 1) return std::string();
    const Loosened& one = profile->loosened.front();
    return one.what + " " + one.from + " -> " + one.to;
  };
  EXPECT_EQ(changed("reproducibility", "u", 0.0001), "reproducibility 0.01 -> 0.0001");
  EXPECT_EQ(changed("reproducibility", "u", 0.02), "");
  EXPECT_EQ(changed("ceiling", "value", 300), "ceiling 200.0 -> 300.0");
  EXPECT_EQ(changed("ceiling", "value", 150), "");
  EXPECT_EQ(changed("conditions", "surroundings", true), "conditions.cpu_steal.surroundings false -> true");
}

TEST(loosened, a_knee_at_fewer_nodes_is_listed) {
  constexpr const char* kBase = R"({"probe": "fabric", "scope": "group", "by": "growing",
      "limit": {"at_least": 0.9, "unit": "B/s", "of": "smallest_group"}})";
  const auto profile = child({kBase}, replaced(kBase, {{"knee", {{"at_least", 24}}}}));
  ASSERT_TRUE(profile) << profile.error().text();
  ASSERT_EQ(profile->loosened.size(), 1U);
  EXPECT_EQ(words_of_loosened(profile->loosened[0]),
            "The profile asks less than base, which it extends: r0: knee.at_least is 24 instead of all nodes.");
  const auto all = child({kBase}, replaced(kBase, {{"knee", json::object()}}));
  EXPECT_TRUE(all->loosened.empty());
}

TEST(loosened, what_became_stricter_is_not_listed_and_a_plan_may_not_bring_its_own_list) {
  constexpr const char* kBase = R"({"limit": {"at_least": 100, "unit": "B/s"}})";
  const auto stricter = child({kBase}, replaced(kBase, {{"limit", {{"at_least", 200}, {"unit", "B/s"}}}}));
  ASSERT_TRUE(stricter) << stricter.error().text();
  EXPECT_TRUE(stricter->loosened.empty());
  const auto forged = child({kBase}, {{"loosened", json::array()}});
  ASSERT_FALSE(forged);
  EXPECT_NE(forged.error().text().find("child.json: loosened"), std::string::npos);
}

/// A profile that extends `names` of these: "base" has r0 and r1 at 100 B/s, "other" r1 at 50 B/s and r2, "same" is
/// base.
std::expected<Profile, InputError> heir(const json& names, json requirements) {
  const json document = {{"schema", "assay.profile/1"},
                         {"name", "heir"},
                         {"title", "H"},
                         {"revision", 1},
                         {"extends", names},
                         {"requirements", std::move(requirements)}};
  return read_profile(document.dump(), "heir.json", [](const std::string& name) -> std::optional<std::string> {
    constexpr const char* kHundred = R"({"limit": {"at_least": 100, "unit": "B/s"}, "parameters": {"size": "4KiB"},
        "conditions": [{"name": "direct_io", "equals": true}, {"name": "cpu_steal", "at_most": 0.1}]})";
    constexpr const char* kFifty = R"({"limit": {"at_least": 50, "unit": "B/s"}})";
    json text =
        json::parse(name == "other" ? profile_text({kFifty, kFifty, kFifty}) : profile_text({kHundred, kHundred}));
    if (name == "other") text.at("requirements").erase(0);
    text["name"] = name;
    return text.dump();
  });
}

TEST(inherit, of_several_profiles_the_later_ones_count_and_what_one_asks_less_is_listed) {
  const auto profile = heir({"base", "other"}, json::array());
  ASSERT_TRUE(profile) << profile.error().text();
  ASSERT_EQ(profile->requirements.size(), 3U);
  EXPECT_EQ(profile->requirements[0].limit.at_least, 100);
  EXPECT_EQ(profile->requirements[1].limit.at_least, 50);
  EXPECT_EQ(profile->requirements[2].id, "r2");
  ASSERT_FALSE(profile->loosened.empty());
  EXPECT_EQ(words_of_loosened(profile->loosened[0]),
            "The profile asks less than base, which it extends: r1: limit.at_least is 50.0 instead of 100.0.");
  const auto twice = heir({"base", "same"}, json::array());
  ASSERT_TRUE(twice) << twice.error().text();
  EXPECT_TRUE(twice->loosened.empty());
  EXPECT_NE(heir({"base", "other", "same", "base", "other"}, json::array()).error().text().find("extends"),
            std::string::npos);
}

TEST(inherit, of_several_profiles_a_stated_number_of_parts_counts_and_another_peak_is_listed) {
  const auto of = [](const json& first, const json& second) {
    const json document = {
        {"schema", "assay.profile/1"},  {"name", "heir"}, {"title", "H"}, {"revision", 1}, {"extends", {"a", "b"}},
        {"requirements", json::array()}};
    return read_profile(document.dump(), "heir.json", [&](const std::string& name) -> std::optional<std::string> {
      json text = json::parse(profile_text({R"({"limit": {"at_least": 100, "unit": "B/s"}})"}));
      text["name"] = name;
      text.update(name == "a" ? first : second);
      return text.dump();
    });
  };
  const auto gpus = of({{"node", {{"gpu", 8}}}}, {{"node", {{"gpu", "site"}}}});
  ASSERT_TRUE(gpus) << gpus.error().text();
  EXPECT_EQ(gpus->per_node.at("gpu"), 8);
  EXPECT_TRUE(gpus->loosened.empty());
  const auto peak = [](double value) {
    const json source = {{"document", "d"}, {"status", "sourced"}};
    return json{{"peaks", {{"link", {{"value", value}, {"unit", "B/s"}, {"source", source}}}}}};
  };
  const auto peaks = of(peak(1e12), peak(1e9));
  ASSERT_TRUE(peaks) << peaks.error().text();
  EXPECT_EQ(peaks->peaks.at("link").value, 1e9);
  ASSERT_EQ(peaks->loosened.size(), 1U);
  EXPECT_EQ(peaks->loosened[0].what, "peaks.link");
  EXPECT_TRUE(of(peak(1e12), peak(1e12))->loosened.empty());
}

TEST(inherit, a_requirement_like_another_has_its_fields_and_its_parameters_and_conditions_by_name) {
  const auto profile = heir("base", {{{"id", "r0"}, {"like", "r0"}, {"limit", {{"at_least", 200}, {"unit", "B/s"}}}},
                                     {{"id", "new"},
                                      {"like", "r0"},
                                      {"title", "Another size"},
                                      {"parameters", {{"direction", "read"}}},
                                      {"conditions", {{{"name", "cpu_steal"}, {"at_most", 0}}}}}});
  ASSERT_TRUE(profile) << profile.error().text();
  EXPECT_TRUE(profile->loosened.empty());
  ASSERT_EQ(profile->requirements.size(), 3U);
  EXPECT_EQ(profile->requirements[0].conditions.size(), 2U);
  const Requirement& added = profile->requirements[2];
  EXPECT_EQ(added.title, "Another size");
  EXPECT_EQ(added.limit.at_least, 200);
  EXPECT_EQ(assay::to_json(added.parameters).dump(), R"({"direction":"read","size":"4KiB"})");
  ASSERT_EQ(added.conditions.size(), 2U);
  EXPECT_EQ(added.conditions[0].name, "direct_io");
  EXPECT_EQ(added.conditions[1].at_most, 0);
}

TEST(inherit, a_requirement_like_one_that_there_is_not_is_refused) {
  const auto profile = heir("base", {{{"id", "new"}, {"like", "r9"}}});
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().text(),
            "heir.json: requirements[0].like: there is no requirement 'r9' before it or in a profile extended\n"
            "hint: did you mean 'r0'?");
}

TEST(inherit, a_longer_load_is_no_looser_and_a_shorter_one_is) {
  constexpr const char* kBase =
      R"({"limit": {"at_least": 100, "unit": "B/s"}, "parameters": {"load_least": "60s", "size": "4KiB"}})";
  const auto with = [&](const char* load, const char* size) {
    const auto profile = child({kBase}, replaced(kBase, {{"parameters", {{"load_least", load}, {"size", size}}}}));
    return profile ? profile->loosened.size() : 99;
  };
  EXPECT_EQ(with("2min", "4KiB"), 0U);
  EXPECT_EQ(with("59s", "4KiB"), 1U);
  EXPECT_EQ(with("2min", "8KiB"), 1U);
}

}  // namespace assay::plan
