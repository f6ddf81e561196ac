// host_tcp_bandwidth: payload bandwidth of TCP between two nodes, each direction separately and both at once.
#include <optional>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/join.h"
#include "probes/core/json_io.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/core/sampling.h"
#include "probes/host/encryption.h"
#include "probes/host/node_work.h"
#include "probes/host/tcp_flow.h"
#include "probes/host/tcp_path.h"
#include "probes/host/tcp_streams.h"

namespace assay::host {
namespace {

using nlohmann::json;

constexpr double kInstrument = 1e-3;       // a window's ends are known to some 50 us of 100 ms
constexpr Seconds kOpenPatience = {30};    // a lossy network may lose a connection's first packets three times over
constexpr Seconds kDrain = {60};           // beyond sampling: data under way at its end, over a slow link
constexpr std::size_t kDuplexWarmup = 10;  // windows; the streams have run in one direction before
constexpr std::int64_t kMostStreams = 256;
constexpr std::uint64_t kMostBlock = std::uint64_t{64} << 20;
constexpr std::uint64_t kLeastSegment = 536, kMostSegment = 32767;  // RFC 1122's default; of Linux's TCP_MAXSEG
constexpr std::uint64_t kForwardSeed = 1, kBackwardSeed = 2;

constexpr Parameter kParameters[] = {
    kPathParameter,
    kInterfaceParameter,
    parameter("streams", "1", "4", "TCP connections that share the payload, with a thread at each end"),
    parameter("block", "B", "256KiB", "payload that is numbered and sent as one"),
    parameter("mss", "B", "0",
              "largest segment of either direction, 536 to 32767; 0: as large as the path's MTU takes"),
    parameter("window", "s", "100ms", "time over which one sample is taken"),
    kEncryption,
    kOffloadCounters,
};
constexpr Metric kOwnMetrics[] = {
    forward(higher("forward_bandwidth", "B/s", "payload that rank 1 receives from rank 0, where path is fabric",
                   Recorded::if_asked, kInstrument)),
    backward(higher("backward_bandwidth", "B/s", "payload that rank 0 receives from rank 1, where path is fabric",
                    Recorded::if_asked, kInstrument)),
    higher("duplex_bandwidth", "B/s", "payload that both receive while both send, the sum, where path is fabric",
           Recorded::if_asked, kInstrument),
    higher("loopback_bandwidth", "B/s", "payload between two processes of one machine, where path is loopback",
           Recorded::if_asked, kInstrument),
    lower("retransmitted_share", "1",
          "segments sent again over segments sent, of both ranks, one sample for each of the phases", Recorded::rank_0),
    fault("mismatches", "blocks that did not arrive in their order or, of those compared, not as they were sent",
          Recorded::rank_0),
};
constexpr auto kMetrics = join(kOwnMetrics, kWorkMetrics);
constexpr ConditionSpec kOwnConditions[] = {
    {.name = "streams", .meaning = "TCP connections that shared the payload."},
    rank_0("checked_share",
           "Share of the blocks that were compared byte for byte, where this is rank 0; every block's number is "
           "compared."),
    rank_0("segments_retransmitted", "Segments that both ranks sent again, where this is rank 0."),
};
constexpr auto kConditions = join(kPathConditions, kOwnConditions, kEncryptionConditions, kWorkConditions);
constexpr ProbeSpec kSpec{
    .name = "host_tcp_bandwidth",
    .revision = 2,
    .scope = Scope::pair,
    .sampled = true,
    .measures = "Payload bandwidth of TCP between two nodes: forward, backward, and both directions at once.",
    .method =
        "The ranks meet and open the streams once, on the address of the rendezvous. In each phase the sending rank "
        "writes numbered blocks to every stream as fast as the kernel takes them, one thread a stream. The receiving "
        "rank counts bytes as they come out of its sockets; a sample is what came in one window, by its wall clock, so "
        "nothing that is still in a buffer is counted. Forward and backward are sampled until steady and known, then "
        "both at once for a set number of windows that begin together; each is the sum of what the two ranks received "
        "in the windows of the same number. A block's number is always compared, every sixteenth block byte for byte, "
        "and what was sent must have been received to the byte. Retransmissions are the kernel's own count (TCP_INFO) "
        "over the phase. Processors at work are those of /proc/stat over the phase. IPsec and offload are the node's "
        "own: counters of "
        "the kernel's security associations and of its switch before and after say what they did. Two ranks on one "
        "machine are an error unless path=loopback, which has a metric of its own.",
    .source = "RFC 6349, TCP throughput testing, for the quantity; tcp(7) for TCP_INFO.",
    .needs = "Two nodes that reach each other on the rendezvous port",
    .typical = {20},
    .deadline = {300},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions,
};

enum class Direction { forward, backward, duplex };

/// The two ranks and their streams through all phases. Both ranks do the same in the same order.
class Conversation {
 public:
  Conversation(const Parameters& given, Rendezvous& group, const Streams& streams)
      : group_(group),
        streams_(streams),
        plan_(sampling_plan(given)),
        block_(given.bytes("block")),
        window_(given.seconds("window")),
        work_(given.text("offload_counters")) {}

