// cuda_host_link: bandwidth and latency between host memory and a GPU, by copy engine and by multiprocessors.
#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/sampling.h"
#include "probes/core/scale.h"
#include "probes/core/statistics.h"
#include "probes/cuda/device.h"
#include "probes/cuda/device_record.h"
#include "probes/cuda/figures.h"
#include "probes/cuda/host_path.h"
#include "probes/cuda/lanes.h"
#include "probes/host/buffer.h"
#include "probes/nvml/gpu_watch.h"

namespace assay::cuda {
namespace {

constexpr double kInstrument = 1e-4;                // 0.5 us of event resolution (CUDA Runtime API) in 20 ms or more
constexpr double kLatencyInstrument = 1e-3;         // the launch of a kernel, some us, in 8 ms or more
constexpr double kPageableInstrument = 5e-3;        // waiting polls every 50 us; a copy takes 10 ms or more
constexpr std::size_t kCopies = 16;                 // as nvbandwidth 0.8 has it
constexpr std::uint64_t kSteps = 16384;             // of the chase in one sample: 8 ms or more
constexpr std::chrono::milliseconds kReading{450};  // four or five readings of a link, one every 100 ms
constexpr Seconds kLoadTime = {3};  // of copies both ways meanwhile: NVML takes its time to open and close 16 watches
constexpr std::size_t kLoadCopies = 800;  // a stream takes about a thousand operations
constexpr Bytes kGranule = {1 << 20};
constexpr std::size_t kHostBuffers = 3;  // each way one that is pinned, and a pageable one
constexpr std::array kUp = {Direction::h2d}, kDown = {Direction::d2h};
constexpr std::array kBoth = {Direction::h2d, Direction::d2h};

constexpr Parameter kParameters[] = {
    kDeviceParameter,
    {.name = "size",
     .unit = "B",
     .fallback = "512MiB",
     .quick = "256MiB",
     .meaning = "payload of one copy; 1 MiB or more"},
    kScheduleParameter,
};
constexpr Metric kMetrics[] = {
    higher("h2d_bandwidth", "B/s",
           "payload bytes from pinned host memory to the GPU by a copy engine over the device time of 16 copies",
           Recorded::always, kInstrument),
    higher("d2h_bandwidth", "B/s", "the same from the GPU to the host", Recorded::always, kInstrument),
    higher("h2d_bandwidth_sm", "B/s", "the same to the GPU by its multiprocessors, which load from host memory",
           Recorded::always, kInstrument),
    higher("d2h_bandwidth_sm", "B/s", "the same to the host by the GPU's multiprocessors, which store to host memory",
           Recorded::always, kInstrument),
    higher("duplex_bandwidth", "B/s",
           "sum of both directions by copy engines at once: all payload bytes over the time until both are done; the "
           "faster direction makes more copies, so that both end at about the same time",
           Recorded::always, kInstrument),
    lower("latency", "s", "one load of pinned host memory by one GPU thread, each needing the one before",
          Recorded::always, kLatencyInstrument),
    higher("h2d_bandwidth_pageable", "B/s",
           "one copy from pageable memory in wall time, a control value, where the schedule is one_by_one",
           Recorded::if_asked, kPageableInstrument),
    higher("pcie_generation", "1",
           "lowest PCIe generation of the link while copies ran both ways, where NVML reports it and the copies lasted",
           Recorded::if_reported),
    higher("pcie_width", "1",
           "fewest PCIe lanes of the link while copies ran both ways, where NVML reports them and the copies lasted",
           Recorded::if_reported),
    lower("pcie_replays", "1", "packets that the link repeated while measuring, where NVML counts them",
          Recorded::if_reported),
    fault("mismatches", "words of the last copy of each sample that did not arrive, and chases that ended elsewhere"),
};
constexpr ConditionSpec kOwnConditions[] = {
    {.name = "payload_bytes", .meaning = "Payload of one copy, in B."},
    {.name = "copies_per_sample",
     .meaning = "Copies in one direction that one sample spans; the faster of two makes more."},
    {.name = "devices_at_once", .meaning = "GPUs that were measured at the same time."},
    if_asked("overlap",
             "Share of a sample's time in which all GPUs of it were busy, median over the samples, where the schedule "
             "is together."),
    if_reported("numa_node", "NUMA node of the GPU, where the kernel knows it."),
    {.name = "numa_binding", .meaning = "How the pinned memory came to that node: mbind, first_touch, or none."},
    if_reported("numa_share", "Share of the pinned pages that lie on that node, where the kernel reports it."),
};
constexpr auto kConditions = join_conditions(kOwnConditions, kDeviceConditions, nvml::kGpuWatchConditions);
constexpr ProbeSpec kSpec{
    .name = "cuda_host_link",
    .revision = 3,
    .sampled = true,
    .measures = "Bandwidth and latency between host memory and each GPU, one by one or all at once.",
    .method =
        "Pinned host buffers lie on the GPU's NUMA node. A sample is 16 copies of the payload, enqueued behind a gate, "
        "so that all GPUs and directions of it start at once, and timed by events on the device. Each bandwidth counts "
        "payload bytes; one direction is one metric, and duplex_bandwidth alone is a sum of two. What is copied to is "
        "overwritten before each sample, and what its last copy left is compared word by word. The latency is that of "
        "a random cycle of pointers, one in each 128 B of 16 MiB, past the GPU's caches. PCIe generation and width are "
        "read while copies run both ways, because a link at rest may lower both, and left out where copies ended "
        "before the last reading; the watch's conditions span the whole measurement.",
    .source =
        "NVIDIA nvbandwidth 0.8, README and testcases, for size, number of copies and gate; it times one direction of "
        "two where duplex_bandwidth adds both; the uncertainties are inferred from the resolution of CUDA events.",
    .needs = "NVIDIA driver for CUDA 13",
    .typical = {60},
    .deadline = {1800},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions};

/// GPUs that are measured at once, and their common sums.
struct Group {
  StreamSet lanes;
  std::vector<HostPath> paths;
  std::vector<nvml::GpuWatch> watches;
  std::vector<double> mismatches;  ///< for each GPU
  std::vector<double> overlaps;    ///< of every sample, between the GPUs
};

std::vector<nvml::GpuWatch> watches_for(const std::vector<Device>& devices) {
  std::vector<nvml::GpuWatch> watches;
  watches.reserve(devices.size());
  for (const Device& device : devices) watches.emplace_back(device.pci_bus_id);
  return watches;
}

/// One lane for each direction of each GPU, GPU by GPU, with as many copies each as `copies` says in that order.
std::vector<StreamWork> copy_lanes(Group& group, std::span<const Direction> directions, Engine engine,
                                   std::span<const std::size_t> copies) {
  std::vector<StreamWork> lanes;
  for (std::size_t i = 0; i < group.paths.size(); ++i) {
    for (const Direction direction : directions) {
      HostPath* const path = &group.paths[i];
      const std::size_t count = copies[lanes.size()];
      lanes.push_back(
          {.device = i, .enqueue = [=](const Stream& stream) { path->enqueue(direction, engine, count, stream); }});
    }
  }
  return lanes;
}

/// kCopies for each lane of one direction; of two as many as end together, by one round of kCopies each.
std::vector<std::size_t> copies_of(Group& group, std::span<const Direction> directions, Engine engine) {
  std::vector<std::size_t> copies(group.paths.size() * directions.size(), kCopies);
  if (directions.size() == 1) return copies;
  const auto times = group.lanes.run(copy_lanes(group, directions, engine, copies));
  for (std::size_t first = 0; first < copies.size(); first += directions.size()) {
    const auto own = copies_that_end_together(kCopies, std::span(times).subspan(first, directions.size()));
    std::ranges::copy(own, copies.begin() + static_cast<std::ptrdiff_t>(first));
  }
  return copies;
}

/// One sample of every GPU of the group: payload bytes of all `directions` over the time until the last is done.
std::vector<double> copy_once(Group& group, std::span<const Direction> directions, Engine engine,
                              std::span<const std::size_t> copies) {
  for (HostPath& path : group.paths) {
    for (const Direction direction : directions) path.poison(direction);
  }
  const auto times = group.lanes.run(copy_lanes(group, directions, engine, copies));
  if (group.watches.empty()) {
    // From here on the GPU is awake: what a watch reads before would be clocks at rest.
    group.watches = watches_for(group.lanes.devices());
    for (nvml::GpuWatch& watch : group.watches) watch.start();
  }
  std::vector<double> rates;
  std::vector<Seconds> of_gpus;
  for (std::size_t i = 0; i < group.paths.size(); ++i) {
    const std::size_t first = i * directions.size();
    std::size_t made = 0;
    Seconds slowest{};
    for (std::size_t lane = first; lane < first + directions.size(); ++lane) {
      made += copies[lane];
      slowest = std::max(slowest, times[lane], [](Seconds a, Seconds b) { return a.count < b.count; });
    }
    of_gpus.push_back(slowest);
    rates.push_back((Bytes{group.paths[i].size().count * made} / slowest).count);
    for (const Direction direction : directions)
      group.mismatches[i] += static_cast<double>(group.paths[i].mismatches(direction));
  }
  group.overlaps.push_back(overlap_share(of_gpus));
  return rates;
}

void measure_bandwidth(const SamplingPlan& plan, Group& group, Recorder& record) {
  const auto take = [&](const char* metric, std::span<const Direction> directions, Engine engine) {
    const auto copies = copies_of(group, directions, engine);
    const auto sampled = sample_rounds(plan, [&] { return copy_once(group, directions, engine, copies); });
    for (std::size_t i = 0; i < sampled.size(); ++i)
      record.measurement(metric, sampled[i], group.paths[i].device().subject());
  };
  take("h2d_bandwidth", kUp, Engine::copy_engine);
  take("d2h_bandwidth", kDown, Engine::copy_engine);
  take("h2d_bandwidth_sm", kUp, Engine::multiprocessors);
  take("d2h_bandwidth_sm", kDown, Engine::multiprocessors);
  take("duplex_bandwidth", kBoth, Engine::copy_engine);
}

void measure_latency(const SamplingPlan& plan, Group& group, Recorder& record) {
  std::uint64_t steps = 0;
  const auto sampled = sample_rounds(plan, [&] {
    const auto times = group.lanes.run_on_each(
        [&](std::size_t i, const Stream& stream) { group.paths[i].enqueue_latency(kSteps, stream); });
    steps += kSteps;
    std::vector<double> latencies;
    latencies.reserve(times.size());
    for (const Seconds time : times) latencies.push_back(time.count / static_cast<double>(kSteps));
    return latencies;
  });
  for (std::size_t i = 0; i < sampled.size(); ++i) {
    record.measurement("latency", sampled[i], group.paths[i].device().subject());
    group.mismatches[i] += static_cast<double>(group.paths[i].lost_chases(steps));
  }
}

void measure_pageable(const SamplingPlan& plan, Group& group, Recorder& record) {
  for (std::size_t i = 0; i < group.paths.size(); ++i) {
    HostPath& path = group.paths[i];
    path.poison(Direction::h2d);
    const Sampling sampled = sample(plan, [&] { return (path.size() / path.pageable_copy()).count; });
    record.measurement("h2d_bandwidth_pageable", sampled, path.device().subject());
    group.mismatches[i] += static_cast<double>(path.mismatches(Direction::h2d));
  }
}

/// Reads generation and width of every link while copies run both ways on all of them. Where the copies ended before
/// the last reading nothing is recorded: it may be of a link at rest.
void measure_link(Group& group, Recorder& record) {
  const std::vector<Device>& devices = group.lanes.devices();
  std::vector<std::size_t> copies(2 * devices.size(), 1);
  const auto once = group.lanes.run(copy_lanes(group, kBoth, Engine::copy_engine, copies));
  const Seconds pass = *std::ranges::max_element(once, {}, &Seconds::count);
  std::vector<nvml::GpuWatch> watches = watches_for(devices);
  std::ranges::fill(copies, copies_for(pass, kLoadTime, kLoadCopies));
  std::vector<StreamWork> lanes = copy_lanes(group, kBoth, Engine::copy_engine, copies);
  // Nothing waits for a gate here: when the last lane is enqueued, all links are busy.
  const auto begin = std::chrono::steady_clock::now();  // before the copies begin, which errs to the safe side
  Seconds read{};
  lanes.back().enqueue = [&, last = lanes.back().enqueue](const Stream& stream) {
    last(stream);
    for (nvml::GpuWatch& watch : watches) watch.start();
    std::this_thread::sleep_for(kReading);
    for (nvml::GpuWatch& watch : watches) watch.stop();
    read = {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
  };
  if (!all_ran_at(read, group.lanes.run(lanes, Begin::as_it_comes))) {
    record.note("the PCIe links were not read: copies ended before the last reading; hint: choose a larger --size");
    return;
  }
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (const auto generation = watches[i].pcie_generation_min())
      record.measurement("pcie_generation", *generation, devices[i].subject());
    if (const auto width = watches[i].pcie_width_min()) record.measurement("pcie_width", *width, devices[i].subject());
  }
}

void record_path(const HostPath& path, std::size_t at_once, Recorder& record) {
  const Subject subject = path.device().subject();
  record_device(record, path.device());
  record.condition("payload_bytes", static_cast<std::int64_t>(path.size().count), subject);
  record.condition("copies_per_sample", static_cast<std::int64_t>(kCopies), subject);
  record.condition("devices_at_once", static_cast<std::int64_t>(at_once), subject);
  if (path.node()) record.condition("numa_node", std::int64_t{*path.node()}, subject);
  record.condition("numa_binding", std::string(to_string(path.placement())), subject);
  if (const auto share = path.share_on_node()) record.condition("numa_share", *share, subject);
}

void measure_group(const Parameters& given, const std::vector<Device>& devices, Recorder& record) {
  const Bytes wanted = given.bytes("size");
  const Bytes size = host::affordable(wanted, kHostBuffers * devices.size(), kGranule);
  if (size.count == 0)
    throw std::runtime_error(
        fmt::format("size: {} B is less than 1 MiB, or more than this machine's memory holds", wanted.count));
  if (size < wanted) {
    record.note(fmt::format("the payload is {}, not {}: the buffers may take half of the host's memory",
                            for_people(static_cast<double>(size.count), "B"),
                            for_people(static_cast<double>(wanted.count), "B")));
  }
  Group group{.lanes = StreamSet(devices, 2),
              .paths = {},
              .watches = {},
              .mismatches = std::vector<double>(devices.size(), 0),
              .overlaps = {}};
  for (std::size_t i = 0; i < devices.size(); ++i) {
    group.paths.emplace_back(devices[i], size, i);
    record_path(group.paths.back(), devices.size(), record);
  }
  const SamplingPlan plan = sampling_plan(given);
  measure_bandwidth(plan, group, record);
  measure_latency(plan, group, record);
  if (devices.size() == 1 || given.text("schedule") == "one_by_one") measure_pageable(plan, group, record);
  measure_link(group, record);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    nvml::GpuWatch& watch = group.watches[i];
    watch.stop();
    watch.record(record, devices[i].subject());
    if (const auto replays = watch.pcie_replays()) record.measurement("pcie_replays", *replays, devices[i].subject());
    record.measurement("mismatches", group.mismatches[i], devices[i].subject());
    if (given.text("schedule") == "together") record.condition("overlap", median(group.overlaps), devices[i].subject());
  }
}

void measure(const Parameters& given, Recorder& record) {
  load_kernels_eagerly();
  for (const auto& group : schedule_groups(chosen_devices(given), given.text("schedule")))
    measure_group(given, group, record);
}

}  // namespace
}  // namespace assay::cuda

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::cuda::kSpec, assay::cuda::measure); }
