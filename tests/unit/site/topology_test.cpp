// Topology: what lldpctl and ibnetdiscover print becomes leaves, switch ports and spines of a site, and what
// contradicts the site is named.
#include "orchestrator/site/topology.h"

#include <gtest/gtest.h>

#include "probes/core/lldp.h"
#include "tests/unit/paths.h"

namespace assay::site {
namespace {

std::string golden(const std::string& name) { return read_file(golden_file("fabric/") + name).value(); }

/// Nodes n1 and n2 with `planes` each.
Site site_of(const std::string& one, const std::string& two) {
  auto site = read_site(R"({"schema": "assay.site/1", "name": "s", "nodes": [{"name": "n1", "launcher": "ssh")" + one +
                            R"(}, {"name": "n2", "launcher": "ssh")" + two + "}]}",
                        "s.json");
  if (!site) throw std::runtime_error(site.error().text());
  return *site;
}

std::string topology_error(const std::string& text) {
  const auto topology = topology_from_ibnetdiscover(text, "ib.txt", site_of("", ""));
  return topology ? "accepted" : topology.error().text();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  if (at == std::string::npos) throw std::logic_error(from + " is not in the text");
  return text.replace(at, from.size(), to);
}

constexpr const char* kTwoDevices =
    R"(, "planes": {"parameter": [{"device": "mlx5_0", "rail": "0"}, {"device": "mlx5_1", "rail": "1"}]})";

}  // namespace

TEST(lldp, both_json_forms_of_lldpctl_tell_switch_and_port) {
  for (const char* name : {"lldpctl.json", "lldpctl_json0.json"}) {
    const auto neighbours = read_lldp(golden(name), name);
    ASSERT_TRUE(neighbours) << neighbours.error().text();
    ASSERT_EQ(neighbours->size(), 1U);
    EXPECT_EQ(neighbours->front().interface, "eth1");
    EXPECT_EQ(neighbours->front().system, "leaf-1");
    EXPECT_EQ(neighbours->front().system_port, "swp7");
  }
}

TEST(lldp, a_port_id_that_is_a_name_comes_before_its_description_and_a_nameless_chassis_has_none) {
  const auto neighbours = read_lldp(
      R"({"lldp": {"interface": [{"eth1": {"chassis": {"id": {"type": "mac", "value": "0"}}, "port": {"id": {"type": "ifname", "value": "Ethernet1/3"}, "descr": "to n1"}}},
                                                              {"eth2": {"chassis": {"leaf2": {}}, "port": {"descr": "swp9"}}}]}})",
      "x");
  ASSERT_TRUE(neighbours) << neighbours.error().text();
  EXPECT_EQ(neighbours->at(0).system, "");
  EXPECT_EQ(neighbours->at(0).system_port, "Ethernet1/3");
  EXPECT_EQ(neighbours->at(1).system, "leaf2");
  EXPECT_TRUE(read_lldp(R"({"lldp": {}})", "x")->empty());
}

TEST(lldp, what_is_no_answer_of_lldpctl_is_refused_with_its_place) {
  EXPECT_EQ(read_lldp("{}", "n1.json").error().text(),
            "n1.json: has no member 'lldp'\nhint: give what `lldpctl -f json` printed, unchanged");
  EXPECT_NE(read_lldp(R"({"lldp": {"interface": [{"eth1": {"chassis": {}}}]}})", "n1.json")
                .error()
                .text()
                .find("n1.json: lldp.interface[0]: 'eth1' has no name, chassis or port"),
            std::string::npos);
  EXPECT_NE(
      read_lldp(R"({"lldp": {"interface": {"a": {}, "a": {}}}})", "n1.json").error().text().find("in one object twice"),
      std::string::npos);
}

