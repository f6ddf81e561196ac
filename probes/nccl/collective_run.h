// collective_run: the method of the probes of collectives of GPUs, by NCCL and by RCCL: parameters, metrics, the ranks
// of a node and their leader.
#pragma once

#include <string>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/collective/conductor.h"
#include "probes/collective/fleet.h"
#include "probes/collective/limits.h"
#include "probes/collective/local_ranks.h"
#include "probes/core/host_facts.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/sizes.h"
#include "probes/cuda/device.h"
#include "probes/nccl/communicator.h"
#include "probes/nccl/environment.h"
#include "probes/nccl/outcome.h"
#include "probes/nccl/rank_process.h"

namespace assay::nccl {

inline constexpr Parameter kMessageParameters[] = {
    cuda::kDeviceParameter,
    choice("operation", "all_reduce", collective::kOperations, "collective to measure"),
    parameter("sizes", "", "8..16GiB",
              "message sizes, separated by commas; first..last doubles; those that do not fit are left out and named",
              "8,64KiB,8MiB"),
    choice("type", "fp32", collective::kElements, "type of the elements; reductions add them"),
};
inline constexpr Parameter kProtocolParameter =
    choice("protocol", "default", kProtocols, "protocol to force, or the library's own choice");
inline constexpr Parameter kGpudirectParameter =
    choice("gpudirect", "default", "default 0 1",
           "network adapters read and write GPU memory (GPUDirect RDMA): the library's own choice, never (LOC) or at "
           "any distance (SYS)");
inline constexpr Metric kCollectiveMetrics[] = {
    lower("time", "s", "time of one collective, the longest of all ranks", Recorded::rank_0),
    higher("algbw", "B/s", "size over time, the size counted as nccl-tests does", Recorded::rank_0),
    higher("busbw", "B/s", "algbw times the operation's factor for this number of ranks", Recorded::rank_0),
    share("wire_share",
          "busbw over wire_rate: the share of its line rate that the busiest adapter sent, where the size ran by "
          "rings and the library's log says by which adapter every channel leaves each node",
          Recorded::if_reported),
    higher("wire_rate", "B/s",
           "busbw at which an adapter of a node is at its line rate, where wire_share of all sizes is "
           "known; the least of all",
           Recorded::if_reported),
    fault("mismatches", "elements, of all ranks and of a check before and one after the timing, that are not exact",
          Recorded::rank_0),
};
inline constexpr ConditionSpec kPlacementConditions[] = {
    {.name = "ranks", .meaning = "GPUs that took part"},
    {.name = "nodes", .meaning = "nodes that took part"},
    {.name = "gpus_per_node", .meaning = "GPUs that took part on each node"},
    {.name = "node_names", .meaning = "names of the nodes by rank, separated by commas"},
    rank_0("sizes_left_out", "sizes in B that were asked for and do not fit, or none, on rank 0"),
};

/// Differences between the libraries.
struct CollectiveRun {
  const Product& product;
  Forced forced;
  void (*record_device)(Recorder& record, const cuda::Device& device);
};

namespace collective_run {

inline constexpr const char* kThisProgram = "/proc/self/exe";  // also for a program in sealed memory without a path

inline std::vector<std::string> of_each(const std::vector<cuda::Device>& devices, std::string cuda::Device::*member) {
  std::vector<std::string> words;
  for (const auto& device : devices) words.push_back(device.*member);
  return words;
}

inline collective::LocalRanks start_ranks(const Parameters& given, const std::vector<cuda::Device>& devices,
                                          const Placement& placement, const CollectiveRun& run) {
  const int here = static_cast<int>(devices.size());
  const auto node = std::get<std::string>(host_facts().at("name"));
  std::vector<collective::RankProgram> programs;
  for (int local = 0; local < here; ++local) {
    const RankPlace place{.rank = placement.rank * here + local,
                          .ranks = placement.world * here,
                          .gpu = devices[static_cast<std::size_t>(local)].uuid,
                          .operation = given.text("operation"),
                          .type = given.text("type")};
    programs.push_back({.path = kThisProgram,
                        .arguments = rank_arguments(run.product.probe, place),
                        .environment = rank_environment(environ, run.forced),
                        .title = fmt::format("rank {} ({} {})", place.rank, node, place.gpu)});
  }
  return collective::LocalRanks(programs, {.after_error = collective::kAfterError});
}

inline void record_placement(Recorder& record, const collective::Fleet& fleet, const std::vector<cuda::Device>& devices,
                             const CollectiveRun& run) {
  record.condition("ranks", static_cast<std::int64_t>(fleet.ranks()));
  record.condition("nodes", static_cast<std::int64_t>(fleet.nodes().size()));
  record.condition("gpus_per_node", static_cast<std::int64_t>(fleet.ranks_per_node()));
  record.condition("node_names", fmt::format("{}", fmt::join(fleet.nodes(), ",")));
  for (const auto& device : devices) run.record_device(record, device);
}

/// The part of this node, with its GPUs at hand.
template <class Errors>
void take_part(const Parameters& given, const Placement& placement, Recorder& record, Rendezvous* group,
               const CollectiveRun& run) {
  const auto sizes = parse_sizes(given.text("sizes"));
  const auto devices = cuda::chosen_devices(given);
  (void)Nccl(run.product);  // a node without the library is a skip of the probe, not an error of a rank
  if (placement.world == 1 && devices.size() == 1) throw Skip("one GPU: a collective needs two ranks");
  const Errors errors(of_each(devices, &cuda::Device::pci_bus_id));
  collective::LocalRanks ranks = start_ranks(given, devices, placement, run);
  const auto ask = [&](std::string_view request, Seconds limit) {
    return ranks.ask(request, limit, [&] {  // a library may never report to its rank that a peer is gone
      if (group != nullptr) group->check();
    });
  };
  collective::Fleet fleet(ask, of_each(devices, &cuda::Device::uuid), std::get<std::string>(host_facts().at("name")),
                          group);
  record_placement(record, fleet, devices, run);
  if (placement.rank == 0) {
    MeasuredSizes measured{.operation = collective::operation_named(given.text("operation")),
                           .element = collective::element_named(given.text("type")),
                           .ranks_per_node = fleet.ranks_per_node()};
    collective::conduct(fleet, given, sizes, nccl_rules(record, measured, run.product), record);
    fleet.release();
  } else {
    const auto answers = fleet.follow();
    if (const auto facts = answers.find("facts"); facts != answers.end())
      record_facts(record, facts->second, run.product);
  }
  ranks.finish(collective::kLeaveLimit);
  if (const auto grown = errors.growth()) record.condition("gpu_errors_delta", *grown);
}

}  // namespace collective_run

/// The whole measurement. `Errors` counts errors of the GPUs at PCI addresses from its making on.
template <class Errors>
void measure_collective(const Parameters& given, const Placement& placement, Recorder& record,
                        const CollectiveRun& run) {
  using collective_run::take_part;
  if (placement.world == 1) return take_part<Errors>(given, placement, record, nullptr, run);
  work_together(placement, {.exchange = collective::kExchangeLimit},
                [&](Rendezvous& group) { take_part<Errors>(given, placement, record, &group, run); });
}

}  // namespace assay::nccl
