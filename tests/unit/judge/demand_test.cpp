// Requirements that judge a recorded condition: what meets them, what misses them, and what decides nothing.
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orchestrator/judge/overall/verdict_table.h"
#include "orchestrator/plan/loosened.h"
#include "tests/unit/judge/judged.h"

namespace assay::judge::demand_test {
namespace {

using fixture::MemoryRun;
using nlohmann::json;
using namespace test;

struct Said {
  Subject subject = {};
  Value value;
};

/// A requirement that demands `demand`, of direct_io unless it names another, with `more` of its members.
std::string demanding(const std::string& demand, const std::string& scope = "node", const json& more = json::object()) {
  json condition = {{"name", "direct_io"}};
  condition.update(json::parse(demand));
  json requirement = {{"scope", scope}, {"demand", condition}};
  requirement.update(more);
  return requirement.dump();
}

json document_of(const std::string& requirement) {
  return json::parse(fixture::profile_text({requirement}, {{"drive", 2}}));
}

std::expected<plan::Profile, InputError> read_document(const json& document) {
  return plan::read_profile(document.dump(), "p.json", [](const std::string&) { return std::nullopt; });
}

std::expected<plan::Profile, InputError> read(const std::string& requirement) {
  return read_document(document_of(requirement));
}

std::string refusal(const json& document) {
  const auto profile = read_document(document);
  if (!profile) return profile.error().text();
  const auto plan = plan::make_plan(*profile, fixture::site(1), fixture::programs(), {});
  return plan ? "planned" : plan.error().text();
}

/// A run of one node by that requirement, and an attempt for each of `attempts`.
MemoryRun run_of(const std::string& requirement, const std::vector<std::vector<Said>>& attempts) {
  MemoryRun run({requirement}, 1, {{"drive", 2}});
  EXPECT_EQ(run.plan.steps.at(0).attempts, 1);
  EXPECT_EQ(run.plan.steps.at(0).more_attempts, 0);
  run.plan.steps.at(0).attempts = static_cast<int>(attempts.size());  // as for another requirement of the step
  for (const auto& said : attempts) {
    std::ostringstream out;
    Recorder recorder(
        out, fixture::kSpec,
        {.probe = "disk", .revision = 1, .parameters = run.plan.steps.front().parameters, .host = {{"name", "n1"}}});
    recorder.measurement("mismatches", 0.0, {"drive", "d1"});
    recorder.measurement("mismatches", 0.0, {"drive", "d2"});
    for (const auto& one : said) {
      if (one.subject.id.empty())
        recorder.condition("direct_io", one.value);
      else
        recorder.condition("direct_io", one.value, one.subject);
    }
    recorder.end({.status = Status::complete, .reason = ""});
    run.attempt(0, "exited", out.str());
  }
  return run;
}

Said said(const char* text) { return {.value = Value{std::string(text)}}; }

constexpr const char* kFloor = R"({"version": {"at_least": "580.82"}})";

}  // namespace

TEST(demand, is_judged_by_what_every_attempt_recorded) {
  struct Case {
    const char* demand;
    std::vector<std::vector<Said>> attempts;
    Outcome outcome;
    const char* words;
  };
  const Said yes{.value = Value{true}}, no{.value = Value{false}}, seven{.value = Value{std::int64_t{7}}};
  const Case cases[] = {
      {R"({"equals": true})", {{yes}}, Outcome::pass, "direct_io was true, as demanded: = true."},
      {R"({"equals": true})", {{no}}, Outcome::fail, "The page cache took part"},
      {R"({"equals": true})", {{}}, Outcome::not_measured, "No condition direct_io was recorded."},
      {R"({"equals": true})", {{yes}, {no}}, Outcome::inconclusive, "was true, false: the records do not agree"},
      {R"({"equals": true})", {{yes}, {}}, Outcome::inconclusive, "Measured in 1 of 2 attempts."},
      {R"({"at_least": 8})", {{seven}}, Outcome::fail, "at least 8 is demanded"},
      {R"({"at_least": 7, "at_most": 9})", {{seven}}, Outcome::pass, ">= 7 and <= 9"},
      {R"({"one_of": ["off", "on", 7]})", {{seven}}, Outcome::pass, "one of \"off\", \"on\", 7"},
      {R"({"one_of": ["off", "on"]})", {{said("auto")}}, Outcome::fail, "demanded is one of \"off\", \"on\""},
      {kFloor, {{said("580.82.07")}}, Outcome::pass, "version at least 580.82"},
      {kFloor, {{said("580.100")}, {said("590.1")}}, Outcome::pass, "\"580.100\", \"590.1\""},
      {kFloor, {{said("570.211.01")}}, Outcome::fail, "which is below 580.82"},
      {kFloor, {{said("570")}, {said("560")}}, Outcome::fail, "In all it was \"570\", \"560\"."},
      {kFloor, {{said("570"), said("590")}}, Outcome::inconclusive, "was \"570\", \"590\": the records do not agree"},
      {kFloor, {{said("580 MHz")}}, Outcome::inconclusive, "\"580 MHz\", which is not a version that can be compared"},
      {kFloor, {{said("590"), said("")}}, Outcome::inconclusive, "\"\", which is not a version"},
      {kFloor, {{said("v570")}}, Outcome::inconclusive, "not a version"},
      {kFloor, {{{.value = Value{590.1}}}}, Outcome::inconclusive, "not a version"}};
  for (const auto& one : cases) {
    const MemoryRun run = run_of(demanding(one.demand), one.attempts);
    const Verdict verdict = judged(run);
    ASSERT_EQ(verdict.results.size(), 1U) << one.words;
    const Result& result = verdict.results.at(0);
    EXPECT_EQ(result.outcome, one.outcome) << one.words << "\n" << result.reason;
    EXPECT_NE(result.reason.find(one.words), std::string::npos) << one.words << "\n" << result.reason;
    EXPECT_EQ(verdict.overall == Overall::accepted, one.outcome == Outcome::pass);
    EXPECT_EQ(verdict.overall == Overall::rejected, one.outcome == Outcome::fail);
    EXPECT_TRUE(result.is_of_demand());
    EXPECT_FALSE(result.value);
    const auto again = read_verdict(verdict_text(verdict), "verdict.json");
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(verdict_text(*again), verdict_text(verdict));
  }
}

TEST(demand, is_open_where_another_step_states_the_component_otherwise) {
  struct Case {
    const char *own, *name, *other;
    Outcome outcome;
    const char* words;
  };
  const Case cases[] = {
      {"580.82.07", "driver_version", "580.82.07", Outcome::pass, "as demanded"},
      {"580.82.07", "nvml_driver", "580.82.7", Outcome::pass, "as demanded"},
      {"580.82.07", "nvml_driver", "575.51.03", Outcome::inconclusive,
       "driver_version was \"580.82.07\" in disk, but nvml_driver was \"575.51.03\" in disk: they do not agree on the "
       "NVIDIA driver of n1."},
      {"580.82.07", "driver_version", "590.10", Outcome::inconclusive, "but driver_version was \"590.10\""},
      {"570.10", "nvml_driver", "580.82.07", Outcome::inconclusive, "they do not agree"},
      {"570.10", "nvml_driver", "560.10", Outcome::fail, "which is below 580.82"},
      {"570.10", "nvml_driver", "unknown", Outcome::inconclusive, "but nvml_driver was \"unknown\""}};
  for (const auto& one : cases) {
    MemoryRun run({demanding(R"({"name": "driver_version", "version": {"at_least": "580.82"}})"),
                   R"({"parameters": {"size": 2}, "limit": {"at_least": 1, "unit": "B/s"}})"});
    ASSERT_EQ(run.plan.steps.size(), 2U);
    for (std::size_t step = 0; step < 2; ++step) {
      std::ostringstream out;
      Recorder recorder(
          out, fixture::kSpec,
          {.probe = "disk", .revision = 1, .parameters = run.plan.steps[step].parameters, .host = {{"name", "n1"}}});
      recorder.measurement("bandwidth", Sampling{.samples = kSteady110, .warmup = {}, .stopped = "stable"});
      recorder.condition("direct_io", true);
      const bool demanded = run.plan.steps[step].requirements.front() == "r0";
      recorder.condition(demanded ? "driver_version" : one.name, std::string(demanded ? one.own : one.other));
      recorder.end({.status = Status::complete, .reason = ""});
      run.attempt(step, "exited", out.str());
    }
    const Verdict verdict = judged(run);
    const auto result = std::ranges::find(verdict.results, "r0", &Result::requirement);
    EXPECT_EQ(result->outcome, one.outcome) << one.other << "\n" << result->reason;
    EXPECT_NE(result->reason.find(one.words), std::string::npos) << result->reason;
    EXPECT_EQ(result->evidence.size(), one.outcome == Outcome::inconclusive ? 2U : 1U);
    EXPECT_EQ(std::ranges::find(verdict.results, "r1", &Result::requirement)->outcome, Outcome::pass);
  }
}

TEST(demand, on_the_firmware_of_a_part_is_open_only_for_the_part_that_is_stated_otherwise) {
  MemoryRun run({demanding(R"({"name": "firmware", "version": {"at_least": "1.0"}})", "drive"),
                 R"({"parameters": {"size": 2}, "limit": {"at_least": 1, "unit": "B/s"}})"},
                1, {{"drive", 2}});
  for (std::size_t step = 0; step < 2; ++step) {
    std::ostringstream out;
    Recorder recorder(
        out, fixture::kSpec,
        {.probe = "disk", .revision = 1, .parameters = run.plan.steps[step].parameters, .host = {{"name", "n1"}}});
    const bool demanded = run.plan.steps[step].requirements.front() == "r0";
    recorder.measurement("bandwidth", Sampling{.samples = kSteady110, .warmup = {}, .stopped = "stable"});
    for (const char* drive : {"d1", "d2"}) {
      recorder.measurement("mismatches", 0.0, {"drive", drive});
      recorder.condition("firmware", std::string(demanded || drive == std::string("d1") ? "1.2" : "1.1"),
                         {"drive", drive});
    }
    recorder.end({.status = Status::complete, .reason = ""});
    run.attempt(step, "exited", out.str());
  }
  std::map<std::string, Outcome> outcomes;
  for (const auto& result : judged(run).results) {
    if (result.requirement == "r0") outcomes[result.subject.id] = result.outcome;
  }
  EXPECT_EQ(outcomes, (std::map<std::string, Outcome>{{"d1", Outcome::pass}, {"d2", Outcome::inconclusive}}));
}

TEST(demand, keeps_every_different_value) {
  const Verdict verdict = judged(run_of(demanding(kFloor), {{said("570")}, {said("590")}, {said("570")}}));
  const Result& result = verdict.results.at(0);
  EXPECT_EQ(seen_text(result), "570, 590");
  EXPECT_EQ(demanded_text(result), "version at least 580.82");
  const std::string table = verdict_table(verdict, {});
  EXPECT_NE(table.find("570, 590"), std::string::npos) << table;
  EXPECT_NE(table.find("version at least 580.82"), std::string::npos) << table;
}

TEST(demand, has_a_cell_for_each_part) {
  const auto of = [](const char* id, bool value) { return Said{.subject = {"drive", id}, .value = Value{value}}; };
  const std::string profile = demanding(R"({"equals": true})", "drive");
  const auto outcomes = [&](const std::vector<Said>& said) {
    std::map<std::string, Outcome> all;
    for (const auto& result : judged(run_of(profile, {said})).results) all[result.subject.id] = result.outcome;
    return all;
  };
  EXPECT_EQ(outcomes({of("d1", true), of("d2", false)}),
            (std::map<std::string, Outcome>{{"d1", Outcome::pass}, {"d2", Outcome::fail}}));
  EXPECT_EQ(outcomes({of("d1", true)}),
            (std::map<std::string, Outcome>{{"d1", Outcome::pass}, {"d2", Outcome::not_measured}}));
  EXPECT_EQ(outcomes({{.value = Value{true}}}),
            (std::map<std::string, Outcome>{{"d1", Outcome::pass}, {"d2", Outcome::pass}}));
  EXPECT_EQ(outcomes({of("d1", true), of("d2", true), of("d3", true)}),
            (std::map<std::string, Outcome>{{"n1", Outcome::error}}));
  const Verdict other = judged(run_of(demanding(R"({"equals": true})"), {{of("d1", true)}}));
  EXPECT_EQ(other.results.at(0).outcome, Outcome::inconclusive);
  EXPECT_EQ(other.results.at(0).reason, "The record has direct_io of a drive, and a node is judged.");
}

TEST(demand, that_one_record_misses_and_another_does_not_have_decides_nothing) {
  const Said of_first{.subject = {"drive", "d1"}, .value = Value{false}};
  const Said of_second{.subject = {"drive", "d2"}, .value = Value{false}};
  const std::string profile = demanding(R"({"equals": true})", "drive");
  std::map<std::string, Outcome> outcomes;
  for (const auto& result : judged(run_of(profile, {{of_first, of_second}, {of_second}})).results)
    outcomes[result.subject.id] = result.outcome;
  EXPECT_EQ(outcomes, (std::map<std::string, Outcome>{{"d1", Outcome::inconclusive}, {"d2", Outcome::fail}}));
}

TEST(demand, of_nodes_together_is_of_every_rank) {
  const std::string profile = demanding(R"({"equals": true})", "cluster", {{"probe", "fabric"}});
  for (const bool other : {true, false}) {
    MemoryRun run({profile}, 2);
    EXPECT_TRUE(run.plan.searches.empty());
    run.attempt(0, "exited", run.record_of_rank(0, {1.0}, true));
    run.add_rank(1, run.record_of_rank(1, {}, other));
    EXPECT_EQ(only(run).outcome, other ? Outcome::pass : Outcome::inconclusive) << only(run).reason;
  }
}

TEST(demand, that_the_machine_need_not_report_is_unchecked) {
  const MemoryRun run = run_of(demanding(R"({"equals": true})", "node", {{"when_told", true}}), {{}});
  EXPECT_TRUE(only(run).unchecked);
  EXPECT_EQ(only(run).outcome, Outcome::not_measured);
}

TEST(demand, of_advisories_fails_with_their_words_and_says_when_they_are_old) {
  const std::string profile = demanding(R"({"version": {"advisories": "nvidia_driver"}})");
  MemoryRun run = run_of(profile, {{said("580.95.05")}});
  run.journal.begin = "2026-11-27T15:00:00.000Z";
  EXPECT_EQ(only(run).outcome, Outcome::fail);
  EXPECT_NE(only(run).reason.find("CVE-2026-24187"), std::string::npos) << only(run).reason;
  EXPECT_NE(only(run).reason.find("https://github.com/NVIDIA/product-security"), std::string::npos);
  const auto old = [&] {
    return std::ranges::any_of(judged(run).deviations,
                               [](const Deviation& one) { return one.what.starts_with("The advisories of "); });
  };
  EXPECT_FALSE(old());
  const Outcome before = only(run).outcome;
  run.journal.begin = "2027-11-27T15:00:00.000Z";
  EXPECT_TRUE(old());
  EXPECT_EQ(only(run).outcome, before);
  EXPECT_EQ(only(run_of(profile, {{said("580.178.04")}})).outcome, Outcome::pass);
  EXPECT_EQ(only(run_of(profile, {{said("[N/A]")}})).outcome, Outcome::inconclusive);
}

TEST(demand, of_advisories_says_whether_any_of_them_speaks_of_the_branch) {
  const std::string profile = demanding(R"({"version": {"advisories": "nvidia_driver"}})");
  const auto deviation = [](const MemoryRun& run) {
    for (const auto& one : judged(run).deviations) {
      if (one.what.starts_with("No advisory")) return one.what;
    }
    return std::string();
  };
  const MemoryRun known = run_of(profile, {{said("580.178.04")}}), unknown = run_of(profile, {{said("610.10")}}),
                  old = run_of(profile, {{said("470.256.02")}}), bad = run_of(profile, {{said("580.95.05")}});
  EXPECT_EQ(only(known).outcome, Outcome::pass);
  EXPECT_NE(only(known).reason.find("; rows of them on branch 580: 1."), std::string::npos) << only(known).reason;
  EXPECT_EQ(deviation(known), "");
  for (const auto& [run, branch] : {std::pair(&unknown, "610"), std::pair(&old, "470")}) {
    EXPECT_EQ(only(*run).outcome, Outcome::pass);
    EXPECT_NE(only(*run).reason.find(fmt::format("; no row of them speaks of branch {}.", branch)), std::string::npos)
        << only(*run).reason;
    EXPECT_EQ(deviation(*run),
              fmt::format("No advisory speaks of branch {} of nvidia_driver, so nothing is known of it; "
                          "cells that pass by it: 1.",
                          branch));
  }
  EXPECT_EQ(only(bad).outcome, Outcome::fail);
  EXPECT_EQ(deviation(bad), "");
  const MemoryRun toolkit =
      run_of(demanding(R"({"version": {"advisories": "nvidia_container_toolkit"}})"), {{said("1.19.2")}});
  EXPECT_NE(only(toolkit).reason.find("; rows of them on branch 1: 2."), std::string::npos) << only(toolkit).reason;
}

TEST(demand, stays_the_same_in_a_plan) {
  for (const char* demand : {R"({"version": {"advisories": "nvidia_driver", "at_least": "570"}})",
                             R"({"one_of": [true, 1, 1.5, "a"]})", R"({"at_most": 3})"}) {
    const plan::Profile profile = *read(demanding(demand));
    const auto again = read_document(to_json(profile));
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(to_json(*again), to_json(profile));
    EXPECT_FALSE(to_json(profile).at("requirements").at(0).contains("limit"));
    EXPECT_TRUE(plan::loosened_in(profile.requirements.at(0), again->requirements.at(0), "p").empty());
  }
}

TEST(demand, that_cannot_be_judged_is_refused) {
  const std::string yes = R"({"equals": true})";
  const json limit = {{"limit", {{"at_least", 1}, {"unit", "1"}}}};
  const json repeat = {{"repeat", {{"n", 1}}}};
  const json unsourced = {{"source", {{"document", "d"}, {"status", "unsourced"}}}};
  const std::pair<std::string, const char*> kCases[] = {
      {demanding(R"({"equals": 1, "at_least": 1})"), "has two of equals"},
      {demanding(R"({"at_least": 2, "at_most": 1})"), "at_least is above at_most"},
      {demanding(R"({"name": "direct_oi", "equals": true})"), "disk records no 'direct_oi'"},
      {demanding(R"({"version": {"at_least": "v580"}})"), "demand.version.at_least: 'v580' is not a version"},
      {demanding(R"({"version": {"outside": [{"from": "3", "below": "2"}]}})"), "outside[0].from"},
      {demanding(R"({"version": {"at_least": "3", "below": "2"}})"), "is met by none of the versions"},
      {demanding(R"({"version": {"advisories": "nvidia_drivers"}})"), "there are no advisories on 'nvidia_drivers'"},
      {demanding(R"({"version": {}})"), "version"},
      {demanding(R"({"equals": true, "surroundings": true})"), "demand.surroundings"},
      {demanding(R"({"site": "leaf"})"), "demand.site"},
      {demanding(yes, "node", limit), ".limit: goes with a metric"},
      {demanding(yes, "node", repeat), ".repeat: goes with a metric"},
      {demanding(yes, "node", unsourced), "unsourced"}};
  for (const auto& [requirement, words] : kCases) {
    const std::string text = refusal(document_of(requirement));
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  }
  json none = document_of(demanding(yes));
  none.at("requirements").at(0).erase("demand");
  EXPECT_NE(refusal(none).find("the field 'metric' is missing"), std::string::npos) << refusal(none);
}

TEST(demand, that_was_loosened_is_listed) {
  const auto changed = [&](const char* before, const char* now) {
    return plan::loosened_in(read(demanding(before))->requirements.at(0), read(demanding(now))->requirements.at(0), "b")
        .size();
  };
  EXPECT_EQ(changed(kFloor, R"({"version": {"at_least": "570"}})"), 1U);
  EXPECT_EQ(changed(kFloor, R"({"version": {"at_least": "590"}})"), 0U);
  EXPECT_EQ(changed(kFloor, R"({"one_of": ["580.82", "590"]})"), 0U);
  EXPECT_EQ(changed(kFloor, R"({"one_of": ["560", "590"]})"), 1U);
  EXPECT_EQ(changed(R"({"one_of": ["a", "b"]})", R"({"equals": "a"})"), 0U);
  EXPECT_EQ(changed(R"({"one_of": ["a"]})", R"({"one_of": ["a", "b"]})"), 1U);
  EXPECT_EQ(changed(R"({"equals": "a"})", R"({"one_of": ["a", "b"]})"), 1U);
  EXPECT_EQ(changed(R"({"at_least": 2})", R"({"at_least": 1})"), 1U);
  EXPECT_EQ(changed(R"({"version": {"advisories": "nvidia_driver"}})", kFloor), 1U);
}

TEST(demand, takes_and_loses_the_members_of_a_metric_by_like) {
  json document = document_of(demanding(R"({"equals": true})"));
  auto& all = document.at("requirements");
  all.push_back({{"id", "m"}, {"like", "r0"}, {"metric", "bandwidth"}, {"limit", {{"at_least", 1}, {"unit", "B/s"}}}});
  all.push_back({{"id", "d"}, {"like", "m"}, {"demand", {{"name", "direct_io"}, {"equals", false}}}});
  const auto profile = read_document(document);
  ASSERT_TRUE(profile) << profile.error().text();
  EXPECT_EQ(profile->requirements.at(1).metric, "bandwidth");
  EXPECT_FALSE(profile->requirements.at(1).demand);
  EXPECT_TRUE(profile->requirements.at(2).demand);
  EXPECT_TRUE(profile->requirements.at(2).metric.empty());
}

}  // namespace assay::judge::demand_test
