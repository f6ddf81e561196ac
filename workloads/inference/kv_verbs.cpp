// kv_verbs: every block is one write or more, where the receiver's page table says; a word behind the first block and
// behind the last of each queue pair is received, as a queue pair delivers in order.
#include "workloads/inference/kv_verbs.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/json_io.h"
#include "probes/core/probe.h"
#include "probes/verbs/session.h"

namespace assay::inference {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;
using verbs::VerbsOperation;

constexpr std::uint32_t kInFlight = 64;                 // requests of a queue pair: 4 MiB of the smallest usual blocks
constexpr std::uint32_t kWords = 2;                     // that a receiver expects on a queue pair
constexpr std::uint32_t kWordSize = 8;                  // B; their content says nothing
constexpr std::size_t kTail = 4096;                     // B behind the cache, for words
constexpr auto kLook = std::chrono::milliseconds(100);  // between two looks at the other rank
static_assert(std::int64_t{kWords + 1} * kWordSize * verbs::kMaxQueuePairs <= kTail);

/// Requests of one queue pair.
struct Queue {
  struct Request {
    VerbsOperation operation;
    verbs::Transfer transfer;
  };
  std::vector<Request> requests;
  std::size_t posted = 0;
  std::uint32_t in_flight = 0;
};

/// As many as a device can do; 0 is one that does not say.
std::uint32_t requests_of(const verbs::AdapterLimits& limits) {
  return limits.work_requests == 0 ? kInFlight : std::min(kInFlight, limits.work_requests);
}
std::size_t write_of(const verbs::AdapterLimits& limits) {
  const std::size_t most = verbs::kMaxMessage.count;
  return limits.largest_message == 0 ? most : std::min<std::size_t>(most, limits.largest_message);
}

/// One rank's queue pairs and memory.
class VerbsCarrier {
 public:
  VerbsCarrier(verbs::Session& session, const verbs::RegisteredMemory& memory, const KvPlan& plan)
      : session_(session),
        memory_(memory),
        size_(plan.shape.bytes()),
        pairs_(static_cast<std::uint32_t>(plan.streams)),
        largest_(write_of(session.adapter().limits())),
        in_flight_(requests_of(session.adapter().limits())),
        endpoint_(session.adapter(), memory,
                  {.queue_pairs = pairs_, .sends = in_flight_, .receives = kWords, .inlined = 0}) {
    for (std::uint32_t pair = 0; pair < pairs_; ++pair) {
      for (std::uint32_t i = 0; i < kWords; ++i) expect_word(pair);
    }
    session_.connect(endpoint_);
  }

  void send(const std::vector<KvBlock>& blocks) {
    std::vector<Queue> queues(pairs_);
    for (std::size_t i = 0; i < blocks.size(); ++i) add(queues[i % pairs_], blocks[i], i < pairs_);
    for (std::size_t pair = 0; pair < pairs_; ++pair) {
      if (pair >= blocks.size()) queues[pair].requests.push_back(word());  // instead of that behind a first block
      queues[pair].requests.push_back(word());
    }
    std::uint32_t asked = 0;
    const auto open = [](const Queue& queue) { return queue.posted < queue.requests.size() || queue.in_flight > 0; };
    wait_until([&] {
      const auto heard = hear([&](std::uint32_t) { ++asked; });
      return std::pair{asked > 0, heard};
    });
    memory_.stage_out(size_);
    wait_until([&] {
      for (std::uint32_t pair = 0; pair < pairs_; ++pair) post(pair, queues[pair]);
      const std::size_t done = endpoint_.poll_sends(taken_);
      for (std::size_t i = 0; i < done; ++i) queues[taken_[i].pair].in_flight -= taken_[i].messages;
      return std::pair{std::ranges::none_of(queues, open), done > 0};
    });
  }