  /// Bytes received in one phase, summed over both ranks if both received.
  Sampling phase(Direction direction) {
    const bool first = group_.rank() == 0;
    const bool sends = direction == Direction::duplex || (direction == Direction::forward) == first;
    const bool receives = direction == Direction::duplex || !sends;
    const TcpCounters before = counters_of(streams_);
    std::optional<Receiver> receiver;
    std::optional<Sender> sender;
    work_.begin();
    group_.barrier();
    if (receives) receiver.emplace(streams_, block_, first ? kBackwardSeed : kForwardSeed);
    if (sends) sender.emplace(streams_, block_, first ? kForwardSeed : kBackwardSeed);
    const Sampling mine = receives ? taken_from(*receiver, direction) : Sampling{};
    const auto said = group_.all_gather(words_of(mine));
    work_.end();
    const std::uint64_t sent = sender ? sender->finish() : 0;
    const Received received = receiver ? receiver->finish() : Received{};
    settle(before, sent, received);
    work_.settle(group_, sent + received.bytes);
    payload_ += sent + received.bytes;
    if (direction != Direction::duplex) return windows_in(said[direction == Direction::forward ? 1 : 0]);
    return sum(windows_in(said[0]), windows_in(said[1]));
  }

  /// B that this rank has sent and received.
  [[nodiscard]] std::uint64_t payload() const { return payload_; }

  void record(Recorder& record, const Subject& subject) const {
    work_.record(record, group_.rank(), subject);
    if (group_.rank() != 0) return;
    record.measurement("retransmitted_share", {.samples = retransmitted_shares_, .warmup = {}, .stopped = "fixed"},
                       subject);
    record.measurement("mismatches", static_cast<double>(total_.mismatches), subject);
    record.condition("checked_share", static_cast<double>(total_.checked) / static_cast<double>(total_.blocks));
    record.condition("segments_retransmitted", static_cast<std::int64_t>(retransmitted_));
  }

 private:
  Sampling taken_from(Receiver& receiver, Direction direction) const {
    Windows windows([&] { return receiver.received(); }, window_);
    const auto next = [&] { return windows.next(); };
    if (direction != Direction::duplex) return sample(plan_, next);
    const auto fitting = static_cast<std::size_t>(plan_.time_limit.count / window_.count);
    const Sampling warmup = sample_fixed(kDuplexWarmup, next);
    Sampling taken = sample_fixed(std::max(plan_.min_samples, std::min(plan_.max_samples, fitting)), next);
    taken.warmup = warmup.samples;
    return taken;
  }

  static Sampling sum(Sampling one, const Sampling& other) {
    for (std::size_t i = 0; i < one.samples.size(); ++i) one.samples[i] += other.samples.at(i);
    for (std::size_t i = 0; i < one.warmup.size(); ++i) one.warmup[i] += other.warmup.at(i);
    return one;
  }

