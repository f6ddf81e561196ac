// crossing_spots: tenants and paths of a site, who tries which path, and what a plan of them says.
#include "orchestrator/plan/crossing_spots.h"

#include <algorithm>
#include <ranges>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orchestrator/plan/catalogue.h"
#include "orchestrator/plan/metered.h"
#include "orchestrator/site/site.h"

namespace assay::plan {
namespace {

constexpr const char* kNodes =
    R"([{"name": "b1", "launcher": "ssh", "address": "10.1.0.1"}, {"name": "b2", "launcher": "ssh"},
  {"name": "r1", "launcher": "ssh"}, {"name": "r2", "launcher": "ssh"}, {"name": "spare", "launcher": "ssh"}])";
constexpr const char* kTenants = R"({"blue": ["b1", "b2"], "red": ["r1", "r2"], "empty": []})";

std::string document(const std::string& paths, const std::string& tenants = kTenants) {
  return fmt::format(R"({{"schema": "assay.site/1", "name": "s", "nodes": {}, "crossings": {{
    "consent": "A. Muster, 2026-11-27, blue and red", "tenants": {}, "paths": {}}}}})",
                     kNodes, tenants, paths);
}

std::string error_of(const std::string& paths, const std::string& tenants = kTenants) {
  const auto site = site::read_site(document(paths, tenants), "s.json");
  return site ? "accepted" : site.error().text();
}

site::Site site_with(const std::string& paths) {
  auto site = site::read_site(document(paths), "s.json");
  EXPECT_TRUE(site) << site.error().text();
  return *site;
}

constexpr const char* kPaths = R"([
  {"name": "blue-app", "class": "tcp", "tenant": "blue", "address": "10.1.0.1", "port": 8080},
  {"name": "blue-home", "class": "nfs", "tenant": "blue", "address": "10.9.0.1", "resource": "/blue"},
  {"name": "lost", "class": "kubelet", "tenant": "empty", "address": "10.9.0.2"}])";

/// The probe as the catalogue describes it.
std::vector<Program> crossing_program() {
  const auto newest_first = std::views::reverse(known_probes());
  const auto known = std::ranges::find(newest_first, kCrossingProbe, &KnownProbe::name);
  return {{.name = kCrossingProbe,
           .sha256 = std::string(64, '1'),
           .path = "/p",
           .description = *read_description(known->document.dump(), "catalogue")}};
}

Requirement requirement_of(const char* type) {
  Requirement requirement;
  requirement.parameters["class"] = std::string(type);
  requirement.by = Grouping::path;
  return requirement;
}

}  // namespace

