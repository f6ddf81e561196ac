// verbs_bandwidth: payload rate between two RDMA ports, each direction separately and both at once, every slot
// verified.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/join.h"
#include "probes/core/json_io.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/sampling.h"
#include "probes/core/sizes.h"
#include "probes/verbs/arrival.h"
#include "probes/verbs/session.h"
#include "probes/verbs/stream.h"

namespace assay::verbs {
namespace {

using nlohmann::json;

constexpr Parameter kOwnParameters[] = {
    parameter("sizes", "", "64KiB,8MiB", "message sizes, separated by commas; first..last doubles; 2 B to 64 MiB",
              "64KiB"),
    choice("directions", "all", "all forward backward both", "which directions to measure"),
    parameter("window", "s", "200ms", "time of one sample, cut out of a stream that does not pause", "50ms"),
    choice("relaxed_ordering", "on", "on off",
           "whether the adapter may reorder its writes to memory (PCIe relaxed ordering)"),
};
constexpr auto kParameters =
    join(kOperationParameter, kStationParameters, kPlaceParameters, kStreamParameters, kOwnParameters);
// Two readings of the clock, 0.1 us together, in a window of 50 ms or more.
constexpr double kInstrument = 2e-6;
constexpr Metric kMetrics[] = {
    forward(higher("bandwidth_forward", "B/s",
                   "payload from rank 0 to rank 1, nothing the other way, where the path is fabric", Recorded::if_asked,
                   kInstrument)),
    backward(higher("bandwidth_backward", "B/s",
                    "payload from rank 1 to rank 0, nothing the other way, where the path is fabric",
                    Recorded::if_asked, kInstrument)),
    higher("bandwidth_both", "B/s", "sum of both directions at once, where the path is fabric", Recorded::if_asked,
           kInstrument),
    higher("bandwidth_both_slower", "B/s", "the slower direction while both are at work, where the path is fabric",
           Recorded::if_asked, kInstrument),
    forward(share("wire_share_forward", "bandwidth_forward over payload_limit, where both ports report their rate",
                  Recorded::if_reported, kInstrument)),
    backward(share("wire_share_backward", "bandwidth_backward over payload_limit, where both ports report their rate",
                   Recorded::if_reported, kInstrument)),
    higher("loopback_bandwidth", "B/s",
           "payload from a port to itself, where the path is loopback; says nothing of cables and switches",
           Recorded::if_asked, kInstrument),
    fault("mismatches", "bytes, of all slots and directions, that are not what was sent", Recorded::rank_0),
};
constexpr ConditionSpec kOwnConditions[] = {
    rank_0("slots", "message slots of each queue pair that were verified, at the largest size, where this is rank 0"),
};
constexpr auto kConditions =
    join(kPathConditions, kStationConditions, kPlaceConditions, kCounterConditions, kOwnConditions);
constexpr ProbeSpec kSpec{
    .name = "verbs_bandwidth",
    .revision = 3,
    .scope = Scope::group,  // of two ranks; a single rank is a loopback
    .sampled = true,
    .measures =
        "Payload bandwidth between two RDMA ports by write, read or send, each direction alone and both at once.",
    .method =
        "Reliable connections over libibverbs; addresses go over TCP between the ranks. The posting side keeps `depth` "
        "messages in flight on each queue pair; small ones are posted in batches of which the last signals its "
        "completion. The stream does not pause from the first message to the last: samples are windows of it, the "
        "bytes completed over the host's time between the last completions of two windows, so start-up and draining "
        "are in none. A direction is that of the payload, whichever side posts. With both directions at once each rank "
        "measures its own for the same number of windows after the same warm-up and continues until the other has "
        "measured; the sum and the minimum pair the windows by number. Before a direction the target is filled with "
        "other bytes; afterwards every byte of every slot is compared with what was sent: what the last pass over the "
        "slots left is verified, not each pass. A GPU's memory is filled and fetched back through the CUDA driver; the "
        "adapter is given it as a dma-buf, or where that is refused through nvidia-peermem, and the record says which; "
        "it never falls back to host memory. A fabric is two kernels: two ranks with one boot id are an error. "
        "Counters of both ports are read before and after.",
    .source =
        "linux-rdma/perftest 24.07 for the definitions (RC, one direction per figure); InfiniBand Architecture "
        "Specification, vol. 1.",
    .needs =
        "RDMA adapters with active ports (InfiniBand, RoCE) on two nodes, rdma-core's libibverbs.so.1; for GPU memory "
        "NVIDIA's driver",
    .typical = {60},
    .deadline = {900},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions};

enum class Direction { forward, backward, both };

/// The parameters that shape the messages, checked.
struct Wanted {
  VerbsOperation operation = VerbsOperation::write;
  std::vector<MessagePlan> plans;  ///< one for each size
  Seconds window;
  std::vector<Direction> directions;
};

std::vector<Direction> directions_of(const std::string& word, bool loopback) {
  if (loopback || word == "forward") return {Direction::forward};
  if (word == "backward") return {Direction::backward};
  if (word == "both") return {Direction::both};
  return {Direction::forward, Direction::backward, Direction::both};
}

Wanted wanted_of(const Parameters& given) {
  Wanted wanted{.operation = verbs_operation(given.text("operation")),
                .plans = {},
                .window = given.seconds("window"),
                .directions = directions_of(given.text("directions"), given.text("path") == "loopback")};
  for (const Bytes size : parse_sizes(given.text("sizes"))) wanted.plans.push_back(stream_plan(given, size, "sizes"));
  if (!(wanted.window.count > 0)) throw BadParameter("window: 0 s hold no message; give at least 1ms");
  return wanted;
}

/// Results of one rank on one direction.
struct Seen {
  Sampling sampling;  ///< empty if this rank did not post
  std::uint64_t mismatches = 0;
};

/// One size in one direction, as one rank takes part in it.
class Passage {
 public:
  Passage(Session& session, const RegisteredMemory& memory, const Wanted& wanted, const SamplingPlan& sampling,
          const MessagePlan& plan, Direction direction, std::uint64_t number)
      : session_(session),
        memory_(memory),
        wanted_(wanted),
        sampling_(sampling),
        plan_(plan),
        layout_(layout_for(plan.area())),
        direction_(direction),
        number_(number),
        sends_(has_payload_from(session.rank())),
        receives_(has_payload_from(1 - session.rank())),
        posts_(wanted.operation == VerbsOperation::read ? receives_ : sends_) {}

