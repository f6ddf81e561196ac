// session: two ranks on their ports, introduced, with memory, ready to connect; and what is recorded of that.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/cuda/numa.h"
#include "probes/verbs/adapter.h"
#include "probes/verbs/counters.h"
#include "probes/verbs/endpoint.h"
#include "probes/verbs/introduction.h"
#include "probes/verbs/payload_place.h"

namespace assay {

/// The parameters of both verbs probes, besides those of the payload's place.
inline constexpr Parameter kVerbsParameters[] = {
    {.name = "operation", .fallback = "write", .meaning = "RDMA write, RDMA read, or send and receive", .choices = kVerbsOperations},
    {.name = "path",
     .fallback = "fabric",
     .meaning = "fabric: from one machine to another; loopback: one port of this machine, which is no test of cables and switches",
     .choices = "fabric loopback"},
    {.name = "device",
     .fallback = "auto",
     .meaning = "RDMA device (mlx5_0) or port (mlx5_0/2); auto: the fastest active port, numa:1: that of a NUMA node; with memory gpu the nearest of equals"},
    {.name = "gid_index", .fallback = "auto", .meaning = "entry of the GID table; auto: RoCE v2 over IPv4 before others"},
    {.name = "mtu", .fallback = "auto", .meaning = "path MTU in B; auto: the smaller of both ports' active MTUs", .choices = "auto 256 512 1024 2048 4096"},
    {.name = "traffic_class", .unit = "1", .fallback = "0", .meaning = "of the global route header, 0 to 255; its upper six bits are the DSCP of RoCE v2"},
    {.name = "service_level", .unit = "1", .fallback = "0", .meaning = "InfiniBand service level, or Ethernet priority, 0 to 15"},
    {.name = "stall_limit", .unit = "s", .fallback = "10s", .meaning = "time without any completed message after which the measurement fails"},
    {.name = "root", .fallback = "/", .meaning = "where /sys and /proc of the machine are; for tests"},
};

/// The conditions that a session records, besides those of place and counters.
inline constexpr ConditionSpec kVerbsConditions[] = {
    {.name = "path", .meaning = "fabric: two machines; loopback: one port"},
    {.name = "local", .meaning = "this rank's host, port and address"},
    {.name = "peer", .meaning = "the other rank's host, port and address"},
    {.name = "transport", .meaning = "RoCE v2, RoCE v1 or InfiniBand"},
    {.name = "queue_pairs", .meaning = "numbers of this rank's and the other's queue pairs as first connected"},
    {.name = "device", .meaning = "this rank's RDMA device and port"},
    {.name = "firmware", .meaning = "of the device, where it tells"},
    {.name = "board", .meaning = "board id of the device, where it tells"},
    {.name = "interface", .meaning = "network interface of the port, where it has one"},
    {.name = "link_layer", .meaning = "Ethernet or InfiniBand"},
    {.name = "port_rate", .meaning = "signalling rate of one direction in B/s, where the port tells"},
    {.name = "port_width", .meaning = "lanes, where the port tells"},
    {.name = "port_speed", .meaning = "speed of a lane in InfiniBand's words, where the port tells"},
    {.name = "payload_limit", .meaning = "largest payload rate in B/s that port rate, MTU and headers leave, where the port tells its rate"},
    {.name = "port_state", .meaning = "of the port after the measurement"},
    {.name = "port_unchanged", .meaning = "whether state, rate, width and speed of the port are the same after the measurement as before"},
    {.name = "gid_index", .meaning = "index of the GID used"},
    {.name = "gid", .meaning = "the GID used, as an address"},
    {.name = "lid", .meaning = "LID of the port, where it has one"},
    {.name = "mtu", .meaning = "path MTU in B"},
    {.name = "traffic_class", .meaning = "of the global route header"},
    {.name = "service_level", .meaning = "service level"},
    {.name = "reads_outstanding", .meaning = "RDMA reads in flight on one queue pair at most"},
    {.name = "relaxed_ordering", .meaning = "whether the adapter may reorder its writes to memory"},
    {.name = "completion_timestamps", .meaning = "whether the device has a clock for completions; times here are the host's in any case"},
    {.name = "numa_node", .meaning = "NUMA node of the device, where the kernel tells"},
    {.name = "cpus_bound", .meaning = "whether the measuring thread, and with it the memory, stays on the CPUs of that node"},
    {.name = "library", .meaning = "path of libibverbs"},
};

/// One rank of a pair.
class Session {
 public:
  /// Chooses port and GID, opens the device, and introduces the ranks to each other. Throws Skip for what is missing, and what
  /// check_pair() and the choices throw.
  Session(const Parameters& given, Rendezvous& group);

  [[nodiscard]] Adapter& adapter() { return *adapter_; }
  /// `size` bytes for messages, where the parameters want them; they must be gone before the session is.
  [[nodiscard]] RegisteredMemory memory(std::size_t size, Ordering ordering) const { return place_->make(*adapter_, size, ordering); }
  [[nodiscard]] int rank() const { return group_.rank(); }
  [[nodiscard]] Seconds stall_limit() const { return stall_limit_; }
  /// What is measured: a pair, or one port.
  [[nodiscard]] Subject subject() const;
  [[nodiscard]] bool loopback() const { return loopback_; }
  /// The exchange of one message with the other rank: what it sent.
  [[nodiscard]] std::string swap(std::string_view mine);
  /// Returns when both are here.
  void barrier() { group_.barrier(); }
  [[nodiscard]] Rendezvous& group() { return group_; }
  /// Connects an endpoint to the other rank's, which does the same.
  void connect(VerbsEndpoint& endpoint);
  /// Records path, port and counters' change; called once, after the measurement.
  void record_conditions(Recorder& record, const RegisteredMemory& memory);

 private:
  const PortFacts& port() const { return adapter_->port(); }

  Rendezvous& group_;
  Seconds stall_limit_;
  bool loopback_ = false;
  std::string root_;
  std::optional<PayloadPlace> place_;
  std::optional<Adapter> adapter_;
  std::unique_ptr<CpuBinding> binding_;
  Introduction mine_, other_;
  PathChoice path_;
  std::string pairs_text_;
  Counters before_;
};

/// Runs `part` as one rank of the pair of `placement`; a loopback alone has both ranks in this process, of which rank 0 records.
/// A rank that throws tells the other why. Throws Skip for a fabric with one rank, BadParameter for parameters out of range.
void run_pair(const Parameters& given, const Placement& placement, Recorder& record,
              const std::function<void(Rendezvous&, Recorder*)>& part, Seconds exchange);

}  // namespace assay
