// Ports of switches during a load: which watch counts, why a figure is missing, and a cable in the wrong port.
#include <gtest/gtest.h>

#include "orchestrator/judge/metering/site_joins.h"
#include "orchestrator/plan/metered.h"
#include "tests/unit/judge/judged.h"
#include "tests/unit/judge/metered_run.h"

namespace assay::judge::test {
namespace {

const Subject kPort{"switch_port", "leaf1/swp1"};

/// n1 on swp1 and n2 on swp2 of leaf1, each by ens1.
site::Site cabled() {
  site::Site site = fixture::site(2);
  site.switches = {{.device = {.name = "leaf1", .address = "10.0.0.1"}, .ports = {"swp48"}}};
  for (std::size_t i = 0; i < 2; ++i)
    site.nodes[i].planes["parameter"] = {
        {.interface = "ens1", .rail = "0", .leaf = "leaf1", .switch_port = fmt::format("swp{}", i + 1)}};
  return site;
}

class SwitchRun {
 public:
  MeteredRun run;

  SwitchRun() { run.plan.site = cabled(); }

  /// A watch whose readings are from and to so many seconds after the attempt's begin.
  void watch(int number, double from_s, double to_s, double errors, const std::vector<Condition>& conditions = {}) {
    run.watch(number, {.values = {1}});
    counts_.push_back({number, from_s, to_s, errors, conditions});
  }

  [[nodiscard]] SiteEvidence site() {
    for (const auto& one : counts_) add(one);
    counts_.clear();
    return run.site();
  }

 private:
  struct Counts {
    int number;
    double from_s, to_s, errors;
    std::vector<Condition> conditions;
  };

  void add(const Counts& one) {
    static constexpr Metric kMetrics[] = {lower("in_errors", "1", "of a port"), lower("cabling_wrong", "1", "of one")};
    static constexpr ConditionSpec kConditions[] = {
        if_occurred("unread", "of a port"),         if_occurred("uncounted", "of a port"),
        if_occurred("uncounted_why", "of it"),      if_occurred("neighbour", "of a port"),
        if_occurred("neighbour_port", "of a port"), if_occurred("refresh_s", "of a port")};
    static constexpr ProbeSpec kSpec{.name = plan::kSwitchCompanion,
                                     .companion = true,
                                     .measures = "Switches.",
                                     .method = "None.",
                                     .source = "None.",
                                     .metrics = kMetrics,
                                     .conditions = kConditions};
    run.plan.probes[plan::kSwitchCompanion] = {
        .sha256 = "", .description = *read_description(describe(kSpec).dump(), plan::kSwitchCompanion)};
    const double begin_s = std::chrono::duration<double>(utc_time(kBegin)->time_since_epoch()).count();
    std::ostringstream out;
    Recorder recorder(out, kSpec,
                      {.probe = plan::kSwitchCompanion, .revision = 1, .host = {{"name", std::string("h")}}});
    if (one.errors >= 0)
      recorder.measurement("in_errors", one.errors, kPort,
                           {{"from_s", begin_s + one.from_s}, {"to_s", begin_s + one.to_s}});
    for (const auto& condition : one.conditions) recorder.condition(condition.name, condition.value, condition.subject);
    recorder.end({.status = Status::complete, .reason = ""});
    auto& watch = run.journal.watches.at(static_cast<std::size_t>(one.number) - 1);
    watch.probe = plan::kSwitchCompanion;
    watch.evidence[0].path = watch_record_path(one.number, watch.probe);
    run.files[watch.evidence[0].path] = out.str();
  }