  Seen run() {
    const std::size_t area = plan_.area();
    const Stamp mine = stamp_of(session_.rank()), other = stamp_of(1 - session_.rank());
    if (sends_)
      memory_.write(layout_.source, area, [&](std::span<std::byte> bytes) { fill_messages(bytes, plan_, mine); });
    if (receives_)
      memory_.write(layout_.target, area, [&](std::span<std::byte> bytes) { poison_messages(bytes, plan_, other); });
    const bool by_send = wanted_.operation == VerbsOperation::send;
    VerbsEndpoint endpoint(
        session_.adapter(), memory_,
        {.queue_pairs = plan_.queue_pairs, .sends = plan_.depth, .receives = by_send ? Receiver::room(plan_) : 1});
    std::optional<Receiver> receiver;
    if (by_send && receives_) receiver.emplace(endpoint, plan_, layout_);
    session_.connect(endpoint);
    Seen seen = posts_ ? measure(endpoint, receiver) : Seen{};
    if (!posts_) wait_for_other(receiver);
    // The posting side has seen all of its messages complete by now, so none is in flight.
    session_.barrier();
    const auto count = [&](std::span<const std::byte> bytes) { return count_mismatches(bytes, plan_, other); };
    if (receives_) seen.mismatches = memory_.read(layout_.target, area, count);
    return seen;
  }

 private:
  [[nodiscard]] bool has_payload_from(int rank) const {
    if (direction_ == Direction::both) return true;
    return (direction_ == Direction::forward) == (rank == 0);
  }
  [[nodiscard]] Stamp stamp_of(int source) const { return {.seed = number_ * 2 + static_cast<std::uint64_t>(source)}; }

  /// Takes sends in until the other rank reports its end over TCP.
  void wait_for_other(std::optional<Receiver>& receiver) {
    if (!receiver) return session_.barrier();
    Arrival other(session_.group());
    while (!other.here()) receiver->pump();
    other.get();
  }

  Seen measure(VerbsEndpoint& endpoint, std::optional<Receiver>& receiver) {
    const auto meanwhile = [&] {
      if (receiver) receiver->pump();
    };
    Stream stream(endpoint, plan_, layout_, wanted_.operation, session_.stall_limit());
    Windows windows(stream, plan_.size, wanted_.window, meanwhile);
    Seen seen;
    if (direction_ != Direction::both) {
      seen.sampling = sample(sampling_, [&] { return windows.next(); });
      stream.finish(meanwhile);
      session_.barrier();
      return seen;
    }
    const auto warm = static_cast<std::size_t>(std::ceil(sampling_.warmup_limit.count / wanted_.window.count));
    seen.sampling.warmup = sample_fixed(warm + 1, [&] { return windows.next(); }).samples;
    seen.sampling.samples = sample_fixed(sampling_.min_samples, [&] { return windows.next(); }).samples;
    seen.sampling.stopped = "fixed";
    Arrival other(session_.group());
    while (!other.here()) {
      (void)stream.pump();  // load for the other rank, which still measures
      meanwhile();
    }
    other.get();
    stream.finish(meanwhile);
    wait_for_other(receiver);
    return seen;
  }