TEST(topology, lldp_fills_in_leaf_and_switch_port) {
  const Site site = site_of(R"(, "planes": {"parameter": [{"interface": "eth1"}]})", "");
  const auto topology = topology_from_lldp({{"n1", golden("lldpctl.json")}, {"n2", R"({"lldp": {}})"}}, "lldp", site);
  ASSERT_TRUE(topology) << topology.error().text();
  const Cabled cabled = with_cables(site, *topology, "");
  EXPECT_TRUE(cabled.findings.empty());
  EXPECT_EQ(cabled.site.nodes[0].planes.at("parameter")[0].leaf, "leaf-1");
  EXPECT_EQ(cabled.site.nodes[0].planes.at("parameter")[0].switch_port, "swp7");
}

TEST(topology, a_node_on_the_wrong_leaf_or_switch_port_is_named_and_nothing_is_overwritten) {
  const auto findings = [](const char* port) {
    const Site site =
        site_of(std::string(R"(, "planes": {"parameter": [{"interface": "eth1", "rail": "3", )") + port + "}]}", "");
    return with_cables(
        site, *topology_from_lldp({{"n1", golden("lldpctl.json")}, {"n2", R"({"lldp": {}})"}}, "lldp", site), "");
  };
  const Cabled leaf = findings(R"("leaf": "leaf-2")");
  EXPECT_EQ(leaf.findings,
            (std::vector<std::string>{
                "n1: eth1 of rail 3 is connected to leaf-1 port swp7; in the site it is leaf-2 (lldp/n1.json)"}));
  EXPECT_EQ(leaf.site.nodes[0].planes.at("parameter")[0].leaf, "leaf-2");
  EXPECT_EQ(findings(R"("switch_port": "swp8")").findings.at(0),
            "n1: eth1 of rail 3 is connected to port swp7 of leaf-1; in the site it is port swp8 (lldp/n1.json)");
}

TEST(topology, a_port_with_a_leaf_in_the_site_and_no_neighbour_is_named) {
  const Site site = site_of("", R"(, "planes": {"parameter": [{"interface": "eth1", "leaf": "leaf-1"}]})");
  const Cabled cabled =
      with_cables(site, *topology_from_lldp({{"n1", R"({"lldp": {}})"}, {"n2", R"({"lldp": {}})"}}, "lldp", site), "");
  EXPECT_EQ(cabled.findings,
            (std::vector<std::string>{
                "n2: eth1 of plane parameter is on leaf-1 in the site, but the fabric does not report it"}));
}

TEST(topology, files_and_nodes_must_be_the_same) {
  const Site site = site_of("", "");
  EXPECT_NE(
      topology_from_lldp({{"n1", R"({"lldp": {}})"}}, "lldp", site).error().text().find("lldp/n2.json: is missing"),
      std::string::npos);
  EXPECT_NE(topology_from_lldp({{"n3", "{}"}}, "lldp", site)
                .error()
                .text()
                .find("lldp/n3.json: does not belong to a node of the site"),
            std::string::npos);
}

TEST(topology, ibnetdiscover_reports_leaves_switch_ports_spines_and_unknown_hosts) {
  const Site site = site_of(kTwoDevices, "");
  const auto topology = topology_from_ibnetdiscover(golden("ibnetdiscover.txt"), "ib.txt", site);
  ASSERT_TRUE(topology) << topology.error().text();
  EXPECT_EQ(topology->unknown_hosts, (std::vector<std::string>{"storage9 mlx5_0"}));
  const Cabled cabled = with_cables(site, *topology, "parameter");
  EXPECT_TRUE(cabled.findings.empty());
  EXPECT_EQ(cabled.site.nodes[0].planes.at("parameter")[1].leaf, "leaf2");
  EXPECT_EQ(cabled.site.nodes[0].planes.at("parameter")[1].switch_port, "1");
  EXPECT_EQ(cabled.site.nodes[1].planes.at("parameter").size(), 2U);
  EXPECT_EQ(cabled.site.nodes[1].planes.at("parameter")[0].device, "mlx5_0");
  EXPECT_EQ(cabled.site.nodes[1].planes.at("parameter")[0].rail, "0");
  EXPECT_EQ(cabled.site.spines, (std::map<std::string, std::vector<std::string>>{{"leaf1", {"spine1", "spine2"}},
                                                                                 {"leaf2", {"spine1", "spine2"}}}));
  const auto again = read_site(to_json(cabled.site).dump(), "again");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(to_json(*again), to_json(cabled.site));
}

