// host_loaded_latency: latency of memory on one core while the other cores read it at rising rates.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <functional>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "probes/core/host_facts.h"
#include "probes/core/join.h"
#include "probes/core/machine_tree.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/sampling.h"
#include "probes/host/buffer.h"
#include "probes/host/memory_placement.h"
#include "probes/host/memory_walk.h"
#include "probes/host/pinned_threads.h"
#include "probes/host/slice.h"
#include "probes/host/stream.h"
#include "probes/host/timing.h"

namespace assay::host {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kInstrument = 1e-4;  // two clock readings in a chunk of 50 ms or more
constexpr Seconds kChunk = {0.05};
constexpr std::uint64_t kCacheMultiple = 4;  // of the injectors' memory, as STREAM's arrays
constexpr Bytes kUnknownCache = {std::uint64_t{128} << 20};
constexpr std::size_t kBurst = 512;  // elements of 8 bytes, 4 KiB: between two delays
constexpr std::size_t kMostDelays = 32;
constexpr std::int64_t kLongestDelay_ns = 1'000'000;  // 4 KiB a millisecond are no load

constexpr Parameter kOwnParameters[] = {
    parameter("delays_ns", "", "0,100,200,400,800,1600,3200,6400",
              "delays of an injector after each 4 KiB, in ns: one point of the curve each", "0,400,3200"),
    parameter("injectors", "1", "0", "cores that read while another one walks; 0 for all others"),
    choice("traffic", "read", "read copy", "work of an injector: read, or copy with regular stores"),
    parameter("size", "B", "0",
              "memory that the cycle runs through; 0 for eight times all last-level caches, at most 4 GiB"),
    parameter("array", "B", "0", "memory of all injectors; 0 for four times all last-level caches"),
    choice("huge_pages", "on", "on off", "whether transparent huge pages are asked for"),
};
constexpr auto kParameters = join(kOwnParameters, kPlacementParameters);
constexpr Metric kMetrics[] = {
    lower("idle_latency", "s", "mean wall time of one dependent load while the other cores rest", Recorded::always,
          kInstrument),
    lower("latency", "s", "the same while the injectors work, at each delay_ns", Recorded::always, kInstrument),
    higher("rate", "B/s",
           "bytes that the injectors read, or read and stored, over the time of that walk, at each delay_ns",
           Recorded::always, kInstrument),
};
constexpr ConditionSpec kOwnConditions[] = {
    {.name = "injectors", .meaning = "Cores that worked during the walk."},
    {.name = "traffic", .meaning = "Their work."},
    {.name = "size_bytes", .meaning = "Memory that the cycle runs through, in B."},
    {.name = "array_bytes", .meaning = "Memory of all injectors, in B."},
    {.name = "steps", .meaning = "Loads in one chunk."},
    {.name = "huge_page_share", .meaning = "Share of the cycle's memory which huge pages backed."},
    {.name = "pinned", .meaning = "Whether every thread was bound to one CPU, read back from the kernel."},
    {.name = "cpu_list", .meaning = "The CPUs of the threads; the first one walks."},
    {.name = "off_cpu_share",
     .meaning = "Largest share, over the threads, of working time in which a thread did not run: CPU quota, hypervisor "
                "or other processes."},
};
constexpr auto kConditions = join(kOwnConditions, kPlacementConditions);
constexpr ProbeSpec kSpec{
    .name = "host_loaded_latency",
    .sampled = true,
    .measures = "Latency of the host's memory on one core against the rate at which the other cores read it.",
    .method =
        "One pinned thread walks a random cycle as host_memory_latency does; a pinned thread on every other core, or "
        "on as many as injectors says, reads or copies its own slice of other memory, 4 KiB at a time, and spins for "
        "the delay after each. First all but the walk rest; then the delays follow from the longest to the shortest, "
        "each a point of the curve. A sample is the wall time of a walk of about 50 ms over its loads; the rate is of "
        "the bytes that the injectors moved during exactly that walk. Bytes are those that the code asks for, no reads "
        "for ownership and not those of the walk itself. With memory_node the memory of both is placed by the kernel's "
        "policy (mbind). The kernel is asked at the end on which node every page is. The knee of the curve is not "
        "computed.",
    .source =
        "Intel Memory Latency Checker, --loaded_latency, for the form of the experiment; McVoy & Staelin 1996, "
        "lmbench; mbind(2), move_pages(2).",
    .needs = "two physical cores",
    .typical = {15},
    .deadline = {600},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions};

/// "0,100,200", each once, from the longest on: the load rises.
std::vector<std::int64_t> delays_of(const std::string& text) {
  std::set<std::int64_t, std::greater<>> delays;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    std::int64_t delay = 0;
    const auto [rest, error] = std::from_chars(at, end, delay);
    const bool fits = error == std::errc{} && delay >= 0 && delay <= kLongestDelay_ns && (rest == end || *rest == ',');
    if (!fits || delays.size() == kMostDelays)
      throw std::runtime_error(
          fmt::format("delays_ns: '{}' is not a list of at most {} whole numbers from 0 to {}\nhint: "
                      "write 0,100,400",
                      text, kMostDelays, kLongestDelay_ns));
    delays.insert(delay);
    if (rest == end) return {delays.begin(), delays.end()};
    at = rest + 1;
  }
}