  KvTaken receive(const std::vector<KvBlock>& blocks) {
    KvTaken taken{.seen = std::vector<std::uint32_t>(blocks.size(), 1)};  // lost ones have wrong bytes
    std::vector<std::uint32_t> words(pairs_);
    const auto begin = Clock::now();
    const auto since = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
    const Queue::Request ask = word();
    endpoint_.post(ask.operation, 0, std::span(&ask.transfer, 1));
    std::uint32_t in_flight = 1;
    bool first = false;
    wait_until([&] {
      const std::size_t sent = endpoint_.poll_sends(taken_);
      for (std::size_t i = 0; i < sent; ++i) in_flight -= taken_[i].messages;
      const bool heard = hear([&](std::uint32_t pair) {
        ++words[pair];
        if (first || pair >= blocks.size()) return;
        first = true;
        taken.first_s = since();
      });
      const bool all = std::ranges::all_of(words, [](std::uint32_t count) { return count == kWords; });
      return std::pair{all && in_flight == 0, heard || sent > 0};
    });
    if (memory_.is_staged()) {
      memory_.stage_in(size_);
      taken.first_s = since();  // nothing is on the GPU before all is
    }
    taken.all_s = since();
    return taken;
  }

  [[nodiscard]] KvCarrier carrier() {
    return {.send = [this](const std::vector<KvBlock>& blocks, const KvKey&) { send(blocks); },
            .receive = [this](const std::vector<KvBlock>& blocks, const KvKey&) { return receive(blocks); },
            .fill = [this](const auto& make) { memory_.write(0, size_, make); },
            .read =
                [this](const auto& look) {
                  (void)memory_.read(0, size_, [&](std::span<const std::byte> bytes) {  // the findings are `look`'s
                    look(bytes);
                    return std::uint64_t{0};
                  });
                }};
  }

 private:
  [[nodiscard]] std::size_t tail() const { return (size_ + kWordSize - 1) / kWordSize * kWordSize; }
  [[nodiscard]] Queue::Request word() const {
    return {.operation = VerbsOperation::send, .transfer = {.here = tail(), .there = 0, .size = kWordSize}};
  }
  void expect_word(std::uint32_t pair) {
    const std::size_t place = tail() + kWordSize * (1 + std::size_t{pair});
    const verbs::Transfer room{.here = place, .there = 0, .size = kWordSize};
    endpoint_.post_receives(pair, std::span(&room, 1));
  }
  /// Takes words that have come; whether there were any.
  template <class Each>
  bool hear(const Each& each) {
    const std::size_t count = endpoint_.poll_receives(taken_);
    for (std::size_t i = 0; i < count; ++i) {
      expect_word(taken_[i].pair);
      each(taken_[i].pair);
    }
    return count > 0;
  }
  void add(Queue& queue, const KvBlock& block, bool first) const {
    for (std::size_t done = 0; done < block.size; done += largest_) {
      const auto size = static_cast<std::uint32_t>(std::min(largest_, block.size - done));
      queue.requests.push_back({.operation = VerbsOperation::write,
                                .transfer = {.here = block.from + done, .there = block.to + done, .size = size}});
    }
    if (first) queue.requests.push_back(word());
  }
  void post(std::uint32_t pair, Queue& queue) {
    while (queue.in_flight < in_flight_ && queue.posted < queue.requests.size()) {
      const Queue::Request& next = queue.requests[queue.posted++];
      endpoint_.post(next.operation, pair, std::span(&next.transfer, 1));
      ++queue.in_flight;
    }
  }
  /// Calls `turn`, which returns whether all is done and whether something was, until it is. Throws when nothing is for
  /// the stall limit, when the other rank has failed, and when this process is to stop.
  template <class Turn>
  void wait_until(const Turn& turn) {
    auto last = Clock::now(), looked = last;
    while (true) {
      const auto [all, some] = turn();
      if (all) return;
      const auto now = Clock::now();
      if (some) last = now;
      if (now - looked < kLook) continue;
      looked = now;
      session_.group().check();
      if (stop_requested()) throw std::runtime_error("stopped by a signal");
      if (std::chrono::duration<double>(now - last).count() > session_.stall_limit().count)
        throw std::runtime_error(
            fmt::format("no message of a transfer was completed for {:g} s", session_.stall_limit().count));
    }
  }

