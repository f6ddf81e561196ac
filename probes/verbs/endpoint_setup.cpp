// endpoint_setup: the order in which a rank chooses its port, opens it and reads its facts.
#include "probes/verbs/endpoint_setup.h"

#include <sched.h>

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "probes/core/host_facts.h"
#include "probes/core/json_io.h"
#include "probes/core/link_modes.h"
#include "probes/core/machine_tree.h"
#include "probes/cuda/gpu_memory.h"

namespace assay::verbs {
namespace {

/// Parameters that must be equal on both ranks: all but the device, whose name is each node's own.
std::string shared_parameters(const Parameters& given) {
  Values values = given.values();
  values.erase("device");
  return to_json(values).dump();
}

constexpr std::int64_t kMaxTrafficClass = 255, kMaxServiceLevel = 15;

std::uint8_t ack_timeout_in(const Parameters& given) {
  const Seconds wanted = given.seconds("ack_timeout");
  const auto code = ack_timeout_code(wanted);
  if (!code)
    throw BadParameter(fmt::format("ack_timeout: {:g} s is more than the {:g} s that a queue pair waits at most",
                                   wanted.count, kLongestAckTimeout.count));
  return *code;
}

/// CPUs near the device, from the kernel's own list for it.
std::vector<int> local_cpus(const MachineTree& tree, const std::string& device) {
  const auto text = tree.text(fmt::format("sys/class/infiniband/{}/device/local_cpulist", device));
  return text ? parse_cpu_list(*text).value_or(std::vector<int>{}) : std::vector<int>{};
}

/// The rate of the fastest mode of the port's network interface; 0 if it has none or does not report it.
double fastest_of(const MachineTree& tree, const PortFacts& port) {
  const auto most = tree.is_this_machine() ? fastest_mode_of(port.interface) : std::nullopt;
  return most ? most->count : 0;
}

void record_words(Recorder& record, std::string_view name, const std::string& value) {
  if (!value.empty()) record.condition(name, value);
}

}  // namespace

void check_place(const Parameters& given) {
  if (given.text("memory") == "host" && given.text("gpu") != "affine") {
    throw BadParameter("gpu: the memory is the host's; hint: --memory gpu");
  }
}

PayloadPlace::PayloadPlace(const Parameters& given, const MachineTree& tree, int rank) {
  const auto ports = read_ports(tree);
  chosen_.port = candidate_ports(ports, given.text("device")).front();
  if (given.text("memory") != "gpu") return;
  driver_.emplace();
  chosen_ = choose_port_and_gpu(tree, ports, given.text("device"), driver_->gpus(), given.text("gpu"), rank);
}

std::optional<std::pair<std::string, Bytes>> PayloadPlace::free_gpu() const {
  if (!chosen_.gpu) return std::nullopt;
  return std::pair{chosen_.gpu->uuid, cuda::free_memory_of(*driver_, *chosen_.gpu)};
}

RegisteredMemory PayloadPlace::make(const Adapter& adapter, std::size_t size, Ordering ordering, bool staged) const {
  if (!chosen_.gpu) return adapter.memory(size, ordering);
  cuda::GpuMemory of_gpu(*driver_, *chosen_.gpu, {size});
  return staged ? adapter.staged(std::move(of_gpu), ordering) : adapter.memory(std::move(of_gpu), ordering);
}

void PayloadPlace::record(Recorder& record, const MachineTree& tree, const RegisteredMemory& memory) const {
  record.condition("memory", std::string(chosen_.gpu ? "gpu" : "host"));
  record.condition("registration", std::string(word_of(memory.registration())));
  unsigned cpu = 0, node = 0;
  if (getcpu(&cpu, &node) == 0) record.condition("thread_numa_node", std::int64_t{node});
  if (!chosen_.gpu) {
    if (!port().numa_node) return;
    if (const auto share = cuda::share_on_node(memory.bytes(), *port().numa_node))
      record.condition("memory_numa_share", *share);
    return;
  }
  const cuda::DriverGpu& gpu = *chosen_.gpu;
  if (!memory.dma_buf_refused().empty()) record.condition("dma_buf_refused", memory.dma_buf_refused());
  record.condition("gpu", gpu.uuid);
  record.condition("gpu_pci_bus_id", gpu.pci_bus_id);
  record.condition("gpu_name", gpu.name);
  if (const auto of_gpu = pci_numa_node(tree, gpu.pci_bus_id)) record.condition("gpu_numa_node", std::int64_t{*of_gpu});
  record.condition("gpu_nic_path", std::string(word_of(chosen_.way.nearness)));
  if (chosen_.way.nearness != Nearness::unknown) record.condition("gpu_nic_bridges", std::int64_t{chosen_.way.bridges});
  record.condition("cuda_driver", driver_->version());
}

Introduction introduction_of(const Adapter& adapter, const Gid& gid, const MachineTree& tree) {
  const auto& port = adapter.port();
  const auto& limits = adapter.limits();
  return {.host = std::get<std::string>(host_facts().at("name")),
          .boot = tree.text("proc/sys/kernel/random/boot_id").value_or(""),
          .parameters = "",
          .port = port.name(),
          .node_guid = port.node_guid,
          .link_layer = port.link_layer,
          .gid = gid.value,
          .gid_type = gid.type,
          .gid_index = gid.index,
          .lid = limits.lid,
          .mtu = limits.mtu,
          .mtu_max = limits.mtu_max,
          .rate = port.rate ? port.rate->count : 0,
          .rate_max = 0,
          .reads_as_initiator = limits.reads_as_initiator,
          .reads_as_responder = limits.reads_as_responder};
}

RdmaEndpointSetup::RdmaEndpointSetup(const Parameters& given, int rank)
    : path_(given.text("path")),
      loopback_(path_ == "loopback"),
      stall_limit_(given.seconds("stall_limit")),
      root_(given.text("root")),
      wish_{.mtu = given.text("mtu"),
            .traffic_class = static_cast<int>(given.count("traffic_class", 0, kMaxTrafficClass)),
            .service_level = static_cast<int>(given.count("service_level", 0, kMaxServiceLevel)),
            .ack_timeout = ack_timeout_in(given)} {
  const MachineTree tree(root_);
  place_.emplace(given, tree, rank);
  const PortFacts& chosen = place_->port();
  const Gid gid = choose_gid(chosen, given.text("gid_index"));
  binding_ = std::make_unique<cuda::CpuBinding>(local_cpus(tree, chosen.device));
  adapter_.emplace(chosen);
  introduction_ = introduction_of(*adapter_, gid, tree);
  introduction_.parameters = shared_parameters(given);
  introduction_.rate_max = fastest_of(tree, chosen);
  before_ = read_counters(tree, chosen);
}

PathChoice RdmaEndpointSetup::path_to(const Introduction& other) const {
  check_pair(introduction_, other, path_);
  return path_between(introduction_, other, wish_);
}

void RdmaEndpointSetup::record(Recorder& record, const RegisteredMemory& memory) {
  const MachineTree tree(root_);
  record.condition("path", path_);
  record.condition("transport", transport_of(introduction_));
  record.condition("device", introduction_.port);
  record_words(record, "firmware", port().firmware);
  record_words(record, "board", port().board);
  record_words(record, "interface", port().interface);
  record_words(record, "link_layer", port().link_layer);
  record_words(record, "port_speed", port().speed);
  if (port().width) record.condition("port_width", std::int64_t{*port().width});
  if (port().rate) record.condition("port_rate", port().rate->count);
  if (introduction_.rate_max > 0) record.condition("port_rate_max", introduction_.rate_max);
  record.condition("mtu_max", std::int64_t{introduction_.mtu_max});
  record.condition("gid_index", std::int64_t{introduction_.gid_index});
  record.condition("gid", gid_words(introduction_.gid));
  if (introduction_.lid != 0) record.condition("lid", std::int64_t{introduction_.lid});
  record.condition("traffic_class", std::int64_t{wish_.traffic_class});
  record.condition("service_level", std::int64_t{wish_.service_level});
  record.condition("ack_timeout_s", ack_timeout_of(wish_.ack_timeout).count);
  record.condition("relaxed_ordering", memory.relaxed());
  record.condition("completion_timestamps", adapter_->limits().completion_timestamps);
  if (port().numa_node) record.condition("numa_node", std::int64_t{*port().numa_node});
  record.condition("cpus_bound", binding_->bound());
  record.condition("library", adapter_->library());
  place_->record(record, tree, memory);
  record_counters(record, before_, read_counters(tree, port()));
  for (const auto& now : read_ports(tree)) {
    if (now.name() != introduction_.port) continue;
    record_words(record, "port_state", now.state);
    record.condition("port_unchanged", now.state == port().state && now.speed == port().speed &&
                                           now.width == port().width &&
                                           now.rate.has_value() == port().rate.has_value() &&
                                           (!now.rate || now.rate->count == port().rate->count));
  }
}

}  // namespace assay::verbs
