// Fabric plans: planes and rails, chosen pairs, pairs alone, growing groups; what is planned, what is left out by name,
// and how it is judged.
#include <gtest/gtest.h>

#include "orchestrator/judge/run_verdict.h"
#include "orchestrator/run/attempt.h"
#include "tests/unit/fixture.h"

namespace assay::plan {
namespace {

constexpr Parameter kParameters[] = {{.name = "interface", .fallback = "rendezvous", .meaning = "port"}};
constexpr ConditionSpec kConditions[] = {{.name = "interface", .meaning = "the port"},
                                         {.name = "address", .meaning = "the address"}};
constexpr ProbeSpec kLane{.name = "lane",
                          .scope = Scope::group,
                          .measures = "A lane.",
                          .method = "None.",
                          .source = "None.",
                          .parameters = kParameters,
                          .metrics = fixture::kMetrics,
                          .conditions = kConditions};
constexpr ProbeSpec kPorts{.name = "ports",
                           .scope = Scope::node,
                           .measures = "Ports.",
                           .method = "None.",
                           .source = "None.",
                           .parameters = kParameters,
                           .metrics = fixture::kMetrics,
                           .conditions = kConditions};

std::vector<Program> fabric_programs() {
  auto all = fixture::programs();
  for (const auto* spec : {&kLane, &kPorts}) {
    all.push_back({.name = std::string(spec->name),
                   .sha256 = std::string(64, 'c'),
                   .path = "/p",
                   .description = *read_description(describe(*spec).dump(), "lane")});
  }
  return all;
}

/// Nodes n1 to n`count` on leaves l1 (odd) and l2 (even), with a port eth1 at 10.0.0.N on rail 0 and eth2 at 10.0.1.N
/// on rail 1 of the plane parameter.
site::Site two_rails(int count) {
  site::Site site = fixture::site(count);
  int number = 0;
  for (auto& node : site.nodes) {
    const std::string last = std::to_string(++number);
    node.leaf = number % 2 == 1 ? "l1" : "l2";
    node.planes["parameter"] = {
        {.interface = "eth1", .device = "", .address = "10.0.0." + last, .rail = "0", .leaf = "", .switch_port = ""},
        {.interface = "eth2", .device = "", .address = "10.0.1." + last, .rail = "1", .leaf = "", .switch_port = ""}};
  }
  return site;
}

std::string requirement(const std::string& more, const char* probe = "lane", const char* scope = "pair") {
  return R"({"limit": {"at_least": 100, "unit": "B/s"}, "probe": ")" + std::string(probe) + R"(", "scope": ")" + scope +
         "\"" + more + "}";
}

Plan plan_of(const std::string& text, const site::Site& site) {
  auto plan = make_plan(fixture::profile({text}), site, fabric_programs(), {});
  if (!plan) throw std::runtime_error(plan.error().text());
  return *plan;
}

std::string error_of(const std::string& text, const site::Site& site) {
  try {
    const auto plan = make_plan(fixture::profile({text}), site, fabric_programs(), {});
    return plan ? "accepted" : plan.error().text();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

std::vector<std::string> subjects(const Plan& plan) {
  std::vector<std::string> all;
  for (const auto& cell : plan.coverage)
    all.push_back(cell.subject.id + (cell.step.empty() ? " (" + cell.reason + ")" : ""));
  return all;
}

/// The record of one rank of `step`, as its node would write it, through the port and address that it has.
std::string record_of(const Plan& plan, const Step& step, std::size_t rank, double value, const std::string& address) {
  std::ostringstream out;
  Recorder recorder(out, kLane,
                    {.probe = "lane",
                     .revision = 1,
                     .parameters = parameters_of(plan.site, step, rank),
                     .rank = static_cast<int>(rank),
                     .world = static_cast<int>(step.nodes.size()),
                     .host = {{"name", step.nodes[rank]}}});
  if (rank == 0)
    recorder.measurement("bandwidth",
                         Sampling{.samples = std::vector<double>(10, value), .warmup = {}, .stopped = "fixed"},
                         {"group", "all"});
  recorder.condition("interface", std::get<std::string>(parameters_of(plan.site, step, rank).at("interface")));
  recorder.condition("address", address);
  recorder.end({.status = Status::complete, .reason = ""});
  return out.str();
}

/// A run of which every step was measured with its value.
class Ran {
 public:
  explicit Ran(Plan plan) {
    run_.plan = std::move(plan);
    run_.journal.node_facts.clear();
    for (const auto& node : run_.plan.site.nodes) run_.journal.node_facts[node.name] = {{"name", node.name}};
  }

  void step(std::size_t index, double value, const std::string& last_address = "") {
    const Step& step = run_.plan.steps.at(index);
    for (std::size_t rank = 0; rank < step.nodes.size(); ++rank) {
      const site::Port* const port = site::port_of(*run_.plan.site.node(step.nodes[rank]), step.plane, step.rail);
      std::string address = port == nullptr ? "" : port->address;
      if (rank + 1 == step.nodes.size() && !last_address.empty()) address = last_address;
      const auto bytes = record_of(run_.plan, step, rank, value, address);
      if (rank == 0)
        run_.attempt(index, "exited", bytes);
      else
        run_.add_rank(static_cast<int>(rank), bytes);
    }
  }
  [[nodiscard]] judge::Results results() const {
    return judge::judge(run_.plan, "digest", run_.journal, run_.reader()).results;
  }

 private:
  fixture::MemoryRun run_{{R"({"limit": {"at_least": 100, "unit": "B/s"}})"}};
};

constexpr const char* kScaling =
    R"({"probe": "lane", "scope": "group", "by": "growing", "limit": {"at_least": 0.9, "unit": "B/s", "of": "smallest_group"}})";

}  // namespace

TEST(fabric_plan, pairs_of_a_plane_run_rail_by_rail_and_never_across) {
  const Plan plan = plan_of(requirement(R"(, "plane": "parameter")"), two_rails(2));
  ASSERT_EQ(plan.steps.size(), 2U);
  EXPECT_EQ(subjects(plan), (std::vector<std::string>{"n1+n2@0", "n1+n2@1"}));
  EXPECT_EQ(plan.steps[1].plane, "parameter");
  EXPECT_EQ(plan.steps[1].rail, "1");
  EXPECT_EQ(plan.steps[1].id, "0002-lane-n1--n2.rail-1");
  EXPECT_EQ(parameters_of(plan.site, plan.steps[1], 0).at("interface"), Value{std::string("eth2")});
  EXPECT_EQ(run::rendezvous_endpoint(plan, plan.steps[1]).substr(0, 8), "10.0.1.1");
  const auto again = read_plan(plan_text(plan), "p");
  EXPECT_TRUE(again) << again.error().text();
}

TEST(fabric_plan, a_node_that_lacks_the_plane_or_a_rail_or_an_address_is_not_measured_by_name) {
  site::Site site = two_rails(4);
  site.nodes[1].planes.clear();
  site.nodes[2].planes["parameter"].pop_back();
  site.nodes[3].planes["parameter"][0].address.clear();
  EXPECT_EQ(subjects(plan_of(requirement(R"(, "plane": "parameter")"), site)),
            (std::vector<std::string>{"n1+n3@0", "n1+n4@1",
                                      "n2@0 (the site names no port of node n2 in the plane parameter, rail 0)",
                                      "n4@0 (the site names no address of node n4 in the plane parameter, rail 0)",
                                      "n2@1 (the site names no port of node n2 in the plane parameter, rail 1)",
                                      "n3@1 (the site names no port of node n3 in the plane parameter, rail 1)"}));
  EXPECT_EQ(subjects(plan_of(requirement(R"(, "plane": "data")"), site)),
            (std::vector<std::string>{"s (the site names no port in the plane data)"}));
}

TEST(fabric_plan, one_node_alone_is_told_all_its_ports_of_the_plane) {
  const Plan plan = plan_of(requirement(R"(, "plane": "parameter")", "ports", "node"), two_rails(1));
  EXPECT_EQ(parameters_of(plan.site, plan.steps.at(0), 0).at("interface"), Value{std::string("eth1,eth2")});
}

TEST(fabric_plan, a_plane_that_the_probe_cannot_be_told_is_refused_and_so_is_a_port_beside_it) {
  EXPECT_NE(error_of(requirement(R"(, "plane": "parameter")", "fabric"), two_rails(2))
                .find("requirements[0].plane: fabric has no parameter `interface` or `device`"),
            std::string::npos);
  EXPECT_NE(error_of(requirement(R"(, "plane": "parameter", "parameters": {"interface": "eth9"})"), two_rails(2))
                .find("requirements[0].parameters.interface: is set by the plane"),
            std::string::npos);
  EXPECT_NE(error_of(requirement(R"(, "plane": "public")"), two_rails(2))
                .find("'public' is not one of parameter, data, business, management"),
            std::string::npos);
}

TEST(fabric_plan, pairs_in_a_leaf_and_across_leaves_are_told_apart_and_who_has_none_is_named) {
  const site::Site site = two_rails(3);  // n1 and n3 on l1, n2 on l2
  EXPECT_EQ(subjects(plan_of(requirement(R"(, "pairs": "in_leaf")"), site)),
            (std::vector<std::string>{"n1+n3", "n2 (no other node hangs on the leaf l2 of the node n2)"}));
  EXPECT_EQ(subjects(plan_of(requirement(R"(, "pairs": "across_leaves")"), site)),
            (std::vector<std::string>{"n2+n3", "n1+n2"}));
  EXPECT_EQ(subjects(plan_of(requirement(R"(, "pairs": "across_spines")"), site)).front(),
            "n1 (the site names no spines of the leaf l1 of the node n1)");
}

TEST(fabric_plan, pairs_alone_and_side_by_side_are_two_steps) {
  const auto plan = make_plan(fixture::profile({requirement(""), requirement(R"(, "alone": true)")}), two_rails(2),
                              fabric_programs(), {});
  ASSERT_TRUE(plan) << plan.error().text();
  ASSERT_EQ(plan->steps.size(), 2U);
  EXPECT_FALSE(plan->steps[0].alone);
  EXPECT_TRUE(plan->steps[1].alone);
}

TEST(fabric_plan, fields_of_another_scope_are_refused) {
  EXPECT_NE(error_of(requirement(R"(, "alone": true)", "lane", "cluster"), two_rails(2))
                .find("has `alone`, and its scope is cluster"),
            std::string::npos);
  EXPECT_NE(error_of(requirement(R"(, "pairs": "in_leaf")", "lane", "group"), two_rails(2))
                .find("has `pairs`, and its scope is group"),
            std::string::npos);
  EXPECT_NE(
      error_of(
          R"({"probe": "lane", "scope": "group", "limit": {"at_least": 0.9, "unit": "B/s", "of": "smallest_group"}})",
          two_rails(2))
          .find("limit.of: refers to the smallest"),
      std::string::npos);
  EXPECT_NE(error_of(requirement(R"(, "conditions": [{"name": "address", "site": "address"}])"), two_rails(2))
                .find("conditions[0].site: asks for the site's facts"),
            std::string::npos);
}

TEST(fabric_plan, growing_groups_are_held_against_the_smallest_which_is_measured_and_has_no_cell) {
  Ran run(plan_of(kScaling, fixture::site(8)));
  run.step(0, 100);
  run.step(1, 95);
  run.step(2, 80);
  const auto results = run.results();
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].subject.id, "first-4");
  EXPECT_EQ(results[0].outcome, judge::Outcome::pass) << results[0].reason;
  EXPECT_EQ(*results[0].reference, 100);
  EXPECT_EQ(results[1].subject.id, "first-8");
  EXPECT_EQ(results[1].outcome, judge::Outcome::fail) << results[1].reason;
}

