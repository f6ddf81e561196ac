// health_memory: the memory nodes of a machine, their kinds and distances, and the CXL devices behind them.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "probes/core/machine_tree.h"
#include "probes/core/memory_nodes.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/health/cxl.h"

namespace assay::health {
namespace {

constexpr Parameter kParameters[] = {
    parameter("root", "", "/", "directory that holds the proc and sys to read"),
};

constexpr Metric fixed(Metric metric) {
  metric.course = Course::fixed;
  return metric;
}
constexpr Metric since_boot(Metric metric) {
  metric.course = Course::since_boot;
  return metric;
}

constexpr Metric kMetrics[] = {
    fixed(neither("memory_nodes", "1", "nodes that have memory")),
    fixed(neither("memory_nodes_without_cpus", "1", "those of them that have no CPUs")),
    fixed(higher("node_memory", "B", "memory that the kernel manages on a node, at each memory_node")),
    fixed(neither("numa_distance", "1",
                  "distance by the firmware (SLIT; 10 is local) at each from and to, where the kernel shows it",
                  Recorded::if_reported)),
    fixed(neither("rated_read_bandwidth", "B/s",
                  "bandwidth that the firmware rates a node at (ACPI HMAT), at each memory_node, if rated",
                  Recorded::if_reported)),
    fixed(neither("rated_write_bandwidth", "B/s", "the same of stores", Recorded::if_reported)),
    fixed(neither("rated_read_latency", "s", "latency that it rates the node at, if rated", Recorded::if_reported)),
    fixed(neither("rated_write_latency", "s", "the same of stores", Recorded::if_reported)),
    fault("poisoned_pages",
          "pages that the kernel took out of use for memory errors, at each memory_node, if counted "
          "(memory_failure)",
          Recorded::if_reported, Course::since_boot),
    fixed(higher("cxl_devices", "1", "CXL memory devices")),
    fixed(higher("cxl_size", "B", "volatile capacity of one device, if reported", Recorded::if_reported)),
    fixed(higher("pcie_rate", "1/s", "negotiated transfers a second of a lane of a device's link, where sysfs has it",
                 Recorded::if_reported)),
    fixed(higher("pcie_rate_max", "1/s", "those that the device is made for", Recorded::if_reported)),
    fixed(higher("pcie_width", "1", "negotiated lanes, where sysfs has them", Recorded::if_reported)),
    fixed(higher("pcie_width_max", "1", "lanes that the device is made for", Recorded::if_reported)),
    fault("cxl_narrow_links",
          "devices whose link has fewer lanes than they are made for, where a width was compared and the machine is no "
          "guest",
          Recorded::if_reported, Course::fixed),
    fixed(lower("cxl_slow_links", "1", "devices whose link has a lower rate than they are made for, likewise",
                Recorded::if_reported)),
    fault("cxl_faults",
          "states that devices report as wrong: maintenance or replacement needed, performance degraded, media not "
          "normal, life or temperature critical; where any device answers",
          Recorded::if_reported),
    since_boot(lower("cxl_corrected_errors", "1", "memory errors that one device corrected, as it counts them",
                     Recorded::if_reported)),
    with_course(Course::for_life, lower("cxl_dirty_shutdowns", "1",
                                        "shutdowns in which one device could not save everything, as it counts them",
                                        Recorded::if_reported)),
    lower("cxl_life_used", "1", "share of its life that one device reports as used", Recorded::if_reported),
    since_boot(lower("pcie_errors_corrected", "1", "corrected errors of its link, where the kernel reports them (AER)",
                     Recorded::if_reported)),
    since_boot(
        lower("pcie_errors_uncorrected", "1", "uncorrected errors of its link, likewise", Recorded::if_reported)),
};
constexpr ConditionSpec kConditions[] = {
    {.name = "bare_metal", .meaning = "Whether no hypervisor shows itself; a guest's nodes and links may be made up."},
    {.name = "memory_kinds", .meaning = "Kind of every memory node, and the fact behind it."},
    if_reported("memory_tiers", "The kernel's memory tier of every node."),
    if_reported("rated_from", "Access class of the firmware's ratings of every node, and the nodes they hold for."),
    if_reported("serial", "Serial number of a device."),
    if_reported("firmware", "Firmware version of a device."),
    if_reported("numa_node", "Node of the CPUs nearest to a device."),
    if_present("pci_address", "PCI function of a device."),
    if_present("cxl_health", "States of a device that are not normal, \"normal\", or \"absent: \" and why."),
    if_reported("temperature_c", "Temperature of a device."),
};
constexpr ProbeSpec kSpec{
    .name = "health_memory",
    .measures = "The memory nodes of a node, the kind of memory of each, and links and health of its CXL devices.",
    .method =
        "Reads the kernel's memory nodes. One without CPUs is a GPU's where the NVIDIA driver names it (numa_status), "
        "CXL memory where a CXL region decodes a block of it, and else of unknown kind; no number or size decides it. "
        "Ratings are those of the class of the nearest CPUs (access1), else of any initiator (access0); the kernel's "
        "MB/s are taken as 10^6. Each CXL device is asked for its health (Get Health Info, root). Its list of poisoned "
        "addresses is not read, since the kernel shows it to tracing only; pages that the kernel retired are counted. "
        "Nothing is changed. Tested on artificial trees and an emulated "
        "machine; no CXL device has been read.",
    .source =
        "Linux Documentation/ABI: stable/sysfs-devices-node, testing/sysfs-kernel-mm-memory-tiers, "
        "testing/sysfs-bus-cxl; admin-guide/mm/numaperf.rst; linux/cxl_mem.h and libcxl for CXL 2.0 8.2.9.5.3; "
        "kernel-open/nvidia/nv-procfs.c of NVIDIA's kernel modules.",
    .needs = "a kernel with NUMA; root for the health of CXL devices",
    .typical = {1},
    .deadline = {60},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
    .between_runs = {.least = 0}};

template <class T>
void tell(Recorder& record, std::string_view name, const std::optional<T>& value, const Subject& subject) {
  if (value) record.condition(name, *value, subject);
}

void put(Recorder& record, std::string_view metric, const auto& value, const Subject& subject = {}, Values at = {}) {
  if (value) record.measurement(metric, static_cast<double>(*value), subject, std::move(at));
}

void append(std::string& list, const std::string& text) { list += (list.empty() ? "" : "; ") + text; }

void record_nodes(const std::vector<MemoryNode>& nodes, const std::vector<int>& online, Recorder& record) {
  std::string kinds, tiers, rated;
  for (const auto& node : nodes) {
    const Values at = {{"memory_node", std::int64_t{node.number}}};
    record.measurement("node_memory", static_cast<double>(node.size_b), {}, at);
    put(record, "poisoned_pages", node.poisoned_pages, {}, at);
    append(kinds, fmt::format("{} {} ({})", node.number, word_of(node.kind), node.shown_by));
    if (node.tier) append(tiers, fmt::format("{}: {}", node.number, *node.tier));
    for (std::size_t i = 0; i < std::min(node.distances.size(), online.size()); ++i)
      record.measurement("numa_distance", node.distances[i], {},
                         {{"from", std::int64_t{node.number}}, {"to", std::int64_t{online[i]}}});
    if (!node.rating) continue;
    put(record, "rated_read_bandwidth", node.rating->read_rate, {}, at);
    put(record, "rated_write_bandwidth", node.rating->write_rate, {}, at);
    put(record, "rated_read_latency", node.rating->read_latency_s, {}, at);
    put(record, "rated_write_latency", node.rating->write_latency_s, {}, at);
    append(rated, fmt::format("{}: access{} of {}", node.number, node.rating->access_class, node.rating->initiators));
  }
  record.condition("memory_kinds", kinds);
  if (!tiers.empty()) record.condition("memory_tiers", tiers);
  if (!rated.empty()) record.condition("rated_from", rated);
}

void record_device(const CxlMemory& device, Recorder& record) {
  const Subject dimm{.kind = "dimm", .id = device.name};
  put(record, "cxl_size", device.volatile_b, dimm);
  put(record, "pcie_rate", device.current.transfers_per_s, dimm);
  put(record, "pcie_rate_max", device.maximum.transfers_per_s, dimm);
  put(record, "pcie_width", device.current.width, dimm);
  put(record, "pcie_width_max", device.maximum.width, dimm);
  put(record, "pcie_errors_corrected", device.errors.corrected, dimm);
  put(record, "pcie_errors_uncorrected", device.errors.uncorrected(), dimm);
  tell(record, "serial", device.serial, dimm);
  tell(record, "firmware", device.firmware, dimm);
  tell(record, "numa_node", device.numa_node, dimm);
  tell(record, "pci_address", device.pci_address, dimm);
  if (!device.health) {
    record.condition("cxl_health", "absent: " + device.health_absent, dimm);
    return;
  }
  const CxlHealth& health = *device.health;
  record.condition("cxl_health", health.states.empty() ? std::string("normal") : health.states, dimm);
  record.measurement("cxl_corrected_errors",
                     static_cast<double>(health.corrected_volatile + health.corrected_persistent), dimm);
  record.measurement("cxl_dirty_shutdowns", static_cast<double>(health.dirty_shutdowns), dimm);
  put(record, "cxl_life_used", health.life_used, dimm);
  if (health.temperature_c) record.condition("temperature_c", std::int64_t{*health.temperature_c}, dimm);
}

/// How many of `devices` are so; nothing if of none it is known.
template <class Question>
std::optional<std::int64_t> how_many(const std::vector<CxlMemory>& devices, Question question) {
  std::optional<std::int64_t> sum;
  for (const auto& device : devices) {
    if (const auto answer = (device.*question)()) sum = sum.value_or(0) + (*answer ? 1 : 0);
  }
  return sum;
}

void measure(const Parameters& given, Recorder& record) {
  const MachineTree tree(given.text("root"));
  const auto nodes = read_memory_nodes(tree);
  if (nodes.empty()) throw Skip("sys/devices/system/node shows no node with memory: this kernel has no NUMA");
  const bool guest = is_guest(tree);
  record.condition("bare_metal", !guest);
  record.measurement("memory_nodes", static_cast<double>(nodes.size()));
  record.measurement("memory_nodes_without_cpus",
                     static_cast<double>(std::ranges::count_if(
                         nodes, [](const MemoryNode& node) { return node.kind != MemoryKind::with_cpus; })));
  record_nodes(nodes, online_nodes(tree), record);
  const auto devices = read_cxl_memory(tree);
  record.measurement("cxl_devices", static_cast<double>(devices.size()));
  std::optional<std::int64_t> faults;
  for (const auto& device : devices) {
    record_device(device, record);
    if (device.health) faults = faults.value_or(0) + device.health->faults;
  }
  put(record, "cxl_faults", faults);
  if (guest) return;
  put(record, "cxl_narrow_links", how_many(devices, &CxlMemory::narrow));
  put(record, "cxl_slow_links", how_many(devices, &CxlMemory::slow));
}

}  // namespace
}  // namespace assay::health

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::health::kSpec, assay::health::measure); }