TEST(crossings, every_error_has_its_place_and_a_hint) {
  struct Case {
    const char* paths;
    const char* words;
  };
  const Case cases[] = {
      {R"([{"name": "p", "class": "tcp", "tenant": "green", "address": "10.1.0.1", "port": 1}])",
       "crossings.paths[0].tenant: 'green' is no tenant"},
      {R"([{"name": "p", "class": "tcp", "tenant": "red", "address": "10.1.0.1", "port": 1},
           {"name": "p", "class": "l2", "tenant": "red", "address": "10.1.0.1"}])",
       "crossings.paths[1].name: 'p' appears twice"},
      {R"([{"name": "p", "class": "tcp", "tenant": "red", "address": "10.1.0", "port": 1}])",
       "is not a numeric address"},
      {R"([{"name": "p", "class": "tcp", "tenant": "red", "address": "dead.beef", "port": 1}])", "no name is resolved"},
      {R"([{"name": "p", "class": "l2", "tenant": "red", "address": "10.1.0.1", "port": 1}])",
       "the link, paths of InfiniBand and memory have no ports"},
      {R"([{"name": "p", "class": "tcp", "tenant": "red", "address": "10.1.0.1"}])",
       "port: is missing in a path of class tcp"},
      {R"([{"name": "p", "class": "nfs", "tenant": "red", "address": "10.1.0.1"}])", "resource: is no absolute path"},
      {R"([{"name": "p", "class": "s3", "tenant": "red", "address": "10.1.0.1", "resource": "b"}])", "credentials"},
      {R"([{"name": "p", "class": "tcp", "tenant": "red", "address": "10.1.0.1", "port": 1, "resource": "x"}])",
       "resource: is not a field of class tcp"},
      {R"([{"name": "p", "class": "tcp", "tenant": "red", "address": "10.1.0.1", "port": 1, "interface": "e"}])",
       "interface: is not a field of class tcp"},
      {R"([{"name": "p", "class": "etcd", "tenant": "red", "address": "10.1.0.1", "tls": true}])", "they go with s3"},
      {R"([{"name": "p", "class": "ib_pkey", "tenant": "red", "address": "10.1.0.1"}])", "ib_path"},
      {R"([{"name": "p", "class": "ib_path", "tenant": "red", "address": "fe80::1", "resource": "5"}])",
       "resource: is no partition key in a path of class ib_path"},
      {R"([{"name": "p", "class": "rdma_cm", "tenant": "red", "address": "10.1.0.1"}])",
       "port: is missing in a path of class rdma_cm"},
      {R"([{"name": "p", "class": "nvlink", "tenant": "red", "resource": "/shared"}])",
       "target: is missing in a path of class nvlink"},
      {R"([{"name": "p", "class": "nvlink", "tenant": "red", "target": "r1", "address": "10.1.0.1", "resource": "/s"}])",
       "address: is not a field of class nvlink"},
      {R"([{"name": "p", "class": "roce", "tenant": "red", "address": "10.1.0.1", "resource": "/s"}])",
       "target: is missing in a path of class roce"},
      {R"([{"name": "p", "class": "roce", "tenant": "red", "target": "r1", "address": "10.1.0.1"}])",
       "resource: is no absolute path in a path of class roce"},
      {R"([{"name": "p", "class": "roce", "tenant": "red", "target": "r1", "address": "10.1.0.1", "resource": "/s", "port": 1}])",
       "RoCE v2 has always 4791"},
      {R"([{"name": "p", "class": "nfs", "tenant": "red", "target": "r1", "address": "10.1.0.1", "resource": "/s"}])",
       "target: is not a field of class nfs"},
      {R"([{"name": "p", "class": "l2", "tenant": "red", "address": "10.1.0.1", "folder": "/s"}])", "folder: is not"},
      {R"([{"name": "p", "class": "udp", "tenant": "red", "target": "b1", "address": "10.1.0.1", "port": 1}])",
       "target: 'b1' is not one of several nodes of red"},
      {R"([{"name": "p", "class": "tcp", "tenant": "red", "port": 1}])", "address: '' is not a numeric address"},
      {"[]", "paths"},
  };
  for (const auto& one : cases)
    EXPECT_NE(error_of(one.paths).find(one.words), std::string::npos) << error_of(one.paths);
  EXPECT_NE(error_of(R"([{"name": "p", "class": "udp", "tenant": "one", "target": "r1", "address": "10.1.0.1",
                          "port": 1}])",
                     R"({"blue": ["b1"], "one": ["r1"]})")
                .find("target: 'r1' is not one of several nodes of one"),
            std::string::npos);
  EXPECT_NE(error_of(kPaths, R"({"blue": ["b9"], "red": [], "empty": []})").find("the site has no node 'b9'"),
            std::string::npos);
  EXPECT_NE(error_of(kPaths, R"({"blue": ["b1"], "red": ["b1"], "empty": []})").find("'b1' is already of a tenant"),
            std::string::npos);
}

TEST(crossings, they_come_back_from_their_own_document_with_the_defaults_of_their_class) {
  const auto site = site_with(kPaths);
  EXPECT_EQ(site.crossings->paths[1].port, 2049);
  const auto again = site::read_site(site::to_json(site).dump(), "again");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(site::to_json(*again), site::to_json(site));
}

TEST(crossings, a_part_of_the_site_has_no_other_nodes_in_its_tenants_and_no_path_with_another_target) {
  auto site = site_with(R"([{"name": "p", "class": "tcp", "tenant": "blue", "address": "10.1.0.1", "port": 1},
    {"name": "watched", "class": "tcp", "tenant": "blue", "address": "10.1.0.1", "port": 1, "target": "b1"}])");
  std::erase_if(site.nodes, [](const site::Node& node) { return node.name == "b1"; });
  site::keep_nodes(site.crossings, {"b2", "r1", "r2", "spare"});
  EXPECT_EQ(site.crossings->tenants.at("blue"), std::vector<std::string>{"b2"});
  ASSERT_EQ(site.crossings->paths.size(), 1U);
  EXPECT_EQ(crossing_spots(requirement_of("tcp"), site).at(0).nodes, (std::vector<std::string>{"r1", "b2"}));
  site.crossings->nightly = true;
  const auto again = site::read_site(site::to_json(site).dump(), "again");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_TRUE(again->crossings->nightly);
  site.crossings->paths.front().target = "b2";
  site::keep_nodes(site.crossings, {"r1"});
  EXPECT_FALSE(site.crossings);
}

TEST(crossing_spots, each_node_of_another_tenant_tries_a_path_beside_a_control_that_does_not_hold_its_address) {
  const auto site = site_with(kPaths);
  const auto spots = crossing_spots(requirement_of("tcp"), site);
  ASSERT_EQ(spots.size(), 2U);
  EXPECT_EQ(spots[0].subject, (Subject{"group", "r1>blue-app"}));
  EXPECT_EQ(spots[0].nodes, (std::vector<std::string>{"r1", "b2"}));  // b1 holds 10.1.0.1
  EXPECT_EQ(spots[1].nodes, (std::vector<std::string>{"r2", "b2"}));
  EXPECT_EQ(spots[1].path, "blue-app");
}