TEST(fabric_plan, without_the_smallest_group_nothing_of_scaling_passes) {
  Ran run(plan_of(kScaling, fixture::site(4)));
  run.step(1, 1000);
  const auto results = run.results();
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].outcome, judge::Outcome::inconclusive);
  EXPECT_EQ(results[0].reason, "The smallest of the growing groups was not measured under the required conditions.");
  EXPECT_EQ(subjects(plan_of(kScaling, fixture::site(2))),
            (std::vector<std::string>{"s (growing groups that are held against the smallest need three nodes)"}));
}

TEST(fabric_plan, what_grows_with_the_nodes_is_held_against_as_many_times_the_smallest) {
  Ran run(plan_of(
      R"({"probe": "lane", "scope": "group", "by": "growing", "limit": {"at_least": 0.9, "unit": "B/s", "of": "smallest_group_by_nodes"}})",
      fixture::site(4)));
  run.step(0, 100);
  run.step(1, 170);
  const auto results = run.results();
  EXPECT_EQ(*results.at(0).reference, 200);
  EXPECT_EQ(results.at(0).outcome, judge::Outcome::fail);
}

TEST(fabric_plan, with_a_knee_a_group_is_held_against_the_best_of_the_smaller_ones) {
  Ran run(plan_of(
      R"({"probe": "lane", "scope": "group", "by": "growing", "knee": {"at_least": 5}, "limit": {"at_least": 0.9, "unit": "B/s", "of": "smallest_group_by_nodes"}})",
      fixture::site(8)));
  run.step(0, 100);
  run.step(1, 360);
  run.step(2, 450);
  run.step(3, 600);
  const auto results = run.results();
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[1].subject.id, "drawn-5");
  EXPECT_EQ(results[1].outcome, judge::Outcome::pass) << results[1].reason;
  EXPECT_EQ(*results[2].reference, 720);
  EXPECT_EQ(results[2].outcome, judge::Outcome::fail);
  EXPECT_TRUE(results[1].required);
  EXPECT_FALSE(results[2].required);
}