/// Bytes that one injector has moved, in a cache line of its own.
struct alignas(64) Moved {
  std::atomic<std::uint64_t> bytes = 0;
};

/// Memory of the injectors, and their work during a walk. Thread 0 of the crew walks.
class Load {
 public:
  Load(PinnedThreads& crew, Bytes size, Pages pages, const Placement& placement, bool copies)
      : crew_(crew), memory_(size, pages), moved_(crew.size()), copies_(copies) {
    place(memory_, placement);
    crew_.run([this](std::size_t thread) { std::ranges::fill(part(thread), 1.0); });
  }

  /// Latency of `steps` loads while the injectors work with this delay; `rate` is theirs meanwhile, in B/s.
  double latency(MemoryWalk& walk, std::uint64_t steps, std::int64_t delay_ns, double& rate) {
    std::atomic<bool> over = false;
    double time_s = 0;
    crew_.run([&](std::size_t thread) {
      if (thread > 0) return inject(thread, delay_ns, over);
      const std::uint64_t before = moved();
      const auto begin = Clock::now();
      walk.follow(steps);
      time_s = std::chrono::duration<double>(Clock::now() - begin).count();
      rate = static_cast<double>(moved() - before) / time_s;
      over = true;
    });
    return time_s / static_cast<double>(steps);
  }

  void look(PageCheck& pages) {
    for (std::size_t thread = 1; thread < crew_.size(); ++thread)
      pages.add(std::as_bytes(part(thread)), crew_.cpus()[thread]);
  }

 private:
  /// The slice of an injector; none of thread 0.
  std::span<double> part(std::size_t thread) {
    const auto all = memory_.as<double>();
    if (thread == 0) return {};
    const auto [begin, end] = slice(all.size(), crew_.size() - 1, thread - 1, 2 * kBurst);
    return all.subspan(begin, end - begin);
  }

  [[nodiscard]] std::uint64_t moved() const {
    std::uint64_t sum = 0;
    for (const Moved& one : moved_) sum += one.bytes.load(std::memory_order_relaxed);
    return sum;
  }

