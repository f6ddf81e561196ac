// Sentences of conditions that are not met: value, bound and advice.
#include <gtest/gtest.h>

#include "orchestrator/judge/cells/condition_words.h"

namespace assay::judge {
namespace {

plan::RequiredCondition at_most(const std::string& name, double most) {
  plan::RequiredCondition demand;
  demand.name = name;
  demand.at_most = most;
  return demand;
}

plan::RequiredCondition equals(const std::string& name, Value value) {
  plan::RequiredCondition demand;
  demand.name = name;
  demand.equals = std::move(value);
  return demand;
}

ConditionSeen seen(const std::string& name, Value value) {
  return {.name = name, .demanded = "", .seen = std::move(value), .met = false};
}

TEST(ConditionWords, a_share_is_a_percentage_of_four_digits_with_its_bound_and_what_to_do) {
  EXPECT_EQ(
      condition_sentence(at_most("off_cpu_share", 0.1), seen("off_cpu_share", 0.15787599636317118), ""),
      "15.79 % of the time a thread was off its CPU, at most 10 % is allowed: other work ran; stop it and run again.");
}

TEST(ConditionWords, four_digits_never_show_the_bound_itself) {
  EXPECT_EQ(
      condition_sentence(at_most("off_cpu_share", 0.1), seen("off_cpu_share", 0.1000001), ""),
      "A little over 10 % of the time a thread was off its CPU, at most 10 % is allowed: other work ran; stop it and "
      "run again.");
}

TEST(ConditionWords, what_is_true_or_false_says_what_is_wrong) {
  EXPECT_EQ(
      condition_sentence(equals("pinned", true), seen("pinned", false), ""),
      "Not every thread could be bound to one CPU: allow it all CPUs of the node (cpuset, container) and run again.");
}

TEST(ConditionWords, words_and_counts_are_shown_as_they_are) {
  EXPECT_EQ(
      condition_sentence(equals("transport", std::string("RoCE v2")), seen("transport", std::string("RoCE v1")), ""),
      "The transport was RoCE v1, demanded is RoCE v2: check the GID index and the mode of the port.");
  EXPECT_EQ(condition_sentence(at_most("other_processes", 0), seen("other_processes", std::int64_t{3}), ""),
            "3 other processes were on the GPU, at most 0 is allowed: stop them (`nvidia-smi` or `amd-smi process` "
            "lists them) and run again.");
}

TEST(ConditionWords, a_condition_without_words_of_its_own_is_explained_by_its_probe) {
  EXPECT_EQ(condition_sentence(at_most("lanes_idle", 2), seen("lanes_idle", 3.5), "Lanes that had no work."),
            "The condition lanes_idle (Lanes that had no work) was 3.5, at most 2 is allowed.");
}

TEST(ConditionWords, every_condition_that_a_built_in_profile_demands_has_words_and_a_remedy) {
  for (const auto& [name, text] : plan::embedded_profiles()) {
    const auto profile = plan::profile_named(name);
    ASSERT_TRUE(profile.has_value()) << name << ": " << profile.error().text();
    for (const auto& requirement : profile->requirements) {
      for (const auto& demand : requirement.conditions)
        EXPECT_TRUE(!demand.site.empty() || has_condition_words(demand.name)) << name << ": " << demand.name;
    }
  }
}

}  // namespace
}  // namespace assay::judge
