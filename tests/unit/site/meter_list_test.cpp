// meters of a site: what is refused, and with which words; files of credentials.
#include "probes/core/meter_list.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "orchestrator/site/site.h"
#include "orchestrator/site/site_file.h"
#include "probes/core/secret_file.h"
#include "probes/core/switch_list.h"

namespace assay::site {
namespace {

constexpr const char* kStrip =
    R"("name": "pdu-a1", "kind": "snmp", "model": "apc-rpdu2", "address": "10.0.9.1", "credentials": "pdu.json")";

std::expected<Site, InputError> site_with(const std::string& meters) {
  return read_site(R"({"schema": "assay.site/1", "name": "s", "nodes": [{"name": "n01", "launcher": "ssh"},
                     {"name": "n02", "launcher": "ssh"}], "meters": )" +
                       meters + "}",
                   "s.json");
}

std::string meter_error_of(const std::string& meter) {
  const auto site = site_with("[" + meter + "]");
  return site ? "accepted" : site.error().text();
}

std::string strip_with(const std::string& more) { return "{" + std::string(kStrip) + ", " + more + "}"; }

TEST(MeterList, every_kind_of_meter_comes_back_from_its_own_document) {
  const auto site = site_with(R"([
    {"name": "bmc-n01", "kind": "ipmi", "address": "10.0.8.1", "subject": "node", "nodes": ["n01"], "credentials": "b"},
    {"name": "pdu-a1", "kind": "snmp", "model": "raritan-pdu2", "address": "10.0.9.1", "subject": "feed", "rack": "r1",
     "feed": "A", "outlets": {"1": "n01", "12": "n02"}, "credentials": "p", "accuracy": 0.01, "averaging_s": 3,
     "accuracy_source": "data sheet", "rating_w": 17300},
    {"name": "cdu-1", "kind": "redfish", "address": "cdu", "subject": "cdu", "credentials": "c", "port": 8443,
     "public_key": "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
     "resources": ["/redfish/v1/ThermalEquipment/CDUs/1/PrimaryCoolantConnectors/1"]},
    {"name": "main", "kind": "modbus", "address": "10.0.7.1", "subject": "meter", "unit": 3,
     "registers": [{"quantity": "power", "address": 3059, "type": "float32", "scale": 1000, "table": "input",
                    "word_order": "low_first"}]}])");
  ASSERT_TRUE(site) << site.error().text();
  EXPECT_EQ(site->meters[0].subject_of(), (Subject{"node", "n01"}));
  EXPECT_EQ(site->meters[1].subject_of(), (Subject{"feed", "pdu-a1"}));
  EXPECT_EQ(site->meters[1].outlets.at(12), "n02");
  EXPECT_EQ(site->meters[1].averaging_s, 3);
  EXPECT_TRUE(site->meters[3].registers[0].low_word_first);
  const auto again = read_site(to_json(*site).dump(), "again");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(to_json(*again), to_json(*site));
  const auto in_plan = read_meters_of(nlohmann::json{{"site", to_json(*site)}}.dump(), "plan.json");
  ASSERT_TRUE(in_plan) << in_plan.error().text();
  EXPECT_EQ(in_plan->size(), 4U);
}

TEST(MeterList, what_a_meter_lacks_or_has_too_much_is_named_with_its_place) {
  EXPECT_EQ(meter_error_of(strip_with(R"("subject": "feed", "outlets": {"1": "n3"})")),
            "s.json: meters[0].outlets.1: the site has no node 'n3'\nhint: known are: n01, n02");
  EXPECT_EQ(meter_error_of(strip_with(R"("subject": "feed", "accuracy": 0.01)")),
            "s.json: meters[0].accuracy_source: is missing beside accuracy or averaging_s\n"
            "hint: name the document that states them: the data sheet, or the calibration certificate");
  EXPECT_EQ(meter_error_of(strip_with(R"("subject": "node")")),
            "s.json: meters[0].nodes: has not one node, and the subject is a node\nhint: write \"nodes\": [\"n01\"]");
  EXPECT_EQ(
      meter_error_of(strip_with(R"("subject": "feed", "unit": 2)")),
      "s.json: meters[0].unit: is not a field of a meter of kind snmp\nhint: it belongs to meters of kind modbus");
  EXPECT_EQ(meter_error_of(R"({"name": "b", "kind": "ipmi", "address": "b", "subject": "node", "nodes": ["n01"]})"),
            "s.json: meters[0].credentials: is missing, and a meter of kind ipmi needs it\n"
            "hint: the path of a file of mode 0600 on the head, never the secret itself");
  EXPECT_EQ(meter_error_of(R"({"name": "r", "kind": "redfish", "address": "b", "subject": "meter", "credentials": "c",
                         "resources": ["/redfish/v1/Chassis/1/EnvironmentMetrics"]})"),
            "s.json: meters[0].public_key: is missing, and a meter of kind redfish needs it\n"
            "hint: docs/FORMATS.md has the fields of each kind of meter");
  EXPECT_EQ(meter_error_of(R"({"name": "m", "kind": "snmp", "model": "apc", "address": "b", "subject": "feed"})"),
            "s.json: meters[0].model: 'apc' is not one of apc-rpdu2, raritan-pdu2\n"
            "hint: whose objects and scales an SNMP meter has");
  EXPECT_EQ(meter_error_of(strip_with(R"("subject": "feed"}, {)" + std::string(kStrip) + R"(, "subject": "feed")")),
            "s.json: meters[1].name: 'pdu-a1' appears twice\nhint: every meter has a name of its own");
  std::string again(kStrip);
  again.replace(again.find("pdu-a1"), 6, "pdu-b1");
  EXPECT_EQ(meter_error_of(strip_with(R"("subject": "feed"}, {)" + again + R"(, "subject": "feed")")),
            "s.json: meters[1].address: is the device of the meter 'pdu-a1'\n"
            "hint: one device is one meter: its power would count twice");
}

