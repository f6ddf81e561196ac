// peer_run: the method of the probes of links between GPUs, whatever runtime device.h is linked with: parameters,
// metrics, every pair alone, one to all, all at once.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "probes/core/parameters.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/sampling.h"
#include "probes/core/statistics.h"
#include "probes/cuda/device.h"
#include "probes/cuda/figures.h"
#include "probes/cuda/lanes.h"
#include "probes/cuda/peer_fabric.h"

namespace assay::cuda {

namespace peer {

inline constexpr double kInstrument = 2e-4;          // 0.5 us of event resolution (CUDA Runtime API) in 5 ms or more
inline constexpr double kTogetherInstrument = 1e-3;  // the gate opens for several GPUs within some us
inline constexpr double kLatencyInstrument = 1e-3;   // the launch of a kernel, some us, in 5 ms or more
inline constexpr std::size_t kCopiesMax = 16;        // as nvbandwidth 0.8 has it
inline constexpr Seconds kSampleTime = {0.05};       // enough on a slow path, where 16 copies would take half a second
inline constexpr std::uint64_t kSteps = 16384;       // of the chase in one sample
inline constexpr Bytes kGranule = {1 << 20};

}  // namespace peer

inline constexpr Parameter kPeerParameters[] = {
    parameter("size", "B", "512MiB", "payload of one copy, a multiple of 1 MiB; each GPU holds one for every GPU",
              "128MiB"),
};
inline constexpr Metric kPeerMetrics[] = {
    higher("write_bandwidth", "B/s",
           "payload bytes from source to target by a copy engine of the source, over the device time of the copies",
           Recorded::always, peer::kInstrument),
    higher("read_bandwidth", "B/s", "the same by a copy engine of the target", Recorded::always, peer::kInstrument),
    higher("write_bandwidth_sm", "B/s",
           "the same by multiprocessors of the source, which store to the target, where there is peer access",
           Recorded::if_present, peer::kInstrument),
    higher("read_bandwidth_sm", "B/s",
           "the same by multiprocessors of the target, which load from the source, where there is peer access",
           Recorded::if_present, peer::kInstrument),
    higher("duplex_bandwidth", "B/s",
           "sum of both directions of a pair at once, each written by its source: all payload bytes over the time "
           "until both are done",
           Recorded::always, peer::kTogetherInstrument),
    lower("latency", "s",
          "one load of the source's memory by one thread of the target, each needing the one before, where there is "
          "peer access",
          Recorded::if_present, peer::kLatencyInstrument),
    fault("mismatches",
          "words of the last copy of each sample of a pair that did not arrive, and chases that ended elsewhere"),
    higher("one_to_all_bandwidth", "B/s",
           "sum of what one GPU writes to all others at once by copy engines, over the time until all are done",
           Recorded::always, peer::kInstrument),
    higher("all_pairs_bandwidth", "B/s", "the same of each GPU while all GPUs do so", Recorded::always,
           peer::kTogetherInstrument),
};
inline constexpr ConditionSpec kPeerWayConditions[] = {
    {.name = "payload_bytes", .meaning = "Payload of one copy, in B."},
    {.name = "peer_access",
     .meaning = "How source and target of a pair reach each other's memory: nvlink, xgmi, pcie, or none."},
    {.name = "path", .meaning = "Way of a pair's copies: direct, or host, through memory of the host."},
};
inline constexpr ConditionSpec kPeerSampleConditions[] = {
    {.name = "copies_per_sample",
     .meaning = "Copies that one sample of a pair spans: as many as take 50 ms, at most 16."},
    {.name = "overlap",
     .meaning = "Share of a sample's time in which all pairs copied, median over the samples of all_pairs_bandwidth."},
};

namespace peer {

/// The pairs, what runs on them, and what adds up meanwhile.
template <class Watch>
struct Bench {
  PeerFabric fabric;
  StreamSet lanes;
  std::vector<Watch> watches;
  std::vector<DevicePair> pairs;
  std::vector<double> mismatches;   ///< for each pair
  std::vector<std::size_t> copies;  ///< a sample of each pair
  SamplingPlan plan;
};

inline Subject subject_of(const PeerFabric& fabric, DevicePair pair) {
  return {.kind = "pair", .id = fabric.devices()[pair.source].uuid + ">" + fabric.devices()[pair.target].uuid};
}

/// A copy of some pairs: who initiates, by which engine.
struct Movement {
  Initiator initiator = Initiator::source;
  bool by_kernels = false;
};

/// Runs the pairs at `places` at once and compares what arrived. Returns each pair's time.
template <class Watch>
std::vector<Seconds> transfer(Bench<Watch>& bench, const std::vector<std::size_t>& places, std::size_t copies,
                              Movement movement) {
  std::vector<StreamWork> lanes;
  bool direct = true;
  for (const std::size_t place : places) {
    const DevicePair pair = bench.pairs[place];
    bench.fabric.poison(pair);
    direct = direct && bench.fabric.direct(pair);
    lanes.push_back({.device = movement.initiator == Initiator::source ? pair.source : pair.target,
                     .enqueue = [&bench, pair, copies, movement](const Stream& stream) {
                       if (movement.by_kernels) return bench.fabric.enqueue_kernels(pair, copies, stream);
                       bench.fabric.enqueue_copies(pair, copies, stream);
                     }});
  }
  // Through the host the driver may need this thread while it copies; behind a gate that would wait for ever.
  auto times = bench.lanes.run(lanes, direct ? Begin::gated : Begin::as_it_comes);
  for (const std::size_t place : places)
    bench.mismatches[place] += static_cast<double>(bench.fabric.mismatches(bench.pairs[place]));
  return times;
}

/// B/s of `copies` payloads on each of `times.size()` lanes until the last is done.
template <class Watch>
double rate(const Bench<Watch>& bench, std::size_t copies, std::span<const Seconds> times) {
  const Seconds slowest = *std::ranges::max_element(times, {}, &Seconds::count);
  return (Bytes{bench.fabric.size().count * copies * times.size()} / slowest).count;
}

template <class Watch>
std::vector<std::size_t> all_places(const Bench<Watch>& bench) {
  std::vector<std::size_t> places(bench.pairs.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  return places;
}

template <class Watch>
std::size_t place_of(const Bench<Watch>& bench, DevicePair pair) {
  return static_cast<std::size_t>(std::ranges::find(bench.pairs, pair) - bench.pairs.begin());
}

template <class Watch>
void measure_latency(Bench<Watch>& bench, std::size_t place, Recorder& record) {
  const DevicePair pair = bench.pairs[place];
  bench.fabric.restart_chase(pair);
  std::uint64_t steps = 0;
  const Sampling latency = sample(bench.plan, [&] {
    const StreamWork lane{.device = pair.target, .enqueue = [&](const Stream& stream) {
                            bench.fabric.enqueue_chase_steps(pair, kSteps, stream);
                          }};
    steps += kSteps;
    return bench.lanes.run(std::span(&lane, 1)).front().count / static_cast<double>(kSteps);
  });
  bench.mismatches[place] += static_cast<double>(bench.fabric.lost_chases(pair, steps));
  record.measurement("latency", latency, subject_of(bench.fabric, pair));
}

template <class Watch>
void measure_pair(Bench<Watch>& bench, std::size_t place, Recorder& record) {
  const DevicePair pair = bench.pairs[place];
  const Subject subject = subject_of(bench.fabric, pair);
  const Seconds once = transfer(bench, {place}, 1, {}).front();
  const std::size_t copies = bench.copies[place] = copies_for(once, kSampleTime, kCopiesMax);
  const auto take = [&](const char* metric, const std::vector<std::size_t>& places, Movement movement) {
    record.measurement(
        metric, sample(bench.plan, [&] { return rate(bench, copies, transfer(bench, places, copies, movement)); }),
        subject);
  };
  const bool direct = bench.fabric.direct(pair);
  take("write_bandwidth", {place}, {.initiator = Initiator::source});
  take("read_bandwidth", {place}, {.initiator = Initiator::target});
  if (direct) take("write_bandwidth_sm", {place}, {.initiator = Initiator::source, .by_kernels = true});
  if (direct) take("read_bandwidth_sm", {place}, {.initiator = Initiator::target, .by_kernels = true});
  take("duplex_bandwidth", {place, place_of(bench, {.source = pair.target, .target = pair.source})},
       {.initiator = Initiator::source});
  if (direct) measure_latency(bench, place, record);
  record.condition("peer_access", std::string(word_of(bench.fabric.facts(pair).access)), subject);
  record.condition("path", std::string(direct ? "direct" : "host"), subject);
  const PeerFacts& facts = bench.fabric.facts(pair);
  if (facts.performance_rank) record.condition("performance_rank", std::int64_t{*facts.performance_rank}, subject);
  if (facts.hops) record.condition("link_hops", *facts.hops, subject);
  record.condition("copies_per_sample", static_cast<std::int64_t>(copies), subject);
}

/// One GPU to all others, one GPU after the other; then all at once.
template <class Watch>
void measure_many(Bench<Watch>& bench, Recorder& record) {
  const std::vector<Device>& devices = bench.fabric.devices();
  const std::size_t others = devices.size() - 1;
  const std::size_t copies = *std::ranges::min_element(bench.copies);
  const std::vector<std::size_t> all = all_places(bench);
  for (std::size_t source = 0; source < devices.size(); ++source) {
    // Pairs are ordered by source, so that those of one source are adjacent.
    const std::vector<std::size_t> own(all.begin() + static_cast<std::ptrdiff_t>(source * others),
                                       all.begin() + static_cast<std::ptrdiff_t>((source + 1) * others));
    record.measurement("one_to_all_bandwidth",
                       sample(bench.plan, [&] { return rate(bench, copies, transfer(bench, own, copies, {})); }),
                       devices[source].subject());
  }
  std::vector<double> overlaps;
  const auto sampled = sample_rounds(bench.plan, [&] {
    const auto times = transfer(bench, all, copies, {});
    overlaps.push_back(overlap_share(times));
    std::vector<double> rates;
    rates.reserve(devices.size());
    for (std::size_t source = 0; source < devices.size(); ++source) {
      rates.push_back(rate(bench, copies, std::span(times).subspan(source * others, others)));
    }
    return rates;
  });
  for (std::size_t i = 0; i < devices.size(); ++i) {
    record.measurement("all_pairs_bandwidth", sampled[i], devices[i].subject());
    record.condition("overlap", median(overlaps), devices[i].subject());
  }
}

}  // namespace peer

/// The whole measurement. `Watch` watches a GPU at a PCI address while it is loaded, `Errors` counts errors of several;
/// record_device(record, device) records a GPU's identity.
template <class Watch, class Errors, class RecordDevice>
void measure_peers(const Parameters& given, const RecordDevice& record_device, Recorder& record) {
  using namespace peer;  // NOLINT(google-build-using-namespace): its own parts
  const Bytes size = given.bytes("size");
  if (size.count == 0 || size.count % kGranule.count != 0) {
    throw std::runtime_error(fmt::format("size: {} B is not a positive multiple of 1 MiB", size.count));
  }
  load_kernels_eagerly();
  const std::vector<Device> devices = choose_devices(all_devices(), "all");
  if (devices.size() < 2) throw Skip("one GPU: there is no pair");
  const auto pairs = ordered_pairs(devices.size());
  Bench<Watch> bench{.fabric = PeerFabric(devices, size),
                     .lanes = StreamSet(devices, devices.size() - 1),
                     .watches = {},
                     .pairs = pairs,
                     .mismatches = std::vector<double>(pairs.size(), 0),
                     .copies = std::vector<std::size_t>(pairs.size(), 1),
                     .plan = sampling_plan(given)};
  for (const Device& device : devices) {
    record_device(record, device);
    record.condition("payload_bytes", static_cast<std::int64_t>(size.count), device.subject());
  }
  (void)transfer(bench, all_places(bench), 1, {});  // wakes every GPU: what a watch read before would be clocks at rest
  std::vector<std::string> addresses;
  for (const Device& device : devices) addresses.push_back(device.pci_bus_id);
  const Errors errors(addresses);
  for (const Device& device : devices) bench.watches.emplace_back(device.pci_bus_id).start();
  for (std::size_t place = 0; place < pairs.size(); ++place) measure_pair(bench, place, record);
  measure_many(bench, record);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    bench.watches[i].stop();
    bench.watches[i].record(record, devices[i].subject());
  }
  if (const auto grown = errors.growth()) record.condition("gpu_errors_delta", *grown);
  for (std::size_t place = 0; place < pairs.size(); ++place) {
    record.measurement("mismatches", bench.mismatches[place], subject_of(bench.fabric, pairs[place]));
  }
}

}  // namespace assay::cuda
