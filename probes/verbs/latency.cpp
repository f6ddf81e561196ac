// verbs_latency: one message at a time between two RDMA ports, every sample kept, the largest too.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "probes/core/join.h"
#include "probes/core/probe.h"
#include "probes/core/recorder.h"
#include "probes/core/sizes.h"
#include "probes/core/statistics.h"
#include "probes/core/units.h"
#include "probes/verbs/endpoint.h"
#include "probes/verbs/messages.h"
#include "probes/verbs/session.h"
#include "probes/verbs/stream.h"

namespace assay::verbs {
namespace {

/// Two ranks that throw one message to and fro. The last byte of a message counts the throws, so that a rank sees each
/// one arrive and no old one is taken for a new one. In memory that the processors cannot see nothing is counted: read
/// and send alone are played there, and each completion, in the order that a reliable connection keeps, is one message.
class PingPong {
 public:
  /// How large the queues must be.
  static constexpr std::uint32_t kSends = 64, kReceives = 64;

  /// Messages of `size` (2 B at least) over the first queue pair of `endpoint`, which outlives this. Made before the
  /// endpoint is connected: it clears the counting byte of the target and with send posts the first receives.
  PingPong(VerbsEndpoint& endpoint, const RegisteredMemory& memory, const AreaLayout& layout, Bytes size,
           VerbsOperation operation, Seconds stall);

  /// Rank 0: throws `count` times and catches the answers; seconds from each post to the arrival of the answer, or with
  /// read to the completion. Throws std::runtime_error when nothing comes for the stall limit.
  std::vector<double> lead(std::size_t count);
  /// Rank 1: answers `count` times; with read there is nothing to do.
  void follow(std::size_t count);

 private:
  void throw_message();
  void await_message();
  void await_memory();
  void await_receive();
  void reclaim();

  VerbsEndpoint& endpoint_;
  std::byte* source_last_ = nullptr;  ///< last byte of the message to throw; null if it cannot be seen
  std::byte* target_last_ = nullptr;  ///< last byte of the message to catch; the same
  Transfer message_;                  ///< as it is posted
  Transfer room_;                     ///< as it is received
  VerbsOperation operation_;
  Seconds stall_;
  std::array<Completed, kSends> taken_;
  std::uint32_t posted_ = 0;  ///< not yet reclaimed
  std::uint8_t thrown_ = 0, caught_ = 0;
};

/// Percentiles of one batch of samples, s.
struct LatencySummary {
  double p50 = 0, p99 = 0, p999 = 0, largest = 0;
};

using Clock = std::chrono::steady_clock;
constexpr std::uint32_t kPollsPerClock =
    4096;  // looks at memory or queue between two looks at the clock: some tens of microseconds

/// The byte that the adapter writes. A plain load could be kept in a register.
std::uint8_t look_at(std::byte* place) {
  return static_cast<std::uint8_t>(std::atomic_ref<std::byte>(*place).load(std::memory_order_acquire));
}

/// Counts looks and ends the wait at its deadline.
class Patience {
 public:
  explicit Patience(Seconds limit) : limit_(limit) {}
  /// True once in a while, when something slow may be done; throws when the time is over.
  bool look() {
    if (++looks_ % kPollsPerClock != 0) return false;
    const auto now = Clock::now();
    if (looks_ == kPollsPerClock) begin_ = now;
    if (std::chrono::duration<double>(now - begin_).count() > limit_.count) {
      throw std::runtime_error(fmt::format("a message did not arrive within {:g} s", limit_.count));
    }
    return true;
  }

