// health_gpu, health_inventory and power_sampler as processes on made-up nodes, and the parts that they are made of.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "probes/health/gpu_state.h"
#include "probes/health/gpus.h"
#include "probes/health/kernel_log.h"
#include "tests/unit/fake_nvml.h"
#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"

namespace assay::nvml {
namespace {

using Samples = std::vector<double>;

Record health_of(const std::string& scenario, const std::string& log = nvml_state("quiet.log"),
                 const std::string& more = "{}", const std::string& root = "/nonexistent") {
  const FakeNvml fake(scenario, more);
  return record_of(probe_file("health_gpu"), {"--nvml-library", fake.library(), "--kernel-log", log, "--root", root});
}
Record health_with(const std::string& more) { return health_of("healthy", nvml_state("quiet.log"), more); }

/// The samples of a metric by link.
std::map<std::int64_t, double> by_link(const Record& record, const std::string& metric, const Subject& subject) {
  std::map<std::int64_t, double> all;
  for (const Measurement& one : record.measurements) {
    if (one.metric == metric && one.subject == subject)
      all[std::get<std::int64_t>(one.at.at("link"))] = one.samples.at(0);
  }
  return all;
}

Subject gpu(int index) { return {"gpu", uuid_of(index)}; }

Subject node_of(const Record& record) { return {"node", std::get<std::string>(record.start.host.at("name"))}; }

}  // namespace

TEST(kernel_log, xid_lines_of_every_spelling_are_found) {
  const auto events = health::find_xid_events(
      "[ 1.0] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n"
      "[ 2.0] NVRM: Xid (0000:AF:00): 48, DBE\n"
      "6,812,99,-;NVRM: Xid (PCI:0000:3b:00.0): 13\n");
  EXPECT_EQ(events, (std::vector<health::XidEvent>{{"0000:3b:00", 79}, {"0000:af:00", 48}, {"0000:3b:00", 13}}));
}

TEST(kernel_log, lines_that_are_no_event_are_passed_over) {
  EXPECT_TRUE(
      health::find_xid_events("NVRM: Xid (PCI:0000:3b:00): none\nNVRM: Xid (): 3\nNVRM: Xid (PCI:0000:3b:00\nXid 79\n")
          .empty());
}

TEST(kernel_log, a_file_from_boot_is_whole_and_a_later_one_is_not) {
  const FakeTree tree;
  tree.file("late.log", "[ 900.1] usb 1-1: new device\n");
  EXPECT_EQ(health::read_kernel_log(nvml_state("xid.log")).whole, true);
  EXPECT_EQ(health::read_kernel_log(tree.path("late.log")).whole, false);
}

TEST(kernel_log, a_log_that_cannot_be_read_says_why) {
  const health::KernelLog log = health::read_kernel_log("/nonexistent/kmsg");
  EXPECT_EQ(log.whole, std::nullopt);
  EXPECT_EQ(log.absence, "/nonexistent/kmsg: No such file or directory");
}

TEST(kernel_log, numbers_are_sorted_and_counted) { EXPECT_EQ(health::words_of({63, 48, 63, 63}), "48, 63 (3 times)"); }

TEST(gpu_state, a_metric_that_only_others_tell_is_missing) {
  const auto missing =
      health::missing_facts({{.metrics = {{"ecc", 0}, {"links", 18}}}, {.metrics = {{"links", 18}}}, {}});
  EXPECT_EQ(missing, (std::vector<std::vector<std::string>>{{}, {"ecc"}, {"ecc", "links"}}));
}

TEST(fabric, states_and_ailments_have_words) {
  EXPECT_EQ(health::fabric_state_word({.state = 2}), "in_progress");
  EXPECT_EQ(health::fabric_state_word({.status = nvml_api::kUnknown, .state = 3}), "failed");
  EXPECT_EQ(health::fabric_state_word({.state = 9}), "unknown_9");
  EXPECT_EQ(health::fabric_health_words({.state = 3, .health_mask = 0}), std::nullopt);
  EXPECT_EQ(health::fabric_health_words({.state = 3, .health_mask = 0b10'1010'1010}), "incorrect_system_guid");
  EXPECT_EQ(health::fabric_health_words({.state = 3, .health_mask = 0x500}), "insufficient_nvlinks");
  EXPECT_EQ(health::fabric_health_words({.state = 3, .health_mask = 0xf00}), "incorrect_configuration");
  EXPECT_EQ(health::fabric_health_words({.state = 3, .health_mask = 0xaa, .health_summary = 3}), "limited_capacity");
  EXPECT_EQ(health::fabric_health_words({.state = 3, .health_mask = 0xa9, .health_summary = 2}), "degraded_bandwidth");
  EXPECT_EQ(health::fabric_health_words({.state = 3, .health_mask = 0, .health_summary = 1}), "healthy");
  EXPECT_EQ(health::fabric_health_words({.state = 3, .health_mask = 0b01'1001'1001}),
            "degraded_bandwidth route_unhealthy");
  EXPECT_EQ(health::fabric_health_words({.state = 3, .health_mask = 0b01'1010'1010}), "healthy");
}

TEST(health_gpu, a_missing_library_is_a_skip_that_names_it) {
  const Record record = record_of(probe_file("health_gpu"), {"--nvml-library", "libnvidia-ml-absent.so.1"});
  EXPECT_EQ(record.end.status, Status::skip);
  EXPECT_NE(record.end.reason.find("libnvidia-ml-absent.so.1"), std::string::npos) << record.end.reason;
}

TEST(health_gpu, a_healthy_node_tells_everything_of_eight_gpus) {
  const Record record = health_of("healthy");
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(samples_of(record, "gpus", node_of(record)), Samples{8});
  EXPECT_EQ(samples_of(record, "ecc_uncorrected", gpu(0)), Samples{0});
  EXPECT_EQ(samples_of(record, "nvlinks_active", gpu(7)), Samples{18});
  EXPECT_EQ(samples_of(record, "nvlink_errors", gpu(7)), Samples{0});
  EXPECT_EQ(samples_of(record, "thermal_throttle_time", gpu(7)), Samples{0});
  EXPECT_EQ(samples_of(record, "facts_missing", gpu(7)), Samples{0});
  EXPECT_EQ(samples_of(record, "query_errors", gpu(7)), Samples{0});
  EXPECT_EQ(samples_of(record, "xid_events", gpu(7)), Samples{0});
  EXPECT_EQ(samples_of(record, "retired_pages", gpu(7)), Samples{});
  EXPECT_EQ(value_of(record, "driver_version", node_of(record)), Value{std::string("simulated 575.57.08")});
  EXPECT_EQ(value_of(record, "serial", gpu(7)), Value{std::string("1650000000007")});
  EXPECT_EQ(value_of(record, "fabric_state", gpu(7)), Value{std::string("completed")});
  EXPECT_EQ(value_of(record, "ecc_mode", gpu(7)), Value{true});
  EXPECT_EQ(value_of(record, "mig_mode", gpu(7)), Value{false});
  EXPECT_EQ(value_of(record, "recovery_action", gpu(7)), Value{std::string("none")});
  EXPECT_EQ(value_of(record, "kernel_log_whole", node_of(record)), Value{true});
}

TEST(health_gpu, a_link_with_a_lane_that_is_down_is_named_by_its_speed_and_the_others_have_theirs) {
  const Record record = health_of("slow_nvlink");
  const auto speeds = by_link(record, "nvlink_speed", gpu(3));
  ASSERT_EQ(speeds.size(), 18U);
  for (const auto& [link, speed] : speeds) EXPECT_DOUBLE_EQ(speed, link == 7 ? 13.281e9 : 26.562e9) << link;
  EXPECT_EQ(by_link(record, "nvlink_recoveries", gpu(3)).size(), 18U);
  EXPECT_TRUE(by_link(record, "nvlink_effective_ber", gpu(3)).empty());  // NVLink 4 has none
}

/// What the driver says of the links of GPU 3, which differs from a healthy one by `difference`.
struct OfLinks {
  const char* difference;
  std::string states;          ///< by number
  double speed_of_7;           ///< B/s; 0 where absent or 0
  std::string contradictions;  ///< joined
};

TEST(health_gpu, each_link_has_its_speed_and_state_and_what_cannot_be_right_is_named) {
  const std::string all = "active: 0-17", seven = "active: 0-6 8-17; inactive: 7";
  const std::vector<OfLinks> cases = {
      {"{}", all, 26.562e9, ""},
      {R"({"link_7_speed_mbps": 13281})", all, 13.281e9, ""},
      {R"({"dead_links": [7], "link_7_state": 0, "link_7_speed_mbps": 0})", seven, 0, ""},
      {R"({"dead_links": [7], "silent_links": [7]})", seven, 0, ""},
      {R"({"link_17_state": 2, "silent_links": []})", "active: 0-16; sleeping: 17", 26.562e9, ""},
      {R"({"link_7_speed_mbps": 0})", all, 0, "link 7 is active at 0 B/s"},
      {R"({"link_7_state": 0})", all, 26.562e9, "link 7 is active by its state and inactive by its field"},
      {R"({"dead_links": [7]})", seven, 26.562e9, "link 7 is inactive by its state and active by its field"},
      {R"({"silent_links": [7]})", all, 0, "link 7 has no speed, others have"},
      {R"({"link_every_effective_ber": 4095, "link_3_effective_ber": "nan"})", all, 26.562e9,
       "link 3 has no effective bit error rate, others have"},
      {R"({"link_3_symbol_ber": 65535})", all, 26.562e9,
       "link 3 has 65535 as its symbol bit error rate, which is none"},
      {R"({"link_7_speed_mbps": "inf"})", all, 0, "link 7 has no speed, others have"},
      {R"({"link_7_symbol_ber": 0, "failing_field": "link_7_symbol_ber"})", all, 26.562e9,
       "link 7 answers field 222 with an error (NVML 999)"},
      {R"({"links": 40})", "active: 0-35", 26.562e9, "the GPU has 40 links, and NVML at most 36"},
      {R"({"not_supported": ["link_every_speed_mbps", "link_every_state", "remote_kind", "remote_bus_ids"]})", all, 0,
       ""},
  };
  for (const OfLinks& one : cases) {
    const Record record = health_with(std::string(R"({"gpus": {"3": )") + one.difference + "}}");
    const auto speeds = by_link(record, "nvlink_speed", gpu(3));
    const auto named = value_of(record, "link_contradiction_names", gpu(3));
    EXPECT_EQ(value_of(record, "nvlink_states", gpu(3)), Value{one.states}) << one.difference;
    EXPECT_DOUBLE_EQ(speeds.contains(7) ? speeds.at(7) : 0, one.speed_of_7) << one.difference;
    EXPECT_EQ(named ? std::get<std::string>(*named) : "", one.contradictions) << one.difference;
    EXPECT_EQ(value_of(record, "link_contradictions", gpu(3)), Value{std::int64_t{one.contradictions.empty() ? 0 : 1}});
    EXPECT_EQ(samples_of(record, "query_errors", gpu(3)), Samples{0}) << one.difference;
  }
}

TEST(health_gpu, answers_that_cannot_all_be_right_are_kept_counted_and_named) {
  const Record record = health_with(R"({"gpus": {"1": {"link_7_speed_mbps": 0, "silent_links": [2]}}})");
  EXPECT_EQ(by_link(record, "nvlink_speed", gpu(1)).size(), 17U);
  EXPECT_EQ(by_link(record, "nvlink_speed", gpu(1)).at(7), 0);
  EXPECT_EQ(value_of(record, "link_contradictions", gpu(1)), Value{std::int64_t{2}});
  EXPECT_EQ(value_of(record, "link_contradiction_names", gpu(1)),
            Value{std::string("link 7 is active at 0 B/s; link 2 has no speed, others have")});
  EXPECT_EQ(value_of(record, "link_contradictions", gpu(0)), Value{std::int64_t{0}});
}

TEST(health_gpu, a_driver_that_tells_nothing_of_single_links_leaves_them_out) {
  const Record record = health_of("older_driver");
  EXPECT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_TRUE(by_link(record, "nvlink_speed", gpu(0)).empty());
  EXPECT_EQ(samples_of(record, "nvlinks_active", gpu(0)), Samples{18});
  EXPECT_EQ(value_of(record, "nvlink_remote_ends", gpu(0)), std::nullopt);
  EXPECT_EQ(value_of(record, "fabric_clique", gpu(0)), std::nullopt);
  EXPECT_EQ(samples_of(record, "fabric_faults", gpu(0)), Samples{});
  EXPECT_EQ(samples_of(record, "fabric_cliques", node_of(record)), Samples{});
  EXPECT_EQ(samples_of(record, "query_errors", gpu(0)), Samples{0});
}

TEST(health_gpu, gpus_without_links_and_fabric_have_no_figure_of_either) {
  const Record record = health_with(R"({"gpu": {"links": 0, "fabric_state": null}})");
  for (const char* metric : {"nvlink_speed", "nvlinks_active", "fabric_cliques", "fabric_faults", "c2c_links_active"})
    EXPECT_EQ(std::ranges::count(record.measurements, metric, &Measurement::metric), 0) << metric;
  EXPECT_EQ(value_of(record, "link_contradictions", gpu(0)), std::nullopt);
  EXPECT_EQ(samples_of(record, "query_errors", gpu(0)), Samples{0});
}

/// A node's fabric as the driver has it, and what is recorded of it.
struct OfFabric {
  const char* state;
  Samples cliques, faults_of_3;
  std::optional<Value> status_of_3;
  const char* health_of_3 = nullptr;
};

TEST(health_gpu, a_fabric_is_one_clique_of_all_gpus_and_its_faults_are_counted) {
  const Value success = std::string("success"), refused = std::string("Insufficient Resources (NVML 23)");
  const std::vector<OfFabric> cases = {
      {"{}", {1}, {0}, success, "healthy"},
      {R"({"gpu": {"fabric_uuid": 156, "fabric_clique": 32766}})", {1}, {0}, success, "healthy"},
      {R"({"gpus": {"3": {"fabric_clique": 7}}})", {2}, {0}, success, "healthy"},
      {R"({"gpus": {"3": {"fabric_uuid": 1}}})", {2}, {0}, success, "healthy"},
      {R"({"gpus": {"3": {"fabric_status": 23}}})", {2}, {1}, refused, "healthy"},
      {R"({"gpu": {"fabric_status": 23}})", {}, {1}, refused, "healthy"},
      {R"({"gpus": {"3": {"fabric_state": 2}}})", {2}, {}, {}},
      {R"({"gpu": {"fabric_state": 2}})", {}, {}, {}},
      {R"({"gpu": {"fabric_state": 0}})", {}, {}, {}},
      {R"({"gpus": {"3": {"fabric_health": 1361}}})",
       {1},
       {4},
       success,
       "degraded_bandwidth route_unhealthy access_timeout_recovery insufficient_nvlinks"},
      {R"({"gpu": {"fabric_version": 3, "fabric_summary": 1}, "gpus": {"3": {"fabric_summary": 2}}})",
       {1},
       {1},
       success,
       "unhealthy"},
      {R"({"gpu": {"fabric_health": 0}})", {1}, {0}, success},
      {R"({"gpu": {"fabric_version": 0}})", {}, {}, {}},
  };
  for (const OfFabric& one : cases) {
    const Record record = health_with(one.state);
    EXPECT_EQ(samples_of(record, "fabric_cliques", node_of(record)), one.cliques) << one.state;
    EXPECT_EQ(samples_of(record, "fabric_faults", gpu(3)), one.faults_of_3) << one.state;
    EXPECT_EQ(value_of(record, "fabric_status", gpu(3)), one.status_of_3) << one.state;
    const auto words = one.health_of_3 == nullptr ? std::nullopt : std::optional<Value>(std::string(one.health_of_3));
    EXPECT_EQ(value_of(record, "fabric_health", gpu(3)), words) << one.state;
  }
}

TEST(health_gpu, a_fabric_of_one_node_has_no_uuid_and_one_of_a_rack_has) {
  const Record node = health_of("healthy"), rack = health_of("two_cliques");
  EXPECT_EQ(samples_of(node, "fabric_has_uuid", gpu(0)), Samples{0});
  EXPECT_EQ(value_of(node, "fabric_uuid", gpu(0)), std::nullopt);
  EXPECT_EQ(samples_of(rack, "fabric_has_uuid", gpu(0)), Samples{1});
  EXPECT_EQ(value_of(rack, "fabric_uuid", gpu(0)), Value{std::string("9c000000-0000-0000-0000-000000000000")});
  EXPECT_EQ(value_of(rack, "fabric_clique", gpu(0)), Value{std::int64_t{32766}});
}

TEST(health_gpu, errors_of_the_pcie_link_are_counted_by_class) {
  const FakeTree tree;
  const std::string device = "sys/bus/pci/devices/0000:18:00.0/";
  tree.file(device + "aer_dev_correctable", "RxErr 3\nBadTLP 2\nTOTAL_ERR_COR 5\n");
  tree.file(device + "aer_dev_nonfatal", "Undefined 0\nUnsupReq 1\nTOTAL_ERR_NONFATAL 1\n");
  tree.file(device + "aer_dev_fatal", "SDES 2\nTOTAL_ERR_FATAL 2\n");
  const Record record = health_of("healthy", nvml_state("quiet.log"), "{}", tree.path());
  EXPECT_EQ(samples_of(record, "pcie_errors_corrected", gpu(0)), Samples{5});
  EXPECT_EQ(samples_of(record, "pcie_errors_nonfatal", gpu(0)), Samples{1});
  EXPECT_EQ(samples_of(record, "pcie_errors_fatal", gpu(0)), Samples{2});
  EXPECT_EQ(samples_of(record, "pcie_errors_fatal", gpu(1)), Samples{});  // not reported, and not 0
  EXPECT_EQ(value_of(record, "facts_missing_names", gpu(1)),
            Value{std::string("pcie_errors_corrected pcie_errors_fatal pcie_errors_nonfatal")});
}

TEST(health_gpu, each_fault_is_a_number_on_its_gpu_and_on_no_other) {
  const Record link = health_of("gen3_link");
  EXPECT_EQ(samples_of(link, "pcie_generation", gpu(1)), Samples{3});
  EXPECT_EQ(samples_of(link, "pcie_generation_device", gpu(1)), Samples{5});
  EXPECT_EQ(samples_of(link, "pcie_replays", gpu(1)), Samples{17});
  EXPECT_EQ(samples_of(link, "pcie_generation", gpu(2)), Samples{5});
  const Record rows = health_of("remapped_rows");
  EXPECT_EQ(samples_of(rows, "remapped_rows_uncorrected", gpu(6)), Samples{2});
  EXPECT_EQ(samples_of(rows, "remapping_pending", gpu(6)), Samples{1});
  EXPECT_EQ(samples_of(rows, "remapping_failed", gpu(6)), Samples{0});
  const Record brake = health_of("power_brake");
  EXPECT_GE(samples_of(brake, "power_brake_time", gpu(4)).at(0), 2.5);
  EXPECT_EQ(samples_of(brake, "power_brake_time", gpu(5)), Samples{0});
  EXPECT_EQ(samples_of(health_of("busy_gpu"), "other_processes", gpu(0)), Samples{2});
}

TEST(health_gpu, a_driver_without_counters_by_reason_tells_its_thermal_violations_and_no_power_brake) {
  const Record record = health_of("older_driver");
  EXPECT_EQ(samples_of(record, "thermal_throttle_time", gpu(2)), Samples{1.5});
  EXPECT_EQ(samples_of(record, "thermal_throttle_time", gpu(3)), Samples{0});
  EXPECT_EQ(samples_of(record, "power_brake_time", gpu(3)), Samples{});
}

TEST(health_gpu, xid_events_belong_to_their_gpu_and_one_that_is_gone_is_named_by_its_address) {
  const FakeTree tree;
  tree.file("log",
            "Linux version 6.8\nNVRM: Xid (PCI:0000:ba:00): 63\nNVRM: Xid (PCI:0000:ba:00): 63\nNVRM: Xid "
            "(PCI:0000:ab:00): 79\n");
  const Record record = health_of("seven_gpus", tree.path("log"));
  EXPECT_EQ(samples_of(record, "gpus", node_of(record)), Samples{7});
  EXPECT_EQ(samples_of(record, "xid_events", gpu(6)), Samples{2});
  EXPECT_EQ(value_of(record, "xid_numbers", gpu(6)), Value{std::string("63 (2 times)")});
  EXPECT_EQ(samples_of(record, "xid_events", {"gpu", "0000:ab:00"}), Samples{1});
  EXPECT_EQ(value_of(record, "xid_numbers", {"gpu", "0000:ab:00"}), Value{std::string("79")});
}

TEST(health_gpu, without_a_log_there_is_no_count_of_events_and_the_reason_is_recorded) {
  const Record record = health_of("healthy", "/nonexistent/kmsg");
  EXPECT_EQ(samples_of(record, "xid_events", gpu(0)), Samples{});
  EXPECT_EQ(value_of(record, "kernel_log", node_of(record)),
            Value{std::string("absent: /nonexistent/kmsg: No such file or directory")});
  EXPECT_EQ(value_of(record, "kernel_log_whole", node_of(record)), std::nullopt);
}

TEST(health_gpu, a_lost_gpu_is_a_result_and_not_the_end) {
  for (const char* scenario : {"lost_gpu", "unreachable_gpu"}) {
    const Record record = health_of(scenario);
    EXPECT_EQ(record.end.status, Status::complete) << record.end.reason;
    EXPECT_EQ(samples_of(record, "gpus", node_of(record)), Samples{7});
    EXPECT_EQ(value_of(record, "gpus_listed", node_of(record)), Value{std::int64_t{8}});
    EXPECT_GT(samples_of(record, "query_errors", {"gpu", "index-5"}).at(0), 0);
    EXPECT_EQ(value_of(record, "query_error", {"gpu", "index-5"}), Value{std::string("uuid: GPU is lost (NVML 15)")});
    EXPECT_EQ(samples_of(record, "query_errors", gpu(4)), Samples{0});
  }
}

TEST(health_gpu, a_gpu_that_tells_less_than_its_neighbours_says_what) {
  const Record record = health_of("unlike_gpu");
  EXPECT_EQ(samples_of(record, "facts_missing", gpu(2)), Samples{4});
  EXPECT_EQ(value_of(record, "facts_missing_names", gpu(2)),
            Value{std::string("ecc_corrected ecc_corrected_lifetime ecc_uncorrected ecc_uncorrected_lifetime")});
  EXPECT_EQ(samples_of(record, "facts_missing", gpu(3)), Samples{0});
}

TEST(health_gpu, a_power_limit_below_the_one_at_boot_is_counted_on_its_gpu) {
  const Record record = health_of("power_limited_gpu");
  EXPECT_EQ(samples_of(record, "power_limit_lowered", gpu(3)), Samples{1});
  EXPECT_EQ(value_of(record, "power_limit_w", gpu(3)), Value{500.0});
  EXPECT_EQ(samples_of(record, "power_limit_lowered", gpu(2)), Samples{0});
}

TEST(health_inventory, gpus_are_named_by_their_uuid_on_the_bus_too) {
  const FakeNvml fake("healthy");
  const FakeTree tree;
  tree.file("proc/meminfo", "MemTotal: 1024 kB\n");
  tree.link("sys/bus/pci/devices/0000:18:00.0", "sys/devices/pci0000:00/0000:18:00.0");
  tree.link("sys/devices/pci0000:00/0000:18:00.0/driver", "sys/bus/pci/drivers/nvidia");
  tree.file("sys/devices/pci0000:00/0000:18:00.0/class", "0x030200\n");
  tree.file("sys/devices/pci0000:00/0000:18:00.0/max_link_width", "16\n");
  const Record record =
      record_of(probe_file("health_inventory"), {"--root", tree.path(), "--nvml-library", fake.library()});
  EXPECT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(samples_of(record, "gpus_total", node_of(record)), Samples{8});
  EXPECT_EQ(samples_of(record, "gpu_memory", gpu(0)), Samples{150754820096});
  EXPECT_EQ(samples_of(record, "pcie_width_max", gpu(0)), Samples{16});
  EXPECT_EQ(value_of(record, "pci_address", gpu(0)), Value{std::string("0000:18:00.0")});
  EXPECT_EQ(value_of(record, "driver", gpu(0)), Value{std::string("nvidia")});
  EXPECT_EQ(value_of(record, "vbios", gpu(0)), Value{std::string("96.00.89.00.01")});
  EXPECT_EQ(value_of(record, "driver_version", node_of(record)), Value{std::string("simulated 575.57.08")});
}

TEST(health_inventory, nvml_is_not_asked_about_a_tree_that_is_not_this_machine) {
  const FakeTree tree;
  tree.file("proc/meminfo", "MemTotal: 1024 kB\n");
  const Record record = record_of(probe_file("health_inventory"), {"--root", tree.path()});
  EXPECT_EQ(value_of(record, "nvml_library", node_of(record)), std::nullopt);
}

TEST(power_sampler, gpus_are_measured_by_their_counter_and_a_superchip_has_its_module) {
  const FakeNvml fake("superchip");
  const Record record = record_of(
      probe_file("power_sampler"),
      {"--powercap", "/nonexistent", "--nvml-library", fake.library(), "--duration", "500ms", "--interval", "100ms"});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_GT(samples_of(record, "energy", gpu(0)).at(0), 0);
  EXPECT_FALSE(samples_of(record, "power", gpu(0)).empty());
  EXPECT_EQ(samples_of(record, "power_average", gpu(0)).at(0), 118);
  EXPECT_EQ(samples_of(record, "power_instant", gpu(0)).at(0), 120);
  EXPECT_EQ(samples_of(record, "power_module", gpu(0)).at(0), 650);
  EXPECT_EQ(value_of(record, "instrument", node_of(record)), Value{std::string("nvml")});
  EXPECT_EQ(value_of(record, "domains", node_of(record)), std::nullopt);
}

TEST(power_sampler, a_lost_gpu_is_left_out_and_the_others_are_measured) {
  const FakeNvml fake("lost_gpu");
  const Record record = record_of(
      probe_file("power_sampler"),
      {"--powercap", "/nonexistent", "--nvml-library", fake.library(), "--duration", "200ms", "--interval", "100ms"});
  EXPECT_EQ(record.end.status, Status::complete) << record.end.reason;
  EXPECT_EQ(std::ranges::count(record.measurements, "energy", &Measurement::metric), 7);
  EXPECT_TRUE(samples_of(record, "power_module", gpu(0)).empty());
}

TEST(power_sampler, without_any_instrument_it_skips_and_names_both) {
  const Record record = record_of(probe_file("power_sampler"),
                                  {"--powercap", "/nonexistent", "--nvml-library", "absent.so", "--duration", "1s"});
  EXPECT_EQ(record.end.status, Status::skip);
  EXPECT_NE(record.end.reason.find("/nonexistent"), std::string::npos) << record.end.reason;
  EXPECT_NE(record.end.reason.find("absent.so"), std::string::npos) << record.end.reason;
}

}  // namespace assay::nvml
