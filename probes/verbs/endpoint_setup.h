// endpoint_setup: one rank on its own port: chosen, opened, its processors bound, its counters read; and the facts
// recorded of that.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/cuda/driver.h"
#include "probes/cuda/numa.h"
#include "probes/verbs/adapter.h"
#include "probes/verbs/counters.h"
#include "probes/verbs/introduction.h"
#include "probes/verbs/port_choice.h"

namespace assay::verbs {

/// The parameters that say so, besides `device`.
inline constexpr Parameter kPlaceParameters[] = {
    choice("memory", "host", "host gpu",
           "where the payload is; gpu: in the memory of an NVIDIA GPU, never of the host in its place"),
    parameter("gpu", "", "affine",
              "with memory gpu: affine (the one nearest to the port), a UUID or a PCI bus id; two, separated by a "
              "comma: of rank 0 and of rank 1"),
};

/// The conditions that record() records.
inline constexpr ConditionSpec kPlaceConditions[] = {
    {.name = "memory", .meaning = "where this rank's payload is: host or gpu"},
    {.name = "registration",
     .meaning = "how the adapter came to that memory: host; dma_buf (ibv_reg_dmabuf_mr); peermem (ibv_reg_mr of the "
                "GPU's address)"},
    {.name = "dma_buf_refused",
     .meaning = "why the GPU's memory was not registered as a dma-buf, with registration peermem"},
    {.name = "gpu", .meaning = "UUID of the GPU that holds the payload, with memory gpu"},
    {.name = "gpu_pci_bus_id", .meaning = "of that GPU"},
    {.name = "gpu_name", .meaning = "model of that GPU"},
    if_reported("gpu_numa_node", "NUMA node of that GPU, where the kernel reports it"),
    {.name = "gpu_nic_path",
     .meaning =
         "how near GPU and port are: same_switch, same_root (host bridge), same_numa_node, other_numa_node or unknown"},
    if_reported("gpu_nic_bridges", "PCI bridges between GPU and port, where their path is known"),
    {.name = "cuda_driver", .meaning = "CUDA version that the driver supports at most, with memory gpu"},
    {.name = "thread_numa_node", .meaning = "NUMA node that the measuring thread ran on at the end"},
    if_reported("memory_numa_share",
                "share of the host memory's pages on the port's NUMA node, where the kernel reports it"),
};

/// Throws BadParameter when `gpu` is given and memory is host.
void check_place(const Parameters& given);

/// One rank's port and, with memory gpu, its GPU.
class PayloadPlace {
 public:
  /// Chooses them as the parameters device, memory and gpu say. Throws Skip when port, driver or GPU are not here, and
  /// as choose_port_and_gpu(). Memory that make() returns must be gone before this is.
  PayloadPlace(const Parameters& given, const MachineTree& tree, int rank);
  PayloadPlace(const PayloadPlace&) = delete;
  PayloadPlace& operator=(const PayloadPlace&) = delete;

  [[nodiscard]] const PortFacts& port() const { return chosen_.port; }
  /// The GPU and its free memory; nothing where the payload is the host's.
  [[nodiscard]] std::optional<std::pair<std::string, Bytes>> free_gpu() const;
  /// `size` bytes at this place that `adapter` and peers reach.
  /// A GPU's memory is reached itself, or `staged` through pages of this host.
  [[nodiscard]] RegisteredMemory make(const Adapter& adapter, std::size_t size, Ordering ordering,
                                      bool staged = false) const;
  /// Records kPlaceConditions of `memory`, from the thread that measured.
  void record(Recorder& record, const MachineTree& tree, const RegisteredMemory& memory) const;

