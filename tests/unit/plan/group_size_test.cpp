// Plans on numbers of nodes that a probe cannot use: refused before anything runs, with the nearest that would do.
#include <gtest/gtest.h>

#include "orchestrator/plan/catalogue.h"
#include "orchestrator/plan/plan.h"
#include "tests/unit/fixture.h"

namespace assay::plan {
namespace {

/// The fixture's programs; fabric takes at most `most` nodes.
std::vector<Program> programs_of_at_most(const std::string& most) {
  auto programs = fixture::programs();
  for (auto& program : programs) {
    if (program.name != "fabric") continue;
    program.description.document["group_size"] = {
        {{"when", ""}, {"processes", "at_most"}, {"of", most}, {"each", "1"}, {"reason", "so it is"}}};
    program.description = *read_description(program.description.document.dump(), "fabric");
  }
  return programs;
}

std::string said(const std::string& requirement, int nodes, const std::string& most) {
  const auto plan = make_plan(fixture::profile({requirement}), fixture::site(nodes), programs_of_at_most(most), {});
  return plan ? "planned" : plan.error().text();
}

/// What planning the built-in profile on `nodes` nodes says, with the newest description of each probe.
std::string said_of_built_in(const std::string& name, int nodes) {
  std::vector<Program> programs;
  for (const auto& known : known_probes()) {
    std::erase_if(programs, [&](const Program& one) { return one.name == known.name; });
    programs.push_back({.name = known.name,
                        .sha256 = std::string(64, 'a'),
                        .path = "/p/" + known.name,
                        .description = read_description(known.document.dump(), known.name).value()});
  }
  const auto profile = read_profile(embedded_profile(name).value(), name, embedded_profile).value();
  const auto plan = make_plan(profile, fixture::site(nodes), programs, {});
  return plan ? "planned" : plan.error().text();
}

}  // namespace

TEST(group_size, a_cluster_that_is_too_large_is_refused_with_the_nearest_number) {
  EXPECT_EQ(said(fixture::kWhole, 4, "size"), "planned");
  EXPECT_EQ(said(fixture::kWhole, 5, "size"),
            "profile p: requirements[0].scope: fabric cannot work on the cluster s: 5 nodes are more than 4: so it is\n"
            "hint: the nearest numbers of nodes that would do: 4; name so many in the site file, or give the probe "
            "other parameters");
}

TEST(group_size, of_several_groups_the_one_that_cannot_be_used_is_named) {
  constexpr const char* kRacks =
      R"({"probe": "fabric", "scope": "group", "by": "rack", "limit": {"at_least": 100, "unit": "B/s"}})";
  EXPECT_EQ(said(kRacks, 4, "2"), "planned");
  EXPECT_NE(said(kRacks, 5, "2").find("cannot work on the group odd: 3 nodes are more than 2"), std::string::npos)
      << said(kRacks, 5, "2");
}

TEST(group_size, a_checkpoint_is_planned_on_as_many_nodes_as_its_model_has_processes_and_on_no_more) {
  EXPECT_EQ(said_of_built_in("checkpoint-llama3-70b", 64), "planned");
  EXPECT_EQ(said_of_built_in("checkpoint-llama3-405b", 512), "planned");
  EXPECT_EQ(said_of_built_in("checkpoint-llama3-70b", 2080),
            "profile checkpoint-llama3-70b: requirements[0].scope: checkpoint_cluster cannot work on the cluster s: "
            "2080 nodes are more than 64: 64 processes train the model, and every node needs one\n"
            "hint: the nearest numbers of nodes that would do: 64; name so many in the site file, or give the probe "
            "other parameters");
  const auto larger = said_of_built_in("checkpoint-llama3-405b", 2080);
  EXPECT_NE(larger.find("2080 nodes are more than 512"), std::string::npos) << larger;
}

}  // namespace assay::plan
