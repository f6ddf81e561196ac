// host_memory_bandwidth: bandwidth of the host's memory with all cores at once, by STREAM's method.
#include <array>

#include <fmt/format.h>

#include "probes/core/host_facts.h"
#include "probes/core/join.h"
#include "probes/core/machine_tree.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/sampling.h"
#include "probes/core/scale.h"
#include "probes/host/buffer.h"
#include "probes/host/memory_placement.h"
#include "probes/host/pinned_threads.h"
#include "probes/host/slice.h"
#include "probes/host/stream.h"
#include "probes/host/timing.h"

namespace assay::host {
namespace {

constexpr double kInstrument = 1e-3;  // barriers of about 20 us in windows of 15 ms or more
constexpr std::uint64_t kCacheMultiple =
    4;  // STREAM's rule: each array at least four times the sum of last-level caches
constexpr Bytes kUnknownCache = {std::uint64_t{128} << 20};
constexpr std::size_t kLine = 8;  // doubles in a cache line; slices start and end on lines

constexpr Parameter kOwnParameters[] = {
    parameter("array", "B", "0", "size of each of the three arrays; 0 for four times all last-level caches", "256MiB"),
    parameter("threads", "1", "0", "threads, each pinned to a core of its own; 0 for one on every physical core"),
    choice("stores", "non_temporal", "non_temporal regular", "whether results bypass the caches"),
    choice("huge_pages", "on", "on off", "whether transparent huge pages are asked for"),
};
constexpr auto kParameters = join(kOwnParameters, kPlacementParameters);
constexpr Metric kMetrics[] = {
    higher("copy_bandwidth", "B/s", "c = a: 2 x 8 bytes an element over the wall time of one pass", Recorded::always,
           kInstrument),
    higher("scale_bandwidth", "B/s", "b = s c: 2 x 8 bytes an element over the wall time of one pass", Recorded::always,
           kInstrument),
    higher("add_bandwidth", "B/s", "c = a + b: 3 x 8 bytes an element over the wall time of one pass", Recorded::always,
           kInstrument),
    higher("triad_bandwidth", "B/s", "a = b + s c: 3 x 8 bytes an element over the wall time of one pass",
           Recorded::always, kInstrument),
    higher("local_triad_bandwidth", "B/s", "triad in memory that each thread chooses, where memory nodes were named",
           Recorded::if_asked, kInstrument),
    fault("mismatches", "elements of the three arrays that are not what the rounds must have made of them"),
};
constexpr ConditionSpec kOwnConditions[] = {
    {.name = "isa",
     .meaning = "Instruction set of the non-temporal kernels; `compiler` for the plain loops of regular stores."},
    {.name = "non_temporal_stores", .meaning = "Whether results bypassed the caches."},
    {.name = "array_bytes", .meaning = "Size of each array, in B."},
    if_reported("cache_multiple",
                "Size of each array over the sum of last-level caches, where the kernel reports those."),
    {.name = "rounds", .meaning = "Rounds of the four kernels, warm-up included."},
    {.name = "threads", .meaning = "Threads that moved data."},
    {.name = "pinned", .meaning = "Whether every thread was bound to one CPU, read back from the kernel."},
    {.name = "cpu_list", .meaning = "The CPUs of the threads."},
    {.name = "off_cpu_share",
     .meaning = "Largest share, over the threads, of working time in which a thread did not run: CPU quota, hypervisor "
                "or other processes."},
    {.name = "huge_page_share", .meaning = "Share of the arrays which huge pages backed."},
};
constexpr auto kConditions = join(kOwnConditions, kPlacementConditions);
constexpr ProbeSpec kSpec{
    .name = "host_memory_bandwidth",
    .revision = 4,
    .sampled = true,
    .measures = "Sustained bandwidth of the host's memory with all cores at once.",
    .method =
        "STREAM's four kernels on three arrays of doubles, each at least four times the sum of last-level caches "
        "unless half of memory forbids it. One pinned thread on every physical core owns a contiguous slice and "
        "touches it first, so that pages lie on its own NUMA node. A round runs copy, scale, add and triad in this "
        "order; each is timed by itself from the moment all threads are ready until the last is done, in wall time, "
        "stores drained. Bytes are counted as STREAM counts them: what the kernel asks to read and write, no reads for "
        "ownership. Every round is one sample of each kernel; sampling ends when the median of triad is known. At the "
        "end every element is compared with the value that the rounds must have given, to a relative 1e-13. STREAM "
        "quotes the best of n: that is the largest of the samples. With memory_node the arrays are placed by the "
        "kernel's policy (mbind), rounds in local memory come first, and the kernel is asked at the end on which node "
        "every page is.",
    .source = "McCalpin, STREAM 5.10, www.cs.virginia.edu/stream; mbind(2), move_pages(2).",
    .typical = {5},
    .deadline = {120},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
    .between_runs = {.least = 0.02,
                     .source = "Fifty quiet runs of a virtual machine with two CPUs, 2026-11: 4.2 to 5.6 %, much of it "
                               "from its neighbours. 2 % is the deviation of two states 4 % apart."}};

/// The three arrays, shared out over a crew.
class Arrays {
 public:
  Arrays(PinnedThreads& crew, Bytes size, Pages pages, const Placement& placement)
      : crew_(crew), a_(size, pages), b_(size, pages), c_(size, pages), elements_(size.count / sizeof(double)) {
    for (Buffer* buffer : {&a_, &b_, &c_}) place(*buffer, placement);
    crew_.run([this](std::size_t thread) { stream_fill(part(thread)); });
  }

