// host_tcp_latency: latency of a small message between two nodes over TCP.
#include <atomic>
#include <chrono>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "probes/core/join.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/core/sampling.h"
#include "probes/core/statistics.h"
#include "probes/host/tcp_flow.h"
#include "probes/host/tcp_path.h"
#include "probes/host/tcp_streams.h"

namespace assay::host {
namespace {

constexpr Seconds kOpenPatience = {30};
constexpr Seconds kExchange = {280};          // all round trips: within the deadline even when each takes 20 ms
constexpr double kInstrument = 5e-3;          // two clock readings of some 30 ns in a round trip of 10 us and more
constexpr std::int64_t kMostCount = 200'000;  // samples that fit into one line of a record
constexpr std::uint64_t kMostSize = std::uint64_t{1} << 20;

constexpr Parameter kParameters[] = {
    kPathParameter,
    kInterfaceParameter,
    parameter("size", "B", "8B", "payload of one message"),
    parameter("count", "1", "10000", "round trips that are recorded", "1000"),
    parameter("warmup", "1", "200", "round trips before them, at least 1"),
};
constexpr Metric kMetrics[] = {
    lower("latency", "s", "half a round trip, every one a sample, where path is fabric", Recorded::if_asked,
          kInstrument),
    lower("latency_p999", "s", "99.9th percentile of these samples, where path is fabric", Recorded::if_asked,
          kInstrument),
    lower("loopback_latency", "s", "half a round trip between two processes of one machine, where path is loopback",
          Recorded::if_asked, kInstrument),
    fault("mismatches", "messages that came back other than they went", Recorded::rank_0),
};
constexpr ConditionSpec kOwnConditions[] = {
    {.name = "segments_retransmitted", .meaning = "Segments that this rank sent again."},
};
constexpr auto kConditions = join(kPathConditions, kOwnConditions);
constexpr ProbeSpec kSpec{
    .name = "host_tcp_latency",
    .scope = Scope::pair,
    .measures = "Latency of small messages over TCP between two nodes.",
    .method =
        "Rank 0 sends a message on one connection with TCP_NODELAY, rank 1 sends it back, and rank 0 compares it: one "
        "round trip at a time, timed by rank 0's wall clock from before the first call to after the last. A sample is "
        "half of one round trip. All are kept, in their order, so that any percentile and the real maximum can be had: "
        "use statistic median, p99 or max; the 99.9th percentile is a metric of its own. Both ranks wait in the "
        "kernel, so waking them is in the figure, as it is for an application that does not spin. Two ranks on one "
        "machine are an error unless path=loopback, which has a metric of its own.",
    .source =
        "OSU micro-benchmarks, osu_latency, for half a round trip; perftest's habit of dropping the largest samples is "
        "not followed.",
    .needs = "Two nodes that reach each other on the rendezvous port",
    .typical = {5},
    .deadline = {300},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
};

/// One rank's end of the connection.
class Wire {
 public:
  Wire(int socket, std::size_t size) : socket_(socket), out_(size), in_(size) {}

  /// Rank 0: one round trip of message `number`, in s.
  double there_and_back(std::uint64_t number) {
    std::memcpy(out_.data(), &number, std::min(sizeof number, out_.size()));
    const auto begin = std::chrono::steady_clock::now();
    send_all(socket_, out_, never_);
    receive_all(socket_, in_, never_, counted_);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    if (in_ != out_) ++mismatches_;
    return taken.count();
  }
  /// Rank 1: returns one message.
  void answer() {
    receive_all(socket_, in_, never_, counted_);
    send_all(socket_, in_, never_);
  }
  [[nodiscard]] std::uint64_t mismatches() const { return mismatches_; }

 private:
  int socket_;
  std::vector<std::byte> out_, in_;
  const std::atomic<bool> never_ = false;  // a stop and a deadline end the waits; nothing else ends them
  std::atomic<std::uint64_t> counted_ = 0;
  std::uint64_t mismatches_ = 0;
};

void check(const Parameters& given) {
  if (const auto size = given.bytes("size").count; size < 1 || size > kMostSize)
    throw BadParameter(fmt::format("size: {} B is not from 1 B to 1 MiB", size));
  for (const char* name : {"count", "warmup"}) (void)given.count(name, 1, kMostCount);
}

void exchange(const Parameters& given, const Placement& placement, Rendezvous& group, Recorder& record) {
  const Streams streams = open_streams(placement, group, 1, kOpenPatience);
  record_path(given, group, streams, record);
  const Subject subject = pair_subject(group);
  Wire wire(streams.front().number(), given.bytes("size").count);
  const auto warmup = static_cast<std::size_t>(given.count("warmup")),
             count = static_cast<std::size_t>(given.count("count"));
  group.barrier();
  if (placement.rank == 1) {
    for (std::size_t i = 0; i < warmup + count; ++i) wire.answer();
  } else {
    std::uint64_t number = 0;
    const auto half = [&] { return wire.there_and_back(number++) / 2; };
    const Sampling before = sample_fixed(warmup, half);
    Sampling taken = sample_fixed(count, half);
    taken.warmup = before.samples;
    if (given.text("path") == "loopback") {
      record.measurement("loopback_latency", taken, subject);
    } else {
      record.measurement("latency", taken, subject);
      record.measurement("latency_p999", percentile(taken.samples, 0.999), subject);
    }
    record.measurement("mismatches", static_cast<double>(wire.mismatches()), subject);
  }
  group.barrier();
  record.condition("segments_retransmitted", static_cast<std::int64_t>(counters_of(streams).retransmitted));
}

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  check(given);
  demand_pair(placement);
  work_together(placement, {.exchange = kExchange},
                [&](Rendezvous& group) { exchange(given, placement, group, record); });
}

}  // namespace
}  // namespace assay::host

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::host::kSpec, assay::host::measure); }