 private:
  std::optional<cuda::CudaDriver> driver_;
  PortAndGpu chosen_;
};

/// The parameters of every probe that moves messages over verbs, besides those of the payload's place.
inline constexpr Parameter kStationParameters[] = {
    choice("path", "fabric", "fabric loopback",
           "fabric: from one machine to another; loopback: one port of this machine, which is no test of cables "
           "and switches"),
    parameter("device", "", "auto",
              "RDMA device (mlx5_0) or port (mlx5_0/2); auto: the fastest active port, numa:1: that of a NUMA node; "
              "with memory gpu the nearest of equals"),
    parameter("gid_index", "", "auto", "entry of the GID table; auto: RoCE v2 over IPv4 before others"),
    choice("mtu", "auto", "auto 256 512 1024 2048 4096", "path MTU in B; auto: the smaller of both ports' active MTUs"),
    parameter("traffic_class", "1", "0",
              "of the global route header, 0 to 255; its upper six bits are the DSCP of RoCE v2"),
    parameter("service_level", "1", "0", "InfiniBand service level, or Ethernet priority, 0 to 15"),
    parameter(
        "ack_timeout", "s", "67ms",
        "time until a message that was not acknowledged is sent again, rounded up to 4.096 us times a power of two"),
    parameter("stall_limit", "s", "10s", "time without any completed message after which the measurement fails"),
    parameter("root", "", "/", "where /sys and /proc of the machine are; for tests"),
};

/// The conditions that record() records, besides those of place and counters.
inline constexpr ConditionSpec kStationConditions[] = {
    {.name = "path", .meaning = "fabric: two machines; loopback: one port"},
    {.name = "transport", .meaning = "RoCE v2, RoCE v1 or InfiniBand"},
    {.name = "device", .meaning = "this rank's RDMA device and port"},
    if_reported("firmware", "of the device, where it reports it"),
    if_reported("board", "board id of the device, where it reports it"),
    if_present("interface", "network interface of the port, where it has one"),
    {.name = "link_layer", .meaning = "Ethernet or InfiniBand"},
    if_reported("port_rate", "signalling rate of one direction in B/s, where the port reports it"),
    if_reported("port_rate_max",
                "the same of the fastest mode that port and driver support, where the driver lists its modes"),
    {.name = "mtu_max", .meaning = "largest MTU that the port can have, in B"},
    if_reported("port_width", "lanes, where the port reports it"),
    if_reported("port_speed", "speed of a lane in InfiniBand's words, where the port reports it"),
    {.name = "port_state", .meaning = "of the port after the measurement"},
    {.name = "port_unchanged",
     .meaning = "whether state, rate, width and speed of the port are the same after the measurement as before"},
    {.name = "gid_index", .meaning = "index of the GID used"},
    {.name = "gid", .meaning = "the GID used, as an address"},
    if_present("lid", "LID of the port, where it has one"),
    {.name = "traffic_class", .meaning = "of the global route header"},
    {.name = "service_level", .meaning = "service level"},
    {.name = "ack_timeout_s", .meaning = "time until a message that was not acknowledged is sent again"},
    {.name = "relaxed_ordering", .meaning = "whether the adapter may reorder its writes to memory"},
    {.name = "completion_timestamps",
     .meaning = "whether the device has a clock for completions; times here are the host's in any case"},
    if_reported("numa_node", "NUMA node of the device, where the kernel reports it"),
    {.name = "cpus_bound",
     .meaning = "whether the measuring thread, and with it the memory, stays on the CPUs of that node"},
    {.name = "library", .meaning = "path of libibverbs"},
};

/// This node's side on the port of `adapter`, with its address `gid`; its fastest mode is not asked for.
Introduction introduction_of(const Adapter& adapter, const Gid& gid, const MachineTree& tree);

/// One rank, before and after it knows any other.
class RdmaEndpointSetup {
 public:
  /// Chooses port and GID, opens the device, binds this thread to the processors near it and reads the counters. Throws
  /// Skip for missing parts, BadParameter, and as the choices.
  RdmaEndpointSetup(const Parameters& given, int rank);

  [[nodiscard]] Adapter& adapter() { return *adapter_; }
  [[nodiscard]] const PortFacts& port() const { return adapter_->port(); }
  /// `size` bytes for messages, where the parameters want them; they must be gone before the station is.
  [[nodiscard]] RegisteredMemory memory(std::size_t size, Ordering ordering, bool staged = false) const {
    return place_->make(*adapter_, size, ordering, staged);
  }
  [[nodiscard]] std::optional<std::pair<std::string, Bytes>> free_gpu() const { return place_->free_gpu(); }
  /// Facts of this rank for the others.
  [[nodiscard]] const Introduction& introduction() const { return introduction_; }
  /// Parameters of the path.
  [[nodiscard]] const PathWish& wish() const { return wish_; }
  /// The path to a rank that may be talked to. Throws as check_pair() and path_between() do.
  [[nodiscard]] PathChoice path_to(const Introduction& other) const;
  [[nodiscard]] bool loopback() const { return loopback_; }
  [[nodiscard]] Seconds stall_limit() const { return stall_limit_; }
  /// Records port, place and the counters' rise since the begin; called once, after the measurement, by the thread that
  /// measured.
  void record(Recorder& record, const RegisteredMemory& memory);

 private:
  std::string path_;
  bool loopback_;
  Seconds stall_limit_;
  std::string root_;
  PathWish wish_;
  std::optional<PayloadPlace> place_;
  std::optional<Adapter> adapter_;
  std::unique_ptr<cuda::CpuBinding> binding_;
  Introduction introduction_;
  Counters before_;
};

}  // namespace assay::verbs
