// host_memory_latency: time of one dependent load that no cache holds.
#include <stdexcept>

#include <fmt/format.h>

#include "probes/core/host_facts.h"
#include "probes/core/join.h"
#include "probes/core/machine_tree.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/sampling.h"
#include "probes/host/memory_placement.h"
#include "probes/host/memory_walk.h"
#include "probes/host/pinned_threads.h"

namespace assay::host {
namespace {

constexpr double kInstrument = 1e-4;  // two clock readings and a start of about 10 us in a chunk of 50 ms
constexpr Seconds kChunk = {0.05};

constexpr Parameter kOwnParameters[] = {
    parameter("size", "B", "0",
              "memory that the cycle runs through; 0 for eight times all last-level caches, at most 4 GiB"),
    parameter("cpu", "1", "0", "which physical core walks, counted from 0 among those allowed"),
    choice("huge_pages", "on", "on off", "whether transparent huge pages are asked for"),
};
constexpr auto kParameters = join(kOwnParameters, kPlacementParameters);
constexpr Metric kMetrics[] = {
    lower("latency", "s", "mean wall time of one dependent load over a chunk of about 50 ms of CPU time",
          Recorded::always, kInstrument),
    lower("local_latency", "s", "the same in memory that the walking thread chooses, where memory nodes were named",
          Recorded::if_asked, kInstrument),
};
constexpr ConditionSpec kOwnConditions[] = {
    {.name = "size_bytes", .meaning = "Memory that the cycle runs through, in B."},
    if_reported("cache_multiple", "That size over the sum of last-level caches, where the kernel reports those."),
    {.name = "steps", .meaning = "Loads in one chunk."},
    {.name = "huge_pages_requested", .meaning = "Whether transparent huge pages were asked for."},
    {.name = "huge_page_share",
     .meaning = "Share of the memory which huge pages backed; without them a load pays for a page walk too."},
    {.name = "pinned", .meaning = "Whether the thread was bound to one CPU, read back from the kernel."},
    {.name = "cpu_list", .meaning = "The CPU of the thread."},
    {.name = "off_cpu_share",
     .meaning = "Share of its working time in which the thread did not run: CPU quota, hypervisor or other processes."},
};
constexpr auto kConditions = join(kOwnConditions, kPlacementConditions);
constexpr ProbeSpec kSpec{
    .name = "host_memory_latency",
    .revision = 3,
    .sampled = true,
    .measures = "Latency of the host's memory as one core sees it.",
    .method =
        "One pinned thread walks a random Hamiltonian cycle (Sattolo's shuffle) with one pointer in every 64-byte line "
        "of memory that it touched first, eight times the sum of last-level caches, so that each load depends on the "
        "one before and neither caches nor prefetchers help. A sample is the wall time of a chunk over its loads; a "
        "chunk is as many loads as take about 50 ms of CPU time, so that a thread that is held off its CPU waits "
        "inside the samples and not between them; the next chunk continues where the last ended. Transparent huge "
        "pages are asked for by default, so that address translation hardly counts. With memory_node the memory is "
        "placed by the kernel's policy (mbind), a walk in local memory comes first, and the kernel is asked at the end "
        "on which node every page is.",
    .source =
        "McVoy & Staelin 1996, lmbench (lat_mem_rd), made random against prefetchers; Sattolo 1986; "
        "mbind(2), move_pages(2).",
    .typical = {3},
    .deadline = {180},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
    .between_runs = {.least = 0.02,
                     .source = "Fifty quiet runs of a virtual machine with two CPUs, 2026-11: 4.2 to 5.6 %, much of it "
                               "from its neighbours. 2 % is the deviation of two states 4 % apart."}};

int chosen_cpu(const Parameters& given, const Placement& placement) {
  const std::int64_t wanted = given.count("cpu");
  const auto cpus = cpus_near(given, 0, placement);
  if (wanted < 0 || static_cast<std::size_t>(wanted) >= cpus.size()) {
    throw std::runtime_error(
        fmt::format("there is no core {}: this process may use {}, counted from 0", wanted, cpus.size()));
  }
  return cpus[static_cast<std::size_t>(wanted)];
}

void measure(const Parameters& given, Recorder& record) {
  const auto cache = last_level_cache();
  const Placement placement = placement_of(given, MachineTree("/"));
  const Bytes size = affordable(placement, walk_size(given.bytes("size")), 1, {sizeof(Link)});
  const bool huge = given.text("huge_pages") == "on";
  PinnedThreads crew({chosen_cpu(given, placement)});
  const auto latencies = [&](MemoryWalk& walk, std::uint64_t steps) {
    return sample(sampling_plan(given), [&] { return walk.alone(steps).count / static_cast<double>(steps); });
  };
  if (placement.policy != Policy::first_touch) {
    const Placement beside = placement.local();
    MemoryWalk local(crew, size, huge ? Pages::huge : Pages::base, beside);
    record.measurement("local_latency", latencies(local, local.steps_for(kChunk)));
    PageCheck pages(beside);
    pages.add(local.memory().as<std::byte>(), crew.cpus().front());
    pages.record_local(record);
  }
  MemoryWalk walk(crew, size, huge ? Pages::huge : Pages::base, placement);
  const std::uint64_t steps = walk.steps_for(kChunk);
  record.measurement("latency", latencies(walk, steps));
  record.condition("size_bytes", static_cast<std::int64_t>(size.count));
  if (cache) record.condition("cache_multiple", static_cast<double>(size.count) / static_cast<double>(cache->count));
  record.condition("steps", static_cast<std::int64_t>(steps));
  record.condition("huge_pages_requested", huge);
  record.condition("huge_page_share", walk.memory().huge_share());
  record.condition("pinned", crew.pinned());
  record.condition("cpu_list", cpu_list(crew.cpus()));
  record.condition("off_cpu_share", crew.off_cpu_share());
  PageCheck pages(placement);
  pages.add(walk.memory().as<std::byte>(), crew.cpus().front());
  pages.record(record);
}

}  // namespace
}  // namespace assay::host

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::host::kSpec, assay::host::measure); }