  Session& session_;
  const RegisteredMemory& memory_;
  const Wanted& wanted_;
  const SamplingPlan& sampling_;
  MessagePlan plan_;
  AreaLayout layout_;
  Direction direction_;
  std::uint64_t number_;
  bool sends_, receives_, posts_;
};

std::string packed(const Seen& seen) {
  return json{{"samples", seen.sampling.samples},
              {"warmup", seen.sampling.warmup},
              {"stopped", seen.sampling.stopped},
              {"mismatches", seen.mismatches}}
      .dump();
}

Seen unpacked_seen(const std::string& bytes) {
  const json from = parse_json_or_throw(bytes, "the other rank's windows");
  return {.sampling = {.samples = from.at("samples").get<std::vector<double>>(),
                       .warmup = from.at("warmup").get<std::vector<double>>(),
                       .stopped = from.at("stopped")},
          .mismatches = from.at("mismatches")};
}

/// The windows of both ranks, one with the other.
template <class Combine>
Sampling paired(const Sampling& a, const Sampling& b, const Combine& combine) {
  Sampling result{.samples = {}, .warmup = {}, .stopped = "fixed"};
  for (std::size_t i = 0; i < std::min(a.samples.size(), b.samples.size()); ++i)
    result.samples.push_back(combine(a.samples[i], b.samples[i]));
  for (std::size_t i = 0; i < std::min(a.warmup.size(), b.warmup.size()); ++i)
    result.warmup.push_back(combine(a.warmup[i], b.warmup[i]));
  return result;
}

void record_direction(Recorder& record, const Session& session, Direction direction, const Seen& first,
                      const Seen& second, const Values& at) {
  const Sampling& posted = first.sampling.samples.empty() ? second.sampling : first.sampling;
  if (session.loopback()) return record.measurement("loopback_bandwidth", posted, session.subject(), at);
  if (direction != Direction::both) {
    const bool forward = direction == Direction::forward;
    record.measurement(forward ? "bandwidth_forward" : "bandwidth_backward", posted, session.subject(), at);
    if (const auto limit = session.payload_limit())
      record.measurement(forward ? "wire_share_forward" : "wire_share_backward", share_of(posted, limit->count),
                         session.subject(), at);
    return;
  }
  record.measurement("bandwidth_both", paired(first.sampling, second.sampling, std::plus<>()), session.subject(), at);
  record.measurement("bandwidth_both_slower",
                     paired(first.sampling, second.sampling, [](double a, double b) { return std::min(a, b); }),
                     session.subject(), at);
}

void take_part(const Parameters& given, const Wanted& wanted, Rendezvous& group, Recorder* record) {
  Session session(given, group);
  std::size_t area = 0;
  for (const MessagePlan& plan : wanted.plans) area = std::max(area, plan.area());
  const Ordering ordering = given.text("relaxed_ordering") == "on" ? Ordering::relaxed : Ordering::strict;
  const RegisteredMemory memory = session.memory(layout_for(area).size, ordering);
  const SamplingPlan sampling = sampling_plan(given);
  std::uint64_t number = 0;
  for (const MessagePlan& plan : wanted.plans) {
    const Values at{{"size", static_cast<std::int64_t>(plan.size.count)}};
    std::uint64_t mismatches = 0;
    for (const Direction direction : wanted.directions) {
      const Seen mine = Passage(session, memory, wanted, sampling, plan, direction, ++number).run();
      const Seen other = unpacked_seen(session.swap(packed(mine)));
      mismatches += mine.mismatches + other.mismatches;
      if (record != nullptr && session.rank() == 0) record_direction(*record, session, direction, mine, other, at);
    }
    if (record != nullptr && session.rank() == 0)
      record->measurement("mismatches", static_cast<double>(mismatches), session.subject(), at);
  }
  if (record == nullptr) return;
  if (session.rank() == 0) record->condition("slots", static_cast<std::int64_t>(wanted.plans.back().slots));
  session.record_conditions(*record, memory);
}

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  const Wanted wanted = wanted_of(given);
  const SamplingPlan plan = sampling_plan(given);
  constexpr double kSlack = 60;  // s; for connecting, filling and comparing on a slow machine
  // One rank waits in an exchange while the other samples; a slow link takes longer than its limits for the least
  // samples.
  const Seconds exchange{3 * (plan.warmup_limit.count + plan.time_limit.count) + given.seconds("stall_limit").count +
                         kSlack};
  run_pair(
      given, placement, record, [&](Rendezvous& group, Recorder* mine) { take_part(given, wanted, group, mine); },
      exchange);
}

}  // namespace
}  // namespace assay::verbs

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::verbs::kSpec, assay::verbs::measure); }