TEST(fabric_plan, a_knee_needs_a_figure_that_growing_groups_keep) {
  for (const auto& [more, said] : std::vector<std::pair<std::string, std::string>>{
           {R"("scope": "group", "limit": {"at_least": 9, "unit": "B/s"})", "knee: is of a figure at one coordinate"},
           {R"("scope": "group", "by": "growing", "limit": {"at_most": 2, "unit": "B/s", "of": "smallest_group"})",
            "knee: is of a figure at one coordinate"}}) {
    EXPECT_NE(error_of(R"({"probe": "lane", "knee": {}, )" + more + "}", fixture::site(8)).find(said),
              std::string::npos)
        << more;
  }
}

constexpr const char* kCapped =
    R"({"probe": "lane", "scope": "group", "by": "growing", "limit": {"at_least": 0.9, "unit": "B/s", "of": "smallest_group_by_nodes", "capped_by": "peak:all"}})";

std::expected<Profile, InputError> capped(const std::string& peaks, const std::string& requirement = kCapped) {
  std::string text = fixture::profile_text({requirement}, {});
  text.insert(text.find('{') + 1, R"("peaks": {)" + peaks + "},");
  return read_profile(text, "p.json", [](const std::string&) { return std::nullopt; });
}

TEST(fabric_plan, a_cap_is_a_peak_of_the_same_unit_and_of_what_grows_with_the_nodes) {
  EXPECT_EQ(capped("").error().where, "p.json: requirements[0].limit.capped_by");
  EXPECT_EQ(
      capped(R"("all": {"value": 250, "unit": "s", "source": {"document": "d", "status": "sourced"}})").error().what,
      "'B/s', but peak 'all' is in 's'");
  std::string other = kCapped;
  other.replace(other.find("smallest_group_by_nodes"), 23, "smallest_group");
  EXPECT_EQ(capped("", other).error().what, "caps a limit that does not grow with the nodes");
}