  std::vector<Counts> counts_;
};

Condition says(const std::string& name, const std::string& value, const Subject& subject = kPort) {
  return {.name = name, .subject = subject, .value = value};
}

TEST(SiteSwitches, the_watch_that_covers_the_load_counts_and_names_the_other_end) {
  SwitchRun made;
  made.watch(1, -100, 60, 7);
  made.watch(2, 59, 300, 0);  // of the time after it
  const SiteEvidence site = made.site();
  const Measurement errors = MeteredRun::only(site, "in_errors");
  EXPECT_EQ(errors.samples, std::vector<double>{7});
  EXPECT_TRUE(errors.at.empty());
  EXPECT_EQ(words_of(site, "in_errors", kPort), "Its cable leads to n1 ens1 (rail 0)");
}

TEST(SiteSwitches, are_read_beside_the_meters_and_each_keeps_the_conditions_of_its_own_reader) {
  SwitchRun made;
  made.watch(1, -100, 60, 7, {says("refresh_s", "slow", {"node", "h"})});
  made.run.watch(2, {});
  const SiteEvidence site = made.site();
  EXPECT_EQ(MeteredRun::only(site, "in_errors").samples, std::vector<double>{7});
  EXPECT_FALSE(MeteredRun::only(site, "total_power").samples.empty());
  const auto has = [&](const char* name, const char* kind) {
    return std::ranges::any_of(site.step.records.front().conditions,
                               [&](const Condition& one) { return one.name == name && one.subject.kind == kind; });
  };
  EXPECT_TRUE(has("refresh_s", "switch_port"));
  EXPECT_FALSE(has("refresh_s", "rack"));
  EXPECT_TRUE(has("meter_doubts", "rack"));
}

TEST(SiteSwitches, and_meters_go_in_one_profile_and_two_readers_of_meters_do_not) {
  const auto problem = [](const std::vector<std::string>& companions) {
    auto document = nlohmann::json::parse(fixture::profile_text({kAtLeast100}));
    document["companions"] = companions;
    const auto profile = plan::read_profile(document.dump(), "p.json", [](const std::string&) { return std::nullopt; });
    return profile ? "" : profile.error().text();
  };
  EXPECT_EQ(problem({plan::kSiteCompanion, plan::kSwitchCompanion}), "");
  EXPECT_EQ(problem({plan::kSwitchCompanion, plan::kFailoverCompanion}), "");
  EXPECT_NE(problem({plan::kSiteCompanion, plan::kFailoverCompanion}).find("names both power_feed and failover_watch"),
            std::string::npos);
  const plan::Profile both{.name = "p", .companions = {plan::kSwitchCompanion, plan::kSiteCompanion}};
  EXPECT_EQ(plan::site_companion(both), plan::kSiteCompanion);
  EXPECT_EQ(plan::switch_companion(both), plan::kSwitchCompanion);
}

TEST(SiteSwitches, counts_that_begin_in_the_load_are_none) {
  SwitchRun made;
  made.watch(1, 30, 60, 0);
  const SiteEvidence site = made.site();
  EXPECT_TRUE(site.step.records.front().measurements.empty());
  EXPECT_EQ(why_missing(site, "in_errors", kPort), "Readings cover 56 % of the 20 s of the load, 90 % are required.");
  EXPECT_FALSE(is_untold(site, "in_errors", kPort));
}

TEST(SiteSwitches, why_a_port_or_counter_is_missing_is_said_and_only_an_untold_one_is_untold) {
  SwitchRun made;
  made.watch(1, -100, 60, 0,
             {says("uncounted", "in_bytes,symbol_errors"), says("uncounted_why", "it was reset"),
              says("unread", "gone", {"switch_port", "leaf1/swp2"})});
  const SiteEvidence site = made.site();
  EXPECT_EQ(why_missing(site, "symbol_errors", kPort), "Not counted: it was reset.");
  EXPECT_FALSE(is_untold(site, "symbol_errors", kPort));
  EXPECT_TRUE(is_untold(site, "fcs_errors", kPort));
  EXPECT_EQ(why_missing(site, "in_errors", {"switch_port", "leaf1/swp2"}), "Not read: gone.");
  SwitchRun silent;
  silent.watch(1, -100, 60, -1, {says("unread", "leaf1 at 10.0.0.1: no answer", {"meter", "leaf1"})});
  EXPECT_EQ(why_missing(silent.site(), "in_errors", kPort), "Not read: leaf1 at 10.0.0.1: no answer.");
  EXPECT_FALSE(is_untold(silent.site(), "in_errors", kPort));
}

TEST(SiteSwitches, a_cable_is_right_wrong_or_not_known) {
  struct Case {
    std::string neighbour, port, words;  ///< as reported at swp1
    std::optional<double> wrong;
  };
  for (const Case& one : std::initializer_list<Case>{
           {"n1", "ens1", "", 0},
           {"n1.hall", "ens1", "", 0},
           {"n2", "ens1",
            "The switch reports n2 ens1 there, and in the site it is n1 ens1 (rail 0); n2: ens1 of rail 0 is connected "
            "to port swp1 of leaf1; in the site it is port swp2 (LLDP of the switch)",
            1},
           {"n2", "", "The switch reports n2 there, and in the site it is n1 ens1 (rail 0)", 1},
           {"n1", "eth7", "The neighbour there is the right node, and names none of its ports in the site.", {}},
           {"BlueField", "p0", "The neighbour there, BlueField, is no node of the site.", {}},
           {"n1,n2", "", "The switch reports several neighbours there: n1,n2.", {}}}) {
    Record record;
    record.conditions = {says("neighbour", one.neighbour), says("neighbour_port", one.port)};
    const auto figure = cabling_wrong(cabled(), {{1, record}}).at(kPort);
    EXPECT_EQ(figure ? std::optional(figure->value) : std::nullopt, one.wrong) << one.neighbour;
    EXPECT_EQ(figure ? figure->words : figure.error(), one.words);
  }
  EXPECT_EQ(cabling_wrong(cabled(), {}).at(kPort).error(), "The switch reports no neighbour there.");
}

TEST(SiteSwitches, subjects_are_the_ports_of_a_plane_and_rail_and_a_load_is_not_guarded_by_switches) {
  site::Site site = cabled();
  using plan::JudgedScope, plan::metered_subjects;
  const Subject second{"switch_port", "leaf1/swp2"}, uplink{"switch_port", "leaf1/swp48"};
  EXPECT_EQ(metered_subjects(site, JudgedScope::switch_port), (std::vector{kPort, second, uplink}));
  EXPECT_EQ(metered_subjects(site, JudgedScope::switch_port, "data"), std::vector{uplink});
  site.nodes[1].planes["parameter"][0].rail = "1";
  EXPECT_EQ(metered_subjects(site, JudgedScope::switch_port, "parameter", "1"), std::vector{second});
  EXPECT_EQ(metered_subjects(site, JudgedScope::switch_port, "parameter", "0"), (std::vector{kPort, uplink}));
  site.load_test = site::LoadTest{.consent = "the test itself", .limit_w = 1};
  plan::Profile profile{.name = "p", .companions = {plan::kSwitchCompanion}};
  const auto problem = plan::check_load_test(site, profile);
  ASSERT_TRUE(problem);
  EXPECT_NE(problem->what.find("power_feed is missing"), std::string::npos) << problem->what;
}

}  // namespace
}  // namespace assay::judge::test
