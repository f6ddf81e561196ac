// Switches: what an honest agent's tables say, what broken and hostile ones are refused for, and how counters rise.
#include <sstream>

#include <gtest/gtest.h>

#include "probes/core/record_reader.h"
#include "probes/core/utc_time.h"
#include "probes/meters/switch_history.h"

namespace assay::meters {
namespace {

constexpr double kNever_s = 1e12;

/// An agent that has objects in memory and answers as RFC 3416 says.
struct FakeAgent {
  std::map<Oid, SnmpVariable> objects;

  void set(const std::string& name, SnmpVariable one) {
    one.name = oid_of(name);
    objects[one.name] = std::move(one);
  }
  void text(const std::string& name, const std::string& value) { set(name, {.type = SnmpType::text, .text = value}); }
  void integer(const std::string& name, std::int64_t value) {
    set(name, {.type = SnmpType::integer, .integer = value});
  }
  void count(const std::string& name, SnmpType type, std::uint64_t value) { set(name, {.type = type, .count = value}); }

  [[nodiscard]] SnmpClient client() const {
    return {.device = {.name = "leaf1", .address = "10.0.0.1"},
            .get =
                [this](const std::vector<Oid>& names) {
                  std::vector<SnmpVariable> answer;
                  for (const auto& name : names)
                    answer.push_back(objects.contains(name) ? objects.at(name) : SnmpVariable{.name = name});
                  return answer;
                },
            .next =
                [this](const Oid& after, int rows) {
                  std::vector<SnmpVariable> answer;
                  for (auto at = objects.upper_bound(after); at != objects.end() && rows-- > 0; ++at)
                    answer.push_back(at->second);
                  if (answer.empty()) answer.push_back({.name = after, .type = SnmpType::end});
                  return answer;
                }};
  }
};

/// A switch with swp1 to n01 (named by MAC and description), swp2 to n02 (by name), and a sensor of light of swp1.
FakeAgent leaf() {
  FakeAgent agent;
  agent.count("1.3.6.1.2.1.1.3.0", SnmpType::ticks, 500'000);
  for (const std::string port : {"1", "2"}) {
    agent.text("1.3.6.1.2.1.31.1.1.1.1." + port, "swp" + port);
    agent.text("1.3.6.1.2.1.2.2.1.2." + port, "port " + port);
    agent.integer("1.3.6.1.2.1.2.2.1.8." + port, 1);
    agent.count("1.3.6.1.2.1.2.2.1.9." + port, SnmpType::ticks, 100);
    agent.count("1.3.6.1.2.1.31.1.1.1.15." + port, SnmpType::gauge, 400'000);
    agent.count("1.3.6.1.2.1.31.1.1.1.19." + port, SnmpType::ticks, 0);
    agent.count("1.3.6.1.2.1.31.1.1.1.6." + port, SnmpType::counter64, 1'000'000'000'000);
    agent.count("1.3.6.1.2.1.31.1.1.1.10." + port, SnmpType::counter64, 2'000'000'000'000);
    agent.count("1.3.6.1.2.1.2.2.1.14." + port, SnmpType::counter32, 4'294'967'290);
    agent.count("1.3.6.1.2.1.2.2.1.19." + port, SnmpType::counter32, 5);
    agent.text("1.0.8802.1.1.2.1.3.7.1.3.10" + port, "swp" + port);
  }
  agent.text("1.0.8802.1.1.2.1.4.1.1.9.7.101.1", "n01.hall");
  agent.integer("1.0.8802.1.1.2.1.4.1.1.6.7.101.1", 3);
  agent.text("1.0.8802.1.1.2.1.4.1.1.7.7.101.1", std::string("\x02\x00\x00\x00\x00\x01", 6));
  agent.text("1.0.8802.1.1.2.1.4.1.1.8.7.101.1", "ens1");
  agent.text("1.0.8802.1.1.2.1.4.1.1.9.0.102.1", "n02");
  agent.integer("1.0.8802.1.1.2.1.4.1.1.6.0.102.1", 5);
  agent.text("1.0.8802.1.1.2.1.4.1.1.7.0.102.1", "ens2");
  agent.set("1.3.6.1.2.1.47.1.3.2.1.2.40.0", {.type = SnmpType::oid, .oid = oid_of("1.3.6.1.2.1.2.2.1.1.1")});
  agent.integer("1.3.6.1.2.1.47.1.1.1.1.4.42", 41);
  agent.integer("1.3.6.1.2.1.47.1.1.1.1.4.41", 40);
  agent.text("1.3.6.1.2.1.47.1.1.1.1.7.42", "RX power");
  for (const auto& [column, value] : std::map<std::string, int>{{"1", 6}, {"2", 8}, {"3", 4}, {"4", 12'345}, {"5", 1}})
    agent.integer("1.3.6.1.2.1.99.1.1.1." + column + ".42", value);
  return agent;
}

SwitchView seen(const FakeAgent& agent, const std::vector<std::string>& ports = {"swp1", "swp2"}) {
  SwitchView view = find_ports(agent.client(), ports, kNever_s);
  find_neighbours(agent.client(), kNever_s, view);
  find_sensors(agent.client(), kNever_s, view);
  return view;
}

std::string fault_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const MeterFault& fault) {
    return fault.what();
  }
  return "";
}

TEST(SwitchTables, ports_neighbours_and_sensors_of_an_honest_agent) {
  const SwitchView view = seen(leaf(), {"swp1", "port 2", "swp9"});
  EXPECT_EQ(view.ports, (std::map<std::string, std::uint32_t>{{"swp1", 1}, {"port 2", 2}}));
  EXPECT_EQ(view.missing.at("swp9"), "the switch has no port of this name (ifName, ifDescr)");
  ASSERT_EQ(view.neighbours.size(), 2U);
  EXPECT_EQ(view.neighbours[0].interface, "port 2");  // as the site calls swp2
  EXPECT_EQ(view.neighbours[0].system, "n02");
  EXPECT_EQ(view.neighbours[0].system_port, "ens2");
  EXPECT_EQ(view.neighbours[1].interface, "swp1");
  EXPECT_EQ(view.neighbours[1].system, "n01.hall");
  EXPECT_EQ(view.neighbours[1].system_port, "ens1");  // the id is an address
  ASSERT_EQ(view.sensors.size(), 1U);
  EXPECT_EQ(view.sensors[0].port, 1U);
  const SwitchReading reading = read_switch(leaf().client(), view, kNever_s);
  EXPECT_DOUBLE_EQ(reading.sensors.at(42), 1.2345e-3);
  EXPECT_EQ(reading.ports.at(1).rate, 5e10);
}

TEST(SwitchTables, a_name_of_two_ports_and_a_counter_of_another_type_are_no_figure) {
  FakeAgent agent = leaf();
  agent.text("1.3.6.1.2.1.31.1.1.1.1.3", "swp1");
  agent.text("1.3.6.1.2.1.2.2.1.14.2", "7");
  const SwitchView view = seen(agent);
  EXPECT_EQ(view.missing.at("swp1"), "the switch has several ports of this name");
  const auto port = read_switch(agent.client(), view, kNever_s).ports.at(2);
  EXPECT_FALSE(port.counts[2]);  // in_errors
  EXPECT_TRUE(port.counts[0]);
}

TEST(SwitchTables, a_table_without_order_or_end_is_refused) {
  const Oid column = oid_of("1.3.6.1.2.1.31.1.1.1.1");
  const auto walked = [&](const std::function<std::vector<SnmpVariable>(const Oid&, int)>& next, double limit_s) {
    SnmpClient client = leaf().client();
    client.next = next;
    return fault_of([&] { (void)walk(client, column, limit_s); });
  };
  const auto row = [&](std::uint32_t index) {
    Oid name = column;
    name.push_back(index);
    return SnmpVariable{.name = name, .type = SnmpType::text, .text = "x"};
  };
  const auto endless = [&](const Oid& after, int) {
    return std::vector{row(after.size() == column.size() ? 1 : after.back() + 1)};
  };
  EXPECT_EQ(walked(
                [&](const Oid&, int) {
                  return std::vector{row(1), row(3), row(2)};
                },
                kNever_s),
            "leaf1 at 10.0.0.1: answers rows of a table out of order, so that its end cannot be known");
  EXPECT_EQ(walked([&](const Oid&, int) { return std::vector{row(1)}; }, kNever_s),
            "leaf1 at 10.0.0.1: answers rows of a table out of order, so that its end cannot be known");
  EXPECT_EQ(walked(endless, kNever_s), "leaf1 at 10.0.0.1: has a table of over 8192 rows");
  EXPECT_EQ(walked(endless, 0), "leaf1 at 10.0.0.1: its table is not over after 0 rows");
  EXPECT_EQ(walked([](const Oid&, int) { return std::vector<SnmpVariable>{}; }, kNever_s), "");
}

TEST(SwitchTables, entities_in_a_circle_and_broken_tables_of_neighbours_cost_only_themselves) {
  FakeAgent agent = leaf();
  agent.integer("1.3.6.1.2.1.47.1.1.1.1.4.41", 42);
  EXPECT_TRUE(seen(agent).sensors.empty());
  SnmpClient client = leaf().client();
  client.next = [](const Oid&, int) -> std::vector<SnmpVariable> { throw MeterFault("leaf1: no answer"); };
  SwitchView view;
  find_neighbours(client, kNever_s, view);
  EXPECT_EQ(view.neighbours_unread, "leaf1: no answer");
  EXPECT_NE(fault_of([&] { (void)find_ports(client, {"swp1"}, kNever_s); }), "");
  EXPECT_EQ(fault_of([&] { (void)read_switch(leaf().client(), seen(leaf()), 0); }),
            "leaf1 at 10.0.0.1: has answered 0 of 43 questions in time");
}

TEST(SwitchTables, values_of_sensors_by_scale_and_precision) {
  struct Case {
    std::int64_t scale, precision, value;
    std::optional<double> base;
  };
  constexpr std::int64_t kMilli = 8, kUnits = 9, kTera = 13;
  for (const Case& one : std::initializer_list<Case>{{kUnits, 0, 41, 41},
                                                     {kUnits, 1, 415, 41.5},
                                                     {kMilli, 4, 5012, 0.0005012},
                                                     {kUnits, -3, 40, 40},
                                                     {kTera, 0, 2, 2e12},
                                                     {kUnits, 0, 1'000'000'000, std::nullopt},
                                                     {kUnits, 0, -1'000'000'000, std::nullopt},
                                                     {14, 0, 1, std::nullopt},
                                                     {0, 0, 1, std::nullopt},
                                                     {kUnits, 10, 1, std::nullopt}}) {
    const auto base = sensor_value(one.scale, one.precision, one.value);
    ASSERT_EQ(base.has_value(), one.base.has_value()) << one.scale << " " << one.precision << " " << one.value;
    if (base) {
      EXPECT_NEAR(*base, *one.base, 1e-12 * std::abs(*one.base));
    }
  }
}

TEST(SwitchHistory, counters_wrap_or_were_reset) {
  const auto narrow = [](std::uint64_t value) { return Count{.value = value, .wide = false}; };
  const auto wide = [](std::uint64_t value) { return Count{.value = value, .wide = true}; };
  EXPECT_EQ(rise_of(narrow(4'294'967'290), narrow(4)), 10);
  EXPECT_EQ(rise_of(narrow(1000), narrow(4)), std::nullopt);
  EXPECT_EQ(rise_of(wide(1ULL << 63), wide(4)), std::nullopt);
  EXPECT_EQ(rise_of(narrow(4), wide(4)), std::nullopt);
  EXPECT_EQ(rise_of(wide(4), wide(4)), 0);
  const auto at = [](double time_s, std::optional<std::uint64_t> ticks) {
    return SwitchReading{.begin_s = time_s, .uptime = ticks};
  };
  EXPECT_EQ(restarted(at(0, 5000), at(10, 6000)), false);
  EXPECT_EQ(restarted(at(0, 5000), at(10, 700)), true);
  EXPECT_EQ(restarted(at(0, 1000), at(60, 1500)), true);  // it started anew and is already older than before
  EXPECT_EQ(restarted(at(0, 4'294'967'000), at(10, 704)), false);
  EXPECT_EQ(restarted(at(0, std::nullopt), at(10, 704)), std::nullopt);
}

/// The record of `leaf` watched over two readings, between which `change` happened.
Record watched(const std::function<void(FakeAgent&)>& change,
               const std::vector<std::string>& ports = {"swp1", "swp2"}) {
  static constexpr Metric kMetrics[] = {neither("in_bytes", "B", "of a port"),
                                        neither("out_bytes", "B", "of a port"),
                                        lower("in_errors", "1", "of a port"),
                                        lower("out_errors", "1", "of a port"),
                                        lower("in_discards", "1", "of a port"),
                                        lower("out_discards", "1", "of a port"),
                                        lower("fcs_errors", "1", "of a port"),
                                        lower("symbol_errors", "1", "of a port"),
                                        lower("in_pause_frames", "1", "of a port"),
                                        lower("out_pause_frames", "1", "of a port"),
                                        lower("link_changes", "1", "of a port"),
                                        higher("link_up", "1", "of a port"),
                                        higher("link_rate", "B/s", "of a port"),
                                        neither("optical_power", "W", "of a sensor"),
                                        neither("module_temperature", "degC", "of a sensor")};
  static constexpr ConditionSpec kConditions[] = {if_occurred("neighbours", "of a switch"),
                                                  if_occurred("sensors", "of a switch"),
                                                  if_occurred("neighbour", "of a port"),
                                                  if_occurred("neighbour_port", "of a port"),
                                                  if_occurred("neighbour_port_name", "of a port"),
                                                  if_occurred("refresh_s", "of a port"),
                                                  if_occurred("uncounted", "of a port"),
                                                  if_occurred("uncounted_why", "of a port"),
                                                  if_occurred("unread", "of a port")};
  static constexpr ProbeSpec kSpec{.name = "switch_counters",
                                   .measures = "Switches.",
                                   .method = "None.",
                                   .source = "None.",
                                   .metrics = kMetrics,
                                   .conditions = kConditions};
  FakeAgent agent = leaf();
  SwitchHistory history({.device = {.name = "leaf1"}, .ports = ports}, seen(agent, ports));
  const auto take = [&](double time_s) {
    SwitchReading reading = read_switch(agent.client(), history.view(), kNever_s);
    reading.begin_s = reading.end_s = time_s;
    history.take(reading);
  };
  take(1000);
  agent.count("1.3.6.1.2.1.1.3.0", SnmpType::ticks, 501'000);
  change(agent);
  take(1010);
  std::ostringstream out;
  Recorder recorder(out, kSpec, {.probe = "switch_counters", .revision = 1, .host = {{"name", std::string("h")}}});
  history.record(recorder);
  recorder.end({.status = Status::complete, .reason = ""});
  auto record = read_record(out.str(), *read_description(describe(kSpec).dump(), "switch_counters"));
  EXPECT_TRUE(record) << (record ? "" : record.error().text());
  return record ? *record : Record{};
}

std::optional<double> figure(const Record& record, const std::string& metric, const std::string& port = "leaf1/swp1") {
  for (const auto& one : record.measurements)
    if (one.metric == metric && one.subject == Subject{"switch_port", port}) return one.samples.front();
  return std::nullopt;
}

std::string condition(const Record& record, const std::string& name, const Subject& subject) {
  for (const auto& one : record.conditions)
    if (one.name == name && one.subject == subject) return std::get<std::string>(one.value);
  return "";
}

const Subject kPort{"switch_port", "leaf1/swp1"};

TEST(SwitchHistory, rises_of_each_port_and_what_the_switch_does_not_count_is_absent) {
  const Record record = watched([](FakeAgent& agent) {
    agent.count("1.3.6.1.2.1.2.2.1.14.1", SnmpType::counter32, 4);  // wraps
    agent.count("1.3.6.1.2.1.31.1.1.1.6.1", SnmpType::counter64, 1'000'000'004'096);
  });
  EXPECT_EQ(figure(record, "in_errors"), 10);
  EXPECT_EQ(figure(record, "in_bytes"), 4096);
  EXPECT_EQ(figure(record, "in_errors", "leaf1/swp2"), 0);
  EXPECT_EQ(figure(record, "symbol_errors"), std::nullopt);
  EXPECT_EQ(figure(record, "link_changes"), 0);
  EXPECT_EQ(figure(record, "link_up"), 1);
  EXPECT_EQ(record.measurements.front().at, (Values{{"from_s", 1000.0}, {"to_s", 1010.0}}));
  EXPECT_EQ(condition(record, "neighbour", kPort), "n01.hall");
  EXPECT_EQ(condition(record, "neighbours", {"meter", "leaf1"}), "read");
  EXPECT_NEAR(figure(record, "optical_power").value_or(0), 1.2345e-3, 1e-12);
}

TEST(SwitchHistory, a_reset_a_restart_and_a_change_of_ports_leave_no_figure_and_say_why) {
  struct Case {
    std::string uncounted, why, unread;
    std::function<void(FakeAgent&)> change;
  };
  const std::string all = "in_bytes,out_bytes,in_errors,out_discards";
  const std::string reset = "the counters were reset while they were watched";
  for (const Case& one : std::initializer_list<Case>{
           {"in_bytes", reset, "", [](FakeAgent& a) { a.count("1.3.6.1.2.1.31.1.1.1.6.1", SnmpType::counter64, 3); }},
           {all, reset, "", [](FakeAgent& a) { a.count("1.3.6.1.2.1.31.1.1.1.19.1", SnmpType::ticks, 500'500); }},
           {all, reset, "", [](FakeAgent& a) { a.count("1.3.6.1.2.1.1.3.0", SnmpType::ticks, 200); }},
           {all, reset, "", [](FakeAgent& a) { a.objects.erase(oid_of("1.3.6.1.2.1.1.3.0")); }},
           {"in_errors", "the switch reported it for a part of the time only", "",
            [](FakeAgent& a) { a.objects.erase(oid_of("1.3.6.1.2.1.2.2.1.14.1")); }},
           {"", "", "another port has its number (ifIndex) now",
            [](FakeAgent& a) { a.text("1.3.6.1.2.1.31.1.1.1.1.1", "swp7"); }},
           {"", "", "the switch does not answer for this port, or no longer", [](FakeAgent& a) {
              std::erase_if(a.objects, [](const auto& object) { return object.first.back() == 1; });
            }}}) {
    const Record record = watched(one.change);
    EXPECT_EQ(condition(record, "uncounted", kPort), one.uncounted);
    EXPECT_EQ(condition(record, "uncounted_why", kPort), one.why);
    EXPECT_EQ(condition(record, "unread", kPort), one.unread);
    if (!one.unread.empty()) {
      EXPECT_EQ(figure(record, "in_errors"), std::nullopt);
    }
  }
}

TEST(SwitchHistory, a_link_that_trained_between_two_readings_is_a_change_and_was_not_always_up) {
  const Record retrained =
      watched([](FakeAgent& agent) { agent.count("1.3.6.1.2.1.2.2.1.9.1", SnmpType::ticks, 500'400); });
  EXPECT_EQ(figure(retrained, "link_changes"), 1);
  EXPECT_EQ(figure(retrained, "link_up"), 1);
  const Record down = watched([](FakeAgent& agent) {
    agent.integer("1.3.6.1.2.1.2.2.1.8.1", 2);
    agent.count("1.3.6.1.2.1.31.1.1.1.15.1", SnmpType::gauge, 100'000);
  });
  EXPECT_EQ(figure(down, "link_changes"), 1);
  EXPECT_EQ(figure(down, "link_up"), 0);
  EXPECT_EQ(figure(down, "link_rate"), 1.25e10);
}

}  // namespace
}  // namespace assay::meters