 private:
  Seconds limit_;
  std::uint64_t looks_ = 0;
  Clock::time_point begin_;
};

PingPong::PingPong(VerbsEndpoint& endpoint, const RegisteredMemory& memory, const AreaLayout& layout, Bytes size,
                   VerbsOperation operation, Seconds stall)
    : endpoint_(endpoint), operation_(operation), stall_(stall) {
  const bool reads = operation == VerbsOperation::read;
  const auto bytes = static_cast<std::uint32_t>(size.count);
  message_ = {
      .here = reads ? layout.target : layout.source, .there = reads ? layout.source : layout.target, .size = bytes};
  room_ = {.here = layout.target, .there = 0, .size = bytes};
  if (!memory.bytes().empty()) {
    source_last_ = memory.bytes().data() + layout.source + size.count - 1;
    target_last_ = memory.bytes().data() + layout.target + size.count - 1;
  } else if (operation == VerbsOperation::write) {
    throw std::logic_error("a write into memory that cannot be seen is never seen to arrive");
  }
  if (!reads && target_last_ != nullptr) *target_last_ = std::byte{0};
  if (operation == VerbsOperation::send) endpoint_.post_receives(0, std::vector<Transfer>(kReceives, room_));
}

void PingPong::throw_message() {
  if (operation_ != VerbsOperation::read && source_last_ != nullptr) *source_last_ = static_cast<std::byte>(++thrown_);
  endpoint_.post(operation_, 0, {&message_, 1});
  ++posted_;
}

void PingPong::await_message() {
  if (operation_ == VerbsOperation::write)
    await_memory();
  else
    await_receive();
}

void PingPong::await_memory() {
  const auto awaited = static_cast<std::uint8_t>(caught_ + 1);
  Patience patience(stall_);
  while (look_at(target_last_) != awaited) {
    if (patience.look()) reclaim();  // a message that failed is known by its completion only
  }
  caught_ = awaited;
}

void PingPong::await_receive() {
  std::array<Completed, 1> taken;
  Patience patience(stall_);
  while (endpoint_.poll_receives(taken) == 0) {
    if (patience.look()) reclaim();
  }
  const auto awaited = static_cast<std::uint8_t>(caught_ + 1);
  if (target_last_ != nullptr && look_at(target_last_) != awaited)
    throw std::runtime_error("a message arrived out of turn");
  caught_ = awaited;
  endpoint_.post_receives(0, {&room_, 1});
}

void PingPong::reclaim() { posted_ -= static_cast<std::uint32_t>(endpoint_.poll_sends(taken_)); }

std::vector<double> PingPong::lead(std::size_t count) {
  std::vector<double> times;
  times.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = Clock::now();
    throw_message();
    if (operation_ == VerbsOperation::read) {
      Patience patience(stall_);
      while (posted_ > 0) {
        reclaim();
        (void)patience.look();  // it throws at the deadline
      }
    } else {
      await_message();
    }
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    if (operation_ != VerbsOperation::read) reclaim();  // outside of the time
  }
  return times;
}

void PingPong::follow(std::size_t count) {
  if (operation_ == VerbsOperation::read) return;
  for (std::size_t i = 0; i < count; ++i) {
    await_message();
    throw_message();
    Patience patience(stall_);
    reclaim();
    while (posted_ > kSends / 2) {
      reclaim();
      (void)patience.look();  // it throws at the deadline
    }
  }
}

/// Type 7 percentiles, and the largest sample itself; nothing is left out. Not empty.
LatencySummary summary_of(const std::vector<double>& samples) {
  return {.p50 = percentile(samples, 0.5),
          .p99 = percentile(samples, 0.99),
          .p999 = percentile(samples, 0.999),
          .largest = std::ranges::max(samples)};
}

constexpr Parameter kOwnParameters[] = {
    parameter("sizes", "", "2,8,4KiB,64KiB", "message sizes, separated by commas; first..last doubles; 2 B to 64 MiB",
              "8"),
    parameter("messages", "1", "10000", "messages in one batch", "1000"),
    parameter("batches", "1", "10", "batches of each size; batches times messages at most 200,000"),
    parameter("warmup", "1", "1000", "messages before the first batch, kept apart", "100"),
};
constexpr auto kParameters = join(kOperationParameter, kStationParameters, kPlaceParameters, kOwnParameters);
// Two readings of the clock, some 50 ns together, in 1 us or more; half of that in half of a round trip.
constexpr double kInstrument = 0.03;
constexpr Metric kMetrics[] = {
    lower("latency", "s", "every message: half of the round trip with write and send, the whole with read",
          Recorded::rank_0, kInstrument),
    lower("latency_p50", "s", "median of each batch", Recorded::rank_0, kInstrument),
    lower("latency_p99", "s", "99th percentile of each batch", Recorded::rank_0, kInstrument),
    lower("latency_p999", "s", "99.9th percentile of each batch", Recorded::rank_0, kInstrument),
    lower("latency_max", "s", "largest sample of each batch, none left out", Recorded::rank_0, kInstrument),
    fault("mismatches", "bytes, at both ends, that are not what was sent", Recorded::rank_0),
};
constexpr ConditionSpec kOwnConditions[] = {
    {.name = "inlined", .meaning = "largest message that is copied into the work request, B"},
};
constexpr auto kConditions =
    join(kPathConditions, kStationConditions, kPlaceConditions, kCounterConditions, kOwnConditions);
constexpr ProbeSpec kSpec{
    .name = "verbs_latency",
    .scope = Scope::group,  // of two ranks; a single rank is a loopback
    .measures = "Latency of one message between two RDMA ports by write, read or send, as every single sample.",
    .method =
        "One reliable connection over libibverbs, one message in flight. Write and send: rank 0 sends, rank 1 answers "
        "with a message of the same size, and a sample is half of the host's time from posting to the arrival of the "
        "answer; with write both look at the last byte in memory, with send at the completion of the receive. Read: a "
        "sample is the time from posting to the completion, the whole round trip. Small messages are inlined where the "
        "device does that. The last byte counts the messages, so that each is seen to arrive once and in turn; the "
        "other bytes are compared at both ends after the last message, over a target that held other bytes before. In "
        "a GPU's memory, where processors cannot look, nothing is counted or inlined, write is refused, and every byte "
        "is compared, the last one too; it is filled and fetched back through the CUDA driver, and is reached as "
        "verbs_bandwidth reaches it. Samples come in batches; percentiles (type 7) and the largest sample are those of "
        "each batch, and no sample is left out.",
    .source =
        "linux-rdma/perftest 24.07 for the definitions; it leaves the two largest samples out and this probe does not.",
    .needs =
        "RDMA adapters with active ports (InfiniBand, RoCE) on two nodes, rdma-core's libibverbs.so.1; for GPU memory "
        "NVIDIA's driver",
    .typical = {20},
    .deadline = {900},
    .parameters = kParameters,
    .metrics = kMetrics,
    .conditions = kConditions};

constexpr std::int64_t kMaxSamples = 200'000;  // of one size: one line of the record, which has a limit
constexpr std::uint32_t kInlined = 220;        // B; mlx5's limit with one piece, and perftest's default

struct Wanted {
  VerbsOperation operation = VerbsOperation::write;
  std::vector<Bytes> sizes;
  std::size_t messages = 0, batches = 0, warmup = 0;
};

Wanted wanted_of(const Parameters& given) {
  const std::int64_t messages = given.count("messages"), batches = given.count("batches"),
                     warmup = given.count("warmup", 1, kMaxSamples);
  const auto sizes = parse_sizes(given.text("sizes"));
  if (messages < 1 || batches < 1 || messages > kMaxSamples || batches > kMaxSamples / messages) {
    throw BadParameter(
        fmt::format("messages: {} in {} batches are not from 1 to {} samples", messages, batches, kMaxSamples));
  }
  if (sizes.front().count < 2 || sizes.back() > kMaxMessage) {
    throw BadParameter(
        fmt::format("sizes: {} and {} B are not all from 2 B to 64 MiB", sizes.front().count, sizes.back().count));
  }
  const VerbsOperation operation = verbs_operation(given.text("operation"));
  if (given.text("memory") == "gpu" && operation == VerbsOperation::write) {
    throw BadParameter(
        "memory: the processors cannot see a write arrive in a GPU's memory; hint: --operation send, or read");
  }
  return {.operation = operation,
          .sizes = sizes,
          .messages = static_cast<std::size_t>(messages),
          .batches = static_cast<std::size_t>(batches),
          .warmup = static_cast<std::size_t>(warmup)};
}

/// The samples of one size on rank 0, batch by batch.
struct Timed {
  std::vector<double> warmup;
  std::vector<std::vector<double>> batches;
};

/// Leads or follows through warm-up and batches.
Timed exchange(PingPong& game, const Wanted& wanted, bool leads) {
  Timed timed;
  // A round trip of write and send holds two messages.
  const double share = wanted.operation == VerbsOperation::read ? 1 : 0.5;
  const auto lead = [&](std::size_t count) {
    auto times = game.lead(count);
    for (double& time : times) time *= share;
    return times;
  };
  if (!leads) {
    game.follow(wanted.warmup + wanted.messages * wanted.batches);
    return timed;
  }
  timed.warmup = lead(wanted.warmup);
  for (std::size_t i = 0; i < wanted.batches; ++i) timed.batches.push_back(lead(wanted.messages));
  return timed;
}

void record_times(Recorder& record, const Session& session, const Timed& timed, const Values& at) {
  Sampling raw{.samples = {}, .warmup = timed.warmup, .stopped = "fixed"};
  Sampling p50{.samples = {}, .warmup = {}, .stopped = "fixed"}, p99 = p50, p999 = p50, largest = p50;
  for (const auto& batch : timed.batches) {
    raw.samples.insert(raw.samples.end(), batch.begin(), batch.end());
    const LatencySummary summary = summary_of(batch);
    p50.samples.push_back(summary.p50);
    p99.samples.push_back(summary.p99);
    p999.samples.push_back(summary.p999);
    largest.samples.push_back(summary.largest);
  }
  record.measurement("latency", raw, session.subject(), at);
  record.measurement("latency_p50", p50, session.subject(), at);
  record.measurement("latency_p99", p99, session.subject(), at);
  record.measurement("latency_p999", p999, session.subject(), at);
  record.measurement("latency_max", largest, session.subject(), at);
}

/// One size as this rank saw it.
struct Played {
  Timed timed;
  std::uint64_t mismatches = 0;
  std::uint32_t inlined = 0;  ///< the device's grant, B
};

/// One size: fills, plays, compares. `number` distinguishes its pattern from that of other sizes.
Played play(Session& session, const RegisteredMemory& memory, const Wanted& wanted, Bytes size, std::uint64_t number) {
  const MessagePlan plan = plan_messages(size, 1, 2, {0});  // one slot
  const AreaLayout layout = layout_for(plan.area());
  const Stamp mine{.seed = number * 2 + static_cast<std::uint64_t>(session.rank())},
      other{.seed = number * 2 + static_cast<std::uint64_t>(1 - session.rank())};
  const bool reads = wanted.operation == VerbsOperation::read, visible = !memory.bytes().empty();
  memory.write(layout.source, plan.area(), [&](std::span<std::byte> area) { fill_messages(area, plan, mine); });
  memory.write(layout.target, plan.area(), [&](std::span<std::byte> area) { poison_messages(area, plan, other); });
  // To inline is to have the processor copy the message, which it cannot from a GPU's memory.
  VerbsEndpoint endpoint(session.adapter(), memory,
                         {.queue_pairs = 1,
                          .sends = PingPong::kSends,
                          .receives = PingPong::kReceives,
                          .inlined = visible ? kInlined : 0});
  PingPong game(endpoint, memory, layout, size, wanted.operation, session.stall_limit());
  session.connect(endpoint);
  Played played{.timed = exchange(game, wanted, session.rank() == 0), .mismatches = 0, .inlined = endpoint.inlined()};
  session.barrier();
  // The counting byte at the end was looked at with every message; the pattern of a message that is one byte shorter is
  // the same.
  MessagePlan compared = plan;
  if (!reads && visible) compared.size.count -= 1;
  const auto count = [&](std::span<const std::byte> area) { return count_mismatches(area, compared, other); };
  if (!reads || session.rank() == 0) played.mismatches = memory.read(layout.target, plan.area(), count);
  return played;
}

void take_part(const Parameters& given, const Wanted& wanted, Rendezvous& group, Recorder* record) {
  Session session(given, group);
  const MessagePlan largest = plan_messages(wanted.sizes.back(), 1, 2, {0});
  // The last byte shows that a message has arrived, so it must not be visible before the others.
  const RegisteredMemory memory = session.memory(layout_for(largest.area()).size, Ordering::strict);
  std::uint64_t number = 0;
  std::uint32_t inlined = 0;
  for (const Bytes size : wanted.sizes) {
    const Played played = play(session, memory, wanted, size, ++number);
    const std::uint64_t mismatches = played.mismatches + std::stoull(session.swap(std::to_string(played.mismatches)));
    inlined = played.inlined;
    if (record == nullptr || session.rank() != 0) continue;
    const Values at{{"size", static_cast<std::int64_t>(size.count)}};
    record_times(*record, session, played.timed, at);
    record->measurement("mismatches", static_cast<double>(mismatches), session.subject(), at);
  }
  if (record == nullptr) return;
  record->condition("inlined", std::int64_t{inlined});
  session.record_conditions(*record, memory);
}

void measure(const Parameters& given, const Placement& placement, Recorder& record) {
  const Wanted wanted = wanted_of(given);
  // With read rank 1 waits in an exchange while rank 0 times everything; the probe's own deadline ends a run that takes
  // longer.
  run_pair(
      given, placement, record, [&](Rendezvous& group, Recorder* mine) { take_part(given, wanted, group, mine); },
      kSpec.deadline);
}

}  // namespace
}  // namespace assay::verbs

int main(int argc, char** argv) { return assay::probe_main(argc, argv, assay::verbs::kSpec, assay::verbs::measure); }
