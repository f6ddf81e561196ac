// What meters answer, as bytes and documents: numbers, what stands for none, times, and the login's file.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "probes/meters/feed_watch.h"
#include "probes/meters/redfish_resource.h"
#include "probes/meters/registers.h"
#include "probes/meters/session.h"
#include "probes/meters/slots.h"
#include "probes/meters/strip.h"

namespace assay::meters {
namespace {

TEST(Registers, numbers_and_what_stands_for_none) {
  const std::uint16_t low_first[] = {0x0000, 0x42c8}, all_ones[] = {0xffff, 0xffff}, minus[] = {0xff9c};
  EXPECT_EQ(number_of(low_first, {.type = RegisterType::float32, .low_word_first = true}), 100.0);
  EXPECT_EQ(number_of(all_ones, {.type = RegisterType::float32}), std::nullopt);
  EXPECT_EQ(number_of(all_ones, {.type = RegisterType::uint32}), std::nullopt);
  EXPECT_EQ(number_of(minus, {.type = RegisterType::int16}), -100.0);
  EXPECT_EQ(number_of(minus, {.type = RegisterType::uint32}), std::nullopt);
}

TEST(Dcmi, an_answer_is_read_and_another_is_none) {
  std::vector<std::uint8_t> answer = {0,    0xdc, 0x2d, 0x03, 1,    0,    0xff, 0xff, 0x2c, 0x03,
                                      0x80, 0x51, 0x01, 0,    0xe8, 0x03, 0,    0,    0x40};
  const auto power = dcmi_power_of(answer);
  ASSERT_TRUE(power);
  EXPECT_EQ(power->current_w, 813);
  EXPECT_EQ(power->most_w, 65535);
  EXPECT_EQ(power->stated_s, 86400U);
  EXPECT_EQ(power->period_s, 1);
  EXPECT_TRUE(power->measuring);
  answer[18] = 0;
  EXPECT_FALSE(dcmi_power_of(answer)->measuring);
  answer[1] = 0xdd;
  EXPECT_FALSE(dcmi_power_of(answer));
  EXPECT_FALSE(dcmi_power_of({answer.data(), 1}));
}

TEST(Dcmi, a_limit_is_read_and_a_refusal_is_none) {
  // Hard power off after 2.5 s above 1234 W, over 10 s.
  std::vector<std::uint8_t> answer = {0, 0xdc, 0, 0, 1, 0xd2, 0x04, 0xc4, 0x09, 0, 0, 0, 0, 10, 0};
  const auto limit = dcmi_limit_of(answer);
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->limit_w, 1234);
  EXPECT_EQ(limit->correction_s, 2.5);
  answer[0] = kDcmiNoLimit;
  EXPECT_FALSE(dcmi_limit_of(answer));
  answer[0] = 0;
  answer[1] = 0xdd;
  EXPECT_FALSE(dcmi_limit_of(answer));
  answer[1] = 0xdc;
  EXPECT_FALSE(dcmi_limit_of({answer.data(), answer.size() - 1}));
}

TEST(Strip, scales_are_those_of_the_model) {
  const Meter apc{.name = "a", .outlets = {{3, "n"}}, .model = MeterModel::apc_rpdu2};
  const auto objects = strip_objects(apc);
  EXPECT_EQ(objects.front().oid, "1.3.6.1.4.1.318.1.1.26.4.3.1.5.1");
  EXPECT_EQ(strip_reading(objects.front(), 613, 0).value, 6130);
  EXPECT_EQ(strip_reading(objects.front(), 613, 0).quantum, 10);
  EXPECT_TRUE(strip_reading(objects.front(), -1, 0).absent);
  EXPECT_TRUE(strip_reading(objects.front(), std::nullopt, 0).absent);
  EXPECT_EQ(objects.back().oid, "1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.3");
  EXPECT_EQ(objects.back().outlet, 3);
  const Meter raritan{.name = "r", .model = MeterModel::raritan_pdu2};
  const auto current = strip_objects(raritan)[4];
  EXPECT_EQ(current.quantity, Quantity::current);
  EXPECT_NEAR(strip_reading(current, 19729, 3).value, 19.729, 1e-9);
  EXPECT_TRUE(strip_reading(current, 19729, -1).absent);  // its digits were not told
}

TEST(Redfish, times_and_durations_are_those_of_iso_8601) {
  EXPECT_EQ(iso_duration_s("PT1M30.5S"), 90.5);
  EXPECT_EQ(iso_duration_s("P1DT1S"), 86401);
  EXPECT_EQ(iso_duration_s("P1M"), std::nullopt);  // a month has no length
  EXPECT_EQ(iso_duration_s("PT5"), std::nullopt);
  EXPECT_EQ(iso_duration_s("P"), std::nullopt);
  EXPECT_EQ(iso_time_s("1970-01-02T00:00:01Z"), 86401);
  EXPECT_EQ(iso_time_s("1970-01-02T01:00:01.25+01:00"), 86401);
  EXPECT_EQ(iso_time_s("1970-01-02T00:00:01"), std::nullopt);
  EXPECT_EQ(iso_time_s("1970-01-02T00:00:01+1"), std::nullopt);
}

TEST(Redfish, an_excerpt_a_sensor_and_an_absent_one_are_read) {
  const auto metrics = nlohmann::json::parse(
      R"({"PowerWatts": {"Reading": 12.5, "PowerFactor": 0.9, "Status": {"State": "Enabled"}}, "InputVoltage": null,
          "EnergykWh": {"Reading": 2}, "Name": "x"})");
  const auto readings = redfish_readings(metrics, "/m");
  ASSERT_EQ(readings.size(), 4U);
  EXPECT_EQ(readings[0].value, 12.5);
  EXPECT_EQ(readings[1].quantity, Quantity::power_factor);
  EXPECT_EQ(readings[2].value, 7.2e6);
  EXPECT_TRUE(readings[3].absent);
  const auto sensor = nlohmann::json::parse(
      R"({"Reading": 1.2, "ReadingType": "Power", "ReadingUnits": "kW", "Implementation": "Synthesized", "Precision": 1,
          "ReadingTime": "1970-01-02T00:00:01Z", "Status": {"State": "Absent"}})");
  const auto one = redfish_readings(sensor, "/s").front();
  EXPECT_TRUE(one.absent);
  EXPECT_EQ(one.origin, Origin::synthesised);
  EXPECT_EQ(one.stated_s, 86401);
  EXPECT_EQ(one.quantum, 100);
  EXPECT_THROW(redfish_readings(nlohmann::json::object(), "/x"), MeterFault);
  EXPECT_THROW(redfish_readings(nlohmann::json::array(), "/x"), MeterFault);
}

