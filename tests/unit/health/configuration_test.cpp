// host_configuration as a process on a healthy node, and on the same node with one file changed: what the profile
// nvidia-node-configuration says of each.
#include <algorithm>
#include <functional>
#include <set>

#include <gtest/gtest.h>

#include "probes/health/pci_settings.h"
#include "probes/health/roce_settings.h"
#include "tests/unit/health/configuration_tree.h"
#include "tests/unit/paths.h"
#include "tests/unit/probe_process.h"
#include "tests/unit/profiles/built_in.h"

namespace assay::health::configuration {
namespace {

using Change = std::function<void(const FakeTree&)>;

Record record_with(const Change& change) {
  const FakeTree tree;
  add_healthy_node(tree);
  change(tree);
  return record_of(probe_file("host_configuration"), {"--root", tree.path()});
}

const plan::Profile& profile() {
  static const plan::Profile kProfile = built_in("nvidia-node-configuration");
  return kProfile;
}

/// Values of the condition or metric that `requirement` judges, one for each subject that has it.
std::vector<Value> judged_in(const Record& record, const plan::Requirement& requirement) {
  std::vector<Value> values;
  for (const auto& one : record.conditions) {
    if (requirement.demand && one.name == requirement.demand->name && one.subject.kind == word_of(requirement.scope))
      values.push_back(one.value);
  }
  for (const auto& one : record.measurements) {
    if (!requirement.demand && one.metric == requirement.metric) values.emplace_back(one.samples.front());
  }
  return values;
}

bool is_met(const plan::Requirement& requirement, const Value& value) {
  if (requirement.demand) return plan::fit_of(*requirement.demand, value) == plan::Fit::met;
  return std::get<double>(value) <= requirement.limit.at_most.value();
}

/// The requirements of the profile that `record` does not meet, and those of which it has no value.
struct Findings {
  std::set<std::string> missed, absent;
};
Findings findings_of(const Record& record) {
  Findings found;
  for (const auto& requirement : profile().requirements) {
    const auto values = judged_in(record, requirement);
    const auto fits = [&](const Value& value) { return is_met(requirement, value); };
    if (values.empty()) found.absent.insert(requirement.id.substr(std::string("config.").size()));
    if (!std::ranges::all_of(values, fits)) found.missed.insert(requirement.id.substr(std::string("config.").size()));
  }
  return found;
}

std::string group_of(const std::string& address) { return "sys/kernel/iommu_groups/" + address.substr(5, 2) + "/type"; }

Change file(const std::string& path, const std::string& content) {
  return [=](const FakeTree& tree) { tree.file(path, content); };
}
Change space(const std::string& address, const Space& of) {
  return [=](const FakeTree& tree) { set_space(tree, address, of); };
}
Change limits(const std::string& files, const std::string& locked) {
  return file("proc/self/limits", "Max open files " + files + " " + files + " files\nMax locked memory " + locked +
                                      " " + locked + " bytes\n");
}
Change toolkit(const std::string& version) {
  return file("var/lib/dpkg/status",
              "Package: nvidia-container-toolkit\nStatus: install ok installed\nVersion: " + version + "\n");
}
Change removed(const std::string& path) {
  return [=](const FakeTree& tree) { std::filesystem::remove_all(tree.path(path)); };
}

const std::string kCpu = "sys/devices/system/cpu/";
const std::string kEcn0 = "sys/class/net/eth0/ecn/";

struct Case {
  const char* what;
  Change change;
  std::set<std::string> missed;
};

const std::vector<Case>& misconfigurations() {
  static const std::vector<Case> kCases = {
      {"a translated GPU", file(group_of(kGpu0), "DMA\n"), {"iommu"}},
      {"a translated NIC", file(group_of(kNic0), "DMA-FQ\n"), {"iommu"}},
      {"a GPU that is handed out", file(group_of(kGpu0), "unmanaged\n"), {"iommu"}},
      {"ACS on a root port", space(kSwitch0, {.acs = 0x1D}), {"acs"}},
      {"ACS on a switch port", space("0000:97:02.0", {.acs = 0x01}), {"acs"}},
      {"ACS with translated requests", space("0000:97:01.0", {.acs = 0x5F}), {"acs"}},
      {"a NIC in strict order", space(kNic0, {.control = 0x5020}), {"relaxed_ordering"}},
      {"a GPU in strict order", space(kGpu0, {.control = 0x5020}), {"relaxed_ordering_gpu"}},
      {"reads of 512 bytes", space(kNic0, {.control = 0x2030}), {"max_read_request"}},
      {"reads of 128 bytes", space(kNic0, {.control = 0x0030}), {"max_read_request"}},
      {"payloads of 128 bytes", space(kNic0, {.control = 0x5010}), {"max_payload", "payload_path"}},
      {"a root port of 512 bytes", space(kSwitch0, {.control = 0x5050, .acs = 0}), {"payload_path"}},
      {"a switch port of 128 bytes", space("0000:97:02.0", {.control = 0x5010, .acs = 0}), {"payload_path"}},
      {"NUMA balancing", file("proc/sys/kernel/numa_balancing", "1\n"), {"numa_balancing"}},
      {"NUMA balancing between tiers", file("proc/sys/kernel/numa_balancing", "2\n"), {"numa_balancing"}},
      {"one CPU with powersave", file(kCpu + "cpufreq/policy1/scaling_governor", "powersave\n"), {"governor"}},
      {"the first CPU with schedutil", file(kCpu + "cpufreq/policy0/scaling_governor", "schedutil\n"), {"governor"}},
      {"C6 on one CPU", file(kCpu + "cpu1/cpuidle/state2/disable", "0\n"), {"c_state"}},
      {"C6 on the first CPU", file(kCpu + "cpu0/cpuidle/state2/disable", "0\n"), {"c_state"}},
      {"no huge pages", file("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n"), {"thp"}},
      {"a slow clock",
       file("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
       {"clock_source"}},
      {"a clock of the firmware",
       file("sys/devices/system/clocksource/clocksource0/current_clocksource", "acpi_pm\n"),
       {"clock_source"}},
      {"64 KiB of locked memory", limits("1048576", "65536"), {"memlock"}},
      {"1,024 files", limits("1024", "unlimited"), {"open_files"}},
      {"both limits", limits("4096", "8388608"), {"memlock", "open_files"}},
      {"the closed module",
       file("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05\n"),
       {"open_module"}},
      {"no peer memory", removed("sys/module/nvidia_peermem"), {"peermem"}},
      {"a driver before the fix", file("sys/module/nvidia/version", "580.95.05\n"), {"driver"}},
      {"firmware before the fix", file("sys/class/infiniband/mlx5_1/fw_ver", "28.39.1002\n"), {"nic_firmware"}},
      {"the toolkit before the fix", toolkit("1.17.7-1"), {"container_toolkit"}},
      {"a toolkit that is later as a text", toolkit("1:1.9.0-1"), {"container_toolkit"}},
      {"a filter that leaves no HCA", file("etc/nccl.conf", "NCCL_IB_HCA=mlx5_9\n"), {"hca_filter"}},
      {"a filter of one exact name",
       file("etc/nccl.conf", "NCCL_DEBUG=WARN\nNCCL_IB_HCA==mlx5_0\n"),
       {"hca_nearest", "hca_distance"}},
      {"a filter that leaves a near HCA out",
       file("etc/nccl.conf", "NCCL_IB_HCA=^mlx5_1\n"),
       {"hca_nearest", "hca_distance"}},
      {"the near HCA without a link", file("sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n"), {"hca_distance"}},
      {"no flow control", file("saved/eth0.dcb", dcb_of(0x00)), {"lossless"}},
      {"flow control on another priority", file("saved/eth1.dcb", dcb_of(0x20)), {"lossless"}},
      {"congestion is not answered", file(kEcn0 + "roce_np/enable/3", "0\n"), {"ecn"}},
      {"congestion slows nothing", file(kEcn0 + "roce_rp/enable/3", "0\n"), {"ecn"}},
  };
  return kCases;
}

}  // namespace

TEST(host_configuration, a_healthy_node_meets_every_demand_and_lacks_none_but_of_nvml) {
  const auto found = findings_of(record_with([](const FakeTree&) {}));
  EXPECT_EQ(found.missed, (std::set<std::string>{}));
  EXPECT_EQ(found.absent, (std::set<std::string>{"persistence"}));  // a tree has no driver that could be asked
}

TEST(host_configuration, a_misconfiguration_misses_its_demand_and_no_other) {
  for (const auto& [what, change, missed] : misconfigurations())
    EXPECT_EQ(findings_of(record_with(change)).missed, missed) << what;
}

TEST(host_configuration, what_it_records_is_what_the_files_hold) {
  const Record record = record_with([](const FakeTree&) {});
  ASSERT_EQ(record.end.status, Status::complete) << record.end.reason;
  const Subject node{"node", std::get<std::string>(record.start.host.at("name"))};
  const std::map<std::string, Value> expected = {
      {"kernel", std::string("6.8.0-60-generic")},
      {"iommu_mode", std::string("passthrough")},
      {"iommu_parameters", std::string("intel_iommu=on iommu=pt")},
      {"page_size", std::int64_t{4096}},
      {"c_state_deepest", std::string("C1")},
      {"smt", true},
      {"mitigations", std::string("meltdown: Not affected | spectre_v1: Mitigation: usercopy/swapgs barriers")},
      {"open_files_limit", std::int64_t{1048576}},
      {"nvidia_version", std::string("580.159.03")},
      {"nvidia_parameters", std::string("EnableStreamMemOPs=0 RegistryDwords=\"PeerMappingOverride=1;\"")},
      {"mlx5_core_parameters", std::string("prof_sel=2")},
      {"package_database", std::string("dpkg")},
      {"containerd_version", std::string("1.7.27")},
      {"hca_filter", std::string("none (nothing)")},
      {"hcas", std::int64_t{2}}};
  for (const auto& [name, value] : expected) EXPECT_EQ(value_of(record, name, node), value) << name;
  EXPECT_EQ(value_of(record, "docker_version", node), std::nullopt);  // removed, with its configuration kept
  EXPECT_EQ(samples_of(record, "huge_pages_reserved", node), std::vector<double>{512.0 * 2048 * 1024});
  EXPECT_EQ(samples_of(record, "config_spaces_unread", node), std::vector<double>{0});
  EXPECT_EQ(value_of(record, "hca", {"gpu", "0000:9b:00.0"}), Value{std::string("mlx5_1:1")});
  EXPECT_EQ(value_of(record, "firmware", {"nic", "eth1"}), Value{std::string("28.46.3008")});
  EXPECT_EQ(value_of(record, "dscp_priorities", {"nic", "eth0"}), Value{std::string("26:3")});
}

TEST(host_configuration, what_root_alone_may_read_is_absent_without_root_and_never_off) {
  const Record record = record_with([](const FakeTree& tree) {
    for (const char* address : {kGpu0, kNic0, kSwitch0}) set_space(tree, address, {.acs = 0, .size = 64});
  });
  const Subject node{"node", std::get<std::string>(record.start.host.at("name"))};
  EXPECT_EQ(value_of(record, "acs", node), std::nullopt);
  for (const char* metric : {"acs_ports", "relaxed_ordering_off", "max_read_request_least", "max_payload_unlike"})
    EXPECT_EQ(samples_of(record, metric, node), std::vector<double>{}) << metric;
  EXPECT_EQ(samples_of(record, "config_spaces_unread", node), std::vector<double>{3});
  EXPECT_EQ(findings_of(record).missed, (std::set<std::string>{"readable"}));
  // One port that was read and has it on is enough to say on.
  const Record on = record_with([](const FakeTree& tree) {
    set_space(tree, kSwitch0, {.size = 64});
    set_space(tree, "0000:97:01.0", {.acs = 0x1D});
  });
  EXPECT_EQ(value_of(on, "acs", node), Value{std::string("on")});
  EXPECT_EQ(value_of(on, "acs_on", node), Value{std::string("0000:97:01.0 SrcValid ReqRedir CmpltRedir UpstreamFwd")});
}

TEST(host_configuration, hostile_content_of_a_file_gives_no_value_of_it) {
  const std::vector<std::pair<std::string, std::string>> files = {
      {"proc/sys/kernel/numa_balancing", "numa_balancing"},
      {"sys/kernel/mm/transparent_hugepage/enabled", "transparent_huge_pages"},
      {"sys/kernel/mm/transparent_hugepage/defrag", "transparent_huge_pages_defrag"},
      {"proc/self/smaps", "page_size"},
      {"proc/self/limits", "memlock_unlimited"},
      {"proc/self/limits", "open_files_limit"},
      {"sys/devices/system/clocksource/clocksource0/current_clocksource", "clock_source"},
      {kCpu + "cpufreq/policy1/scaling_governor", "governor"},
      {kCpu + "cpu1/cpuidle/state1/latency", "c_state_exit_latency_s"},
      {kCpu + "smt/active", "smt"},
      {"proc/driver/nvidia/version", "nvidia_open_module"},
      {"proc/driver/nvidia/params", "nvidia_parameters"},
      {"var/lib/dpkg/status", "package_database"},
      {"sys/class/infiniband/mlx5_0/tc/1/traffic_class", "traffic_class"},
      {"saved/eth0.dcb", "pfc_priorities"},
      {kEcn0 + "roce_np/enable/3", "ecn_notification_priorities"},
      {std::string("sys/bus/pci/devices/") + kNic0 + "/config", "max_payload"},
      {std::string("sys/bus/pci/devices/") + kSwitch0 + "/config", "acs"},
      {group_of(kGpu0), "iommu_mode"}};
  const std::string hostile[] = {std::string("\x00\xFF\x1B[31m\x80\n", 9),
                                 std::string(2 << 20, 'A'),
                                 std::string(1 << 20, '7'),
                                 "-5\n",
                                 "[-5]\n",
                                 "99999999999999999999\n",
                                 "drop; tables\n",
                                 ""};
  for (const std::string& content : hostile) {
    const Record record = record_with([&](const FakeTree& tree) {
      tree.file("proc/cmdline", "quiet\n");  // else it says what the group does not
      for (const auto& [path, name] : files) tree.file(path, content);
    });
    EXPECT_EQ(record.end.status, Status::complete) << record.end.reason;
    for (const auto& [path, name] : files) {
      const auto has = [&](const Condition& one) {
        return one.name == name && one.subject.id != "eth1" && one.subject.kind != "gpu";
      };
      EXPECT_TRUE(std::ranges::none_of(record.conditions, has)) << path << ": " << content.substr(0, 20);
    }
  }
  const Record half = record_with(file(kCpu + "cpu1/cpuidle/state1/disable", "-5\n"));
  EXPECT_TRUE(
      std::ranges::none_of(half.conditions, [](const Condition& one) { return one.name == "c_state_deepest"; }));
}

TEST(host_configuration, a_root_that_is_no_machine_is_an_error_with_a_hint) {
  const FakeTree tree;
  const Record record = record_of(probe_file("host_configuration"), {"--root", tree.path()});
  EXPECT_EQ(record.end.status, Status::error);
  EXPECT_EQ(record.end.reason, "root: '" + tree.path() +
                                   "' holds neither proc/cmdline nor sys/devices\n"
                                   "hint: name the directory that proc and sys are in; / is this machine");
}

TEST(pci_settings, lists_of_capabilities_that_loop_or_lead_out_end) {
  const std::string whole = space_of({.acs = 0x1D});
  EXPECT_EQ(parse_pci_settings(whole).acs, 0x1DU);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(parse_pci_settings(whole.substr(0, size)).acs, std::nullopt) << size;
  for (const std::size_t at : {0x34U, 0x61U, 0x100U, 0x103U, 0x148U, 0x14BU}) {
    for (unsigned value = 0; value < 256; ++value) {
      std::string broken = whole;
      broken[at] = static_cast<char>(value);
      const auto acs = parse_pci_settings(broken).acs;  // whatever is made of it, it ends
      EXPECT_TRUE(!acs || *acs <= 0x7F) << at << " " << value;
    }
  }
  EXPECT_EQ(parse_pci_settings(std::string(4096, '\xFF')).max_payload, std::nullopt);           // it fell off the bus
  EXPECT_EQ(parse_pci_settings(space_of({.control = 0x7030})).max_read_request, std::nullopt);  // a reserved code
}

TEST(hca_choice, filters_as_nccl_documents_them) {
  const Hca first{.name = "mlx5_1", .port = 1, .pci_address = ""},
      tenth{.name = "mlx5_10", .port = 2, .pci_address = ""};
  const auto left = [&](const char* filter) {
    return std::string(is_left_by(filter, first) ? "1" : "") + (is_left_by(filter, tenth) ? "10" : "");
  };
  EXPECT_EQ(left(""), "110");
  EXPECT_EQ(left("mlx5"), "110");
  EXPECT_EQ(left("mlx5_1"), "110");
  EXPECT_EQ(left("=mlx5_1"), "1");
  EXPECT_EQ(left("=mlx5_1,mlx5_10:2"), "110");
  EXPECT_EQ(left("=mlx5_10:1"), "");
  EXPECT_EQ(left("mlx5_1:2"), "10");
  EXPECT_EQ(left("^mlx5_10"), "1");
  EXPECT_EQ(left("^=mlx5_1"), "10");
  EXPECT_EQ(left("mlx5_1:x"), "");
  EXPECT_EQ(left(",,"), "");
}

TEST(roce_settings, answers_of_any_length_and_content_end) {
  const std::string whole = dcb_of(0x08);
  EXPECT_EQ(parse_dcb(whole).lossless, 0x08U);
  EXPECT_EQ(parse_dcb(whole).priorities, (std::map<int, int>{{26, 3}}));
  for (std::size_t size = 0; size + 8 < whole.size(); ++size)
    EXPECT_FALSE(parse_dcb(whole.substr(0, size)).priorities) << size;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string broken = whole;
    broken[at] = '\xFF';
    (void)parse_dcb(broken);  // under address checks: it reads nothing beyond
  }
}

}  // namespace assay::health::configuration