  /// B/s of one pass.
  double pass(const StreamCode& code, StreamKernel kernel) {
    const Seconds time = crew_.run([&](std::size_t thread) { code.pass(kernel, part(thread)); });
    return (Bytes{stream_bytes(kernel, elements_)} / time).count;
  }

  std::uint64_t mismatches(std::size_t rounds) {
    std::vector<std::uint64_t> wrong(crew_.size());
    crew_.run([&](std::size_t thread) { wrong[thread] = stream_mismatches(part(thread), rounds); });
    std::uint64_t sum = 0;
    for (const std::uint64_t count : wrong) sum += count;
    return sum;
  }

  /// The nodes of the pages of every thread's slices.
  void look(PageCheck& pages) {
    for (std::size_t thread = 0; thread < crew_.size(); ++thread) {
      const StreamArrays own = part(thread);
      for (const auto& one : {own.a, own.b, own.c}) pages.add(std::as_bytes(one), crew_.cpus()[thread]);
    }
  }

  [[nodiscard]] double huge_share() const { return (a_.huge_share() + b_.huge_share() + c_.huge_share()) / 3; }

 private:
  StreamArrays part(std::size_t thread) {
    const auto [begin, end] = slice(elements_, crew_.size(), thread, kLine);
    const auto cut = [begin, end](Buffer& buffer) { return buffer.as<double>().subspan(begin, end - begin); };
    return {.a = cut(a_), .b = cut(b_), .c = cut(c_)};
  }

  PinnedThreads& crew_;
  Buffer a_, b_, c_;
  std::size_t elements_;
};

/// Samples of every kernel from rounds of all four; triad decides when it is enough.
std::array<Sampling, kStreamKernels.size()> take(const SamplingPlan& plan, Arrays& arrays, const StreamCode& code) {
  std::array<std::vector<double>, kStreamKernels.size()> seen;
  const Sampling triad = sample(plan, [&] {
    for (std::size_t i = 0; i < kStreamKernels.size(); ++i) seen[i].push_back(arrays.pass(code, kStreamKernels[i]));
    return seen.back().back();
  });
  std::array<Sampling, kStreamKernels.size()> result;
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = beside(triad, seen[i]);
  return result;
}

void measure(const Parameters& given, Recorder& record) {
  const auto cache = last_level_cache();
  const Bytes wanted = given.bytes("array").count > 0 ? given.bytes("array")
                                                      : Bytes{kCacheMultiple * cache.value_or(kUnknownCache).count};
  const Placement placement = placement_of(given, MachineTree("/"));
  const Bytes size = affordable(placement, wanted, 3, {kLine * sizeof(double)});
  if (size < wanted)
    record.note(fmt::format("each array is {}, not {}: three of them may take half of the memory",
                            for_people(static_cast<double>(size.count), "B"),
                            for_people(static_cast<double>(wanted.count), "B")));
  const StreamCode code = stream_code(given.text("stores") == "regular" ? Stores::regular : Stores::non_temporal);
  PinnedThreads crew(cpus_near(given, given.count("threads"), placement));
  const Pages pages = given.text("huge_pages") == "on" ? Pages::huge : Pages::base;
  if (placement.policy != Policy::first_touch) {
    const Placement beside = placement.local();
    Arrays local(crew, size, pages, beside);
    record.measurement("local_triad_bandwidth", take(sampling_plan(given), local, code).back());
    PageCheck found(beside);
    local.look(found);
    found.record_local(record);
  }
  Arrays arrays(crew, size, pages, placement);
  const auto taken = take(sampling_plan(given), arrays, code);
  const std::size_t rounds = taken[0].warmup.size() + taken[0].samples.size();
  for (std::size_t i = 0; i < taken.size(); ++i) record.measurement(kMetrics[i].name, taken[i]);
  record.measurement("mismatches", static_cast<double>(arrays.mismatches(rounds)));
  record.condition("isa", std::string(code.isa));
  record.condition("non_temporal_stores", code.stores == Stores::non_temporal);
  record.condition("array_bytes", static_cast<std::int64_t>(size.count));
  if (cache) record.condition("cache_multiple", static_cast<double>(size.count) / static_cast<double>(cache->count));
  record.condition("rounds", static_cast<std::int64_t>(rounds));
  record.condition("threads", static_cast<std::int64_t>(crew.size()));
  record.condition("pinned", crew.pinned());
  record.condition("cpu_list", cpu_list(crew.cpus()));
  record.condition("off_cpu_share", crew.off_cpu_share());
  record.condition("huge_page_share", arrays.huge_share());
  PageCheck found(placement);
  arrays.look(found);
  found.record(record);
}

}  // namespace
}  // namespace assay::host

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::host::kSpec, assay::host::measure); }
