// health_links: modules built from the field tables of SFF-8636 and CMIS, counters as drivers name them, and the probe
// as a process on made-up machines.
#include <cstdint>
#include <cstring>
#include <map>

#include <gtest/gtest.h>
#include <linux/ethtool_netlink.h>
#include <linux/netlink.h>

#include "probes/core/machine_tree.h"
#include "probes/health/ethtool_netlink.h"
#include "probes/health/link_counters.h"
#include "probes/health/optics.h"
#include "tests/unit/fake_tree.h"
#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"

namespace assay::health {
namespace {

/// A module's memory by half of a page: "lower", "00", "03", ….
using Memory = std::map<std::string, std::string>;

void put(std::string& half, std::size_t offset, unsigned value) {
  half[offset % 128] = static_cast<char>(value >> 8U);
  half[offset % 128 + 1] = static_cast<char>(value & 0xffU);
}
void put_text(std::string& half, std::size_t offset, std::string text) {
  text.resize(16, ' ');
  half.replace(offset % 128, 16, text);
}

/// A QSFP28 with light of 1 mW on four lanes, 20 mA of 40 mA; thresholds 0.1 mW and 2 mW.
Memory qsfp28() {
  Memory memory{{"lower", std::string(128, '\0')}, {"00", std::string(128, '\0')}, {"03", std::string(128, '\0')}};
  memory["lower"][0] = 0x11;
  put(memory["lower"], 22, 0x2a80);  // 42.5 degrees
  for (std::size_t lane = 0; lane < 4; ++lane) {
    put(memory["lower"], 34 + 2 * lane, 10'000);
    put(memory["lower"], 42 + 2 * lane, 10'000);
    put(memory["lower"], 50 + 2 * lane, 10'000);
  }
  put_text(memory["00"], 148, "ACME");
  put_text(memory["00"], 168, "QSFP28-SR4");
  put_text(memory["00"], 196, "A1B2C3");
  for (const std::size_t alarm : {176U, 192U}) {
    put(memory["03"], alarm, 20'000);
    put(memory["03"], alarm + 2, 1'000);
  }
  put(memory["03"], 184, 20'000);
  return memory;
}

/// An OSFP by CMIS with the same light on eight lanes.
Memory osfp() {
  Memory memory;
  for (const char* half : {"lower", "00", "01", "02", "11"}) memory[half] = std::string(128, '\0');
  memory["lower"][0] = 0x19;
  put(memory["lower"], 14, 0xff80);  // -0.5 degrees
  put_text(memory["00"], 129, "ACME");
  put_text(memory["00"], 148, "OSFP-DR8");
  put_text(memory["00"], 166, "D4");
  memory["00"][212 - 128] = 0x06;
  memory["01"][160 - 128] = 0x07 | 0x10;
  for (std::size_t lane = 0; lane < 8; ++lane) {
    put(memory["11"], 154 + 2 * lane, 10'000);
    put(memory["11"], 170 + 2 * lane, 10'000);
    put(memory["11"], 186 + 2 * lane, 10'000);
  }
  for (const std::size_t alarm : {176U, 192U}) {
    put(memory["02"], alarm, 20'000);
    put(memory["02"], alarm + 2, 1'000);
  }
  put(memory["02"], 184, 40'000);
  return memory;
}

ModuleReader reader(const Memory& memory) {
  return [memory](const std::string&, ModulePlace place) {
    char name[8] = "lower";
    if (place.upper) std::snprintf(name, sizeof name, "%02x", place.page);
    const auto found = memory.find(name);
    return found == memory.end() ? ModuleAnswer{.bytes = "", .absence = "no such page"}
                                 : ModuleAnswer{.bytes = found->second, .absence = ""};
  };
}

TEST(Optics, an_sff_8636_module_tells_light_current_and_temperature) {
  const Optics optics = read_optics(reader(qsfp28()), "eth0");
  EXPECT_EQ(optics.absence, "");
  EXPECT_EQ(optics.form, "SFF-8636");
  EXPECT_EQ(optics.vendor, "ACME");
  EXPECT_EQ(optics.part, "QSFP28-SR4");
  EXPECT_EQ(optics.serial, "A1B2C3");
  EXPECT_EQ(optics.temperature_c, 42.5);
  ASSERT_EQ(optics.lanes.size(), 4U);
  EXPECT_DOUBLE_EQ(*optics.lanes[3].rx_power_w, 1e-3);
  EXPECT_DOUBLE_EQ(*optics.lanes[3].tx_power_w, 1e-3);
  EXPECT_DOUBLE_EQ(*optics.lanes[3].tx_bias_share, 0.5);
  EXPECT_FALSE(optics.lanes[3].near_alarm);
  EXPECT_EQ(optics.alarms, 0);
}

TEST(Optics, an_sff_8636_alarm_is_named_by_lane_and_a_warning_is_none) {
  Memory memory = qsfp28();
  memory["lower"][6] = static_cast<char>(0x80);   // temperature high
  memory["lower"][9] = 0x04;                      // rx power of lane 2 low
  memory["lower"][10] = 0x10;                     // rx power of lane 3: a warning
  memory["lower"][12] = static_cast<char>(0x80);  // tx bias of lane 3 high
  const Optics optics = read_optics(reader(memory), "eth0");
  EXPECT_EQ(optics.alarms, 3);
  EXPECT_EQ(optics.alarm_names, "temperature high, rx power 2 low, tx bias 3 high");
}

TEST(Optics, light_within_a_decibel_of_an_alarm_is_near_and_dark_lanes_are_left_out) {
  Memory memory = qsfp28();
  put(memory["lower"], 34, 1'200);   // 0.12 mW: 0.8 dB above 0.1 mW
  put(memory["lower"], 36, 1'300);   // 1.1 dB above
  put(memory["lower"], 38, 17'000);  // 0.7 dB below 2 mW
  put(memory["lower"], 40, 10);      // -30 dBm
  put(memory["lower"], 56, 10);
  const Optics optics = read_optics(reader(memory), "eth0");
  ASSERT_EQ(optics.lanes.size(), 3U);
  EXPECT_TRUE(optics.lanes[0].near_alarm);
  EXPECT_FALSE(optics.lanes[1].near_alarm);
  EXPECT_TRUE(optics.lanes[2].near_alarm);
}

TEST(Optics, a_flat_module_has_no_thresholds_and_a_copper_cable_no_light) {
  Memory memory = qsfp28();
  memory["lower"][2] = 0x04;
  const Optics flat = read_optics(reader(memory), "eth0");
  ASSERT_EQ(flat.lanes.size(), 4U);
  EXPECT_EQ(flat.lanes[0].tx_bias_share, std::nullopt);
  memory["00"][147 - 128] = static_cast<char>(0xa0);
  const Optics copper = read_optics(reader(memory), "eth0");
  EXPECT_FALSE(copper.optical);
  EXPECT_TRUE(copper.lanes.empty());
}

TEST(Optics, a_cmis_module_tells_eight_lanes_and_its_alarms) {
  Memory memory = osfp();
  memory["lower"][9] = 0x02 | 0x04;                   // temperature low; a warning beside it
  memory["11"][150 - 128] = static_cast<char>(0x81);  // rx power low, lanes 1 and 8
  const Optics optics = read_optics(reader(memory), "eth0");
  EXPECT_EQ(optics.form, "CMIS");
  EXPECT_EQ(optics.part, "OSFP-DR8");
  EXPECT_EQ(optics.temperature_c, -0.5);
  ASSERT_EQ(optics.lanes.size(), 8U);
  EXPECT_DOUBLE_EQ(*optics.lanes[7].rx_power_w, 1e-3);
  EXPECT_DOUBLE_EQ(*optics.lanes[7].tx_bias_share, 0.25);
  EXPECT_EQ(optics.alarm_names, "temperature low, rx power low 1, rx power low 8");
}

TEST(Optics, a_cmis_monitor_that_is_not_advertised_is_not_read) {
  Memory memory = osfp();
  memory["01"][160 - 128] = 0x04;  // receive power alone
  const Optics optics = read_optics(reader(memory), "eth0");
  ASSERT_EQ(optics.lanes.size(), 8U);
  EXPECT_EQ(optics.lanes[0].tx_power_w, std::nullopt);
  EXPECT_EQ(optics.lanes[0].tx_bias_share, std::nullopt);
}

TEST(Optics, no_module_and_a_module_of_another_kind_are_absent_with_their_cause) {
  EXPECT_EQ(read_optics(reader({}), "eth0").absence, "no such page");
  Memory sfp{{"lower", std::string(128, '\x03')}, {"00", std::string(128, '\0')}};
  EXPECT_EQ(read_optics(reader(sfp), "eth0").absence, "the module of eth0 is of kind 03h, neither SFF-8636 nor CMIS");
}

std::string attribute(unsigned type, const std::string& bytes) {
  nlattr head = {};
  head.nla_len = static_cast<std::uint16_t>(sizeof head + bytes.size());
  head.nla_type = static_cast<std::uint16_t>(type);
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + bytes;
}
std::string numbers(std::initializer_list<std::uint64_t> values) {
  return {reinterpret_cast<const char*>(std::data(values)), values.size() * sizeof(std::uint64_t)};
}

TEST(Fec, totals_and_lanes_come_from_the_kernels_attributes) {
  const std::string stats = attribute(ETHTOOL_A_FEC_STAT_CORRECTED, numbers({30, 10, 20})) +
                            attribute(ETHTOOL_A_FEC_STAT_UNCORR, numbers({2}));
  const FecStatistics fec = parse_fec(attribute(ETHTOOL_A_FEC_ACTIVE, std::string(4, '\1')) +
                                      attribute(ETHTOOL_A_FEC_STATS | NLA_F_NESTED, stats));
  EXPECT_EQ(fec.corrected_blocks, 30U);
  EXPECT_EQ(fec.uncorrectable_blocks, 2U);
  EXPECT_EQ(fec.corrected_bits, std::nullopt);
  EXPECT_EQ(fec.corrected_by_lane, (std::vector<std::uint64_t>{10, 20}));
  EXPECT_EQ(fec.absence, "");
}

TEST(Fec, a_total_that_is_not_set_and_an_attribute_that_is_cut_off_are_absent) {
  const std::string stats = attribute(ETHTOOL_A_FEC_STAT_CORRECTED, numbers({~std::uint64_t{0}}));
  EXPECT_EQ(parse_fec(attribute(ETHTOOL_A_FEC_STATS, stats)).absence, "the driver counts no error correction");
  EXPECT_EQ(parse_fec(attribute(ETHTOOL_A_FEC_STATS, stats).substr(0, 9)).absence,
            "the driver counts no error correction");
}

TEST(Fec, a_port_without_it_tells_the_kernels_cause) {
  EXPECT_EQ(fec_statistics("assay-none").absence, "error correction of assay-none is not reported: No such device");
  EXPECT_NE(module_memory("lo", {}).absence.find("the module of lo is not reported: "), std::string::npos);
}

TEST(LinkCounters, mlx5_and_bnxt_are_known_by_their_own_names) {
  const FakeTree machine;
  machine.file("sys/class/net/eth0/carrier_changes", "7\n");
  const MachineTree tree(machine.path());
  const FecStatistics none;
  const std::vector<std::pair<std::string, std::int64_t>> mlx5 = {{"rx_corrected_bits_phy", 900},
                                                                  {"rx_pcs_symbol_err_phy", 3},
                                                                  {"rx_err_lane_0_phy", 500},
                                                                  {"rx_err_lane_1_phy", 400}};
  const LinkCounters one = read_link_counters(tree, "eth0", mlx5, none);
  EXPECT_EQ(one.corrected, 900);
  EXPECT_TRUE(one.corrects_bits);
  EXPECT_EQ(one.corrected_by_lane, (std::vector<double>{500, 400}));
  EXPECT_EQ(one.totals.at("pcs_symbol_errors"), 3);
  EXPECT_EQ(one.totals.at("carrier_losses"), 3);  // changes count both ways
  EXPECT_FALSE(one.totals.contains("fec_uncorrectable"));
  const std::vector<std::pair<std::string, std::int64_t>> bnxt = {{"rx_fec_corrected_blocks", 12},
                                                                  {"rx_fec_uncorrectable_blocks", 1}};
  const LinkCounters two = read_link_counters(tree, "eth0", bnxt, none);
  EXPECT_EQ(two.corrected, 12);
  EXPECT_FALSE(two.corrects_bits);
  EXPECT_EQ(two.totals.at("fec_uncorrectable"), 1);
}

/// A machine with one RoCE port whose module and counters were saved.
void add_port(const FakeTree& tree, const Memory& memory) {
  const std::string pci = "sys/devices/pci0000:17/0000:17:01.0/0000:18:00.0/";
  tree.link("sys/class/net/eth0/device", pci);
  tree.file("sys/class/net/eth0/carrier", "1\n");
  tree.file("sys/class/net/eth0/carrier_down_count", "2\n");
  tree.file("sys/class/net/eth0/statistics/rx_crc_errors", "5\n");
  tree.link("sys/bus/pci/devices/0000:18:00.0", pci);
  tree.file(pci + "aer_dev_correctable", "TOTAL_ERR_COR 6\n");
  tree.file(pci + "aer_dev_fatal", "TOTAL_ERR_FATAL 2\n");
  tree.file("sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "11\n");
  tree.file("sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", "1\n");
  tree.file("sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_wait", "99\n");
  tree.file("sys/class/infiniband/mlx5_0/ports/1/hw_counters/rnr_nak_retry_err", "4\n");
  tree.file("saved/eth0.counters", "rx_corrected_bits_phy 900\nrx_err_lane_0_phy 900\n");
  for (const auto& [half, bytes] : memory) tree.file("saved/eth0.module-" + half, bytes);
}

using Samples = std::vector<double>;
const Subject kEth0{"nic", "eth0"};

TEST(health_links, a_port_tells_counters_corrections_light_and_its_rdma_side) {
  const FakeTree tree;
  add_port(tree, qsfp28());
  const Record record = record_of(probe_file("health_links"), {"--root", tree.path(), "--duration", "10ms"});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(samples_of(record, "carrier_losses", kEth0), Samples{2});
  EXPECT_EQ(samples_of(record, "crc_errors", kEth0), Samples{5});
  EXPECT_EQ(samples_of(record, "corrected_rate", kEth0), Samples{0});  // what was saved does not move
  EXPECT_EQ(value_of(record, "corrected_unit", kEth0), Value{std::string("bits")});
  EXPECT_EQ(samples_of(record, "optics_alarms", kEth0), Samples{0});
  EXPECT_EQ(samples_of(record, "lanes_near_alarm", kEth0), Samples{0});
  EXPECT_EQ(value_of(record, "module", kEth0), Value{std::string("SFF-8636 ACME QSFP28-SR4")});
  EXPECT_EQ(value_of(record, "module_serial", kEth0), Value{std::string("A1B2C3")});
  EXPECT_EQ(samples_of(record, "pcie_errors_corrected", kEth0), Samples{6});
  EXPECT_EQ(samples_of(record, "pcie_errors_uncorrected", kEth0), Samples{2});
  EXPECT_EQ(samples_of(record, "pcie_errors_fatal", kEth0), Samples{2});
  EXPECT_EQ(samples_of(record, "pcie_errors_nonfatal", kEth0), Samples{});  // this kernel does not report them
  const Subject rdma{"nic", "mlx5_0/1"};
  EXPECT_EQ(samples_of(record, "symbol_errors", rdma), Samples{11});
  EXPECT_EQ(samples_of(record, "link_downed", rdma), Samples{1});
  EXPECT_EQ(samples_of(record, "rnr_retries", rdma), Samples{4});
  EXPECT_EQ(samples_of(record, "link_recoveries", rdma), Samples{});
}

TEST(health_links, a_link_that_is_down_has_counters_and_no_light) {
  const FakeTree tree;
  Memory memory = qsfp28();
  memory["lower"][9] = 0x44;  // no light arrives: of an unplugged fibre no sign of age
  add_port(tree, memory);
  tree.file("sys/class/net/eth0/carrier", "0\n");
  const Record record = record_of(probe_file("health_links"), {"--root", tree.path()});
  EXPECT_EQ(value_of(record, "link", kEth0), Value{std::string("down")});
  EXPECT_EQ(samples_of(record, "carrier_losses", kEth0), Samples{2});
  EXPECT_EQ(samples_of(record, "optics_alarms", kEth0), Samples{});
}

TEST(health_links, a_machine_without_ports_and_a_port_that_is_not_there_are_skips) {
  const FakeTree tree;
  tree.directory("sys/class/net/lo");
  EXPECT_EQ(record_of(probe_file("health_links"), {"--root", tree.path()}).end.reason,
            "the machine has no network or RDMA port with hardware behind it");
  EXPECT_EQ(record_of(probe_file("health_links"), {"--root", tree.path(), "--interface", "eth9"}).end.reason,
            "there is no network port eth9");
}

}  // namespace
}  // namespace assay::health