  void inject(std::size_t thread, std::int64_t delay_ns, const std::atomic<bool>& over) {
    const StreamCode code = stream_code(Stores::regular);
    const std::span<double> own = part(thread);
    const std::size_t half = own.size() / 2;
    const std::size_t bursts = (copies_ ? half : own.size()) / kBurst;
    for (std::size_t burst = 0; !over.load(std::memory_order_relaxed); burst = burst + 1 == bursts ? 0 : burst + 1) {
      const auto from = own.subspan(burst * kBurst, kBurst);
      if (copies_) {
        code.pass(StreamKernel::copy, {.a = from, .b = {}, .c = own.subspan(half + burst * kBurst, kBurst)});
      } else {
        keep(stream_read({reinterpret_cast<const std::uint64_t*>(from.data()), from.size()}));
      }
      const std::uint64_t bytes = copies_ ? stream_bytes(StreamKernel::copy, kBurst) : kBurst * sizeof(double);
      // The only writer; an atomic addition would make every burst wait for the loads of the one before.
      moved_[thread].bytes.store(moved_[thread].bytes.load(std::memory_order_relaxed) + bytes,
                                 std::memory_order_relaxed);
      if (delay_ns == 0) continue;
      for (const auto until = Clock::now() + std::chrono::nanoseconds(delay_ns); Clock::now() < until;) {
      }
    }
  }

  PinnedThreads& crew_;
  Buffer memory_;
  std::vector<Moved> moved_;
  bool copies_;
};

PinnedThreads crew_of(const Parameters& given, const Placement& placement) {
  auto cpus = cpus_near(given, 0, placement);
  const std::int64_t wanted = given.count("injectors");
  if (cpus.size() < 2) throw Skip("this process may use one physical core; a load during the walk needs another");
  if (wanted < 0 || static_cast<std::size_t>(wanted) >= cpus.size())
    throw std::runtime_error(
        fmt::format("injectors: {} and the core that walks do not fit the {} physical cores; give 0 for all others",
                    wanted, cpus.size()));
  if (wanted > 0) cpus.resize(static_cast<std::size_t>(wanted) + 1);
  return PinnedThreads(std::move(cpus));
}

void measure(const Parameters& given, Recorder& record) {
  const auto delays = delays_of(given.text("delays_ns"));
  const Placement placement = placement_of(given, MachineTree("/"));
  PinnedThreads crew = crew_of(given, placement);
  const Bytes size = affordable(placement, walk_size(given.bytes("size")), 2, {sizeof(Link)});
  const Bytes wanted = given.bytes("array").count > 0
                           ? given.bytes("array")
                           : Bytes{kCacheMultiple * last_level_cache().value_or(kUnknownCache).count};
  const Bytes array = affordable(placement, wanted, 2, {2 * kBurst * sizeof(double)});
  if (array.count < 2 * kBurst * sizeof(double) * (crew.size() - 1))
    throw std::runtime_error("array: less than 8 KiB for each injector\nhint: give more, or fewer injectors");
  const Pages pages = given.text("huge_pages") == "on" ? Pages::huge : Pages::base;
  MemoryWalk walk(crew, size, pages, placement);
  Load load(crew, array, pages, placement, given.text("traffic") == "copy");

  const std::uint64_t steps = walk.steps_for(kChunk);
  const SamplingPlan plan = sampling_plan(given);
  record.measurement("idle_latency",
                     sample(plan, [&] { return walk.alone(steps).count / static_cast<double>(steps); }));
  for (const std::int64_t delay : delays) {
    std::vector<double> rates;
    const Sampling latencies = sample(plan, [&] { return load.latency(walk, steps, delay, rates.emplace_back()); });
    record.measurement("latency", latencies, {}, {{"delay_ns", delay}});
    record.measurement("rate", beside(latencies, rates), {}, {{"delay_ns", delay}});
  }
  record.condition("injectors", static_cast<std::int64_t>(crew.size() - 1));
  record.condition("traffic", given.text("traffic"));
  record.condition("size_bytes", static_cast<std::int64_t>(size.count));
  record.condition("array_bytes", static_cast<std::int64_t>(array.count));
  record.condition("steps", static_cast<std::int64_t>(steps));
  record.condition("huge_page_share", walk.memory().huge_share());
  record.condition("pinned", crew.pinned());
  record.condition("cpu_list", cpu_list(crew.cpus()));
  record.condition("off_cpu_share", crew.off_cpu_share());
  PageCheck found(placement);
  found.add(walk.memory().as<std::byte>(), crew.cpus().front());
  load.look(found);
  found.record(record);
}

}  // namespace
}  // namespace assay::host

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::host::kSpec, assay::host::measure); }
