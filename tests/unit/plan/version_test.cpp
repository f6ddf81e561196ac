// Versions: which is the later one, what is none, and what a requirement may say of one.
#include <string>

#include <gtest/gtest.h>

#include "orchestrator/plan/advisories.h"
#include "orchestrator/plan/required_condition.h"
#include "orchestrator/plan/version.h"

namespace assay::plan {
namespace {

/// Each is later than the one before it.
const std::vector<std::string> kAscending = {"0",
                                             "1.0rc1",
                                             "1.0rc2",
                                             "1.0",
                                             "1.0-1ubuntu0.1",
                                             "1.0-1ubuntu0.3",
                                             "1.0-2",
                                             "1.1.1",
                                             "1.1.1f",
                                             "1.1.1w",
                                             "1.9",
                                             "1.10",
                                             "2.28.3",
                                             "2.28.3+cuda12.9",
                                             "5.15.0-rc3",
                                             "5.15.0",
                                             "5.15.0-113-generic",
                                             "5.15.0-119-generic",
                                             "5.15.1",
                                             "28.43.1014",
                                             "28.43.2026",
                                             "570.211.01",
                                             "580",
                                             "580.82",
                                             "580.82.07",
                                             "580.82.10",
                                             "580.95.05",
                                             "20260827",
                                             "999999999"};

const std::string kOdd[] = {"",
                            " ",
                            "v1.2",
                            "580 MHz",
                            "580.82.07 ",
                            " 580.82.07",
                            "N/A",
                            "unknown",
                            ".",
                            "1.",
                            ".1",
                            "1..2",
                            "-1",
                            "1,2",
                            "1.2\n",
                            "0x1f",
                            "1e9x.2",
                            "96.00.5C.00.01",
                            "92.00.A5",
                            "90.17.6E",
                            "1234567890",
                            "1.99999999999999999999999",
                            "\u0665\u0668\u0660",
                            "580\u00b7"
                            "82",
                            "1:2.3-4",
                            "1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1",
                            std::string("1.2\0.3", 6),
                            std::string(10'000, '9'),
                            "1-" + std::string(10'000, 'a')};

VersionRange at_least(const std::string& text) { return {.at_least = text}; }

}  // namespace

TEST(version, is_compared_part_by_part) {
  for (std::size_t i = 0; i < kAscending.size(); ++i) {
    for (std::size_t j = 0; j < kAscending.size(); ++j) {
      const auto order = compare_versions(kAscending[i], kAscending[j]);
      ASSERT_TRUE(order) << kAscending[i] << " " << kAscending[j];
      EXPECT_EQ(*order, std::weak_ordering(i <=> j)) << kAscending[i] << " " << kAscending[j];
    }
  }
}

TEST(version, has_no_more_than_one_spelling_of_a_number_and_missing_parts_are_0) {
  for (const auto& [a, b] : {std::pair{"580.82.07", "580.82.7"},
                             {"580.82", "580.82.0"},
                             {"1", "1.0.0"},
                             {"1.0-rc1", "1.0rc1"},
                             {"1.0~rc1", "1.0-rc01"},
                             {"007", "7"}})
    EXPECT_EQ(compare_versions(a, b), std::weak_ordering::equivalent) << a << " " << b;
}

TEST(version, that_is_none_is_not_compared_and_meets_nothing) {
  for (const auto& text : kOdd) {
    EXPECT_FALSE(is_version(text)) << text.substr(0, 40);
    EXPECT_FALSE(compare_versions(text, "1"));
    for (const RequiredCondition& demand :
         {RequiredCondition{.name = "v", .version = at_least("0")},
          RequiredCondition{.name = "v", .version = VersionRange{.outside = {{.from = "2", .below = "3"}}}}})
      EXPECT_EQ(fit_of(demand, Value{text}), Fit::unknown) << text.substr(0, 40);
  }
  for (const Value& value : {Value{true}, Value{580.82}})
    EXPECT_EQ(fit_of({.name = "v", .version = at_least("0")}, value), Fit::unknown);
  EXPECT_EQ(fit_of({.name = "v", .version = at_least("580")}, Value{std::int64_t{580}}), Fit::met);
}

TEST(version, range_says_what_was_missed) {
  const Advisory fault{.span = {.from = "580", .below = "580.95"},
                       .what = "it hangs",
                       .severity = "high",
                       .document = "Notes",
                       .address = "https://x",
                       .date = "2025-10-09"};
  const VersionRange range{.at_least = "570",
                           .below = "600",
                           .outside = {{.from = "575", .below = "576"}},
                           .advisories = "d",
                           .dated = "2026-01-01",
                           .known_bad = {fault}};
  const std::pair<const char*, const char*> kCases[] = {
      {"560", "is below 570"},
      {"600", "is not below 600"},
      {"575.5", "is from 575 and below 576, which is ruled out"},
      {"576", ""},
      {"580.95", ""},
      {"580.82.07", "is known to be bad, from 580 and below 580.95: it hangs (high; Notes, 2025-10-09, https://x)"}};
  for (const auto& [text, missed] : kCases) EXPECT_EQ(missed_of(range, text), missed) << text;
  EXPECT_EQ(missed_of({.one_of = {"1.2", "1.4"}}, "1.2.0"), "");
  EXPECT_EQ(missed_of({.one_of = {"1.2", "1.4"}}, "1.3"), "is none of 1.2, 1.4");
}

TEST(version, range_is_looser_when_more_versions_meet_it) {
  const VersionRange old{.at_least = "570", .below = "600", .one_of = {"580", "590"}, .outside = {{.below = "1"}}};
  EXPECT_FALSE(is_looser(old, old));
  VersionRange now = old;
  now.at_least = "580";
  now.one_of = {"580"};
  EXPECT_FALSE(is_looser(old, now));
  for (const auto& change :
       {+[](VersionRange& r) { r.at_least = "569.9"; }, +[](VersionRange& r) { r.at_least = ""; },
        +[](VersionRange& r) { r.below = "600.1"; }, +[](VersionRange& r) { r.one_of = {}; },
        +[](VersionRange& r) { r.one_of.push_back("595"); }, +[](VersionRange& r) { r.outside = {}; }}) {
    now = old;
    change(now);
    EXPECT_TRUE(is_looser(old, now));
  }
}

TEST(advisories, have_a_source_each_and_ranges_that_versions_can_be_in) {
  const AdvisoryTable& table = advisories();
  EXPECT_GE(table.advisories.size(), 10U);
  for (const auto& one : table.advisories) {
    EXPECT_FALSE(odd_version({.outside = {one.span}})) << one.component << " " << one.span.below;
    EXPECT_LE(one.date, table.dated) << one.document;
  }
  EXPECT_TRUE(std::ranges::is_sorted(table.advisories, {}, &Advisory::component));
}

TEST(advisories, of_this_table_cannot_be_other_rows) {
  RequiredCondition demand{.name = "driver_version", .equals = {}, .at_least = {}, .at_most = {}};
  demand.version = {
      .advisories = "nvidia_driver", .dated = advisories().dated, .known_bad = advisories_on("nvidia_driver")};
  EXPECT_FALSE(check_condition(demand, "here"));
  demand.version->known_bad.resize(1);
  const auto problem = check_condition(demand, "here");
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->where, "here.version.known_bad");
}

TEST(advisories, are_outdated_after_half_a_year) {
  EXPECT_FALSE(is_outdated("2026-08-18", "2026-11-27T15:00:00.000Z"));
  EXPECT_FALSE(is_outdated("2026-08-18", "2027-02-14T00:00:00.000Z"));
  EXPECT_TRUE(is_outdated("2026-08-18", "2027-02-14T00:00:00.001Z"));
  EXPECT_FALSE(is_outdated("2026-08-18", "b"));
}

}  // namespace assay::plan