  verbs::Session& session_;
  const verbs::RegisteredMemory& memory_;
  std::size_t size_;
  std::uint32_t pairs_;
  std::size_t largest_;      ///< B of one write
  std::uint32_t in_flight_;  ///< requests of a queue pair at most
  verbs::VerbsEndpoint endpoint_;
  std::array<verbs::Completed, 32> taken_ = {};
};

/// Refuses a cache that does not fit into the free memory of a GPU of either rank, before either allocates. Ranks on
/// one GPU share it.
void check_gpu_room(verbs::Session& session, const KvPlan& plan) {
  const auto free = session.free_gpu();
  if (!free) return;
  constexpr std::uint64_t kGranule = std::uint64_t{2} << 20U;  // of an allocation
  const auto& [uuid, bytes] = *free;
  const json other =
      parse_json_or_throw(session.swap(json{{"gpu", uuid}, {"free", bytes.count}}.dump()), "the other rank");
  const bool shared = other.at("gpu") == uuid;
  const std::uint64_t least = std::min<std::uint64_t>(bytes.count, other.at("free")) / (shared ? 2 : 1);
  const std::uint64_t room = least / kGranule * kGranule;
  check_kv_room(
      plan, {room - std::min(room, std::uint64_t{kTail})},
      fmt::format("free memory of {}{}", bytes.count <= other.at("free") ? uuid : other.at("gpu").get<std::string>(),
                  shared ? ", which both ranks share," : ""));
}

/// This rank's memory where the parameters want it; a refusal names the other way, and never takes it.
verbs::RegisteredMemory memory_of(const Parameters& given, const verbs::Session& session, std::size_t size) {
  constexpr const char* kHint = "; gpu_path staged copies through the host's memory, and the record says so";
  if (given.text("memory") == "host") return session.memory(size, verbs::Ordering::relaxed);
  try {
    return session.memory(size, verbs::Ordering::relaxed, given.text("gpu_path") == "staged");
  } catch (const Skip& absent) {
    throw Skip(std::string(absent.what()) + kHint);
  } catch (const std::runtime_error& refused) {
    throw std::runtime_error(std::string(refused.what()) + kHint);
  }
}

void take_part(const Parameters& given, const KvPlan& plan, Rendezvous& group, Recorder* record) {
  verbs::Session session(given, group);
  check_gpu_room(session, plan);
  const auto memory = memory_of(given, session, plan.shape.bytes() + kTail);
  const auto outcome = [&] {
    VerbsCarrier carrier(session, memory, plan);
    return transfer_all(plan, !session.loopback(), carrier.carrier(), group);
  }();
  const auto limit = session.payload_limit();
  const Subject subject = session.subject();
  if (record == nullptr) return;
  record_plan(plan, *record);
  if (given.text("memory") == "gpu") record->condition("gpu_path", given.text("gpu_path"));
  session.record_conditions(*record, memory);
  if (session.rank() == 0) record_transfers(plan, !session.loopback(), outcome, limit, subject, *record);
}

}  // namespace

void transfer_over_verbs(const Parameters& given, const KvPlan& plan, const Placement& placement, Seconds exchange,
                         Recorder& record) {
  if (plan.streams > static_cast<std::size_t>(verbs::kMaxQueuePairs))
    throw BadParameter(fmt::format("streams: {} queue pairs are over {}, the most of engine verbs", plan.streams,
                                   verbs::kMaxQueuePairs));
  if (given.text("memory") == "host" && given.text("gpu_path") == "staged")
    throw BadParameter("gpu_path: the memory is the host's; hint: --memory gpu");
  verbs::run_pair(
      given, placement, record, [&](Rendezvous& group, Recorder* mine) { take_part(given, plan, group, mine); },
      exchange);
}

}  // namespace assay::inference
