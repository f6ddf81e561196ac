// What a probe writes, computed from its parameters before it runs; and what is free.
#include "probes/core/space.h"

#include <gtest/gtest.h>

#include "probes/core/description.h"
#include "probes/core/filesystem_facts.h"

namespace assay {
namespace {

Values given() {
  return {{"directory", "/store"},         {"mode", "mixed"},           {"tiers", "memory,shared"},
          {"size", std::int64_t{100}},     {"record", std::int64_t{0}}, {"divisor", std::int64_t{4}},
          {"repetitions", std::int64_t{3}}};
}

OwnSpaceRule rule(const std::string& held, const std::string& when = "", const std::string& times = "repetitions") {
  return {.into = "directory", .when = when, .held = held, .times = times, .shared = true};
}

double held_of(const OwnSpaceRule& one) {
  const auto needs = space_needs({one}, given(), 8);
  return needs.empty() ? 0 : needs.front().held;
}

TEST(Space, is_a_product_of_numbers_parameters_and_ranks) {
  EXPECT_EQ(held_of(rule("size")), 100);
  EXPECT_EQ(held_of(rule("2 ranks size")), 1600);
  EXPECT_EQ(held_of(rule("14 size /divisor")), 350);
  EXPECT_EQ(held_of(rule("ranks size+28")), 8 * 128);
  EXPECT_EQ(held_of(rule("record|322957 2")), 2 * 322957.0);
  EXPECT_EQ(held_of(rule("size|7")), 100);
}

TEST(Space, of_the_rules_into_a_directory_the_first_that_holds_counts) {
  const std::vector<OwnSpaceRule> rules = {rule("1", "mode=write"), rule("2", "mode=mixed tiers~local"),
                                           rule("3", "mode=mixed tiers~shared"), rule("4")};
  const auto needs = space_needs(rules, given(), 1);
  ASSERT_EQ(needs.size(), 1U);
  EXPECT_EQ(needs[0].held, 3);
  EXPECT_EQ(needs[0].written, 9);
  EXPECT_EQ(needs[0].directory, "/store");
}

TEST(Space, without_times_what_is_written_is_not_known_before) {
  EXPECT_EQ(space_needs({rule("size", "", "")}, given(), 1).front().written, std::nullopt);
}

TEST(Space, a_rule_that_names_no_parameter_of_the_probe_is_refused_by_its_part) {
  const std::vector<std::string> known = {"directory", "size"};
  EXPECT_EQ(space_rule_problem(rule("size", "", "1"), known), "");
  EXPECT_EQ(space_rule_problem(rule("sizes", "", "1"), known),
            "held: 'sizes' is neither a number nor a parameter of the probe");
  EXPECT_EQ(space_rule_problem(rule("size", "size", "1"), known),
            "when: 'size' does not begin with a parameter and = or ~");
  EXPECT_EQ(space_rule_problem(rule("size", "", "twice"), known),
            "times: 'twice' is neither a number nor a parameter of the probe");
  EXPECT_EQ(space_rule_problem(rule("", "", "1"), known), "held: is empty");
  EXPECT_EQ(space_rule_problem({.into = "folder", .when = "", .held = "1", .times = "1"}, known),
            "into: there is no parameter folder");
}

TEST(Space, a_description_keeps_its_rules) {
  constexpr Parameter kDirectory[] = {{.name = "directory", .fallback = ".", .meaning = "where"}};
  constexpr SpaceRule kRules[] = {{.shared = true, .held = "7", .times = "2"}};
  const ProbeSpec spec{
      .name = "p", .measures = "M.", .method = "M.", .source = "S.", .parameters = kDirectory, .space = kRules};
  const auto read = read_description(describe(spec).dump(), "p");
  ASSERT_TRUE(read) << read.error().text();
  const auto needs = space_needs(read->space, {{"directory", "."}}, 1);
  ASSERT_EQ(needs.size(), 1U);
  EXPECT_TRUE(needs[0].shared);
  EXPECT_EQ(needs[0].written, 14);
}

TEST(Space, free_space_is_about_what_statvfs_says_and_nothing_where_there_is_no_directory) {
  const auto free = free_space("/var/tmp", {10});
  ASSERT_TRUE(free);
  const auto facts = static_cast<double>(filesystem_facts("/var/tmp").free.value().count);
  EXPECT_NEAR(static_cast<double>(*free) / facts, 1, 0.5);  // others write there meanwhile
  EXPECT_EQ(free_space("/no/such/place", {10}), std::nullopt);
}

}  // namespace
}  // namespace assay