TEST(Redfish, a_stated_unit_is_read_or_refused) {
  const auto of = [](const char* type, const char* unit) {
    return redfish_readings({{"ReadingType", type}, {"Reading", 6450}, {"ReadingUnits", unit}}, "/s").front().value;
  };
  EXPECT_DOUBLE_EQ(of("Current", "mA"), 6.45);
  EXPECT_DOUBLE_EQ(of("Current", "A"), 6450);
  EXPECT_DOUBLE_EQ(of("Power", "mW"), 6.45);
  EXPECT_DOUBLE_EQ(of("Power", "MW"), 6.45e9);
  EXPECT_DOUBLE_EQ(of("Power", "kW"), 6.45e6);
  EXPECT_DOUBLE_EQ(of("Voltage", "mV"), 6.45);
  EXPECT_DOUBLE_EQ(of("Frequency", "kHz"), 6.45e6);
  EXPECT_DOUBLE_EQ(of("EnergykWh", "W.h"), 6450 * 3600.0);
  EXPECT_DOUBLE_EQ(of("EnergykWh", "kW.h"), 6450 * 3.6e6);
  EXPECT_DOUBLE_EQ(of("LiquidFlowLPM", "L/s"), 6.45);
  EXPECT_THROW(of("Current", "W"), MeterFault);
  EXPECT_THROW(of("Power", "[BTU]/h"), MeterFault);
  const auto excerpt = nlohmann::json::parse(R"({"PowerWatts": {"Reading": 1.5, "ReadingUnits": "kW"},
                                                 "SupplyTemperatureCelsius": {"Reading": 20, "ReadingUnits": "Cel"}})");
  EXPECT_EQ(redfish_readings(excerpt, "/m")[0].value, 1500);
  EXPECT_EQ(redfish_readings(excerpt, "/m")[1].value, 20);
}

