// host_link_run: the method of the probes of a GPU's link to its host, whatever runtime device.h is linked with.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "probes/core/parameters.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/sampling.h"
#include "probes/core/scale.h"
#include "probes/core/statistics.h"
#include "probes/cuda/device.h"
#include "probes/cuda/figures.h"
#include "probes/cuda/host_path.h"
#include "probes/cuda/lanes.h"
#include "probes/host/buffer.h"

namespace assay::cuda {

namespace host_link {

inline constexpr double kInstrument = 1e-4;          // 0.5 us of event resolution (CUDA Runtime API) in 20 ms or more
inline constexpr double kLatencyInstrument = 1e-3;   // the launch of a kernel, some us, in 8 ms or more
inline constexpr double kPageableInstrument = 5e-3;  // waiting polls every 50 us; a copy takes 10 ms or more
inline constexpr std::size_t kCopies = 16;           // as nvbandwidth 0.8 has it
inline constexpr std::uint64_t kSteps = 16384;       // of the chase in one sample: 8 ms or more
inline constexpr std::chrono::milliseconds kReading{450};  // four or five readings of a link, one every 100 ms
inline constexpr Seconds kLoadTime = {
    3};  // of copies both ways meanwhile: NVML takes its time to open and close 16 watches
inline constexpr std::size_t kLoadCopies = 800;  // a stream takes about a thousand operations
inline constexpr Bytes kGranule = {1 << 20};
inline constexpr std::size_t kHostBuffers = 3;  // each way one that is pinned, and a pageable one
inline constexpr std::array kUp = {Direction::h2d}, kDown = {Direction::d2h};
inline constexpr std::array kBoth = {Direction::h2d, Direction::d2h};

}  // namespace host_link

inline constexpr Parameter kLinkParameters[] = {
    kDeviceParameter,
    parameter("size", "B", "512MiB", "payload of one copy; 1 MiB or more", "256MiB"),
    kScheduleParameter,
};
inline constexpr Metric kLinkMetrics[] = {
    higher("h2d_bandwidth", "B/s",
           "payload bytes from pinned host memory to the GPU by a copy engine over the device time of 16 copies",
           Recorded::always, host_link::kInstrument),
    higher("d2h_bandwidth", "B/s", "the same from the GPU to the host", Recorded::always, host_link::kInstrument),
    higher("h2d_bandwidth_sm", "B/s", "the same to the GPU by its multiprocessors, which load from host memory",
           Recorded::always, host_link::kInstrument),
    higher("d2h_bandwidth_sm", "B/s", "the same to the host by the GPU's multiprocessors, which store to host memory",
           Recorded::always, host_link::kInstrument),
    higher("duplex_bandwidth", "B/s",
           "sum of both directions by copy engines at once: all payload bytes over the time until both are done; the "
           "faster direction makes more copies, so that both end at about the same time",
           Recorded::always, host_link::kInstrument),
    lower("latency", "s", "one load of pinned host memory by one GPU thread, each needing the one before",
          Recorded::always, host_link::kLatencyInstrument),
    higher("h2d_bandwidth_pageable", "B/s",
           "one copy from pageable memory in wall time, a control value, where the schedule is one_by_one",
           Recorded::if_asked, host_link::kPageableInstrument),
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
inline constexpr ConditionSpec kLinkConditions[] = {
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

namespace host_link {

/// GPUs that are measured at once, and their common sums.
template <class Watch>
struct Group {
  StreamSet lanes;
  std::vector<HostPath> paths;
  std::vector<Watch> watches;
  std::vector<double> mismatches;  ///< for each GPU
  std::vector<double> overlaps;    ///< of every sample, between the GPUs
};

template <class Watch>
std::vector<Watch> watches_for(const std::vector<Device>& devices) {
  std::vector<Watch> watches;
  watches.reserve(devices.size());
  for (const Device& device : devices) watches.emplace_back(device.pci_bus_id);
  return watches;
}

/// One lane for each direction of each GPU, GPU by GPU, with as many copies each as `copies` says in that order.
template <class Watch>
std::vector<StreamWork> copy_lanes(Group<Watch>& group, std::span<const Direction> directions, Engine engine,
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
template <class Watch>
std::vector<std::size_t> copies_of(Group<Watch>& group, std::span<const Direction> directions, Engine engine) {
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
template <class Watch>
std::vector<double> copy_once(Group<Watch>& group, std::span<const Direction> directions, Engine engine,
                              std::span<const std::size_t> copies) {
  for (HostPath& path : group.paths) {
    for (const Direction direction : directions) path.poison(direction);
  }
  const auto times = group.lanes.run(copy_lanes(group, directions, engine, copies));
  if (group.watches.empty()) {
    // From here on the GPU is awake: what a watch reads before would be clocks at rest.
    group.watches = watches_for<Watch>(group.lanes.devices());
    for (Watch& watch : group.watches) watch.start();
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

template <class Watch>
void measure_bandwidth(const SamplingPlan& plan, Group<Watch>& group, Recorder& record) {
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

template <class Watch>
void measure_latency(const SamplingPlan& plan, Group<Watch>& group, Recorder& record) {
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

template <class Watch>
void measure_pageable(const SamplingPlan& plan, Group<Watch>& group, Recorder& record) {
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
template <class Watch>
void measure_link(Group<Watch>& group, Recorder& record) {
  const std::vector<Device>& devices = group.lanes.devices();
  std::vector<std::size_t> copies(2 * devices.size(), 1);
  const auto once = group.lanes.run(copy_lanes(group, kBoth, Engine::copy_engine, copies));
  const Seconds pass = *std::ranges::max_element(once, {}, &Seconds::count);
  std::vector<Watch> watches = watches_for<Watch>(devices);
  std::ranges::fill(copies, copies_for(pass, kLoadTime, kLoadCopies));
  std::vector<StreamWork> lanes = copy_lanes(group, kBoth, Engine::copy_engine, copies);
  // Nothing waits for a gate here: when the last lane is enqueued, all links are busy.
  const auto begin = std::chrono::steady_clock::now();  // before the copies begin, which errs to the safe side
  Seconds read{};
  lanes.back().enqueue = [&, last = lanes.back().enqueue](const Stream& stream) {
    last(stream);
    for (Watch& watch : watches) watch.start();
    std::this_thread::sleep_for(kReading);
    for (Watch& watch : watches) watch.stop();
    read = {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
  };
  if (!all_ran_at(read, group.lanes.run(lanes, Begin::as_it_comes))) {
    record.note("the PCIe links were not read: copies ended before the last reading; hint: choose a larger --size");
    return;
  }
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto pcie = watches[i].pcie();
    if (pcie.generation_min) record.measurement("pcie_generation", *pcie.generation_min, devices[i].subject());
    if (pcie.width_min) record.measurement("pcie_width", *pcie.width_min, devices[i].subject());
  }
}

inline void record_path(const HostPath& path, std::size_t at_once, Recorder& record) {
  const Subject subject = path.device().subject();
  record.condition("payload_bytes", static_cast<std::int64_t>(path.size().count), subject);
  record.condition("copies_per_sample", static_cast<std::int64_t>(kCopies), subject);
  record.condition("devices_at_once", static_cast<std::int64_t>(at_once), subject);
  if (path.node()) record.condition("numa_node", std::int64_t{*path.node()}, subject);
  record.condition("numa_binding", std::string(word_of(path.placement())), subject);
  if (const auto share = path.share_on_node()) record.condition("numa_share", *share, subject);
}

template <class Watch, class RecordDevice>
void measure_group(const Parameters& given, const std::vector<Device>& devices, const RecordDevice& record_device,
                   Recorder& record) {
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
  Group<Watch> group{.lanes = StreamSet(devices, 2),
                     .paths = {},
                     .watches = {},
                     .mismatches = std::vector<double>(devices.size(), 0),
                     .overlaps = {}};
  for (std::size_t i = 0; i < devices.size(); ++i) {
    group.paths.emplace_back(devices[i], size, i);
    record_device(record, devices[i]);
    record_path(group.paths.back(), devices.size(), record);
  }
  const SamplingPlan plan = sampling_plan(given);
  measure_bandwidth(plan, group, record);
  measure_latency(plan, group, record);
  if (devices.size() == 1 || given.text("schedule") == "one_by_one") measure_pageable(plan, group, record);
  measure_link(group, record);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    Watch& watch = group.watches[i];
    watch.stop();
    watch.record(record, devices[i].subject());
    if (const auto replays = watch.pcie().replays) record.measurement("pcie_replays", *replays, devices[i].subject());
    record.measurement("mismatches", group.mismatches[i], devices[i].subject());
    if (given.text("schedule") == "together") record.condition("overlap", median(group.overlaps), devices[i].subject());
  }
}

}  // namespace host_link

/// The whole measurement. `Watch` watches a GPU at a PCI address while it is loaded; record_device(record, device)
/// records its identity.
template <class Watch, class RecordDevice>
void measure_host_link(const Parameters& given, const RecordDevice& record_device, Recorder& record) {
  load_kernels_eagerly();
  for (const auto& group : schedule_groups(chosen_devices(given), given.text("schedule")))
    host_link::measure_group<Watch>(given, group, record_device, record);
}

}  // namespace assay::cuda
