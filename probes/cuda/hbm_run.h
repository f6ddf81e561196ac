// hbm_run: the method of the probes of a GPU's memory, whatever runtime device.h is linked with: parameters, metrics,
// kernels in turn, the walk.
#pragma once

#include <algorithm>
#include <chrono>
#include <stdexcept>
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
#include "probes/cuda/hbm_arrays.h"
#include "probes/cuda/hbm_walk.h"
#include "probes/cuda/lanes.h"

namespace assay::cuda {

namespace hbm {

inline constexpr double kInstrument = 1e-4;       // 0.5 us of event resolution (CUDA Runtime API) in 5 ms or more
inline constexpr double kSliceInstrument = 1e-2;  // events of about 2 us around reads of 0.2 ms or more
inline constexpr std::size_t kPasses = 10;  // a sample: 10 ms and more with fallback parameters, half that at 8 TB/s
inline constexpr std::size_t kSweeps = 10;  // samples of each slice; ten give an interval for the median
inline constexpr std::size_t kBatch =
    64;  // slices behind one gate: two operations each, a stream takes about a thousand
inline constexpr std::size_t kArrays = 3;
inline constexpr std::uint64_t kCacheMultiple = 4;  // STREAM's rule
inline constexpr Bytes kGranule = {1 << 20};
inline constexpr std::int64_t kMostPasses = 10'000;  // the deadline ends it before

}  // namespace hbm

inline constexpr Parameter kHbmParameters[] = {
    kDeviceParameter,
    parameter("size", "B", "4GiB", "size of each of the three arrays, at least four times the second-level cache"),
    parameter("slice", "B", "1GiB", "size of the slices in which all free memory is walked; 0 for no walk"),
    parameter("passes", "1", "1",
              "passes of the walk with the patterns of memory testers, at most 10000; 0: only the payload and "
              "its complement",
              "0"),
    spent("load_least", "0s", "each kernel is measured for this long at least, despite max_samples and time_limit",
          "0s"),
    kScheduleParameter,
};
inline constexpr Metric kHbmMetrics[] = {
    higher("read_bandwidth", "B/s", "sum of a: 8 bytes an element", Recorded::always, hbm::kInstrument),
    higher("write_bandwidth", "B/s", "a = value: 8 bytes an element", Recorded::always, hbm::kInstrument),
    higher("copy_bandwidth", "B/s", "c = a: 2 x 8 bytes an element", Recorded::always, hbm::kInstrument),
    higher("scale_bandwidth", "B/s", "b = s c: 2 x 8 bytes an element", Recorded::always, hbm::kInstrument),
    higher("add_bandwidth", "B/s", "c = a + b: 3 x 8 bytes an element", Recorded::always, hbm::kInstrument),
    higher("triad_bandwidth", "B/s", "a = b + s c: 3 x 8 bytes an element", Recorded::always, hbm::kInstrument),
    higher("dot_bandwidth", "B/s", "sum of a b: 2 x 8 bytes an element", Recorded::always, hbm::kInstrument),
    higher("slice_bandwidth", "B/s", "one read of one slice of the memory, at its number, where the walk has slices",
           Recorded::if_asked, hbm::kSliceInstrument),
    higher("slice_worst", "1",
           "median of the slowest slice over the median of all slices' medians, where the walk has slices",
           Recorded::if_asked, hbm::kSliceInstrument),
    fault("mismatches",
          "elements of arrays and words of slices that are not what they must be, and sums that are wrong"),
};
inline constexpr ConditionSpec kHbmConditions[] = {
    {.name = "array_bytes", .meaning = "Size of each array, in B."},
    if_reported("cache_multiple", "Size of each array over the second-level cache, where the runtime reports that."),
    {.name = "passes_per_sample", .meaning = "Passes of a kernel that one sample spans."},
    {.name = "devices_at_once", .meaning = "GPUs that were measured at the same time."},
    if_asked("overlap",
             "Share of a sample's time in which all GPUs of it were busy, median over the samples, where the schedule "
             "is together."),
    {.name = "slices", .meaning = "Slices that the walk found room for."},
    if_asked("walk_patterns",
             "Contents that were written to every word of every slice and compared, where the walk has slices; two: "
             "every bit is then written as 0 and as 1."),
    if_asked("walk_s",
             "Time of the walk from content to content, without reads for slice_bandwidth, in s, if it has slices."),
    {.name = "slice_coverage", .meaning = "Share of the GPU's memory that lay in slices."},
    if_asked("slice_left_bytes", "Free memory that no slice covered, in B, where the walk has slices."),
};

namespace hbm {

/// GPUs that are measured at once, and their common sums.
template <class Watch>
struct HbmGroup {
  StreamSet lanes;
  std::vector<Watch> watches;
  std::vector<double> mismatches;  ///< for each GPU
  std::vector<double> overlaps;    ///< of every sample
};

inline Bytes size_of_arrays(const Device& device, Bytes wanted, Recorder& record) {
  use(device);
  const Bytes size = array_size(wanted, kArrays, device.memory, free_memory(), kGranule);
  const auto people = [](Bytes bytes) { return for_people(static_cast<double>(bytes.count), "B"); };
  if (size < wanted) {
    record.note(fmt::format("{}: each array is {}, not {}: three of them may take 80 % of memory", device.uuid,
                            people(size), people(wanted)));
  }
  if (size.count < kCacheMultiple * device.l2.count || size.count == 0) {
    throw std::runtime_error(
        fmt::format("size: {} on {} is less than four times its second-level cache of {}; hint: free the GPU, or "
                    "choose a larger size",
                    people(size), device.uuid, people(device.l2)));
  }
  return size;
}

/// Every kernel in turn: fill, sample, compare.
template <class Watch>
void measure_kernels(const Parameters& given, HbmGroup<Watch>& group, Recorder& record) {
  const std::vector<Device>& devices = group.lanes.devices();
  std::vector<HbmArrays> arrays;
  for (const Device& device : devices) {
    const Bytes size = size_of_arrays(device, given.bytes("size"), record);
    arrays.emplace_back(device, size);
    record.condition("array_bytes", static_cast<std::int64_t>(size.count), device.subject());
    if (device.l2.count > 0)
      record.condition("cache_multiple", static_cast<double>(size.count) / static_cast<double>(device.l2.count),
                       device.subject());
  }
  const auto run = [&](HbmKernel kernel) {
    return group.lanes.run_on_each(
        [&](std::size_t i, const Stream& stream) { arrays[i].enqueue(kernel, kPasses, stream); });
  };
  SamplingPlan plan = sampling_plan(given);
  plan.load_least = given.seconds("load_least");
  for (const HbmKernel kernel : kHbmKernels) {
    for (HbmArrays& one : arrays) one.prepare(kernel);
    const auto sampled = sample_rounds(plan, [&] {
      const auto times = run(kernel);
      group.overlaps.push_back(overlap_share(times));
      std::vector<double> rates;
      for (std::size_t i = 0; i < arrays.size(); ++i) {
        group.mismatches[i] += static_cast<double>(arrays[i].wrong_sum(kernel, kPasses));
        rates.push_back(arrays[i].bytes(kernel, kPasses) / times[i].count);
      }
      if (group.watches.empty()) {  // from here on the GPU is awake: clocks at rest would be read before
        for (const Device& device : devices) group.watches.emplace_back(device.pci_bus_id).start();
      }
      return rates;
    });
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      group.mismatches[i] += static_cast<double>(arrays[i].mismatches(kernel));
      record.measurement(kHbmMetrics[static_cast<std::size_t>(kernel)].name, sampled[i], devices[i].subject());
    }
  }
  for (Watch& watch : group.watches) watch.end_load();  // errors are counted through the walk
}

inline void record_walk(const HbmWalk& walk, std::uint64_t contents, Seconds walked, const Device& device,
                        Recorder& record) {
  record.condition("slices", static_cast<std::int64_t>(walk.slices()), device.subject());
  record.condition("slice_coverage", walk.coverage(), device.subject());
  if (walk.slices() == 0) return;
  record.condition("walk_patterns", static_cast<std::int64_t>(contents), device.subject());
  record.condition("walk_s", walked.count, device.subject());
  walk.record_checks(record);
  record.condition("slice_left_bytes", static_cast<std::int64_t>(walk.left().count), device.subject());
  std::vector<Sampling> slices;
  for (std::size_t i = 0; i < walk.slices(); ++i) {
    slices.push_back({.samples = walk.samples()[i], .warmup = {}, .stopped = "fixed"});
    record.measurement("slice_bandwidth", slices.back(), device.subject(), {{"slice", static_cast<std::int64_t>(i)}});
  }
  if (const auto worst = slice_worst(slices)) record.measurement("slice_worst", *worst, device.subject());
}

template <class Watch>
void measure_slices(const Parameters& given, HbmGroup<Watch>& group, Recorder& record) {
  const std::vector<Device>& devices = group.lanes.devices();
  std::vector<HbmWalk> walks;
  std::size_t most = 0;
  for (const Device& device : devices) {
    walks.emplace_back(device, given.bytes("slice"));
    most = std::max(most, walks.back().slices());
  }
  for (std::size_t sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::size_t first = 0; first < most; first += kBatch) {
      (void)group.lanes.run_on_each([&](std::size_t i, const Stream& stream) {
        walks[i].enqueue(first, first + kBatch, stream);
      });  // the time of a whole batch says nothing; collect() has that of each slice
      for (HbmWalk& walk : walks) walk.collect(first, first + kBatch);
    }
  }
  const std::uint64_t contents = walk_contents(static_cast<std::uint64_t>(given.count("passes")));
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t number = 1; number <= contents; ++number) {
    for (HbmWalk& walk : walks) walk.enqueue_content(number, contents);
    for (HbmWalk& walk : walks) walk.finish_content();
  }
  const Seconds walked = {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
  for (std::size_t i = 0; i < walks.size(); ++i) {
    use(devices[i]);
    group.mismatches[i] += static_cast<double>(walks[i].mismatches() + walks[i].wrong_sums(kSweeps));
    record_walk(walks[i], contents, walked, devices[i], record);
  }
}