TEST(Redfish, the_older_power_resource_has_the_one_power_of_the_whole) {
  const nlohmann::json whole = {{"Name", "System Power Control"}, {"PowerConsumedWatts", 135}};
  const auto one = redfish_readings({{"PowerControl", {whole}}, {"PowerSupplies", {{{"PowerInputWatts", 80}}}}}, "/p");
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].quantity, Quantity::power);
  EXPECT_EQ(one[0].value, 135);
  EXPECT_TRUE(redfish_readings({{"PowerControl", {{{"PowerConsumedWatts", nullptr}}}}}, "/p").front().absent);
  EXPECT_THROW(redfish_readings({{"PowerControl", {whole, whole}}}, "/p"), MeterFault);
  EXPECT_THROW(redfish_readings({{"PowerControl", {{{"PowerCapacityWatts", 900}}}}}, "/p"), MeterFault);
}

TEST(Slots, gaps_part_stretches_and_joined_slots_keep_their_mean) {
  SlotSeries series(1);
  for (const double time_s : {100.5, 101.5, 104.5, 105.9}) series.add(time_s, time_s);
  series.add(99, 1);  // the clock was set back
  const auto stretches = series.stretches();
  ASSERT_EQ(stretches.size(), 2U);
  EXPECT_EQ(stretches[0].begin_s, 100);
  EXPECT_EQ(stretches[1].begin_s, 104);
  EXPECT_EQ(stretches[1].samples.size(), 2U);
  EXPECT_EQ(series.left_out(), 1);
  SlotSeries small(1, 4);
  for (int i = 0; i < 6; ++i) small.add(101 + i, i);
  const auto joined = small.stretches();
  ASSERT_EQ(joined.size(), 1U);
  EXPECT_EQ(joined[0].interval_s, 2);
  EXPECT_EQ(joined[0].begin_s, 100);
  EXPECT_EQ(joined[0].samples, (std::vector<double>{0, 1.5, 3.5, 5}));
}

TEST(Scale, one_phase_is_checked_to_3_percent_and_three_phases_for_a_factor_of_ten) {
  const auto doubted = [](double power_w) {
    MeterHistory history;
    take_answer({},
                {{.quantity = Quantity::power, .value = power_w},
                 {.quantity = Quantity::voltage, .value = 230},
                 {.quantity = Quantity::current, .value = 10},
                 {.quantity = Quantity::power_factor, .value = 1}},
                1, history);
    return history.scale.has_value();
  };
  EXPECT_FALSE(doubted(2300));
  EXPECT_TRUE(doubted(2400));
  EXPECT_FALSE(doubted(6900));
  EXPECT_FALSE(doubted(3984));
  EXPECT_TRUE(doubted(23000));
  EXPECT_TRUE(doubted(230));
}

TEST(Login, what_a_kind_needs_is_asked_for_and_the_secret_is_in_no_error) {
  const std::string path = ::testing::TempDir() + "assay_login.json";
  const auto error_of = [&](MeterKind kind, const std::string& text) -> std::string {
    std::ofstream(path) << text;
    std::filesystem::permissions(path, std::filesystem::perms(0600));
    try {
      login_of({.name = "m", .kind = kind, .credentials = path});
    } catch (const MeterFault& fault) {
      return fault.what();
    }
    return "taken";
  };
  EXPECT_EQ(error_of(MeterKind::snmp, R"({"community": "c"})"), "taken");
  EXPECT_EQ(error_of(MeterKind::ipmi, R"({"user": "u", "password": "p"})"), "taken");
  EXPECT_NE(error_of(MeterKind::ipmi, R"({"user": "u"})").find("user: or password is missing"), std::string::npos);
  EXPECT_NE(
      error_of(MeterKind::snmp, R"({"user": "u", "password": "short", "privacy_password": "x"})").find("8 characters"),
      std::string::npos);
  EXPECT_EQ(error_of(MeterKind::ipmi, R"({"password": hunter2})").find("hunter2"), std::string::npos);
  EXPECT_NE(error_of(MeterKind::ipmi, R"({"user": "u", "password": "p", "pasword": "x"})").find("pasword"),
            std::string::npos);
  std::filesystem::remove(path);
}

