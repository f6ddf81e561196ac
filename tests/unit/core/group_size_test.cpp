// On how many nodes the ranks of a probe can work together.
#include "probes/core/group_size.h"

#include <gtest/gtest.h>

#include "probes/core/description.h"

namespace assay {
namespace {

OwnGroupSizeRule rule(SizeDemand processes, const std::string& of, const std::string& each = "1",
                      const std::string& when = "") {
  return {.when = when, .of = of, .each = each, .reason = "so it is", .processes = processes};
}

std::string text(const std::vector<OwnGroupSizeRule>& rules, const Values& parameters, std::size_t nodes) {
  const auto unusable = unusable_size(rules, parameters, nodes);
  if (!unusable) return "usable";
  const auto number = [](const std::optional<std::size_t>& size) { return size ? std::to_string(*size) : "none"; };
  return unusable->reason + " (" + number(unusable->fewer) + ", " + number(unusable->greater) + ")";
}

}  // namespace

TEST(GroupSize, the_nearest_numbers_on_both_sides_are_told) {
  const std::vector<OwnGroupSizeRule> rules = {rule(SizeDemand::multiple_of, "tp pp", "ranks_per_node")};
  const Values parameters = {{"tp", std::int64_t{4}}, {"pp", std::int64_t{3}}, {"ranks_per_node", std::int64_t{2}}};
  EXPECT_EQ(text(rules, parameters, 12), "usable");
  EXPECT_EQ(text(rules, parameters, 14), "14 nodes x 2 processes = 28 are no multiple of 12: so it is (12, 18)");
  EXPECT_EQ(text(rules, parameters, 5), "5 nodes x 2 processes = 10 are no multiple of 12: so it is (none, 6)");
}

TEST(GroupSize, too_many_and_too_few_are_refused) {
  const std::vector<OwnGroupSizeRule> rules = {rule(SizeDemand::at_most, "64"),
                                               rule(SizeDemand::at_least, "victims+1")};
  const Values parameters = {{"victims", std::int64_t{3}}};
  EXPECT_EQ(text(rules, parameters, 64), "usable");
  EXPECT_EQ(text(rules, parameters, 2080), "2080 nodes are more than 64: so it is (64, none)");
  EXPECT_EQ(text(rules, parameters, 2), "2 nodes are fewer than 4: so it is (none, 4)");
}

TEST(GroupSize, all_rules_hold_at_once_and_a_number_that_keeps_none_is_not_told) {
  const std::vector<OwnGroupSizeRule> rules = {rule(SizeDemand::exactly, "6"), rule(SizeDemand::multiple_of, "4")};
  EXPECT_EQ(text(rules, {}, 8), "8 nodes are not 6: so it is (none, none)");
}

TEST(GroupSize, what_does_not_apply_or_is_not_known_before_demands_nothing) {
  const Values parameters = {{"model", std::string("small")}, {"dp", std::int64_t{0}}};
  EXPECT_EQ(text({rule(SizeDemand::at_most, "1", "1", "model=large")}, parameters, 9), "usable");
  EXPECT_EQ(text({rule(SizeDemand::exactly, "dp")}, parameters, 9), "usable");
  EXPECT_EQ(text({rule(SizeDemand::at_most, "1", "dp")}, parameters, 9), "usable");
}

TEST(GroupSize, a_rule_that_cannot_be_computed_is_refused_with_its_place) {
  const std::vector<std::string> known = {"tp"};
  EXPECT_EQ(group_size_rule_problem(rule(SizeDemand::at_most, "tp"), known), "");
  EXPECT_EQ(group_size_rule_problem(rule(SizeDemand::at_most, "pp"), known),
            "of: 'pp' is neither a number nor a parameter of the probe");
  EXPECT_EQ(group_size_rule_problem(rule(SizeDemand::at_most, "tp", ""), known), "each: is empty");
  EXPECT_EQ(group_size_rule_problem(rule(SizeDemand::at_most, "tp", "1", "pp=2"), known),
            "when: 'pp=2' does not begin with a parameter and = or ~");
  EXPECT_EQ(group_size_rule_problem({.when = "", .of = "1", .each = "1", .reason = ""}, known), "reason: is empty");
}

TEST(GroupSize, a_description_keeps_its_rules_and_a_word_that_is_none_is_refused) {
  constexpr GroupSizeRule kRules[] = {{.processes = SizeDemand::at_most, .of = "8", .reason = "so it is"}};
  const ProbeSpec spec{.name = "p", .measures = "M.", .method = "M.", .source = "S.", .group_size = kRules};
  const std::string described = describe(spec).dump();
  const auto read = read_description(described, "p");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(text(read->group_size, {}, 9), "9 nodes are more than 8: so it is (8, none)");
  std::string wrong = described;
  wrong.replace(wrong.find("at_most"), 7, "at_best");
  const auto refused = read_description(wrong, "p");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what, "'at_best' is not a demand on a number");
}

}  // namespace assay