  /// Compares sent and received bytes, and keeps the counts of the phase.
  void settle(const TcpCounters& before, std::uint64_t sent, const Received& received) {
    const TcpCounters after = counters_of(streams_);
    const json mine = {{"sent", sent},
                       {"received", received.bytes},
                       {"blocks", received.blocks},
                       {"checked", received.checked},
                       {"mismatches", received.mismatches},
                       {"segments", after.segments - before.segments},
                       {"retransmitted", after.retransmitted - before.retransmitted}};
    const auto said = group_.all_gather(mine.dump());
    const auto one = parse_json_or_throw(said[0], "rank 0"), other = parse_json_or_throw(said[1], "rank 1");
    if (one.at("sent") != other.at("received") || other.at("sent") != one.at("received")) {
      throw std::runtime_error(fmt::format(
          "rank 0 sent {} B and rank 1 received {}; rank 1 sent {} B and rank 0 received {}", one.at("sent").dump(),
          other.at("received").dump(), other.at("sent").dump(), one.at("received").dump()));
    }
    const auto both = [&](const char* name) {
      return one.at(name).get<std::uint64_t>() + other.at(name).get<std::uint64_t>();
    };
    total_.blocks += both("blocks");
    total_.checked += both("checked");
    total_.mismatches += both("mismatches");
    retransmitted_ += both("retransmitted");
    if (both("segments") == 0)
      throw std::runtime_error("the kernel counted no segment in a phase in which payload moved");
    retransmitted_shares_.push_back(static_cast<double>(both("retransmitted")) / static_cast<double>(both("segments")));
  }

  Rendezvous& group_;
  const Streams& streams_;
  SamplingPlan plan_;
  Bytes block_;
  Seconds window_;
  Received total_;
  WorkOfPhases work_;
  std::uint64_t retransmitted_ = 0, payload_ = 0;
  std::vector<double> retransmitted_shares_;
};

void check(const Parameters& given) {
  (void)given.count("streams", 1, kMostStreams);
  const auto block = given.bytes("block").count;
  if (block < 64 || block > kMostBlock || block % 8 != 0)
    throw BadParameter(fmt::format("block: {} B is not a multiple of 8 B from 64 B to 64 MiB", block));
  const auto mss = given.bytes("mss").count;
  if (mss != 0 && (mss < kLeastSegment || mss > kMostSegment))
    throw BadParameter(fmt::format("mss: {} B is neither 0 nor from {} to {}", mss, kLeastSegment, kMostSegment));
  const double window = given.seconds("window").count;
  if (window < 0.01 || window > 10) throw BadParameter(fmt::format("window: {:g} s is not from 10 ms to 10 s", window));
}

void converse(const Parameters& given, const Placement& placement, Rendezvous& group, Recorder& record) {
  const Streams streams = open_streams(
      placement, group, static_cast<std::size_t>(given.count("streams")), kOpenPatience,
      {.mss = static_cast<int>(given.bytes("mss").count), .without_ipsec = given.text("encryption") == "off"});
  record_path(given, group, streams, record);
  record.condition("streams", given.count("streams"));
  const Subject subject = pair_subject(group);
  const EncryptionWatch encryption(given.text("encryption"), streams, placement.token, placement.rank);
  Conversation conversation(given, group, streams);
  const auto take = [&](const char* metric, Direction direction) {
    const Sampling taken = conversation.phase(direction);
    if (placement.rank == 0) record.measurement(metric, taken, subject);
  };
  if (given.text("path") == "loopback") {
    take("loopback_bandwidth", Direction::forward);
  } else {
    take("forward_bandwidth", Direction::forward);
    take("backward_bandwidth", Direction::backward);
    take("duplex_bandwidth", Direction::duplex);
  }
  encryption.record(record, conversation.payload());
  conversation.record(record, subject);
}

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  check(given);
  demand_pair(placement);
  const SamplingPlan plan = sampling_plan(given);
  const double longest = plan.warmup_limit.count + plan.time_limit.count +
                         static_cast<double>(plan.min_samples) * given.seconds("window").count;
  work_together(placement, {.exchange = {longest + kDrain.count}},
                [&](Rendezvous& group) { converse(given, placement, group, record); });
}

}  // namespace
}  // namespace assay::host

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::host::kSpec, assay::host::measure); }
