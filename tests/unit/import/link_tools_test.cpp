// Links as iblinkinfo and mlxlink show them: each figure has the link that it is of, and units are known or refused.
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

}  // namespace
}  // namespace assay::imports