TEST(crossing_spots, a_target_is_a_third_rank_and_no_control) {
  const auto site = site_with(R"([{"name": "log", "class": "udp", "tenant": "blue", "address": "10.1.0.2", "port": 514,
                                   "target": "b2"}])");
  const auto spots = crossing_spots(requirement_of("udp"), site);
  ASSERT_EQ(spots.size(), 2U);
  for (const auto& spot : spots) {
    EXPECT_EQ(spot.nodes[1], "b1");
    EXPECT_EQ(spot.nodes[2], "b2");
  }
  const auto plan = make_plan(*profile_named("tenants-apart"), site, crossing_program(), {});
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(parameters_of(plan->site, plan->steps.front(), 2).at("watched"), Value{std::string("on")});
  EXPECT_NE(crossing_words(*plan).find("a node of blue does the same, and b2 sees the arrivals"), std::string::npos);
}

TEST(crossing_spots, controls_take_turns) {
  const auto spots = crossing_spots(requirement_of("nfs"), site_with(kPaths));
  ASSERT_EQ(spots.size(), 2U);
  EXPECT_EQ(spots[0].nodes[1], "b1");
  EXPECT_EQ(spots[1].nodes[1], "b2");
}

TEST(crossing_spots, a_path_whose_tenant_has_no_node_stays_open_and_says_why) {
  const auto spots = crossing_spots(requirement_of("kubelet"), site_with(kPaths));
  ASSERT_EQ(spots.size(), 1U);
  EXPECT_TRUE(spots[0].nodes.empty());
  EXPECT_EQ(spots[0].reason, "the tenant empty of the path lost has no node for the positive control");
}

TEST(crossing_spots, a_plan_is_read_back_gives_each_rank_its_path_and_says_what_is_sent) {
  const auto profile = profile_named("tenants-apart");
  ASSERT_TRUE(profile) << profile.error().text();
  const auto plan = make_plan(*profile, site_with(kPaths), crossing_program(), {});
  ASSERT_TRUE(plan) << plan.error().text();
  ASSERT_EQ(plan->steps.size(), 4U);
  EXPECT_TRUE(plan->searches.empty());
  const Values given = parameters_of(plan->site, plan->steps.front(), 1);
  EXPECT_EQ(given.at("path"), Value{std::string("blue-app")});
  EXPECT_EQ(given.at("address"), Value{std::string("10.1.0.1")});
  EXPECT_EQ(given.at("port"), Value{std::int64_t{8080}});
  const auto again = read_plan(plan_text(*plan), "plan.json");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(
      crossing_words(*plan),
      "crossing: 2 nodes of red try blue-app of blue: a TCP connection, on which nothing is sent to 10.1.0.1 port "
      "8080, at most 3 times, 1 s apart; a node of blue does the same\n"
      "crossing: 2 nodes of red try blue-home of blue: a TCP connection and a look-up of the export (NFS 4) to "
      "10.9.0.1 port 2049, at most 3 times, 1 s apart; a node of blue does the same\n");
}

TEST(crossing_spots, an_export_with_a_folder_is_tried_by_its_handle_beside_an_export_of_the_other_tenant) {
  const auto site = site_with(R"([
    {"name": "blue-home", "class": "nfs", "tenant": "blue", "address": "10.9.0.1", "resource": "/blue", "folder": "/s"},
    {"name": "red-far", "class": "nfs", "tenant": "red", "address": "10.9.0.2", "resource": "/far"},
    {"name": "red-home", "class": "nfs", "tenant": "red", "address": "10.9.0.1", "resource": "/red"},
    {"name": "red-data", "class": "nfs", "tenant": "red", "address": "10.9.0.1", "resource": "/data"}])");
  const auto again = site::read_site(site::to_json(site).dump(), "again");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->crossings->paths.front().folder, "/s");
  Values of_an_old_probe, given{{"folder", std::string()}};
  add_path(site, "blue-home", "r1", of_an_old_probe);
  EXPECT_FALSE(of_an_old_probe.contains("folder"));
  add_path(site, "blue-home", "r1", given);
  EXPECT_EQ(given.at("folder"), Value{std::string("/s")});
  EXPECT_EQ(given.at("own_export"), Value{std::string("/red /data")});
  add_path(site, "red-home", "b1", given);
  EXPECT_EQ(given.at("own_export"), Value{std::string()});
  const auto plan = make_plan(*profile_named("tenants-apart"), site, crossing_program(), {});
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_NE(
      crossing_words(*plan).find(
          "crossing: 2 nodes of red try blue-home of blue: a TCP connection, a look-up of the export (NFS 4) and, "
          "if it is refused, queries of its attributes by that tenant's file handle and by at most four mixed of "
          "it and each own export's, all of it to 10.9.0.1 port 2049"),
      std::string::npos)
      << crossing_words(*plan);
}

TEST(crossing_spots, without_consent_there_is_no_plan) {
  auto site = site_with(kPaths);
  site.crossings.reset();
  const auto plan = make_plan(*profile_named("tenants-apart"), site, crossing_program(), {});
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().text().find("site s: crossings: is missing, and profile tenants-apart tries paths"),
            std::string::npos)
      << plan.error().text();
}

}  // namespace assay::plan