/// Two supplies of a chassis; a power that is null has a sensor without a reading.
std::vector<MeterReading> supplies(const nlohmann::json& a, const nlohmann::json& b, const nlohmann::json& whole = {}) {
  std::vector<MeterReading> all;
  int number = 0;
  for (const auto& power : {a, b}) {
    const nlohmann::json metrics = {{"InputPowerWatts", {{"Reading", power}}},
                                    {"OutputPowerWatts", {{"Reading", 1100}}},
                                    {"InputVoltage", {{"Reading", 229 + number}}},
                                    {"InputCurrentAmps", {{"Reading", 5.2}}}};
    for (auto& one : redfish_readings(metrics, "/p" + std::to_string(number++))) all.push_back(std::move(one));
  }
  if (!whole.is_null())
    for (auto& one : redfish_readings({{"PowerWatts", {{"Reading", whole}}}}, "/e")) all.push_back(std::move(one));
  return with_supplies_added(std::move(all));
}

std::vector<MeterReading> of_quantity(const std::vector<MeterReading>& readings, Quantity quantity) {
  std::vector<MeterReading> found;
  std::ranges::copy_if(readings, std::back_inserter(found),
                       [&](const MeterReading& one) { return one.quantity == quantity; });
  return found;
}

TEST(Redfish, the_supplies_of_a_chassis_are_added_up_and_their_voltage_is_not) {
  const auto readings = supplies(1200, 1150);
  const auto power = of_quantity(readings, Quantity::power);
  ASSERT_EQ(power.size(), 1U);
  EXPECT_EQ(power[0].value, 2350);
  EXPECT_EQ(power[0].instrument, "redfish /p0 InputPowerWatts + redfish /p1 InputPowerWatts");
  EXPECT_EQ(of_quantity(readings, Quantity::output_power).at(0).value, 2200);
  EXPECT_DOUBLE_EQ(of_quantity(readings, Quantity::current).at(0).value, 10.4);
  ASSERT_EQ(of_quantity(readings, Quantity::voltage).size(), 1U);
  EXPECT_EQ(of_quantity(readings, Quantity::voltage)[0].value, 229);
}

TEST(Redfish, one_supply_without_a_reading_leaves_no_sum_because_the_other_is_half_of_the_node) {
  const auto power = of_quantity(supplies(1200, nullptr), Quantity::power);
  ASSERT_EQ(power.size(), 1U);
  EXPECT_TRUE(power[0].absent);
}

TEST(Redfish, what_the_chassis_states_of_the_whole_stands_beside_its_supplies) {
  const auto power = of_quantity(supplies(1200, 1150, 2300), Quantity::power);
  ASSERT_EQ(power.size(), 1U);
  EXPECT_EQ(power[0].value, 2300);
}

TEST(Redfish, leak_detectors_count_when_they_are_there_enabled_and_tell_a_state) {
  const auto told = [](const char* state, const char* status) {
    return redfish_readings(nlohmann::json{{"DetectorState", state}, {"Status", {{"State", status}}}}, "/d");
  };
  EXPECT_EQ(told("OK", "Enabled")[0].value, 1);
  EXPECT_EQ(told("OK", "Enabled")[1].value, 0);
  EXPECT_EQ(told("Critical", "Enabled")[1].value, 1);
  EXPECT_EQ(told("OK", "Absent")[0].value, 0);
  EXPECT_EQ(told("Unavailable", "Enabled")[0].value, 0);
  std::vector<MeterReading> answer = {{.quantity = Quantity::flow, .value = 5}};
  for (const char* state : {"OK", "Warning", "Absent"}) {
    for (auto& one : told(state, "Enabled")) answer.push_back(one);
  }
  join_leak_detectors(answer);
  ASSERT_EQ(answer.size(), 3U);
  EXPECT_EQ(answer[1].quantity, Quantity::leak_detectors);
  EXPECT_EQ(answer[1].value, 2);
  EXPECT_EQ(answer[2].value, 1);
}

}  // namespace
}  // namespace assay::meters
