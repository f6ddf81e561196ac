// Links as iblinkinfo, mlxlink and ibdiagnet show them: each figure has the link that it is of, and units are known or
// refused.
#include <gtest/gtest.h>

#include "tests/unit/import/import_fixture.h"

namespace assay::imports {
namespace {

using namespace fixture;

constexpr const char* kCommand = "mlxlink -d mlx5_0 -p 1 -c";

TEST(ImportIblinkinfo, every_link_has_its_two_ends_and_its_rate) {
  const judge::Import import = import_of("iblinkinfo", "iblinkinfo.txt");
  const Values n01{{"node", text("n01 mlx5_0")}, {"port", whole(1)}, {"peer", text("leaf1")}, {"peer_port", whole(7)}};
  EXPECT_DOUBLE_EQ(*value(import, "signalling_rate", "now", n01), 425e9 / 8);
  EXPECT_EQ(value(import, "lanes", "now", {{"node", text("leaf1")}, {"port", whole(8)}}), 2);
  EXPECT_EQ(value(import, "link_up", "now", {{"node", text("leaf1")}, {"port", whole(9)}}), 0);
  EXPECT_EQ(value(import, "signalling_rate", "now", {{"node", text("leaf1")}, {"port", whole(9)}}), std::nullopt);
  EXPECT_NE(why(import, "line 4").find("could have more"), std::string::npos);
}

TEST(ImportIblinkinfo, a_link_on_a_line_is_the_same_link) {
  const judge::Import import = import_of("iblinkinfo", "iblinkinfo_line.txt");
  const Values n01{{"node", text("n01 mlx5_0")}, {"port", whole(1)}, {"peer", text("leaf1")}, {"peer_port", whole(7)}};
  EXPECT_DOUBLE_EQ(*value(import, "signalling_rate", "now", n01), 425e9 / 8);
  EXPECT_EQ(value(import, "link_up", "now", {{"node", text("leaf1")}, {"port", whole(9)}}), 0);
}

TEST(ImportIblinkinfo, a_rate_without_a_known_unit_or_a_port_without_a_number_is_refused) {
  const std::string good = recorded("iblinkinfo.txt");
  EXPECT_EQ(refusal("iblinkinfo", changed(good, "106.25 Gbps", "106.25 GB/s")),
            "given.txt: line 2: has no width and speed as 4X 53.125 Gbps: its unit is not known\n"
            "hint: import what iblinkinfo prints, with or without --line, unchanged");
  EXPECT_NE(
      refusal("iblinkinfo", changed(good, "    1[  ] ==( 4X", "    x[  ] ==( 4X")).find("names no node or no port"),
      std::string::npos);
  EXPECT_NE(refusal("iblinkinfo", "no link at all\n"), "imported");
}

TEST(ImportMlxlink, the_text_and_json_forms_give_the_port_that_the_command_names) {
  const judge::Import import = import_of("mlxlink", "mlxlink.txt", kCommand);
  const Values port{{"device", text("mlx5_0")}, {"port", text("1")}};
  EXPECT_DOUBLE_EQ(*value(import, "link_rate", "now", port), 400e9 / 8);
  EXPECT_EQ(value(import, "lanes", "now", port), 4);
  EXPECT_EQ(value(import, "effective_errors", "since_clear", port), 3);
  EXPECT_DOUBLE_EQ(*value(import, "effective_ber", "since_clear", port), 2e-14);
  EXPECT_EQ(value(import, "raw_errors", "since_clear", {{"lane", whole(2)}}), 7);
  EXPECT_EQ(value(import, "raw_errors", "since_clear", {{"lane", whole(3)}}), std::nullopt);
  EXPECT_DOUBLE_EQ(*value(import, "time_since_clear", "now", port), 750);
  EXPECT_EQ(import.source.facts.at("State"), text("Active"));
  const judge::Import json = import_of("mlxlink", "mlxlink.json", kCommand);
  EXPECT_DOUBLE_EQ(*value(json, "link_rate", "now", port), 200e9 / 8);
  EXPECT_EQ(value(json, "raw_errors", "since_clear", {{"lane", whole(0)}}), 5);
  EXPECT_EQ(value(json, "link_downs", "since_clear", port), std::nullopt);
}

TEST(ImportMlxlink, a_number_with_a_decimal_comma_is_refused) {
  const std::string good = recorded("mlxlink.txt");
  EXPECT_NE(refusal("mlxlink", changed(good, "12.5", "12,5"), kCommand).find("2 numbers, expected one"),
            std::string::npos);
}

TEST(ImportMlxlink, without_a_device_with_an_unknown_speed_or_a_failure_it_is_refused) {
  const std::string good = recorded("mlxlink.txt"), json = recorded("mlxlink.json");
  EXPECT_EQ(refusal("mlxlink", good),
            "given.txt: does not say of which port it is: mlxlink prints no name of a device\n"
            "hint: give the command with --command 'mlxlink -d mlx5_0 -p 1 -c'");
  EXPECT_NE(refusal("mlxlink", changed(good, "IB-NDR", "IB-QQR"), kCommand).find("speed 'IB-QQR' with width '4x'"),
            std::string::npos);
  EXPECT_NE(refusal("mlxlink", changed(good, ": 3\n", ": many\n"), kCommand).find("'many' is not a number"),
            std::string::npos);
  EXPECT_NE(refusal("mlxlink", changed(good, "IB-NDR", "\x1b[32mIB-NDR"), kCommand).find("colours"), std::string::npos);
  EXPECT_NE(refusal("mlxlink", changed(json, "\"code\": 0", "\"code\": 1"), kCommand).find("the tool failed"),
            std::string::npos);
}

TEST(ImportIbdiagnet, a_link_of_net_dump_has_its_two_ends_and_the_rate_of_its_lanes) {
  const judge::Import import = import_of("ibdiagnet", "ibdiagnet.net_dump");
  const Values first{
      {"node", text("MF0;leaf1:MQM9700/U1")}, {"guid", text("0x0c42a103005b0000")},      {"port", whole(1)},
      {"peer", text("n01 mlx5_0")},           {"peer_guid", text("0x0c42a103005a2f60")}, {"peer_port", whole(1)}};
  EXPECT_DOUBLE_EQ(*value(import, "link_rate", "now", first), 400e9 / 8);
  EXPECT_DOUBLE_EQ(*value(import, "link_rate", "now", {{"port", whole(2)}}), 200e9 / 8);
  EXPECT_EQ(value(import, "lanes", "now", {{"port", whole(2)}}), 2);
  EXPECT_EQ(value(import, "link_up", "now", {{"peer", text("MF0;spine1:MQM9700/U1")}, {"peer_port", text("sw5p1")}}),
            1);
  EXPECT_EQ(value(import, "link_up", "now", {{"port", whole(4)}}), 0);
  EXPECT_EQ(value(import, "link_rate", "now", {{"port", whole(4)}}), std::nullopt);
}

TEST(ImportIbdiagnet, net_dump_ext_has_the_bit_error_rates_of_each_port_that_is_up) {
  const judge::Import import = import_of("ibdiagnet", "ibdiagnet.net_dump_ext");
  const Values bad{{"guid", text("0x0c42a103005b0000")}, {"port", whole(2)}}, host{{"node", text("n01: mlx5_0")}};
  EXPECT_DOUBLE_EQ(*value(import, "raw_ber", "since_clear", bad), 2e-5);
  EXPECT_DOUBLE_EQ(*value(import, "effective_ber", "since_clear", bad), 4e-10);
  EXPECT_DOUBLE_EQ(*value(import, "symbol_ber", "since_clear", bad), 6e-12);
  EXPECT_EQ(value(import, "symbol_errors", "since_clear", bad), 17);
  EXPECT_EQ(value(import, "raw_ber", "since_clear", host), std::nullopt);
  EXPECT_EQ(value(import, "symbol_ber", "since_clear", host), std::nullopt);  // 0 is below what the tool can tell
  EXPECT_EQ(value(import, "symbol_errors", "since_clear", host), 3);
  EXPECT_EQ(value(import, "effective_errors", "since_clear", host), std::nullopt);
  EXPECT_EQ(value(import, "symbol_errors", "since_clear", {{"port", whole(4)}}), std::nullopt);
  const auto odd = imported("ibdiagnet", changed(recorded("ibdiagnet.net_dump_ext"), "n01: mlx5_0", " : :"));
  EXPECT_TRUE(odd) << odd.error().text();  // a description of separators
}

TEST(ImportIbdiagnet, db_csv_has_the_counters_and_a_counter_at_its_highest_value_is_none) {
  const judge::Import import = import_of("ibdiagnet", "ibdiagnet.db_csv");
  const Values leaf{{"node", text("MF0;leaf1:MQM9700/U1")}, {"port", whole(1)}, {"peer", text("n01, rack 4")}};
  const Values host{{"node", text("n01, rack 4")}, {"port", whole(1)}, {"peer_guid", text("0x0c42a103005b0000")}};
  EXPECT_DOUBLE_EQ(*value(import, "link_rate", "now", leaf), 400e9 / 8);
  EXPECT_EQ(value(import, "link_up", "now", {{"port", whole(4)}}), 0);
  EXPECT_EQ(value(import, "link_up", "now", {{"port", whole(0)}}), std::nullopt);
  EXPECT_EQ(value(import, "symbol_errors", "since_clear", leaf), std::nullopt);
  EXPECT_EQ(value(import, "link_downs", "since_clear", leaf), 300);  // of the counter of 64 bit
  EXPECT_EQ(value(import, "link_recoveries", "since_clear", host), 31);
  EXPECT_EQ(value(import, "link_downs", "since_clear", host), 4);
  EXPECT_EQ(value(import, "transmit_discards", "since_clear", leaf), 6);
  EXPECT_EQ(why(import, "line 20"), "it has reached its highest value, and stays there");
  EXPECT_EQ(why(import, "line 23"), "it is not read");
}

TEST(ImportIbdiagnet, an_unknown_speed_a_lost_column_or_a_lost_end_is_refused) {
  const std::string dump = recorded("ibdiagnet.net_dump"), ext = recorded("ibdiagnet.net_dump_ext"),
                    db = recorded("ibdiagnet.db_csv");
  EXPECT_EQ(refusal("ibdiagnet", changed(dump, "4x  : 100", "4x  : 106")),
            "given.txt: line 5: speed '106' with width '4x' is not known\n"
            "hint: known are speeds of a lane as 100 and FDR10, and widths as 4x");
  EXPECT_NE(refusal("ibdiagnet", changed(ext, "SW : sw1p1 : 1  ", "SW : sw1p1 : x  ")).find("'x' is no number"),
            std::string::npos);
  EXPECT_NE(refusal("ibdiagnet", changed(ext, ": 17  ", ": many")).find("'many' is not a number"), std::string::npos);
  EXPECT_NE(refusal("ibdiagnet", changed(db, "END_TEMP_SENSING\n", "")).find("was cut off"), std::string::npos);
  EXPECT_NE(refusal("ibdiagnet", changed(db, ",2048,5,4", ",4096,5,4")).find("speed '4096'"), std::string::npos);
  EXPECT_NE(refusal("ibdiagnet", changed(db, ",0x1f,4,0,0,N/A", ",0x1f")).find("line 21: 5 columns, the heading has 9"),
            std::string::npos);
  EXPECT_NE(refusal("ibdiagnet", changed(db, "0x0c42a103005b0000,1,0x", "leaf1,1,0x")).find("is no GUID"),
            std::string::npos);
}

}  // namespace
}  // namespace assay::imports
