// nccl_collective: time and bandwidth of one NCCL collective over all GPUs of a node or of several, checked exactly.
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
#include "probes/cuda/device_record.h"
#include "probes/nccl/communicator.h"
#include "probes/nccl/environment.h"
#include "probes/nccl/outcome.h"
#include "probes/nccl/rank_process.h"
#include "probes/nvml/gpu_errors.h"

namespace assay::nccl {
namespace {

using nlohmann::json;

constexpr Parameter kParameters[] = {
    cuda::kDeviceParameter,
    {.name = "operation",
     .fallback = "all_reduce",
     .meaning = "collective to measure",
     .choices = collective::kOperations},
    {.name = "sizes",
     .fallback = "8..16GiB",
     .quick = "8,64KiB,8MiB",
     .meaning =
         "message sizes, separated by commas; first..last doubles; those that do not fit are left out and named"},
    {.name = "type",
     .fallback = "fp32",
     .meaning = "type of the elements; reductions add them",
     .choices = collective::kElements},
    {.name = "algorithm",
     .fallback = "default",
     .meaning = "algorithm to force, or NCCL's own choice",
     .choices = kAlgorithms},
    {.name = "protocol",
     .fallback = "default",
     .meaning = "protocol to force, or NCCL's own choice",
     .choices = kProtocols},
    {.name = "nvls",
     .fallback = "default",
     .meaning = "reduction in NVLink switches: NCCL's own choice, off or on",
     .choices = "default 0 1"},
    {.name = "collnet",
     .fallback = "default",
     .meaning = "reduction in the switches of the network (SHARP): NCCL's own choice, off or on",
     .choices = "default 0 1"},
    {.name = "mnnvl",
     .fallback = "default",
     .meaning = "NVLink between nodes: NCCL's own choice, off or on",
     .choices = "default 0 1"},
    {.name = "gpudirect",
     .fallback = "default",
     .meaning = "network adapters read and write GPU memory (GPUDirect RDMA): NCCL's own choice, never (LOC) or at any "
                "distance (SYS)",
     .choices = "default 0 1"},
};
constexpr Metric kMetrics[] = {
    lower("time", "s", "time of one collective, the longest of all ranks", Recorded::rank_0),
    higher("algbw", "B/s", "size over time, the size counted as nccl-tests does", Recorded::rank_0),
    higher("busbw", "B/s", "algbw times the operation's factor for this number of ranks", Recorded::rank_0),
    {.name = "wire_share",
     .unit = "1",
     .meaning = "busbw over wire_rate: the share of its line rate that the busiest adapter sent, where the size ran by "
                "rings and NCCL's log says by which adapter every channel leaves each node",
     .kind = MetricKind::share,
     .recorded = Recorded::if_reported},
    higher("wire_rate", "B/s",
           "busbw at which an adapter of a node is at its line rate, where wire_share of all sizes is "
           "known; the least of all",
           Recorded::if_reported),
    fault(
        "mismatches",
        "elements, of all ranks and of a check before and one after the timing, that are not exactly what they must be",
        Recorded::rank_0),
};
constexpr ConditionSpec kOwnConditions[] = {
    {.name = "ranks", .meaning = "GPUs that took part"},
    {.name = "nodes", .meaning = "nodes that took part"},
    {.name = "gpus_per_node", .meaning = "GPUs that took part on each node"},
    {.name = "node_names", .meaning = "names of the nodes by rank, separated by commas"},
    rank_0("sizes_left_out", "sizes in B that were asked for and do not fit, or none, where this is rank 0"),
};
constexpr ConditionSpec kErrorConditions[] = {nvml::kGpuErrorsCondition};
constexpr auto kConditions =
    cuda::join_conditions(cuda::kDeviceConditions, kFactConditions, kOwnConditions, kErrorConditions);
constexpr ProbeSpec kSpec{
    .name = "nccl_collective",
    .revision = 3,
    .scope = Scope::group,
    .sampled = true,
    .measures =
        "Time, algorithm bandwidth and bus bandwidth of an NCCL collective over GPUs of one node or of several, and "
        "the "
        "share of line rate that it takes of network adapters.",
    .method =
        "One process for each GPU; ranks count node by node in the order of PCI bus ids. The communicator is "
        "non-blocking and every wait has a deadline. Buffers come from ncclMemAlloc, are used out of place, and their "
        "place moves on with each iteration. Sums; all_to_all, scatter and send_recv (to the next rank, from the one "
        "before) are grouped sends and receives. A batch is enqueued behind a gate on each GPU, which then opens, so "
        "that no launch is in a time; after lead-in iterations (five at first, then one in each batch) each iteration "
        "is timed by two events on every rank, and its time is the longest of all ranks. algbw is size over time, size "
        "being the whole buffer as nccl-tests counts it; busbw is algbw times 2(n-1)/n for all_reduce, (n-1)/n for "
        "all_gather, reduce_scatter, all_to_all and scatter, 1 for broadcast and send_recv. Under NVLS and over two "
        "nodes by tree busbw is not the traffic of a link. Before and after the timing of each size one collective "
        "runs on whole numbers whose sums are exact in the type, or on random bits if none are added, and every "
        "received element is compared on the device. "
        "Algorithm, protocol, channels and transport are what NCCL's log says. Where a size ran over two nodes or more "
        "by rings with SIMPLE, every node sends at the rate of busbw, in equal parts by channel: an adapter of line "
        "rate r by which c of C channels leave the node is full at a busbw of r C / c. The least over all adapters is "
        "wire_rate; of other algorithms and protocols, of networks other than NET/IB, and where an adapter or its rate "
        "is unknown, there is none.",
    .source = "NVIDIA nccl-tests, doc/PERFORMANCE.md; NCCL 2.28 user guide and source for the lines of its log.",
    .needs = "NVIDIA GPUs, two or more over all nodes, with their driver, and libnccl.so.2 from 2.18 on",
    .typical = {120},
    .deadline = {3600},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions};

constexpr const char* kThisProgram = "/proc/self/exe";  // also for a program in sealed memory without a path

std::vector<std::string> titles_of(const std::vector<cuda::Device>& devices) {
  std::vector<std::string> titles;
  titles.reserve(devices.size());
  for (const auto& device : devices) titles.push_back(device.uuid);
  return titles;
}

std::vector<std::string> addresses_of(const std::vector<cuda::Device>& devices) {
  std::vector<std::string> addresses;
  for (const auto& device : devices) addresses.push_back(device.pci_bus_id);
  return addresses;
}

collective::LocalRanks start_ranks(const Parameters& given, const std::vector<cuda::Device>& devices,
                                   const Placement& placement) {
  const Forced forced{.algorithm = given.text("algorithm"),
                      .protocol = given.text("protocol"),
                      .nvls = given.text("nvls"),
                      .collnet = given.text("collnet"),
                      .mnnvl = given.text("mnnvl"),
                      .gpudirect = given.text("gpudirect")};
  const int here = static_cast<int>(devices.size());
  std::vector<collective::RankProgram> programs;
  for (int local = 0; local < here; ++local) {
    const RankPlace place{.rank = placement.rank * here + local,
                          .ranks = placement.world * here,
                          .gpu = devices[static_cast<std::size_t>(local)].uuid,
                          .operation = given.text("operation"),
                          .type = given.text("type")};
    programs.push_back({.path = kThisProgram,
                        .arguments = rank_arguments(std::string(kSpec.name), place),
                        .environment = rank_environment(environ, forced),
                        .title = fmt::format("rank {} ({})", place.rank, place.gpu)});
  }
  return collective::LocalRanks(programs);
}

void record_placement(Recorder& record, const collective::Fleet& fleet, const std::vector<cuda::Device>& devices) {
  record.condition("ranks", static_cast<std::int64_t>(fleet.ranks()));
  record.condition("nodes", static_cast<std::int64_t>(fleet.nodes().size()));
  record.condition("gpus_per_node", static_cast<std::int64_t>(fleet.ranks_per_node()));
  record.condition("node_names", fmt::format("{}", fmt::join(fleet.nodes(), ",")));
  for (const auto& device : devices) cuda::record_device(record, device);
}

/// The part of this node, with its GPUs at hand.
void take_part(const Parameters& given, const Placement& placement, Recorder& record, Rendezvous* group) {
  const auto sizes = parse_sizes(given.text("sizes"));
  const auto devices = cuda::chosen_devices(given);
  (void)Nccl();  // a node without NCCL is a skip of the probe, not an error of a rank
  if (placement.world == 1 && devices.size() == 1) throw Skip("one GPU: a collective needs two ranks");
  const nvml::GpuErrors errors(addresses_of(devices));
  collective::LocalRanks ranks = start_ranks(given, devices, placement);
  const auto ask = [&](std::string_view request, Seconds limit) {
    return ranks.ask(request, limit, [&] {  // a library may never report to its rank that a peer is gone
      if (group != nullptr) group->check();
    });
  };
  collective::Fleet fleet(ask, titles_of(devices), std::get<std::string>(host_facts().at("name")), group);
  record_placement(record, fleet, devices);
  if (placement.rank == 0) {
    MeasuredSizes measured{.operation = collective::operation_named(given.text("operation")),
                           .element = collective::element_named(given.text("type")),
                           .ranks_per_node = fleet.ranks_per_node()};
    collective::conduct(fleet, given, sizes, nccl_rules(record, measured), record);
    fleet.release();
  } else {
    const auto answers = fleet.follow();
    if (const auto facts = answers.find("facts"); facts != answers.end()) record_facts(record, facts->second);
  }
  ranks.finish(collective::kLeaveLimit);
  if (const auto grown = errors.growth()) record.condition(nvml::kGpuErrorsCondition.name, *grown);
}

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  if (placement.world == 1) return take_part(given, placement, record, nullptr);
  work_together(placement, {.exchange = collective::kExchangeLimit},
                [&](Rendezvous& group) { take_part(given, placement, record, &group); });
}

}  // namespace
}  // namespace assay::nccl

int main(int argc, char** argv) {
  if (const auto code = assay::nccl::rank_main(argc, argv)) return *code;
  return assay::probe_main(argc, argv, assay::nccl::kSpec, assay::nccl::measure);
}
