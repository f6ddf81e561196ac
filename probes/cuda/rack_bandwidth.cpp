// cuda_rack_bandwidth: bandwidth between the GPUs of a rack whose trays share one NVLink fabric, and which is slow.
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/collective/fleet.h"
#include "probes/collective/limits.h"
#include "probes/collective/local_ranks.h"
#include "probes/core/host_facts.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/cuda/driver.h"
#include "probes/cuda/rack_rank.h"
#include "probes/cuda/rack_run.h"
#include "probes/nvml/gpu_errors.h"

namespace assay::cuda {
namespace {

constexpr double kInstrument = 1e-3;  // batches of 10 ms, by events or the clock of the host

constexpr Parameter kParameters[] = {
    parameter("size", "B", "512MiB", "payload of one copy, a multiple of 4 KiB; each GPU holds two", "64MiB"),
    parameter("peers", "1", "5", "GPUs of each tray, or all that it has, to which each GPU sends; which ones is drawn",
              "1"),
    parameter("seed", "1", "1", "of that draw"),
    parameter("targets", "1", "8", "GPUs of each tray, or all that it has, to each of which all others write at once",
              "1"),
    choice("engine", "sm", "sm ce", "mover of the bytes: kernels on all multiprocessors, or copy engines"),
    choice("multicast", "auto", "auto 0 1",
           "the multicast object: where all GPUs have it, never, or an error without it"),
    parameter("window", "s", "100ms",
              "time that counts in each phase; half as long before and after it is worked for nothing", "20ms"),
    parameter("processes_per_gpu", "1", "1",
              "ranks of each GPU; 2 tries the sharing of memory on a single one, and measures no link"),
};
constexpr Metric of_rack(std::string_view name, std::string_view meaning, Recorded recorded = Recorded::rank_0) {
  return higher(name, "B/s", meaning, recorded, kInstrument);
}
constexpr Metric kMetrics[] = {
    of_rack("write_bandwidth", "payload from one GPU to another, written by the source, in a round of disjoint pairs"),
    of_rack("read_bandwidth", "the same, read by the target"),
    of_rack("gpu_send_bandwidth", "of a GPU, the median of both over the pairs whose source it is"),
    of_rack("gpu_receive_bandwidth", "of a GPU, the median of both over the pairs whose target it is",
            Recorded::if_occurred),
    of_rack("tray_bandwidth", "of a tray, the median of both over the pairs with one of its GPUs"),
    of_rack("rack_median", "the median of both over all pairs"),
    of_rack("rack_minimum", "the least of both over all pairs"),
    of_rack("bisection_gpu_bandwidth",
            "payload that a GPU writes to the one half of the ranks further on while all GPUs do so"),
    of_rack("bisection_bandwidth", "the sum of that over all GPUs"),
    of_rack("all_to_one_bandwidth",
            "payload that all other GPUs write to one GPU at once, each to a place of its own, summed"),
    of_rack("multicast_bandwidth", "payload that one GPU writes to all by the multicast object, counted once",
            Recorded::if_present),
    fault("mismatches",
          "words of the last copy of each phase of a pair that did not arrive; of the multicast object, at this target",
          Recorded::rank_0),
    fault("link_faults",
          "NVLinks of a GPU that are down, slower than others of the GPU, or recovered during the load, and are not a "
          "plane's, where NVML reports them",
          Recorded::if_reported),
    fault(
        "plane_faults",
        "GPUs of which the NVLink of this number is so at fault, if more than half of them and three at least; else 0",
        Recorded::if_reported),
};
constexpr ConditionSpec kConditions[] = {
    {.name = "ranks", .meaning = "GPUs that took part, counted once for each process."},
    {.name = "trays", .meaning = "Nodes that took part."},
    {.name = "gpus_per_tray", .meaning = "GPUs that took part on each node, counted once for each process."},
    {.name = "node_names", .meaning = "Names of the nodes by rank, separated by commas."},
    {.name = "processes_per_gpu", .meaning = "Ranks of each GPU; above 1 the figures are of no link."},
    {.name = "engine", .meaning = "Mover of the bytes: sm or ce."},
    {.name = "payload_bytes", .meaning = "Payload of one copy, in B."},
    rank_0("handles", "Handles by which memory was shared: fabric, or posix within one node."),
    if_occurred("handles_reason", "Why memory was not shared by fabric handles."),
    rank_0("fabric_state", "State of the GPUs' registration in the NVLink fabric, the same for all."),
    if_reported("fabric_clique", "Clique of all GPUs, checked before any load."),
    if_reported("fabric_uuid", "UUID of the cluster of all GPUs, checked before any load, if it is not all zeros."),
    rank_0("multicast", "Whether the multicast object was measured."),
    rank_0("pairs", "Ordered pairs that were drawn."),
    rank_0("rounds", "Rounds of pairs without a common GPU that they were measured in."),
    rank_0("together", "Whether in every bisection and all-to-one all GPUs were at work in all that counts."),
    rank_0("links_known", "Whether NVML reports the NVLinks of every GPU."),
    if_occurred("links_at_fault", "Numbers of a GPU's links that link_faults counts."),
    nvml::kGpuErrorsCondition,
};
constexpr ProbeSpec kSpec{
    .name = "cuda_rack_bandwidth",
    .scope = Scope::group,
    .measures =
        "Bandwidth between the GPUs of all trays of one NVLink fabric: drawn pairs, bisection, all to one, multicast; "
        "per GPU, per tray and for the rack.",
    .method =
        "One process for each GPU; ranks count tray by tray in the order of PCI bus ids. Before any load all GPUs must "
        "be registered in one cluster and one clique, else the run ends with the trays that differ. Memory is shared "
        "by fabric handles over the rendezvous and mapped by every rank; within one node by POSIX descriptors where "
        "there is no fabric. The subject of a pair is \"tray/gpu>tray/gpu\"; a pair is written by its source and read "
        "by its target, in rounds of pairs without a common GPU that run at the same time. Each phase is worked for a "
        "margin before and after the time that counts, and a sample is a batch of copies of 10 ms, at most 16. What is "
        "copied to is cleared before each phase, and what its last copy left is compared word by word, on the device "
        "with engine sm, on the host with ce. A slow GPU shows in all of its pairs, a slow tray in all of its GPUs; a "
        "slow plane of switches slows all GPUs alike, as anything common to them does, so only the states of links "
        "name it: link n of every GPU is taken to lead to plane n, which no public document states. One link of one "
        "GPU is a cable, its connectors or either port, which cannot be distinguished here. The kernels and fabric "
        "handles of this revision ran on no hardware yet.",
    .source =
        "NVIDIA nvloom 2e7b742, README: suites gpu-to-rack, bisect, one_from_all and multicast, 512 MiB, 16 copies; "
        "CUDA driver API 13.0, cuMemExportToShareableHandle and multicast objects; the uncertainty is inferred.",
    .needs = "NVIDIA driver with cuMemCreate; two GPUs in one NVLink fabric over all nodes",
    .typical = {180},
    .deadline = {1800},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions};

constexpr const char* kThisProgram = "/proc/self/exe";  // also for a program in sealed memory without a path
constexpr Seconds kExchange = {180};                    // the longest request, and as much for its answers

struct Ranks {
  collective::LocalRanks ranks;
  std::vector<std::string> titles;
};

Ranks start_ranks(const Parameters& given, const std::vector<DriverGpu>& gpus, const Placement& placement) {
  const auto each = static_cast<int>(given.count("processes_per_gpu"));
  const int here = static_cast<int>(gpus.size()) * each;
  const std::string node = std::get<std::string>(host_facts().at("name"));
  std::vector<std::string> environment, titles;
  // Kernels are loaded with the context: loading one behind a closed gate would wait for it (lanes.h).
  constexpr std::string_view kLoading = "CUDA_MODULE_LOADING=";
  for (char** one = environ; *one != nullptr; ++one) {
    if (!std::string_view(*one).starts_with(kLoading)) environment.emplace_back(*one);
  }
  environment.push_back(std::string(kLoading) + "EAGER");
  std::vector<collective::RankProgram> programs;
  for (int local = 0; local < here; ++local) {
    const RackPlace place{.rank = placement.rank * here + local,
                          .ranks = placement.world * here,
                          .gpu = gpus[static_cast<std::size_t>(local / each)].uuid,
                          .engine = given.text("engine"),
                          .size = given.bytes("size")};
    titles.push_back(place.gpu);
    programs.push_back({.path = kThisProgram,
                        .arguments = rack_rank_arguments(std::string(kSpec.name), place),
                        .environment = environment,
                        .title = fmt::format("rank {} ({} {})", place.rank, node, place.gpu)});
  }
  return {.ranks = collective::LocalRanks(programs, {.after_error = collective::kAfterError}),
          .titles = std::move(titles)};
}

void check_parameters(const Parameters& given) {
  constexpr std::uint64_t kPiece = 4096;
  const Bytes size = given.bytes("size");
  if (size.count == 0 || size.count % kPiece != 0)
    throw std::runtime_error(fmt::format("size: {} B is not a positive multiple of 4 KiB", size.count));
  for (const char* name : {"peers", "targets"}) {
    if (given.count(name) < 1) throw std::runtime_error(fmt::format("{}: 0 measures nothing; give at least 1", name));
  }
  constexpr std::int64_t kMostProcesses = 8;
  const auto each = given.count("processes_per_gpu");
  if (each < 1 || each > kMostProcesses)
    throw std::runtime_error(fmt::format("processes_per_gpu: {} is not from 1 to {}", each, kMostProcesses));
}

/// The part of this node.
void take_part(const Parameters& given, const Placement& placement, Recorder& record, Rendezvous* group) {
  check_parameters(given);
  const CudaDriver driver;
  const auto gpus = driver.gpus();
  const auto each = static_cast<std::size_t>(given.count("processes_per_gpu"));
  if (placement.world == 1 && gpus.size() * each < 2)
    throw Skip("one GPU and one process: there is no pair; hint: --processes-per-gpu 2 tries the sharing of memory");
  std::vector<std::string> addresses;
  for (const auto& gpu : gpus) addresses.push_back(gpu.pci_bus_id);
  const nvml::GpuErrors errors(addresses);
  Ranks local = start_ranks(given, gpus, placement);
  const auto ask = [&](std::string_view request, Seconds limit) {
    return local.ranks.ask(request, limit, [&] {  // ranks of this node may wait for one of another that is gone
      if (group != nullptr) group->check();
    });
  };
  collective::Fleet fleet(ask, local.titles, std::get<std::string>(host_facts().at("name")), group);
  record.condition("ranks", static_cast<std::int64_t>(fleet.ranks()));
  record.condition("trays", static_cast<std::int64_t>(fleet.nodes().size()));
  record.condition("gpus_per_tray", static_cast<std::int64_t>(fleet.ranks_per_node()));
  record.condition("node_names", fmt::format("{}", fmt::join(fleet.nodes(), ",")));
  record.condition("processes_per_gpu", given.count("processes_per_gpu"));
  record.condition("engine", given.text("engine"));
  record.condition("payload_bytes", static_cast<std::int64_t>(given.bytes("size").count));
  if (placement.rank == 0) {
    run_rack(fleet, given, record);
    fleet.release();
  } else {
    (void)fleet.follow();  // rank 0 records for all
  }
  local.ranks.finish(collective::kLeaveLimit);
  if (const auto grown = errors.growth()) record.condition(nvml::kGpuErrorsCondition.name, *grown);
}

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  if (placement.world == 1) return take_part(given, placement, record, nullptr);
  work_together(placement, {.exchange = kExchange},
                [&](Rendezvous& group) { take_part(given, placement, record, &group); });
}

}  // namespace
}  // namespace assay::cuda

int main(int argc, char** argv) {
  if (const auto code = assay::cuda::rack_rank_main(argc, argv)) return *code;
  return assay::probe_main(argc, argv, assay::cuda::kSpec, assay::cuda::measure);
}