TEST(topology, a_host_adapter_on_the_wrong_rail_is_named_with_its_line) {
  const Site site = site_of(R"(, "planes": {"parameter": [{"device": "mlx5_0", "rail": "0", "leaf": "leaf2"}]})", "");
  const Cabled cabled =
      with_cables(site, *topology_from_ibnetdiscover(golden("ibnetdiscover.txt"), "ib.txt", site), "");
  ASSERT_EQ(cabled.findings.size(), 1U);
  EXPECT_TRUE(cabled.findings[0].starts_with(
      "n1: mlx5_0 of rail 0 is connected to leaf1 port 1; in the site it is leaf2 (ib.txt: line "))
      << cabled.findings[0];
}

TEST(topology, a_line_that_is_not_understood_and_a_file_that_is_cut_off_are_refused_with_the_line) {
  const std::string whole = golden("ibnetdiscover.txt");
  EXPECT_EQ(topology_error(whole), "accepted");
  EXPECT_NE(topology_error(replaced(whole, "[1]\t\"H-", "[x]\t\"H-")).find("ib.txt: line 11: '[x]"), std::string::npos)
      << topology_error(replaced(whole, "[1]\t\"H-", "[x]\t\"H-"));
  EXPECT_NE(topology_error(whole.substr(0, whole.find("caguid"))).find("which is not in the file"), std::string::npos);
  EXPECT_NE(topology_error("").find("ib.txt: contains no link"), std::string::npos);
  EXPECT_NE(
      topology_error(replaced(whole, "# \"n2 mlx5_0\"\n", "# \"n2 HCA-1\"\n")).find("'n2 HCA-1' names no RDMA device"),
      std::string::npos);
}

TEST(topology, two_switches_of_one_description_keep_their_guids) {
  std::string text = golden("ibnetdiscover.txt");
  for (const char* name : {"leaf1", "leaf2"}) {
    for (auto at = text.find(name); at != std::string::npos; at = text.find(name)) text.replace(at, 5, "ldeaf");
  }
  const auto topology = topology_from_ibnetdiscover(text, "ib.txt", site_of("", ""));
  ASSERT_TRUE(topology) << topology.error().text();
  EXPECT_TRUE(topology->spines.contains("S-a088c20300100001") && topology->spines.contains("S-a088c20300100002"));
}

TEST(site_planes, ports_of_one_rail_addresses_that_stand_twice_and_unknown_planes_are_refused) {
  const auto error = [](const std::string& planes) {
    const auto site =
        read_site(R"({"schema": "assay.site/1", "name": "s", "nodes": [{"name": "n1", "launcher": "ssh", "planes": )" +
                      planes + "}]}",
                  "s.json");
    return site ? "accepted" : site.error().text();
  };
  EXPECT_EQ(error(R"({"parameter": [{"interface": "eth1"}]})"), "accepted");
  EXPECT_NE(error(R"({"parameter": [{"interface": "eth1"}, {"interface": "eth2"}]})")
                .find("nodes[0].planes.parameter[1].rail: is missing on two ports"),
            std::string::npos);
  EXPECT_NE(
      error(R"({"parameter": [{"rail": "0"}]})").find("nodes[0].planes.parameter[0]: has neither interface nor device"),
      std::string::npos);
  EXPECT_NE(error(R"({"parameter": [{"interface": "eth1", "rail": "0"}, {"interface": "eth1", "rail": "1"}]})")
                .find("'eth1' appears twice"),
            std::string::npos);
  EXPECT_NE(
      error(
          R"({"data": [{"interface": "eth1", "address": "10.0.0.1"}], "parameter": [{"interface": "eth2", "address": "10.0.0.1"}]})")
          .find("'10.0.0.1' is already the address of node n1, plane data"),
      std::string::npos);
  EXPECT_NE(error(R"({"paramter": [{"interface": "eth1"}]})").find("did you mean 'parameter'?"), std::string::npos);
}

}  // namespace assay::site