TEST(fabric_plan, what_grows_with_the_nodes_owes_no_more_than_the_promised_ceiling) {
  const Profile profile =
      capped(R"("all": {"value": 250, "unit": "B/s", "source": {"document": "d", "status": "sourced"}})").value();
  Ran run(*make_plan(profile, fixture::site(8), fabric_programs(), {}));
  run.step(0, 100);
  run.step(1, 170);
  run.step(2, 230);
  const auto results = run.results();
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(*results[0].reference, 200) << "4 nodes: twice what 2 reach";
  EXPECT_EQ(results[0].outcome, judge::Outcome::fail);
  EXPECT_EQ(*results[1].reference, 250) << "8 nodes: the ceiling, not 400";
  EXPECT_EQ(results[1].outcome, judge::Outcome::pass) << results[1].reason;
}

TEST(fabric_plan, a_rank_with_another_address_than_the_site_says_is_named_and_nothing_passes) {
  const std::string wanted =
      requirement(R"(, "plane": "parameter", "conditions": [{"name": "address", "site": "address"}])");
  Ran right(plan_of(wanted, two_rails(2)));
  right.step(0, 200);
  EXPECT_EQ(right.results().at(0).outcome, judge::Outcome::pass) << right.results().at(0).reason;
  Ran wrong(plan_of(wanted, two_rails(2)));
  wrong.step(0, 200, "10.0.9.2");
  const judge::Result result = wrong.results().at(0);
  EXPECT_EQ(result.outcome, judge::Outcome::inconclusive);
  EXPECT_EQ(
      result.reason,
      R"(The address was 10.0.9.2, demanded is "10.0.0.2" (the address of n2 in the site): the traffic took another port; check the cables, the addresses and the site file.)");
}

TEST(fabric_plan, what_the_site_does_not_tell_cannot_be_met) {
  site::Site site = two_rails(2);
  for (auto& node : site.nodes) node.leaf.clear();
  Ran run(
      plan_of(requirement(R"(, "plane": "parameter", "conditions": [{"name": "interface", "site": "leaf"}])"), site));
  run.step(0, 200);
  EXPECT_EQ(run.results().at(0).outcome, judge::Outcome::inconclusive);
}

TEST(fabric_plan, a_record_with_another_port_than_the_rank_was_told_is_refused) {
  const Plan plan = plan_of(requirement(R"(, "plane": "parameter")"), two_rails(2));
  Ran run(plan);
  run.step(0, 200);
  Plan other = plan;
  for (auto& node : other.site.nodes) node.planes["parameter"][0].interface = "eth7";
  fixture::MemoryRun forged({R"({"limit": {"at_least": 100, "unit": "B/s"}})"});
  forged.plan = plan;
  for (const auto& node : plan.site.nodes) forged.journal.node_facts[node.name] = {{"name", node.name}};
  forged.attempt(0, "exited", record_of(other, other.steps[0], 0, 200, "10.0.0.1"));
  forged.add_rank(1, record_of(other, other.steps[0], 1, 200, "10.0.0.2"));
  const auto result = judge::judge(forged.plan, "digest", forged.journal, forged.reader()).results.at(0);
  EXPECT_EQ(result.outcome, judge::Outcome::error);
  EXPECT_NE(result.reason.find("the record's parameters are not those of the step"), std::string::npos)
      << result.reason;
}

}  // namespace assay::plan
