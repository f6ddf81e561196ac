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

/// The neighbour of eth1 with this id and description of its port.
std::string with_port(const std::string& type, const std::string& id, const std::string& description) {
  return R"({"eth1": {"chassis": {"leaf-1": {}}, "port": {"id": {"type": ")" + type + R"(", "value": ")" + id +
         R"("}, "descr": ")" + description + R"("}}})";
}

TEST(lldp, a_port_is_called_what_the_switch_calls_it) {
  const auto port = [](const std::string& type, const std::string& id, const std::string& description) {
    const auto all = read_lldp(R"({"lldp": {"interface": [)" + with_port(type, id, description) + "]}}", "x").value();
    return std::pair(all.at(0).system_port, all.at(0).other_name);
  };
  using Names = std::pair<std::string, std::string>;
  EXPECT_EQ(port("local", "512", "xe-0/0/1"), Names("xe-0/0/1", "512"));  // an SNMP index
  EXPECT_EQ(port("local", "Ethernet30/1", "to n1"), Names("Ethernet30/1", "to n1"));
  EXPECT_EQ(port("local", "7", ""), Names("7", ""));
  EXPECT_EQ(port("mac", "02:00:00:00:00:01", "Ethernet124"), Names("Ethernet124", ""));
  EXPECT_EQ(port("ifname", "swp7", "n1"), Names("swp7", "n1"));
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

TEST(topology, a_switch_port_contradicts_the_site_only_by_another_name_than_both_of_its_own) {
  const auto cabled = [](const std::string& neighbours, const std::string& port) {
    const Site site = site_of(R"(, "planes": {"parameter": [{"interface": "eth1")" + port + "}]}", "");
    const std::string text = R"({"lldp": {"interface": [)" + neighbours + "]}}";
    return with_cables(site, topology_from_lldp({{"n1", text}, {"n2", R"({"lldp": {}})"}}, "lldp", site).value(), "");
  };
  const std::string juniper = with_port("local", "512", "xe-0/0/1");
  EXPECT_TRUE(cabled(juniper, R"(, "switch_port": "xe-0/0/1")").findings.empty());
  EXPECT_TRUE(cabled(juniper, R"(, "switch_port": "512")").findings.empty());
  EXPECT_EQ(cabled(juniper, R"(, "switch_port": "xe-0/0/2")").findings.size(), 1U);
  EXPECT_EQ(cabled(juniper, "").site.nodes[0].planes.at("parameter")[0].switch_port, "xe-0/0/1");
  // What no site may have as a port's name is none.
  const Cabled described = cabled(with_port("mac", "02:00:00:00:00:01", "to n1, rack 2"), R"(, "leaf": "leaf-1")");
  EXPECT_TRUE(described.findings.empty());
  EXPECT_EQ(described.site.nodes[0].planes.at("parameter")[0].switch_port, "");
}

TEST(topology, a_neighbour_without_a_name_ends_nothing_but_its_own_port) {
  const std::string nameless = R"(, {"eno1": {"chassis": {"id": {"type": "mac", "value": "0"}}, "port": {}}})";
  const auto cabled = [&](const std::string& more, const std::string& ports) {
    const Site site = site_of(R"(, "planes": {"parameter": [)" + ports + "]}", "");
    const std::string text = R"({"lldp": {"interface": [)" + with_port("ifname", "swp7", "") + more + "]}}";
    const auto topology = topology_from_lldp({{"n1", text}, {"n2", R"({"lldp": {}})"}}, "lldp", site).value();
    return std::pair(with_cables(site, topology, "parameter"), topology.notes);
  };
  const std::string eth1 = R"({"interface": "eth1", "rail": "0"})";
  for (const std::string& more : {nameless, nameless + nameless}) {
    const auto [result, notes] = cabled(more, eth1);
    EXPECT_TRUE(result.findings.empty());
    EXPECT_EQ(result.site.nodes[0].planes.at("parameter").size(), 1U);
    EXPECT_EQ(result.site.nodes[0].planes.at("parameter")[0].switch_port, "swp7");
    EXPECT_EQ(notes,
              (std::vector<std::string>{"lldp/n1.json: eno1 is left out: its neighbour reports no name: give the "
                                        "switch a host name"}));
  }
  const auto listed = cabled(nameless, eth1 + R"(, {"interface": "eno1", "rail": "1", "leaf": "leaf-9"})").first;
  ASSERT_EQ(listed.findings.size(), 1U);
  EXPECT_TRUE(
      listed.findings[0].starts_with("n1: eno1 of plane parameter is on leaf-9 in the site, but its neighbour "))
      << listed.findings[0];
  std::string second = with_port("ifname", "swp8", "");
  second.replace(second.find("leaf-1"), 6, "leaf-2");
  EXPECT_NE(cabled(", " + second, R"({"interface": "eth1", "leaf": "leaf-1"})")
                .first.findings.at(0)
                .find("several neighbours (leaf-1, leaf-2)"),
            std::string::npos);
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
  EXPECT_EQ(topology->notes, (std::vector<std::string>{"'storage9 mlx5_0' is in the fabric, but not in the site"}));
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
  // A switch's own aggregation node is no host that is missing.
  EXPECT_EQ(topology_error(replaced(whole, "[2]\t\"H-a088c20300aa0020\"",
                                    "[66]\t\"H-a088c20300100009\"[1](a088c20300100009) \t\t# \"Mellanox Technologies "
                                    "Aggregation Node\" lid 9 4xNDR\n[2]\t\"H-a088c20300aa0020\"")),
            "accepted");
  EXPECT_NE(
      topology_error(replaced(whole, "# \"n2 mlx5_0\"\n", "# \"n2 HCA-1\"\n")).find("'n2 HCA-1' names no RDMA device"),
      std::string::npos);
}

TEST(topology, a_single_adapter_needs_no_name_of_a_device) {
  const std::string text = replaced(replaced(golden("ibnetdiscover.txt"), "# \"n2 mlx5_1\"\n", "# \"n9 mlx5_1\"\n"),
                                    "# \"n2 mlx5_0\"\n", "# \"n2 HCA-1\"\n");
  const auto cabled = [&](const std::string& more) {
    const Site site = site_of(kTwoDevices, more);
    return with_cables(site, topology_from_ibnetdiscover(text, "ib.txt", site).value(), "parameter");
  };
  const Cabled bare = cabled("");
  EXPECT_TRUE(bare.findings.empty());
  EXPECT_EQ(bare.site.nodes[1].leaf, "leaf1");
  EXPECT_TRUE(read_site(to_json(bare.site).dump(), "again"));
  const Cabled listed = cabled(R"(, "planes": {"parameter": [{"device": "ibp3s0"}]})");
  EXPECT_TRUE(listed.findings.empty());
  EXPECT_EQ(listed.site.nodes[1].planes.at("parameter")[0].leaf, "leaf1");
  EXPECT_NE(listed.site.nodes[1].planes.at("parameter")[0].switch_port, "");
  // Of several devices it could be any.
  const Cabled several = cabled(std::string(kTwoDevices));
  EXPECT_EQ(several.site.nodes[1].leaf, "");
  EXPECT_EQ(several.site.nodes[1].planes.at("parameter")[0].leaf, "");
  const Cabled elsewhere = cabled(R"(, "leaf": "leaf2")");
  ASSERT_EQ(elsewhere.findings.size(), 1U);
  EXPECT_TRUE(elsewhere.findings[0].starts_with("n2: is connected to leaf1 port ")) << elsewhere.findings[0];
}

TEST(topology, warnings_of_the_tool_are_noted_with_their_lines_and_a_byte_order_mark_is_none) {
  const std::string whole = golden("ibnetdiscover.txt");
  for (const char* warning :
       {"ibwarn: [6931] mad_rpc: _do_madrpc failed; dport (DR path)\n", "src/query_smp.c:228; send failed; -5\n"}) {
    const auto topology = topology_from_ibnetdiscover("\xEF\xBB\xBF" + (warning + whole), "ib.txt", site_of("", ""));
    ASSERT_TRUE(topology) << topology.error().text();
    EXPECT_TRUE(topology->notes.at(0).starts_with("ib.txt: line 1 is a warning, of a part that may be missing: "))
        << topology->notes.at(0);
  }
  EXPECT_NE(topology_error("ibpanic: [1] main: can't open\n" + whole).find("ib.txt: line 1: 'ibpanic"),
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