template <class Watch, class RecordDevice>
void measure_group(const Parameters& given, const std::vector<Device>& devices, const RecordDevice& record_device,
                   Recorder& record) {
  for (const Device& device : devices) {
    record_device(record, device);
    record.condition("devices_at_once", static_cast<std::int64_t>(devices.size()), device.subject());
    record.condition("passes_per_sample", static_cast<std::int64_t>(kPasses), device.subject());
  }
  HbmGroup<Watch> group{.lanes = StreamSet(devices, 1),
                        .watches = {},
                        .mismatches = std::vector<double>(devices.size(), 0),
                        .overlaps = {}};
  measure_kernels(given, group, record);
  measure_slices(given, group, record);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    group.watches[i].stop();
    group.watches[i].record(record, devices[i].subject());
    record.measurement("mismatches", group.mismatches[i], devices[i].subject());
    if (given.text("schedule") == "together") record.condition("overlap", median(group.overlaps), devices[i].subject());
  }
}

}  // namespace hbm

/// The whole measurement. `Watch` watches a GPU at a PCI address while it is loaded; record_device(record, device)
/// records its identity.
template <class Watch, class RecordDevice>
void measure_hbm(const Parameters& given, const RecordDevice& record_device, Recorder& record) {
  if (const Bytes slice = given.bytes("slice"); slice.count % hbm::kGranule.count != 0) {
    throw std::runtime_error(fmt::format("slice: {} B is not a multiple of 1 MiB", slice.count));
  }
  if (given.count("passes") > hbm::kMostPasses)
    throw std::runtime_error(
        fmt::format("passes: {} is over {}; a pass takes seconds", given.count("passes"), hbm::kMostPasses));
  load_kernels_eagerly();
  for (const auto& group : schedule_groups(chosen_devices(given), given.text("schedule")))
    hbm::measure_group<Watch>(given, group, record_device, record);
}

}  // namespace assay::cuda