TEST(MeterList, credentials_that_others_can_read_are_refused) {
  const std::string folder = ::testing::TempDir() + "assay_meter_secrets";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/pdu.json") << R"({"community": "hall"})";
  std::ofstream(folder + "/site.json")
      << R"({"schema": "assay.site/1", "name": "s", "nodes": [{"name": "n", "launcher": "local"}],
    "meters": [)" +
             strip_with(R"("subject": "feed")") + "]}";
  std::filesystem::permissions(folder + "/pdu.json", std::filesystem::perms(0640));
  const auto open = read_site_file(folder + "/site.json");
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().text(), folder + "/site.json: meters[0].credentials: " + folder +
                                     "/pdu.json has mode 0640: others than its owner may use it\n"
                                     "hint: chmod 600, and change what it held if others have been on this machine");
  std::filesystem::permissions(folder + "/pdu.json", std::filesystem::perms(0600));
  const auto closed = read_site_file(folder + "/site.json");
  ASSERT_TRUE(closed) << closed.error().text();
  EXPECT_EQ(closed->meters[0].credentials, folder + "/pdu.json");
  EXPECT_EQ(to_json(*closed).dump().find("hall"), std::string::npos);
  EXPECT_FALSE(read_secret_file(folder));
  std::filesystem::remove_all(folder);
}

constexpr const char* kLeaf = R"("name": "leaf1", "address": "10.0.7.1", "credentials": "s.json")";

std::expected<Site, InputError> site_of_switches(const std::string& switches) {
  return read_site(R"({"schema": "assay.site/1", "name": "s", "nodes": [{"name": "n01", "launcher": "ssh",
                     "leaf": "leaf1", "planes": {"parameter": [{"interface": "ens1", "switch_port": "swp1"}]}}],
                     "switches": [)" +
                       switches + "]}",
                   "s.json");
}

TEST(SwitchList, a_switch_comes_back_with_the_ports_that_nodes_are_cabled_to) {
  const auto site =
      site_of_switches("{" + std::string(kLeaf) + R"(, "port": 1161, "timeout_s": 3, "ports": ["swp48"]})");
  ASSERT_TRUE(site) << site.error().text();
  const auto again = read_site(to_json(*site).dump(), "again");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(to_json(*again), to_json(*site));
  const auto read = read_switches_of(nlohmann::json{{"site", to_json(*site)}}.dump(), "plan.json");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->at(0).ports, (std::vector<std::string>{"swp48", "swp1"}));
  EXPECT_EQ(read->at(0).device.port, 1161);
  EXPECT_EQ(read_switches_of("{}", "s.json").error().text(),
            "s.json: has no switches\nhint: add the list switches to the site file (docs/FORMATS.md)");
}

TEST(SwitchList, what_is_wrong_with_a_switch_is_named_with_its_place) {
  const std::string leaf = kLeaf;
  const auto error = [](const std::string& list) {
    const auto site = site_of_switches(list);
    return site ? std::string("accepted") : site.error().text();
  };
  EXPECT_EQ(error("{" + leaf + "}, {" + leaf + "}"),
            "s.json: switches[1].name: 'leaf1' appears twice\nhint: every switch has a name of its own, that of the "
            "leaf in the site");
  EXPECT_EQ(error("{" + leaf + R"(}, {"name": "leaf2", "address": "10.0.7.1", "credentials": "s.json"})"),
            "s.json: switches[1].address: '10.0.7.1' is the address of another switch\nhint: list each switch once");
  EXPECT_EQ(error("{" + leaf + R"(, "ports": ["swp1", "swp1"]})"),
            "s.json: switches[0].ports: 'swp1' appears twice, or is no name of a port\nhint: as the switch names it "
            "(ifName): \"swp31\"");
  EXPECT_NE(error(R"({"name": "leaf1", "address": "10.0.7.1"})").find("credentials"), std::string::npos);
  EXPECT_NE(error("{" + leaf + R"(, "community": "public"})").find("community"), std::string::npos);
}

}  // namespace
}  // namespace assay::site
